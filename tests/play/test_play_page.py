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
from support.clicks import drawn, province, unit
from support.players import Thinker
from support.search import searcher
from support.serving import Partner, reopened, seated, serving, viewer
from support.waiting import (
    until,  # the page's policy forbids what Playwright's wait_for_function does
)

from diplomacy_engine import Game, make_bot
from diplomacy_engine.play.session import Choices
from diplomacy_engine.press.press import PressRules

pytestmark = pytest.mark.usefixtures("compiled")
ROOT = Path(__file__).parents[2]
LONG_NAME = "runs/small__ppo_selfplay_diplomacy__1__1795273270"
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
NEAR = {"ENGLAND": ["A PAR", "A PIC"], "ITALY": ["A MAR", "A PIE"], "RUSSIA": ["A MUN"]}


def load(name):
    own = {LONG_NAME: lambda: make_bot("hold"), "thinker": Thinker}
    return own.get(name, lambda: make_bot(name))()


@pytest.fixture
def start(tmp_path):
    """Return a function that serves a game until the test ends; `letters` as for `seated`."""
    with ExitStack() as running:

        def start_(letters, game=None, player="hold", load=load, press=None, **record):
            file = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
            game = game or Game("small", max_years=3)
            session = seated(file, letters, game, player, load, press, **record)
            return running.enter_context(serving(session))

        yield start_


def at(map_name, units, **options):
    return Game.from_state(map_name, {"name": "S1901M", "units": units}, **options)


def chosen(page) -> list[str]:
    page.wait_for_selector("#submit")
    return page.evaluate("[...document.querySelectorAll('#units li')].map(li => li.innerText)")


