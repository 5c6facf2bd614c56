"""Programs as players: they play as in process, and whatever goes wrong has a name."""

import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.tables import read_table, read_text, slow_but
from support.training import REPOSITORY

from diplomacy_engine import Game, UserError, VectorGame, evaluate_player, load_map, load_player
from diplomacy_engine.commands import bot
from diplomacy_engine.commands.cli import main
from diplomacy_engine.constants import NONE
from diplomacy_engine.extras.programs import dui, process
from diplomacy_engine.extras.programs.lines import (
    Message,
    Talking,
    arrays_of,
    encode,
    line_decoder,
    load_arrays,
    load_positions,
    positions_of,
)
from diplomacy_engine.extras.programs.player import ProgramPlayer
from diplomacy_engine.extras.programs.talk import Boards, deals_of, press_of
from diplomacy_engine.matches.match import MatchSettings
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.checking import sample_positions
from diplomacy_engine.players.names import parse_player
from diplomacy_engine.players.trust import needs_naming
from diplomacy_engine.press.deals import Clause, Deals, OfferResult, Side, make_offers
from diplomacy_engine.press.negotiators.negotiation import negotiate, talk_of
from diplomacy_engine.press.negotiators.neighbors import Peaceful
from diplomacy_engine.press.press import PEACE_ALONE, Press
from diplomacy_engine.rules.game_rules import GameRules

EXAMPLE = f"cmd:{sys.executable} {REPOSITORY}/examples/grabber.py"
NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


def program(tmp_path, body: str, timeout: float = 20) -> ProgramPlayer:
    """Return a player of a program that says hello and then does as `body` says."""
    text = f"""import json, sys, time
HELLO = '{{"hello": {{"protocol": 1}}}}'
def said(): return json.loads(sys.stdin.readline())
def say(**answer): print(json.dumps(answer), flush=True)
{body}
"""
    (tmp_path / "mine.py").write_text(text)
    spec = parse_player(f"cmd(timeout={timeout}):{sys.executable} {tmp_path / 'mine.py'}")
    return load_player(spec)


def command_of(text: str) -> str:
    """Return the player of a program in texts/."""
    return f"cmd:{sys.executable} {Path(__file__).parent / 'texts' / text}"


class Inside:
    """In place of a Process: `bot NAME` in this process, which starts at once."""

    def __init__(self, name: str, timeout: float):
        self.host, self.maps = bot.Host(load_player(name), 1), {}

    def ask(self, *lines: bytes, phase: str) -> bytes:
        said = [bot._answer(self.host, self.maps, line_decoder.decode(line)) for line in lines]
        return encode(said[-1])


@pytest.fixture
def inside(monkeypatch):
    monkeypatch.setattr("diplomacy_engine.extras.programs.player.Process", Inside)


@pytest.mark.parametrize("name", ["small", "standard"])
def test_positions_come_out_as_they_went_in(name):
    """In all phases, with what was ordered last; retreats, coasts, seeds and turns."""
    source = sample_positions(load_map(name))
    positions = positions_of(source, source.decisions(), ("last_orders",))
    games = source.spare(source.num_games)
    load_positions(games, positions, 1)
    rows = np.array([position.game for position in positions])
    for field in source.state._fields:
        here, there = (getattr(g.state, field)[rows] for g in (source, games))
        assert np.array_equal(here, there), field
    decisions, arrays = source.decisions(), source.spare(source.num_games)
    loaded = load_arrays(arrays, arrays_of(source, decisions, ()))
    assert np.array_equal(loaded.order, decisions.order)
    for field in source.state._fields:
        here, there = (getattr(g.state, field)[rows] for g in (source, arrays))
        assert np.array_equal(here, there), field


@pytest.mark.parametrize(
    "name", ["dumbbot", "random", pytest.param("greedy:small-pure-1", marks=pytest.mark.slow)]
)
def test_a_bot_of_ours_plays_as_in_process(name, inside):
    """To the digit: draws depend on the games' seeds, which the program is told."""
    results = []
    for player in (name, f"cmd:{name}"):
        report = evaluate_player("small", load_player(player), load_player("dumbbot"), 8, seed=4)
        results.append(report.result()["overall"])
    assert results[0] == results[1]


