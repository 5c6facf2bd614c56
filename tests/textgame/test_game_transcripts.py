"""Games in transcripts: talk, votes, orders, positions, maps of other rules."""

import json

import pytest
from support.games import nonempty, standard
from support.maps import tribes
from support.transcripts import expressions, follow, names_of

from diplomacy_engine import Game, Map, load_map
from diplomacy_engine.games.votes import bot_votes
from diplomacy_engine.replays.replay import make_replay


def read_back(saved: dict, *arguments, **changes) -> Game:
    """Return the game of a saved game that went through a file."""
    return Game.from_saved_game(json.loads(json.dumps(saved)), *arguments, **changes)


def over(saved: dict, note: str) -> dict:
    """Return a saved game as another program marks it that is over."""
    last = saved["phases"][-1] | {"name": "COMPLETED"}
    last["state"] = last["state"] | {"name": "COMPLETED", "note": note}
    return saved | {"phases": [*saved["phases"][:-1], last]}


def teams(name: str, text: str) -> tuple:
    found = load_map(name).with_teams(text).teams
    return found.names, found.text, found.levels, [part.tolist() for part in found.parts]


FUNCTIONS = (
    *(Game, Map, bot_votes, json.dumps, json.loads, load_map, make_replay),
    *(nonempty, over, read_back, standard, teams, tribes),
)


@pytest.mark.parametrize("name", names_of(__file__, "transcripts"))
def test_transcript(name):
    follow(__file__, "transcripts", name, expressions(Game, *FUNCTIONS))
