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

from diplomacy_engine import Game, Map, VectorGame, load_map, make_bot
from diplomacy_engine.constants import (
    ARMY,
    FALL_MOVEMENT,
    FALL_RETREATS,
    MOVE,
    NONE,
    SPRING_MOVEMENT,
    SPRING_RETREATS,
    WINTER_ADJUSTMENTS,
)
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.bots import dumbbot_moves
from diplomacy_engine.players.bots.dumbbot_rules import (
    DEEPDIP,
    NORMAN,
    PAQUETTE,
    ROUNDED,
    TRUNCATED,
)

# Three provinces next to each other, of which any number may be centers, and a fourth beyond CCC.
TRIANGLE = tomllib.loads(read_text(__file__, "triangle.toml"))

# Destination value (a hold counts 1 more), proximity 0, 1, 2, strength, competition.
OPENING = read_text(__file__, "dumbbot_opening.txt").splitlines()


PHASES = {
    SPRING_MOVEMENT: "S1901M",
    SPRING_RETREATS: "S1901R",
    FALL_MOVEMENT: "F1901M",
    FALL_RETREATS: "F1901R",
    WINTER_ADJUSTMENTS: "W1901A",
}


def place(games, units, centers, phase=SPRING_MOVEMENT, dislodged=None):
    """Put the same position on every row; centers of nobody named are nobody's."""
    state = {"name": PHASES[phase], "units": units}
    state["centers"] = {power: codes.split() for power, codes in centers.items()}
    state["retreats"] = {p: {unit: goals} for p, (unit, goals) in (dislodged or {}).items()}
    one, rows = Game.from_state(games.map, state).vector_game, np.arange(games.num_games)
    games.copy_from(one, np.zeros_like(rows), rows)


def others_than(*codes):
    """Return the codes of all centers of the standard map but these."""
    standard = load_map("standard")
    return " ".join({standard.provinces[v] for v in standard.board.center_province} - {*codes})


def given(bot, power, *position, count=50, game_map="standard"):
    """Return what a bot orders as `texts_given` does, in so many games in a position of `place`."""
    games = VectorGame(game_map, count)
    if position:
        place(games, *position)
    return texts_given(games, bot, power)


def texts_given(games, bot, power):
    """Return a Counter of the orders, sorted texts, that a bot gives a power over all games."""
    decisions = games.decisions()
    decisions = decisions.take(decisions.power == games.map.power_index[power])
    orders = orders_of(games, make_bot(bot), decisions)
    texts = games.vocabulary.texts
    return Counter(tuple(sorted(texts[n] for n in row if n != NONE)) for row in orders)


def share(counts, text):
    """Return in which share of the games an order was given."""
    return sum(n for row, n in counts.items() if text in row) / counts.total()


def node(graph, game_map, text):
    """Return the node number of a unit text."""
    return graph.number["AF".index(text[0]), game_map.location_index[text[2:]]]


# DumbBot's values


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


SEAS = "F BRE, F ENG, F GAS, F IRI, F NAF, F NAO, F POR, F WES, F MAO"
FLOWS = [  # a fifth of the sum over these flows into a node; of nodes between bars the best counts
    (NORMAN, "F MAO", f"{SEAS}, F SPA/NC|F SPA/SC"),
    (PAQUETTE, "F STP/NC", "A STP|F STP/NC|F STP/SC, A FIN, A LVN, A MOS, A NWY, F BAR, F NWY"),
    (PAQUETTE, "F MAO", f"{SEAS}, F SPA/NC, F SPA/SC"),
    (DEEPDIP, "A STP", "A STP, A FIN, A LVN, A MOS, A NWY"),
    (DEEPDIP, "F MAO", f"{SEAS}, F SPA/NC|F SPA/SC"),
]


@pytest.mark.parametrize(("rules", "at", "into"), FLOWS)
def test_values_flow(rules, at, into):
    """Of units of either kind or of one, from every coast or the best; ports keep fractions."""
    games = VectorGame("standard", 1)
    games.state.phase[:] = FALL_MOVEMENT if rules is DEEPDIP else SPRING_MOVEMENT
    graph, values = power_values(games.map, games.state, 0, games.map.power_index["FRANCE"], rules)

    def proximity(level, text):
        return values.proximity[level, node(graph, games.map, text)]

    total = sum(max(proximity(4, n) for n in group.split("|")) for group in into.split(", "))
    expected = total // 5 if rules is NORMAN else total / 5
    assert proximity(5, at) == pytest.approx(expected, rel=1e-12)
    unowned = 208 * 700 if rules is NORMAN else 0
    assert (proximity(0, "A SPA"), proximity(0, "A MUN")) == (unowned, 37 * 700)
    assert rules is not PAQUETTE or proximity(5, "A BRE") == proximity(5, "F BRE")
    if rules is DEEPDIP:
        n, v = node(graph, games.map, "A BUR"), games.map.province_index["BUR"]
        weighted = np.array([1000, 100, 30, 10, 6, 5, 4, 3, 2, 1]) @ values.proximity[:, n]
        whole = int(weighted) + 1000 * (values.strength[v] - values.competition[v])
        assert values.value[n] == whole and weighted % 1


