"""The order vocabulary: texts and columns agree, the arithmetic finds every number, hashes stay."""

import doctest
import re
import sys

import numpy as np
import pytest
from support.maps import tribes, write_coastal_map

from diplomacy_engine import MAP_NAMES, load_map, vocabulary
from diplomacy_engine.constants import FLEET, NONE, OrderKind

# A checkpoint is tied to its map's order numbers by this hash: a change makes all of them useless.
HASHES = {
    "small": "be78a1a5aae820c55025b1e98d18203133f13890631dc52c6cbfc1763c82d291",
    "three": "c0456703d5d4ba93d539c70ea770eef925ccca2edbdf9f4788912fd45e8d056a",
    "standard": "79e6c4305a79703e9e65727975b406e4b6fd6dc500b9f897d44e8dd59b550b28",
}
SIZES = {"small": 365, "three": 628, "standard": 20009}


@pytest.fixture(params=MAP_NAMES)
def game_map(request):
    return load_map(request.param)


def test_hash_and_size_are_pinned(game_map):
    assert vocabulary(game_map).hash == HASHES[game_map.name]
    assert len(vocabulary(game_map)) == SIZES[game_map.name]


def test_the_numbers_of_the_docstring():
    """The worked example, and every number of the two pictures above it."""
    module = sys.modules[vocabulary.__module__]
    found = doctest.testmod(module)
    assert found.attempted and not found.failed
    words, text = vocabulary(load_map("standard")), module.__doc__
    blocks, kinds = text.split("A block has")
    firsts = [words.texts[int(n)] for n in re.findall(r"\d+", blocks.partition("+--")[0])]
    provinces = ["F ADR H", "F AEG H", "A ALB H", "A BRE H", "A BUD H", "A PAR H", "A PIC H"]
    assert firsts == [*provinces, "WAIVE"]
    units = [words.texts[int(n)] for n in re.findall(r"\d+", blocks.rpartition("+--")[2])]
    assert units == ["A BRE H", "F BRE H", "A PAR H"]
    ranges = re.findall(r"(\d{5})(?:-(\d{5}))?", kinds.partition("So the number")[0])
    starts = [int(start) for start, _ in ranges]
    assert [int(end or start) + 1 for start, end in ranges[:-1]] == starts[1:]
    of_army = ["HOLD", "MOVE", "SUPPORT_HOLD", "SUPPORT_MOVE", "RETREAT", "DISBAND", "BUILD"]
    assert [OrderKind(words.table.kind[start]).name for start in starts] == of_army
    assert words.texts[starts[-1]] == "A PAR B" and words.texts[starts[-1] + 1] == "A PIC H"


def test_texts_and_numbers_round_trip(game_map):
    words = vocabulary(game_map)
    assert len(set(words.texts)) == len(words.texts) == len(words.number) == len(words)
    assert [words.number[text] for text in words.texts] == list(range(len(words)))
    assert words.texts[words.table.waive] == words.texts[-1] == "WAIVE"


def test_orders_of_a_province_are_consecutive(game_map):
    table, board = vocabulary(game_map).table, game_map.board
    provinces = board.location_province[table.location[: table.waive]]
    assert (np.diff(provinces) >= 0).all()
    for v in range(len(board.terrain)):
        first, last = table.province_first[v], table.province_first[v + 1]
        assert (provinces[first:last] == v).all()
    assert table.province_first[0] == 0
    assert table.province_first[-1] == table.waive


def check_routes(game_map):
    """Each stored route carries an army, and no longer does when one of its seas is left out."""
    board, table = game_map.board, vocabulary(game_map).table
    seas = {int(table.sea_index[v]): v for v in np.flatnonzero(table.sea_index != NONE)}

    def carries(origin: int, goal: int, fleets: set[int]) -> bool:
        reached, last = set(), {origin}
        while last - reached:
            reached |= last
            last = {
                sea
                for sea in fleets
                for here in last
                if board.reach[FLEET, board.province_location[sea], here]
            }
        touching = {sea for sea in reached if sea != origin}
        return any(board.reach[FLEET, board.province_location[sea], goal] for sea in touching)

    pairs = set()
    for origin in range(len(board.terrain)):
        first, last = table.route_first[origin], table.route_first[origin + 1]
        goals = table.route_goal[first:last].tolist()
        assert goals == sorted(goals)
        for goal, bits in zip(goals, table.route_seas[first:last].tolist()):
            route = {v for i, v in seas.items() if bits >> i & 1}
            pairs.add((origin, goal))
            assert carries(origin, goal, route)
            assert not any(carries(origin, goal, route - {sea}) for sea in route)
    assert pairs == {(int(a), int(b)) for a, b in np.argwhere(table.via != NONE)}
    assert len(table.route_seas) == table.route_first[-1]
    everything = set(seas.values())
    shores = np.flatnonzero(table.coast_index != NONE).tolist()
    possible = {(a, b) for a in shores for b in shores if a != b and carries(a, b, everything)}
    assert pairs == possible


def test_routes_are_sets_of_seas_that_suffice(game_map, tmp_path):
    check_routes(game_map)


def test_routes_of_maps_with_more(tmp_path):
    """Coasts that convoy, and provinces and seas of more than 64."""
    check_routes(tribes())
    check_routes(load_map(write_coastal_map(tmp_path / "coastal.toml", 80, 4)))
