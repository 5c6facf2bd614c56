"""The figures of scoring/outcomes.py by power and by team, and between what they lie on a map."""

from collections.abc import Sequence

import numpy as np

from ..rules.map import Map
from ..scoring.outcomes import FIGURES, Outcomes, figure_ranges, figure_values
from .statistics import summarize


def by_side(
    names: Sequence[str], values: dict[str, np.ndarray], mine: np.ndarray, ranges: dict
) -> dict[str, dict]:
    """Return a player's figures with each power or team that it has played.

    Args:
        names: of these.
        values: (games, sides) of each figure.
        mine: (games, sides) bool, where the player sat.
        ranges: as for `summarize`.
    """
    return {
        name: summarize(
            {figure: values[figure][mine[:, side], side] for figure in FIGURES},
            np.full(mine[:, side].sum(), side),
            ranges,
        )
        for side, name in enumerate(names)
        if mine[:, side].any()
    }


def figure_values_of_teams(
    outcomes: Outcomes, game_map: Map, year_limit: str = "draw"
) -> dict[str, np.ndarray]:
    """Return FIGURES of every team of a map in every finished game, (E, teams) float64 each."""
    teams = game_map.teams
    victory_centers = teams.victory_centers or game_map.board.victory_centers
    return figure_values(outcomes.of_teams(teams.of_power), victory_centers, year_limit)


def named_teams(game_map: Map) -> dict[str, str | int]:
    """Return the entries by which results name a map's teams and their victory."""
    return {"teams": game_map.teams.text, "team_victory": game_map.teams.victory_centers}


def map_ranges(game_map: Map, max_years: int) -> dict[str, tuple[float, float]]:
    """Return the range (least, greatest) of each mean that powers can have in games on a map."""
    board = game_map.board
    centers = len(board.center_province)
    return figure_ranges(len(game_map.powers), centers, board.victory_centers, max_years)


def team_ranges(game_map: Map, max_years: int) -> dict[str, tuple[float, float]]:
    """Return such ranges of the map's teams, or of its powers if it has no teams."""
    board, teams = game_map.board, game_map.teams
    centers, victory = len(board.center_province), teams.victory_centers or board.victory_centers
    return figure_ranges(len(teams.names), centers, victory, max_years)