@pytest.mark.parametrize(("rules", "times"), [(NORMAN, 2), (PAQUETTE, 1), (DEEPDIP, 1)])
def test_who_is_near(rules, times):
    """For the ports not who stands there, and once a fleet that touches two coasts."""
    games = VectorGame("standard", 1)
    index, france = games.map.province_index, games.map.power_index["FRANCE"]
    _, values = power_values(games.map, games.state, 0, france, rules)
    assert values.strength[index["BRE"]] == values.competition[index["MUN"]] == times
    place(games, {"FRANCE": ["F MAO"]}, {})
    _, values = power_values(games.map, games.state, 0, france, rules)
    assert values.strength[index["SPA"]] == times


def test_winter_values():
    games = VectorGame("standard", 1)
    place(games, {"ITALY": ["A VEN"]}, {"AUSTRIA": "TRI VIE BUD", "ITALY": "VEN"})
    summer = power_values(games.map, games.state, 0, 0)[1].proximity.copy()
    games.state.phase[:] = WINTER_ADJUSTMENTS
    graph, values = power_values(games.map, games.state, 0, 0)
    n = node(graph, games.map, "A TRI")
    assert (values.proximity == summer).all()  # spring's attack and defense weights
    weights = np.array([1000, 100, 30, 10, 6, 5, 4, 3, 2, 1])
    assert values.value[n] == weights @ values.proximity[:, n] + 1000 * (1 + 4 + 16)


# DumbBot's choices


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


def test_second_best_destination():
    counts = given("dumbbot", "AUSTRIA", count=10_000)
    # Budapest to Rumania: 0.5 * 12 %; the next drop is beyond 20 %. Standard error 0.24 %.
    assert share(counts, "A BUD - RUM") == pytest.approx(0.06, abs=0.01)
    assert share(counts, "A BUD - RUM") + share(counts, "A BUD - SER") == 1
    assert share(counts, "A VIE - BUD") == 1  # it waits until Budapest has its order


PORTS = ("dumbbot-paquette", "- BBB, - CCC"), ("dumbbot-deepdip", "- BBB, - CCC")


@pytest.mark.parametrize(("bot", "orders"), [("dumbbot", "H, - BBB"), *PORTS])
def test_equal_values(bot, orders):
    """One of two equal destinations exists for Norman's bot, and staying counts 1 more."""
    position = {"ONE": ["A AAA"]}, {"ONE": "AAA DDD"}
    counts = given(bot, "ONE", *position, count=2000, game_map=Map(TRIANGLE))
    first, second = orders.split(", ")
    assert set(counts) == {(f"A AAA {first}",), (f"A AAA {second}",)}
    assert share(counts, f"A AAA {first}") == pytest.approx(0.5, abs=0.06)


def test_two_units_that_want_each_others_place():
    units = {"FRANCE": ["A APU", "F VEN"]}
    centers = {"AUSTRIA": "SPA", "ENGLAND": "MAR", "FRANCE": others_than("SPA", "MAR")}
    counts = given("dumbbot", "FRANCE", units, centers)
    assert share(counts, "A APU - VEN") == share(counts, "F VEN - APU") == 1
    counts = given("dumbbot-paquette", "FRANCE", units, centers, count=200)
    assert not any({"A APU - VEN", "F VEN - APU"} <= set(row) for row in counts)
    # The thesis' port overlooks a friend of the other kind, and waits for one of its own.
    centers = {"FRANCE": others_than("VEN"), "AUSTRIA": "VEN"}
    counts = given("dumbbot-deepdip", "FRANCE", units, centers, FALL_MOVEMENT)
    assert set(counts) == {("A APU - VEN", "F VEN H")}
    units = {"FRANCE": ["A APU", "A VEN"]}
    counts = given("dumbbot-deepdip", "FRANCE", units, centers, FALL_MOVEMENT)
    assert share(counts, "A VEN H") == 1 and share(counts, "A APU - VEN") == 0


