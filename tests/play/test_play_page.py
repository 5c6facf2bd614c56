"""The page of a game in a real browser: by clicks, by keys, on a phone, by several people."""

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from support.language import FakeServer, holds, raw, silence, status
from support.search import searcher
from support.serving import serving
from support.waiting import (
    until,  # the page's policy forbids what Playwright's wait_for_function does
)

from diplomacy_engine.extras.language.remote import RemotePlayer
from diplomacy_engine.extras.language.settings import settings_of
from diplomacy_engine.extras.language.talker import Talker
from diplomacy_engine.games.game import Game
from diplomacy_engine.play.file import GUEST, HOST, PLAYER, Seat, read_session
from diplomacy_engine.play.session import PlaySession
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.players.protocols import Explanation
from diplomacy_engine.press.press import PressRules

pytestmark = pytest.mark.usefixtures("compiled")
ROOT = Path(__file__).parents[2]
LONG_NAME = "runs/small__ppo_selfplay_diplomacy__1__1795273270"
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


class Thinker:
    """Holds, and finds the last order of every list the likeliest."""

    name = "thinker"
    settings: ClassVar[dict] = {"reward_mix": "", "reward": "sum_of_squares"}

    def act(self, games, decisions):
        return make_bot("hold").act(games, decisions)

    def explain(self, games, decisions):
        shares = np.full(len(decisions.order), 0.01, np.float32)
        shares[decisions.order_start[1:] - 1] = 0.9
        return Explanation(shares, np.full(decisions.count, 1.25, np.float32))


def load(name):
    if name == LONG_NAME:
        return make_bot("hold")
    return Thinker() if name == "thinker" else make_bot(name)


@pytest.fixture
def start(tmp_path):
    """Return a function that serves a game until the test ends; seats as in SEATS."""
    running = []

    def start_(game, opponents=("hold",), seats=None, load=load, press=None):
        file = tmp_path / f"game{len(running)}.jsonl"
        server = serving(PlaySession(game, file, list(opponents), load, seats, press=press))
        running.append(server)
        return server.__enter__()

    yield start_
    for server in running:
        server.__exit__(None, None, None)


def seats(game: Game, *people: str, player: str = "hold") -> dict[str, Seat]:
    """Return seats: the first of `people` hosts, the others are guests."""
    kinds = {power: Seat(HOST if n == 0 else GUEST) for n, power in enumerate(people)}
    return {power: kinds.get(power, Seat(PLAYER, player)) for power in game.powers}


def unit(page, text: str) -> None:
    page.locator(f'#board [data-unit="{text}"]').click()


def province(page, code: str) -> None:
    """Click inside a province, beside what may stand there."""
    page.locator(f'#board .province[data-province="{code}"]').dispatch_event(
        "click", {"bubbles": True}
    )


def chosen(page) -> list[str]:
    page.wait_for_selector("#submit")
    return page.evaluate("[...document.querySelectorAll('#units li')].map(li => li.innerText)")


def orders_on_board(page) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('#board [data-order]')].map(o => o.dataset.order)"
    )


def test_a_whole_game_by_clicks_against_a_bot(start, open_page):
    game = Game("small", max_years=3)
    server = start(game, ["dumbbot"])
    page = open_page(server.link("host"))
    page.wait_for_selector("#setup select")
    assert page.locator("#setup select").count() == 2
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
            decision = server.session.now.step, server.session.game.phase
            for text in [*server.session.game.units["RUSSIA"]] * decision[1].endswith("M"):
                if page.get_attribute(f"#unit-{text.replace(' ', '-')}", "aria-pressed") == "false":
                    unit(page, text)
                page.wait_for_selector(".play-mark .reach", state="attached")
                marked = page.locator(".play-mark .reach").all()
                codes = [mark.get_attribute("data-mark") for mark in marked]
                centers = {"ANK", "ARM", "BUD", "BUL", "PAR", "POR", "ROM"}
                owned = set(server.session.game.centers["RUSSIA"])
                code = next((code for code in codes if code in centers - owned), codes[0])
                province(page, code)
                page.wait_for_selector(f'#board [data-order="{text} - {code}"]', state="attached")
                moved += 1
            if decision[1].endswith("A") and server.session.game.adjustments["RUSSIA"] > 0:
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
    assert server.session.game.is_over and moved >= 4 and built >= 1
    assert page.inner_text("#title") == "Game over"
    page.reload()
    page.wait_for_selector("#end")
    with page.expect_download() as saved:
        page.click("#download")
    found = json.loads(saved.value.path().read_text())
    assert _played(Game.from_saved_game(found)) == _played(server.session.game)


