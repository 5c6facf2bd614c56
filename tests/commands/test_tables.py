"""Tables of the commands fit the terminal: names stand whole, and no number is cut."""

import io

import pytest
from rich.console import Console

from diplomacy_engine.commands._console import make_console, print_table


def printed(width: int, function, *arguments) -> str:
    file = io.StringIO()
    function(Console(width=width, file=file, highlight=False, markup=False), *arguments)
    shown = file.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    return shown


@pytest.mark.parametrize("width", [20, 40, 1000])
def test_any_table_keeps_its_cells(width):
    names = ["a", "1 " + "runs/" * 30, "日本" * 20, "[bold]x"]
    rows = [(name, ["12.3", "[0.1 - 9]", "-" * 6]) for name in names]
    file = io.StringIO()
    print_table(
        Console(width=width, file=file, markup=False),
        "player",
        ("x", "[red]", "three"),
        rows,
        "[i]t",
    )
    shown = file.getvalue()
    assert "…" not in shown and "[i]t" in shown and "[red]" in shown
    assert shown.count("[0.1 - 9]") == shown.count("12.3") == len(rows)


def test_a_pipe_has_whole_lines_unless_columns_says_how_wide(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert make_console().width == 200
    monkeypatch.setenv("COLUMNS", "72")
    assert make_console().width == 72


def test_tables_fit_100_columns():
    """Also where a pipe has room for more; no cell is lost."""
    rows = [("player", [f"cell {n} of twenty" for n in range(9)])]
    shown = printed(200, print_table, "name", [f"column {n}" for n in range(9)], rows)
    assert max(map(len, shown.splitlines())) <= 100 and "cell 8 of twenty" in shown
