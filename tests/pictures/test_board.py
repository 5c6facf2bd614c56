"""Pictures of the board: everything is in them, on every map and in every kind of phase."""

import copy
import itertools
import json
import math
import random
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures.golden import renew as golden
from support.games import orderable
from support.maps import tribes

from diplomacy_engine import MAP_NAMES, Game, Map, UserError, load_map
from diplomacy_engine.pictures.arrows import considered, cross
from diplomacy_engine.pictures.board import unit_place
from diplomacy_engine.pictures.colors import (
    THEMES,
    contrast,
    power_color,
    variables,
    with_plain_colors,
)
from diplomacy_engine.pictures.drawing import drawing_of
from diplomacy_engine.pictures.layout import (
    DISC,
    LABEL_SIZE,
    NAME_SIZE,
    layout_of,
    name_lines,
    text_width,
)
from diplomacy_engine.pictures.png import png
from diplomacy_engine.pictures.signs import signs
from diplomacy_engine.rules.map import MAPS_FOLDER

SVG = "{http://www.w3.org/2000/svg}"


# The golden map without positions, and with a name that must be escaped.
STRAIT = copy.deepcopy(golden.STRAIT)
for province in STRAIT["provinces"].values():
    del province["position"]
STRAIT["provinces"]["GUL"]["name"] = 'Gulf <of> "A&B"'


def play(name: str, rng: random.Random, phases: int):
    """Yield (game with its orders, outcome) of random play that favors supports and convoys."""
    game = Game(name)
    for _ in range(phases):
        if game.is_over:
            return
        for power, places in orderable(game).items():
            given = []
            for place in places:
                texts = game.legal_orders(place)
                weights = [5 if " S " in text or " C " in text else 1 for text in texts]
                given += rng.choices(texts, weights)
            game.submit(power, given, strict=False)
        before = game.copy()
        yield before, game.adjudicate()


def check(game: Game, svg: str) -> ElementTree.Element:
    """Check that a picture is sound and shows the whole position."""
    root = ElementTree.fromstring(svg)
    provinces = [e.get("data-province") for e in root.iter(f"{SVG}path")]
    assert sorted(filter(None, provinces)) == game.map.provinces
    shown = {
        (e.get("data-power"), e.get("data-unit"), e.get("data-dislodged") is not None)
        for e in root.iter(f"{SVG}g")
        if e.get("data-unit") and "built" not in e.get("class")
    }
    expected = {(p, unit, False) for p, units in game.units.items() for unit in units}
    expected |= {(p, unit, True) for p, units in game.dislodged.items() for unit in units}
    assert shown == expected
    owners = {
        e.get("data-center"): e.get("data-owner")
        for e in root.iter(f"{SVG}circle")
        if e.get("data-center")
    }
    board = game.map.board
    held = {code: power for power, codes in game.centers.items() for code in codes}
    centers = [game.map.provinces[v] for v in board.center_province]
    assert owners == {code: held.get(code) for code in centers}
    assert not any("script" in element.tag for element in root.iter())
    return root


def retreats(name: str):
    """Yield (game with its orders, outcome) of both kinds of retreats, whatever a map's play."""
    for phase, text in (("S1901R", "A PAR R {}"), ("F1901R", "A PAR D")):
        goal = Game(name).map.facts["army_borders"]["PAR"].split()[0]
        state = {
            "name": phase,
            "units": {"RUSSIA": ["A PAR"]},
            "retreats": {"ENGLAND": {"A PAR": [goal]}},
        }
        game = Game.from_state(name, state)
        game.submit("ENGLAND", [text.format(goal)])
        yield game.copy(), game.adjudicate()


