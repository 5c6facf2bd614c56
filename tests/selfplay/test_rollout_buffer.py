"""The rollout buffer and its batches, against plain lists."""

import copy

import numpy as np
import pytest
from support.self_play import SlowStream, slow_advantages, take_batch

from diplomacy_engine.games.decisions import Decisions
from diplomacy_engine.games.observation import BoardViews
from diplomacy_engine.selfplay import rollout_buffer
from diplomacy_engine.selfplay.rollout_buffer import Batch, Experience, RolloutBuffer


def make_experience(ids) -> Experience:
    """Return decisions that carry their id in every array, of 1..3 slots of 1..4 orders."""
    ids = np.asarray(ids)
    slots = 1 + ids % 3
    decision = np.repeat(np.arange(len(ids)), slots)
    rank = np.concatenate([np.arange(n) for n in slots])
    orders = 1 + (ids[decision] + rank) % 4
    slot = np.repeat(np.arange(len(orders)), orders)
    column = np.concatenate([np.arange(n) for n in orders])
    decisions = Decisions(
        ids.astype(np.int32),
        (ids % 7).astype(np.int8),
        np.append(0, np.cumsum(slots)).astype(np.int32),
        (ids[decision] * 3 + rank).astype(np.int16),
        np.append(0, np.cumsum(orders)).astype(np.int32),
        (ids[decision][slot] * 10 + column).astype(np.int32),
    )
    boards, row = np.unique(ids // 2, return_inverse=True)  # two ids look at one board
    obs = BoardViews(
        (boards[:, None, None] % 100 + np.arange(6).reshape(2, 3)).astype(np.int8),
        (boards[:, None] * 2 + np.arange(2)).astype(np.int32),
        (boards[:, None] + np.arange(5)).astype(np.int16),
        row,
        (ids % 7).astype(np.int8),
    )
    return Experience(obs, decisions, (ids[decision] + 2 * rank) % orders)


def assert_same_experience(found: Experience, expected: Experience) -> None:
    def arrays(experience: Experience):
        obs = experience.obs
        return *(array[obs.row] for array in obs[:3]), obs.power, *experience.decisions

    for array, other in zip(arrays(found), arrays(expected)):
        assert array.dtype == other.dtype
        np.testing.assert_array_equal(array, other)
    np.testing.assert_array_equal(found.chosen, expected.chosen)


def test_experience_take_and_join():
    whole = make_experience(np.arange(20))
    parts = [whole.take(np.arange(0, 7)), whole.take(np.arange(7, 20))]
    assert_same_experience(Experience.join(parts), whole)
    rows = np.array([13, 2, 2, 19, 0])
    assert_same_experience(whole.take(rows), make_experience(rows))
    assert len(whole.take(rows).obs.board) == 4  # of the boards 6, 1, 9 and 0, each once


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 30])
def test_parts_of_a_batch_share_no_board(parts):
    experience = make_experience(np.random.default_rng(parts).permutation(21))
    batch = Batch(experience, *np.zeros((5, 21), np.float32))
    for rng in (None, np.random.default_rng(1), np.random.default_rng(2)):
        rows = batch.split(parts, rng)
        assert sorted(np.concatenate(rows)) == list(range(21))
        boards = [set(experience.obs.row[part]) for part in rows]
        assert sum(map(len, boards)) == 11 and len(boards) == min(parts, 11)
        sizes = list(map(len, boards))
        assert max(sizes) - min(sizes) <= 1
    assert np.concatenate(batch.split(parts, np.random.default_rng(1))).tolist() != (
        np.concatenate(rows).tolist()
    )