def test_holding_unit_supports_an_attack_and_a_stay():
    provinces = {c: {"name": c, "terrain": "land"} for c in ("FFF", "GGG", "VVV", "WWW")}
    for code, power in (("HHH", "TWO"), ("XXX", "ONE")):
        provinces[code] = {"name": code, "terrain": "land", "home_of": power}
        provinces[code]["supply_center"] = True
    facts = TRIANGLE | {"provinces": provinces, "start_units": {}}
    attack = Map(facts | {"army_borders": {"XXX": "FFF WWW", "FFF": "WWW GGG", "WWW": "HHH VVV"}})
    units, centers = {"ONE": ["A XXX", "A GGG"], "TWO": ["A WWW"]}, {"ONE": "XXX", "TWO": "HHH"}
    # GGG moves next to the threatened center, where an enemy is near; XXX stays in it.
    for bot, second in (("dumbbot", "A XXX S A GGG - FFF"), ("dumbbot-deepdip", "A XXX H")):
        counts = given(bot, "ONE", units, centers, FALL_MOVEMENT, game_map=attack)
        assert set(counts) == {("A GGG - FFF", second)}
    provinces["FFF"] = {"name": "FFF", "terrain": "land", "supply_center": True}
    stay = Map(facts | {"army_borders": {"XXX": "FFF WWW", "FFF": "WWW VVV", "HHH": "WWW GGG"}})
    units = {"ONE": ["A XXX", "A FFF"], "TWO": ["A WWW", "A VVV"]}
    position = units, {"ONE": "XXX FFF", "TWO": "HHH"}, FALL_MOVEMENT
    # Two enemies at FFF, one at XXX.
    assert set(given("dumbbot", "ONE", *position, game_map=stay)) == {("A FFF H", "A XXX S A FFF")}


@pytest.mark.parametrize(("rules", "order"), [(NORMAN, "BRE - PIC"), (PAQUETTE, "MAR - GAS")])
def test_which_friend_a_holding_unit_supports(rules, order):
    """Norman's bot looks at the destinations' values, the port at where the friends stand."""
    games = VectorGame("standard", 1)
    game_map, index = games.map, games.map.province_index
    place(games, {"FRANCE": ["A BUR", "A BRE", "A MAR"]}, {})
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
    games = VectorGame("standard", 1)
    game_map, index = games.map, games.map.province_index
    origin = {"BUL": "RUM", "SPA": "GAS", "STP": "LVN", "MAR": "GAS"}[there]
    origin = {"RUM": "SER", "GAS": "MAR", "LVN": "MOS"}[origin] if origin == here else origin
    place(games, {"FRANCE": [f"A {here}", f"A {origin if moving else there}"]}, {})
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


def test_retreats():
    games = VectorGame("standard", 500)
    place(
        games,
        {"TURKEY": ["A BUD"], "AUSTRIA": ["A VIE"]},
        {"AUSTRIA": "BUD VIE TRI", "RUSSIA": "SER RUM WAR"},
        SPRING_RETREATS,
        {"AUSTRIA": ("A BUD", ["GAL", "TRI"])},
    )
    counts = texts_given(games, "dumbbot", "AUSTRIA")
    assert set(counts) <= {("A BUD R GAL",), ("A BUD R TRI",)}
    # The port forgets that Serbia and Rumania, worth more, are forbidden.
    counts = texts_given(games, "dumbbot-paquette", "AUSTRIA")
    assert share(counts, "A BUD D") > 0.5
    assert set(counts) <= {("A BUD R GAL",), ("A BUD R TRI",), ("A BUD D",)}
    counts = texts_given(games, "dumbbot-deepdip", "AUSTRIA")
    assert set(counts) <= {("A BUD R GAL",), ("A BUD R TRI",)}
    games.state.retreat_options[:] = 0
    assert set(texts_given(games, "dumbbot", "AUSTRIA")) == {("A BUD D",)}


