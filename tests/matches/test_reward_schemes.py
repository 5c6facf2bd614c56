"""Which scheme a reward is: known answers on three maps, and rewards made by hand."""

import numpy as np
import pytest
from support.maps import tribes

from diplomacy_engine import UserError, VectorGame, load_map, load_player, make_reward_mix
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.matches.reward_schemes import (
    SCHEMES,
    GamePairs,
    check_reward,
    groups_of,
    judge,
    play_pairs,
)
from diplomacy_engine.players.asking import ask_players
from diplomacy_engine.scoring.rewards import REWARDS, make_reward, reward_input

ISOLATED, COMPETITIVE, COLLABORATIVE, DILEMMA = SCHEMES[1:]
PLAYERS = [load_player(name) for name in ("random", "dumbbot", "hold")]
PAIRS = {"small": 400, "three": 200, "standard": 60}
EVERYWHERE = {
    "sum_of_squares": 1.0,
    "draw_size": 1.0,
    "first_place": 1.0,
}  # the sum of rewards of any game


def made_by_hand(broken_row: int = -1) -> dict:
    """Return rewards of known schemes. The last pays 0.001 too much in one game, at its end."""

    def gap(game):
        return game.centers - game.centers.mean(1, keepdims=True, dtype=np.float64)

    def paid_in_falls(values):
        return lambda game: np.where(game.captured[:, None], values(game), 0.0)

    def broken(game):
        paid = paid_in_falls(gap)(game)
        if len(paid) > broken_row and game.ended[broken_row] != RUNNING:
            paid[broken_row, 0] += 0.001
        return paid

    return {
        SCHEMES[0]: lambda game: game.alive * 0 + 0.25 * (game.ended != RUNNING)[:, None],
        COMPETITIVE: paid_in_falls(gap),
        COLLABORATIVE: paid_in_falls(lambda game: game.centers * 0 + game.centers.sum(1)[:, None]),
        DILEMMA: paid_in_falls(lambda game: game.centers * 1.0),
        "length": lambda game: np.ones(game.alive.shape),
        "broken": broken,
    }


def verdicts(twins: GamePairs) -> dict:
    return {name: judge(paid, twins.power) for name, paid in twins.rewards.items()}


@pytest.mark.parametrize("name", PAIRS)
def test_the_shipped_rewards_on_three_maps(name):
    game_map = load_map(name)
    twins = play_pairs(game_map, PLAYERS, REWARDS, PAIRS[name])
    found = verdicts(twins)
    constant = EVERYWHERE | {"ordinal": len(game_map.powers) / 2}
    for reward in REWARDS:
        if reward in constant:
            assert found[reward].scheme == COMPETITIVE, reward
            assert found[reward].low == pytest.approx(constant[reward], abs=1e-5)
            assert found[reward].high == pytest.approx(constant[reward], abs=1e-5)
        elif reward == "weakest" or (reward, name) == ("survival_time", "small"):
            # Of two powers, too, one that is out has mostly lost the game in that step.
            assert found[reward].scheme == COLLABORATIVE, reward
            assert found[reward].high > 0 and found[reward].conflict == 0
        else:
            assert found[reward].scheme == DILEMMA, reward
            assert found[reward].sum_change > 0.05 and found[reward].conflict > 0
    if name == "small":
        # Zero-sum, but for one game of 800: a power is out, and the other goes on to its solo.
        sums = twins.rewards["lead_delta"].sum(2)
        assert np.flatnonzero(np.abs(sums).max(0) > 1e-5).tolist() == [16]
        assert found["lead_delta"].against["competitive"] == 16


def test_the_year_limit_decides():
    found = verdicts(play_pairs(load_map("small"), PLAYERS, REWARDS, 400, year_limit="truncate"))
    competitive = {name for name, verdict in found.items() if verdict.scheme == COMPETITIVE}
    assert competitive == {"terminal"}
    assert (found["draw_size"].low, found["draw_size"].high) == (0, 1)


def test_powers_that_cannot_meet_are_isolated():
    found = verdicts(play_pairs(load_map("small"), PLAYERS, REWARDS, 100, max_years=1))
    isolated = {name for name, verdict in found.items() if verdict.scheme == ISOLATED}
    assert isolated == {  # paid for one's own centers alone
        "center_delta",
        "score",
        "deepdip",
        "centers_held",
        "captures",
        "three_to_centers",
    }
    assert found["sum_of_squares"].scheme == found["lead_delta"].scheme == COMPETITIVE
    assert found["draw_size"].scheme == SCHEMES[0]  # nobody can be eliminated, either


