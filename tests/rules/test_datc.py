"""The Diplomacy Adjudicator Test Cases (DATC, Lucas B. Kruijswijk), chapter 6, on the standard map.

`datc/6a_*.txt` to `6j_*.txt` hold one paragraph a case: a line with id and title, then indented
lines that begin with a power or a word:

    POWER  ORDER  OUTCOME   the outcome in the words of `Game.adjudicate`, `succeeds` for none
    units                   what stands on the board, if that is not what the orders say
    after                   everything that stands on the board afterwards
    retreats                a dislodged unit and the places it may go to, or `nowhere`
    disbanded, removed      units lost in a retreat phase, units removed by civil disorder
    phase                   begins the case's next phase (S1901M unless the first line says so)
    centers                 supply centers, in winter
    choice, reason          the reading of a disputable rule, with the DATC's number for it

To add a case, write its paragraph and raise the number of its section below.
"""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from diplomacy_engine.constants import RESULT_WORDS
from diplomacy_engine.textgame.game import Game

SECTIONS = dict(A=12, B=19, C=9, D=35, E=15, F=30, G=20, H=17, I=7, J=20)
STEPS = 200
LIST_WORDS = ("units", "centers", "after", "retreats", "disbanded", "removed")


class Step:
    """One phase of a case as written."""

    def __init__(self, phase: str):
        self.phase = phase
        self.orders: list[tuple[str, str, str]] = []  # power, order, outcome
        self.lists: dict[str, list[str]] = {}

    def by_power(self, word: str) -> dict[str, list[str]]:
        """Return the `POWER A, B` lines of a word as power -> items."""
        found = {}
        for line in self.lists.get(word, []):
            if line != "nobody":
                power, items = line.split(" ", 1)
                found[power.upper()] = sorted(items.split(", " if "," in items else None))
                if word != "centers":
                    found[power.upper()] = sorted(items.split(", "))
        return found

    def names(self, word: str) -> set[str]:
        """Return the units of the lines of a word without powers."""
        return {unit for line in self.lists.get(word, []) for unit in line.split(", ")}

    def retreats(self) -> dict[str, dict[str, list[str]]]:
        """Return power -> dislodged unit -> places, units with nowhere to go left out."""
        found = {}
        for line in self.lists.get("retreats", []):
            power, unit, places = re.fullmatch(r"(\S+) (. \S+) to (.+)", line).groups()
            if places != "nowhere":
                found.setdefault(power.upper(), {})[unit] = sorted(places.split())
        return found


class Case(NamedTuple):
    """One paragraph."""

    id: str
    title: str
    steps: list[Step]


def read_cases(path: Path) -> list[Case]:
    """Return the cases of a file; AssertionError for a line that is not in the format."""
    cases = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.name}, line {number}: {line!r}"
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            form = re.fullmatch(r"(6\.[A-J]\.\d\d\S*)  (\S.*)", line)
            assert form, where
            cases.append(Case(form[1], form[2], [Step("S1901M")]))
            continue
        form = re.fullmatch(r"  (\S+) +(\S.*)", line)
        assert form and cases, where
        word, rest = form.groups()
        steps = cases[-1].steps
        if word == "phase":
            if steps[-1].orders or steps[-1].lists:
                steps.append(Step(rest))
            steps[-1].phase = rest
        elif word in LIST_WORDS:
            steps[-1].lists.setdefault(word, []).append(rest)
        elif word not in ("choice", "reason"):
            order, _, outcome = rest.rpartition("  ")
            assert word.istitle() and order and outcome, where
            unknown = set(outcome.split(", ")) - {*RESULT_WORDS, "succeeds"}
            assert not unknown, where
            steps[-1].orders.append((word.upper(), order.strip(), outcome))
    return cases


CASES = [
    case
    for path in sorted((Path(__file__).parent / "datc").glob("6*.txt"))
    for case in read_cases(path)
]


