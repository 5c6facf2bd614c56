"""Tables of cases, which stand in files of JSON lines beside the tests."""

import json
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest


def read_table(file: str, name: str) -> list:
    """Return the rows of `tables/NAME.jsonl` beside a test file; lines with # are comments."""
    text = (Path(file).parent / "tables" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line and line[0] != "#"]


def slow_but(always: Collection, cases: Iterable) -> list:
    """Return the arguments of each test case, of which those not in `always` are slow tests."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[] if case in always else pytest.mark.slow,
        )
        for case in cases
    ]


def read_text(file: str, name: str) -> str:
    """Return the text `texts/NAME` beside a test file."""
    return (Path(file).parent / "texts" / name).read_text(encoding="utf-8")