def test_builds():
    own = {"RUSSIA": ["A RUM", "A UKR"]}, {"RUSSIA": "MOS SEV STP WAR RUM"}, WINTER_ADJUSTMENTS
    for bot in ("dumbbot", "dumbbot-paquette", "chaos"):
        counts = given(bot, "RUSSIA", *own, count=1000)
        assert all(len({text[2:5] for text in row}) == 3 for row in counts), bot
        assert len(counts) > 1, bot
    # The port values an army and a fleet in one home alike.
    brest = {}, {"FRANCE": "BRE"}, WINTER_ADJUSTMENTS
    counts = given("dumbbot-paquette", "FRANCE", *brest, count=1000)
    assert share(counts, "F BRE B") == pytest.approx(0.5, abs=0.08)
    # The thesis' port builds once. All five places are worth 0; the first is asked twice.
    homes = {}, {"FRANCE": "BRE MAR PAR"}, WINTER_ADJUSTMENTS
    counts = given("dumbbot-deepdip", "FRANCE", *homes, count=4000)
    assert all(sum(text != "WAIVE" for text in row) == 1 for row in counts)
    shares = [share(counts, f"{text} B") for text in ("A BRE", "F BRE", "A MAR", "F MAR", "A PAR")]
    assert shares == pytest.approx([0.75, 0.125, 0.0625, 0.03125, 0.03125], abs=0.025)


def test_removals():
    games = VectorGame("standard", 8000)
    units = ["A PAR", "F BRE", "A MAR", "F MAO"]
    place(games, {"FRANCE": units}, {"FRANCE": "PAR BRE MAR"}, WINTER_ADJUSTMENTS)
    games.state.center_owner[games.state.center_owner == NONE] = 0
    graph, values = power_values(games.map, games.state, 0, 2)
    worst_first = sorted(units, key=lambda text: values.value[node(graph, games.map, text)])
    counts = texts_given(games, "dumbbot", "FRANCE")
    shares = [share(counts, f"{text} D") for text in worst_first]
    assert shares == pytest.approx([0.5, 0.25, 0.125, 0.125], abs=0.025)


# The thesis' port, by the points in which it differs


def test_thesis_port_lags_the_seasons():
    games = VectorGame("standard", 1)
    game_map = games.map
    centers = {"AUSTRIA": "TRI VIE BUD", "ITALY": "VEN ROM NAP"}
    place(games, {"ITALY": ["A VEN"], "AUSTRIA": ["A VIE"]}, centers)
    weights = {
        SPRING_MOVEMENT: (0, 0),
        SPRING_RETREATS: (700, 300),
        FALL_MOVEMENT: (700, 300),
        FALL_RETREATS: (600, 400),
        WINTER_ADJUSTMENTS: (600, 400),
    }
    size = 9 + 12 + 16
    for phase, (attack, defense) in weights.items():
        games.state.phase[:] = phase
        graph, values = power_values(game_map, games.state, 0, 0, DEEPDIP)
        assert values.proximity[0, node(graph, game_map, "A ROM")] == size * attack
        assert values.proximity[0, node(graph, game_map, "A TRI")] == size * defense
    games.state.phase[:] = SPRING_MOVEMENT
    graph, values = power_values(game_map, games.state, 0, 0, DEEPDIP)
    for text, strength, competition in (("A TRI", 1, 1), ("A BOH", 1, 0), ("A APU", 0, 1)):
        assert values.value[node(graph, game_map, text)] == 1000 * (strength - competition)


def test_thesis_port_rounds_the_chance_of_a_move():
    """A drop of 99.6 % is one of 100."""
    values = [10_000, 8_008]
    with np.errstate(over="ignore"):
        assert walk(values, 1, ROUNDED).tolist() == [1, 0]
        assert walk(values, 1, TRUNCATED)[1] == pytest.approx(0.005, abs=0.003)


def test_thesis_port_orders_units_by_province():
    """The first takes the best place. The second is no help there, as no enemy is near."""
    position = {"FRANCE": ["A BUR", "A TYR"]}, {"FRANCE": others_than("MUN"), "GERMANY": "MUN"}
    counts = given("dumbbot-deepdip", "FRANCE", *position, FALL_MOVEMENT)
    assert share(counts, "A BUR - MUN") == 1
    assert not any("MUN" in text for row in counts for text in row if text.startswith("A TYR"))
    counts = given("dumbbot", "FRANCE", *position, FALL_MOVEMENT)
    assert 0.2 < share(counts, "A TYR - MUN") < 0.8


def test_thesis_port_does_not_count_a_lone_occupant():
    """So nobody supports the attack on it."""
    units = {"FRANCE": ["A BUR", "A TYR"], "GERMANY": ["A MUN"]}
    position = units, {"FRANCE": others_than("MUN"), "GERMANY": "MUN"}, FALL_MOVEMENT
    for bot, helps in (("dumbbot", 1), ("dumbbot-deepdip", 0)):
        counts = given(bot, "FRANCE", *position)
        supports = ("A TYR S A BUR - MUN", "A BUR S A TYR - MUN")
        assert sum(share(counts, text) for text in supports) == helps


