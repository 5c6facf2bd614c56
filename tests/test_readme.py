"""What README.md shows is true: its examples run, its commands parse, its files are there."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from diplomacy_engine.commands.cli import _parser
from diplomacy_engine.rules.map import MAP_NAMES
from diplomacy_engine.training.settings import parse_args
from ppo_selfplay_diplomacy import CONFIGS, Args

ROOT = Path(__file__).parent.parent
README = re.sub(r"<!--.*?-->", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
SHOWN = re.compile(r"^print\(.*\)  # (.+)$", re.MULTILINE)


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def command_lines(program: str) -> list[list[str]]:
    """Return the words after `program` in each shell line that runs it."""
    lines = [line for block in blocks("sh") for line in block.splitlines() if program in line]
    assert lines
    return [shlex.split(line.partition(program)[2]) for line in lines]


@pytest.mark.parametrize("number", range(3))
def test_python_examples(number, capsys):
    assert len(blocks("python")) == 3
    code = blocks("python")[number]
    exec(compile(code, f"README.md, example {number}", "exec"), {})
    assert capsys.readouterr().out.splitlines() == SHOWN.findall(code) != []


def test_training_commands():
    maps = set()
    for words in command_lines("python ppo_selfplay_diplomacy.py "):
        words = [str(ROOT / word) if word.startswith("configs/") else word for word in words]
        maps.add(parse_args(Args, words, CONFIGS).args.map)
    assert maps == {"small", "my_map.toml"}


def test_engine_commands():
    found = [_parser().parse_args(w) for w in command_lines("python -m diplomacy_engine ")]
    assert len(found) >= 2


def test_two_commands_set_everything_up():
    """Each is one line from a fresh clone; .ci/run takes the one of the tests from here."""
    lines = [line.split() for line in README.splitlines() if line.startswith("python3 -m venv ")]
    assert sum(words[-1] == "small" for words in lines) == 1
    assert sum(words[-1] == ".venv/bin/pytest" for words in lines) == 1


def test_requirements_are_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    for pin in pins + project["optional-dependencies"]["dev"]:
        assert re.fullmatch(r"[a-z0-9-]+==[\d.]+", pin), pin


def test_links_and_files():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
    for heading in re.findall(r"\]\(#([^)]+)\)", README):
        assert f"\n## {heading.replace('-', ' ')}\n" in README.lower()
    (tree,) = blocks("")
    folder = ROOT
    for line in tree.splitlines():
        name = line.split()[0]
        path = (folder if line.startswith("  ") else ROOT) / name
        assert path.exists() or name == "runs/", name
        if not line.startswith("  "):
            folder = path
    assert all(name in README for name in MAP_NAMES)
