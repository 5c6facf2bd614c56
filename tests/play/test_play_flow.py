"""From one game to the next on the page, in one browser: players, settings, drafts, a new game."""

from pathlib import Path

import pytest
from support.players import Thinker
from support.serving import seated, serving
from support.waiting import until

from diplomacy_engine import Game, make_bot
from diplomacy_engine.play.session import MIXED, Choices

pytestmark = pytest.mark.usefixtures("compiled")
OFFERED = {MIXED: "a different one for each", "thinker": "thinks", "hold": "never moves"}


def load(name):
    return Thinker() if name == "thinker" else make_bot(name)


def test_one_game_after_the_other(tmp_path, open_page):
    choices = Choices(lambda *_: OFFERED, lambda *_: ["thinker", "hold"])
    session = seated(tmp_path / "game.jsonl", None, Game("three", 3), MIXED, load, choices=choices)
    with serving(session) as server:
        page = open_page(server.link("host"), viewport={"width": 1280, "height": 800})
        page.wait_for_selector("#setup")
        others = page.locator("#seat-others option").all_inner_texts()
        assert others == [f"{name}: {means}" for name, means in OFFERED.items()]
        assert page.input_value("#seat-ITALY") == page.input_value("#seat-RUSSIA") == MIXED
        page.select_option("#seat-others", "hold")
        assert page.input_value("#seat-RUSSIA") == "hold"
        assert page.input_value("#seat-ENGLAND") == "me"
        page.select_option("#seat-others", MIXED)
        page.click("#settings summary")
        assert page.input_value("#set-last") == "1903" and page.is_checked("#set-hints")
        page.fill("#set-last", "1901")
        page.fill("#set-draws", "1901")
        page.fill("#set-seed", "3")
        page.click("#start")
        page.wait_for_selector("#submit")
        assert session.game.max_years == 1 and session.record.seed == 3
        assert {seat.player for seat in session.now.seats.values()} == {"", "thinker", "hold"}
        assert page.is_enabled("#hint") and "0 of 3" not in page.inner_text("#votes")
        while not session.game.is_over:
            page.wait_for_selector("#submit, #next, #continue")
            if page.query_selector("#continue"):
                page.click("#continue")
                continue
            page.click("#submit, #next")
            page.wait_for_selector("#continue")
        page.click("#last")
        page.click("#ask-review")
        page.wait_for_selector(".blunders, #review .card")
        until(lambda: not page.locator("#review progress").count())
        assert page.locator("#review .tabs button").count() == 1
        assert "Judged by" in page.inner_text("#about-review")
        page.click("#first")
        page.wait_for_selector("#review .card")
        assert page.is_enabled("#try") and "points" in page.inner_text("#review .card")
        page.click("#share summary")
        page.click("#copy-position")
        until(lambda: page.input_value("#shared").startswith("Spring 1901\nENGLAND: A LON"))
        with page.expect_download() as saved:
            page.click("#save-gif")
        assert saved.value.suggested_filename == "three-S1901M.gif"
        assert Path(saved.value.path()).read_bytes()[:3] == b"GIF"
        page.click("#last")
        page.click("#another")
        page.wait_for_selector("#setup")
        assert page.input_value("#set-last") == "1901" and session.file.name == "game-2.jsonl"
        page.check("#sandbox")
        page.click("#start")
        page.wait_for_selector("#sandbox-box")
        assert session.now.is_sandbox
        italian = next(iter(session.game.units["ITALY"]))
        page.click("#as-ITALY")
        page.wait_for_selector("#as-ITALY[aria-pressed=true]")
        page.click(f"#unit-{italian.replace(' ', '-')}")
        page.locator("#choices .order").first.click()
        page.wait_for_selector("#units .drop")
        (draft,) = page.locator("#units .drop").all()
        order = draft.get_attribute("aria-label").removeprefix("Delete ")
        assert not order.endswith(" H")
        page.click("#as-ENGLAND")
        page.wait_for_selector("#as-ENGLAND[aria-pressed=true]")
        page.select_option("#let-who", "hold")
        page.click("#let-others")
        until(lambda: "ITALY" in session.game.orders)
        assert order in session.game.orders["ITALY"]
