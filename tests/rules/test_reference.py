"""The reference adjudicator against the DATC table and against its own definitions."""

from __future__ import annotations

import json
import random
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from reference.adjudicator import (
    Board,
    Movement,
    ReferenceMap,
    adjudicate_adjustments,
    adjudicate_movement,
    adjudicate_retreats,
    legal_orders,
    sort_orders,
)
from reference.movement import Answers
from reference.orders import home

import diplomacy_engine

CASES = Path(__file__).resolve().parents[3] / "shared" / "datc" / "cases.json"
MAP_NAMES = ("small", "three", "standard")

needs_cases = pytest.mark.skipif(not CASES.exists(), reason=f"no DATC table at {CASES}")


def load_map(name: str) -> ReferenceMap:
    return ReferenceMap.from_facts(diplomacy_engine.load_map(name).facts)


def load_cases() -> list[dict]:
    return json.loads(CASES.read_text(encoding="utf-8")) if CASES.exists() else []


@pytest.fixture(scope="module")
def standard() -> ReferenceMap:
    return load_map("standard")


# The DATC table.


def unit_words(text: str) -> str:
    return " ".join(text.split()[:2])


def joined(words: list[str]) -> str:
    """Result words as the table writes them."""
    return ",".join(words) or "ok"


def run_step(game_map: ReferenceMap, step: dict) -> dict:
    """Play one step of a DATC case; gives the keys of its "expect" that the phase can have."""
    units, orders = step["units"], step["orders"]
    if step["phase"].endswith("A"):
        result = adjudicate_adjustments(game_map, units, step["centers"], orders)
        words: dict[str, list[str]] = {}
        for _, text, order_words in result.results:
            words.setdefault(unit_words(text), []).append(joined(order_words))
        return {
            "units": result.units,
            "auto_removed": sorted(chain.from_iterable(result.removed.values())),
            "results": {unit: ",".join(each) for unit, each in words.items()},
        }
    retreats = step.get("retreats", {})
    position = {"name": step["phase"], "units": units, "retreats": retreats}
    chosen, strays = sort_orders(game_map, position, orders)
    if step["phase"].endswith("R"):
        result = adjudicate_retreats(game_map, units, retreats, chosen)
        found = {"units": result.units, "disbanded": result.disbanded}
    else:
        result = adjudicate_movement(game_map, units, chosen)
        found = {"units": result.units, "dislodged": result.dislodged}
    words = {unit: joined(each) for unit, each in result.results.items()}
    # The table also calls an order void that belongs to no unit of its power (6.A.6, 6.H.1).
    return {**found, "results": {**words, **{unit_words(text): "void" for _, text in strays}}}


def run_case(case: dict, game_map: ReferenceMap) -> None:
    """Check every step of a DATC case: the whole board, the retreats, the words of every order.

    A movement step must also leave the retreats that the following retreat step starts from.
    """
    left: dict[str, list[str]] | None = None
    for number, step in enumerate(case["steps"]):
        found, expect = run_step(game_map, step), step["expect"]
        about = f"{case['id']} {case['title']}, step {number}: {step['orders']}"
        given = {
            u: places for each in step.get("retreats", {}).values() for u, places in each.items()
        }
        assert left is None or left == given, about
        assert found["units"] == {p: sorted(u) for p, u in expect["units"].items() if u}, about
        for key in found.keys() - {"units", "results"}:
            assert found[key] == expect.get(key, type(found[key])()), f"{about}: {key}"
        for unit, words in found["results"].items():
            wanted = (
                (expect["results"][unit],) if unit in expect["results"] else ("ok", "dislodged")
            )
            assert words in wanted, f"{about}: {unit}"
        assert expect["results"].keys() <= found["results"].keys(), about
        left = {unit: places for unit, places in found.get("dislodged", {}).items() if places}


@needs_cases
@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case["id"])
def test_datc(case, standard):
    run_case(case, standard)


