"""The scripted bots: what they value, how they choose, and that every order is a legal one.

The values of the opening position were computed by hand-written code from a description of Norman's
bot, not by this package.
"""

import tomllib
from collections import Counter

import numpy as np
import pytest
from support.players import power_values
from support.tables import read_table, read_text

from diplomacy_engine import MAP_NAMES, Game, Map, VectorGame, load_map, make_bot
from diplomacy_engine.constants import ARMY, NONE
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.bots import dumbbot_moves, dumbbot_rules
from diplomacy_engine.players.bots.dumbbot_rules import NORMAN, PAQUETTE, ROUNDED, TRUNCATED

# Destination value (a hold counts 1 more), proximity 0, 1, 2, strength, competition.
OPENING = read_text(__file__, "dumbbot_opening.txt").splitlines()


def texts_given(games, bot, power):
    """Return a Counter of the orders, joined texts, that a bot gives a power over all games."""
    decisions = games.decisions()
    decisions = decisions.take(decisions.power == games.map.power_index[power])
    orders = orders_of(games, make_bot(bot), decisions)
    texts = games.vocabulary.texts
    return Counter(", ".join(sorted(texts[n] for n in row if n != NONE)) for row in orders)


def node(graph, game_map, text):
    """Return the node number of a unit text."""
    return graph.number["AF".index(text[0]), game_map.location_index[text[2:]]]


def test_opening_values():
    games = VectorGame("standard", 1)
    for line in OPENING:
        power, kind, _, goal, *numbers = line.split()
        value, p0, p1, p2, strength, competition = map(int, numbers)
        power = games.map.power_index[power]
        graph, values = power_values(games.map, games.state, 0, power)
        n, v = node(graph, games.map, f"{kind} {goal}"), games.map.province_index[goal]
        staying = games.state.unit_power[0, v] == power and line.split()[2] == goal
        assert values.value[n] + staying == value, line
        assert values.proximity[:3, n].tolist() == [p0, p1, p2], line
        assert (values.strength[v], values.competition[v]) == (strength, competition), line
    power = games.map.power_index["AUSTRIA"]
    _, values = power_values(games.map, games.state, 0, power)
    threatened = {games.map.provinces[v]: x for v, x in enumerate(values.defense) if x}
    assert threatened == {"TRI": 37}


@pytest.mark.parametrize(
    ("rules", "position", "power", "expected"), read_table(__file__, "what_places_are_worth")
)
def test_what_places_are_worth(rules, position, power, expected):
    """The value of each place, its proximities, its province's strength and competition."""
    game = Game.from_position(position)
    power = game.map.power_index[power]
    state = game.vector_game.state
    graph, values = power_values(game.map, state, 0, power, getattr(dumbbot_rules, rules))
    found = {}
    for text in expected:
        n, v = node(graph, game.map, text), game.map.province_index[text[2:5]]
        near = values.strength[v], values.competition[v]
        found[text] = [values.value[n], *values.proximity[:, n], *near]
    assert found == {text: pytest.approx(own, rel=1e-12) for text, own in expected.items()}


def walk(values, sign, kind, draws=20_000):
    """Return the shares of the candidates picked."""
    rng, ranks = np.uint64(7), sign * np.array(values, float)
    found = np.zeros(len(values))
    for _ in range(draws):
        rng, at = dumbbot_moves.pick(ranks, len(values), sign, kind, np.uint64(rng))
        found[at] += 1
    return found / draws


@pytest.mark.parametrize(("values", "sign", "kind", "shares"), read_table(__file__, "pick"))
def test_pick(values, sign, kind, shares):
    with np.errstate(over="ignore"):
        assert walk(values, sign, kind) == pytest.approx(shares, abs=0.015)


@pytest.mark.parametrize(
    ("bot", "position", "power", "expected"), read_table(__file__, "what_bots_order")
)
def test_what_bots_order(bot, position, power, expected):
    """The same in as many games of other seeds, to the digit."""
    name = position.split()[0]
    game_map = (
        None if name in MAP_NAMES else Map(tomllib.loads(read_text(__file__, f"{name}.toml")))
    )
    one, count = Game.from_position(position, game_map).vector_game, sum(expected.values())
    games = VectorGame(one.map, count)
    games.copy_from(one, np.zeros(count, int), np.arange(count))
    assert texts_given(games, bot, power) == expected


