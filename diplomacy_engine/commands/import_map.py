"""`import-map`: writes the map file of a map of another program."""

from pathlib import Path

from .._files import atomic_write
from ..errors import UserError
from ..extras.maps.dpjudge import read_dpjudge
from ..extras.maps.draft import map_file_text, read_text
from ..extras.maps.dvar import read_dvar
from ..rules.map import Map
from ..rules.vocabulary import vocabulary
from ..textgame.imports.foreign import refuse_foreign
from ._flags import ImportMap


def run_import_map(arguments: ImportMap) -> int:
    path = Path(arguments.file)
    text = read_text(path)
    try:
        refuse_foreign(text)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    draft = read_dvar(path) if text.lstrip()[:1] in ("{", "[") else read_dpjudge(path)
    game_map = draft.finished()
    counts = map_counts(game_map)
    output = Path(arguments.output or f"{game_map.name}.toml")
    if arguments.output is None and output.exists():
        raise UserError(f"{output} already exists; -o {output} would replace it")
    atomic_write(output, map_file_text(draft.facts, path.name).encode())
    print(f"wrote {output}: map {game_map.name}, {counts}")
    board, notes = game_map.board, list(draft.notes)
    notes += ["units may be built in any center a power owns"] * bool(board.build_anywhere)
    notes += ["lost neutral units come back in winter"] * bool(board.neutral_rebuilds)
    for note in notes:
        print(f"  {note}")
    return 0


def map_counts(game_map: Map) -> str:
    board, words = game_map.board, vocabulary(game_map)
    return (
        f"{len(game_map.powers)} powers, {len(game_map.provinces)} provinces, "
        f"{len(game_map.locations)} locations, {len(board.center_province)} supply centers, "
        f"{board.victory_centers} to win, {len(words):,} orders"
    )
