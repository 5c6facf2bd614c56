"""The reference adjudicator against the DATC table and against its own definitions."""

from __future__ import annotations

import json
import random
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from reference_adjudicator import (
    Answers,
    Board,
    Movement,
    ReferenceMap,
    adjudicate_adjustments,
    adjudicate_movement,
    adjudicate_retreats,
    legal_orders,
    sort_orders,
)

SHARED = Path(__file__).resolve().parents[2] / "shared"
CASES = SHARED / "datc" / "cases.json"
MAP_NAMES = ("small", "three", "standard")

needs_maps = pytest.mark.skipif(
    not (SHARED / "maps" / "standard.json").exists(),
    reason=f"the map facts are not in {SHARED / 'maps'}",
)


def load_map(name: str) -> ReferenceMap:
    return ReferenceMap.from_json(SHARED / "maps" / f"{name}.json")


def load_cases() -> list[dict]:
    return json.loads(CASES.read_text(encoding="utf-8")) if CASES.exists() else []


def without_empty(units: dict[str, list[str]]) -> dict[str, list[str]]:
    return {power: sorted(texts) for power, texts in units.items() if texts}


def joined(words: list[str]) -> str:
    return ",".join(words) or "ok"


def run_step(game_map: ReferenceMap, step: dict) -> dict:
    """Play one step of a DATC case; gives the keys of its "expect" that the phase can have."""
    units, orders = step["units"], step["orders"]
    if step["phase"].endswith("A"):
        result = adjudicate_adjustments(game_map, units, step["centers"], orders)
        words: dict[str, list[str]] = {}
        for _, text, order_words in result.results:
            words.setdefault(" ".join(text.split()[:2]), []).append(joined(order_words))
        return {
            "results": {unit: ",".join(each) for unit, each in words.items()},
            "units": result.units,
            "auto_removed": sorted(chain.from_iterable(result.removed.values())),
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
    # DATC 6.A.6, 6.H.1 and others list the order of a unit that was not to be ordered as void.
    return {**found, "results": {**words, **{" ".join(t.split()[:2]): "void" for _, t in strays}}}


def run_case(case: dict, game_map: ReferenceMap) -> None:
    """Check every step of a DATC case: the whole board, retreats, and each order's words."""
    for number, step in enumerate(case["steps"]):
        found, expect = run_step(game_map, step), step["expect"]
        ordered = {" ".join(t.split()[:2]) for t in chain.from_iterable(step["orders"].values())}
        unordered = {unit: words for unit, words in found["results"].items()}
        about = f"{case['id']} {case['title']}, step {number}, orders {step['orders']}"
        assert found["units"] == without_empty(expect["units"]), about
        for key in ("dislodged", "disbanded", "auto_removed"):
            if key in found:
                assert found[key] == expect.get(key, type(found[key])()), f"{about}: {key}"
        words = {unit: found["results"][unit] for unit in expect["results"]}
        assert words == expect["results"], about
        for unit in set(unordered) - set(expect["results"]) - ordered:
            assert found["results"][unit] in ("ok", "dislodged", "disband"), f"{about}: {unit}"
        if number + 1 < len(case["steps"]):
            alive = {unit: places for unit, places in found["dislodged"].items() if places}
            following = case["steps"][number + 1]["retreats"].values()
            assert alive == {unit: p for options in following for unit, p in options.items()}, about


@needs_maps
@pytest.mark.skipif(not CASES.exists(), reason=f"the DATC table is not at {CASES}")
class TestDatc:
    game_map = load_map("standard") if CASES.exists() else None

    @pytest.mark.parametrize("case", load_cases(), ids=lambda case: case["id"])
    def test_case(self, case):
        run_case(case, self.game_map)

    def test_no_case_is_missing(self):
        cases = load_cases()
        sections = "".join(case["id"][2] for case in cases)
        counts = {letter: sections.count(letter) for letter in "ABCDEFGHIJ"}
        assert counts == dict(zip("ABCDEFGHIJ", (12, 19, 9, 35, 15, 30, 20, 17, 7, 20)))
        assert sum(len(case["steps"]) for case in cases) == 200
