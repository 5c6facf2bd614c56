"""Clicks on the board of a page, and what it shows; and walks over it, which stand in a text."""

import re
from collections.abc import Callable
from functools import partial

from support.serving import viewer
from support.tables import read_text
from support.waiting import until

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def unit(page, text: str) -> None:
    page.locator(f'#board [data-unit="{text}"]').click()


def pick(page, text: str) -> None:
    """Click on a unit, and wait for what it may do."""
    unit(page, text)
    page.wait_for_selector("#flyout:not([hidden])")


def province(page, code: str) -> None:
    """Click inside a province, beside what may stand there."""
    place = page.locator(f'#board .province[data-province="{code}"]')
    place.dispatch_event("click", {"bubbles": True})


def orders_shown(page, place: str = "#board [data-order]") -> list[str]:
    return page.eval_on_selector_all(place, "all => all.map(e => e.dataset.order)")


def drawn(page, *orders: str) -> None:
    """Wait until the board shows these orders."""
    until(lambda: set(orders_shown(page)) >= set(orders))


def only_drawn(page, *orders: str) -> None:
    """Wait until the board shows just these orders."""
    until(lambda: sorted(orders_shown(page)) == sorted(orders))


def fits(page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# What is done to a page; for any other word its own method of that name.
ACTIONS: dict[str, Callable] = {
    "allow": lambda page, text: page.allowed.append(text),
    "drawn": drawn,
    "has": lambda page, place: page.wait_for_selector(place, state="attached"),
    "key": lambda page, key: page.keyboard.press(key),
    "loses": lambda page, place: page.wait_for_selector(place, state="detached"),
    "only": only_drawn,
    "pick": pick,
    "province": province,
    "goes": lambda page, text: page.evaluate("to => { location.hash = to; }", text),
    "sees": lambda page, place: page.wait_for_selector(place),
    "unit": unit,
}
# What must be so at once; after "soon", before long.
CHECKS: dict[str, Callable] = {
    "at": lambda page, text: page.evaluate("location.hash") == text,
    "attribute": lambda page, place, name, text: page.get_attribute(place, name) == text,
    "begins": lambda page, place, text: page.input_value(place).startswith(text),
    "counts": lambda page, place, count: page.locator(place).count() == int(count),
    "disabled": lambda page, place: page.is_disabled(place),
    "entitled": lambda page, text: text in page.title(),
    "fits": fits,
    "focused": lambda page, name: page.evaluate("document.activeElement.id") == name,
    "holds": lambda page, place, text: page.input_value(place) == text,
    "lacks": lambda page, place, text: text not in page.inner_text(place),
    "matches": lambda page, place, text: re.fullmatch(text, page.inner_text(place), re.DOTALL),
    "orders_shown": lambda page, place, *orders: orders_shown(page, place) == [*orders],
    "reads": lambda page, place, text: page.inner_text(place) == text,
    "says": lambda page, place, text: text in page.inner_text(place),
    "tappable": lambda page, place: page.locator(place).bounding_box()["height"] >= 36,
    "texts": lambda page, place, *texts: page.locator(place).all_inner_texts() == [*texts],
    "unentitled": lambda page, text: page.title() != text,
}
# What is done in a session by others, and what must be so in it.
MOVES: dict[str, Callable] = {
    "submits": lambda s, who, *orders: s.submit(viewer(s, who), s.now.step, orders),
    "votes": lambda s, who: s.vote(viewer(s, who), s.now.step, True),
}
STATES: dict[str, Callable] = {
    "conceded": lambda s, *powers: s.game.conceded == [*powers],
    "orders": lambda s, power, texts: ", ".join(s.game.orders[power]) == texts,
    "phase": lambda s, phase: s.game.phase == phase,
    "step": lambda s, step: s.now.step == int(step),
    "units": lambda s, power, texts: ", ".join(s.game.units[power]) == texts,
    "voted": lambda s, *powers: s.game.votes == [*powers],
}


def read_walk(file: str, name: str) -> list[str]:
    """Return the lines of a part of texts/walks.txt beside a test file."""
    (part,) = [
        text for text in read_text(file, "walks.txt").split("== ") if text.startswith(f"{name}\n")
    ]
    lines = [line.partition("  # ")[0] for line in part.splitlines()[1:]]
    return [line for line in lines if line and not line.startswith("# ")]


def walk(file: str, name: str, page=None, server=None, open_page=None) -> object:
    """Do what a part of texts/walks.txt says, from a page or with pages that it opens; return the
    page on which it ends."""
    pages = {"host": page}
    for line in read_walk(file, name):
        if mark := re.match(r"(\w+): ", line):
            page, line = pages[mark[1]], line[mark.end() :]
        soon, line = line.startswith("soon "), line.removeprefix("soon ")
        word, _, rest = line.partition(" ")
        values = [value.replace("\\n", "\n") for value in rest.split(" | ")] if rest else []
        if word == "open":
            who, *size = rest.split()
            page = pages[who] = open_page(server.link(who), **(PHONE if size else {}))
        elif word in MOVES:
            MOVES[word](server.session, *values)
        elif check := CHECKS.get(word) or STATES.get(word):
            holds = partial(check, page if word in CHECKS else server.session, *values)
            if soon:
                until(holds)
            assert holds(), f"{name}: {line}"
        elif word in ACTIONS:
            ACTIONS[word](page, *values)
        else:
            getattr(page, word)(*values)
    return page
