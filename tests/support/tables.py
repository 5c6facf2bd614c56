"""Tables of cases, which stand in files of JSON lines beside the tests."""

import json
from pathlib import Path


def read_table(file: str, name: str) -> list:
    """Return the rows of `tables/NAME.jsonl` beside a test file; lines with # are comments."""
    text = (Path(file).parent / "tables" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line and line[0] != "#"]


def read_text(file: str, name: str) -> str:
    """Return the text `texts/NAME` beside a test file."""
    return (Path(file).parent / "texts" / name).read_text(encoding="utf-8")
