"""A browser for the tests that look at pages."""

import os
import shutil

import pytest

from diplomacy_engine import Game, evaluate_player, make_bot

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def compiled():
    """Compile the kernels that games need, so that no request or page waits for them."""
    for bot in ("hold", "random", "dumbbot"):
        evaluate_player("small", make_bot(bot), make_bot("hold"), 2, max_years=2)
    game = Game("small")
    game.submit("ENGLAND", game.legal_orders("A LON")[:1])
    game.adjudicate()


@pytest.fixture(scope="session")
def browser():
    """Return the Chromium of this machine; tests that need one are skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(BROWSERS)})")
    with sync_api.sync_playwright() as playwright:
        # Chromium's sandbox refuses to run as root, as in a container.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        arguments.append("--disable-dev-shm-usage")  # which is small in a container
        running = playwright.chromium.launch(executable_path=found, args=arguments)
        yield running
        running.close()


@pytest.fixture
def open_page(browser):
    """Return a function (address, **context options) -> page.

    The test fails if a page has an error or a warning on its console, unless `page.allowed`, a list
    of texts, has a part of it.
    """
    contexts, seen = [], []

    def open_(address: str, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.allowed = []
        page.set_default_timeout(10_000)
        page.on("console", lambda message: seen.append((page, message.type, message.text)))
        page.on("pageerror", lambda error: seen.append((page, "error", str(error))))
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()
    bad = [
        text
        for page, kind, text in seen
        if kind in ("error", "warning") and not any(part in text for part in page.allowed)
    ]
    assert bad == []
