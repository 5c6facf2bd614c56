"""Games in transcripts: talk, votes, orders, positions, maps of other rules."""

import json

import pytest
from support.games import nonempty, standard
from support.maps import tribes
from support.transcripts import expressions, follow, names_of

from diplomacy_engine import Game


def read_back(saved: dict, *arguments, **changes) -> Game:
    """Return the game of a saved game that went through a file."""
    return Game.from_saved_game(json.loads(json.dumps(saved)), *arguments, **changes)


@pytest.mark.parametrize("name", names_of(__file__, "transcripts"))
def test_transcript(name):
    do = expressions(Game, Game, nonempty, read_back, standard, tribes)
    follow(__file__, "transcripts", name, do)