def test_thesis_port_wanders_through_retreats_as_they_come():
    rng, found = np.uint64(7), np.zeros(3)
    ranks = np.array([100.0, 95.0, 100.0])
    with np.errstate(over="ignore"):
        for _ in range(20_000):
            rng, at = dumbbot_moves.wander(ranks, 3, np.uint64(rng))
            found[at] += 1
    # 0.5 * (1 - 0.25) for the second; half of all go on to the third.
    assert found / 20_000 == pytest.approx([0.3125, 0.1875, 0.5], abs=0.015)


def test_thesis_port_removes_its_best_units():
    games = VectorGame("standard", 20)
    units = ["A PAR", "F BRE", "A MAR", "F MAO", "A RUH"]
    place(games, {"FRANCE": units}, {"FRANCE": "PAR BRE MAR"}, WINTER_ADJUSTMENTS)
    games.state.center_owner[games.state.center_owner == NONE] = 0
    graph, values = power_values(games.map, games.state, 0, 2, DEEPDIP)
    best = sorted(units, key=lambda text: -values.value[node(graph, games.map, text)])[:2]
    counts = texts_given(games, "dumbbot-deepdip", "FRANCE")
    assert set(counts) == {tuple(sorted(f"{text} D" for text in best))}


# Random and its relatives


def test_random_is_uniform():
    games = VectorGame("standard", 6000)
    counts = texts_given(games, "random", "FRANCE")
    decisions = games.decisions()
    row = np.flatnonzero((decisions.game == 0) & (decisions.power == 2))[0]
    for s in range(decisions.slot_start[row], decisions.slot_start[row + 1]):
        listed = decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]]
        p = 1 / len(listed)
        for number in listed:
            found = share(counts, games.vocabulary.texts[number])
            assert found == pytest.approx(p, abs=4.5 * (p * (1 - p) / 6000) ** 0.5)


def test_random_winter():
    games = VectorGame("standard", 4000)
    place(games, {}, {"FRANCE": "BRE PAR"}, WINTER_ADJUSTMENTS)
    counts = texts_given(games, "random", "FRANCE")
    # First slot: A BRE, F BRE, A PAR or WAIVE; second: the same less what is built, or all.
    assert counts[()] / counts.total() == pytest.approx(1 / 16, abs=0.02)
    both = 2 * (1 / 4 * 1 / 2) + 1 / 4 * 2 / 3
    assert share(counts, "A PAR B") < 0.6
    assert sum(n for row, n in counts.items() if len(row) == 2) / 4000 == pytest.approx(
        both, abs=0.04
    )
    place(games, {"FRANCE": ["A PAR", "F BRE", "A MAR"]}, {"FRANCE": "PAR"}, WINTER_ADJUSTMENTS)
    counts = texts_given(games, "random", "FRANCE")
    assert len(counts) == 3
    assert all(n == pytest.approx(4000 / 3, abs=150) for n in counts.values())


def test_hold_and_chaos():
    games = VectorGame("standard", 100)
    assert set(texts_given(games, "hold", "FRANCE")) == {("A MAR H", "A PAR H", "F BRE H")}
    counts = texts_given(games, "chaos", "FRANCE")
    kinds = games.table.kind
    for row in counts:
        assert all(kinds[games.vocabulary.number[text]] == MOVE for text in row)
    place(games, {"ENGLAND": ["A LON", "F NTH"]}, {})
    assert share(texts_given(games, "chaos", "ENGLAND"), "A LON - NWY VIA") > 0
    place(games, {}, {"FRANCE": "BRE PAR"}, WINTER_ADJUSTMENTS)
    assert set(texts_given(games, "hold", "FRANCE")) == {()}
    place(games, {"ITALY": ["A MAR"]}, {}, SPRING_RETREATS, {"FRANCE": ("A MAR", ["GAS", "BUR"])})
    assert set(texts_given(games, "hold", "FRANCE")) == {("A MAR D",)}
    assert set(texts_given(games, "chaos", "FRANCE")) == {("A MAR R GAS",), ("A MAR R BUR",)}


def test_fleets_reach_both_coasts():
    games = VectorGame("standard", 400)
    place(games, {"FRANCE": ["F MAO"]}, {"FRANCE": "BRE", "ITALY": "SPA"})
    counts = texts_given(games, "dumbbot", "FRANCE") + texts_given(games, "chaos", "FRANCE")
    assert {row[0] for row in counts} >= {"F MAO - SPA/NC", "F MAO - SPA/SC"}
