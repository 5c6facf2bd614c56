"""Deals in a game that people play: by the session, in the terminal, kept in the file."""

import io
import json

import numpy as np
import pytest
from support.players import Thinker

from diplomacy_engine import load_map
from diplomacy_engine.commands.cli import main
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.saved_game import read_saved_games
from diplomacy_engine.play.file import GUEST, HOST, PLAYER, Seat, read_session
from diplomacy_engine.play.session import PlaySession
from diplomacy_engine.play.terminal import TextGame
from diplomacy_engine.play.view import board_view, game_view
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.players.loading import load_player
from diplomacy_engine.players.negotiation import Silent
from diplomacy_engine.press.deals import make_offers
from diplomacy_engine.press.press import PEACE_ALONE, PressRules

pytestmark = pytest.mark.usefixtures("compiled")
UNITS = {
    "ENGLAND": ["A PAR", "A PIC"],
    "ITALY": ["A MAR", "A PIE"],
    "RUSSIA": ["A MUN", "A BER"],
}
STATE = {"name": "S1901M", "units": UNITS}
FREE = PressRules("offers", 2)


class Partner(Silent):
    """Offers ENGLAND peace, then nothing; agrees to everything that RUSSIA does not gain from."""

    def __init__(self, says=True):
        super().__init__(make_bot("random"), "partner")
        self.says = says

    def wishes(self, talk):
        wish = np.zeros((len(talk.game), talk.games.num_powers), bool)
        wish[:, 0] = True
        return wish

    def offers(self, talk):
        powers = [p for p in talk.power if p > 0]
        return make_offers([(0, p, 0, PEACE_ALONE) for p in powers])

    def answers(self, talk, offers):
        if self.says is None:
            raise RuntimeError("lost for words")
        return np.full(len(talk.game), self.says)


def started(tmp_path, rules=FREE, people=("ENGLAND", "ITALY"), partner=None, state=STATE):
    """Return a session: the first of `people` hosts, a Partner plays the others."""
    game = Game.from_state("three", state, 3)
    game.take_up_talk(rules.protocol, rules.rounds)
    seats = {power: Seat(PLAYER, "partner") for power in game.powers}
    seats |= {power: Seat(GUEST) for power in people} | {people[0]: Seat(HOST)}
    partner = partner or Partner()
    file = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
    return PlaySession(game, file, ["partner"], lambda name: partner, seats, press=rules)


def at(session, power=None):
    """Return who sits at a power; None: who watches."""
    found = session.viewer(session.tokens["host" if power == "ENGLAND" else power or "watch"])
    assert found.power == power
    return found


def talk(session, power):
    return game_view(session, at(session, power))["talk"]


def words(offer):
    return [clause["words"] for clause in offer["clauses"]]


