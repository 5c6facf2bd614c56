"""`check-map`: lists the mistakes of a map file."""

from .._progress import fail
from ..rules.map import MapError, load_map
from ._flags import CheckMap
from .import_map import map_counts


def run_check_map(arguments: CheckMap) -> int:
    try:
        game_map = load_map(arguments.file)
    except MapError as error:
        for problem in error.problems:
            fail(f"map {error.source}: {problem}")
        return 2
    print(f"map {game_map.name} is valid: {map_counts(game_map)}")
    return 0