@pytest.mark.parametrize("seed", range(25))
def test_buffer_equals_plain_lists(seed, monkeypatch):
    """Random decisions, rewards, ends, truncations and checkpoints; updates whenever one is due."""

    def unchecked(obs, decisions, chosen, games) -> Experience:  # for they are of no map
        return Experience(BoardViews(*obs), Decisions(*decisions), chosen)

    monkeypatch.setattr(rollout_buffer, "_experience", unchecked)
    rng = np.random.default_rng(seed)
    num_steps, num_streams = int(rng.integers(2, 7)), int(rng.integers(1, 7))
    buffer = RolloutBuffer(num_steps, num_streams)
    streams = [SlowStream() for _ in range(num_streams)]
    made, emitted, carried = 0, [], 0

    def take_and_compare() -> None:
        gamma, gae_lambda = rng.choice([0.0, 0.9, 1.0], 2)
        batch = take_batch(buffer, gamma, gae_lambda)
        ids = batch.experience.decisions.game
        assert_same_experience(batch.experience, make_experience(ids))
        expected = {}
        for stream in streams:
            fields = [(t["reward"], t["value"], t["next_value"], t["end"]) for t in stream.closed]
            advantages = slow_advantages(fields, gamma, gae_lambda)
            for transition, advantage in zip(stream.closed, advantages):
                value = transition["value"]
                row = (transition["logprob"], value, advantage, advantage + value)
                expected[transition["id"]] = row
            stream.closed = []
        assert sorted(ids) == sorted(expected)
        rows = np.array([expected[number] for number in ids]).reshape(-1, 4)
        np.testing.assert_allclose(np.stack(batch[1:-1], 1), rows, rtol=1e-4, atol=1e-5)
        assert not batch.kl_term.any()
        emitted.extend(ids.tolist())

    for _ in range(120):
        deciding = rng.permutation(np.flatnonzero(rng.random(num_streams) < 0.6))
        if len(deciding):
            ids = made + np.arange(len(deciding))
            made += len(deciding)
            logprobs, values = rng.normal(size=(2, len(deciding))).astype(np.float32)
            buffer.add(deciding, make_experience(ids), logprobs, values)
            for s, number, logprob, value in zip(deciding, ids, logprobs, values):
                streams[s].close(value, False)
                streams[s].open = {"id": number, "logprob": logprob, "value": value, "reward": 0.0}
        for _ in range(rng.integers(0, 3)):  # a power may sit out phases that pay it
            rewards = rng.normal(size=num_streams).astype(np.float32)
            buffer.reward(rewards)
            for stream, reward in zip(streams, rewards):
                if stream.open is not None:
                    stream.open["reward"] += reward
        over = np.flatnonzero(rng.random(num_streams) < 0.15)
        if rng.random() < 0.5:
            buffer.finish(over)
            final_values = np.zeros(len(over))
        else:
            final_values = rng.normal(size=len(over)).astype(np.float32)
            buffer.finish(over, final_values)
        for s, final_value in zip(over, final_values):
            streams[s].close(final_value, True)
        if rng.random() < 0.1 and not buffer.is_full:  # a run saves after its update
            saved = copy.deepcopy(buffer.state_dict())
            buffer = RolloutBuffer(num_steps, num_streams)
            buffer.load_state_dict(saved, None)
        assert buffer.is_full == any(len(stream) >= num_steps for stream in streams)
        if buffer.is_full:
            take_and_compare()
            carried += sum(stream.open is not None for stream in streams)
    open_streams = np.flatnonzero([stream.open is not None for stream in streams])
    buffer.finish(open_streams, np.ones(len(open_streams), np.float32))
    for s in open_streams:
        streams[s].close(1.0, True)
    if buffer.count.any():
        take_and_compare()
    assert sorted(emitted) == list(range(made)) and carried > 0


def test_an_open_transition_is_learned_from_once_with_its_old_logprob_and_value():
    buffer = RolloutBuffer(2, 2)
    for number in (0, 2):
        logprobs = np.float32([-number, -number - 1])
        buffer.add(np.arange(2), make_experience([number, number + 1]), logprobs, 10 + logprobs)
        buffer.reward(np.float32([1, 2]))
    first = take_batch(buffer, 1.0, 1.0)
    assert first.experience.decisions.game.tolist() == [0, 1]
    np.testing.assert_allclose(first.advantages, [1 + 8 - 10, 2 + 7 - 9])  # cut: bootstrapped
    assert not buffer.is_full and buffer.open.all()
    buffer.reward(np.float32([4, 8]))
    buffer.finish(np.arange(2))
    second = take_batch(buffer, 1.0, 1.0)
    assert second.experience.decisions.game.tolist() == [2, 3]
    # A decision that is carried over counts once.
    means = {"episodic_length": 2, "episodic_return": (1 + 1 + 4 + 2 + 2 + 8) / 2}
    assert buffer.take_episodes() == means and buffer.take_episodes() == {}
    np.testing.assert_allclose(second.logprobs, [-2, -3])
    np.testing.assert_allclose(second.values, [8, 7])
    np.testing.assert_allclose(second.returns, [1 + 4, 2 + 8])
    assert buffer.count.sum() == 0


def test_episodes_that_training_cuts_are_not_counted():
    buffer = RolloutBuffer(3, 2, ("score", "leader"))
    buffer.add(np.arange(2), make_experience([0, 1]), np.zeros(2), np.zeros(2))
    buffer.reward(np.float32([1, 2]), {"score": np.ones(2), "leader": np.float32([0, 0.5])})
    buffer.finish(np.array([0]))
    buffer.finish(np.array([1]), np.ones(1), game_over=False)
    mine = {
        "episodic_length": 1,
        "episodic_return": 1,
        "episodic_return_score": 1,
        "episodic_return_leader": 0,
    }
    # Another process has had three episodes, which add up to twice as much.
    shared = buffer.take_episodes(
        lambda sums: {name: 3 * sums[name] for name in sums} | {"episodes": sums["episodes"] + 3}
    )
    assert shared == {name: 3 * mine[name] / 4 for name in mine}


@pytest.mark.parametrize("value", [1e30, -1e16, float("nan")])
def test_numbers_that_no_reward_can_be_are_refused(value):
    """They would overflow later on, far from the file that is at fault."""
    like = np.zeros((3, 2), np.float32)
    assert rollout_buffer.checked({"rewards": like + 5}, "rewards", like).tolist() == [[5, 5]] * 3
    with pytest.raises(ValueError, match="'rewards' has numbers that cannot be"):
        rollout_buffer.checked({"rewards": like + np.float32(value)}, "rewards", like)
