"""Ways of armies over the sea, where a server wants to know every fleet."""

from collections import deque
from collections.abc import Iterator

from ..constants import ARMY, FLEET, SEA
from ..games.game import Game
from ..rules.map import Map
from ..rules.notation import province_of, read_order

_MOST_PATHS = 20_000  # that are looked at


def convoy_path(game: Game, text: str) -> list[str]:
    """Return the provinces over which an army that an order is about goes by sea.

    Args:
        game: the position.
        text: an order, as Game writes it.

    Returns:
        The army's province and those of the fleets, in order; empty if it goes by land, or if no
        fleets on the board can carry it. A convoy goes over the fleet that is ordered, a support
        not.
    """
    if text == "WAIVE":
        return []
    order = read_order(game.map, text)
    names, verb = game.map.provinces, text.split()[2]
    mover = order.unit if verb == "-" else order.other
    if order.target is None or mover is None or mover.kind != ARMY or verb not in ("-", "S", "C"):
        return []
    origin, goal = mover.place.province, order.target.province
    by_land = bool(game.map.board.reach[ARMY, game.map.board.province_location[origin], goal])
    if (verb == "-" and not order.via) or (verb == "S" and by_land):
        return []
    own = order.unit.place.province
    for path in _sea_paths(game, origin, goal):
        if (verb != "C" or own in path) and (verb != "S" or own not in path):
            return [names[v] for v in path]
    return []


def _sea_paths(game: Game, origin: int, goal: int) -> Iterator[list[int]]:
    """Yield ways over fleets on the board, the shortest first, as provinces without the goal."""
    board = game.map.board
    fleets = [unit for own in game.units.values() for unit in own if unit[0] == "F"]
    seas = [game.map.province_index[province_of(unit)] for unit in fleets]
    seas = [v for v in seas if board.terrain[v] == SEA]
    near = {v: _sea_neighbors(game.map, v) for v in seas}
    paths = deque([origin, v] for v in seas if origin in near[v])
    for _ in range(_MOST_PATHS):
        if not paths:
            return
        path = paths.popleft()
        if goal in near[path[-1]]:
            yield path
        paths.extend([*path, v] for v in seas if v not in path and v in near[path[-1]])


def _sea_neighbors(game_map: Map, v: int) -> set[int]:
    """Return the provinces next to a sea."""
    board, here = game_map.board, game_map.board.province_location[v]
    near = board.neighbor[FLEET, here, : board.neighbor_count[FLEET, here]]
    return {int(board.location_province[location]) for location in near.tolist()}
