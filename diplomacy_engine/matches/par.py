"""What `dumbbot` wins in each seat among its like: the maps are uneven, so a seat needs its par.

Each was measured by `evaluate --map MAP --player dumbbot --against dumbbot --seed 1 --games N` with
N below, to the map's own year limit.
"""

from typing import NamedTuple

from ..rules.map import Map, load_map


class Par(NamedTuple):
    """Shares of games of one player among its like."""

    player: str
    games: int
    solo: dict[str, float]  # of each power, 0..1
    win: dict[str, float]


_KNOWN = {
    "small": Par(
        "dumbbot",
        40_000,
        {"ENGLAND": 0.0588, "RUSSIA": 0.9410},
        {"ENGLAND": 0.0588, "RUSSIA": 0.9410},
    ),
    "three": Par(
        "dumbbot",
        30_000,
        {"ENGLAND": 0.0164, "ITALY": 0.0001, "RUSSIA": 0.8481},
        {"ENGLAND": 0.0212, "ITALY": 0.0001, "RUSSIA": 0.8508},
    ),
    "standard": Par(
        "dumbbot",
        7_000,
        dict(
            AUSTRIA=0.006,
            ENGLAND=0.047,
            FRANCE=0.062,
            GERMANY=0.001,
            ITALY=0.040,
            RUSSIA=0.013,
            TURKEY=0.035,
        ),
        dict(
            AUSTRIA=0.022,
            ENGLAND=0.464,
            FRANCE=0.128,
            GERMANY=0.005,
            ITALY=0.091,
            RUSSIA=0.056,
            TURKEY=0.169,
        ),
    ),
}


def par_of(game_map: Map, player: str, max_years: int, year_limit: str) -> Par | None:
    """Return what a player wins in each seat against its like; None where it is not known."""
    par = _KNOWN.get(game_map.name)
    if par is None or player != par.player or year_limit != "draw" or game_map.teams.text:
        return None
    same = load_map(game_map.name).facts == game_map.facts  # a file may have that name, too
    return par if same and max_years == game_map.max_years else None
