"""What the page itself decides, in a real browser: by clicks, by keys, on a phone, by several."""

import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from support.clicks import PHONE, drawn, fits, province, unit, walk
from support.players import Thinker
from support.search import searcher
from support.serving import Partner, reopened, seated, serving
from support.tables import read_text, slow_but
from support.waiting import (
    until,  # the page's policy forbids what Playwright's wait_for_function does
)

from diplomacy_engine import Game, make_bot
from diplomacy_engine.play.session import Choices

pytestmark = pytest.mark.usefixtures("compiled")
ROOT = Path(__file__).parents[2]
LONG_NAME = "runs/small__ppo_selfplay_diplomacy__1__1795273270"
WAR = {"FRANCE": ["A MAR", "A PAR", "F MAO"], "GERMANY": ["A BUR"], "ENGLAND": ["A BRE"]}
COASTS = "standard F1901M; FRANCE A BRE, A GAS, F MAO = BRE; GERMANY A PAR = PAR MUN; "
COASTS += "RUSSIA F STP/SC = STP"
NEAR = {"ENGLAND": ["A PAR", "A PIC"], "ITALY": ["A MAR", "A PIE"], "RUSSIA": ["A MUN"]}


def load(name):
    own = {LONG_NAME: lambda: make_bot("hold"), "thinker": Thinker}
    return own.get(name, lambda: make_bot(name))()


@pytest.fixture
def start(tmp_path):
    """Return a function that serves a game until the test ends; `letters` as for `seated`."""
    with ExitStack() as running:

        def start_(letters, game=None, player="hold", load=load, **record):
            file = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
            game = game or Game("small", max_years=3)
            session = seated(file, letters, game, player, load, **record)
            return running.enter_context(serving(session))

        yield start_


def at(map_name, units, **options):
    return Game.from_state(map_name, {"name": "S1901M", "units": units}, **options)


def chosen(page) -> list[str]:
    page.wait_for_selector("#submit")
    return page.evaluate("[...document.querySelectorAll('#units li')].map(li => li.innerText)")


# Walk of texts/walks.txt -> how its game begins.
WALKS = {
    "supports, convoys and retreats by clicks": ("pphgppp", at("standard", WAR, max_years=9)),
    "lists, keys and taking back": ("hp",),
    "hints": ("hp", None, "thinker"),
    "a support takes the coast and old phases have their own table": (
        "ppggphp",
        Game.from_position(COASTS, max_years=3),
    ),
    "a sandbox from the game and back": ("hp", None, "thinker"),
    "people vote for a draw and concede by clicks": (
        "hgg",
        Game("three", max_years=3, draw_votes=True),
    ),
    "a pasted position begins a game": (None, Game("standard"), "thinker"),
}


QUICK_WALKS = ("lists, keys and taking back", "hints")


@pytest.mark.parametrize("name", slow_but(QUICK_WALKS, WALKS))
def test_a_walk(name, start, open_page):
    server = start(*WALKS[name], opponents=["thinker", "hold"])
    walk(__file__, name, server=server, open_page=open_page)


def test_a_whole_game_by_clicks_against_a_bot(start, open_page):
    """From the choice of the map and the players to the file that is downloaded."""
    choices = Choices(
        lambda *_: {"dumbbot": "a bot", "random": ""},
        maps=["three", "small"],
    )
    server = start(None, Game("three", max_years=2), "dumbbot", choices=choices)
    session = server.session
    page = walk(__file__, "a whole game by clicks", server=server, open_page=open_page)
    with page.expect_download() as saved:
        page.click("#download")
    found = Game.from_saved_game(json.loads(saved.value.path().read_text()))
    played = [[(p["name"], p["orders"]) for p in g.history] for g in (found, session.game)]
    assert played[0] == played[1]


def test_a_review_says_that_there_is_nothing_to_review(start, open_page):
    page = open_page(start("hp").link("host"))
    page.click("#give-up")
    page.click("#concede")
    page.click("#continue")
    page.click("#ask-review")
    page.wait_for_selector('#review:has-text("There is no decision to review.")')