def test_all_cases_are_there():
    assert Counter(case.id[2] for case in CASES) == SECTIONS
    assert len({case.id for case in CASES}) == len(CASES) == sum(SECTIONS.values())
    assert sum(len(case.steps) for case in CASES) == STEPS
    assert all(step.lists.get("after") for case in CASES for step in case.steps)


def start(step: Step) -> Game:
    """Return the game in which a case's first phase is played."""
    units = step.by_power("units")
    if "units" not in step.lists:
        for power, order, _ in step.orders:
            units.setdefault(power, []).append(re.match(r"[AF] \w{3}(/\w\w)?", order)[0])
    state = {"name": step.phase, "units": units, "centers": step.by_power("centers")}
    return Game.from_state("standard", state)


def ordered_units(game: Game) -> dict[str, dict[str, str]]:
    """Return power -> `A PAR` without coast -> full text of the units the phase orders."""
    units = game.dislodged if game.phase.endswith("R") else game.units
    return {power: {unit[:5]: unit for unit in units.get(power, ())} for power in game.powers}


def expected_results(game: Game, step: Step) -> dict[str, list[str]]:
    """Return what `adjudicate` must return: the words of each unit's first order that counts."""
    units = ordered_units(game)
    winter = game.phase.endswith("A")
    words: dict[str, list[str]] = {}
    if not winter:
        words = {unit: [] for own in units.values() for unit in own.values()}
        if game.phase.endswith("R"):
            words = {unit: ["disband"] for unit in words}
    void = set()
    for power, order, outcome in step.orders:
        unit = units[power].get(order[:5])
        if winter and (order.endswith(" B") or unit is None):
            unit = order[:-2]
        if unit is None:
            assert outcome == "void", f"{order} is not for a unit of {power}"
            continue
        found = [] if outcome == "succeeds" else outcome.split(", ")
        if unit not in void and "void" in found and (unit not in words or not winter):
            words[unit] = found
            void.add(unit)
        elif "void" not in found:
            words[unit] = found
    if winter:
        words |= {unit: ["disband"] for unit in step.names("removed")}
    return words


def texts(by_power: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return a table without its empty rows, sorted."""
    return {power: sorted(items) for power, items in sorted(by_power.items()) if items}


def play(game: Game, step: Step) -> tuple[dict, dict]:
    """Play one phase; return what is expected and what was found."""
    before = texts(game.units), game.dislodged
    expected = {
        "phase": step.phase,
        "units": texts(step.by_power("after")),
        "retreats": step.retreats(),
        "results": expected_results(game, step),
    }
    found = {"phase": game.phase}
    for power in game.powers:
        orders = [order for owner, order, _ in step.orders if owner == power]
        if orders:
            game.submit(power, orders, strict=False)
    results = game.adjudicate()
    found["units"] = texts(game.units)
    found["retreats"] = {
        power: {unit: sorted(places) for unit, places in units.items()}
        for power, units in game.dislodged.items()
    }
    found["results"] = results
    if step.phase.endswith("R"):
        expected["disbanded"] = step.names("disbanded")
        still = {unit[:5] for unit in results if "disband" not in results[unit]}
        found["disbanded"] = {
            unit for units in before[1].values() for unit in units if unit[:5] not in still
        }
    return expected, found


def report(case: Case, game: Game, step: Step, expected: dict, found: dict) -> str:
    """Return board, orders, expected and found, for a failure."""
    lines = [f"{case.id}  {case.title}", f"board     {game.to_position()}", "orders"]
    lines += [f"          {power:<9} {order:<26} {out}" for power, order, out in step.orders]
    for key in expected:
        if expected[key] != found[key]:
            lines += [f"expected  {key} {expected[key]}", f"found     {key} {found[key]}"]
    return "\n".join(lines)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case):
    game = start(case.steps[0])
    for step in case.steps:
        before = game.copy()
        reloaded = Game.from_state("standard", game.to_state())
        expected, found = play(game, step)
        if expected != found:
            pytest.fail(report(case, before, step, expected, found), pytrace=False)
        assert play(reloaded, step)[1] == found, "differs when its position is loaded"