def fits(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_whole_game_by_clicks_against_a_bot(start, open_page):
    """From the choice of the map and the players to the file that is downloaded."""
    choices = Choices(
        lambda *_: {"dumbbot": "a bot", "random": ""},
        maps=["three", "small"],
        new_game=lambda name: Game(name, max_years=3),
    )
    server = start(None, Game("three"), "dumbbot", choices=choices)
    session, page = server.session, open_page(server.link("host"))
    page.wait_for_selector("#seat-ITALY")
    page.select_option("#map", "small")
    page.wait_for_selector("#seat-ITALY", state="detached")
    assert page.locator("#setup select[name]").count() == 2
    page.select_option("#seat-RUSSIA", "me")  # so England is nobody's any more
    assert page.input_value("#seat-ENGLAND") == "dumbbot"
    page.click("#start")
    moved = built = 0
    for _ in range(60):
        page.wait_for_selector("#end, #continue, #submit, #next")
        if page.query_selector("#continue"):
            page.wait_for_selector("#results li")
            page.click("#continue")
        elif page.query_selector("#submit"):
            phase = session.game.phase
            for text in [*session.game.units["RUSSIA"]] * phase.endswith("M"):
                if page.get_attribute(f"#unit-{text.replace(' ', '-')}", "aria-pressed") == "false":
                    unit(page, text)
                page.wait_for_selector(".play-mark .reach", state="attached")
                marked = page.locator(".play-mark .reach").all()
                codes = [mark.get_attribute("data-mark") for mark in marked]
                centers = {"ANK", "ARM", "BUD", "BUL", "PAR", "POR", "ROM"}
                owned = set(session.game.centers["RUSSIA"])
                code = next((code for code in codes if code in centers - owned), codes[0])
                province(page, code)
                drawn(page, f"{text} - {code}")
                moved += 1
            if phase.endswith("A") and session.game.adjustments["RUSSIA"] > 0:
                province(page, "MOS")
                page.wait_for_selector("#board .built", state="attached")
                built += 1
            if moved == 2:  # in the middle of a phase
                before = chosen(page)
                page.reload()
                page.wait_for_selector("#submit")
                assert chosen(page) == before
            page.click("#submit")
            page.wait_for_selector("#continue, #end")
        elif page.query_selector("#end"):
            break
        else:
            page.click("#next")
    assert session.game.is_over and moved >= 4 and built >= 1
    assert page.inner_text("#title") == "Game over"
    page.reload()
    page.wait_for_selector("#end")
    with page.expect_download() as saved:
        page.click("#download")
    found = Game.from_saved_game(json.loads(saved.value.path().read_text()))
    played = [[(p["name"], p["orders"]) for p in g.history] for g in (found, session.game)]
    assert played[0] == played[1]


def test_supports_convoys_and_retreats_by_clicks(start, open_page):
    units = {"FRANCE": ["A MAR", "A PAR", "F MAO"], "GERMANY": ["A BUR"], "ENGLAND": ["A BRE"]}
    server = start("pphgppp", at("standard", units, max_years=9))
    page = open_page(server.link("host"))
    unit(page, "A PAR")
    province(page, "BUR")  # occupied by another power: still a move
    drawn(page, "A PAR - BUR")
    page.click("#unit-A-MAR")
    page.click("#mode-support")
    unit(page, "A PAR")
    province(page, "BUR")
    drawn(page, "A MAR S A PAR - BUR")
    page.click("#unit-F-MAO")
    page.click("#mode-convoy")
    province(page, "BRE")
    province(page, "SPA")
    drawn(page, "F MAO C A BRE - SPA")
    unit(page, "F MAO")
    page.click("#mode-move")
    province(page, "SPA")  # two coasts: the list asks
    page.click('[data-order="F MAO - SPA/SC"]')
    drawn(page, "F MAO - SPA/SC")
    page.click("#submit")
    page.wait_for_selector("#withdraw")
    given = server.session.game.orders["FRANCE"]
    assert given == ["A PAR - BUR", "A MAR S A PAR - BUR", "F MAO - SPA/SC"]
    guest = open_page(server.link("GERMANY"))
    guest.click("#submit")
    dislodged = guest.locator("#results li", has_text="dislodged")
    assert dislodged.inner_text().startswith("Army Burgundy: hold (no order)")
    assert dislodged.inner_text().endswith("dislodged by army Paris")
    assert "failed" not in dislodged.get_attribute("class"), "it may have done what it was told"
    guest.click("#continue")
    guest.click("#unit-A-BUR")
    guest.wait_for_selector(".play-mark .reach", state="attached")
    province(guest, "RUH")
    drawn(guest, "A BUR R RUH")
    guest.click("#submit")
    until(lambda: "Fall" in page.title())  # it notices by itself
    assert server.session.game.units["GERMANY"] == ["A RUH"]


def test_lists_keys_and_taking_back(start, open_page):
    server = start("hp")
    page = open_page(server.link("host"))
    for place in ("#unit-A-LON", '[data-order="A LON - PAR"]', "#submit"):
        page.focus(place)
        page.keyboard.press("Enter")
    page.wait_for_selector("#continue")
    assert page.inner_text("#title") == "Spring 1901, movement"
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#submit")
    assert page.inner_text("#title") == "Fall 1901, movement"
    page.keyboard.press("Home")
    drawn(page, "A LON - PAR")
    page.keyboard.press("End")
    page.wait_for_selector("#submit")
    page.click("#unit-A-PAR")
    page.keyboard.press("Escape")
    until(lambda: page.locator('[aria-pressed="true"]').count() == 0)
    page.click("#takeback")
    page.wait_for_selector("#unit-A-LON")
    assert server.session.game.phase == "S1901M" and "move to Paris" in page.inner_text("#units")
    other = open_page(server.link("host"))  # another browser: the server knows the orders
    other.wait_for_selector("#submit")
    assert "move to Paris" in other.inner_text("#units")


def test_hints(start, open_page):
    page = open_page(start("hp", player="thinker").link("host"))
    page.click("#hint")
    page.wait_for_selector("#hints")
    assert "Army London: hold 50%" in page.inner_text("#hints")
    said = "Chance of a solo: below 3%. Centers at the end: about 1."  # everybody holds
    until(lambda: page.inner_text("#expects") == said)
    page.click("#what summary")
    assert "England won 0 (5 centers win), and ended with 1.0" in page.inner_text("#what")
    page.wait_for_selector("#board .hinted .order", state="attached")
    marks = page.locator("#board .hinted .order").all()
    assert [mark.get_attribute("data-order") for mark in marks] == ["A LON H"]
    unit(page, "A LON")
    page.keyboard.press("m")
    assert "%" in page.inner_text("#choices .order >> nth=0")
    page.click("#fill")
    drawn(page, "A LON H")
    page.click("#hint")
    page.keyboard.press("Escape")
    unit(page, "A LON")
    province(page, "PAR")
    page.click("#hint")  # now there are orders to compare
    until(lambda: "your orders below 3%, these below 3%" in page.inner_text("#expects"))


def test_hints_of_a_search_show_what_it_tried(start, open_page):
    """Numbers are explained where there are some: for England it has found one order only."""
    found, shown = searcher("searcher", "dumbbot", "hold"), {}
    for letters in ("hp", "ph"):
        server = start(letters, player="searcher", load=lambda name: found)
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
    page = open_page(start("pphpppp", Game("standard", max_years=3)).link("host"))
    page.wait_for_selector("#hint")
    assert page.is_disabled("#hint"), "bots give none"
    page.allowed.append("400")
    page.fill("#typed", "A PAR - BUR; A MAR S A PAR - BUR")
    page.press("#typed", "Enter")
    drawn(page, "A MAR S A PAR - BUR")
    page.fill("#typed", "A MUN H; A PAR - PIC")
    page.press("#typed", "Enter")
    page.wait_for_selector("#mistyped:not(:empty)")
    drawn(page, "A PAR - PIC")  # the right one is kept
    assert "A MUN" in page.inner_text("#mistyped") and page.input_value("#typed") == "A MUN H"
    page.click("#unit-F-BRE")
    there = page.locator('#board .province[data-province="UKR"]').bounding_box()
    x, y = there["x"] + there["width"] / 2, there["y"] + there["height"] / 2
    page.mouse.click(x, y)
    assert page.inner_text("#say") == "Fleet Brest cannot move to Ukraine."
    told = page.locator("#say").bounding_box()
    assert abs(told["x"] + told["width"] / 2 - x) < 40
    assert -90 < told["y"] - y < 40, "at the click"


def test_a_support_takes_the_coast_and_old_phases_have_their_own_table(start, open_page):
    """And a third click does nothing, what attacked comes first, an offer stands in the list."""
    units = {"FRANCE": ["A BRE", "A GAS", "F MAO"], "GERMANY": ["A PAR"], "RUSSIA": ["F STP/SC"]}
    centers = {"FRANCE": ["BRE"], "GERMANY": ["PAR", "MUN"], "RUSSIA": ["STP"]}
    state = {"name": "F1901M", "units": units, "centers": centers}
    server = start("ppggphp", Game.from_state("standard", state, max_years=3))
    russia, page = open_page(server.link("host")), open_page(server.link("FRANCE"))
    russia.wait_for_selector("#submit")
    assert "Fleet St Petersburg/SC" in russia.inner_text("#units")
    unit(page, "F MAO")
    province(page, "SPA")
    page.click('#flyout [data-offer="F MAO - SPA/SC"]')
    page.click("#unit-A-GAS")
    page.click("#mode-support")
    unit(page, "F MAO")
    province(page, "SPA")
    drawn(page, "A GAS S F MAO - SPA/SC")
    province(page, "SPA")
    assert page.locator("#say.bad").count() == 0, "clicked again"
    page.click("#unit-A-BRE")
    page.keyboard.press("v")
    page.click('#choices [data-order="A BRE - POR VIA"]')
    page.wait_for_selector('#panel [data-offer="F MAO C A BRE - POR"]')
    page.click('[aria-label="Delete A BRE - POR VIA"]')
    server.session.submit(viewer(server.session, "GERMANY"), 0, ["A PAR - BRE"])
    page.click("#submit")
    russia.click("#submit")
    page.wait_for_selector("#results li")
    first = page.locator("#results h3").all_inner_texts()[:2]
    assert first == ["France", "Germany"]
    france = page.locator("#powers tbody tr").nth(2).locator("td")
    until(lambda: france.all_inner_texts()[1:] == ["1", "3"])
    page.click("#last")
    until(lambda: france.all_inner_texts()[1:] == ["2", "3"])


def test_boxes_of_weight_the_sea_and_a_notice_for_who_wants_it(start, open_page):
    (game := Game("small", max_years=3)).take_up_talk("offers", 2, True)
    page = open_page(start("hp", game, press=PressRules("offers", 2)).link("host"))
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


def test_a_sandbox_from_the_game_and_back(start, open_page):
    """A power that is done, or has nothing to order, is no dead end."""
    server = start("hp", player="thinker")
    page = open_page(server.link("host"))
    page.click("#try")
    page.wait_for_selector("#as-ENGLAND[aria-pressed=true]")
    page.click("#submit")
    page.wait_for_selector("#as-RUSSIA[aria-pressed=true]")
    page.click("#as-ENGLAND")
    page.wait_for_selector("#withdraw")
    page.click("#as-RUSSIA")
    page.click("#submit")
    page.wait_for_selector("#continue")
    page.click("#to-game")
    page.wait_for_selector("#try")
    assert page.inner_text("#title") == "Spring 1901, movement"
    assert "Your turn" in page.inner_text("#panel") and server.session.now.step == 0


def test_a_double_click_gives_one_order_and_focus_stays(start, open_page):
    """And the results list those who hold, beside the board."""
    page = open_page(start("pphpppp", Game("standard", max_years=3)).link("host"))
    page.click("#unit-A-PAR")
    page.dblclick('#choices [data-order="A PAR - BUR"]')
    drawn(page, "A PAR - BUR")
    assert page.locator("#board [data-order]").count() == 1, "nothing for the next unit"
    page.click("#unit-A-MAR")
    top = page.locator("#unit-A-PAR").bounding_box()["y"]
    page.click('#choices [data-order="A MAR - SPA"]')
    assert page.evaluate("document.activeElement.id") == "unit-F-BRE", "where one works"
    assert page.locator('#units [aria-pressed="true"]').count() == 0, "nothing selects itself"
    page.keyboard.press("Enter")
    page.click("#mode-hold")
    assert page.evaluate("document.activeElement.id") == "submit"
    assert page.locator("#unit-A-PAR").bounding_box()["y"] == top, "nothing jumps"
    page.dblclick("#submit")
    page.wait_for_selector("#results li")
    assert page.inner_text("#title") == "Spring 1901, movement", "the results are not skipped"
    assert page.evaluate("document.activeElement.id") == "continue"
    shown = page.inner_text("#results")
    assert "Army Paris: move to Burgundy" in shown and shown.count("hold") == 20
    page.locator("#results li").last.scroll_into_view_if_needed()
    box, height = page.locator("#board svg").bounding_box(), page.evaluate("innerHeight")
    assert box["y"] >= 0 and box["y"] + box["height"] <= height
    page.click("#signs summary")
    assert page.locator("#signs svg").count() == page.locator("#signs li").count() >= 10
    assert page.locator("#chart .series").count() == 7
    page.click("#past summary")
    page.wait_for_selector("#past section")
    assert "Army Paris: move to Burgundy" in page.inner_text("#past")


def test_people_at_several_links(start, open_page):
    server = start("hg")
    host, guest, watcher = (open_page(server.link(who)) for who in ("host", "RUSSIA", "watch"))
    assert server.link("RUSSIA") in [box.input_value() for box in host.locator(".row input").all()]
    watcher.wait_for_selector(".waiting")
    assert watcher.locator("#submit, #takeback, #more details").count() == 0
    host.click("#submit")
    host.wait_for_selector(".waiting")
    assert host.inner_text(".waiting") == "Waiting for Russia…"
    assert "Units without orders hold" in host.inner_text("#panel")
    host.click("#withdraw")
    host.wait_for_selector("#submit")
    host.click("#submit")
    host.wait_for_selector("#withdraw")
    guest.click("#submit")
    for page in (host, guest, watcher):
        page.wait_for_selector("#continue")
    assert server.session.now.step == 1


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


@pytest.mark.parametrize(("scheme", "size"), [("light", {}), ("dark", PHONE)])
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
            """async ([address, token]) => {
            const body = JSON.stringify({step: 0, orders: ["A LON - PAR"]});
            const ways = [
                {headers: {"X-Play-Token": token}},
                {headers: {"X-Play-Token": token}, method: "POST", body},
                {method: "POST", body, credentials: "include"},
                {method: "POST", body, mode: "no-cors"},
            ];
            const seen = [];
            for (const path of ["api/game", "api/orders", "play.js"])
                for (const way of ways)
                    try { seen.push(await (await fetch(address + path, way)).text()); }
                    catch (error) { seen.push("blocked"); }
            const frame = document.createElement("iframe");
            frame.src = address + "#" + token;
            document.body.append(frame);
            await new Promise(done => { frame.onload = done; setTimeout(done, 1500); });
            try { seen.push(frame.contentDocument?.body?.innerText ?? "blocked"); }
            catch (error) { seen.push("blocked"); }
            return seen;
            }""",
            [server.address, server.session.tokens["host"]],
        )
        foreign.shutdown()
    assert set(found) <= {"blocked", ""}
    assert server.session.now.step == 0 and server.session.game.orders == {}


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


