"""Two learners at each table: each has its own seats, buffer and reward, alone or as a team."""

import numpy as np
import pytest
import torch
from support.self_play import SlowStream, make_agent, make_args

from diplomacy_engine.constants import NONE, RUNNING
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.scoring.mixes import make_reward_mix
from diplomacy_engine.selfplay.opponent_pool import LEARNER, Member, OpponentPool
from diplomacy_engine.selfplay.rollout_buffer import RolloutBuffer
from diplomacy_engine.training.clock import Clock
from ppo_selfplay_diplomacy import SelfPlay, frozen_copy

GAMES, STEPS, PHASES = 16, 400, 90
FIRST, SECOND = LEARNER, LEARNER + 1
MIXES = {FIRST: "center_delta=3", SECOND: "score=2"}


def make_table(teams: str) -> SelfPlay:
    """Return games on `three` of two learners and, without teams, of a bot or a copy as third."""
    game_map, seats = load_map("three").with_teams(teams), 2 if teams else 1
    args = make_args(
        map="three",
        num_envs=GAMES,
        num_steps=STEPS,
        learner_seats=seats,
        max_years=5,
        pool_bots=("dumbbot",),
        pool_bot_prob=0.8,
    )
    learners = [
        Member(
            number,
            make_agent("three", seed=number),
            buffer=RolloutBuffer(STEPS, GAMES * seats),
            reward=make_reward_mix(mix, game_map.teams),
        )
        for number, mix in MIXES.items()
    ]
    pool = OpponentPool(args, frozen_copy(learners[0].player), learners)
    return SelfPlay(args, game_map, pool, np.random.default_rng(1))


def slow_reward(number: int, result, row: int, mates: np.ndarray, victory_centers: int) -> float:
    """Return what MIXES pays a learner whose powers, with its team's, are `mates`."""
    centers, before = result.centers[row, mates].sum(), result.centers_before[row, mates].sum()
    if number == FIRST:
        return 3 * float(centers - before) / victory_centers if result.captured[row] else 0.0
    is_over = result.ended[row] != RUNNING or not result.alive[row, mates].any()
    return 2 * float(centers) / victory_centers if is_over else 0.0


@pytest.mark.parametrize("teams", ["", "ENGLAND+RUSSIA"])
def test_each_learner_has_its_own_streams_and_rewards(monkeypatch, teams):
    self_play = make_table(teams)
    games, seating, learners = self_play.games, self_play.seating, self_play.pool.learners
    team_of, most = games.map.teams.of_power, 2 if teams else 1
    added = {}

    def spy(number: int, add):
        def spying(streams, experience, logprobs, values):
            added[number] = streams, experience, values.copy()
            add(streams, experience, logprobs, values)

        return spying

    for learner in learners:
        monkeypatch.setattr(learner.buffer, "add", spy(learner.number, learner.buffer.add))
    slow = {number: [SlowStream() for _ in range(GAMES * most)] for number in MIXES}
    events = dict.fromkeys(("one is out", "waits for its team", "paid both"), 0)
    for _ in range(PHASES):
        added.clear()
        seats, decisions = seating.seats, games.decisions()
        member, stream = seats.member.copy(), seats.stream.copy()
        for number in MIXES:
            mine = (member == number) & (stream != NONE)
            place = stream - most * np.arange(GAMES)[:, None]
            for row in range(GAMES):  # one whole side, with streams of this game from the first on
                powers = np.flatnonzero(mine[row])
                assert (mine[row] == (team_of == team_of[powers[0]])).all()
                assert place[row, powers].tolist() == list(range(len(powers)))
        assert (seats.team == team_of).all()
        who = member[decisions.game, decisions.power]
        result, counts = self_play.step(Clock())
        assert counts["global_step"] == np.isin(who, list(MIXES)).sum()
        for learner in learners:
            asked = decisions.take(who == learner.number)
            if not asked.count:
                assert learner.number not in added
                continue
            streams, experience, values = added[learner.number]
            assert all(np.array_equal(a, b) for a, b in zip(experience.decisions, asked))
            np.testing.assert_array_equal(streams, stream[asked.game, asked.power])
            with torch.no_grad():  # the values are its own, not the other's
                own, other = (learners[i].player.get_value(experience.obs) for i in (0, 1))
            if learner.number == SECOND:
                own, other = other, own
            np.testing.assert_allclose(values, own, rtol=1e-4, atol=1e-4)
            assert np.abs(values - other.numpy()).max() > 1e-3
            for row, value in zip(streams, values):
                slow[learner.number][row].close(value, False)
                slow[learner.number][row].open = {"value": value, "reward": 0.0}
        paid = np.zeros((2, GAMES))
        for row, power in zip(*np.nonzero(stream != NONE)):
            number = member[row, power]
            one = slow[number][stream[row, power]]
            events["one is out"] += one.open is None
            if one.open is None:
                continue
            mates = np.flatnonzero(team_of == team_of[power])
            paid[number, row] = slow_reward(number, result, row, mates, games.board.victory_centers)
            one.open["reward"] += paid[number, row]
            if not result.alive[row, mates].any() or result.ended[row] != RUNNING:
                one.close(0.0, True)
            events["waits for its team"] += one.open is not None and not result.alive[row, power]
        events["paid both"] += (paid != 0).all(0).sum()
        self_play.credit(result, 0.0)
        seating.end_phase(result)
    for learner in learners:
        for row, expected in enumerate(slow[learner.number]):
            done, buffer = len(expected.closed), learner.buffer
            assert buffer.count[row] == len(expected)
            assert buffer.open[row] == (expected.open is not None)
            assert (buffer.closed[:, row] == (np.arange(STEPS) < done)).all()
            for name, key in (
                ("rewards", "reward"),
                ("values", "value"),
                ("next_values", "next_value"),
                ("ends", "end"),
            ):
                found = getattr(buffer, name)[:done, row]
                wanted = [transition[key] for transition in expected.closed]
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=name)
    assert (events["one is out"] > 0) != bool(teams) and events["paid both"], events
    assert (events["waits for its team"] > 0) == bool(teams), events
    self_play.close_all()
    assert not any(learner.buffer.open.any() for learner in learners)
