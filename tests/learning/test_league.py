"""The ratings of a training run: who plays, what is known better each time, what a file may say."""

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest

from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.learning.checkpoint_state import pack, restore
from diplomacy_engine.learning.league import League
from diplomacy_engine.matches.ratings import DEVIATION, MEAN
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.rules.map import load_map


def pool(*names: str) -> SimpleNamespace:
    """Return a pool whose copies are bots, from number 0 on."""
    agents = {number: make_bot(name) for number, name in enumerate(names)}
    return SimpleNamespace(copies=list(agents), agents=agents)


def league(active: bool = True, **changes) -> League:
    args = {"eval_bots": ("random", "dumbbot"), "league_games": 60, "seed": 1, "max_years": None}
    return League(SimpleNamespace(**args | changes), load_map("small"), active)


def itself(policy, name, seed):
    """Make a player of a policy that is one."""
    return policy


def test_it_rates_the_learner_between_its_copies_and_the_bots():
    members = pool("hold", "random", "chaos", "random", "dumbbot-paquette")
    ours = league()
    rated = ours.play(make_bot("dumbbot-paquette"), members, itself)
    figures = {name.removeprefix("league/"): value for name, value in rated.items()}
    names = "rating_random rating_dumbbot rating_learner rating_pool_oldest rating_pool_newest"
    assert set(figures) == {*names.split(), "rating_learner_deviation"}
    assert figures["rating_random"] == MEAN
    assert figures["rating_dumbbot"] > figures["rating_learner"] > MEAN
    assert figures["rating_learner"] > figures["rating_pool_oldest"]
    assert 0 < figures["rating_learner_deviation"] < DEVIATION
    assert set(ours.ratings) == {"learner", "random", "dumbbot", 0, 2, 4}
    # Bots and copies are known better the second time; who has left the pool is forgotten.
    before = dict(ours.ratings)
    members.copies.remove(0)
    again = ours.play(make_bot("dumbbot-paquette"), members, itself)
    assert again["league/rating_random"] == MEAN and 0 not in ours.ratings
    assert ours.ratings["dumbbot"][1] < before["dumbbot"][1]
    assert ours.ratings[4][1] < before[4][1]


def test_players_are_made_of_policies_with_names_and_seeds_of_their_own():
    made = []

    def make_player(policy, name, seed):
        made.append((policy, name, seed))
        return make_bot("hold")

    members = pool("hold", "chaos")
    ours = league(league_games=6)
    ours.play("ours", members, make_player)
    assert [(policy, name) for policy, name, _ in made] == [
        ("ours", "learner"),
        (members.agents[0], "0"),
        (members.agents[1], "1"),
    ]
    ours.play("ours", members, make_player)
    assert len({seed for *_, seed in made}) == 6  # also from one evaluation to the next


def test_it_goes_on_from_what_a_checkpoint_keeps():
    games = VectorGame("small", 1, threads=1, auto_reset=False)
    members, learner = pool("hold", "chaos"), make_bot("dumbbot-paquette")
    one, two = league(league_games=20), league(league_games=20)
    one.play(learner, members, itself)
    restore(two, copy.deepcopy(pack(one)), games)
    assert one.play(learner, members, itself) == two.play(learner, members, itself)
    assert pack(one) == pack(two)
    known = pack(one)["ratings"]
    for damaged in (
        3,
        {},
        {"ratings": 3, "evaluations": 1},
        {"ratings": known | {"random": [1.0]}, "evaluations": 1},
        {"ratings": known | {"random": [float("nan"), 1.0]}, "evaluations": 1},
        {"ratings": {"learner": [1.0, 1.0]}, "evaluations": 1},
        {"ratings": known | {"somebody": [1.0, 1.0]}, "evaluations": 1},
        {"ratings": known, "evaluations": "1"},
    ):
        with pytest.raises((KeyError, TypeError, ValueError)):
            restore(league(), damaged, games)


def test_no_league():
    for ours in (league(league_games=0), league(eval_bots=()), league(active=False)):
        assert ours.play(None, pool(), None) == {}
        assert ours.evaluations == 0


def test_the_page_has_its_figures():
    page = (Path(__file__).parents[2] / "docs" / "tournament.md").read_text()
    rated = league(league_games=7).play(make_bot("hold"), pool("random"), itself)
    assert rated and all(f"`{name}`" in page for name in rated)