def test_what_was_promised_for_a_phase_is_chosen_as_it_begins(start, open_page):
    game = at("three", NEAR, max_years=3, press="offers")
    game.accept("ITALY", game.offer("ENGLAND", "ITALY", ours=["A PAR - GAS"], phase="F1901M"))
    page = open_page(start("hpp", game).link("host"))
    page.click("#submit")
    page.click("#continue")
    drawn(page, "A PAR - GAS")


@pytest.mark.slow
def test_hints_of_a_search_show_what_it_tried(start, open_page):
    """Numbers are explained where there are some: for England it has found one order only."""
    shown = {}
    for letters in ("hp", "ph"):  # each with a search of its own: the first still plays on
        load = lambda name: searcher("searcher", "dumbbot", "hold")  # noqa: E731
        server = start(letters, player="searcher", load=load)
        page = open_page(server.link("host"), **PHONE)
        page.click("#hint")
        page.wait_for_selector("#candidates")
        shown[letters] = page.inner_text("#hints")
        assert "What looking ahead found" in shown[letters] and fits(page)
        if letters == "hp":
            page.click("#hints summary >> nth=0")
            expected = page.inner_text("#expected")
            first = page.locator("#candidates button").first
            assert first.get_attribute("aria-pressed") == "true"
            order = first.get_attribute("data-orders")
            first.click()
            drawn(page, order)
    assert "Russia, who plays like dumbbot (50%) or hold (50%): Army Moscow: " in expected
    assert "nothing to compare" in shown["hp"] and "Each number is" not in shown["hp"]
    assert "Each number is" in shown["ph"] and "2.000" in shown["ph"]


def test_orders_are_typed_and_a_wrong_click_is_answered_where_it_was(start, open_page):
    server = start("pphpppp", Game("standard", max_years=3))
    page = walk(__file__, "orders are typed", server=server, open_page=open_page)
    there = page.locator('#board .province[data-province="UKR"]').bounding_box()
    x, y = there["x"] + there["width"] / 2, there["y"] + there["height"] / 2
    page.mouse.click(x, y)
    assert page.inner_text("#say") == "Fleet Brest cannot move to Ukraine."
    told = page.locator("#say").bounding_box()
    assert abs(told["x"] + told["width"] / 2 - x) < 40
    assert -90 < told["y"] - y < 40, "at the click"


@pytest.mark.slow
def test_boxes_of_weight_the_sea_and_a_notice_for_who_wants_it(start, open_page):
    game = Game("small", max_years=3, press="offers", press_rounds=2)
    page = open_page(start("hp", game).link("host"))
    page.wait_for_selector("#submit")
    boxes = """[...document.querySelectorAll("#right > div")].filter((div) =>
        div.offsetHeight && getComputedStyle(div).borderTopWidth !== "0px").map(({ id }) => id)"""
    assert page.evaluate(boxes) == ["panel", "talk", "powers", "foot"]
    page.click("#partners button")
    assert "Russia does not read words." in page.inner_text("#talk")
    sea = """[getComputedStyle(document.getElementById("board")).backgroundColor,
        getComputedStyle(document.querySelector("#board .water")).fill]"""
    assert len(set(page.evaluate(sea))) == 1
    assert page.get_attribute("#notice", "aria-pressed") == "false"
    page.context.grant_permissions(["notifications"])
    page.click("#notice")
    page.wait_for_selector("#notice[aria-pressed=true]")
    page.click("#submit")  # a sound once it is the next turn
    page.wait_for_selector("#continue")


@pytest.mark.slow
def test_a_double_click_gives_one_order_and_focus_stays(start, open_page):
    """And the results list those who hold, beside the board."""
    server = start("pphpppp", Game("standard", max_years=3))
    page = walk(__file__, "a double click gives one order", server=server, open_page=open_page)
    top = page.locator("#unit-A-PAR").bounding_box()["y"]
    walk(__file__, "and focus stays", page)
    assert page.locator("#unit-A-PAR").bounding_box()["y"] == top, "nothing jumps"
    walk(__file__, "the results list those who hold, beside the board", page)
    assert page.inner_text("#results").count("hold") == 20
    page.locator("#results li").last.scroll_into_view_if_needed()
    box, height = page.locator("#board svg").bounding_box(), page.evaluate("innerHeight")
    assert box["y"] >= 0 and box["y"] + box["height"] <= height
    walk(__file__, "signs, chart and past", page)
    assert page.locator("#signs svg").count() == page.locator("#signs li").count() >= 10