@needs_cases
def test_no_datc_case_is_missing():
    cases = load_cases()
    sections = "".join(case["id"][2] for case in cases)
    counts = [sections.count(letter) for letter in "ABCDEFGHIJ"]
    assert counts == [12, 19, 9, 35, 15, 30, 20, 17, 7, 20]
    assert sum(len(case["steps"]) for case in cases) == 200


# Lists of legal orders, worked out by hand.


def test_opening_list_of_an_army(standard):
    listed = legal_orders(standard, {"name": "S1901M", "units": standard.start_units})
    assert listed["A PAR"] == [
        "A PAR - BRE",
        "A PAR - BUR",
        "A PAR - GAS",
        "A PAR - PIC",
        "A PAR H",
        "A PAR S A MAR - BUR",
        "A PAR S A MAR - GAS",
        "A PAR S A MUN - BUR",
        "A PAR S F BRE",
        "A PAR S F BRE - GAS",
        "A PAR S F BRE - PIC",
    ]


def test_list_with_convoys_and_split_coasts(standard):
    units = {"FRANCE": ["A GAS", "F MAO"], "ITALY": ["F WES", "F ENG"], "TURKEY": ["F POR"]}
    listed = legal_orders(standard, {"name": "S1901M", "units": units})
    by_convoy = {text for text in listed["A GAS"] if text.endswith("VIA")}
    # BRE and SPA are next to GAS and have both forms. WES leads to TUN; SPA and NAF lie on MAO.
    goals = "BEL BRE LON NAF PIC POR SPA TUN WAL"
    assert by_convoy == {f"A GAS - {goal} VIA" for goal in goals.split()}
    assert {"A GAS - BRE", "A GAS - SPA"} <= set(listed["A GAS"])
    assert "A GAS - TUN" not in listed["A GAS"]
    # WES is needed for TUN alone: to SPA and NAF it could be left out.
    assert [text for text in listed["F WES"] if " C " in text] == ["F WES C A GAS - TUN"]
    assert {text for text in listed["F POR"] if "SPA" in text} == {
        "F POR - SPA/NC",
        "F POR - SPA/SC",
        "F POR S A GAS - SPA",
        "F POR S F MAO - SPA/NC",
        "F POR S F MAO - SPA/SC",
        "F POR S F WES - SPA/SC",
    }
    # MAO cannot support what it would have to convoy.
    assert "F MAO S A GAS - NAF" not in listed["F MAO"]
    assert "F WES S A GAS - NAF" in listed["F WES"]


def test_lists_of_retreats_and_winter(standard):
    retreat = {
        "name": "F1901R",
        "units": {"RUSSIA": ["F CON", "*A SEV"], "TURKEY": ["A RUM"]},
        "retreats": {"TURKEY": {"F SMY": ["AEG", "SYR"]}},
    }
    assert legal_orders(standard, retreat) == {
        "F CON": [],
        "A RUM": [],
        "A SEV": ["A SEV D"],
        "F SMY": ["F SMY D", "F SMY R AEG", "F SMY R SYR"],
    }
    winter = {
        "name": "W1901A",
        "units": {"RUSSIA": ["A WAR"], "TURKEY": ["A RUM", "F CON"]},
        "centers": {"RUSSIA": ["MOS", "STP", "WAR", "BER"], "TURKEY": ["CON"]},
    }
    listed = legal_orders(standard, winter)
    assert {key: texts for key, texts in listed.items() if texts} == {
        "MOS": ["A MOS B", "WAIVE"],
        "STP": ["A STP B", "F STP/NC B", "F STP/SC B", "WAIVE"],
        "A RUM": ["A RUM D"],
        "F CON": ["F CON D"],
    }


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a gas - spa/nc", "A GAS - SPA"),
        ("A GAS - TUN", "A GAS - TUN VIA"),
        ("A GAS - BRE", "A GAS - BRE"),
        ("A GAS - LON VIA", None),
        ("A GAS - BUR VIA", None),
        ("F GAS H", None),
        ("F MAO - SPA", None),
        ("F WES - SPA", "F WES - SPA/SC"),
        ("F WES - SPA/NC", None),
        ("F STP/NC - BOT", "F STP/SC - BOT"),
        ("F FIN S F STP/NC - BOT", "F FIN S F STP/SC - BOT"),
        ("F FIN S F STP", "F FIN S F STP/SC"),
        ("F POR S F MAO - SPA", "F POR S F MAO - SPA"),
        ("F POR S F WES - SPA/NC", None),
        ("F POR S F POR", None),
        ("F MAO C A GAS - TUN", "F MAO C A GAS - TUN"),
        ("F MAO C A GAS - GAS", None),
        ("F MAO S A GAS - NAF", None),
        ("A PAR H", None),
        ("F MAO", None),
        ("", None),
    ],
)
def test_readings(standard, text, meant):
    units = {"FRANCE": ["A GAS", "F MAO", "F POR"], "ITALY": ["F WES", "F STP/SC", "F FIN"]}
    order = Board(standard, units).read(text)
    assert (str(order) if order else None) == meant


