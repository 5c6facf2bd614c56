"""What holds for all games of a match."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..press.table import PressRules
from ..rules.map import Map, load_map
from ..rules.state import LAST_YEAR
from ..scoring.outcomes import check_year_limit

BATCH = 1024  # games at once; bounds the memory a network needs for their decisions


@dataclass(frozen=True)
class MatchSettings:
    """Settings of a match; UserError if one is out of range."""

    game_map: Map
    """the map, with its teams; its name or file will do"""
    seed: int = 1
    """of the games and, where they are drawn, of seats; the same seed gives the same result"""
    max_years: int | None = None
    """game years after which a game ends; None: the map's own, which then stands here"""
    year_limit: str = "draw"
    """`draw` or `truncate`, see outcomes.figure_values"""
    threads: int | None = None
    """of the games, which change no result; None: as many as there are processors"""
    batch: int = BATCH
    """games at once; those of bots do not depend on it"""
    press: PressRules | None = None
    """how powers talk before they order; None: they do not"""
    draws_after: int | None = None
    """year from which players vote for a draw (games/votes.py says which); None: nobody votes"""

    def __post_init__(self) -> None:
        game_map = load_map(self.game_map)
        object.__setattr__(self, "game_map", game_map)
        if self.max_years is None:
            object.__setattr__(self, "max_years", game_map.max_years)
        if self.max_years < 1 or self.batch < 1:
            raise UserError("a match needs at least one year, and a batch at least one game")
        check_year_limit(self.year_limit)
        if self.draws_after is not None and not 1 <= self.draws_after <= LAST_YEAR:
            raise UserError(f"draws_after must be a year from 1 to {LAST_YEAR:,}")

    def game_seeds(self, first: int, count: int) -> np.ndarray:
        """Return what so many games from number `first` (counted from 0) draw from, uint64.

        A game's seed depends on its number alone, not on those that are played with it.
        """
        return np.random.SeedSequence(self.seed).generate_state(first + count, np.uint64)[first:]


def match_settings(match: MatchSettings | Map | str | Path, **changes: Any) -> MatchSettings:
    """Return settings with some changed; of a map alone all that are not named are the usual."""
    if isinstance(match, MatchSettings):
        return replace(match, **changes)
    return MatchSettings(match, **changes)