@pytest.mark.parametrize(("rules", "order"), [(NORMAN, "BRE - PIC"), (PAQUETTE, "MAR - GAS")])
def test_which_friend_a_holding_unit_supports(rules, order):
    """Norman's bot looks at the destinations' values, the port at where the friends stand."""
    games = Game.from_position("standard S1901M; FRANCE A BUR, A BRE, A MAR =").vector_game
    game_map, index = games.map, games.map.province_index
    graph, values = power_values(game_map, games.state, 0, 2, rules)
    scratch, orders = dumbbot_moves.order_scratch(games.board, graph), games.new_orders()
    values.competition[:] = 1
    for origin, goal, here, there in (("BRE", "PIC", 5, 9), ("MAR", "GAS", 9, 5)):
        location = game_map.location_index[origin]
        near = games.board.neighbor[ARMY, location].tolist()
        scratch.mover[index[goal]] = index[origin]
        scratch.mover_neighbor[index[goal]] = near.index(game_map.location_index[goal])
        values.value[node(graph, game_map, f"A {origin}")] = here
        values.value[node(graph, game_map, f"A {goal}")] = there
    bur = index["BUR"]
    dumbbot_moves._use_wasted_hold(
        games.board, games.table, graph, games.state, 0, 2, bur, values, scratch, rules, orders
    )
    assert games.vocabulary.texts[orders[0, bur]] == f"A BUR S A {order}"


OVERLOOKS = {"CON": "BUL", "GRE": "BUL", "RUM": "BUL", "GAS": "SPA", "MAR": "SPA", "POR": "SPA"}
OVERLOOKS |= {"FIN": "STP", "LVN": "STP", "NWY": "STP"}


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize(
    ("here", "there", "helps"),
    [(here, there, False) for here, there in OVERLOOKS.items()]
    + [("SER", "BUL", True), ("MOS", "STP", True), ("BUR", "MAR", True)],
)
def test_an_army_overlooks_coasts_that_a_fleet_could_reach(here, there, helps, moving):
    """Norman's holding army passes over a friend in, or on its way to, such a province."""
    game_map = load_map("standard")
    index = game_map.province_index
    origin = {"BUL": "RUM", "SPA": "GAS", "STP": "LVN", "MAR": "GAS"}[there]
    origin = {"RUM": "SER", "GAS": "MAR", "LVN": "MOS"}[origin] if origin == here else origin
    line = f"standard S1901M; FRANCE A {here}, A {origin if moving else there} ="
    games = Game.from_position(line).vector_game
    graph, values = power_values(game_map, games.state, 0, 2)
    scratch, orders = dumbbot_moves.order_scratch(games.board, graph), games.new_orders()
    values.competition[:], values.value[:] = 2, 7
    if moving:
        near = games.board.neighbor[ARMY, game_map.location_index[origin]].tolist()
        scratch.mover[index[there]] = index[origin]
        scratch.mover_neighbor[index[there]] = near.index(game_map.location_index[there])
        scratch.status[index[origin]] = 2  # moving
    at = index[here]
    dumbbot_moves._use_wasted_hold(
        games.board, games.table, graph, games.state, 0, 2, at, values, scratch, NORMAN, orders
    )
    friend = f"A {origin} - {there}" if moving else f"A {there}"
    given = games.vocabulary.texts[orders[0, at]] if orders[0, at] != NONE else None
    assert given == (f"A {here} S {friend}" if helps else None)


def test_thesis_port_rounds_the_chance_of_a_move():
    """A drop of 99.6 % is one of 100."""
    values = [10_000, 8_008]
    with np.errstate(over="ignore"):
        assert walk(values, 1, ROUNDED).tolist() == [1, 0]
        assert walk(values, 1, TRUNCATED)[1] == pytest.approx(0.005, abs=0.003)


def test_thesis_port_wanders_through_retreats_as_they_come():
    rng, found = np.uint64(7), np.zeros(3)
    ranks = np.array([100.0, 95.0, 100.0])
    with np.errstate(over="ignore"):
        for _ in range(20_000):
            rng, at = dumbbot_moves.wander(ranks, 3, np.uint64(rng))
            found[at] += 1
    # 0.5 * (1 - 0.25) for the second; half of all go on to the third.
    assert found / 20_000 == pytest.approx([0.3125, 0.1875, 0.5], abs=0.015)


def test_random_is_uniform():
    games = VectorGame("standard", 6000)
    counts = texts_given(games, "random", "FRANCE")
    decisions = games.decisions()
    row = np.flatnonzero((decisions.game == 0) & (decisions.power == 2))[0]
    for s in range(decisions.slot_start[row], decisions.slot_start[row + 1]):
        listed = decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]]
        p = 1 / len(listed)
        for number in listed:
            text = games.vocabulary.texts[number]
            found = sum(n for row, n in counts.items() if text in row.split(", ")) / 6000
            assert found == pytest.approx(p, abs=4.5 * (p * (1 - p) / 6000) ** 0.5)