def test_two_people_make_a_deal_by_clicks(start, open_page):
    """An offer of support, peace and a closed province; locks on bound units; a reason.

    What a player says is text, and nothing in it is markup.
    """
    partner, rules = Partner(), PressRules("offers", 4)
    partner.said = ["Peace? <img src=x onerror=\"document.title='bad'\"><b>Yes</b>"]
    game = at("three", NEAR, max_years=3)
    game.take_up_talk("offers", 4)
    server = start("hgp", game, "partner", lambda name: partner, rules)
    host, guest = open_page(server.link("host")), open_page(server.link("ITALY"), **PHONE)
    host.wait_for_selector("#heard")
    assert "<b>Yes</b>" in host.inner_text("#heard")
    assert host.locator("#heard img").count() == 0 and host.title() != "bad"
    host.click("#partner-ITALY")
    assert "Choose your orders first" in host.inner_text("#composer")
    host.click("#unit-A-PAR")
    province(host, "GAS")
    host.click('[data-support="A MAR S A PAR - GAS"]')
    host.click("#offer-peace")
    host.click("#close")
    province(host, "BEL")
    host.select_option("#closed-BEL", "they")
    host.click("#send-offer")
    host.wait_for_selector("#sent")
    guest.wait_for_selector("#offers")
    assert "Italy keeps out of Belgium" not in guest.inner_text("#offers")
    assert "you keep out of Belgium" in guest.inner_text("#offers")
    assert guest.inner_text("#open-offers") == "An offer waits for your answer."
    guest.click("#open-offers a")
    guest.click("#accept-1")
    guest.wait_for_selector("#unit-A-MAR .lock")
    assert guest.inner_text("#unit-A-MAR").split("\n")[-1] == "support army Paris to Gascony"
    host.wait_for_selector("#deals")
    assert "Army Marseilles: support army Paris to Gascony" in host.inner_text("#deals")
    host.wait_for_selector(".play-lock", state="attached")
    host.click("#unit-A-PAR")
    assert host.locator("#choices .order").count() == 1
    assert "Bound by your deal with Italy" in host.inner_text("#choices")
    host.click("#partner-ITALY")
    host.click("#offer-peace")
    host.select_option("#close-list", "GAS")
    host.click("#send-offer")
    host.wait_for_selector("#sent")
    guest.allowed.append("400")
    guest.click("#accept-2")
    guest.wait_for_selector("#refused")
    assert "contradicts a promise" in guest.inner_text("#refused")
    guest.click("#decline-2")
    guest.wait_for_selector("#offers", state="detached")
    assert fits(guest)
    host.click("#partner-ITALY")
    host.fill("#words", "Sorry <b>about</b> that")
    host.click("#write")
    guest.wait_for_selector("#heard")
    assert "England to Italy: Sorry <b>about</b> that" in guest.inner_text("#heard")
    host.click("#submit")
    guest.click("#submit")
    guest.wait_for_selector("#said")
    assert "England to Italy: offers a deal (Army Paris: move to Gascony" in guest.inner_text(
        "#said"
    )
    assert server.session.game.units["ENGLAND"] == ["A GAS", "A PIC"]


