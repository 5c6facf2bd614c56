"""Pictures are drawn as the golden ones are, which were looked at; see golden/README.md."""

import itertools
import random
import tomllib
from pathlib import Path

import numpy as np
import pytest
from pictures.golden.renew import COMMAND, FOLDER, SCENES, STRAIT, draw
from support.games import entangled_orders, random_orders, random_units
from support.maps import TRIBES

from diplomacy_engine import MAP_NAMES, Game, Map, load_map
from diplomacy_engine.pictures.board import overlay, thoughts_svg
from diplomacy_engine.pictures.chart import values_svg
from diplomacy_engine.pictures.colors import power_color, style_sheet
from diplomacy_engine.pictures.drawing import drawing_of
from diplomacy_engine.pictures.layout import layout_of
from diplomacy_engine.pictures.matrix import matrix_svg
from diplomacy_engine.pictures.page import map_facts
from diplomacy_engine.pictures.signs import signs
from diplomacy_engine.replays.replay import chart_svg, make_replay


@pytest.mark.parametrize("name", SCENES)
def test_a_golden_picture(name):
    golden = (FOLDER / f"{name}.svg").read_text(encoding="utf-8").splitlines()
    for number, (new, old) in enumerate(
        itertools.zip_longest(draw(name).splitlines(), golden, fillvalue="(nothing)"), 1
    ):
        assert new == old, (
            f"tests/pictures/golden/{name}.svg is drawn differently from line {number} on. "
            f"If it shall be, run `{COMMAND}`, look at the pictures that changed, and say so "
            "in its README.md"
        )


def test_all_golden_pictures_are_compared_and_described():
    files = {file.stem for file in FOLDER.glob("*.svg")}
    assert files == SCENES.keys()
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in files if f"`{name}`" not in text] == []
    assert sum((FOLDER / f"{name}.svg").stat().st_size for name in files) < 400_000


@pytest.mark.parametrize("map_name", MAP_NAMES)
def test_what_pictures_are_made_of_is_golden(map_name, golden):
    """Units, all kinds of orders, thoughts, signs, charts and colors."""
    rng, parts = random.Random(2), []
    game_map = load_map(map_name)
    drawing, powers = drawing_of(game_map), game_map.powers
    state = {"name": "F1903M", "units": random_units(game_map, rng, 3)}
    game = Game.from_state(map_name, state, max_years=9)
    for drawn in (entangled_orders, random_orders, random_orders):
        orders = {} if game.is_over else drawn(game, rng)
        for power, texts in orders.items():
            game.submit(power, texts)
        if not game.is_over:
            game.adjudicate()
    replay = make_replay(game.to_saved_game())
    for frame in replay.frames:
        likely = {
            power: {order.unit: [(order.text, 0.3)] for order in orders if not order.is_missing}
            for power, orders in frame.scene.orders.items()
        }
        parts += [overlay(drawing, frame.scene), thoughts_svg(drawing, frame.scene, likely)]
    values = {power: [0.1, None, 0.2 * number] for number, power in enumerate(powers, -1)}
    parts += [chart_svg(replay), values_svg(drawing, ["S1901M", "F1901M", "S1902M"], values)]
    shares = np.array([[rng.choice((rng.random(), np.nan)) for _ in range(9)] for _ in range(9)])
    parts += [matrix_svg([f"player {n}" for n in range(9)], shares), *map(str, signs(drawing))]
    parts += [style_sheet(game_map, "light", "dark"), str(map_facts(drawing) | {"ground": ""})]
    golden(map_name, "\n".join(parts).replace("><", ">\n<").split("\n"))


def test_layouts_of_maps_without_a_drawing_are_golden(golden):
    golden("layouts", [layout_of(Map(facts)) for facts in (STRAIT, tomllib.loads(TRIBES))], 1e-3)


def test_the_animation_of_the_readme_has_the_colors_of_the_powers():
    """A palette of what is frequent would paint Austria, Germany and the crosses brown."""
    image = pytest.importorskip("PIL.Image")
    frame = image.open(Path(__file__).parents[2] / "docs" / "replay.gif").convert("RGB")
    found = {"#{:02x}{:02x}{:02x}".format(*color) for _, color in frame.getcolors(1 << 20)}
    game_map = load_map("standard")
    assert {power_color(game_map, power) for power in game_map.powers} <= found
