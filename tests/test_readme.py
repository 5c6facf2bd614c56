"""What README.md shows is true: its examples run, its tree is the folders', its names exist."""

import pytest
from support.pages import ROOT, blocks, code_spans, page_text, shown

import ppo_selfplay_diplomacy
from diplomacy_engine.rules.map import MAP_NAMES

README = page_text("README.md")


def section(heading: str) -> str:
    return README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_it_names_the_maps():
    assert all(f"`{name}`" in README for name in MAP_NAMES)


@pytest.mark.parametrize("number", range(2))
def test_python_examples(number, capsys):
    assert len(blocks(README, "python")) == 2
    code = blocks(README, "python")[number]
    exec(compile(code, f"README.md, example {number}", "exec"), {})
    assert capsys.readouterr().out.splitlines() == shown(code) != []


def test_two_commands_set_everything_up():
    """Each is one line from a fresh clone; .ci/run takes the one of the tests from here."""
    lines = [line.split() for line in README.splitlines() if line.startswith("python3 -m venv ")]
    assert sum(words[-1] == "small" for words in lines) == 1
    assert sum(words[-1] == ".venv/bin/pytest" for words in lines) == 1
    assert len(lines) == 2


def test_every_page_can_be_found_from_here():
    index = page_text("docs/index.md")
    for page in (ROOT / "docs").glob("*.md"):
        assert f"](docs/{page.name}" in README or f"]({page.name}" in index, page.name


def test_the_tree_has_every_folder():
    (tree,) = blocks(README)
    names = [line.split()[0] for line in tree.splitlines()]
    assert all(name.endswith("/") for name in names)
    inside = [line.split()[0] for line in tree.splitlines() if line.startswith(" ")]
    engine = ROOT / "diplomacy_engine"
    folders = {path for path in engine.iterdir() if path.is_dir() and any(path.glob("*.*"))}
    assert sorted(inside) == sorted({f"{path.name}/" for path in folders} - {"__pycache__/"})
    outside = [name for name in names if name not in inside]
    assert all((ROOT / name).is_dir() for name in outside), outside


def test_the_names_of_the_script_exist():
    text = section("Reading the script")
    names = [name for name in code_spans(text) if name.isidentifier()]
    assert len(names) > 5
    missing = [name for name in names if not hasattr(ppo_selfplay_diplomacy, name)]
    assert not missing