def test_a_program_is_told_where_another_game_begins(inside):
    """However often it is asked behind the first two phases of a game."""
    player, rng, begun = load_player("cmd:dumbbot"), np.random.default_rng(1), set(range(6))
    games = VectorGame("small", 6, seed=1, max_years=2, keep_history=True)
    for _ in range(40):
        first = games.history.count < 2
        asked = {*np.flatnonzero(first | (rng.random(6) < 0.5)).tolist()}
        assert player._new(games, np.array(sorted(asked), int)) == begun & asked
        begun -= asked
        begun |= {*np.flatnonzero(games.step(games.new_orders()).ended).tolist()}


@pytest.mark.parametrize("command", [EXAMPLE, pytest.param("node", marks=NODE)])
def test_the_examples_play(command):
    player = load_player(command.replace("node", f"cmd:node {REPOSITORY}/examples/grabber.js"))
    report = evaluate_player("standard", player, load_player("hold"), 7, max_years=3, seed=2)
    assert report.result()["overall"]["centers"]["value"] > 3.5
    assert player.faults["decisions"] > 40
    assert not player.faults["illegal"] and not player.faults["missing"], player.example


@NODE
def test_both_examples_order_alike():
    games = sample_positions(load_map("three"))
    python, node = load_player(EXAMPLE), load_player(f"cmd:node {REPOSITORY}/examples/grabber.js")
    assert np.array_equal(orders_of(games, python), orders_of(games, node))


@pytest.mark.parametrize(
    ("name", "press"),
    [
        ("peaceful+dumbbot", ("mutual",)),
        ("sanction+dumbbot", ("offers", 1, False)),
        pytest.param("dealer+dumbbot", ("offers", 2, True, True), marks=pytest.mark.slow),
        pytest.param("nash+dumbbot", ("propose-choose",), marks=pytest.mark.slow),
    ],
)
def test_a_bot_of_ours_talks_as_in_process(name, press, inside):
    """To the digit, what is said included."""
    results = []
    names = "press", "press_rounds", "binding"
    rules = GameRules("standard", max_years=2, **dict(zip(names, press)))
    match = MatchSettings(replace(rules, max_years=1 + rules.binding), seed=4)
    for player in (name, f"cmd:{name}"):
        player = load_player(player)
        report = evaluate_player(match, player, load_player(name), 1)
        results.append([report.result()[key] for key in ("overall", "press")])
    assert results[0] == results[1]
    assert results[0][1]["agreed"] > 0
    assert not player.faults["illegal"] and not player.faults["missing"], player.example


def test_deals_come_out_as_they_went_in():
    """Each clause of a deal, through a reply's texts and back."""
    games = VectorGame("standard", 2, seed=3)
    press, table = Press(games, "offers", 2), games.table
    powers, provinces = games.map.power_index, games.map.provinces
    one, two = powers["FRANCE"], powers["ENGLAND"]
    number = games.vocabulary.number["A PAR - PIC"]
    clauses = [
        [(Clause.ORDER, Side.SENDER, provinces.index("PAR"), number)],
        [(Clause.ZONE, Side.BOTH, provinces.index("ENG"), NONE)],
        [(Clause.KEEP_OUT, Side.RECEIVER, provinces.index("BEL"), NONE)],
        [(Clause.LEAVE, Side.SENDER, provinces.index("BRE"), NONE)],
        [(Clause.PEACE, Side.BOTH, NONE, NONE)],
    ]
    for clause in clauses:
        results = press.settle(make_offers([(1, one, two, clause)]), np.ones(1, bool))
        assert results == OfferResult.CONFIRMED
    decisions = games.decisions()
    talk = talk_of(press, decisions, np.array([1, 1]), np.array([one, two]))
    (position,) = positions_of(games, decisions.take(decisions.game == 1), ())
    position.deals = [d for s in range(2) for d in deals_of(talk, s, Boards(games))]
    again = press_of(games, decisions, [position], Boards(games), Talking())
    for name, here, there in zip(Deals._fields, press.deals, again.deals):
        assert np.array_equal(here, there), name
    assert (table.kind[press.deals.promised[1]] >= 0).any()
    position.deals[0] = Message("FRANCE", "ENGLAND", "PRP ( XDO ( ( FRA AMY PAR ) MTO BUR ) )")
    position.deals.append(Message("FRANCE", "ENGLAND", "PRP ( XDO ( ( FRA AMY PAR ) HLD ) )"))
    with pytest.raises(UserError, match="game 1: this cannot be a deal"):
        press_of(games, decisions, [position], Boards(games), Talking())


