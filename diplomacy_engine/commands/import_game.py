"""`import-game`: games that were played elsewhere become saved games."""

from .._files import check_target
from .._suggest import printable
from ..errors import UserError
from ..rules.map import MAP_NAMES
from ..textgame.imports.games import read_games, short_report
from ._console import print_notes
from ._flags import ImportGame
from ._matches import write_lines


def run_import_game(arguments: ImportGame) -> int:
    check_target(arguments.output)
    notes: list[str] = []
    games = list(read_games(arguments.file, arguments.map, arguments.variant, notes.append))
    try:
        reports = []
        for game in games:
            has_map = game.get("map") in MAP_NAMES or game.get("map_facts") is not None
            reports.append(short_report(game, None if has_map else arguments.map))
    except UserError as error:
        raise UserError(f"{arguments.file}: {error}") from None
    print_notes(notes)
    for report in reports:
        print(printable(report))
    write_lines(arguments.output, games)
    return 0