def test_a_whole_game_against_a_language_model_whose_server_misbehaves(start, open_page):
    """The page tells whom it waits for, and whatever the server does the game goes on."""
    bad = [status(500), lambda handler: None, raw(b"no JSON"), "A PAR - MOS", "", "{"]
    stalled = 0  # this request is never answered

    def reply(body, number):
        if number == stalled:
            return silence(4)
        return holds(body) if number % 2 else bad[number // 2 % len(bad)]

    game = Game("small", max_years=4)
    with FakeServer(reply) as server:
        facts = {"model": "m", "base_url": server.url, "timeout": 3, "retries": 0, "reasks": 1}
        name = "llm:model.toml"
        model = RemotePlayer(name, settings_of(facts, "test"))
        play = start(game, [name], seats(game, "ENGLAND", player=name), lambda _: model)
        page = open_page(play.link("host"))
        waited = False
        for _ in range(40):
            page.wait_for_selector("#end, #continue, #submit, #next")
            if page.query_selector("#end"):
                break
            button = next(n for n in ("#continue", "#submit", "#next") if page.query_selector(n))
            page.click(button)
            if not waited:
                until(lambda: "Waiting for llm:model.toml (Russia)…" in page.inner_text("body"))
                waited = True
            if button != "#continue":
                page.wait_for_selector("#continue, #end")
    assert waited and play.session.game.is_over and not play.session.trouble
    counts = model.counts()
    assert counts["timed_out"] == 1 and counts["fell_back"] > 0 and counts["legal_at_once"] > 0
    assert counts["requests"] == len(server.requests)


def _played(game: Game) -> list[tuple]:
    return [(phase["name"], phase["orders"], phase["results"]) for phase in game.history]


def test_supports_convoys_and_retreats_by_clicks(start, open_page):
    units = {"FRANCE": ["A MAR", "A PAR", "F MAO"], "GERMANY": ["A BUR"], "ENGLAND": ["A BRE"]}
    game = Game.from_state("standard", {"name": "S1901M", "units": units}, max_years=9)
    server = start(game, seats=seats(game, "FRANCE", "GERMANY"))
    page = open_page(server.link("host"))
    unit(page, "A PAR")
    province(page, "BUR")  # occupied by another power: still a move
    page.wait_for_selector('#board [data-order="A PAR - BUR"]', state="attached")
    page.click("#unit-A-MAR")
    page.click("#mode-support")
    unit(page, "A PAR")
    province(page, "BUR")
    page.wait_for_selector('#board [data-order="A MAR S A PAR - BUR"]', state="attached")
    page.click("#unit-F-MAO")
    page.click("#mode-convoy")
    province(page, "BRE")
    province(page, "SPA")
    page.wait_for_selector('#board [data-order="F MAO C A BRE - SPA"]', state="attached")
    unit(page, "F MAO")
    page.click("#mode-move")
    province(page, "SPA")  # two coasts: the list asks
    page.click('[data-order="F MAO - SPA/SC"]')
    page.wait_for_selector('#board [data-order="F MAO - SPA/SC"]', state="attached")
    page.click("#submit")
    page.wait_for_selector("#withdraw")
    assert server.session.game.orders["FRANCE"] == [
        "A PAR - BUR",
        "A MAR S A PAR - BUR",
        "F MAO - SPA/SC",
    ]
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
    guest.wait_for_selector('#board [data-order="A BUR R RUH"]', state="attached")
    guest.click("#submit")
    until(lambda: "Fall" in page.title())  # it notices by itself
    assert server.session.game.units["GERMANY"] == ["A RUH"]


def test_lists_and_keys_are_enough(start, open_page):
    game = Game("small", max_years=3)
    server = start(game, seats=seats(game, "ENGLAND"))
    page = open_page(server.link("host"))
    page.focus("#unit-A-LON")
    page.keyboard.press("Enter")
    page.focus('[data-order="A LON - PAR"]')
    page.keyboard.press("Enter")
    page.focus("#submit")
    page.keyboard.press("Enter")
    page.wait_for_selector("#continue")
    assert page.inner_text("#title") == "Spring 1901, movement"
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#submit")
    assert page.inner_text("#title") == "Fall 1901, movement"
    page.keyboard.press("Home")
    page.wait_for_selector('#board [data-order="A LON - PAR"]', state="attached")
    page.keyboard.press("End")
    page.wait_for_selector("#submit")
    page.click("#unit-A-PAR")
    page.keyboard.press("Escape")
    assert page.locator('[aria-pressed="true"]').count() == 0
    page.click("#takeback")
    page.wait_for_selector("#unit-A-LON")
    assert server.session.game.phase == "S1901M"


def test_hints(start, open_page):
    game = Game("small", max_years=3)
    server = start(game, ["thinker"], seats(game, "ENGLAND", player="thinker"))
    page = open_page(server.link("host"))
    page.click("#hint")
    page.wait_for_selector("#hints")
    assert "Army London: move to Wales 90%" in page.inner_text("#hints")
    assert page.inner_text("#expects") == "It expects 1.25 (1 is a solo)."
    assert "trained on" not in page.inner_text("#hints")
    page.click("#what summary")
    assert "It was trained on sum_of_squares (sum_of_squares: 1 for a solo" in page.inner_text(
        "#hints"
    )
    page.wait_for_selector("#board .hinted .order", state="attached")
    drawn = page.eval_on_selector_all(
        "#board .hinted .order", "all => all.map(o => o.dataset.order)"
    )
    assert drawn == ["A LON - WAL"]
    unit(page, "A LON")
    assert "move to Wales" in page.inner_text("#choices .order >> nth=0")
    page.click("#fill")
    page.wait_for_selector('#board [data-order="A LON - WAL"]', state="attached")
    without = open_page(start(game, seats=seats(game, "ENGLAND")).link("host"))
    without.wait_for_selector("#hint")
    assert without.is_disabled("#hint")


def test_hints_of_a_search_show_what_it_tried(start, open_page):
    game = Game("small", max_years=3)
    found = searcher("searcher", "dumbbot", "hold")
    server = start(
        game, ["searcher"], seats(game, "ENGLAND", player="searcher"), lambda name: found
    )
    page = open_page(server.link("host"), **PHONE)
    page.click("#hint")
    page.wait_for_selector("#candidates")
    shown = page.inner_text("#hints")
    assert "What looking ahead found" in shown and "Its first thought" in shown
    page.click("#hints summary >> nth=0")
    assert "Russia, who plays like dumbbot (50%) or hold (50%): Army Moscow: " in page.inner_text(
        "#expected"
    )
    first = page.locator("#candidates button").first
    assert first.get_attribute("aria-pressed") == "true"
    order = first.get_attribute("data-orders")
    first.click()
    page.wait_for_selector(f'#board [data-order="{order}"]', state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_hints_of_a_search_explain_numbers_only_where_there_are_some(start, open_page):
    found, shown = searcher("searcher", "dumbbot"), {}
    for power in ("ENGLAND", "RUSSIA"):  # in the opening DumbBot draws one order, and several
        game = Game("small", max_years=3)
        server = start(
            game, ["searcher"], seats(game, power, player="searcher"), lambda name: found
        )
        page = open_page(server.link("host"))
        page.click("#hint")
        page.wait_for_selector("#candidates")
        shown[power] = page.inner_text("#hints"), page.inner_text("#candidates .quiet >> nth=0")
    assert (
        "nothing to compare" in shown["ENGLAND"][0] and shown["ENGLAND"][1] == "its first thought"
    )
    assert "Each number is" in shown["RUSSIA"][0] and shown["RUSSIA"][1].startswith("2.000")
    assert "Each number is" not in shown["ENGLAND"][0]


def test_map_and_opponents_are_chosen_on_the_page(tmp_path, open_page):
    session = PlaySession(
        Game("small", max_years=2), tmp_path / "game.jsonl", ["hold"], make_bot,
        offered=lambda _: ["hold", "random"], maps=["small", "three"],
        new_game=lambda name: Game(name, max_years=2),
    )  # fmt: skip
    with serving(session) as server:
        page = open_page(server.link("host"))
        page.select_option("#map", "three")
        page.wait_for_selector("#seat-ITALY")
        assert page.locator("#setup .row select").count() == 4
        page.select_option("#seat-ITALY", "random")
        page.click("#start")
        page.wait_for_selector("#submit")
        assert page.title().startswith("Your turn · Spring 1901")
        assert page.inner_text("#panel h2").startswith("Your turn")
        assert session.game.map.name == "three"
        assert session.now.seats["ITALY"].player == "random"
        assert session.saved_game()["players"] == {
            "ENGLAND": "a person", "ITALY": "random", "RUSSIA": "hold",
        }  # fmt: skip


def test_orders_are_typed_and_a_wrong_click_is_answered_where_it_was(start, open_page):
    game = Game("standard", max_years=3)
    page = open_page(start(game, seats=seats(game, "FRANCE")).link("host"))
    page.allowed.append("400")
    page.fill("#typed", "A PAR - BUR; A MAR S A PAR - BUR")
    page.press("#typed", "Enter")
    page.wait_for_selector('#board [data-order="A MAR S A PAR - BUR"]', state="attached")
    page.fill("#typed", "A MUN H")
    page.press("#typed", "Enter")
    page.wait_for_selector("#mistyped:not(:empty)")
    assert "A MUN" in page.inner_text("#mistyped") and page.input_value("#typed") == "A MUN H"
    page.click("#unit-F-BRE")
    there = page.locator('#board .province[data-province="UKR"]').bounding_box()
    x, y = there["x"] + there["width"] / 2, there["y"] + there["height"] / 2
    page.mouse.click(x, y)
    assert page.inner_text("#say") == "Fleet Brest cannot move to Ukraine."
    told = page.locator("#say").bounding_box()
    assert abs(told["x"] + told["width"] / 2 - x) < 40
    assert -90 < told["y"] - y < 40, "at the click"


def test_a_sandbox_by_clicks(start, open_page):
    game = Game("small", max_years=3)
    server = start(game, ["thinker", "hold"])
    page = open_page(server.link("host"))
    page.check("#sandbox")
    page.click("#start")
    page.wait_for_selector("#as-ENGLAND[aria-pressed=true]")
    page.fill("#typed", "A LON - PAR")
    page.click("#add")
    page.wait_for_selector('#board [data-order="A LON - PAR"]', state="attached")
    page.click("#submit")
    page.wait_for_selector("#as-RUSSIA[aria-pressed=true]")
    page.click("#hint")
    page.wait_for_selector("#board .hinted .order", state="attached")
    page.select_option("#let-who", "hold")
    page.click("#let")
    page.wait_for_selector("#continue")
    assert server.session.game.units["ENGLAND"] == ["A PAR"]
    page.click("#takeback")
    page.wait_for_selector("#as-ENGLAND[aria-pressed=true]")
    assert server.session.game.phase == "S1901M"


def test_a_double_click_gives_one_order_and_focus_stays(start, open_page):
    units = {"FRANCE": ["A PAR", "A GAS", "A BRE"], "GERMANY": ["A MUN"]}
    game = Game.from_state("standard", {"name": "S1901M", "units": units}, max_years=9)
    page = open_page(start(game, seats=seats(game, "FRANCE")).link("host"))
    page.click("#unit-A-PAR")
    page.dblclick('#choices [data-order="A PAR - BUR"]')
    page.wait_for_selector('#board [data-order="A PAR - BUR"]', state="attached")
    assert orders_on_board(page) == ["A PAR - BUR"], "nothing for the next unit"
    page.click("#unit-A-GAS")
    top = page.locator("#unit-A-PAR").bounding_box()["y"]
    page.click('#choices [data-order="A GAS - SPA"]')
    assert page.evaluate("document.activeElement.id") == "unit-A-BRE", "where one works"
    page.click("#mode-hold")
    assert page.evaluate("document.activeElement.id") == "submit"
    assert page.locator("#unit-A-PAR").bounding_box()["y"] == top, "nothing jumps"
    page.dblclick("#submit")
    page.wait_for_selector("#continue")
    assert page.inner_text("#title") == "Spring 1901, movement", "the results are not skipped"
    assert page.evaluate("document.activeElement.id") == "continue"


def test_taking_back_keeps_the_orders(start, open_page):
    game = Game("small", max_years=3)
    server = start(game, seats=seats(game, "ENGLAND"))
    page = open_page(server.link("host"))
    unit(page, "A LON")
    province(page, "PAR")
    page.wait_for_selector('#board [data-order="A LON - PAR"]', state="attached")
    page.click("#submit")
    page.wait_for_selector("#continue")
    page.click("#takeback")
    page.wait_for_selector("#submit")
    assert "move to Paris" in page.inner_text("#units")
    other = open_page(server.link("host"))  # another browser: the server knows them
    other.wait_for_selector("#submit")
    assert "move to Paris" in other.inner_text("#units")
    _, play = read_session(server.session.file)
    assert play.before == {"ENGLAND": ["A LON - PAR"]}


def test_results_list_those_who_hold_beside_the_board(start, open_page):
    game = Game("standard", max_years=3)
    page = open_page(start(game, seats=seats(game, "FRANCE")).link("host"))
    page.click("#unit-A-PAR")
    page.click('#choices [data-order="A PAR - BUR"]')
    page.click("#submit")
    page.wait_for_selector("#results li")
    shown = page.inner_text("#results")
    assert "Army Paris: move to Burgundy" in shown
    assert page.locator("#results h3").count() == 7, "powers that hold, too"
    assert shown.count("hold") == 21
    page.locator("#results li").last.scroll_into_view_if_needed()
    box = page.locator("#board svg").bounding_box()
    height = page.evaluate("innerHeight")
    assert box["y"] >= 0 and box["y"] + box["height"] <= height
    page.click("#signs summary")
    assert page.locator("#signs svg").count() == page.locator("#signs li").count() >= 10
    assert page.locator("#chart .series").count() == 7
    page.click("#past summary")
    page.wait_for_selector("#past section")
    assert "Army Paris: move to Burgundy" in page.inner_text("#past")


def test_people_at_several_links(start, open_page):
    game = Game("small", max_years=3)
    server = start(game, seats=seats(game, "ENGLAND", "RUSSIA"))
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


def watch(start, open_page, players, max_years):
    """Return the server and the page of a game that has begun to play on by itself."""
    game = Game("small", max_years=max_years)
    server = start(game, players, seats(game))
    page = open_page(server.link("host"))
    page.click("#next")
    page.wait_for_selector("#continue")
    page.click("#continue")
    page.click("#play")
    return server, page


def test_watching_players(start, open_page):
    server, page = watch(start, open_page, ["hold", "random"], 1)
    page.wait_for_selector("#end, #continue", timeout=20_000)
    until(lambda: page.title().startswith("Game over"))
    assert server.session.game.is_over


def test_watching_can_be_paused(start, open_page):
    server, page = watch(start, open_page, ["hold", "hold"], 40)
    until(lambda: server.session.now.step > 3)
    page.click("#play[aria-pressed=true]", timeout=3_000)
    page.wait_for_selector("#continue")
    reached = server.session.now.step
    page.wait_for_timeout(3_000)
    assert server.session.now.step <= reached + 1 and not server.session.game.is_over


@contextmanager
def playing(*words: str):
    """Run the command `play`; yield the process and the host's link; kill it in the end."""
    command = [sys.executable, "-m", "diplomacy_engine", "play", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().split()[-1]
        finally:
            process.kill()


def test_a_lost_connection_and_a_killed_server_lose_nothing(tmp_path, open_page):
    """Orders that were chosen, and those sent while nobody was there, count once."""
    file = tmp_path / "game.jsonl"
    new = ["--map", "small", "--against", "hold", "--power", "ENGLAND", "--port", "0", "--save"]
    with playing(*new, str(file)) as (process, link):
        page = open_page(link)
        page.allowed = ["net::ERR_"]  # whatever a killed server looks like
        unit(page, "A LON")
        province(page, "PAR")
        page.wait_for_selector('#board [data-order="A LON - PAR"]', state="attached")
        process.kill()
        process.wait()
        page.click("#submit")
        page.wait_for_selector("#connection:visible")
        assert "connection" in page.inner_text("#connection")
    port = link.split(":")[2].split("/")[0]
    with playing("--resume", str(file), "--port", port) as (process, again):
        assert again == link
        page.wait_for_selector("#continue")
        page.wait_for_selector("#connection", state="hidden")
    game, play = read_session(file)
    assert game.units["ENGLAND"] == ["A PAR"] and play.step == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{}, PHONE], ids=["desk", "phone"])
def test_light_dark_and_phone(start, open_page, scheme, size):
    game = Game("standard", max_years=3)
    server = start(game, seats=seats(game, "FRANCE", player=LONG_NAME))
    page = open_page(server.link("host"), color_scheme=scheme, **size)
    page.click("#unit-A-PAR")
    page.wait_for_selector(".play-mark .reach", state="attached")
    ground, ink, sea = page.evaluate(
        """[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
        getComputedStyle(document.querySelector('#board .province.sea')).fill]"""
    )
    brightness = [sum(map(int, text[4:-1].split(","))) / 765 for text in (ground, ink, sea)]
    assert [value > 0.5 for value in brightness] == [
        scheme == side for side in ("light", "dark", "light")
    ]
    inner, scroll = page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
    assert scroll <= inner
    buttons = page.locator("button:visible").all()
    assert (
        min(button.bounding_box()["height"] for button in buttons) >= 36
    )  # to be hit with a thumb
    board = page.locator("#board svg").bounding_box()
    assert board["width"] >= 0.9 * min(inner, 800)
    paris = page.locator('#board [data-unit="A PAR"]').bounding_box()
    frame = page.locator("#board").bounding_box()
    assert frame["x"] <= paris["x"] <= frame["x"] + frame["width"] - paris["width"]
    assert frame["y"] <= paris["y"] <= frame["y"] + frame["height"] - paris["height"]
    label = page.locator("#board .labels .label").first
    assert (
        float(label.evaluate("e => parseFloat(getComputedStyle(e).fontSize)"))
        * (board["width"] / 1200)
        >= 10
    ), "names can be read at once, on a phone because one's own units are large"
    table, frame = (page.locator(f"#powers{part}").bounding_box() for part in (" table", ""))
    assert table["x"] + table["width"] <= frame["x"] + frame["width"]
    if size:
        page.tap("#zoom-in")
        assert page.locator("#board svg").bounding_box()["width"] > 1.4 * board["width"]
        inner, scroll = page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
        assert scroll <= inner
        page.tap('#choices [data-order="A PAR - BUR"]')
        page.wait_for_selector('#board [data-order="A PAR - BUR"]', state="attached")


def test_a_wrong_link_says_so(start, open_page):
    game = Game("small", max_years=3)
    server = start(game, seats=seats(game, "ENGLAND"))
    page = open_page(f"{server.address}#{'x' * 24}")
    page.allowed = ["401"]
    page.wait_for_selector("#connection:visible")
    assert page.inner_text("#connection") == "This link is not one of this game's."
    bare = open_page(server.address)
    assert "incomplete" in bare.inner_text("#say")


class _Foreign(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><link rel=icon href=data:,><p>elsewhere</p>")

    def log_message(self, *_):
        pass


def test_a_page_of_another_origin_gets_nothing(start, open_page):
    """It knows the address and even a token, and tries all that a browser lets it."""
    game = Game("small", max_years=3)
    server = start(game, seats=seats(game, "ENGLAND"))
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

    seats = {"ENGLAND": Seat(HOST), "RUSSIA": Seat(PLAYER, "slow")}
    server = start(Game("small", max_years=2), ("slow",), seats, lambda name: Slow())
    page = open_page(server.link(HOST))
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


def test_what_a_language_model_says_is_text(start, open_page):
    """Its sentence stands below its offer, and nothing in it is markup."""
    units = {"ENGLAND": ["A PAR"], "ITALY": ["A MAR"], "RUSSIA": ["A MUN"]}
    game = Game.from_state("three", {"name": "S1901M", "units": units}, max_years=3)
    game.take_up_talk("offers", 2)

    def reply(body, number):
        text = body["messages"][-1]["content"]
        if "You may say one of these" in text:
            return text.partition("You may say one of these\n")[2].splitlines()[0]
        return "Peace? <img src=x onerror=\"document.title='bad'\"><b>Yes</b>"

    with FakeServer(reply) as model:
        found = settings_of({"model": "m", "base_url": model.url, "prompt": "minimal"}, "test")
        player = Talker(RemotePlayer("llm:m", found), "talker+llm:m")
        sides, rules = seats(game, "ENGLAND"), PressRules("offers", 2)
        server = start(game, seats=sides, load=lambda name: player, press=rules)
        page = open_page(server.link("host"))
        page.wait_for_selector("#heard")
    assert "<b>Yes</b>" in page.inner_text("#heard")
    assert page.locator("#heard img").count() == 0 and page.title() != "bad"


def test_two_people_make_a_deal_by_clicks(start, open_page):
    """An offer of support, peace and a closed province; locks on bound units; a reason."""
    units = {"ENGLAND": ["A PAR", "A PIC"], "ITALY": ["A MAR", "A PIE"], "RUSSIA": ["A MUN"]}
    game = Game.from_state("three", {"name": "S1901M", "units": units}, max_years=3)
    game.take_up_talk("offers", 4)
    sides = seats(game, "ENGLAND", "ITALY")
    server = start(game, seats=sides, press=PressRules("offers", 4))
    host, guest = open_page(server.link("host")), open_page(server.link("ITALY"), **PHONE)
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
    assert guest.evaluate("document.documentElement.scrollWidth <= innerWidth")
    host.click("#submit")
    guest.click("#submit")
    guest.wait_for_selector("#said")
    assert "England to Italy: offers a deal (Army Paris: move to Gascony" in guest.inner_text(
        "#said"
    )
    assert server.session.game.units["ENGLAND"] == ["A GAS", "A PIC"]


def test_people_vote_for_a_draw_and_concede_by_clicks(start, open_page):
    game = Game("three", max_years=3, draw_votes=True)
    server = start(game, seats=seats(game, "ENGLAND", "ITALY", "RUSSIA"))
    host, guest = (
        open_page(server.link(who), **size) for who, size in (("host", {}), ("ITALY", PHONE))
    )
    host.click("#vote")
    until(lambda: "1 of 3 powers" in guest.inner_text("#votes"))
    assert guest.get_attribute("#vote", "aria-pressed") == "false"
    host.click("#vote[aria-pressed=true]")
    until(lambda: "0 of 3 powers" in guest.inner_text("#votes"))
    inner, scroll = guest.evaluate("[innerWidth, document.documentElement.scrollWidth]")
    assert scroll <= inner and guest.locator("#vote").bounding_box()["height"] >= 36
    guest.tap("#give-up summary")
    guest.tap("#concede")
    until(lambda: "conceded" in host.inner_text("#powers"))
    assert guest.locator("#votes *").count() == 0
    host.click("#vote")
    session = server.session
    until(lambda: session.game.votes == ["ENGLAND"])
    session.vote(session.viewer(session.tokens["RUSSIA"]), 0, True)
    host.wait_for_selector("#said li")
    assert "England votes for a draw" in host.inner_text("#said")
    host.click("#last")
    host.wait_for_selector("#end")
    assert host.inner_text("#end") == "The game ends in a draw, agreed by England and Russia."


PASTED = "Fall 1902\nFrance: A Par, F Bre\nGermany: A Mun, F Hol\ncenters: Mun, Hol\n"


@pytest.mark.parametrize("size", [{}, PHONE], ids=["desktop", "phone"])
def test_a_pasted_position_gets_hints(start, open_page, size):
    server = start(Game("standard"), ["thinker", "hold"])
    page = open_page(server.link("host"), **size)
    page.click("#paste summary")
    page.allowed.append("400 (Bad Request)")
    page.fill("#pasted", "Fall 1902\nFrance: A Par, F Atlantis")
    page.click("#take")
    page.wait_for_selector("#taken.bad")
    assert "Atlantis" in page.inner_text("#taken")
    assert page.input_value("#pasted").endswith("Atlantis")  # it can be mended
    page.fill("#pasted", PASTED)
    page.click("#take")
    until(lambda: "The game will begin from this position" in page.inner_text("#taken"))
    page.wait_for_selector('#board [data-unit="F HOL"]')
    assert page.inner_text("#title") == "Fall 1902, movement"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.select_option("#seat-FRANCE", "me")
    page.click("#start")
    page.click("#hint")
    page.wait_for_selector("#hints")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert len(chosen(page)) == 2
    saved = json.loads(server.session.file.read_text())
    assert [phase["name"] for phase in saved["phases"]] == ["F1902M"]


def test_pasted_orders_bring_their_phases(start, open_page):
    server = start(Game("standard"), ["hold"])
    page = open_page(server.link("host"))
    page.click("#paste summary")
    page.fill("#pasted", "Spring 1901\nFrance: A Par-Bur, A Mar-Mos")
    page.click("#take")
    until(lambda: "A Mar-Mos" in page.inner_text("#taken"))
    assert "The game will begin from this position." in page.inner_text("#taken")
    page.click("#start")
    page.wait_for_selector("#submit")
    page.click("#first")
    page.wait_for_selector("#results li")
    assert "A PAR - BUR" in orders_on_board(page)


def test_what_is_too_long_is_not_sent(start, open_page):
    page = open_page(start(Game("small"), ["hold"]).link("host"))
    page.click("#paste summary")
    page.evaluate("document.getElementById('pasted').value = 'x'.repeat(200000)")
    page.click("#take")
    assert "--resume FILE" in page.inner_text("#taken")
