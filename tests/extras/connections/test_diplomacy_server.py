"""Seats on the `diplomacy` package's server itself, a program of its own; see support for where it
is looked for. Without it these tests are skipped."""

from itertools import pairwise

import pytest
from support.diplomacy_package import package_maps, package_python
from support.diplomacy_server import RealServer, Until

from diplomacy_engine import Game, load_map, make_bot
from diplomacy_engine.extras.connections.diplomacy_server import ANY, Account, DiplomacySeats
from diplomacy_engine.extras.connections.diplomacy_wire import Wire
from diplomacy_engine.extras.connections.loop import SeatLoop, dropped
from diplomacy_engine.extras.maps.dpjudge import read_dpjudge
from diplomacy_engine.players.advice import orders_by_player
from diplomacy_engine.rules.game_rules import GameRules

pytestmark = pytest.mark.skipif(
    package_python() is None, reason="the diplomacy package is not installed"
)
STANDARD = load_map("standard")
POWERS = STANDARD.powers


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = RealServer(tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    server.stop()


def seats(server, game_id, powers, rules=GameRules(STANDARD), **options) -> DiplomacySeats:  # noqa: B008
    accounts = {power: Account(f"{game_id}_{power}", "word") for power in powers}
    return DiplomacySeats(Wire(server.address), rules, game_id, accounts, **options)


def play(connection, player="dumbbot", **options) -> tuple:
    told = []
    loop = SeatLoop(connection, make_bot(player), say=told.append, **options)
    return loop.run(), told


@pytest.mark.parametrize(
    "end", ["S1903M", pytest.param("S1911M", marks=pytest.mark.slow)], ids=["to 1902", "to 1910"]
)
def test_seven_dumbbots_play_as_by_our_rules(server, end):
    """Every phase of the server's game leads to the same next one by ours; no order is dropped."""
    server.create(end, n_controls=7)
    counts, _ = play(Until(seats(server, end, POWERS), end))
    assert counts.dropped == 0 and counts.orders > 20 * (int(end[1:5]) - 1901)
    phases = server.saved_game(end)["phases"]
    assert phases[-1]["name"] == end
    played_again(phases)


def played_again(phases) -> None:
    """Check that every phase of the server leads to the same next one by our rules."""
    game = Game.from_state("standard", phases[0]["state"])
    for phase, following in pairwise(phases):
        for power, orders in phase["orders"].items():
            game.submit(power, orders or [], strict=False)
        game.adjudicate()
        assert game.phase == following["name"]
        same_position(game, following["state"])


def same_position(game, state) -> None:
    for power in POWERS:
        gone = game.dislodged.get(power, {})
        units = game.units[power] + [f"*{unit}" for unit in gone]
        assert sorted(units) == sorted(state["units"][power])
        assert sorted(game.centers[power]) == sorted(state["centers"][power])
        places = {unit: sorted(there) for unit, there in gone.items()}
        assert places == {u: sorted(there) for u, there in state["retreats"][power].items()}


def test_a_draw_that_all_agree_to_is_the_servers(server):
    """Its game ends as ours: without the orders of the phase in which the last one voted."""
    server.create("draw", n_controls=7)
    _, told = play(seats(server, "draw", POWERS, GameRules("standard", draws_after=1902)))
    assert told[-1].startswith("draw is over")
    phases = server.saved_game("draw")["phases"]
    game = Game("standard", draw_votes=True)
    for phase in phases[:-2]:
        for power, orders in phase["orders"].items():
            game.submit(power, orders or [], strict=False)
        game.adjudicate()
    assert game.phase == "S1902M"
    for power in POWERS:
        game.vote(power)
    game.adjudicate()
    ours = game.to_saved_game()["phases"]
    for mine, theirs in zip(ours[-2:], phases[-2:], strict=True):
        assert mine["name"] == theirs["name"] and mine["results"] == theirs["results"] == {}
        assert not any(theirs["orders"].values()) and not any(mine["orders"].values())
        for power in POWERS:
            assert sorted(mine["state"]["units"][power]) == sorted(theirs["state"]["units"][power])


def test_our_legal_orders_are_the_servers(server):
    """Its list only has supports of fleets into split provinces besides, without their coast."""
    server.create("legal", n_controls=7)
    connection = seats(server, "legal", POWERS)
    compared = []

    def compare(position):
        game = position.game
        with server.administrator() as ask:
            where = {"game_role": "omniscient_type", "phase": game.phase}
            ask("join_game", game_id="legal")
            theirs = ask("get_all_possible_orders", game_id="legal", **where)["possible_orders"]
        assert set(theirs) >= set(STANDARD.locations)  # Switzerland besides
        for place in STANDARD.provinces:
            parts = [texts for key, texts in theirs.items() if key.split("/")[0] == place]
            found = {text for texts in parts for text in texts}
            ours = set(game.legal_orders(place)) - {"WAIVE"}
            assert ours <= found
            for text in found - ours - {"WAIVE"}:
                assert " S F " in text and text[-3:] in ("BUL", "SPA", "STP"), text
            compared.append(len(ours))
        return game.phase == "S1902M"

    play(Until(connection, compare))
    assert sum(compared) > 1000


@pytest.mark.parametrize("name", ["ancmed", "known_world_901"])
def test_maps_that_begin_early(server, name):
    """The phase is S0001M or S0901M; there NEUTRALSTATE is free, but nobody can play it."""
    (path,) = [path for path in package_maps() if path.stem == name]
    game_map = read_dpjudge(path).finished()
    first, *rest = game_map.powers
    server.create(name, map_name=name, n_controls=len(game_map.powers))
    accounts = {power: Account(f"{name}_{power}", "word") for power in rest}
    others = DiplomacySeats(Wire(server.address), GameRules(game_map), name, accounts)
    others.enter()
    others.positions()
    last = DiplomacySeats(
        Wire(server.address), GameRules(game_map), name, {ANY: Account(name, "word")}
    )
    last.enter()
    phases = []
    for _ in range(3):
        (position,) = last.positions()
        phases.append(position.game.phase)
        assert position.seats == [first]
        orders = orders_by_player(position.game, make_bot("dumbbot"), [first], 1).get(first, [])
        assert dropped(position.game, orders, last.give(position, first, orders)) == []
        for other in rest:
            others.give(position, other, [])
        with server.administrator() as ask:
            role = ask("join_game", game_id=name)["role"]
            ask("process_game", game_id=name, game_role=role, phase=phases[-1])
    start = position.game.map.facts["first_phase"].strip("SM")
    assert phases[:2] == [f"S{start:0>4}M", f"F{start:0>4}M"]
    saved = server.saved_game(name)
    assert Game.from_saved_game(saved, game_map).phase == saved["phases"][-1]["name"]
    others.close()
    last.close()