@pytest.mark.slow
def test_people_at_several_links(start, open_page):
    server = start("hg")
    host = open_page(server.link("host"))
    host.wait_for_selector(".row input", state="attached")
    assert server.link("RUSSIA") in [box.input_value() for box in host.locator(".row input").all()]
    walk(__file__, "people at several links", host, server, open_page)


@pytest.mark.slow
def test_watching_goes_on_by_itself_at_the_chosen_speed(start, open_page):
    """It can be paused, looked back at by the address, and goes on to the end."""
    server, times = start("pp", Game("small", max_years=3)), []
    page, session = open_page(server.link("host")), server.session
    play = session._play_phase
    session._play_phase = lambda: (times.append(time.monotonic()), play())
    page.click("#next")
    page.click("#continue")
    page.select_option("#speed", "2000")
    page.click("#play")
    until(lambda: session.now.step > 3)
    page.click("#play[aria-pressed=true]")
    assert min(np.diff(times[1:])) > 1.9
    page.wait_for_selector("#continue")
    reached = session.now.step
    page.wait_for_timeout(2_300)
    assert session.now.step <= reached + 1 and not session.game.is_over
    page.keyboard.press("Home")
    until(lambda: page.evaluate("location.hash").endswith("/S1901M"))
    page.click("#share summary")
    page.click("#copy-link")
    link = page.input_value("#shared")
    assert link == f"{server.link('watch')}/S1901M", "of nobody's seat"
    other = open_page(link)
    other.wait_for_selector("#results")
    assert other.inner_text("#title") == "Spring 1901, movement"
    other.evaluate("location.hash = location.hash.replace('S1901M', 'F1901M')")
    until(lambda: other.inner_text("#title") == "Fall 1901, movement")
    page.click("#last")
    page.select_option("#speed", "300")
    page.click("#play")
    until(lambda: page.title().startswith("Game over"))
    assert session.game.is_over and min(np.diff(times)) < 1.5


