"""Matches in transcripts: what evaluations and tournaments return of games of fixed seeds."""

import json

import pytest
from support.transcripts import expressions, follow, names_of

from diplomacy_engine import Map, MatchReport, evaluate_player, load_map, load_player
from diplomacy_engine.matches.tournament import play_tournament


def seats(name: str, teams: str = "", victory: int = 0):
    return load_map(name).with_teams(teams, victory) if teams else name


def evaluate(game_map: object, player: str, against: str, games: int, **rules) -> MatchReport:
    return evaluate_player(game_map, load_player(player), load_player(against), games, **rules)


def tournament(game_map: object, players: str, games: int, **rules) -> MatchReport:
    players = [load_player(name) for name in players.split()]
    return play_tournament(game_map, players, games, threads=1, **rules)


def rounded(value: object) -> object:
    """Return a value as JSON has it, which knows no infinity, with four digits of numbers."""
    text = json.dumps(value, allow_nan=False)
    return json.loads(text, parse_float=lambda number: float(f"{float(number):.4g}"))


@pytest.mark.parametrize("name", names_of(__file__, "transcripts"))
def test_transcript(name):
    do = expressions(MatchReport, Map, evaluate, load_map, rounded, seats, tournament)
    follow(__file__, "transcripts", name, do)
