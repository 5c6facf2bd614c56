"""Movement by the kernels and by the slow reference, on positions made to be difficult.

Recorded ones are built around seas that convoy: armies go over them, fleets attack them, and the
units where the armies land support those attacks or the convoying fleets, in rings of up to six
convoys. That gives bounces, cut supports, rings and paradoxes in numbers which random play never
shows. They were made at commit a2918361 by this file, and can be made anew there.
"""

import json
import lzma
import random
from functools import cache
from pathlib import Path

import pytest
from reference.movement import adjudicate_movement
from reference.orders import ReferenceMap
from support.games import entangled_orders, nonempty, random_units

from diplomacy_engine import Game, load_map

CHUNK = 25  # positions a test


@cache
def recorded() -> list[list]:
    """Return rows: units and orders of each power, then what the reference made of them: units,
    retreats by dislodged unit, and words by unit."""
    with lzma.open(Path(__file__).with_name("entangled_positions.jsonl.xz"), "rt") as lines:
        return [json.loads(line) for line in lines]


def check(units: dict, orders: dict, after: dict, dislodged: dict, results: dict) -> None:
    game = Game.from_state("standard", {"name": "S1901M", "units": units})
    for power, texts in orders.items():
        game.submit(power, texts)
    found = nonempty(game.adjudicate())
    expected = {unit: [*words] for unit, words in results.items()}
    for unit, goals in dislodged.items():
        expected[unit] += ["disband"] * (not goals)
    assert found == expected, (units, orders)
    assert {power: sorted(texts) for power, texts in nonempty(game.units).items()} == after
    retreats = {unit: goals for own in game.dislodged.values() for unit, goals in own.items()}
    assert retreats == {unit: goals for unit, goals in dislodged.items() if goals}


@pytest.mark.parametrize("chunk", range(12))
def test_movement_agrees_with_the_reference(chunk):
    for row in recorded()[chunk * CHUNK : (chunk + 1) * CHUNK]:
        check(*row)


@pytest.mark.slow
def test_movement_agrees_with_the_reference_on_many_positions():
    rows = recorded()[12 * CHUNK :]
    assert len(rows) == 2700
    for row in rows:
        check(*row)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(100))
def test_movement_agrees_with_the_reference_where_units_help_each_other(chunk):
    standard, rng = load_map("standard"), random.Random(chunk)
    reference = ReferenceMap(standard.facts)
    for _ in range(CHUNK):
        units = random_units(standard, rng, rng.randint(2, 7))
        orders = entangled_orders(
            Game.from_state(standard, {"name": "S1901M", "units": units}), rng
        )
        texts = {" ".join(text.split()[:2]): text for own in orders.values() for text in own}
        expected = adjudicate_movement(reference, units, texts)
        check(units, orders, expected.units, expected.dislodged, nonempty(expected.results))
