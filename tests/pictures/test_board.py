"""Pictures of the board: everything is in them, on every map and in every kind of phase."""

import itertools
import json
import math
import re
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.maps import tribes

from diplomacy_engine import Game, VectorGame, load_map
from diplomacy_engine.constants import NONE, SEA
from diplomacy_engine.errors import UserError
from diplomacy_engine.pictures.board import DISLODGED_SHIFT, board_svg, phase_title
from diplomacy_engine.pictures.colors import (
    _distance,
    _luminance,
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
from diplomacy_engine.rules.map import MAP_NAMES, MAPS_FOLDER, Map
from diplomacy_engine.rules.notation import read_order

SVG = "{http://www.w3.org/2000/svg}"
STRAIT = {
    "name": "strait",
    "powers": ["EAST", "ELSE", "WEST"],
    "victory_supply_centers": 3,
    "start_units": {"EAST": ["A PAL"], "WEST": ["F ROC/NC"]},
    "provinces": {
        "GUL": {"name": "Gulf <of> \"A&B\"", "terrain": "sea"},
        "HIL": {"name": "Hills", "terrain": "land", "supply_center": True, "home_of": "ELSE"},
        "PAL": {"name": "Palm Bay", "terrain": "coast", "supply_center": True, "home_of": "EAST"},
        "ROC": {
            "name": "Cape", "terrain": "coast", "supply_center": True, "home_of": "WEST",
            "coasts": ["NC", "SC"],
        },
    },
    "army_borders": {"HIL": "PAL ROC", "PAL": "ROC"},
    "fleet_borders": {"GUL": "PAL ROC/NC ROC/SC"},
}  # fmt: skip


def play(name: str | Map, seed: int, phases: int):
    """Yield (game with its orders, outcome) of random play that favors supports and convoys."""
    rng = np.random.default_rng(seed)
    game = Game(name)
    for _ in range(phases):
        if game.is_over:
            return
        for power in game.powers:
            given = []
            for unit in _ordered(game, power):
                texts = game.legal_orders(unit)
                weight = np.array([5.0 if " S " in t or " C " in t else 1.0 for t in texts])
                if texts:
                    given.append(texts[rng.choice(len(texts), p=weight / weight.sum())])
            game.submit(power, given, strict=False)
        before = game.copy()
        yield before, game.adjudicate()


def _ordered(game: Game, power: str) -> list[str]:
    if game.phase.endswith("R"):
        return list(game.dislodged.get(power, ()))
    owed = game.adjustments.get(power, 0)
    if game.phase.endswith("A") and owed > 0:
        home = game.map.board.home_power == game.map.power_index[power]
        return [game.map.provinces[v] for v in np.flatnonzero(home)]
    return game.units[power] if game.phase.endswith("M") or owed < 0 else []


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
    kinds = set()
    for game, outcome in itertools.chain(
        *(play(name, seed, 40) for seed in (1, 2)), retreats(name)
    ):
        root = check(game, game.to_svg(outcome=outcome))
        drawn = [e for e in root.iter(f"{SVG}g") if e.get("data-order")]
        given = {text for texts in game.orders.values() for text in texts}
        assert {e.get("data-order") for e in drawn} == given - {"WAIVE"}
        for element in drawn:
            unit = " ".join(element.get("data-order").split()[:2])
            assert element.get("data-result", "") == ", ".join(outcome.get(unit, []))
        kinds.add(game.phase[0] + game.phase[-1])
    assert kinds == {"SM", "SR", "FM", "FR", "WA"}


def test_an_opening_is_drawn_as_arrows():
    game = Game("standard")
    game.submit("FRANCE", ["A PAR - BUR", "A MAR S A PAR - BUR", "F BRE H"])
    game.submit("GERMANY", ["A MUN - BUR"])
    before = game.copy()
    root = ElementTree.fromstring(before.to_svg(outcome=game.adjudicate()))
    kinds = {e.get("data-order"): e.get("class") for e in root.iter(f"{SVG}g")}
    assert kinds["A PAR - BUR"] == "order move"
    assert kinds["A MUN - BUR"] == "order move failed"
    assert kinds["A MAR S A PAR - BUR"] == "order support"
    assert kinds["F BRE H"] == "order hold"
    assert len(root.findall(".//*[@class='cross']")) == 1


def test_a_convoyed_army_goes_over_its_fleets():
    state = {"name": "S1901M", "units": {"ENGLAND": ["A LON", "F NTH", "F ENG"]}}
    game = Game.from_state("standard", state)
    game.submit("ENGLAND", ["A LON - NWY VIA", "F NTH C A LON - NWY"])
    root = ElementTree.fromstring(game.to_svg())
    (way,) = root.findall(".//*[@data-order='A LON - NWY VIA']/*[@class='line']")
    x, y = layout_of(game.map).units["NTH"]
    assert f"{x:.1f} {y:.1f}" in way.get("d") or len(way.get("d").split("C")) == 2
    assert root.find(".//*[@data-order='F NTH C A LON - NWY']/circle") is None
    assert root.find(f".//*[@data-order='F NTH C A LON - NWY']/{SVG}circle") is not None


def test_the_ends_of_supports_can_be_seen():
    """A line leads around between neighbors, and ends on no unit but the one held up."""
    game_map = load_map("standard")
    layout = layout_of(game_map)
    for one, others in game_map.facts["army_borders"].items():
        for other in others.split():
            if math.dist(layout.units[one], layout.units[other]) > 60:
                continue
            state = {"name": "S1901M", "units": {"ENGLAND": [f"A {one}", f"A {other}"]}}
            orders = {"ENGLAND": [f"A {one} S A {other}"]}
            root = ElementTree.fromstring(Game.from_state("standard", state).to_svg(orders=orders))
            (line,) = root.findall(".//*[@data-order]/*[@class='line'][@d]")
            points = np.array(re.findall(r"-?[0-9.]+", line.get("d")), float).reshape(-1, 2)
            ends = np.array([layout.units[one], layout.units[other]])
            middle = (points[0] + 3 * points[1] + 3 * points[2] + points[3]) / 8
            assert np.linalg.norm(ends - middle, axis=1).min() > 15, (one, other)
    state = {"name": "S1901M", "units": {"ENGLAND": ["A LON", "F NTH", "F NWG", "F SKA"]}}
    game = Game.from_state("standard", state)
    texts = ["A LON - NWY VIA", "F NTH C A LON - NWY", "F NWG S A LON - NWY", "F SKA S A LON - NWY"]
    game.submit("ENGLAND", texts)
    root = ElementTree.fromstring(game.to_svg())
    dots = [(float(e.get("cx")), float(e.get("cy"))) for e in root.findall(".//*[@class='dot']")]
    units = np.array([layout.units[code] for code in ("LON", "NTH", "NWG", "SKA")])
    assert len(dots) == 2
    for dot in dots:
        assert np.linalg.norm(units - dot, axis=1).min() > 26


def test_the_sea_borders_can_be_seen():
    """At least 2.2 times as light or dark as the sea (contrast of WCAG)."""
    for dark in (False, True):
        colors = variables(load_map("standard"), dark)
        light, deep = sorted(
            (_luminance(colors[name]) for name in ("sea", "sea-line")), reverse=True
        )
        assert (light + 0.05) / (deep + 0.05) > 2.2


def test_phases_in_words():
    assert phase_title("F1902R") == "Fall 1902, retreats"
    assert phase_title("COMPLETED") == "Game over"
    assert "Spring 1901, movement</text>" in Game("standard").to_svg()


def test_names_stand_above_the_arrows():
    game = Game("small")
    game.submit("ENGLAND", ["A LON - HOL"])
    svg = game.to_svg()
    assert svg.index('class="overlay"') < svg.index('data-order="') < svg.index('class="labels"')
    rule = svg[svg.index(".dip-board .label{") :]
    assert "stroke:var(--land)" in rule[: rule.index("}")], "a halo, to be read on any color"


def crosses(root: ElementTree.Element) -> list[tuple[float, float, float]]:
    """Return the middle of every red cross, and half of its side."""
    found = []
    for element in root.findall(".//*[@class='cross']"):
        x, y, wide = map(float, re.match(r"M(\S+) (\S+)l(\S+) ", element.get("d")).groups())
        found.append((x + wide / 2, y + wide / 2, wide / 2))
    return found


def test_a_unit_without_a_retreat_is_crossed_out():
    state = {
        "name": "S1901M",
        "units": {"TURKEY": ["A BUL", "F AEG"], "AUSTRIA": ["F GRE"], "ITALY": ["A ALB", "F ION"]},
    }
    game = Game.from_state("standard", state)
    game.submit("TURKEY", ["A BUL - GRE", "F AEG S A BUL - GRE"])
    game.submit("AUSTRIA", ["F GRE H"])
    before = game.copy()
    outcome = game.adjudicate()
    assert outcome["F GRE"] == ["dislodged", "disband"]
    (cross,) = crosses(ElementTree.fromstring(before.to_svg(outcome=outcome)))
    assert cross[:2] == pytest.approx(layout_of(game.map).units["GRE"])
    assert cross[2] > 10, "over the whole unit"


def test_a_removal_that_was_not_owed_leaves_the_unit():
    state = {
        "name": "W1901A",
        "units": {"ENGLAND": ["A LON", "A PAR"]},
        "centers": {"ENGLAND": ["LON"], "RUSSIA": ["MOS"]},
    }
    game = Game.from_state("small", state)
    orders = {"ENGLAND": ["A PAR D", "A LON D"]}
    svg = game.to_svg(orders=orders, outcome={"A PAR": [], "A LON": ["void"]})
    gone, void = crosses(ElementTree.fromstring(svg))
    units = layout_of(game.map).units
    assert gone[:2] == pytest.approx(units["PAR"]) and gone[2] > 10
    assert np.abs(np.subtract(void[:2], units["LON"])).min() > 10, "beside it"


def test_the_head_of_an_arrow_is_not_below_a_ring():
    state = {"name": "S1901M", "units": {"ENGLAND": ["A LON"], "RUSSIA": ["A PAR"]}}
    game = Game.from_state("small", state)
    svg = game.to_svg(orders={"ENGLAND": ["A LON - PAR"]}, outcome={"A PAR": ["dislodged"]})
    root = ElementTree.fromstring(svg)
    ring = root.find(".//*[@class='dislodged-ring']")
    tip = root.find(".//*[@class='head']").get("d").split("L")[1].split()
    place = float(ring.get("cx")), float(ring.get("cy"))
    gap = float(np.hypot(*np.subtract(place, np.array(tip, float))))
    assert float(ring.get("r")) - 1 < gap < float(ring.get("r")) + 4


def test_a_dislodged_unit_leaves_half_of_the_other_one_free():
    fleet, army = (-17.3, 17.3), (-12.7, 12.7)  # how far they reach to either side
    assert DISLODGED_SHIFT[0] + army[0] > 5
    assert DISLODGED_SHIFT[0] + fleet[0] > 0, "at most half of it, by the low hull of a ship"


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


def test_what_is_within_reach_looks_like_no_power():
    """Nor like land that nobody can enter; its color alone tells, on any ground."""
    for name in MAP_NAMES:
        for dark in (False, True):
            colors = variables(game_map := load_map(name), dark)
            others = [colors[f"p-{power}"] for power in game_map.powers]
            for color in (*others, colors["neutral"], colors["land"], colors["sea"]):
                assert _distance(colors["reach"], color) > 90, (name, dark, color)


def test_the_legend_explains_what_a_map_has():
    for name, shown in (("standard", False), ("small", True), ("three", True)):
        text = " ".join(meaning for _, meaning in signs(drawing_of(load_map(name))))
        assert ("no way across" in text) == ("are neighbors" in text) == shown
        assert "nobody" in text


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(MAP_NAMES), st.integers(0, 40))
def test_random_positions(seed, name, phases):
    games = VectorGame(name, 1, seed=seed, auto_reset=False)
    rng = np.random.default_rng(seed)
    for _ in range(phases):
        decisions = games.decisions()
        if not decisions.count:
            break
        first, last = decisions.order_start[:-1], decisions.order_start[1:]
        orders = games.new_orders()
        games.write_orders(orders, decisions, decisions.order[rng.integers(first, last)])
        games.step(orders)
    game = Game.from_row(games, 0)
    for theme in ("light", "dark", "auto"):
        check(game, game.to_svg(theme=theme))


