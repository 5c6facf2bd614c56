"""`import-game`: games that were played elsewhere become saved games."""

import json
from pathlib import Path

from .._files import atomic_write, check_target
from .._suggest import printable
from ..errors import UserError
from ..textgame.imports.games import read_games, short_report
from ._console import print_notes
from ._flags import ImportGame


def run_import_game(arguments: ImportGame) -> int:
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
