"""From one game to the next on the page, in one browser: players, settings, drafts, a new game."""

from pathlib import Path

import pytest
from support.clicks import walk
from support.players import Thinker
from support.serving import seated, serving
from support.waiting import until

from diplomacy_engine import Game, make_bot
from diplomacy_engine.play.session import MIXED, Choices

pytestmark = pytest.mark.usefixtures("compiled")
OFFERED = {MIXED: "a different one for each", "thinker": "thinks", "hold": "never moves"}


def load(name):
    return Thinker() if name == "thinker" else make_bot(name)


@pytest.mark.slow
def test_one_game_after_the_other(tmp_path, open_page):
    choices = Choices(lambda *_: OFFERED, lambda *_: ["thinker", "hold"])
    file, game = tmp_path / "game.jsonl", Game("three", max_years=3)
    session = seated(file, None, game, MIXED, load, choices=choices)
    with serving(session) as server:
        page = open_page(server.link("host"), viewport={"width": 1280, "height": 800})
        walk(__file__, "players and settings are chosen", page)
        assert session.game.rules.max_years == 1 and session.record.seed == 3
        assert {seat.player for seat in session.now.seats.values()} == {"", "thinker", "hold"}
        while not session.game.is_over:
            page.wait_for_selector("#submit, #next, #continue")
            if page.query_selector("#continue"):
                page.click("#continue")
                continue
            page.click("#submit, #next")
            page.wait_for_selector("#continue")
        walk(__file__, "the game that is over is reviewed and shared", page)
        with page.expect_download() as saved:
            page.click("#save-gif")
        assert saved.value.suggested_filename == "three-S1901M.gif"
        assert Path(saved.value.path()).read_bytes()[:3] == b"GIF"
        walk(__file__, "another game, a sandbox", page)
        assert session.file.name == "game-2.jsonl" and session.now.is_sandbox
        walk(__file__, "orders of a power in the sandbox", page)
        label = page.get_attribute("#units .drop", "aria-label")
        order = label.removeprefix("Delete ")
        assert not order.endswith(" H")
        walk(__file__, "a bot orders for the rest", page)
        until(lambda: "ITALY" in session.game.orders)
        assert order in session.game.orders["ITALY"]