def test_what_a_program_says(tmp_path):
    """Words go with an offer; what nobody asked for, or nobody can read, is counted."""
    peace = {"sender": "FRANCE", "recipient": "ITALY", "message": "PRP ( PCE ( FRA ITA ) )"}
    later = peace | {"message": "PRP ( FOR ( FAL 1901 ) ( PCE ( FRA ITA ) ) )"}
    lines = [
        peace | {"message": later["message"].replace("FAL", "SPR")},  # that is now
        later,
        peace | {"message": "Let us be friends."},
        peace | {"message": "PRP ( ALY )"},
        peace | {"sender": "ITALY", "recipient": "FRANCE"},
        peace | {"recipient": "NOBODY"},
        peace | {"sender": "france"},  # is FRANCE, which has made its offer
    ]
    answers = f"""say(hello=json.loads(HELLO)["hello"] | {{"talks": True}})
said(), said()
say(reply=1, messages=[{lines!r}])
asked = said()["positions"][0]
assert asked["messages"][0]["sender"] == "ITALY" and asked["powers"] == ["FRANCE"]
no = {{"sender": "FRANCE", "recipient": "ITALY", "message": "REJ ( PRP ( PCE ( FRA ITA ) ) )"}}
say(reply=2, messages=[[no, no | {{"message": "No."}}]])
"""
    player = program(tmp_path, f"said()\n{answers}")
    games = VectorGame("standard", 1)
    france, italy = (games.map.power_index[power] for power in ("FRANCE", "ITALY"))
    talk = talk_of(Press(games, "offers"), games.decisions(), np.zeros(1, int), np.array([france]))
    offers = player.offers(talk)
    assert (offers.count, offers.receiver[0], player.said) == (1, italy, ["Let us be friends."])
    assert player.faults["illegal"] == 5 and player.example.startswith("S1901M, FRANCE: PRP ( FOR")
    offers = make_offers([(0, italy, france, PEACE_ALONE)])
    assert player.answers(talk, offers).tolist() == [False] and player.said == ["No."]


@pytest.mark.parametrize(
    ("body", "names"),
    read_table(__file__, "a_program_that_does_not_begin"),
    ids=["ends", "nonsense", "another version", "a long line"],
)
def test_a_program_that_does_not_begin(body, names, tmp_path):
    with pytest.raises(UserError) as error:
        program(tmp_path, body)
    assert all(name in str(error.value) for name in ["mine.py", *names])


@pytest.mark.parametrize(
    ("body", "names"),
    read_table(__file__, "a_program_that_fails_in_a_game"),
    ids=[
        "dies",
        "slow",
        "a number",
        "another reply",
        "too few",
        "wrong",
        "letters",
        "nests",
        "leaves",
    ],
)
def test_a_program_that_fails_in_a_game(body, names, tmp_path):
    slow = 0.5 if "sleep" in body else 20
    player = program(tmp_path, f"said(); print(HELLO, flush=True)\nsaid(), said()\n{body}", 20)
    player.program.process.timeout = slow
    with pytest.raises(UserError) as error:
        orders_of(VectorGame("small", 2), player)
    assert all(name in str(error.value) for name in ["mine.py", "S1901M", *names])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "numbers", "error"), read_table(__file__, "damaged_arrays"))
def test_damaged_arrays(name, numbers, error):
    games = VectorGame("three", 1)
    arrays = arrays_of(games, games.decisions(), ())
    old = np.frombuffer(arrays.pop(name), "<i4")
    if numbers is not None:
        new = np.resize(np.array(numbers, "<i4"), max(len(old), len(numbers), 3))
        arrays[name] = (
            new if name.startswith(("unit", "pos", "ret")) else new[: len(numbers)]
        ).tobytes()
    with pytest.raises(UserError, match=error):
        load_arrays(games, arrays)


@pytest.mark.parametrize(
    ("position", "orders", "taken", "faults", "example"),
    read_table(__file__, "orders_of_a_program"),
)
def test_orders_of_a_program(position, orders, taken, faults, example, tmp_path):
    """What is not legal counts as a hold; only a support of an own move need not name its coast."""
    reply = f"say(reply=1, orders=[{orders!r}])"
    player = program(tmp_path, f"said(); print(HELLO, flush=True)\nsaid(), said()\n{reply}")
    game = Game.from_position(position) if ";" in position else Game(position)
    games = game.vector_game
    decisions, powers = games.decisions(), [game.powers.index(power) for power in orders]
    numbers = player.act(games, decisions.take(np.isin(decisions.power, powers)))
    assert sorted(games.vocabulary.texts[number] for number in numbers) == taken
    assert player.faults == faults and example in player.example


