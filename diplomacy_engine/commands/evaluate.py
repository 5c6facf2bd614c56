"""`evaluate`: plays one player as every power against copies of another."""

import argparse
import json
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from .._files import atomic_write, check_target
from ..matches.arena import evaluate_player
from ..rules.map import load_map
from ..scoring.outcomes import FIGURES, RATES
from ..training.progress import label
from ._arguments import (
    add_match_options,
    announce_compilation,
    load_players,
    whole_number,
    write_result,
)
from ._console import make_console


def add_evaluate(commands) -> None:
    """Describe `evaluate`."""
    parser = commands.add_parser(
        "evaluate",
        help="play a player as every power against copies of another",
        description="Play a player as every power equally often against copies of another, and "
        "print a table of its results with 95 % intervals.",
    )
    add = parser.add_argument
    add(
        "--player",
        required=True,
        metavar="PLAYER",
        help="whose results are tallied: a bot, a checkpoint or a run folder",
    )
    add(
        "--against",
        default="dumbbot",
        metavar="PLAYER",
        help="who plays every other power (default: dumbbot)",
    )
    add_match_options(parser, "rounded up to a multiple of the powers")
    add("--save-games", metavar="FILE", help="write saved games to a .jsonl file")
    add(
        "--save-count",
        type=whole_number(1, 10**6),
        default=10,
        metavar="N",
        help="how many games --save-games writes (default: 10)",
    )
    parser.set_defaults(run=run_evaluate)


def run_evaluate(arguments: argparse.Namespace) -> int:
    """Evaluate a player, print the table and write the files asked for."""
    for file in filter(None, (arguments.json, arguments.save_games)):
        check_target(Path(file))
    game_map = load_map(arguments.map)
    player, against = load_players((arguments.player, arguments.against), game_map, arguments)
    announce_compilation()
    result, saved_games = evaluate_player(
        game_map,
        player,
        against,
        arguments.games,
        arguments.seed,
        arguments.max_years,
        arguments.year_limit,
        arguments.threads,
        samples=arguments.save_count if arguments.save_games else 0,
    )
    result["greedy"] = arguments.greedy
    _print_evaluation(result)
    write_result(arguments.json, result)
    if arguments.save_games:
        lines = "".join(json.dumps(game) + "\n" for game in saved_games)
        atomic_write(arguments.save_games, lines.encode())
    return 0


def _print_evaluation(result: dict) -> None:
    manner = "greedy" if result["greedy"] else "sampled orders"
    overall, by_power = {"all seats": result["overall"]}, result["by_power"]
    console = make_console()
    console.print(
        f"{result['player']} against {result['against']} on map {result['map']}: "
        f"{result['games']:,} games, seed {result['seed']}, at most {result['max_years']} years "
        f"({result['year_limit']}), {manner}; in brackets 95 % intervals",
        markup=False,
    )
    if len(by_power) <= 2:
        console.print(_table(overall | by_power, True))
    else:
        console.print(_table(overall, True), _table(by_power, False))


def _table(columns: dict[str, dict], intervals: bool) -> Table:
    """Return a table of FIGURES, one line each."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("figure", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for figure in FIGURES:
        cells = [_figure_text(figure, column[figure], intervals) for column in columns.values()]
        table.add_row(label(figure), *cells)
    return table


def _figure_text(figure: str, found: dict[str, float], interval: bool) -> str:
    percent = figure in RATES
    value, low, high = (
        f"{100 * found[key]:.1f}" if percent else f"{found[key]:.3f}"
        for key in ("value", "low", "high")
    )
    unit = " %" if percent else ""
    return f"{value}{unit} ({low} - {high})" if interval else value + unit
