"""What the pages in docs/ show is true: examples run, orders read as said, no choice is missing."""

import importlib
import importlib.util
import inspect
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest
from support.pages import (
    PAGES,
    ROOT,
    anchors,
    blocks,
    code_spans,
    commands,
    links,
    page_text,
    quoted_lines,
    shell_lines,
    shown,
)

from diplomacy_engine import MAP_NAMES, REWARDS, Game, load_map, vocabulary
from diplomacy_engine.commands import _flags
from diplomacy_engine.commands.cli import COMMANDS, main, parse
from diplomacy_engine.constants import RESULT_WORDS, Terrain
from diplomacy_engine.environments import IDS
from diplomacy_engine.environments.gymnasium_env import DiplomacyEnv, DiplomacyVectorEnv
from diplomacy_engine.environments.settings import AgentSettings
from diplomacy_engine.learning.settings import parse_args
from diplomacy_engine.players.loading import NEGOTIATORS
from diplomacy_engine.press.deals import MAX_CLAUSES, REFUSALS
from diplomacy_engine.rules.convoy_routes import MAX_CONVOY_ROUTES, MAX_CONVOY_SEAS
from diplomacy_engine.rules.game_rules import MOST_ROUNDS
from diplomacy_engine.rules.map import MAPS_FOLDER, MAX_FILE_BYTES, MAX_NEIGHBORS
from diplomacy_engine.rules.vocabulary import MAX_ORDERS
from ppo_selfplay_diplomacy import Args

RULES, OWN_MAP, ENVIRONMENTS, TRAINING = (
    page_text(f"docs/{name}.md") for name in ("rules", "own_map", "environments", "training")
)
TRAINER, TOOLS = "ppo_selfplay_diplomacy.py ", "python -m diplomacy_engine "
LEARNERS = "python -m diplomacy_learners."
# Their commands, flags and files are those of the time of which they tell.
HISTORY = {ROOT / "CHANGELOG.md", ROOT / "runs" / "reference" / "README.md"}
HISTORY |= set((ROOT / "docs" / "lab").glob("*.md"))


def of_pages(pages):
    names = [str(page.relative_to(ROOT)).removesuffix(".md") for page in pages]
    return pytest.mark.parametrize("page", pages, ids=names)


every_page = of_pages(PAGES)
pages_of_today = of_pages([page for page in PAGES if page not in HISTORY])


@every_page
def test_links(page):
    for link in links(page.read_text()):
        target, _, anchor = link.partition("#")
        if not target.startswith("https://"):
            path = page.parent / target if target else page
            assert path.exists(), link
            assert not anchor or anchor in anchors(path.read_text()), link


@pages_of_today
def test_named_files_are_there(page):
    tops = {path.name for path in ROOT.iterdir()} - {"runs", ".venv"}
    for span in code_spans(page.read_text()):
        for word in span.split():
            is_path = re.fullmatch(r"[\w.*{}/-]+", word) and "/" in word
            if is_path and (word.split("/")[0] in tops or word.startswith("runs/reference/")):
                assert any(ROOT.glob(re.sub(r"{\w+}", "*", word.rstrip("/")))), word


def settings_of(args_class, words: list[str]):
    """Return the settings of a command line; the run that an example resumes is not there."""
    if "--resume" in words:
        at = words.index("--resume")
        words = words[:at] + words[at + 2 :]
    return parse_args(args_class, words)


