"""Orders at the unit and a map that moves, in a real browser: one game of 16 units for all."""

import numpy as np
import pytest
from support.clicks import pick, walk
from support.serving import seated, serving, viewer
from support.tables import read_text
from support.waiting import until

from diplomacy_engine.constants import SEA
from diplomacy_engine.textgame.game import Game

pytestmark = pytest.mark.usefixtures("compiled")
DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
NEAR, FAR = ["A KIE", "A BER", "A MUN", "F BAL"], ["A WAR", "A UKR", "A MOS", "A SEV", "A RUM"]
FAR += ["A BUL", "A SER", "A VEN", "A ROM", "A NAP", "A TUN", "A GRE"]
UNITS = {"GERMANY": NEAR + FAR, "ENGLAND": ["F NTH", "F HEL"]}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    game = Game.from_state("standard", {"name": "S1901M", "units": UNITS}, max_years=3)
    with serving(seated(tmp_path_factory.mktemp("play") / "game.jsonl", "ppphppp", game)) as server:
        yield server


@pytest.fixture
def sit(table, open_page):
    """Return a function (size) that opens the page of the one who gives orders."""

    def sit_(**size):
        table.session.draft(viewer(table.session), 0, [])  # what another test has chosen
        page = open_page(table.link("host"), **(size or DESK))
        page.wait_for_selector("#submit")
        return page

    return sit_


def middle(page, selector: str) -> tuple[float, float]:
    found = """selector => {
        const box = document.querySelector(selector)?.getBoundingClientRect();
        return box?.width && [box.x + box.width / 2, box.y + box.height / 2];
    }"""  # in one step: the page may draw it anew at any moment
    return tuple(page.wait_for_function(found, arg=selector).json_value())


def width(page) -> float:
    return page.locator("#board svg").bounding_box()["width"]


def center_of_view(page) -> list[float]:
    """The point of the picture in the middle of the frame."""
    return page.evaluate(
        """(() => { const box = document.getElementById("board").getBoundingClientRect();
        const point = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
        const { x, y } = point.matrixTransform(document.querySelector("#board svg")
            .getScreenCTM().inverse());
        return [x, y]; })()"""
    )


@pytest.mark.parametrize(
    "name",
    [
        "a click on an own unit after an order selects it",
        "what was wrong is said until the next click",
    ],
)
def test_a_walk(name, sit):
    walk(__file__, name, sit())


def test_orders_by_the_flyout_and_by_keys(sit):
    page = sit()
    pick(page, "A MUN")
    x, y = middle(page, '#board [data-unit="A MUN"]')
    left, top = middle(page, "#flyout")
    assert abs(left - x) < 200 and abs(top - y) < 150
    walk(__file__, "orders by the flyout and by keys", page)


@pytest.mark.slow
def test_a_neighbor_is_reached_by_land_and_a_convoy_is_of_two(sit):
    page = walk(__file__, "a neighbor is reached by land", sit())
    own = {"DEN", "SWE", "LVN", "PRU", "BER"}
    offered = page.locator("#choices .order").all()
    assert {offered[i].get_attribute("data-order")[8:11] for i in range(len(own))} == own
    walk(__file__, "and a convoy is of two", page)


@pytest.mark.slow
def test_in_winter_a_wrong_click_is_answered_in_words_of_winter(tmp_path, open_page):
    state = {"name": "W1901A", "units": {}, "centers": {"ENGLAND": ["LON"], "RUSSIA": ["MOS"]}}
    game = Game.from_state("small", state, max_years=3)
    with serving(seated(tmp_path / "game.jsonl", "hp", game)) as server:
        name = "in winter a wrong click is answered in words of winter"
        walk(__file__, name, server=server, open_page=open_page)


COVERED = read_text(__file__, "covered.js")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "size"), [(10, DESK), (17, PHONE)], ids=["desk", "phone"])
def test_the_box_of_verbs_covers_nothing_to_be_tapped_and_does_not_jump(
    tmp_path, open_page, number, size
):
    """In positions of so many units anywhere, with others between them."""
    rng = np.random.default_rng(number)
    board = (game := Game("standard")).map.board
    places = rng.permutation(np.flatnonzero(board.terrain != SEA)).tolist()
    seas = rng.permutation(np.flatnonzero(board.terrain == SEA)).tolist()
    names, fleets = game.map.provinces, number // 3
    armies = [f"A {names[v]}" for v in places[: number - fleets]]
    own = armies + [f"F {names[v]}" for v in seas[:fleets]]
    others = [f"A {names[v]}" for v in places[-8:]] + [f"F {names[seas[-1]]}"]
    state = {"name": "S1901M", "units": {"GERMANY": own, "ENGLAND": others}}
    game = Game.from_state("standard", state, max_years=3)
    with serving(seated(tmp_path / "game.jsonl", "ppphppp", game)) as server:
        page = open_page(server.link("host"), **size)
        page.wait_for_selector("#submit")
        page.wait_for_selector("#board .todo", state="attached")
        seen = page.evaluate(COVERED)
    assert seen["boxes"] >= number < seen["marked"]
    assert seen["covered"] == [] and seen["jumps"] == 0