def test_two_people_and_a_player_make_deals(tmp_path):
    """Offers are seen by their sides alone, bind units, and are kept with all else."""
    session = started(tmp_path)
    host, guest = at(session, "ENGLAND"), at(session, "ITALY")
    (first,) = talk(session, "ENGLAND")["offers"]  # the player's, made as the phase began
    assert (first["sender"], first["state"], words(first)) == ("RUSSIA", "open", ["peace"])
    assert talk(session, "ITALY")["offers"] == [] and talk(session, None)["offers"] == []
    partners = {p["power"]: p for p in talk(session, "ENGLAND")["partners"]}
    assert list(partners) == ["ITALY", "RUSSIA"]
    help_ = {pair["support"]: pair for pair in partners["ITALY"]["help"]}
    assert help_["A MAR S A PAR - GAS"]["order"] == "A PAR - GAS"
    assert help_["A MAR S A PAR - GAS"]["words"] == "Army Marseilles: support army Paris to Gascony"
    terms = {"ours": ["A PAR - GAS"], "theirs": ["A MAR S A PAR - GAS"], "we_keep_out": ["MUN"]}
    session.offer(host, 0, "ITALY", terms)
    with pytest.raises(UserError, match="already offered it"):
        session.offer(host, 0, "ITALY", terms)
    (got,) = talk(session, "ITALY")["offers"]
    assert got["number"] == 1 and words(got)[2] == "keeps out of Munich"
    session.submit(host, 0, ["A PAR - PIC", "A PIC - BEL"])  # has changed its mind
    session.answer(guest, 0, 1, True)
    session.answer(guest, 0, 1, True)  # sent twice
    view = game_view(session, host)
    assert view["given"] is None and view["before"] == ["A PAR - PIC", "A PIC - BEL"]
    units = {unit["unit"]: unit for unit in view["decision"]["units"]}
    assert units["A PAR"]["bound"] == ["ITALY"] and len(units["A PAR"]["orders"]) == 1
    assert units["A PIC"]["bound"] == []
    with pytest.raises(UserError, match="breaks the deal with ITALY"):
        session.submit(host, 0, ["A PAR H"])
    assert "GAS" not in json.dumps(talk(session, None)) and talk(session, "ITALY")["peace"] == []

    again, play = read_session(session.file)  # as after a kill -9
    assert play.rules == FREE
    partner = Partner()
    session = PlaySession(
        again, session.file, ["partner"], lambda name: partner, saved=play, press=FREE
    )
    assert session.game.deals("ITALY") and list(session.game.offers("ENGLAND")) == [1]
    session.submit(at(session, "ENGLAND"), 0, ["A PIC - BEL"])
    session.submit(at(session, "ITALY"), 0, [])
    orders = session.game.history[0]["orders"]
    assert orders["ENGLAND"] == ["A PIC - BEL", "A PAR - GAS"]
    assert session.game.phase == "F1901M" and talk(session, "ENGLAND")["offers"] != []
    said = board_view(session, at(session, "ITALY"), 0)["talk"]
    assert [line[:2] for line in said] == [("ENGLAND", "ITALY"), ("ITALY", "ENGLAND")]
    assert len(board_view(session, at(session, "ENGLAND"), 0)["talk"]) == 3
    for power, count in (("ENGLAND", 3), ("ITALY", 2), (None, 0)):
        phase = session.saved_game(at(session, power))["phases"][0]
        assert [message["time_sent"] for message in phase["messages"]] == list(range(count))
    session.take_back(at(session, "ENGLAND"), 1)
    assert session.game.deals("ITALY") == [] and list(session.game.offers("ENGLAND")) == [1]


def test_players_answer_at_once_and_refusals_have_reasons(tmp_path):
    session = started(tmp_path, people=("ENGLAND",))
    host = at(session, "ENGLAND")
    session.offer(host, 0, "ITALY", {"ours": ["A PAR - GAS"]})
    assert talk(session, "ENGLAND")["offers"][-1]["state"] == "deal"
    kept = session.file.read_bytes()
    for action, reason in (
        (lambda: session.offer(host, 0, "RUSSIA", {"ours": ["A PAR H"]}), "RUSSIA agrees, but"),
        (lambda: session.offer(host, 0, "RUSSIA", {"theirs": ["A MAR H"]}), "MAR belongs to ITALY"),
        (
            lambda: session.offer(host, 0, "ENGLAND", {"peace": True}),
            "cannot make a deal with itself",
        ),
        (lambda: session.offer(host, 0, "MARS", {"peace": True}), "MARS"),
        (lambda: session.offer(host, 1, "ITALY", {"peace": True}), "meant for step 1"),
        (lambda: session.answer(host, 0, 9, True), "no offer 9"),
        (lambda: session.answer(host, 0, 3, True), "your own; ITALY answers"),
        (lambda: session.offer(at(session), 0, "ITALY", {"peace": True}), "and play no power"),
    ):
        with pytest.raises(UserError, match=reason):
            action()
        assert session.file.read_bytes() == kept
    session.answer(host, 0, 2, False)
    with pytest.raises(UserError, match="answered already: declined"):
        session.answer(host, 0, 2, True)
    session = started(tmp_path, people=("ENGLAND",), partner=Partner(None))
    with pytest.raises(UserError, match="ITALY could not answer: lost for words"):
        session.offer(at(session, "ENGLAND"), 0, "ITALY", {"peace": True})
    silent = started(tmp_path, people=("ENGLAND",), partner=Partner(False))
    silent.offer(at(silent, "ENGLAND"), 0, "ITALY", {"zone": ["GAS"]})
    assert talk(silent, "ENGLAND")["offers"][-1]["state"] == "declined"


