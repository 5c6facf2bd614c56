"""`import-game`: games that were played elsewhere become saved games."""

import argparse
import json
from pathlib import Path

from .._files import atomic_write, check_target
from .._suggest import printable
from ..errors import UserError
from ..games.imports import read_games, short_report
from ._console import print_notes


def add_import_game(commands) -> None:
    """Describe `import-game`."""
    parser = commands.add_parser(
        "import-game",
        help="turn a game played elsewhere into a saved game",
        description="Read a webDiplomacy site's history.json, blocks of order texts by power and "
        "phase, or saved games; replay them under our rules; report their contents and any "
        "differences. `replay` and `play --resume` read the same files.",
        needs="FILE",
        examples=("history.json --output game.jsonl", "orders.txt --output game.jsonl"),
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="the file; its format is recognized by its content")
    add("--output", "-o", metavar="FILE", help="write the saved games here (.jsonl)")
    add("--map", metavar="FILE", help="map of the game, if it does not name it (default: standard)")
    add(
        "--variant",
        metavar="FILE",
        help="the site's variant.json, for a history.json on a map other than Classic",
    )
    parser.set_defaults(run=run_import_game)


def run_import_game(arguments: argparse.Namespace) -> int:
    """Read, report and write."""
    if arguments.output:
        check_target(Path(arguments.output))
    notes: list[str] = []
    games = list(read_games(arguments.file, arguments.map, arguments.variant, notes.append))
    if not games:
        raise UserError(f"{arguments.file} has no game in it")
    try:
        reports = [short_report(game, arguments.map) for game in games]
    except UserError as error:
        raise UserError(f"{arguments.file}: {error}") from None
    print_notes(notes)
    for report in reports:
        print(printable(report))
    if arguments.output:
        lines = "".join(json.dumps(game) + "\n" for game in games)
        atomic_write(arguments.output, lines.encode())
    return 0
