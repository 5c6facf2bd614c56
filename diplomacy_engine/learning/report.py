"""report.md of a run: settings, training and evaluation, in one page to share."""

import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import torch

from .._cores import usable_cores
from .._version import VERSION
from ..matches.figures import limit_text, mean_text, share_text, sides_of

# Column of the table of curves -> figure in metrics.jsonl, newest at an evaluation.
COLUMNS = {
    "rating": "pool/rating",
    "entropy": "losses/entropy",
    "explained variance": "losses/explained_variance",
    "decisions/s": "charts/decisions_per_second",
}


def report(
    title: str,
    settings: Sequence[str],
    commands: Mapping[str, str],
    minutes: float,
    metrics: Path,
    evaluations: Mapping[str, Mapping],
) -> str:
    """Return the text of a report.

    `settings`: lines that say where they come from; `commands` by purpose; `metrics`: the file
    metrics.jsonl; `evaluations`: the last results by opponent, as `Evaluation.result` has them.
    """
    rows = _curves(metrics, list(evaluations))
    often = [bot for bot in evaluations if all(_wins(bot) in row for row in rows)]
    limit = limit_text(next(iter(evaluations.values())))
    lines = [
        *(f"# {title}", ""),
        f"{rows[-1]['decisions']:,} decisions of the learner in {minutes:.1f} minutes, "
        f"{date.today():%d %B %Y}. diplomacy-selfplay {VERSION}{_commit()}, "
        f"PyTorch {torch.__version__}, Python {platform.python_version()}, {usable_cores()} cores "
        f"of {platform.machine()} ({platform.system()}).",
        *("", "## Settings", "", *(f"- {line}" for line in settings or ["the script's defaults"])),
        *("", "## Evaluation", "", f"Games of {limit}, with intervals that hold 95%.", ""),
        *table([_result_row(bot, result) for bot, result in evaluations.items()]),
    ]
    for bot, result in evaluations.items():
        sides = sides_of(result).items()
        wins = (f"{side} {share_text(figures['win'])}" for side, figures in sides)
        lines += ["", f"Wins against {bot} as {', '.join(wins)}."]
    lines += ["", "## Curves", ""]
    for bot in often if len(rows) > 1 else ():
        steps, wins = zip(*((row["decisions"], row[_wins(bot)]) for row in rows))
        lines += _chart(_wins(bot), steps, wins)
    titles = ["decisions", *map(_wins, often), *COLUMNS]
    lines += table([{title: _cell(row.get(title)) for title in titles} for row in rows])
    lines += ["", "## Commands", ""]
    for what, command in commands.items():
        lines += [f"{what.capitalize()}:", "", f"    {command}", ""]
    return "\n".join(lines)


def _commit() -> str:
    """Return the commit of the project's code, if it lies in a repository."""
    folder = Path(__file__).parents[2]
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return f" (commit {done.stdout.strip()})"


def _wins(bot: str) -> str:
    return f"wins against {bot}, %"


def _curves(metrics: Path, bots: Sequence[str]) -> list[dict[str, float]]:
    """Return a row of the table for each evaluation."""
    newest: dict[str, float] = {}
    rows = []
    for line in metrics.read_text().splitlines():
        figures = json.loads(line)
        newest |= figures
        wins = {
            _wins(b): 100 * figures[f"eval/{b}/win"] for b in bots if f"eval/{b}/win" in figures
        }
        if wins:
            shown = {title: newest[name] for title, name in COLUMNS.items() if name in newest}
            rows.append({"decisions": figures["global_step"]} | wins | shown)
    return rows


def _cell(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{0 if abs(value) > 100 else 2}f}"


def _result_row(bot: str, result: Mapping) -> dict[str, str]:
    overall = result["overall"]
    rates = {f"{name}s": share_text(overall[name]) for name in ("win", "solo", "draw")}
    centers = mean_text(overall["centers"])
    return {"against": bot, "games": f"{result['games']:,}"} | rates | {"centers": centers}


def table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the lines of a table in Markdown; its columns are those of the first row."""
    cells = [list(rows[0]), ["---"] * len(rows[0]), *(row.values() for row in rows)]
    return [f"| {' | '.join(row)} |" for row in cells]


def _chart(title: str, steps: Sequence[float], values: Sequence[float]) -> list[str]:
    """A line chart for pages that draw Mermaid, such as GitHub's; elsewhere its numbers."""
    even = np.linspace(steps[0], steps[-1], len(steps))  # as Mermaid draws the points of a line
    points = ", ".join(f"{value:.1f}" for value in np.interp(even, steps, values))
    span = f"{steps[0] / 1e6:g} --> {steps[-1] / 1e6:g}"
    return [
        *("```mermaid", "xychart-beta", f'title "{title}"'),
        *(f'x-axis "million decisions" {span}', 'y-axis "%" 0 --> 100', f"line [{points}]"),
        *("```", ""),
    ]