@pytest.mark.parametrize("name", ["small", "three"])
def test_rewards_made_by_hand(name):
    row = 137
    twins = play_pairs(load_map(name), PLAYERS, made_by_hand(row), 400)
    found = verdicts(twins)
    for scheme in SCHEMES:
        if scheme in found:
            assert found[scheme].scheme == scheme
    assert found["length"].scheme == COLLABORATIVE and found["length"].conflict == 0
    # The sum of one game of 400 is off by 0.001, and that pair is shown.
    assert found["broken"].scheme == DILEMMA
    assert found["broken"].against["competitive"] == row
    assert found["broken"].sum_change == pytest.approx(0.001, rel=1e-3)


def test_the_counterexample_can_be_played_again():
    game_map = load_map("three")
    result = check_reward(game_map, "score", PLAYERS, 60, seed=3)
    (check,) = result["checks"]
    pair = check["against"]["competitive"]
    rewards, reward = [], make_reward("score")
    for seats in (pair["players"], pair["players"] | {pair["power"]: pair["instead"]}):
        games = VectorGame(game_map, 1, auto_reset=False)
        games.seed_games(np.zeros(1, int), np.array([pair["seed"]], np.uint64))
        who = np.array([[p.name for p in PLAYERS].index(seats[power]) for power in game_map.powers])
        total = np.zeros(3)
        while games.state.end[0] == RUNNING:
            decisions = games.decisions()
            orders = ask_players(games, decisions, PLAYERS, who[decisions.power])
            total += reward(reward_input(games.step(orders), 8))[0]
        rewards.append(total.tolist())
    assert rewards[0] == pytest.approx(list(pair["rewards"].values()))
    assert rewards[1] == pytest.approx(list(pair["twin_rewards"].values()))
    changed = sum(rewards[1]) - sum(rewards[0])
    assert abs(changed) == pytest.approx(check["sum_change"])


def test_pairs_are_the_same_however_many_there_are():
    few, many = (
        play_pairs(load_map("small"), PLAYERS, {"score": make_reward("score")}, count, seed=5)
        for count in (10, 30)
    )
    assert np.array_equal(few.rewards["score"], many.rewards["score"][:, :10])
    assert np.array_equal(few.seats, many.seats[:, :10])


def test_between_teams_and_within():
    game_map = load_map("three").with_teams("ENGLAND+ITALY")
    assert list(groups_of(game_map)) == ["between teams", "within ENGLAND+ITALY"]
    together = load_map("three").with_teams("ENGLAND+ITALY+RUSSIA")
    assert list(groups_of(together)) == ["within ENGLAND+ITALY+RUSSIA"]

    def schemes(reward: str) -> list[str]:
        checks = check_reward(game_map, reward, PLAYERS, 120)["checks"]
        return [check["scheme"] for check in checks]

    assert schemes("team:sum_of_squares=1") == [COMPETITIVE, COLLABORATIVE]
    assert schemes("team:lead_delta") == [COMPETITIVE, COLLABORATIVE]
    assert schemes("team:sum_of_squares=1,power:center_delta=0.2")[1] == DILEMMA
    mix = make_reward_mix("sum_of_squares", game_map)
    paid = play_pairs(game_map, PLAYERS, mix.parts, 60).rewards["sum_of_squares"]
    assert np.array_equal(paid[..., 0], paid[..., 1])  # the members' are the same in every game
    np.testing.assert_allclose(paid[..., 0] + paid[..., 2], 1, atol=1e-6)


def test_weights_that_change_are_looked_at_three_times():
    result = check_reward(load_map("small"), "sum_of_squares=1,score=0.5..0", PLAYERS, 40)
    found = [(check["progress"], check["scheme"]) for check in result["checks"]]
    assert found == [(0.0, DILEMMA), (0.5, DILEMMA), (1.0, COMPETITIVE)]
    assert result["year_limit"] == "draw" and result["max_years"] == 20


class Other(type(PLAYERS[2])):
    name = "other"


@pytest.mark.parametrize(
    ("players", "pairs", "name"),
    [
        ([PLAYERS[2], PLAYERS[2]], 10, "two different players"),
        ([PLAYERS[2], PLAYERS[0]], 1, "2 pairs"),
        ([PLAYERS[2], Other()], 10, "too alike"),
    ],
)
def test_what_cannot_tell_anything_is_refused(players, pairs, name):
    with pytest.raises(UserError, match=name):
        check_reward(load_map("small"), "score", players, pairs)


def test_one_power_has_nobody_to_be_compared_with():
    homes = tribes().facts["provinces"]
    places = {v: {key: x for key, x in homes[v].items() if x != "WEST"} for v in homes}
    units = {"EAST": ["A CAP"], "TRIBES": ["A HIL"]}
    alone = tribes(powers=["EAST"], start_units=units, provinces=places)
    with pytest.raises(UserError, match="two powers"):
        check_reward(alone, "score", PLAYERS, 40)
