"""Sessions of people and players for tests, and a server for one."""

import threading
from contextlib import contextmanager

import numpy as np

from diplomacy_engine import Game, make_bot
from diplomacy_engine.play import view
from diplomacy_engine.play.file import GUEST, HOST, PLAYER, PlayRecord, Seat
from diplomacy_engine.play.file import read_session as read
from diplomacy_engine.play.server import PlayServer
from diplomacy_engine.play.session import Choices, PlaySession
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
    **record,
) -> PlaySession:
    """Return a session; `letters` are the powers' seats, h(ost), g(uest) or p(layer)."""
    game = game or Game("small", max_years=2)
    kinds = {"h": Seat(HOST), "g": Seat(GUEST), "p": Seat(PLAYER, player)}
    if letters is not None:
        record["seats"] = {p: kinds[one] for p, one in zip(game.powers, letters, strict=True)}
    record = {"opponents": [player]} | record
    return PlaySession(game, file, by_name(load), PlayRecord(**record), choices)


def reopened(file, load=make_bot) -> PlaySession:
    """Return the session of a file, as after a restart."""
    game, record = read(file)
    return PlaySession(game, file, by_name(load), record)


def viewer(session: PlaySession, who: str = HOST):
    return session.viewer(session.tokens[who])


class Partner(Silent):
    """Offers ENGLAND peace, then nothing; says the same to every offer."""

    def __init__(self, says=True):
        super().__init__(make_bot("random"), "partner")
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
