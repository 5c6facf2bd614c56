"""The page shows what the server has: a random walk over it, and a reload changes nothing."""

import random
from itertools import product

import pytest
from support.players import Thinker
from support.serving import FREE, UNITS, Partner, seated, serving
from support.tables import read_text, slow_but
from support.waiting import until

from diplomacy_engine import Game, make_bot
from diplomacy_engine.play.session import MIXED, Choices
from diplomacy_engine.textgame.saved_game import in_disorder

pytestmark = pytest.mark.usefixtures("compiled")
DESK = {"viewport": {"width": 1280, "height": 800}}
OFFERED = {MIXED: "a different one for each", "thinker": "thinks", "hold": "never moves"}
# A click on, or a choice in, whatever there is; those that leave the page or write a picture go
# without.
DO = read_text(__file__, "do.js")
# All that is there but what is said once, where the board lies, and which control has the focus.
SEEN = read_text(__file__, "seen.js")


def settled(page) -> list[str]:
    """Return what the page shows, line by line, once nothing changes any more."""
    seen = []

    def same():
        seen.append(page.evaluate(SEEN))
        page.wait_for_timeout(150)
        goes_on = "Playing on from here" in seen[-1] or ">Pause" in seen[-1]
        return len(seen) > 3 and len({*seen[-4:]}) == 1 and not goes_on

    page.wait_for_selector("#board svg")
    until(same)
    return seen[-1].split("\n")


def facts(session, number: int) -> list[list[str]]:
    """Return each power's line of the table: what it had in a phase, and how it stood."""
    state, game = session.game.history[number]["state"], session.game
    rows = []
    for power in game.powers:
        centers, units = state["centers"][power], state["units"][power]
        gone = in_disorder(state, power) and power in game.conceded
        dead = "" if centers or units else "eliminated"
        state_of = "conceded" if gone else dead
        rows.append([power.capitalize(), state_of, str(len(centers)), str(len(units))])
    return rows


def table(page) -> list[list[str]]:
    return page.evaluate(
        """[...document.querySelectorAll("#powers tbody tr")].map((row) => [
            row.cells[0].innerText, row.querySelector(".state").textContent,
            row.cells[2].innerText, row.cells[3].innerText])"""
    )


def offering() -> Game:
    return Game.from_state("three", {"name": "S1901M", "units": UNITS}, max_years=2, **FREE)


# Name -> seats, game.
BEGINNINGS = {
    "choice": (None, lambda: Game("three", max_years=1)),
    "votes": ("hpp", lambda: Game("three", max_years=1, draw_votes=True)),
    "deals": ("hpp", offering),
    "sandbox": ("hhh", lambda: Game("three", max_years=1)),
    "watching": ("ppp", lambda: Game("three", max_years=1)),
}


def load(name):
    own = {"thinker": Thinker, "partner": Partner}
    return own[name]() if name in own else make_bot(name)


QUICK = ("votes", 1, 12)


@pytest.mark.parametrize(
    ("name", "seed", "steps"), slow_but([QUICK], [QUICK, *product(BEGINNINGS, (1, 2, 3), [40])])
)
def test_whatever_is_clicked_a_reload_shows_the_same(tmp_path, open_page, name, seed, steps):
    """And a past phase shows what powers had in it."""
    draw = random.Random(f"{name} {seed}")
    letters, make = BEGINNINGS[name]
    player = "partner" if name == "deals" else MIXED if letters is None else "thinker"
    choices = Choices(lambda *_: OFFERED, lambda *_: ["thinker", "hold"])
    session = seated(tmp_path / "game.jsonl", letters, make(), player, load, choices)
    with serving(session) as server:
        page = open_page(server.link("host"), **DESK)
        page.allowed = ["status of 4"]  # what is clicked may be refused
        done = []
        settled(page)
        for step in range(steps):
            page.wait_for_selector("#board svg")  # it may be another game's page
            done.append(page.evaluate(DO, [draw.random() for _ in range(3)]))
            page.wait_for_timeout(60)
            if step % 4 == 3:
                before = settled(page)
                page.reload()
                after = settled(page)
                changed = [pair for pair in zip(before, after) if pair[0] != pair[1]]
                assert after == before, (done, after[0], changed[:5])
                said = page.get_attribute("#slider", "aria-valuetext")
                assert said in (page.inner_text("#title"), None)
                token, _, phase = page.evaluate("location.hash.slice(1)").partition("/")
                shown = server.session_of(token)
                if phase and shown.now.seats:
                    names = [one["name"] for one in shown.game.history]
                    assert table(page) == facts(shown, names.index(phase)), done