@pytest.mark.parametrize("name", MAP_NAMES)
def test_every_kind_of_phase_of_every_map(name):
    kinds, rng = set(), random.Random(3)
    for game, outcome in itertools.chain(play(name, random.Random(1), 25), retreats(name)):
        root = check(game, game.to_svg(outcome=outcome, theme=rng.choice(THEMES)))
        drawn = [e for e in root.iter(f"{SVG}g") if e.get("data-order")]
        given = {text for texts in game.orders.values() for text in texts}
        assert {e.get("data-order") for e in drawn} == given - {"WAIVE"}
        for element in drawn:
            unit = " ".join(element.get("data-order").split()[:2])
            assert element.get("data-result", "") == ", ".join(outcome.get(unit, []))
        kinds.add(game.phase[0] + game.phase[-1])
    assert kinds == {"SM", "SR", "FM", "FR", "WA"}


def test_a_removal_that_was_not_owed_leaves_the_unit():
    game = Game.from_position("small W1901A; ENGLAND A LON = LON; RUSSIA = MOS")
    svg = game.to_svg(orders={"ENGLAND": ["A LON D"]}, outcome={"A LON": ["void"]})
    x, y = layout_of(game.map).units["LON"]
    assert cross(complex(x + 13, y - 13)) in svg, "beside it"


def test_a_theme_that_there_is_not_is_refused():
    with pytest.raises(UserError, match="drak"):
        Game("small").to_svg(theme="drak")