@given(st.text(max_size=40), st.lists(st.text(max_size=12), max_size=3))
@settings(max_examples=60, deadline=None)
def test_nonsense_is_left_out_or_escaped(text, words):
    game = Game("small")
    unit = game.units["ENGLAND"][0]
    orders = {"ENGLAND": [text, f"{unit} H"], text: ["A LON H"]}
    svg = game.to_svg(orders=orders, outcome={unit: words, text: words})
    words = [word for word in words if word.isprintable()]
    if svg.isprintable():
        root = check(game, svg)
        assert {e.get("data-power") for e in root.iter()} <= {"ENGLAND", "RUSSIA", None}


def test_bad_arguments():
    with pytest.raises(ValueError, match="theme must be one of light, dark, auto, not 'blue'"):
        Game("small").to_svg(theme="blue")
    with pytest.raises(ValueError, match="width must be a whole number"):
        Game("small").to_svg(width=0)


def test_provinces_that_border_touch_and_others_do_not():
    """On the drawn maps: those that touch without a border have a wall, the others are linked."""
    for name in MAP_NAMES:
        game_map, layout = load_map(name), layout_of(load_map(name))
        borders = {
            frozenset((a[:3], b[:3]))
            for key in ("army_borders", "fleet_borders")
            for a, others in game_map.facts[key].items()
            for b in others.split()
        }
        outlines = {code: outline(path) for code, path in layout.shapes.items()}
        linked = {frozenset(link[:2]) for link in layout.links}
        assert linked <= borders
        corners = {code: (points.min(0), points.max(0)) for code, points in outlines.items()}
        for i, one in enumerate(game_map.provinces):
            for other in game_map.provinces[i + 1 :]:
                pair = frozenset((one, other))
                (low, high), (lowest, highest) = corners[one], corners[other]
                if np.maximum(lowest - high, low - highest).max() > 2:  # far apart, quickly seen
                    assert pair not in borders - linked, f"{name}: {one} and {other} are far apart"
                    continue
                gap = np.abs(outlines[one][:, None] - outlines[other][None]).max(-1)
                touching = (gap < 0.75).any(1).sum() > 1
                if pair in borders - linked:
                    assert gap.min() < 1.5, f"{name}: {one} and {other} do not touch"
                if pair in linked:
                    assert not touching, f"{name}: {one} and {other} touch and are linked"
                if touching and pair not in borders:
                    assert layout.walls, f"{name}: {one} and {other} touch"
    assert layout_of(load_map("standard")).links == ()
    assert layout_of(load_map("standard")).walls == ""