def test_people_vote_for_a_draw_and_concede_by_clicks(start, open_page):
    server = start("hgg", Game("three", max_years=3, draw_votes=True))
    session, host = server.session, open_page(server.link("host"))
    guest = open_page(server.link("ITALY"), **PHONE)
    host.click("#vote")
    until(lambda: "1 of 3 for a draw" in guest.inner_text("#votes"))
    assert guest.get_attribute("#vote", "aria-pressed") == "false"
    host.click("#vote[aria-pressed=true]")
    until(lambda: "0 of 3 for a draw" in guest.inner_text("#votes"))
    assert fits(guest) and guest.locator("#vote").bounding_box()["height"] >= 36
    guest.tap("#give-up")
    guest.tap("#keep-on")
    assert not session.game.conceded
    guest.tap("#give-up")
    guest.tap("#concede")
    until(lambda: "conceded" in host.inner_text("#powers"))
    assert guest.locator("#votes *").count() == 0
    host.click("#vote")
    until(lambda: session.game.votes == ["ENGLAND"])
    session.vote(viewer(session, "RUSSIA"), 0, True)
    host.wait_for_selector("#said li")
    assert "England votes for a draw" in host.inner_text("#said")
    host.click("#last")
    host.wait_for_selector("#end")
    assert host.inner_text("#end") == "The game ends in a draw, agreed by England and Russia."


