"""The command line of the engine's tools.

Each command has a function `add_...` that describes its flags and one `run_...` that does it.
Bad input ends in one sentence on standard error and exit code 2.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rich.box import SIMPLE_HEAD
from rich.table import Table

from ._arguments import (
    add_match_options,
    announce_compilation,
    load_players,
    whole_number,
    write_result,
)
from ._console import make_console
from .arena import FIGURES, RATES, evaluate_player
from .bench import BOT_UNIT, NUM_GAMES, STAGES, last_year, measure
from .bots import BOTS
from .map import MAP_NAMES, MapError, load_map
from .play_command import add_play
from .progress import label
from .replay_command import add_replay
from .run_folder import atomic_write, check_target
from .tournament_command import add_tournament
from .vector_game import VectorGame

_DESCRIPTION = f"""\
Tools for no-press Diplomacy on the maps {", ".join(MAP_NAMES)}, or on your own map file.
A player is a bot ({", ".join(BOTS)}),
the path of a checkpoint, or a run folder.
"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        print(f"error: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0, or 2 for bad input, or 130 when interrupted."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m diplomacy_engine",
        allow_abbrev=False,
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_evaluate(commands)
    add_tournament(commands)
    add_play(commands)
    add_bench(commands)
    add_check_map(commands)
    add_replay(commands)
    return parser


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


def add_bench(commands) -> None:
    """Describe `bench`."""
    parser = commands.add_parser(
        "bench",
        help="measure the speed of the engine",
        description="Measure random legal play, legal orders included, and each stage and bot of "
        "the engine, once the kernels are compiled. Run it on an otherwise idle machine.",
    )
    add = parser.add_argument
    add(
        "--map",
        default="standard",
        help="small, three, standard, or the path of a map file (default: standard)",
    )
    add(
        "--threads",
        type=whole_number(1, 1024),
        default=1,
        metavar="N",
        help="threads of the play; stages and bots are always timed in one (default: 1)",
    )
    add(
        "--games",
        type=whole_number(1, 10**6),
        default=NUM_GAMES,
        metavar="N",
        help=f"games at once (default: {NUM_GAMES})",
    )
    add(
        "--seconds",
        type=_seconds,
        default=5.0,
        metavar="S",
        help="seconds of play to measure (default: 5)",
    )
    add(
        "--until-year",
        type=whole_number(1, 20000),
        metavar="Y",
        help="last year of a game, which then starts again (default: the tenth; 1910 on standard)",
    )
    add(
        "--seed",
        type=whole_number(0, 2**62),
        default=1,
        metavar="N",
        help="of the games (default: 1)",
    )
    add("--json", metavar="FILE", help="write the figures to a file")
    parser.set_defaults(run=run_bench)


def _seconds(text: str) -> float:
    """Return a time for argparse: at most an hour."""
    try:
        if 0 < float(text) <= 3600:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be seconds above 0, up to 3600, not {text!r:.40}")


def run_bench(arguments: argparse.Namespace) -> int:
    """Measure, print the tables and write the file asked for."""
    if arguments.json:
        check_target(Path(arguments.json))
    game_map = load_map(arguments.map)
    until_year = last_year(game_map, arguments.until_year)
    announce_compilation()
    found = measure(
        game_map,
        arguments.threads,
        arguments.games,
        arguments.seconds,
        until_year,
        arguments.seed,
    )
    _print_bench(found)
    write_result(arguments.json, found)
    return 0


def _print_bench(found: dict) -> None:
    console, machine = make_console(), found["machine"]
    console.print(
        f"random play on map {found['map']} to {found['until_year']}: {found['threads']} "
        f"thread{'s' * (found['threads'] > 1)}, {found['games']:,} games at once, "
        f"{found['seconds']:.1f} s; {machine['cpu']}, {machine['cores']} cores",
        markup=False,
    )
    rows = [
        ("phases/s", f"{found['phases_per_second']:,.0f}"),
        ("games/s", f"{found['games_per_second']:,.0f}"),
        ("bytes/game", f"{found['memory_bytes_per_game']:,}"),
    ]
    peer = found["diplomacy_package"]
    if peer is not None and "error" in peer:
        rows.append(("diplomacy package", f"failed: {peer['error']}"))
    elif peer is not None:
        rows.append((f"diplomacy {peer['version']}, phases/s", f"{peer['phases_per_second']:,.0f}"))
        rows.append(("times as fast", f"{peer['ratio']:,.0f}"))
    stages = Table(box=SIMPLE_HEAD, pad_edge=False)
    stages.add_column("stage, in one thread", no_wrap=True)
    stages.add_column("microseconds", justify="right", no_wrap=True)
    stages.add_column("per", no_wrap=True)
    bots = {f"bot {name}": taken for name, taken in found["bot_microseconds"].items()}
    for name, taken in (found["stage_microseconds"] | bots).items():
        figure = "-" if taken is None else f"{taken:.2f}"
        stages.add_row(name.replace("_", " "), figure, STAGES.get(name, BOT_UNIT))
    totals = Table(box=None, show_header=False, pad_edge=False)
    totals.add_column(no_wrap=True)
    totals.add_column(justify="right", no_wrap=True)
    for row in rows:
        totals.add_row(*row)
    console.print(totals, stages)


def add_check_map(commands) -> None:
    """Describe `check-map`."""
    parser = commands.add_parser(
        "check-map",
        help="say everything that is wrong with a map file",
        description="Read a map file; print everything that is wrong with it, or its counts.",
    )
    parser.add_argument("file", metavar="FILE", help="a map file (TOML), or the name of a map")
    parser.set_defaults(run=run_check_map)


def run_check_map(arguments: argparse.Namespace) -> int:
    """Check a map file; return 2 if something is wrong."""
    try:
        game_map = load_map(arguments.file)
    except MapError as error:
        for problem in error.problems:
            print(f"error: map {error.source}: {problem}", file=sys.stderr)
        return 2
    games = VectorGame(game_map, 1, threads=1)
    board = games.board
    print(
        f"map {game_map.name} is sound: {len(game_map.powers)} powers, "
        f"{len(game_map.provinces)} provinces, {len(game_map.locations)} locations, "
        f"{len(board.center_province)} supply centers, {board.victory_centers} to win, "
        f"{len(games.vocabulary):,} orders"
    )
    return 0
