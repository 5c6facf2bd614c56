"""The buffer and its batches, against plain lists."""

import numpy as np
import pytest
from support.experience import assert_same_experience, make_experience
from support.self_play import SlowStream, slow_advantages, take_batch

import ppo_selfplay_diplomacy as ppo
from ppo_selfplay_diplomacy import Buffer


@pytest.mark.parametrize("seed", range(8))
def test_buffer_equals_plain_lists(seed):
    rng = np.random.default_rng(seed)
    num_steps, num_streams = int(rng.integers(2, 7)), int(rng.integers(1, 7))
    buffer = Buffer(num_steps, num_streams)
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
        np.testing.assert_allclose(np.stack(batch[1:], 1), rows, rtol=1e-4, atol=1e-5)
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
            streams_open = np.flatnonzero(buffer.open)
            buffer.pay(streams_open, rewards[streams_open])
            for stream, reward in zip(streams, rewards):
                if stream.open is not None:
                    stream.open["reward"] += reward
        over = np.flatnonzero(buffer.open & (rng.random(num_streams) < 0.15))
        if rng.random() < 0.5:
            buffer.close(over, 0.0)
            final_values = np.zeros(len(over))
        else:
            final_values = rng.normal(size=len(over)).astype(np.float32)
            buffer.close(over, final_values)
        for s, final_value in zip(over, final_values):
            streams[s].close(final_value, True)
        full = buffer.count.max() >= num_steps
        assert full == any(len(stream) >= num_steps for stream in streams)
        if full:
            take_and_compare()
            carried += sum(stream.open is not None for stream in streams)
    open_streams = np.flatnonzero([stream.open is not None for stream in streams])
    buffer.close(open_streams, np.ones(len(open_streams), np.float32))
    for s in open_streams:
        streams[s].close(1.0, True)
    if buffer.count.any():
        take_and_compare()
    assert sorted(emitted) == list(range(made)) and carried > 0


def test_a_column_of_ones_own_is_carried_over(monkeypatch):
    columns = np.dtype([*ppo.TRANSITION.descr, ("bonus", np.float32)])
    monkeypatch.setattr(ppo, "TRANSITION", columns)
    buffer, none = Buffer(2, 3), np.zeros(3, np.float32)
    buffer.add(np.arange(3), make_experience(np.arange(3)), none, none)
    buffer.transitions["bonus"][0] = 1, 2, 3
    buffer.close(np.array([1]), 0.0)
    take_batch(buffer, 1.0, 1.0)
    assert buffer.transitions["bonus"][0].tolist() == [1, 0, 3]
