"""The replay page in a real browser: it steps, charts, links, fits a phone, and is soon there."""

import pytest
from support.clicks import walk
from support.players import Thinker

from diplomacy_engine import Game, evaluate_player, make_bot
from diplomacy_engine.learning.sample_games import thoughts
from diplomacy_engine.replays.page import page
from diplomacy_engine.replays.replay import make_replay
from diplomacy_engine.replays.text import frame_text

DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def replays():
    player = Thinker()
    games = evaluate_player(
        "small", player, make_bot("dumbbot"), 2, samples=2, max_years=3,
        think=lambda game, power: thoughts(player, game, power),
    ).saved_games  # fmt: skip
    return [make_replay(saved | {"id": f"<i>{i}</i>"}) for i, saved in enumerate(games)]


@pytest.fixture(scope="module")
def address(replays, tmp_path_factory):
    file = tmp_path_factory.mktemp("replay") / "games.html"
    file.write_text(page(replays, "games"), encoding="utf-8")
    return file.as_uri()


def phase(view) -> str:
    return view.locator("#phase").get_attribute("title")


def ready(view, name: str) -> None:
    view.wait_for_function("name => document.querySelector('#phase').title === name", arg=name)


def test_a_page(address, replays, open_page):
    """By keys and clicks: all is checked on one, since each takes seconds to open."""
    view = open_page(address, **DESK)
    names = [frame.scene.phase for frame in replays[0].frames]
    ready(view, names[0])
    for key, expected in (
        ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", -1), ("ArrowRight", -1),
        ("Home", 0), ("ArrowLeft", 0),
    ):  # fmt: skip
        view.keyboard.press(key)
        assert phase(view) == names[expected]
    for button, expected in (("forth", 1), ("last", -1), ("back", -2), ("first", 0)):
        view.click(f"#{button}")
        assert phase(view) == names[expected]
    view.locator("#slider").fill("3")
    assert phase(view) == names[3]
    follows_and_leads_by_the_chart(view)
    shows_what_the_players_considered(view)
    shows_every_phase(view, replays[0].frames)
    runs_no_other_script(view)


def shows_every_phase(view, frames):
    for frame in frames:
        assert phase(view) == frame.scene.phase
        units = view.eval_on_selector_all(
            "#board .unit:not(.built)",
            "all => all.map(e => e.dataset.power + ' ' + e.dataset.unit)",
        )
        shown = [f"{p} {u}" for p, given in frame.scene.units.items() for u in given]
        gone = [f"{p} {u}" for p, given in frame.scene.dislodged.items() for u in given]
        assert sorted(units) == sorted(shown + gone)
        owned = view.eval_on_selector_all(
            "#board .center[data-owner]", "all => all.map(e => e.dataset.owner + e.dataset.center)"
        )
        centers = [p + c for p, codes in frame.scene.centers.items() for c in codes]
        assert sorted(owned) == sorted(centers)
        lines = view.eval_on_selector_all(
            "#orders [data-line]", "all => all.map(e => e.dataset.line)"
        )
        given = [line.text for lines in frame.scene.orders.values() for line in lines]
        assert set(given) <= set(lines)
        moved = frame.scene.phase.endswith("M") and frame is not frames[-1]
        assert not moved or len(lines) == len(shown), "who holds without an order is listed"
        view.keyboard.press("ArrowRight")


def follows_and_leads_by_the_chart(view):
    assert view.locator("#chart .series").count() == 2
    before = view.locator("#chart .cursor").get_attribute("d")
    view.keyboard.press("End")
    assert view.locator("#chart .cursor").get_attribute("d") != before
    box = view.locator("#chart svg").bounding_box()
    view.mouse.click(box["x"] + box["width"] * 0.07, box["y"] + box["height"] / 2)
    assert phase(view) == "S1901M"


def shows_what_the_players_considered(view):
    assert "expects 2.25" in view.locator("#orders").inner_text()
    assert not view.locator("#board .thought").first.is_visible()
    view.keyboard.press("p")
    assert view.locator("#board .thought").first.is_visible()
    assert "50% hold" in view.locator("#orders").inner_text()


def runs_no_other_script(view):
    """Even if a text of a game were taken for HTML one day."""
    view.allowed += ["Content Security Policy", "Content-Security-Policy"]
    view.evaluate(
        """() => {
            document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.ran = 1'>");
            const script = document.createElement("script");
            script.text = "window.ran = 1";
            document.body.append(script);
        }"""
    )
    view.wait_for_timeout(100)
    assert view.evaluate("() => window.ran") is None


@pytest.mark.slow
def test_who_played_and_won_and_what_the_signs_mean(tmp_path, open_page):
    hold = make_bot("hold")
    (saved,) = evaluate_player(
        "small", make_bot("random"), hold, 1, samples=1, max_years=1
    ).saved_games
    file = tmp_path / "game.html"
    file.write_text(page([make_replay(saved)], "game"), encoding="utf-8")
    walk(__file__, "who played and won", open_page(file.as_uri(), **DESK))
    unfinished = make_replay(Game("small").to_saved_game())
    assert unfinished.result == "not over, in Spring 1901, movement"


