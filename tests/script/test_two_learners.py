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
from diplomacy_engine.selfplay.seating import Seating
from diplomacy_engine.training.clock import Clock
from ppo_selfplay_diplomacy import SelfPlay, frozen_copy

GAMES, STEPS, PHASES = 16, 400, 90
FIRST, SECOND = LEARNER, LEARNER + 1
MIXES = {FIRST: "center_delta=3", SECOND: "score=2"}


def make_table(teams: list[int] | None) -> SelfPlay:
    """Return games on `three` of two learners and, on the third seat, a bot or a copy."""
    args = make_args(
        map="three",
        num_envs=GAMES,
        num_steps=STEPS,
        max_years=5,
        pool_bots=("dumbbot",),
        pool_bot_prob=0.8,
    )
    learners = [
        Member(
            number,
            make_agent("three", seed=number),
            buffer=RolloutBuffer(STEPS, GAMES),
            reward=make_reward_mix(mix),
        )
        for number, mix in MIXES.items()
    ]
    pool = OpponentPool(args, frozen_copy(learners[0].player), learners)
    rng = np.random.default_rng(1)
    self_play = SelfPlay(args, load_map("three"), pool, rng)
    self_play.seating = Seating(args, self_play.games, pool, rng, teams)
    return self_play


def slow_reward(number: int, result, row: int, mates: np.ndarray, victory_centers: int) -> float:
    """Return what MIXES pays a learner whose powers, with its team's, are `mates`."""
    centers, before = result.centers[row, mates].sum(), result.centers_before[row, mates].sum()
    if number == FIRST:
        return 3 * float(centers - before) / victory_centers if result.captured[row] else 0.0
    is_over = result.ended[row] != RUNNING or not result.alive[row, mates].any()
    return 2 * float(centers) / victory_centers if is_over else 0.0


@pytest.mark.parametrize("teams", [None, [0, 1, 0]])
def test_each_learner_has_its_own_streams_and_rewards(monkeypatch, teams):
    self_play = make_table(teams)
    games, seating, learners = self_play.games, self_play.seating, self_play.pool.learners
    team_of = np.arange(3) if teams is None else np.array(teams)
    added = {}

    def spy(number: int, add):
        def spying(streams, experience, logprobs, values):
            added[number] = streams, experience, values.copy()
            add(streams, experience, logprobs, values)

        return spying

    for learner in learners:
        monkeypatch.setattr(learner.buffer, "add", spy(learner.number, learner.buffer.add))
    slow = {number: [SlowStream() for _ in range(GAMES)] for number in MIXES}
    events = dict.fromkeys(("one eliminated", "allies", "paid both"), 0)
    for _ in range(PHASES):
        added.clear()
        seats, decisions = seating.seats, games.decisions()
        member, stream = seats.member.copy(), seats.stream.copy()
        for number in MIXES:
            mine = (member == number) & (stream != NONE)
            assert (mine.sum(1) == 1).all() and (stream[mine] == np.arange(GAMES)).all()
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
            np.testing.assert_array_equal(streams, asked.game)
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
        for number, row in np.ndindex(2, GAMES):
            one = slow[number][row]
            if one.open is None:
                continue
            (power,) = np.flatnonzero(member[row] == number)
            mates = np.flatnonzero(team_of == team_of[power])
            paid[number, row] = slow_reward(number, result, row, mates, games.board.victory_centers)
            one.open["reward"] += paid[number, row]
            if result.eliminated[row, power] or result.ended[row] != RUNNING:
                one.close(0.0, True)
            events["allies"] += member[row, mates[mates != power]].tolist() == [1 - number]
        alive = [[stream.open is not None for stream in slow[number]] for number in MIXES]
        events["one eliminated"] += np.logical_xor(*alive).sum()
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
    assert events["one eliminated"] and events["paid both"], events
    assert (events["allies"] > 0) == (teams is not None)
    self_play.close_all()
    assert not any(learner.buffer.open.any() for learner in learners)
