"""Tables of the commands fit the terminal: names stand whole, and no number is cut."""

import io
import re

import pytest
from rich.console import Console

from diplomacy_engine import BOTS, evaluate_player, make_bot
from diplomacy_engine.commands._console import make_console, print_table
from diplomacy_engine.commands.evaluate import print_evaluation
from diplomacy_engine.commands.tournament import print_tournament
from diplomacy_engine.matches.tournament import play_tournament

RUN = "runs/standard__ppo_selfplay_diplomacy__1__1795332087/checkpoint.pt"
widths = pytest.mark.parametrize("width", [60, 120])


class Named:
    def __init__(self, name: str):
        self.name, self.bot = name, make_bot("chaos")

    def act(self, *arguments):
        return self.bot.act(*arguments)


def printed(width: int, function, *arguments) -> str:
    file = io.StringIO()
    function(Console(width=width, file=file, highlight=False, markup=False), *arguments)
    shown = file.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    return shown


def whole(shown: str) -> str:
    return re.sub(r"\s*\n\s*", "", shown)


@pytest.fixture(scope="module")
def evaluations() -> list[dict]:
    players = Named(RUN), make_bot("dumbbot-paquette")
    return [
        evaluate_player(name, *players, games, max_years=2).result()
        for name, games in (("small", 2), ("standard", 7))
    ]


@pytest.fixture(scope="module")
def tournament() -> dict:
    players = [Named(RUN), *map(Named, BOTS)]
    return play_tournament("standard", players, len(players), max_years=2).result()


@widths
def test_evaluate(width, evaluations):
    for result in evaluations:
        shown = printed(width, print_evaluation, result | {"greedy": False})
        assert RUN in whole(shown)
        for power in ("all seats", *result["by_power"]):
            assert shown.count(power) == 1
        for name in ("solo", "sum of squares", "deepdip reward", "game years"):
            assert re.search(rf"^{name} +[-\d]", shown, re.MULTILINE)
        for part in result["by_power"].values():
            assert f"{part['centers']['value']:.3f}" in shown
        low, high = (result["overall"]["rank"][end] for end in ("low", "high"))
        assert f"({low:.3f} to {high:.3f})" in shown


@widths
def test_tournament(width, tournament):
    shown = printed(width, print_tournament, tournament | {"greedy": False})
    blocks = shown.split("\n\n")
    tables = [block for block in blocks if block.startswith("player")]
    assert len(tables) >= 4
    for table in tables:  # each has every name whole
        names = "".join(re.split(r"  | *\n", line)[0].strip() for line in table.splitlines())
        for number, name in enumerate(tournament["players"], 1):
            assert f"{number} {name}" in names
    for found in tournament["players"].values():
        rating = found["rating"]
        assert f"{rating['value']:.1f} ({rating['low']:.1f} to {rating['high']:.1f})" in shown
        for figures in found["by_power"].values():
            assert f" / {figures['centers']['value']:.1f} / {figures['rank']['value']:.1f}" in shown
    for power in tournament["players"][RUN]["by_power"]:
        assert shown.count(power) == 1


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
