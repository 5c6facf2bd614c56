"""Who was in the way of an order: cases by hand, and a second opinion on difficult positions.

`causes_cases.txt` holds one paragraph a case on the standard map: a title, then `POWER ORDER | what
became of it`: the result words, each with the units behind it, and nothing if it succeeded. A
retreat phase is named, with the places that units may retreat to and the units that stand.
"""

import json
import random
import re
from pathlib import Path

import pytest
from reference.movement import Movement
from reference.orders import Board, ReferenceMap, home, province
from support.games import entangled_orders, random_orders, random_units, standard
from support.tables import read_table

from diplomacy_engine import MAP_NAMES, Game, load_map
from diplomacy_engine.replays.replay import make_replay
from diplomacy_engine.replays.text import order_lines

UNIT = r"[AF] [A-Z]{3}(?:/[NESW]C)?"


def read_cases() -> list:
    paragraphs = (Path(__file__).parent / "causes_cases.txt").read_text().strip().split("\n\n")
    cases = [paragraph.split("\n") for paragraph in paragraphs]
    return [pytest.param(lines, id=title) for title, *lines in cases]


def read_outcome(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the words of `bounce A BUR A MAR, disband`, and word -> units."""
    words, causes = [], {}
    for part in filter(None, text.split(", ")):
        words.append(re.split(f" {UNIT}", part)[0])
        if units := re.findall(UNIT, part):
            causes[words[-1]] = units
    return words, causes


@pytest.mark.parametrize("lines", read_cases())
def test_case(lines):
    phase, units, retreats, orders = "S1901M", {}, {}, []
    for line in lines:
        first, rest = line.split(maxsplit=1)
        if first == "phase":
            phase = rest
        elif first == "retreats":
            for power, unit, places in re.findall(rf"(\w+) ({UNIT}) to ([A-Z ]+)", rest):
                retreats.setdefault(power.upper(), {})[unit] = places.split()
        elif first == "units":
            for power, several in re.findall(rf"(\w+)((?: {UNIT})+)", rest):
                units[power.upper()] = re.findall(UNIT, several)
        else:
            order, _, outcome = rest.partition("|")
            orders.append((first.upper(), order.strip(), *read_outcome(outcome.strip())))
    if not units:
        ordered = {(power, re.match(UNIT, order)[0]) for power, order, *_ in orders}
        for power, unit in sorted(ordered - {("ENGLAND", "A PAR")}):  # is another power's
            units.setdefault(power, []).append(unit)
    game = standard(phase, units, retreats=retreats)
    for power in game.powers:
        game.submit(power, [order for owner, order, *_ in orders if owner == power], strict=False)
    game.adjudicate()
    found, causes = [], game.causes()
    for given in make_replay(game.to_saved_game()).frames[0].scene.orders.values():
        for each in given:
            behind = causes.get(each.unit, {}) if each.counts else {}
            found.append((each.power, each.text, list(each.words), behind))
            for word, several in behind.items():
                assert re.search(rf"{word}\S*( with| by| without)? {several[0]}", each.said)
    assert sorted(found) == sorted(orders)


def expected_causes(
    game_map: ReferenceMap, units: dict, orders: dict, results: dict
) -> dict[str, dict[str, list[str]]]:
    """Return the causes by the reference adjudicator, which knows every decision and strength."""
    texts = {re.match(UNIT, text)[0]: text for given in orders.values() for text in given}
    board = Board(game_map, units)
    read = {unit: board.read(text) for unit, text in texts.items()}
    movement = Movement(board, {unit: order for unit, order in read.items() if order is not None})
    answers, _ = movement.solve()
    owner = movement.owner

    def succeeds(unit: str) -> bool:
        return unit in movement.moves and answers["move", unit]

    def came(place: str) -> list[str]:
        return [unit for unit in movement.into.get(place, []) if movement.arrives(unit, answers)]

    def blockers(unit: str) -> list[str]:
        goal, found, without = province(movement.moves[unit].goal), [], None
        there = board.standing.get(goal)
        fights = there is not None and movement.fights(unit, there)
        if there is not None and owner[there] == owner[unit] and not succeeds(there):
            found.append(there)
        elif there is not None and (fights or not succeeds(there)):
            without = owner[there]
            alone = there in movement.moves and not fights
            defence = 1 if alone else movement.strength(there, answers)
            if movement.strength(unit, answers, without) <= defence:
                found.append(there)
        attack = movement.strength(unit, answers, without)
        others = [rival for rival in came(goal) if rival != unit]
        return found + [r for r in others if movement.resistance(r, answers) >= attack]

    def cutters(unit: str) -> list[str]:
        order = movement.orders[unit]
        aim = province(order.goal) or home(order.other)
        foreign = [mover for mover in came(home(unit)) if owner[mover] != owner[unit]]
        return [mover for mover in foreign if home(mover) != aim or succeeds(mover)]

    def lost_fleets(unit: str) -> list[str]:
        order = movement.orders[unit]
        routes = movement.routes[unit if order.verb == "-" else order.other]
        lost = {sea for route in routes for sea in route if any(map(succeeds, came(sea)))}
        if any(not route & lost for route in routes):
            return []  # a paradox
        return [board.standing[sea] for sea in lost]

    ways = {"bounce": blockers, "cut": cutters, "no convoy": lost_fleets}
    ways["dislodged"] = lambda unit: [mover for mover in came(home(unit)) if succeeds(mover)]
    found: dict[str, dict[str, list[str]]] = {}
    for unit, words in results.items():
        for word in words:
            needless = (words[0], word) == ("void", "no convoy")
            names = [] if word not in ways or needless else ways[word](unit)
            if names:
                found.setdefault(unit, {})[word] = sorted(names)
    return found


@pytest.mark.parametrize("name", MAP_NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_difficult_positions_by_the_reference(name, seed):
    rng, reference = random.Random(seed), ReferenceMap(load_map(name).facts)
    for _ in range(60 if name == "standard" else 20):
        units = random_units(load_map(name), rng, powers=rng.randint(2, 4))
        game = Game.from_state(name, {"name": "S1901M", "units": units})
        orders = entangled_orders(game, rng)
        for power, texts in orders.items():
            game.submit(power, texts)
        results = game.adjudicate()
        assert game.causes() == expected_causes(reference, units, orders, results)


def test_void_says_what_was_wrong():
    faults = dict(read_table(__file__, "void_says_what_was_wrong"))
    orders = {
        "FRANCE": ["A GAS - SPA", "A LON - WAL", "F HOL H", *faults],
        "GERMANY": ["A KIE - HOL", "F ENG C A LON - WAL"],
    }
    orders["FRANCE"].remove("F ENG C A LON - WAL")
    units = {power: [order[:5] for order in given] for power, given in orders.items()}
    game = standard("S1901M", units | {"ITALY": ["A MAR"]})
    for power, given in orders.items():
        game.submit(power, given, strict=False)
    game.adjudicate()
    lines = make_replay(game.to_saved_game()).frames[0].scene.orders.values()
    said = {line.text: line.said for given in lines for line in given}
    assert {order: said[order].split(",")[0] for order in faults} == {
        order: f"void ({fault})" for order, fault in faults.items()
    }


def test_results_of_another_program_are_believed_as_far_as_they_make_sense():
    """Its rules may be others: a bounce with nobody there, empty words, results of no unit."""
    game = standard("S1901M", {"FRANCE": ["A PAR", "A MAR"], "GERMANY": ["A MUN"]})
    saved = game.to_saved_game()
    phase = saved["phases"][0] | {
        "orders": {"FRANCE": ["A PAR - BUR", "A MAR S A PAR - BUR"], "GERMANY": None},
        "results": {"A PAR": ["bounce"], "A MAR": ["cut", "bounce"], "A MUN": ["", "dislodged"],
                    "A KIE": ["bounce"], "A BER": "bounce", "A RUH": ["no convoy"]},
    }  # fmt: skip
    game = Game.from_saved_game(saved | {"phases": [phase, saved["phases"][0]]})
    assert game.causes() == {}
    (frame, _) = make_replay(game.to_saved_game()).frames
    assert [line.said for line in frame.scene.orders["FRANCE"]] == ["bounced", "cut, bounced"]
    assert [line.said for line in frame.scene.orders["GERMANY"]] == ["dislodged"]


@pytest.mark.parametrize("map_name", MAP_NAMES)
def test_what_became_of_orders_is_golden_in_words(map_name, golden):
    rng, lines = random.Random(1), []
    for _ in range(4):
        state = {"name": "F1903M", "units": random_units(load_map(map_name), rng, 2)}
        game = Game.from_state(map_name, state, max_years=9)
        for draw in (entangled_orders, random_orders, random_orders):
            for power, texts in {} if game.is_over else draw(game, rng).items():
                game.submit(power, texts)
            if not game.is_over:
                game.adjudicate()
        replay = make_replay(game.to_saved_game())
        for at, frame in enumerate(replay.frames):
            rows = [[*line.values()] for line in order_lines(replay, at)]
            lines += [frame.scene.phase, *(json.dumps(row) for row in rows)]
    golden(f"orders on {map_name}", lines)