@pytest.mark.slow
def test_a_lost_connection_and_a_killed_server_lose_nothing(tmp_path, open_page):
    """Orders that were chosen, and those sent while nobody was there, count once."""
    file = tmp_path / "game.jsonl"
    words = "play --map small --against hold --power ENGLAND --port 0 --save"
    command = [sys.executable, "-m", "diplomacy_engine", *words.split(), str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            link = process.stdout.readline().split()[-1]
            page = open_page(link)
            page.allowed = ["net::ERR_"]  # whatever a killed server looks like
            unit(page, "A LON")
            province(page, "PAR")
            drawn(page, "A LON - PAR")
        finally:
            process.kill()
    page.click("#submit")
    page.wait_for_selector("#connection:visible")
    assert "connection" in page.inner_text("#connection")
    session = reopened(file)
    with serving(session, port=urlsplit(link).port) as server:
        assert server.link("host") == link
        page.wait_for_selector("#continue")
        page.wait_for_selector("#connection", state="hidden")
    assert session.game.units["ENGLAND"] == ["A PAR"] and session.now.step == 1


@pytest.mark.parametrize(
    ("scheme", "size"), [pytest.param("light", {}, marks=pytest.mark.slow), ("dark", PHONE)]
)
def test_light_dark_and_phone(start, open_page, scheme, size):
    server = start("pphpppp", Game("standard", max_years=3), LONG_NAME)
    page = open_page(server.link("host"), color_scheme=scheme, **size)
    page.click("#unit-A-PAR")
    page.wait_for_selector(".play-mark .reach", state="attached")
    ground, ink, sea = page.evaluate(
        """[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
        getComputedStyle(document.querySelector('#board .province.sea')).fill]"""
    )
    bright = [sum(map(int, text[4:-1].split(","))) / 765 > 0.5 for text in (ground, ink, sea)]
    assert bright == [scheme == side for side in ("light", "dark", "light")]
    assert fits(page)
    heights = [button.bounding_box()["height"] for button in page.locator("button:visible").all()]
    assert min(heights) >= 36, "to be hit with a thumb"
    board = page.locator("#board svg").bounding_box()
    assert board["width"] >= 0.9 * min(page.evaluate("innerWidth"), 800)
    paris = page.locator('#board [data-unit="A PAR"]').bounding_box()
    frame = page.locator("#board").bounding_box()
    for side, length in (("x", "width"), ("y", "height")):
        assert frame[side] <= paris[side] <= frame[side] + frame[length] - paris[length]
    label = page.locator("#board .labels .label").first
    letters = float(label.evaluate("e => parseFloat(getComputedStyle(e).fontSize)"))
    assert letters * board["width"] / 1200 >= 10, "names can be read, on a phone too"
    table, frame = (page.locator(f"#powers{part}").bounding_box() for part in (" table", ""))
    assert table["x"] + table["width"] <= frame["x"] + frame["width"]
    if size:
        page.tap("#zoom-in")
        assert page.locator("#board svg").bounding_box()["width"] > 1.4 * board["width"]
        assert fits(page)
        page.tap('#choices [data-order="A PAR - BUR"]')
        drawn(page, "A PAR - BUR")


class _Foreign(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel=icon href=data:,><p>elsewhere</p>")

    def log_message(self, *_):
        pass


def test_a_wrong_link_says_so_and_a_page_of_another_origin_gets_nothing(start, open_page):
    """The other one knows the address and even a token, and tries all that a browser lets it."""
    server = start("hp")
    page = open_page(f"{server.address}#{'x' * 24}")
    page.allowed = ["401"]
    page.wait_for_selector("#connection:visible")
    assert page.inner_text("#connection") == "This link is not one of this game's."
    assert "incomplete" in open_page(server.address).inner_text("#say")
    with HTTPServer(("127.0.0.1", 0), _Foreign) as foreign:
        threading.Thread(target=foreign.serve_forever, args=(0.02,)).start()
        page = open_page(f"http://localhost:{foreign.server_address[1]}/")
        page.allowed = ["CORS", "Failed to load", "frame", "403", "blocked", "Refused"]
        found = page.evaluate(
            read_text(__file__, "foreign.js"),
            [server.address, server.session.tokens["host"]],
        )
        foreign.shutdown()
    assert set(found) <= {"blocked", ""}
    assert server.session.now.step == 0 and server.session.game.orders == {}


@pytest.mark.slow
def test_the_page_says_whom_it_waits_for(start, open_page):
    """And no longer once it goes on, though an answer to that question comes late."""
    go_on, late = threading.Event(), []

    class Slow:
        name = "slow"

        def act(self, games, decisions):
            assert go_on.wait(30)
            return make_bot("hold").act(games, decisions)

    page = open_page(start("hp", player="slow", load=lambda name: Slow()).link("host"))
    try:
        page.click("#submit")
        until(lambda: "Waiting for slow (Russia)" in page.inner_text("#say"))
        page.route("**/api/waiting", lambda route: late.append(route))
        until(lambda: page.inner_text("#say") and late)
    finally:
        go_on.set()
    until(lambda: "Waiting" not in page.inner_text("#say"))
    for route in late:
        route.fulfill(json={"asking": {"slow": ["RUSSIA"]}})
    page.wait_for_timeout(300)
    assert "Waiting" not in page.inner_text("#say")


@pytest.mark.slow
def test_two_people_make_a_deal_by_clicks(start, open_page):
    partner = Partner()
    partner.said = ["Peace? <img src=x onerror=\"document.title='bad'\"><b>Yes</b>"]
    game = at("three", NEAR, max_years=3, press="offers")
    server = start("hgp", game, "partner", lambda name: partner)
    walk(__file__, "two people make a deal by clicks", server=server, open_page=open_page)