def test_a_pasted_position_begins_a_game(start, open_page):
    server = start(None, Game("standard"), "thinker", opponents=["thinker", "hold"])
    page = open_page(server.link("host"), **PHONE)
    page.click("#paste summary")
    page.evaluate("document.getElementById('pasted').value = 'x'.repeat(200000)")
    page.click("#take")
    assert "--resume FILE" in page.inner_text("#taken"), "what is too long is not sent"
    page.allowed.append("400 (Bad Request)")
    page.fill("#pasted", "Fall 1902\nFrance: A Par, F Atlantis")
    page.click("#take")
    until(lambda: "Atlantis" in page.inner_text("#taken"))
    page.fill("#pasted", "Fall 1902\nFrance: A Par, F Bre\nGermany: A Mun, F Hol\n")
    page.click("#take")
    until(lambda: "The game will begin from this position" in page.inner_text("#taken"))
    page.wait_for_selector('#board [data-unit="F HOL"]')
    assert page.inner_text("#title") == "Fall 1902, movement" and fits(page)
    page.fill("#pasted", "Spring 1901\nFrance: A Par-Bur, A Mar-Mos")
    page.click("#take")
    until(lambda: "A Mar-Mos" in page.inner_text("#taken"))
    page.select_option("#seat-FRANCE", "me")
    page.click("#start")
    page.click("#hint")
    page.wait_for_selector("#hints")
    assert fits(page) and len(chosen(page)) == 3
    page.click("#first")
    page.wait_for_selector("#results li")
    drawn(page, "A PAR - BUR")
