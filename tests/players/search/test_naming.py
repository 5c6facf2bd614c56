"""How searching players are written, and what is said of those that are written wrongly."""

import pytest

from diplomacy_engine import UserError
from diplomacy_engine.players import load_player
from diplomacy_engine.players.search.best_response import FAST, FULL, BestResponse
from diplomacy_engine.players.search.equilibrium import Equilibrium, Matrix
from diplomacy_engine.players.search.naming import spelled

SMALL, THREE = "runs/reference/small__pure__1", "runs/reference/three__pure__1"


@pytest.mark.parametrize("name", ["dumbbot", "runs/fast", "slow:runs/a", "fast:", "fast", "C:runs"])
def test_other_names_are_not_read(name):
    assert spelled(name) is None


def test_a_name_is_taken_apart():
    name = "full(assume=infer:self,dumbbot candidates=24  sure=1.5):runs/a (b):c"
    found = spelled(name)
    assert found.kind == "full" and found.assume == "infer:self,dumbbot"
    assert found.options == {"candidates": 24, "sure": 1.5} and found.policy == "runs/a (b):c"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fast(profile=3):x", r"fast has no option 'profile' .*did you mean 'profiles'"),
        ("fast(profiles):x", "fast has no option 'profiles'"),
        ("matrix(assume=self):x", "matrix has no option 'assume'"),
        ("fast(profiles=0):x", "profiles must be a whole number from 1 to 10,000, not '0'"),
        ("full(candidates=2.5):x", "candidates must be a whole number"),
        ("fast(sure=nan):x", "sure must be a number from 0 to 100"),
        ("equilibrium(iterations=-1):x", "iterations must be a whole number from 1"),
        ("fast:dumbbot", "'dumbbot' has no values to search with"),
        (f"fast:fast:{SMALL}", "has no values to search with"),
        ("fast(anchor=1):x", "fast has no option 'anchor'"),
        (f"fast(leaf={THREE}):{SMALL}", "values boards of another map"),
        (f"fast(leaf=dumbbot):{SMALL}", "'dumbbot' has no values to search with"),
        ("fast:nowhere", "there is no player 'nowhere'"),
        (f"fst(profiles=3):{SMALL}", "no player 'fst.*did you mean 'fast'"),
        (f"fast(assume=infr:self,dumbbot):{SMALL}", "no 'infr'; did you mean 'infer'"),
        (f"matrix:{THREE}", "matrix needs a map of two powers, and three has 3"),
        (f"fast(assume=nobody):{SMALL}", "there is no player 'nobody'"),
        (f"fast(assume=infer:self,self):{SMALL}", "names a player twice"),
        (f"fast(assume=infer:):{SMALL}", "an empty one"),
        (f"fast(assume=pool:{SMALL}):{SMALL}", "there are no checkpoints in"),
    ],
)
def test_wrong_names_are_refused_in_one_sentence(name, message):
    with pytest.raises(UserError, match=message) as caught:
        load_player(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("fast", BestResponse),
        ("full", BestResponse),
        ("equilibrium", Equilibrium),
        ("matrix", Matrix),
    ],
)
def test_players_are_made(name, kind):
    player = load_player(f"{name}:{SMALL}")
    assert type(player) is kind and player.name == f"{name}:{SMALL}" and not player.greedy
    assert load_player(f"{name}:{SMALL}", greedy=True).greedy


def test_options_reach_the_search():
    assert load_player(f"fast:{SMALL}").settings == FAST
    player = load_player(
        f"full(candidates=9 assume=dumbbot temperature=0.5):{SMALL}", assume="self"
    )
    assert player.settings == FULL._replace(candidates=9) and player.own.draws.temperature == 0.5
    other = load_player(f"matrix(leaf={SMALL[:-1]}2):{SMALL}")
    assert other.value.policy.name.startswith(f"{SMALL[:-1]}2")
    assert other.own.policy.name.startswith(SMALL)
    assert list(player.assumed.hypotheses) == ["dumbbot"] and not player.assumed.learns
    player = load_player(f"fast:{SMALL}", assume="infer:self,random")
    assert list(player.assumed.hypotheses) == ["self", "random"] and player.assumed.learns
    assert player.name == f"fast:{SMALL} expecting infer:self,random"