def outline(path: str) -> np.ndarray:
    """Return points (n, 2) along a path of relative steps, as close as two pixels."""
    points = []
    for part in path.split("M")[1:]:
        start, steps = part.rstrip("Z").split("l")
        numbers = np.array(steps.replace("-", " -").split(), float).reshape(-1, 2)
        line = np.array(start.split(), float) + np.vstack([[0, 0], np.cumsum(numbers, 0)])
        line = np.vstack([line, line[:1]])
        for a, b in itertools.pairwise(line):
            count = max(1, int(np.abs(b - a).max() / 2))
            points.append(a + (b - a) * np.arange(count)[:, None] / count)
    return np.vstack(points)


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
    ] == [
        "ROC/NC",
        "ROC/SC",
    ]
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
                assert math.dist(start + share * along, middle) > 0.8 * DISC, (a, b, code)


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


@pytest.mark.slow
def test_a_large_map_has_a_layout_in_time():
    codes = [a + b + c for a in "ABCDEFGH" for b in "ABCDEFGH" for c in "ABCDEFGH"][:500]
    facts = {
        "name": "grid", "powers": ["EAST", "WEST"], "victory_supply_centers": 2,
        "start_units": {},
        "provinces": {code: {"name": code.lower(), "terrain": "land"} for code in codes},
        "army_borders": {
            code: " ".join(codes[j] for j in (i + 1, i + 25) if j < 500)
            for i, code in enumerate(codes[:-1])
        },
    }  # fmt: skip
    for i, power in ((0, "EAST"), (499, "WEST")):
        facts["provinces"][codes[i]] |= {"supply_center": True, "home_of": power}
    game_map = Map(facts)
    start = time.perf_counter()
    layout = layout_of(game_map)
    assert time.perf_counter() - start < 60
    assert len(layout.links) == sum(len(text.split()) for text in facts["army_borders"].values())


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
    with pytest.raises(ValueError, match="light or dark"):
        png(game.to_svg(), game.map, "auto")
    with pytest.raises(ValueError, match="width"):
        png(game.to_svg(), game.map, "light", 10**9)


def test_a_missing_png_library_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    with pytest.raises(UserError, match="pip install resvg-py"):
        png(Game("small").to_svg(), load_map("small"))


def test_orders_of_other_programs_are_read():
    assert board_svg(Game("standard"), orders={"FRANCE": ["F BRE - MAO"]}).count("data-order") == 1
    assert read_order(load_map("standard"), "F BRE - MAO")
    seas = [v for v, kind in enumerate(load_map("small").board.terrain) if kind == SEA]
    assert not seas and NONE == -1
