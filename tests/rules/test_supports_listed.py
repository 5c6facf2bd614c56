"""Supports of moves in the lists: each can succeed under some order of the supported unit."""

import re

import pytest

from diplomacy_engine import VectorGame, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.players import orders_of

SUPPORT = re.compile(r"[AF] \S+ S [AF] (\S+) - (\S+)$")


def lists_of(games: VectorGame) -> dict[tuple[int, str], list[str]]:
    """Return the legal orders of every unit by game and province."""
    asked, names, found = games.decisions(), games.map.provinces, {}
    for d in range(asked.count):
        for s in range(*asked.slot_start[d : d + 2]):
            if asked.slot_province[s] != NONE:
                numbers = asked.order[slice(*asked.order_start[s : s + 2])]
                texts = [games.vocabulary.texts[number] for number in numbers]
                found[asked.game[d], names[asked.slot_province[s]]] = texts
    return found


@pytest.mark.parametrize(("name", "count"), [("small", 20), ("three", 20), ("standard", 8)])
def test_every_support_of_a_move_can_succeed(name, count):
    """Also the coast that it names is one that the fleet may be ordered to."""
    games, with_coast = VectorGame(name, count, seed=5, threads=1, auto_reset=False), 0
    for _ in range(40):
        found = lists_of(games)
        for (game, _), texts in found.items():
            for support in filter(None, map(SUPPORT.fullmatch, texts)):
                unit, goal = support.groups()
                move = re.compile(rf"[AF] \S+ - {re.escape(goal)}( VIA)?")
                own = found[game, unit.split("/")[0]]
                assert any(map(move.fullmatch, own)), support.string
                with_coast += "/" in goal
        games.step(orders_of(games, make_bot("random")))
    assert (with_coast > 20) == (name == "standard")