@pytest.mark.parametrize(
    "size", [pytest.param(DESK, marks=pytest.mark.slow), PHONE], ids=["desk", "phone"]
)
def test_submit_and_continue_stay_in_view(tmp_path, open_page, size):
    game = Game.from_state("standard", {"name": "S1901M", "units": UNITS}, max_years=3)
    expect = pytest.importorskip("playwright.sync_api").expect
    with serving(seated(tmp_path / "game.jsonl", "ppphppp", game)) as server:
        page = open_page(server.link("host"), **size)

        def is_seen(selector: str) -> None:
            expect(page.locator(selector)).to_be_in_viewport(ratio=1)  # waits while it is redrawn

        page.wait_for_selector("#submit")
        is_seen("#submit")
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        is_seen("#submit")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("Enter")
        page.wait_for_selector("#continue")
        is_seen("#continue")
        assert page.evaluate("scrollY") == 0
        page.wait_for_selector("#results li")
        is_seen("#results li >> nth=0")


@pytest.mark.slow
def test_the_wheel_and_dragging_move_the_map_and_names_keep_their_size(sit):
    page = sit()
    there = '#board [data-unit="A MUN"]'
    (x, y), before = middle(page, there), width(page)
    letters = page.locator("#board .labels .label").first.bounding_box()["height"]
    page.mouse.move(x, y)
    for _ in range(4):
        page.mouse.wheel(0, -120)
    until(lambda: width(page) > 2.5 * before)
    assert middle(page, there) == pytest.approx((x, y), abs=3), "around the cursor"
    assert page.locator("#board .labels .label").first.bounding_box()["height"] < 1.7 * letters
    page.mouse.down()
    page.mouse.move(x + 30, y + 20)
    page.mouse.move(x + 90, y - 60)
    page.mouse.up()
    assert middle(page, there) == pytest.approx((x + 90, y - 60), abs=3)
    assert page.locator("#flyout:visible, #say:visible").count() == 0, "it was no click"
    pick(page, "A MUN")
    page.mouse.move(x, y)
    page.mouse.wheel(0, 2000)
    until(lambda: width(page) == before)


def test_fingers_move_the_map(sit):
    page = sit(**PHONE)
    page.wait_for_selector("#board.zoomed")
    client = page.context.new_cdp_session(page)
    (x, y), before = middle(page, "#board"), width(page)

    def touch(kind, *points):
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    held = center_of_view(page)
    touch("touchStart", (x - 40, y), (x + 40, y))
    for apart in (45, 52, 60):
        touch("touchMove", (x - apart, y), (x + apart, y))
    touch("touchEnd")
    until(lambda: width(page) == pytest.approx(1.5 * before, rel=0.05))
    assert center_of_view(page) == pytest.approx(held, abs=6)
    assert page.locator("#flyout:visible, #say:visible").count() == 0
    page.click("#unit-A-TUN")  # far away: the map goes there
    page.evaluate("scrollTo(0, 0)")
    until(lambda: middle(page, '#board [data-unit="A TUN"]') == pytest.approx((x, y), abs=170))
    page.keyboard.press("Escape")
    held = center_of_view(page)
    touch("touchStart", (x, y))
    touch("touchMove", (x + 20, y))
    touch("touchMove", (x + 60, y))
    touch("touchEnd")
    until(lambda: center_of_view(page)[0] < held[0] - 20)
    before = width(page)
    page.evaluate(
        """([clientX, clientY]) => { for (const kind of ["down", "up", "down", "up"])
        document.getElementById("board").dispatchEvent(new PointerEvent(`pointer${kind}`,
            { clientX, clientY, pointerId: 7, pointerType: "touch", bubbles: true })); }""",
        [x, y],
    )
    assert width(page) == pytest.approx(2 * before, rel=0.01), "a double tap"


@pytest.mark.slow
def test_turning_a_phone_keeps_the_middle_and_browser_zoom_enlarges(sit):
    page = sit(**PHONE)
    page.wait_for_selector("#board.zoomed")
    before, upright = center_of_view(page), width(page)
    page.set_viewport_size({"width": 844, "height": 390})
    until(lambda: width(page) > upright)
    until(lambda: center_of_view(page) == pytest.approx(before, abs=8))
    page.set_viewport_size(PHONE["viewport"])
    until(lambda: center_of_view(page) == pytest.approx(before, abs=8))
    half = sit(viewport={"width": 640, "height": 400}, device_scale_factor=2)
    label = half.locator("#board .labels .label").first
    assert label.is_visible() and label.bounding_box()["height"] >= 10, "names stay"
    assert 2 * width(half) > 1.2 * width(sit())


@pytest.mark.slow
def test_letters_names_and_a_text_for_those_who_cannot_see(sit):
    page = sit()
    page.keyboard.press("l")
    letters = page.locator("#board .units .letter")
    letters.first.wait_for(state="attached")
    assert sorted(letters.all_text_contents()) == ["E"] * 2 + ["G"] * 16
    page.keyboard.press("l")
    assert page.locator("#board .letter").count() == 0
    page.keyboard.press("n")
    hidden = page.evaluate(read_text(__file__, "hidden.js"))
    assert hidden == []
    assert page.locator("#board.full").count() == 1
    page.set_viewport_size({"width": 900, "height": 500})
    if page.is_enabled("#zoom-out"):
        page.click("#zoom-out")
    until(lambda: page.locator("#board.full").count() == 0)  # too small: codes
    assert page.get_attribute("#names", "aria-pressed") == "true"
    opacity = "getComputedStyle(document.querySelector('#board .units')).opacity"
    assert page.evaluate(opacity) == "1"
    told = page.locator("#position p").all_inner_texts()
    assert "England: fleet Helgoland Bight, fleet North Sea; centers none." in told
    assert len(told) == 7
