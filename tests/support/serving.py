"""Sessions of people and players for tests, and a server for one."""

import json
import threading
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
from support.players import Thinker

from diplomacy_engine import Game, load_player, make_bot
from diplomacy_engine.play import view
from diplomacy_engine.play.file import GUEST, HOST, PLAYER, PlayRecord, Seat
from diplomacy_engine.play.file import read_session as read
from diplomacy_engine.play.server import PlayServer
from diplomacy_engine.play.session import MIXED, Choices, PlaySession
from diplomacy_engine.press.deals import make_offers
from diplomacy_engine.press.negotiators.negotiation import Silent
from diplomacy_engine.press.press import PEACE_ALONE

UNITS = {"ENGLAND": ["A PAR", "A PIC"], "ITALY": ["A MAR", "A PIE"], "RUSSIA": ["A MUN", "A BER"]}
# All that the page asks for; the hint for players alone.
SHOWN = {
    "game": view.game_view,
    "texts": lambda session, me: view.texts_view(session, me, None),
    "past": lambda session, me: view.past_view(session),
    "file to share": lambda session, me: session.saved_game(me),
    "hint": lambda session, me: (
        view.hint_view(session, me) if me.power in session.now.waiting_for() else None
    ),
}
FREE = {"press": "offers", "press_rounds": 2}


def by_name(load):
    """Return what loads a player for a session by its name alone."""
    return lambda name, game, seed: load(name)


def seated(
    file,
    letters: str | None = "hp",
    game: Game | None = None,
    player: str = "hold",
    load=make_bot,
    choices=Choices(),  # noqa: B008
    draw=lambda *_: {},
    rank=lambda file: "",
    **record,
) -> PlaySession:
    """Return a session; `letters` are the powers' seats, h(ost), g(uest) or p(layer)."""
    game = game or Game("small", max_years=2)
    kinds = {"h": Seat(HOST), "g": Seat(GUEST), "p": Seat(PLAYER, player)}
    if letters is not None:
        record["seats"] = {p: kinds[one] for p, one in zip(game.powers, letters, strict=True)}
    record = {"opponents": [player]} | record
    return PlaySession(game, file, by_name(load), PlayRecord(**record), choices, draw, rank)


def again(session: PlaySession) -> PlaySession:
    """Return a session as after a restart."""
    game, record = read(session.file)
    own = session._load, record, session._choices, session._draw, session._rank
    return PlaySession(game, session.file, *own)


def reopened(file, load=make_bot) -> PlaySession:
    """Return the session of a file, as after a restart."""
    game, record = read(file)
    return PlaySession(game, file, by_name(load), record)


def viewer(session: PlaySession, who: str = HOST):
    return session.viewer(session.tokens[who])


class Partner(Silent):
    """Offers ENGLAND peace, then nothing; says the same to every offer."""

    def __init__(self, says=True, player=None):
        super().__init__(player or make_bot("random"), "partner")
        self.says = says

    def wishes(self, talk):
        wish = np.zeros((len(talk.game), talk.games.num_powers), bool)
        wish[:, 0] = True
        return wish

    def offers(self, talk):
        return make_offers([(0, p, 0, PEACE_ALONE) for p in talk.power if p > 0])

    def answers(self, talk, offers):
        if self.says is None:
            raise RuntimeError("lost for words")
        return np.full(len(talk.game), self.says)


def deals(file, letters="hgp", partner=None, **rules) -> PlaySession:
    """Return a session in which people and a Partner make deals."""
    state = {"name": "S1901M", "units": UNITS}
    game = Game.from_state("three", state, max_years=3, **(rules or FREE))
    partner = partner or Partner()
    return seated(file, letters, game, "partner", lambda name: partner)


class Builder:
    """Builds in Brest and Paris."""

    name = "builder"

    def act(self, games, decisions):
        texts = games.vocabulary.texts
        return np.array([texts.index(text) for text in ("F BRE B", "A PAR B")], np.int32)


class Failing(Thinker):
    """Has no thoughts the first few times."""

    name, left = "failing", 3

    def act(self, games, decisions):
        self.left -= 1
        if self.left >= 0:
            raise RuntimeError("out of thoughts")
        return super().act(games, decisions)


RUN = "/home/me/runs/small__x/checkpoint.pt"
PLAYERS = {
    RUN: partial(make_bot, "hold"),
    "builder": Builder,
    "failing": Failing,
    "partner": Partner,
    "partner without words": partial(Partner, None),
    "partner who thinks": lambda: Partner(player=Thinker()),
    "thinker": Thinker,
}
POOL = ["chaos", "random", "dumbbot"]
OFFERS = {"small": {"random": "any", "hold": ""}, "three": {"chaos": "", "hold": ""}}
CHOICES = {
    "none": Choices(),
    "two maps": Choices(lambda name, _: OFFERS[name], maps=[*OFFERS]),
    "mixed": Choices(lambda *_: {MIXED: "drawn"} | dict.fromkeys(POOL, ""), lambda *_: POOL),
    "thinker": Choices(lambda *_: {"hold": "", "thinker": ""}),
    "best thinker": Choices(mixed=lambda *_: ["thinker"]),
    "rated": Choices(lambda *_: {"hold": "", "random": ""}, rated=lambda _: ["thinker"]),
}
DRAWING = {
    "draw": lambda play, _: {
        name: f"latest-{play.seed}" for name in play.opponents if name in PLAYERS
    },
    "rank": lambda file: f"rank of {json.loads(file.read_text())['players']['RUSSIA']}",
}


def begun(file, game="small", choices="none", rated=False, rules=None, **options):
    """Return a session of words and numbers alone; a game is a map or a position."""
    rules = {"max_years": 2} | (rules or {})
    game = Game.from_position(game, **rules) if ";" in game else Game(game, **rules)
    load = cache(lambda name: PLAYERS.get(name, partial(load_player, name, game_map="three"))())
    options |= {"choices": CHOICES[choices]} | (DRAWING if rated else {})
    return seated(file, game=game, load=load, **options)


@contextmanager
def serving(session, host="127.0.0.1", port=0, reopen=None):
    with PlayServer(host, port, reopen) as server:
        server.session = session
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
