"""Maps with more orders than an int16 can count: checked, played by bots, their lists right."""

import random

import pytest
from reference.orders import ReferenceMap, legal_orders
from support.maps import write_coastal_map
from support.tables import slow_but

from diplomacy_engine import Game, evaluate_player, load_map, make_bot, vocabulary

ORDERS = {(80, 4): 56_773, (200, 8): 475_893}


@pytest.fixture(
    scope="module", params=[(80, 4), pytest.param((200, 8), marks=pytest.mark.slow)], ids=str
)
def size(request):
    return request.param


@pytest.fixture(scope="module")
def path(size, tmp_path_factory):
    return write_coastal_map(tmp_path_factory.mktemp("maps") / "coastal.toml", *size)


@pytest.fixture(scope="module")
def game_map(path):
    return load_map(path)


def test_the_numbers_of_its_orders_are_found(game_map, size):
    words = vocabulary(game_map)
    assert len(words) == ORDERS[size] > 2**15
    assert [words.number[text] for text in words.texts] == list(range(len(words)))


def test_its_orders_are_listed_as_the_reference_lists_them(game_map):
    """With fleets on most seas, and armies on coasts everywhere."""
    rng, reference = random.Random(1), ReferenceMap(game_map.facts)
    seas = [c for c in game_map.provinces if game_map.facts["provinces"][c]["terrain"] == "sea"]
    coasts = [code for code in game_map.provinces if code not in seas]
    units: dict[str, list[str]] = {"EAST": [], "WEST": []}
    for code in seas[1:]:
        units[rng.choice(game_map.powers)].append(f"F {code}")
    for code in rng.sample(coasts[: len(coasts) // 2], 8) + [coasts[-2], coasts[-1]]:
        units[rng.choice(game_map.powers)].append(f"{rng.choice('AF')} {code}")
    game = Game.from_state(game_map, {"name": "S1901M", "units": units})
    expected = legal_orders(reference, {"name": "S1901M", "units": units})
    found = {unit: game.legal_orders(unit) for own in game.units.values() for unit in own}
    assert {unit: sorted(texts) for unit, texts in found.items()} == {
        unit: sorted(texts) for unit, texts in expected.items()
    }
    highest = max(vocabulary(game_map).number[text] for texts in found.values() for text in texts)
    assert highest > 2**15 and any(" VIA" in text for texts in found.values() for text in texts)


@pytest.mark.parametrize("bot", slow_but(["random", "dumbbot"], ["random", "dumbbot", "brane"]))
def test_bots_play_it(game_map, bot):
    found = evaluate_player(
        game_map, make_bot(bot), make_bot("random"), 8, max_years=4, threads=1
    ).result()
    assert found["games"] == 8 and found["overall"]["centers"]["value"] >= 3