def boxes(layout, spots, size, lines) -> dict[str, tuple[float, float, float, float]]:
    """Return left, top, right, bottom of texts around their middles."""
    found = {}
    for code, (x, y) in spots.items():
        wide = max(text_width(line, size) for line in lines(code))
        high = size * (0.73 + 1.05 * (len(lines(code)) - 1))
        found[code] = (x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
    return found


def meet(one, other) -> bool:
    return min(one[2], other[2]) > max(one[0], other[0]) and min(one[3], other[3]) > max(
        one[1], other[1]
    )


@pytest.mark.parametrize("name", MAP_NAMES)
def test_names_cover_neither_each_other_nor_units_nor_centers(name):
    """A unit may stand in every province, a fleet where fleets can go."""
    game_map, layout = load_map(name), layout_of(load_map(name))
    codes = boxes(layout, layout.labels, LABEL_SIZE, lambda code: [code])
    full = boxes(
        layout, layout.names, NAME_SIZE, lambda code: name_lines(game_map.province_names[code])
    )
    fleets = game_map.facts.get("fleet_borders", {})
    afloat = fleets.keys() | {place for text in fleets.values() for place in text.split()}
    marks = {f"center {c}": (x - 5, y - 5, x + 5, y + 5) for c, (x, y) in layout.centers.items()}
    units = {}
    for place, (x, y) in layout.units.items():
        half = 17.3 if place in afloat else 12.7
        units[place] = (x - half, y - 15, x + half, y + 14)
    shown = codes | marks
    assert [pair for pair in itertools.combinations(shown, 2) if meet(*map(shown.get, pair))] == []
    assert [(a, b) for a in shown for b in units if meet(shown[a], units[b])] == []
    full |= marks
    assert [pair for pair in itertools.combinations(full, 2) if meet(*map(full.get, pair))] == []
    for left, top, right, bottom in (codes | full).values():
        assert left >= 0 and top >= 0 and right <= layout.width and bottom <= layout.height


def test_the_legend_explains_what_a_map_has():
    for name, shown in (("standard", False), ("small", True), ("three", True)):
        text = " ".join(meaning for _, meaning in signs(drawing_of(load_map(name))))
        assert ("no way across" in text) == ("are neighbors" in text) == shown
        assert "nobody" in text


def test_orders_are_drawn_whatever_the_case_of_their_power():
    drawn = Game("standard").to_svg(orders={"france": ["A PAR - BUR"]})
    assert drawn.count('data-order="A PAR - BUR" data-power="FRANCE"') == 1


@given(st.text(max_size=40), st.lists(st.text(max_size=12), max_size=3))
@settings(max_examples=12)
def test_nonsense_is_left_out_or_escaped(text, words):
    game = Game("small")
    unit = game.units["ENGLAND"][0]
    orders = {"ENGLAND": [text, f"{unit} H"], text: ["A LON H"]}
    svg = game.to_svg(orders=orders, outcome={unit: words, text: words})
    words = [word for word in words if word.isprintable()]
    if svg.isprintable():
        root = check(game, svg)
        assert {e.get("data-power") for e in root.iter()} <= {"ENGLAND", "RUSSIA", None}


def test_the_drawings_are_of_the_maps_as_they_are():
    for name in MAP_NAMES:
        game_map = load_map(name)
        facts = json.loads((MAPS_FOLDER / f"{name}_layout.json").read_text())
        assert sorted(facts["shapes"]) == sorted(facts["labels"]) == game_map.provinces
        assert facts["units"].keys() == set(game_map.locations)
        assert len(facts["centers"]) == len(game_map.board.center_province)
        assert (MAPS_FOLDER / f"{name}_layout.json").stat().st_size < 60_000
        spots = np.array(list(facts["units"].values()))
        gap = np.linalg.norm(spots[:, None] - spots[None], axis=-1)
        np.fill_diagonal(gap, 99)
        assert gap.min() > 20, "two units would cover each other"


def test_a_map_of_ones_own_is_drawn_as_discs():
    game = Game(Map(STRAIT))
    root = check(game, game.to_svg())
    assert [
        e.get("data-location") for e in root.iter(f"{SVG}circle") if e.get("data-location")
    ] == ["ROC/NC", "ROC/SC"]
    spots = layout_of(game.map).labels
    assert len(set(spots.values())) == 4
    assert layout_of(Map(STRAIT)) == layout_of(Map(STRAIT)), "the same every time"


@pytest.mark.parametrize("spread", [1e-9, 1.0, 1e5])
def test_positions_of_a_map_file(spread):
    facts = json.loads(json.dumps(STRAIT))
    for i, province in enumerate(facts["provinces"].values()):
        province["position"] = [spread * i, spread * (i % 2)]
    layout = layout_of(Map(facts))
    x = [layout.labels[code][0] for code in facts["provinces"]]
    assert x == sorted(x) and layout.width < 4000
    for province in facts["provinces"].values():
        province["position"] = [7, 7]
    spots = np.array(list(layout_of(Map(facts)).labels.values()))
    gap = np.linalg.norm(spots[:, None] - spots[None], axis=-1) + 99 * np.eye(4)
    assert gap.min() > 50, "provinces at one place are pushed apart"


def test_links_of_a_map_without_a_drawing_do_not_run_beneath_the_discs_of_others():
    facts = load_map("standard").facts | {"name": "undrawn"}
    game_map = Map(facts)
    layout = layout_of(game_map)
    middles = {code: layout.units[code] for code in game_map.provinces}
    for a, b, *ends in layout.links:
        start, end = np.reshape(ends, (2, 2))
        along = end - start
        for code, middle in middles.items():
            if code not in (a, b):
                share = np.clip((np.array(middle) - start) @ along / (along @ along), 0, 1)
                assert math.dist(start + share * along, middle) > 1.2 * DISC, (a, b, code)


def test_neutral_units_are_drawn():
    """In a color of their own, as units of a name that is no power in the legend."""
    game = Game(tribes())
    picture = game.to_svg()
    root = ElementTree.fromstring(picture)
    units = [g.get("data-unit") for g in root.findall(".//*[@data-unit][@data-power='TRIBES']")]
    assert units == ["A HIL", "F DUN"]
    color = power_color(game.map, "TRIBES")
    assert color not in {power_color(game.map, power) for power in game.powers}
    assert "var(" not in with_plain_colors(picture, game.map, False)


def test_colors_can_be_told_apart():
    """With normal and with each kind of missing color vision (Vienot et al. 1999)."""
    game_map = load_map("standard")
    missing = {
        "none": np.eye(3),
        "red": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
        "green": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
    }
    for dark in (False, True):
        for vision in missing.values():
            colors = []
            for power in game_map.powers:
                rgb = np.array(
                    [int(power_color(game_map, power, dark)[i : i + 2], 16) for i in (1, 3, 5)]
                )
                colors.append(255 * (vision @ (rgb / 255) ** 2.2).clip(0, 1) ** (1 / 2.2))
            gap = np.linalg.norm(np.subtract.outer(colors, colors).diagonal(0, 1, 3), axis=-1)
            gap += 999 * np.eye(len(colors))
            assert gap.min() > 45


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", MAP_NAMES)
def test_units_on_their_own_land_and_marks_of_reach_have_contrast(name, dark):
    game_map = load_map(name)
    found = variables(game_map, dark)
    for power in game_map.powers:
        for land in (found[f"t-{power}"], found[f"f-{power}"]):
            own = [contrast(found[f"{part}-{power}"], land) for part in "ep"]
            assert max(own) >= 3, power
    for ground in ("land", "sea", "halo"):
        assert contrast(found["reach"], found[ground]) >= 3


def test_twenty_powers_have_colors_of_their_own():
    powers = [f"P{chr(65 + i)}" for i in range(20)]
    homes = {f"A{power}": {"home_of": power, "supply_center": True} for power in powers}
    facts = {
        "name": "many",
        "victory_supply_centers": 2,
        "start_units": {},
        "powers": powers,
        "provinces": {
            code: home | {"name": code, "terrain": "land"} for code, home in homes.items()
        },
        "army_borders": dict(itertools.pairwise(homes)),
    }
    game_map = Map(facts)
    assert len({power_color(game_map, power) for power in powers}) == 20
    check(Game(game_map), Game(game_map).to_svg())


def test_png():
    game = Game("small")
    for theme in ("light", "dark"):
        picture = png(game.to_svg(theme=theme), game.map, theme, 300)
        assert picture[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(picture[16:20]) == 300
    assert "var(" not in with_plain_colors(game.to_svg(), game.map, dark=True)
    assert variables(game.map, True).keys() == variables(game.map, False).keys()


def test_a_missing_png_library_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    with pytest.raises(UserError, match="pip install resvg-py"):
        png(Game("small").to_svg(), load_map("small"))


@pytest.mark.parametrize("name", MAP_NAMES)
def test_dislodged_units_stand_clear_of_names_and_neighbors(name):
    layout = layout_of(load_map(name))
    for location, place in layout.units.items():
        spot = unit_place(layout, f"A {location}", dislodged=True)
        taken = [unit for other, unit in layout.units.items() if other != location]
        taken += [(x + part, y) for x, y in layout.labels.values() for part in (-12, 0, 12)]
        assert math.dist(spot, place) == pytest.approx(24, abs=0.1)
        assert min(math.dist(spot, other) for other in taken) > 15


def test_what_is_as_good_as_sure_has_no_number():
    drawing = drawing_of(load_map("small"))
    shown = [considered(drawing, "ENGLAND", "A LON - PAR", (9, 9), share) for share in (0.94, 0.95)]
    assert ["<text" in one for one in shown] == [True, False]


@pytest.mark.parametrize("name", MAP_NAMES)
def test_arrows_point_to_where_they_end(name):
    game = Game(name)
    for power, places in orderable(game).items():
        moves = [
            [x for x in game.legal_orders(place) if x[5:].startswith(" - ")] for place in places
        ]
        game.submit(power, [orders[0] for orders in moves if orders])
    pattern = r'class="line" d="M(\S+ [\d.]+)[^"]*"/><path class="head" d="M([^Z]*)Z"'
    arrows = re.findall(pattern, game.to_svg())
    assert arrows
    for begin, head in arrows:
        points = [complex(*map(float, text.split())) for text in (begin, *head.split("L"))]
        begin, left, tip, right = points
        assert abs(tip - begin) > max(abs(left - begin), abs(right - begin))