@pages_of_today
def test_commands(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    text = page.read_text()
    for words in map(shlex.split, commands(text, TRAINER)):
        if words and words[0].startswith("--") and words != ["--help"]:
            settings_of(Args, words)
    for words in map(shlex.split, commands(text, TOOLS)):
        if len(words) > 1 and words[0] != "..." and words[-1] != "--help":
            parse(words)
    for name, *words in map(shlex.split, commands(text, LEARNERS)):
        if name == "exploit":  # has the script's flags, behind the player that it names
            settings_of(Args, [word for word in words[1:] if word != "--greedy"])
        elif words and (name != "language_model" or importlib.util.find_spec("transformers")):
            settings_of(importlib.import_module(f"diplomacy_learners.{name}").Args, words)


def known_flags() -> set[str]:
    """Return the flags of the trainer, the learners, the tools, the benchmarks, and of others."""
    names = {
        name
        for cls, _ in COMMANDS.values()
        for name in inspect.signature(getattr(_flags, cls)).parameters
    }
    scripts = "ppo_selfplay_diplomacy.py", "diplomacy_engine/learning/settings.py"
    for path in (*ROOT.glob("diplomacy_learners/*.py"), *(ROOT / script for script in scripts)):
        names |= set(re.findall(r"^    (\w+): ", path.read_text(), re.MULTILINE))
    flags = {f"--{name.replace('_', '-')}" for name in names}
    flags |= {flag.replace("--", "--no-") for flag in flags} | {"--help"}
    others = (*ROOT.glob("examples/*.py"), *ROOT.glob("benchmarks/*.py"))
    for path in (ROOT / "tests" / "conftest.py", *others):
        flags |= set(re.findall(r'"(--[a-z-]+)"', path.read_text()))
    docker = "build-arg env file gpus publish rm tag target volume"
    flags |= {f"--{name}" for name in docker.split()}
    pip = {"--index-url", "--no-deps", "--upgrade-deps"}
    return flags | pip | {"--as", "--nproc_per_node", "--logdir"}


@pages_of_today
def test_flags(page):
    text = page.read_text()
    code = "\n".join([*code_spans(text), *shell_lines(text), *quoted_lines(text)])
    unknown = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", code)) - known_flags()
    assert not unknown


def test_where_things_went():
    sections = page_text("CHANGELOG.md").split("\n## ")
    newest = next(section for section in sections if "\n| `" in section)
    cells = re.findall(r"^\| `.+ \| (.+) \|$", newest, re.MULTILINE)
    words = [word for cell in cells for span in code_spans(cell) for word in span.split()]
    names = [word for word in words if re.fullmatch(r"[a-z]\w*(\.\w+)+", word)]
    assert len(names) > 5
    for name in names:
        inside = name.startswith(("diplomacy_engine.", "diplomacy_learners."))
        assert importlib.util.find_spec(name if inside else f"diplomacy_engine.{name}"), name


def test_every_reward_is_named():
    assert set(REWARDS) <= set(code_spans(TRAINING))


@pytest.fixture
def strait(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (text,) = blocks(OWN_MAP, "toml")
    path = Path("strait.toml")
    path.write_text(text)
    return path


def test_the_example_has_four_provinces_and_is_sound(strait, capsys):
    assert len(load_map(strait).provinces) == 4
    assert set(load_map(strait).board.terrain) == set(map(int, Terrain))
    assert main(["check-map", "strait.toml"]) == 0
    assert capsys.readouterr().out.strip() in quoted_lines(OWN_MAP)


def test_the_mistakes_of_the_example_are_named(strait, capsys):
    text = strait.read_text().rstrip()
    assert text.endswith('"ROC"') and "victory_supply_centers = 3" in text
    text = text.removesuffix('"ROC"') + '"ROK"\n'
    strait.write_text(text.replace("victory_supply_centers = 3", "victory_supply_centers = 9"))
    assert main(["check-map", "strait.toml"]) == 2
    errors = [line for line in quoted_lines(OWN_MAP) if line.startswith("error: map strait")]
    assert capsys.readouterr().err.splitlines() == errors and len(errors) == 2


def test_the_example_is_played(strait, capsys):
    (code,) = blocks(OWN_MAP, "python")
    exec(compile(code, "own_map.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == shown(code) != []


def test_lines_of_the_standard_map():
    text = (MAPS_FOLDER / "standard.toml").read_text().splitlines()
    lines = [line for line in quoted_lines(OWN_MAP) if re.match(r'"?[A-Z]{3}', line)]
    assert len(lines) == 5 and all(line in text for line in lines)
    table = vocabulary(load_map("standard")).table
    limits = (MAX_NEIGHBORS, MAX_CONVOY_SEAS, MAX_CONVOY_ROUTES, MAX_ORDERS, MAX_FILE_BYTES, 500)
    for number in limits:
        assert f"{number:,} " in OWN_MAP.replace("\n", " ")
    assert f"{len(table.route_goal):,}" in OWN_MAP


POSITIONS = (
    "standard S1901M; ENGLAND A LON, F NTH =; FRANCE A GAS, A PAR, F MAO =; RUSSIA F STP/NC =",
    "standard S1901R; FRANCE A MUN =; GERMANY *A MUN > RUH =",
    "standard W1901A; RUSSIA = MOS STP",
)


def readings(text: str) -> set[str]:
    found = set()
    for position in POSITIONS:
        game = Game.from_position(position)
        for power in game.powers:
            try:
                game.submit(power, [text])
            except ValueError:
                continue
            found.update(game.orders[power])
    return found


def test_notation():
    (table,) = blocks(RULES)
    rows = [re.split(r" {2,}", line) for line in table.splitlines()]
    assert len(rows) > 20
    for text, order in rows:
        assert readings(text) == {order}, text
    (line,) = [line for line in quoted_lines(RULES) if line.startswith("standard ")]
    assert Game.from_position(line).to_position() == line


def test_every_choice_of_the_cases_is_explained():
    cases = "".join(path.read_text() for path in (ROOT / "tests" / "rules" / "datc").glob("*.txt"))
    choices = set(re.findall(r"^  choice +(4\.[A-E]\.\d+)", cases, re.MULTILINE))
    assert len(choices) > 15
    assert choices == set(re.findall(r"4\.[A-E]\.\d+", RULES))


def test_every_result_word_is_explained():
    assert re.findall(r"^\| `([a-z ]+)` \|", RULES, re.MULTILINE) == list(RESULT_WORDS)


EXAMPLES = {"environments": 3, "other_libraries": 4, "other_engines": 1, "press": 3}
EXAMPLES |= {"search": 3, "playing": 1}
NUMBERED = [(page, number) for page, count in EXAMPLES.items() for number in range(count)]


@pytest.mark.parametrize("page, number", NUMBERED)
@pytest.mark.filterwarnings("ignore::UserWarning")  # Stable-Baselines3 recommends a Monitor
def test_the_examples_of_pages_run(page, number, capsys):
    codes = blocks(page_text(f"docs/{page}.md"), "python")
    assert len(codes) == EXAMPLES[page]
    code = codes[number]
    exec(compile(code, f"{page}.md, example {number}", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == shown(code) != []
    assert max(map(len, code.splitlines())) <= 100


def test_scripts_of_pages_have_the_columns_of_python():
    for path in (ROOT / "diplomacy_engine").rglob("*.js"):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [n for n, line in enumerate(lines, 1) if len(line) > 100], path


def test_every_negotiator_and_reason_is_explained():
    page = page_text("docs/press.md")
    for name in (*NEGOTIATORS, "talker", *REFUSALS):
        assert f"\n| `{name}` |" in page, name
    assert f"1 to {MAX_CLAUSES} in an offer" in page
    assert f"(default {MOST_ROUNDS} in a `Game`" in page


def test_every_argument_of_the_environments_is_explained():
    for environment in (DiplomacyEnv, DiplomacyVectorEnv):
        names = {field.name for field in fields(AgentSettings)}
        names |= set(inspect.signature(environment).parameters)
        names -= {"num_envs", "form", "settings"}
        assert names <= set(re.findall(r"^\| `(\w+)` \|", ENVIRONMENTS, re.MULTILINE))
    for name in IDS:
        shape = name.replace("Diplomacy-", "").removesuffix("-v0")
        assert name == "Diplomacy-v0" or shape.partition("-")[0] in MAP_NAMES
        generic = re.sub("small|three|standard", "MAP", name)
        assert f"| `{generic}` |" in ENVIRONMENTS