@pytest.mark.parametrize("open_press", [False, True])
def test_mutual_press_and_who_sees_it(tmp_path, open_press):
    rules = PressRules("mutual", open_press=open_press)
    session = started(tmp_path, rules)
    session.offer(at(session, "ENGLAND"), 0, "RUSSIA", {"peace": True})  # which wished it, too
    session.offer(at(session, "ITALY"), 0, "RUSSIA", {"peace": True})  # which did not
    assert talk(session, "ITALY")["offers"][-1]["state"] == "declined"
    for who in ("ENGLAND", "ITALY", None):
        seen = open_press or who == "ENGLAND"
        assert talk(session, who)["peace"] == [("ENGLAND", "RUSSIA")] * seen
    assert talk(session, "ENGLAND")["left"] is None


@pytest.mark.parametrize("rules", [PressRules("mutual"), PressRules("offers", 2)])
def test_players_talk_through_a_whole_game(tmp_path, rules):
    """A game between players goes on to its end; no order that is kept breaks a deal."""
    game = Game("three", max_years=4, press=rules.protocol, press_rounds=rules.rounds)
    names = ["peaceful+dumbbot", "dealer+dumbbot"]
    seats = {power: Seat(PLAYER, names[n % 2]) for n, power in enumerate(game.powers)}
    file, made = tmp_path / "game.jsonl", {}

    def load(name):
        return made.setdefault(name, load_player(name, game_map=game.map))

    session = PlaySession(game, file, names, load, seats, press=rules)
    host = session.viewer(session.tokens["host"])
    while not session.game.is_over:
        session.go_on(host, session.now.step)
        again, _ = read_session(file)
        assert again.said() == session.game.said() and again.peace() == session.game.peace()
    history = session.game.history
    assert sum(len(phase["messages"]) for phase in history) > 4
    assert any(phase["name"].endswith("A") for phase in history)
    assert not any("void" in words for phase in history for words in phase["results"].values())


def test_who_talks_can_still_give_hints(tmp_path):
    """Hints are those of the player that gives the orders, and name none that a deal rules out."""
    thinker = Partner()
    thinker.player = Thinker()
    session = started(tmp_path, people=("ENGLAND",), partner=thinker)
    assert session.can_hint()
    session.offer(at(session, "ENGLAND"), 0, "ITALY", {"ours": ["A PAR - GAS"]})
    slots = dict(session.hint(at(session, "ENGLAND")).slots)
    assert [text for text, _ in slots["A PAR"]] == ["A PAR - GAS"] and len(slots["A PIC"]) > 3


