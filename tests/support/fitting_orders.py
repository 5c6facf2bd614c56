"""Orders for a whole position that fit one another: convoys with all their fleets, supports of what
the others do."""

import random

import numpy as np

from diplomacy_engine.textgame.game import Game

MOST_FLEETS = 3  # of a convoy


class _Routes:
    """The convoys of a map over at most MOST_FLEETS fleets."""

    def __init__(self, game: Game):
        table = game.vector_game.table
        self.sea_index = table.sea_index.tolist()
        self.table = table
        self.short = np.bitwise_count(table.route_seas) <= MOST_FLEETS

    def over(self, sea: int, fleets: int) -> list[tuple[int, int, int]]:
        """Return origin, goal and fleets of those that a sea and others of these fleets carry."""
        seas = self.table.route_seas
        bit = np.uint64(1 << self.sea_index[sea])
        rows = np.flatnonzero(self.short & (seas & bit != 0) & (seas & ~np.uint64(fleets) == 0))
        origin = np.searchsorted(self.table.route_first, rows, side="right") - 1
        return list(zip(origin.tolist(), self.table.route_goal[rows].tolist(), seas[rows].tolist()))


def fitting_orders(game: Game, rng: random.Random) -> dict[str, list[str]]:
    """Return legal orders of every power, one for each unit that may be ordered."""
    legal = {
        unit: game.legal_orders(unit)
        for power in game.powers
        for unit in (game.units[power] if game.phase[-1] == "M" else game.dislodged.get(power, {}))
    }
    owner = {unit: power for power in game.powers for unit in game.units[power]}
    owner |= {unit: power for power in game.powers for unit in game.dislodged.get(power, {})}
    if game.phase[-1] == "A":
        return _winter_orders(game, rng)
    chosen: dict[str, str] = {}
    if game.phase[-1] == "M":
        _convoy(game, rng, legal, chosen)
        moving = rng.uniform(0.2, 0.8)
        for unit, texts in legal.items():
            moves = [t for t in texts if " - " in t and t.split()[2] == "-" and t[-4:] != " VIA"]
            moves = [text for text in moves if unit[0] == "F" or _by_land(game, text)]
            if unit not in chosen and moves and rng.random() < moving:
                chosen[unit] = rng.choice(moves)
        done = {text.removesuffix(" VIA") for text in chosen.values()}
        for unit, texts in legal.items():
            if unit in chosen:
                continue
            fits = [t for t in texts if t.split()[2] == "S" and _fits(t, chosen, done)]
            chosen[unit] = rng.choice(fits) if fits and rng.random() < 0.8 else f"{unit} H"
    else:
        chosen = {unit: rng.choice(texts) for unit, texts in legal.items()}
    orders: dict[str, list[str]] = {power: [] for power in game.powers}
    for unit, text in chosen.items():
        orders[owner[unit]].append(text)
    return orders


def _by_land(game: Game, text: str) -> bool:
    """Tell whether a unit makes a move without a convoy."""
    kind, here, _, there = text.split()
    places = game.map.location_index
    board = game.map.board
    near = board.neighbor["AF".index(kind), places[here]].tolist()
    return places[there] in near


def _fits(text: str, chosen: dict[str, str], done: set[str]) -> bool:
    supported = text.split(" S ")[1]
    if " - " in supported:
        return supported in done
    return " - " not in chosen.get(supported, "")


def _convoy(
    game: Game, rng: random.Random, legal: dict[str, list[str]], chosen: dict[str, str]
) -> None:
    routes, codes = _Routes(game), game.map.provinces
    province = game.map.province_index
    fleets = {
        province[unit[2:]]: unit
        for unit in legal
        if unit[0] == "F" and unit[2:] in province and routes.sea_index[province[unit[2:]]] >= 0
    }
    for sea in rng.sample(sorted(fleets), len(fleets)):
        free = {v: unit for v, unit in fleets.items() if unit not in chosen}
        if sea not in free or rng.random() < 0.4:
            continue
        bits = sum(1 << routes.sea_index[v] for v in free)
        ways = [
            way
            for way in routes.over(sea, bits)
            if f"A {codes[way[0]]}" in legal and f"A {codes[way[0]]}" not in chosen
        ]
        if not ways:
            continue
        origin, goal, used = rng.choice(ways)
        army = f"A {codes[origin]}"
        chosen[army] = f"{army} - {codes[goal]}"
        if _by_land(game, chosen[army]) or rng.random() < 0.5:
            chosen[army] += " VIA"
        for v, unit in free.items():
            if used >> routes.sea_index[v] & 1:
                chosen[unit] = f"{unit} C {army} - {codes[goal]}"


def _winter_orders(game: Game, rng: random.Random) -> dict[str, list[str]]:
    orders: dict[str, list[str]] = {power: [] for power in game.powers}
    for power, count in game.adjustments.items():
        places = game.centers[power] if count > 0 else game.units[power]
        wanted = " B" if count > 0 else " D"
        options = [
            [text for text in game.legal_orders(place) if text.endswith(wanted)] for place in places
        ]
        options = [texts for texts in options if texts]
        chosen = rng.sample(options, min(abs(count), len(options)))
        orders[power] = [rng.choice(texts) for texts in chosen]
    return orders