def test_no_program_stays_behind():
    script = read_text(__file__, "host.py.txt")
    for end in ("\n", "kill"):
        host = subprocess.Popen(
            [sys.executable, "-c", script, EXAMPLE], stdin=-1, stdout=-1, cwd=REPOSITORY, text=True
        )
        pid = int(host.stdout.readline())
        if end == "kill":
            host.kill()
        host.communicate(None if end == "kill" else end)
        for _ in range(100):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.1)
        else:
            pytest.fail("it goes on")


def test_a_program_ends_where_there_are_no_sessions(monkeypatch, tmp_path):
    monkeypatch.setattr(process, "Path", lambda _: tmp_path)  # nor is there /proc
    monkeypatch.delattr(os, "killpg", raising=False)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process._kill(child, "mark")
    assert child.wait(30) != 0


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")
def test_what_a_program_started_in_a_session_of_its_own_ends_with_it(tmp_path):
    """It holds the pipes open, so that only a deadline on them ends the wait."""
    file = tmp_path / "pid"
    started = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(99)"
    body = f"""import subprocess, sys
subprocess.Popen([sys.executable, '-c', {started!r}], start_new_session=True)
said(); print(HELLO, flush=True); said()"""
    player = program(tmp_path, body, timeout=1)
    with pytest.raises(UserError, match="in 1 seconds"):
        orders_of(VectorGame("small", 1), player)
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(int(file.read_text()), 0)
            time.sleep(0.1)


PLAYING = {
    "evaluate": ["--against", "dumbbot", "--player"],
    "tournament": ["--players", "dumbbot"],
}


@pytest.mark.parametrize(
    ("command", "end", "reason"),
    slow_but(
        [("tournament", "ends", "out of ideas")],
        [
            (command, end, reason)
            for command in PLAYING
            for end, reason in (
                ("ends", "out of ideas"), ("letters", "cannot be read"), ("nests", "cannot be read")
            )
        ],
    ),
)  # fmt: skip
def test_finished_games_are_reported_when_a_program_fails(command, end, reason, tmp_path, capsys):
    files = {name: tmp_path / name for name in ("json", "per-game", "save-games")}
    words = [command, *PLAYING[command], f"{command_of('failing.py.txt')} 1911 {end}"]
    words += ["--map", "small", "--games", "40"]
    for name, file in files.items():
        words += [f"--{name}", str(file)]
    assert main(words) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    games = json.loads(files["json"].read_text())["games"]
    assert f"the result covers the {games} of 40 games" in error and reason in error
    assert 0 < games < 40 and len(files["save-games"].read_text().splitlines()) > 0
    assert len(files["per-game"].read_text().splitlines()) >= games


