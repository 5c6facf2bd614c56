"""Where the commands print, and tables that fit there."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table

from .._suggest import printable
from ..matches.figures import percent, share_text

_GAP = 2  # characters between two columns
WIDEST = 100  # characters of a table's lines at the most


class _Console(Console):
    """A console that leaves a closed pipe to the command line; rich would end the program."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def make_console() -> Console:
    """Return a console; a file or pipe gets lines of any length, unless COLUMNS is set."""
    console = _Console(highlight=False, emoji=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        console.width = 200
    return console


def print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        print(f"note: {printable(note)}", file=sys.stderr)


def print_table(
    console: Console,
    first: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str]]],
    title: str = "",
) -> None:
    """Print a table of texts, in parts below each other if it is wider than WIDEST.

    No cell is cut, unless it alone is wider than the console.
    """
    names = [first, *(name for name, _ in rows)]
    cells = [columns, *(values for _, values in rows)]
    widths = [max(cell_len(row[i]) for row in cells) for i in range(len(columns))]
    longest = max(map(cell_len, names))
    total_width = min(console.width, WIDEST)
    room = total_width - longest - sum(widths) - _GAP * len(widths)
    widest = total_width - max(widths) - _GAP
    width = longest if room >= 0 else min(longest, max(total_width // 3, 20), max(widest, 8))
    names = ["\n".join(chop_cells(name, width)) for name in names]
    if title:
        console.print(f"\n{title}")
    for part in _parts(widths, total_width - width):
        table = Table(box=SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False)
        table.add_column(names[0], no_wrap=False, min_width=width)
        for i in part:
            number = any(values[i][:1] in "-+0123456789" for _, values in rows)
            table.add_column(columns[i], justify="right" if number else "left", min_width=widths[i])
        for name, (_, values) in zip(names[1:], rows):
            table.add_row(name, *(values[i] for i in part))
        console.print()
        console.print(table)


def print_counts(console: Console, counts: dict[str, dict]) -> None:
    if not counts:
        return
    for name, counted in counts.items():
        share = counted["fell_back"] / max(1, counted["orders"])
        if share > 0.01:
            reasons = "; ".join(f"{n:,}: {why}" for why, n in counted["fallback_reasons"].items())
            console.print(
                f"Warning: {percent(share)} of {name}'s orders come from its fallback, "
                f"{counted['fallback']} ({reasons})"
            )
    names = list(dict.fromkeys(name for counted in counts.values() for name in counted))
    names = [name for name in names if name not in ("fallback", "fallback_reasons")]
    rows = [
        (name.replace("_", " "), [f"{counted[name]:,}" for counted in counts.values()])
        for name in names
    ]
    print_table(console, "asked of language models", list(counts), rows)


def _parts(widths: Sequence[int], room: int) -> list[range]:
    count = len(widths)
    for number in range(1, count + 1):
        size = -(-count // number)
        parts = [range(first, min(first + size, count)) for first in range(0, count, size)]
        if all(sum(widths[i] + _GAP for i in part) <= room for part in parts):
            return parts
    return [range(i, i + 1) for i in range(count)]


def no_draws(figure_sets: Iterable[Mapping[str, Mapping]]) -> bool:
    return all(figures["draw"]["value"] == 0 for figures in figure_sets)


def notes_on_wins(figure_sets: Iterable[Mapping[str, Mapping]]) -> list[str]:
    if no_draws(figure_sets):
        return ["no game was drawn: every win is a solo"]
    return [
        "win: a solo or, at the year limit, more centers than anybody else (by the rules a draw, "
        "and counted as one too)"
    ]


def print_draws(console: Console, result: dict) -> None:
    draws = result.get("draws")
    if draws is not None:
        agreed, limit = (share_text(draws[name]) for name in ("agreed", "year_limit"))
        console.print(
            f"\ndraws, of all games: by agreement {agreed}, for which players vote from "
            f"{draws['after']} on; at the year limit {limit}"
        )


def print_talk(console: Console, result: dict) -> None:
    talk = result.get("press")
    if talk is None:
        return
    because = ", ".join(f"{name} {mean:.2f}" for name, mean in talk["refused_because"].items())
    rounds = f", {talk['rounds']} rounds" if talk["rounds"] > 1 else ""
    broken = ""
    if talk["agreed"] and not talk["binding"]:
        broken = f"; {percent(talk['kept'])} of the promises were kept"
    console.print(
        f"\npress {talk['protocol']}{rounds}, per game: {talk['offered']:.2f} offered, "
        f"{talk['agreed']:.2f} agreed, {talk['declined']:.2f} declined, {talk['refused']:.2f} "
        f"refused{f' ({because})' if because else ''}; a deal in "
        f"{percent(talk['deal_phases'])} of the movement phases{broken}"
    )
