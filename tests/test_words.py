"""A name says what a value is: no new variable or parameter has a name that only says what happened
to it. CONTRIBUTING.md explains."""

import ast
from pathlib import Path

import pytest
from support.tables import read_table

REPOSITORY = Path(__file__).parent.parent
WORDS = {
    *("asked", "found", "given", "heat", "kept", "known", "left", "luck", "made", "matched"),
    *("mended", "said", "seen", "slopes", "told", "unaided", "vain", "warmth", "who", "whole"),
}
PRODUCT = ("diplomacy_engine", "diplomacy_learners", "ppo_selfplay_diplomacy.py")
# Folder or file -> how many such values it still has. These numbers only fall; all others are 0.
ALLOWED = {
    "diplomacy_engine/learning": 6,
    "diplomacy_engine/press": 1,
    "diplomacy_engine/rules": 1,
}


def bound_words(source: str) -> list[tuple[int, str]]:
    """Return line and name of each variable or parameter of `source` that is one of WORDS."""
    bound = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.append((node.lineno, node.id))
        elif isinstance(node, ast.arg):
            bound.append((node.lineno, node.arg))
    return sorted((line, name) for line, name in bound if name in WORDS)


def python_files(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*.py"))


def folder_of(file: str) -> str:
    """Return a file's folder inside the package, or of the other learners, or the file itself."""
    parts = file.split("/")
    return "/".join(parts[:2]) if parts[0] == PRODUCT[0] else parts[0]


@pytest.mark.parametrize("source", read_table(__file__, "every_way_to_bind_a_name_counts"))
def test_every_way_to_bind_a_name_counts(source):
    assert [name for _, name in bound_words(source)] == ["found"]


def test_uses_and_longer_names_do_not_count():
    assert bound_words("f(found.left, who=found)\nnum_found = found['given']") == []


def test_no_new_value_has_a_name_that_only_says_what_happened_to_it():
    places = {}
    for path in sorted(path for name in PRODUCT for path in python_files(REPOSITORY / name)):
        file = path.relative_to(REPOSITORY).as_posix()
        for line, name in bound_words(path.read_text(encoding="utf-8")):
            places.setdefault(folder_of(file), []).append(f"{file}:{line} {name}")
    assert not {
        folder: names for folder, names in places.items() if len(names) > ALLOWED.get(folder, 0)
    }