def test_first_legal_order_of_a_unit_counts(standard):
    position = {"name": "S1901M", "units": {"FRANCE": ["A PAR", "F BRE"], "ITALY": ["A ROM"]}}
    orders = {
        "FRANCE": ["A PAR - LON", "A PAR - BUR", "A PAR H", "F BRE - PAR", "A ROM H", "nonsense"]
    }
    chosen, strays = sort_orders(standard, position, orders)
    assert chosen == {"A PAR": "A PAR - BUR", "F BRE": "F BRE - PAR"}
    assert strays == [("FRANCE", "A ROM H"), ("FRANCE", "nonsense")]


# The rules in their own words, against the shortcuts taken.


def random_units(game_map: ReferenceMap, rng: random.Random, count: int) -> dict[str, list[str]]:
    units: dict[str, list[str]] = {}
    for code in rng.sample(sorted(game_map.name), count):
        terrain = game_map.terrain[code]
        kind = "A" if terrain == "land" else "F" if terrain == "sea" else rng.choice("AF")
        location = rng.choice(game_map.coasts[code] or [code]) if kind == "F" else code
        units.setdefault(rng.choice(game_map.powers), []).append(f"{kind} {location}")
    return units


def random_tangle(
    game_map: ReferenceMap, rng: random.Random
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Units and orders rich in convoy paradoxes: armies are convoyed onto the units that support
    attacks on, or the stay of, convoying fleets."""
    while True:
        units = random_units(game_map, rng, rng.choice((14, 20, 26)))
        board = Board(game_map, units)
        orders: dict[str, str] = {}
        for army in [unit for unit in board.owner if unit[0] == "A"]:
            routes = [
                (goal, route)
                for goal, found in board.routes(home(army)).items()
                for route in found
                if goal in board.standing and not any(board.standing[s] in orders for s in route)
            ]
            if routes:
                goal, route = rng.choice(routes)
                orders[army] = f"{army} - {goal} VIA"
                orders |= {f"F {sea}": f"F {sea} C {army} - {goal}" for sea in sorted(route)}
        convoying = {sea for sea in board.convoy_fleets if f"F {sea}" in orders}
        if len(convoying) < 2:
            continue
        for unit in board.owner:
            goals = sorted(game_map.reach(unit) & convoying)
            if unit not in orders and goals and rng.random() < 0.5:
                orders[unit] = f"{unit} - {rng.choice(goals)}"
        for unit in [unit for unit in board.owner if unit not in orders]:
            wanted = [text.removesuffix(" VIA") for text in orders.values() if " - " in text]
            wanted = [text for text in wanted if " C " not in text]
            wanted += [f"F {sea}" for sea in sorted(convoying)]
            legal = [f"{unit} S {text}" for text in wanted if board.read(f"{unit} S {text}")]
            if legal:
                orders[unit] = rng.choice(legal)
        return units, orders


def all_consistent_answers(movement: Movement) -> list[Answers]:
    """Every answer to all equations at once, by trying every set of successful moves."""
    found = []
    for values in product((True, False), repeat=len(movement.moves)):
        moves = dict(zip(movement.moves, values, strict=True))
        answers = Answers({("move", unit): moved for unit, moved in moves.items()})
        for army in movement.routes:
            answers["path", army] = movement.path(army, answers)
        for unit in movement.matched:
            if movement.orders[unit].verb == "S":
                answers["support", unit] = movement.support(unit, answers)
        if all(movement.move(unit, answers) == moved for unit, moved in moves.items()):
            found.append(answers)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_solution_against_all_answers(standard, seed):
    """The one consistent answer; of several without a paradox the one where the rings move.

    A paradox is only called one where there are no or several answers.
    """
    rng = random.Random(seed)
    seen = 0
    while seen < 40:
        units, orders = random_tangle(standard, rng)
        board = Board(standard, units)
        movement = Movement(board, {unit: board.read(text) for unit, text in orders.items()})
        if len(movement.moves) > 8:
            continue
        seen += 1
        answers, stopped = movement.solve()
        consistent = all_consistent_answers(movement)
        if stopped:
            assert len(consistent) != 1, (units, orders)
        else:
            assert answers in consistent, (units, orders)
            for other in consistent:
                differs = [decision for decision in other if other[decision] != answers[decision]]
                assert all(kind == "move" for kind, _ in differs), (units, orders)
                assert all(answers[decision] for decision in differs), (units, orders)


@pytest.mark.parametrize("seed", range(5))
def test_order_of_submission_is_irrelevant(standard, seed):
    rng = random.Random(seed)
    for _ in range(10):
        units, orders = random_tangle(standard, rng)
        result = adjudicate_movement(standard, units, orders)
        shuffled = dict(rng.sample(sorted(orders.items()), len(orders)))
        mixed = dict(rng.sample(sorted(units.items()), len(units)))
        assert adjudicate_movement(standard, mixed, shuffled) == result


@pytest.mark.parametrize("seed", range(5))
def test_convoy_routes_by_definition(standard, seed):
    """A route is a set of fleets that connects start and goal, and none can be left out."""
    rng = random.Random(seed)
    seas = [code for code, terrain in standard.terrain.items() if terrain == "sea"]
    fleets = rng.sample(seas, 8)
    board = Board(standard, {"ITALY": [f"F {sea}" for sea in fleets]})

    def connects(route: set[str], start: str, goal: str) -> bool:
        reached: set[str] = set()
        waiting = [start]
        while waiting:
            here = waiting.pop()
            if here in route and goal in standard.neighbors[here]:
                return True
            new = (standard.neighbors[here] & route) - reached
            reached |= new
            waiting += new
        return False

    subsets = [set(c) for size in range(1, 9) for c in combinations(fleets, size)]
    coasts = [code for code, terrain in standard.terrain.items() if terrain == "coast"]
    for start, goal in product(rng.sample(coasts, 8), rng.sample(coasts, 12)):
        expected = {
            frozenset(route)
            for route in subsets
            if start != goal
            and connects(route, start, goal)
            and not any(connects(route - {sea}, start, goal) for sea in route)
        }
        assert set(board.routes(start).get(goal, [])) == expected, (fleets, start, goal)


@pytest.mark.parametrize("name", MAP_NAMES)
def test_listed_orders_read_as_themselves(name):
    game_map = load_map(name)
    units = random_units(game_map, random.Random(name), len(game_map.name) // 3)
    board = Board(game_map, units)
    for unit, texts in legal_orders(game_map, {"name": "F1902M", "units": units}).items():
        assert f"{unit} H" in texts
        assert len(set(texts)) == len(texts)
        for text in texts:
            order = board.read(text)
            assert str(order) == text and board.is_legal(order)