def test_check_player_asks_a_program_that_talks_each_kind_of_question(tmp_path, capsys):
    asks = tmp_path / "asks"
    words = [sys.executable, str(Path(__file__).parent / "texts" / "asks.py.txt"), str(asks)]
    assert main(["check-player", "--map", "small", f"cmd:{shlex.join(words)}"]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    kinds = {"wishes", "offers", "proposals", "answers", "choices"}
    assert {*asks.read_text().split()} >= kinds


def test_an_order_against_a_binding_deal_is_counted_once(tmp_path):
    body = """said(); print('{"hello": {"protocol": 1, "talks": true}}', flush=True)
for line in sys.stdin:
    value = json.loads(line)
    ask = value.get("press", {}).get("ask", "orders")
    n = len(value.get("positions", ()))
    france = {"sender": "FRANCE", "recipient": "ENGLAND", "message": "PRP ( PCE ( ENG FRA ) )"}
    england = france | {"sender": "ENGLAND", "recipient": "FRANCE"}
    orders = {"FRANCE": ["F ENG - LON", "A PAR H"], "ENGLAND": ["F YOR H"]}
    if "request" in value and ask == "orders":
        say(reply=value["request"], orders=[orders] * n)
    elif "request" in value:
        say(reply=value["request"], messages=[[france, england]] * n)"""
    player = program(tmp_path, body)
    position = "standard S1901M; ENGLAND F YOR = LON; FRANCE A PAR, F ENG = PAR"
    games = Game.from_position(position).vector_game
    press, seats = Press(games, "mutual"), np.zeros((1, games.num_powers), int)
    negotiate(press, games.decisions(), [player], seats)
    player.act(games, press.bound(games.decisions()))
    assert player.faults == {"decisions": 2, "against_deals": 1, "missing": 0}


def test_what_a_file_names_does_not_start_a_program():
    for name in ("cmd:rm x", "dui:engine", "nash+cmd:python x.py", "cmd(timeout=3):x"):
        assert needs_naming(name)


# --- DUI ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ours", "theirs"), read_table(__file__, "orders_of_dui"))
def test_orders_of_dui(ours, theirs):
    assert dui.their_order(ours) == theirs and dui.our_order(theirs) == ours


def test_positions_of_dui():
    source = sample_positions(load_map("standard"))
    for position in positions_of(source, source.decisions(), ()):
        line = dui.dfen(position)
        again = dui.position_of(line, source.map)
        assert again.name == position.name
        for field in ("units", "centers"):
            here, there = getattr(position, field), getattr(again, field)
            assert {p: sorted(x) for p, x in here.items() if x} == {
                p: sorted(x) for p, x in there.items() if x
            }


@pytest.mark.slow
def test_dui_plays_on_the_standard_map():
    player = load_player(
        f"dui(movetime=50):{sys.executable} -m diplomacy_engine bot dumbbot --protocol dui"
    )
    report = evaluate_player("standard", player, load_player("hold"), 7, max_years=2, seed=2)
    assert report.result()["overall"]["centers"]["value"] > 4
    assert not player.faults["illegal"] and not player.faults["missing"], player.example
    with pytest.raises(UserError, match="small"):
        orders_of(VectorGame("small", 1), player)


def test_the_dialogue_of_the_page():
    """What the page says that a bot answers is what it answers."""
    page = (REPOSITORY / "docs" / "protocol.md").read_text()
    dialogue = page.partition("## A dialogue")[2].split("```")[1].strip().splitlines()
    asked = [line[2:] for line in dialogue if line.startswith("> ")]
    host, out = bot.Host(load_player("peaceful+hold"), 1), io.BytesIO()
    bot._speak(host, io.BytesIO("\n".join(asked).encode()), out)
    assert out.getvalue().decode().splitlines() == [x[2:] for x in dialogue if x[0] == "<"]


def test_who_orders_for_a_player_that_talks_is_greedy():
    player = load_player("small-pure-1")
    hello = line_decoder.decode(b'{"hello": {"protocol": 1, "greedy": true}}')
    bot._answer(bot.Host(Peaceful(player, "peaceful+drawing"), 1), {}, hello)
    assert player.greedy


def test_the_bridge_sets_up_the_positions_of_the_package():
    pytest.importorskip("diplomacy")
    from examples.package_bridge import game_of

    source = sample_positions(load_map("standard"))
    for position in positions_of(source, source.decisions(), ()):
        state = {"retreats": position.retreats, "name": position.name, "units": position.units}
        game = game_of(state | {"centers": position.centers})
        here = {power: set(units) for power, units in position.units.items() if units}
        assert {p: set(u) for p, u in game.get_state()["units"].items() if u} == here


@pytest.mark.parametrize("sent", slow_but([signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]))
def test_a_signal_ends_the_program_that_is_waited_for(sent, tmp_path):
    player = f"{command_of('deaf.py.txt')} {tmp_path / 'pid'}"
    words = [sys.executable, "-m", "diplomacy_engine", "evaluate", "--player", player]
    host = subprocess.Popen([*words, "--games", "2"], stdout=-1, stderr=-1, cwd=REPOSITORY)
    for _ in range(300):
        if (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text():
            break
        time.sleep(0.1)
    time.sleep(1)  # it is asked for orders
    host.send_signal(sent)
    host.communicate(timeout=30)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_behind_a_negotiator_a_program_is_counted(tmp_path, capsys):
    file = tmp_path / "result.json"
    player = f"peaceful+{EXAMPLE}"
    words = ["evaluate", "--map", "three", "--press", "mutual", "--player", player]
    assert main([*words, "--games", "3", "--max-years", "1", "--json", str(file)]) == 0
    assert next(iter(json.loads(file.read_text())["programs"].values()))["decisions"] > 3