def test_the_terminal(tmp_path):
    """Offers, answers and deals are typed; each mistake gets one sentence and changes nothing."""
    session = started(tmp_path, people=("ENGLAND",))
    lines = [
        "deals",
        "A PAR H",
        "offer italy A PAR - GAS; A MAR S A PAR - GAS; both out BEL; they out PIC",
        "accept 1",
        *(mistakes := {
            "offer": "names a power and what is offered",
            "offer ITALY": "names a power and what is offered",
            "offer MARS peace": "'MARS' is not a power",
            "offer ITALY peas": "'peas' is neither peace, nor an order",
            "offer ITALY both out XYZ": "no province 'XYZ'",
            "offer ITALY A BER H": "belongs to RUSSIA",
            "accept": "needs the number of an offer",
            "accept x3": "needs the number of an offer",
            "accept 7": "no offer 7",
            "decline 3": "your own",
            "deals now": "nothing may follow 'deals'",
            "A PAR H": "breaks the deal with ITALY",
        }),
        "quit",
    ]  # fmt: skip
    shown, waiting = [], list(lines)

    def read(prompt):
        shown.append(f"> {waiting[0]}")
        return waiting.pop(0)

    TextGame(session, read, shown.append).run()
    text = "\n".join(shown)
    assert "1  RUSSIA to you, not answered yet: peace between ENGLAND and RUSSIA" in text
    assert "3  you to ITALY, deal: A PAR - GAS; A MAR S A PAR - GAS; ENGLAND keeps out of" in text
    assert "a deal rules out: A PAR H" in text and "bound in PAR by the deal with ITALY" in text
    for line, reason in mistakes.items():
        answers = text.split(f"> {line}\n")[-1].split("\n> ")[0].splitlines()
        assert answers[0].startswith("No: ") and reason in answers[0], line
    assert session.game.deals("ENGLAND")[0].startswith("with RUSSIA: peace")


def test_the_command(tmp_path, monkeypatch, capsys):
    """`play --press` is kept in the file, and said again only if it is the same."""
    monkeypatch.setattr("sys.stdin", io.StringIO())  # nothing is typed
    file, words = str(tmp_path / "game.jsonl"), ["play", "--text", "--map", "small"]
    begin = [*words, "--power", "ENGLAND", "--save", file]
    assert main([*begin, "--against", "peaceful+hold", "--press", "offers"]) == 0
    (saved,) = read_saved_games(file)
    assert saved["play"]["press"]["rounds"] == 4
    capsys.readouterr()
    for wrong, reason in (
        (["--press", "mutual"], "has a different press, which cannot change"),
        (["--press-rounds", "2"], "it needs --press"),
    ):
        assert main(["play", "--text", "--resume", file, *wrong]) == 2
        assert reason in capsys.readouterr().err
    assert main(["play", "--text", "--resume", file]) == 0
    del saved["play"]["press"]
    (tmp_path / "game.jsonl").write_text(json.dumps(saved))
    assert main(["play", "--text", "--resume", file, "--against", "nash+dumbbot"]) == 2
    assert "nobody does" in capsys.readouterr().err


def test_a_watcher_does_not_learn_that_others_have_talked(tmp_path):
    """A shared game has the rules of its press, whether anybody has said anything or not."""
    session = started(tmp_path, people=("ENGLAND", "ITALY", "RUSSIA"))
    before = session.saved_game(at(session))
    session.offer(at(session, "ENGLAND"), 0, "ITALY", {"peace": True})
    assert session.saved_game(at(session)) == session.saved_game(at(session, "RUSSIA")) == before
    assert "NO_PRESS" not in before["rules"]
    assert session.saved_game(at(session, "ITALY")) != before


@pytest.mark.parametrize(
    "name, terms, reason",
    [
        ("silent+hold", {"peace": True}, "it makes no deals"),
        ("peaceful+hold", {"zone": ["BEL"]}, "it agrees to peace and to nothing else"),
        (
            "nash+hold",
            {"theirs": ["A MAR H"], "ours": ["A PAR H"]},
            "it reckons the deal would",
        ),
    ],
)
def test_a_player_says_why_it_declines(tmp_path, name, terms, reason):
    session = started(
        tmp_path, people=("ENGLAND",), partner=load_player(name, game_map=load_map("three"))
    )
    session.offer(at(session, "ENGLAND"), 0, "ITALY", terms)
    offers = game_view(session, at(session, "ENGLAND"))["talk"]["offers"]
    (offer,) = [one for one in offers if one["receiver"] == "ITALY"]
    assert offer["state"] == "declined" and offer["reason"].startswith(reason)
