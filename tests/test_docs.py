"""What the pages in docs/ show is true: examples run, orders read as said, no choice is missing."""

import inspect
import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

from diplomacy_engine.commands.cli import _parser, main
from diplomacy_engine.constants import RESULT_WORDS, Terrain
from diplomacy_engine.environments.gymnasium_env import DiplomacyEnv, DiplomacyVectorEnv
from diplomacy_engine.environments.registration import IDS
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.rules.map import (
    MAP_NAMES,
    MAPS_FOLDER,
    MAX_FILE_BYTES,
    MAX_NEIGHBORS,
    Map,
    load_map,
)
from diplomacy_engine.rules.vocabulary import MAX_CONVOY_ROUTES, MAX_CONVOY_SEAS, vocabulary
from diplomacy_engine.training.settings import parse_args
from ppo_selfplay_diplomacy import CONFIGS, Args

ROOT = Path(__file__).parent.parent
NAMES = (
    "rules",
    "own_map",
    "environments",
    "viewing",
    "playing",
    "network",
    "learning",
    "tournament",
)
PAGES = RULES, OWN_MAP, ENVIRONMENTS, VIEWING, PLAYING, *_ = tuple(
    (ROOT / "docs" / f"{name}.md").read_text() for name in NAMES
)


def blocks(page: str, language: str = "") -> list[str]:
    """Return the fenced blocks of a language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def quoted_lines(page: str) -> list[str]:
    """Return the lines that stand indented, as output or part of a file."""
    return re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```$", "", page, flags=re.S | re.M), re.M)


@pytest.fixture
def strait(tmp_path, monkeypatch) -> Path:
    """Return the example's file, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (text,) = blocks(OWN_MAP, "toml")
    path = Path("strait.toml")
    path.write_text(text)
    return path


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page):
        assert target.startswith("https://") or (ROOT / "docs" / target).exists(), target


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
    shown = [line for line in quoted_lines(OWN_MAP) if line.startswith("error: ")]
    assert capsys.readouterr().err.splitlines() == shown and len(shown) == 2


def test_the_example_is_played(strait, capsys):
    (code,) = blocks(OWN_MAP, "python")
    exec(compile(code, "own_map.md", "exec"), {})
    shown = re.findall(r"^print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == shown != []


def test_the_example_survives_random_play(strait):
    games = VectorGame(strait, 16, seed=1, auto_reset=False)
    rng = np.random.default_rng(1)
    while len(decisions := games.decisions()):
        orders = games.new_orders()
        first, last = decisions.order_start[:-1], decisions.order_start[1:]
        games.write_orders(orders, decisions, decisions.order[rng.integers(first, last)])
        games.step(orders)
    assert (games.centers().sum(1) >= 2).all()
    assert (games.state.end != 0).all()


def test_the_commands_for_a_map(strait):
    lines = [line for block in blocks(OWN_MAP, "sh") for line in block.splitlines()]
    assert len(lines) == 3
    for line in lines:
        program, _, words = line.removeprefix("python ").partition(" ")
        if program == "-m":
            arguments = _parser().parse_args(shlex.split(words.partition(" ")[2]))
            assert "strait.toml" in (getattr(arguments, "map", ""), getattr(arguments, "file", ""))
        else:
            words = words.replace("configs/", f"{ROOT / 'configs'}/")
            assert parse_args(Args, shlex.split(words), CONFIGS).args.map == "strait.toml"
    words = "evaluate --map strait.toml --player dumbbot --against random --games 2"
    assert main(words.split()) == 0


def test_the_commands_and_example_of_viewing(capsys):
    lines = [line for block in blocks(VIEWING, "sh") for line in block.splitlines()]
    assert len(lines) == 3
    for line in lines:
        program, words = line.split(" replay ")
        assert program == "python -m diplomacy_engine"
        assert _parser().parse_args(["replay", *shlex.split(words)]).file == "GAMES.jsonl"
    (code,) = blocks(VIEWING, "python")
    exec(compile(code, "viewing.md", "exec"), {})
    shown = re.findall(r"^print\(.*\)  # (.+)$", code, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == shown != []


def test_what_may_be_left_out_of_a_map(strait):
    facts = tomllib.loads(strait.read_text())
    assert Map(facts).max_years == 10
    del facts["first_phase"], facts["max_years"]
    facts["start_units"] = {}
    assert (Map(facts).max_years, Map(facts).board.first_year) == (20, 1901)


def test_lines_of_the_standard_map():
    text = (MAPS_FOLDER / "standard.toml").read_text().splitlines()
    shown = [line for line in quoted_lines(OWN_MAP) if re.match(r'"?[A-Z]{3}', line)]
    assert len(shown) == 5 and all(line in text for line in shown)
    table = vocabulary(load_map("standard")).table
    for number in (MAX_NEIGHBORS, MAX_CONVOY_SEAS, MAX_CONVOY_ROUTES, MAX_FILE_BYTES, 500):
        assert f"{number:,} " in OWN_MAP.replace("\n", " ")
    assert f"{len(table.route_goal):,}" in OWN_MAP


MOVEMENT = {
    "FRANCE": ["A PAR", "A GAS", "F MAO"],
    "ENGLAND": ["A LON", "F NTH"],
    "RUSSIA": ["F STP/NC"],
}
POSITIONS = (
    {"name": "S1901M", "units": MOVEMENT},
    {
        "name": "S1901R",
        "units": {"FRANCE": ["A MUN"]},
        "retreats": {"GERMANY": {"A MUN": ["RUH"]}},
    },
    {"name": "W1901A", "units": {}, "centers": {"RUSSIA": ["MOS", "STP"]}},
)


def readings(text: str) -> set[str]:
    """Return how a text is understood by any power in any of the positions."""
    found = set()
    for position in POSITIONS:
        game = Game.from_state("standard", position)
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


@pytest.mark.parametrize("number", range(7))
@pytest.mark.filterwarnings("ignore::UserWarning")  # Stable-Baselines3 recommends a Monitor
def test_the_examples_of_environments_run(number, capsys):
    assert len(blocks(ENVIRONMENTS, "python")) == 7
    code = blocks(ENVIRONMENTS, "python")[number]
    exec(compile(code, f"environments.md, example {number}", "exec"), {"__name__": "__main__"})
    assert (
        capsys.readouterr().out.splitlines()
        == re.findall(r"^(?:print\(.*\)|parallel_api_test\(.*\))  # (.+)$", code, re.MULTILINE)
        != []
    )
    assert max(map(len, code.splitlines())) <= 100


def test_every_argument_of_the_environments_is_explained():
    for environment in (DiplomacyEnv, DiplomacyVectorEnv):
        names = set(inspect.signature(environment).parameters) - {"num_envs", "form"}
        assert names <= set(re.findall(r"^\| `(\w+)` \|", ENVIRONMENTS, re.MULTILINE))
    for name in IDS:
        shape = name.replace("Diplomacy-", "").removesuffix("-v0")
        assert name == "Diplomacy-v0" or shape.partition("-")[0] in MAP_NAMES
        generic = re.sub("small|three|standard", "MAP", name)
        assert f"| `{generic}` |" in ENVIRONMENTS
