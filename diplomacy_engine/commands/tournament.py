"""`python -m diplomacy_engine tournament`: ratings, who ends ahead of whom, results per power."""

import argparse
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from .._files import check_target
from ..matches.tournament import check_tournament, play_tournament
from ..rules.map import load_map
from ._arguments import add_match_options, announce_compilation, load_players, write_result
from ._console import make_console


def add_tournament(commands) -> None:
    """Describe `tournament`."""
    parser = commands.add_parser(
        "tournament",
        help="rate several players in games that they play together",
        description="Seat several players at mixed tables, each as every power equally often, and "
        "print their ratings, who ends ahead of whom, and their results with each power.",
    )
    parser.add_argument(
        "--players",
        required=True,
        nargs="+",
        metavar="PLAYER",
        help="two or more: bots, checkpoints or run folders",
    )
    add_match_options(parser, "at least as many as players")
    parser.set_defaults(run=run_tournament)


def run_tournament(arguments: argparse.Namespace) -> int:
    """Play a tournament, print its tables and write the file asked for."""
    if arguments.json:
        check_target(Path(arguments.json))
    game_map = load_map(arguments.map)
    check_tournament(arguments.players, game_map, arguments.games)
    players = load_players(arguments.players, game_map, arguments)
    announce_compilation()
    result, _ = play_tournament(
        game_map,
        players,
        arguments.games,
        arguments.seed,
        arguments.max_years,
        arguments.year_limit,
        arguments.threads,
    )
    result["greedy"] = arguments.greedy
    _print_tournament(result)
    write_result(arguments.json, result)
    return 0


def _print_tournament(result: dict) -> None:
    console, players = make_console(), result["players"]
    manner = "greedy" if result["greedy"] else "sampled orders"
    console.print(
        f"{len(players)} players on map {result['map']}: {result['games']:,} games, seed "
        f"{result['seed']}, at most {result['max_years']} years ({result['year_limit']}), "
        f"{manner}; in brackets 95 % intervals",
        markup=False,
    )
    labels = {name: f"{number} {name}" for number, name in enumerate(players, 1)}
    columns = "rating", "sigma", "bootstrap", "seats", "solo", "win", "centers", "rank"
    ratings = _table("player", *columns)
    for name, found in players.items():
        rating, overall = found["rating"], found["overall"]
        ratings.add_row(
            escape(labels[name]),
            f"{rating['value']:.1f} ({rating['low']:.1f} - {rating['high']:.1f})",
            f"{rating['sigma']:.2f}",
            f"{rating['bootstrap']:.2f}",
            f"{found['seats']:,}",
            _percent(overall["solo"]),
            _percent(overall["win"]),
            f"{overall['centers']['value']:.2f}",
            f"{overall['rank']['value']:.2f}",
        )
    above, solos = (
        _table(title, *map(str, range(1, len(players) + 1)))
        for title in ("ends above, of shared games", "solos, of shared games")
    )
    for name, row in result["cross_table"].items():
        for table, figure in ((above, "above"), (solos, "solos")):
            cells = ["" if other == name else _cell(row[other], figure) for other in players]
            table.add_row(escape(labels[name]), *cells)
    powers = _table("solo % / win % / centers / rank", *next(iter(players.values()))["by_power"])
    for name, found in players.items():
        cells = [
            " / ".join(
                [f"{100 * figures[rate]['value']:.0f}" for rate in ("solo", "win")]
                + [f"{figures[mean]['value']:.1f}" for mean in ("centers", "rank")]
            )
            for figures in found["by_power"].values()
        ]
        powers.add_row(escape(labels[name]), *cells)
    console.print(ratings, above, solos, powers)


def _table(first: str, *columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")  # a checkpoint's path must be there whole
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _percent(figure: dict[str, float]) -> str:
    value, low, high = (100 * figure[key] for key in ("value", "low", "high"))
    return f"{value:.1f} % ({low:.1f} - {high:.1f})"


def _cell(found: dict | None, figure: str) -> str:
    return "-" if found is None else _percent(found[figure])
