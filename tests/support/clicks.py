"""Clicks on the board of a page, and what it shows."""

from support.waiting import until


def unit(page, text: str) -> None:
    page.locator(f'#board [data-unit="{text}"]').click()


def province(page, code: str) -> None:
    """Click inside a province, beside what may stand there."""
    place = page.locator(f'#board .province[data-province="{code}"]')
    place.dispatch_event("click", {"bubbles": True})


def drawn(page, *orders: str) -> None:
    """Wait until the board shows these orders."""
    script = "[...document.querySelectorAll('#board [data-order]')].map(e => e.dataset.order)"
    until(lambda: set(page.evaluate(script)) >= set(orders))