@pytest.mark.slow
def test_playing_ends_at_the_end(address, replays, open_page):
    walk(__file__, "playing ends at the end", open_page(address, **DESK))


@pytest.mark.slow
def test_links_and_several_games(address, replays, open_page):
    view = open_page(f"{address}#2/F1901M", **DESK)
    walk(__file__, "links and several games", view)
    for unknown in ("#9/S1855M", "#100%"):
        ready(open_page(address + unknown, **DESK), "S1901M")


def color(view, selector: str) -> str:
    return view.eval_on_selector(selector, "e => getComputedStyle(e).fill")


@pytest.mark.slow
def test_light_and_dark(address, open_page):
    light = open_page(address, color_scheme="light", **DESK)
    dark = open_page(address, color_scheme="dark", **DESK)
    for view in (light, dark):
        ready(view, "S1901M")
    water = "#board .water"
    assert color(light, water) != color(dark, water)
    light.keyboard.press("t")  # light
    assert color(light, water) != color(dark, water)
    light.keyboard.press("t")  # dark
    assert color(light, water) == color(dark, water)


def test_a_phone(address, replays, open_page):
    """A board begins where the power with most centers at the end has its units, and legibly."""
    view = open_page(address, **PHONE)
    ready(view, "S1901M")
    assert view.evaluate("document.documentElement.scrollWidth") <= 360
    view.wait_for_selector("#board.zoomed")
    scene = replays[0].frames[0].scene
    largest = max(scene.centers, key=lambda power: len(replays[0].frames[-1].scene.centers[power]))
    frame = view.locator("#board").bounding_box()
    for unit in scene.units[largest]:
        box = view.locator(f'#board [data-unit="{unit}"]').bounding_box()
        assert frame["x"] <= box["x"] and box["x"] + box["width"] <= frame["x"] + frame["width"]
        assert frame["y"] <= box["y"] and box["y"] + box["height"] <= frame["y"] + frame["height"]
    assert view.locator("#board .labels .label").first.bounding_box()["height"] >= 10
    middle = "() => { const { scrollTop, clientHeight } = document.getElementById('board');"
    middle += " return scrollTop + clientHeight / 2; }"
    before = view.evaluate(middle)
    view.locator("#board").evaluate("board => { board.style.height = '150px'; }")
    view.wait_for_function(f"was => Math.abs(({middle})() - was) < 2", arg=before)
    view.locator("#board").evaluate("board => { board.style.height = ''; }")
    view.tap("#names")
    assert view.locator("#board .names .label").first.bounding_box()["height"] >= 10
    view.tap("#names")
    for _ in range(6):
        view.tap("#zoom-out")
        if view.locator("#zoom-out").is_disabled():
            break
    assert not view.locator("#board .label").first.is_visible(), "too small to be read"
    view.tap("#forth")
    assert phase(view) == "F1901M"
    for button in ("first", "back", "run", "forth", "last", "theme"):
        box = view.locator(f"#{button}").bounding_box()
        assert box["width"] >= 36 and box["height"] >= 36


def test_a_game_of_35_years_is_a_small_page():
    bot = make_bot("dumbbot")
    (saved,) = evaluate_player("standard", bot, bot, 1, samples=1).saved_games
    assert len(saved["phases"]) > 80
    text = page([make_replay(saved)], "standard")
    assert len(text.encode()) < 3_000_000


def test_talk_is_shown_as_text(tmp_path, open_page):
    """Offers and answers stand in words beside the orders; what a file says is never HTML."""
    game = Game("small", press="offers")
    number = game.offer("ENGLAND", "RUSSIA", ours=["A LON - PAR"], zone=["MUN"])
    game.accept("RUSSIA", number)
    game.send("RUSSIA", "GLOBAL", "<img src=x onerror=alert(1)>\x1b[2J")
    game.send("RUSSIA", "ENGLAND", "PRP ( broken <b>")
    game.adjudicate()
    saved = game.to_saved_game()
    saved["phases"][0]["messages"][2]["sender"] = "<i>NOBODY"
    file = tmp_path / "game.html"
    file.write_text(page([replay := make_replay(saved)], "talk"), encoding="utf-8")
    view = open_page(file.as_uri(), **DESK)
    ready(view, "S1901M")
    shown = view.locator("#orders .talk").inner_text().replace("\xa0", " ")
    deal = "(Army London: move to Paris; England and Russia keep out of Munich and leave it)"
    assert f"What was said (4)\nEngland to Russia: offers a deal {deal}" in shown
    assert f"Russia to England: agrees to the deal {deal}" in shown
    assert "<i>nobody to Global: <img src=x" in shown and "PRP ( broken <b>" in shown
    assert view.locator("#orders img, #orders i, #orders b b").count() == 0
    view.keyboard.press("ArrowRight")
    assert view.locator("#orders .talk").count() == 0
    text = frame_text(replay, 0)
    assert f"  ENGLAND to RUSSIA: offers a deal {deal}\n" in text and "\x1b" not in text
