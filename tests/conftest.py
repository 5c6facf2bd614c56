"""How many processes run the tests, and a browser for those that look at pages."""

import gc
import os
import re
import shutil
from pathlib import Path

import hypothesis
import pytest

from diplomacy_engine import Game, VectorGame, evaluate_player, make_bot
from diplomacy_engine._cores import usable_cores

os.environ.pop("COLUMNS", None)  # pytest-xdist says 80, to which tables would keep

hypothesis.settings.register_profile("any machine", deadline=None)  # a busy one is no fault
hypothesis.settings.load_profile("any machine")
FLOAT = re.compile(r"-?\d+\.\d+(?:e-?\d+)?|-?\d+e-\d+")
# Folders whose tests train, look at pages or start programs.
LONG_FIRST = ("script", "learners", "play", "environments", "extras", "commands", "learning")
# The first takes a third of the time: others draw a window of their own around each page.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `pytest -m attack` asks for; see tests/attack."""
    group = parser.getgroup("attack")
    group.addoption("--attack-seed", type=int, default=1, help="other input for each (default: 1)")
    group.addoption(
        "--attack-minutes", type=float, default=10.0, help="of all attacks together (default: 10)"
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes run the tests: several for all of them, else this one alone."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return 0  # files that are named: an error is seen at once, and `--pdb` works
    return min(4, usable_cores())  # each takes a gigabyte


def is_odd_worker() -> bool:
    return os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    """Read folders backwards in every second process: two then compile half of the files each."""
    report = yield
    if is_odd_worker() and isinstance(collector, pytest.Directory):
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that take long, so that no process still has one when others are done."""
    tests = Path(__file__).parent
    places = {folder: number for number, folder in enumerate(LONG_FIRST)}

    def place(item: pytest.Item) -> tuple[int, Path]:
        path = item.path.relative_to(tests)
        return places.get(path.parts[0], len(places)), path

    items.sort(key=place)


def compile_kernels() -> None:
    for bot in ("hold", "random", "dumbbot"):
        evaluate_player("small", make_bot(bot), make_bot("hold"), 2, max_years=2)
    game = Game("small")
    game.submit("ENGLAND", game.legal_orders("A LON")[:1])
    game.adjudicate()


def pytest_collection_finish() -> None:
    gc.freeze()  # what all tests and their libraries are is not gone through again and again
    if "PYTEST_XDIST_WORKER" in os.environ:
        # Two compile the slowest kernels at the same time; else one would wait for the other.
        games = VectorGame("small", 2, threads=1)
        if is_odd_worker():
            make_bot("dumbbot").act(games, games.decisions())
        else:
            games.step(games.new_orders())


@pytest.fixture
def golden(request):
    """Return a function (name, lines) that compares them with golden/NAME.txt beside the test.

    Numbers with a decimal point may differ by a share of `rel`, or by so much.

    With the environment variable RENEW=1 it writes the file anew; read what `git diff` shows.
    """

    def compare(name, lines, rel=1e-9):
        stem = re.sub(r"\W+", "_", name).strip("_")
        file = request.path.parent / "golden" / f"{stem}.txt"
        text = "\n".join(map(str, lines)) + "\n"
        if os.environ.get("RENEW"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        both = text, file.read_text(encoding="utf-8")
        words, old = (FLOAT.sub("?", each).split("\n") for each in both)
        assert words == old, "RENEW=1 renews it"
        numbers, old = ([*map(float, FLOAT.findall(each))] for each in both)
        assert numbers == pytest.approx(old, rel=rel, abs=rel), "RENEW=1 renews it"

    return compare


@pytest.fixture(scope="session")
def compiled():
    """Compile the kernels that games need, so that no request or page waits for them."""
    compile_kernels()


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Return a function (name, make) that returns what `make` wrote in a folder, once a session.

    `make` gets the folder and returns a path in it. All processes that run tests share it; it is
    read only.
    """
    fcntl = pytest.importorskip("fcntl", reason="locks of POSIX")
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def get(name, make):
        folder, made = base / name, base / f"{name}.made"
        with open(base / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                made.write_text(str(make(folder)))
        return Path(made.read_text())

    return get


@pytest.fixture(scope="session")
def trained(made_once):
    """Return a function that gives the whole run of some of support.training's SETTINGS."""
    from support import training  # imports PyTorch, which most tests do without

    def get(name="plain"):
        settings = training.SETTINGS[name]
        return made_once(name, lambda folder: training.train(folder / "runs", **settings))

    return get


@pytest.fixture(scope="session")
def running_browser():
    """Return a function that returns the Chromium of this machine, started anew if it has died.

    Tests that need one are skipped where there is none.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser is installed (looked for {', '.join(BROWSERS)})")
    # Chromium's sandbox refuses to run as root, as in a container; without it the zygote, which
    # dies on a busy machine now and then, is not needed either.
    arguments = ["--no-sandbox", "--no-zygote"] if os.geteuid() == 0 else []
    arguments.append("--disable-dev-shm-usage")  # which is small in a container
    with sync_api.sync_playwright() as playwright:
        browsers = []

        def launch():
            try:
                return playwright.chromium.launch(executable_path=found, args=arguments)
            except sync_api.Error:  # once more: under load it is not always up in time
                return playwright.chromium.launch(executable_path=found, args=arguments)

        def running():
            if not browsers or not browsers[-1].is_connected():
                browsers.append(launch())
            return browsers[-1]

        yield running
        for browser in browsers:
            browser.close()


@pytest.fixture
def browser(running_browser):
    """Return the Chromium of this machine; one that died in a test leaves the others alone."""
    return running_browser()


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
