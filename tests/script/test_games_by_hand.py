"""Games by hand: the learner plays by script, and rewards and ends are known."""

import itertools

import numpy as np
import pytest
import torch
from support.self_play import learner_powers, make_run, play_phase, take_batch

from diplomacy_engine.constants import phase_name
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.learning import statistics
from ppo_selfplay_diplomacy import Action, Run


class Script:
    def __init__(self, games: VectorGame, orders: dict[str, list[str]]):
        self.games, self.orders = games, orders
        self.phases: list[str] = []

    def draw(self, obs, decisions, chosen=None, noise=None):
        if not decisions.count:
            return Action(np.zeros(0, np.int64), torch.zeros(0), value=torch.zeros(0))
        assert decisions.count == 1
        state, texts, chosen = self.games.state, self.games.vocabulary.texts, []
        phase = phase_name(int(state.year[0]), int(state.phase[0]))
        wanted = list(self.orders[phase])
        for start, stop in itertools.pairwise(decisions.order_start):
            legal = [texts[number] for number in decisions.order[start:stop]]
            order = next(text for text in wanted if text in legal)
            wanted.remove(order)
            chosen.append(legal.index(order))
        assert not wanted
        self.phases.append(phase)
        number = torch.tensor([float(len(self.phases))])
        return Action(np.array(chosen), -number, value=number * 10)

    def get_value(self, obs):
        return torch.full((len(obs.board),), 77.0)


def scripted_run(power: str, orders: dict[str, list[str]], **changes) -> tuple[Run, Script]:
    for seed in range(200):
        changes = {"num_envs": 1, "pool_bots": ("hold",), "pool_bot_prob": 1.0} | changes
        run = make_run(seed=seed, **changes)
        powers = run.games.map.powers
        if powers[learner_powers(run)[0, 0]] == power:
            break
    script = Script(run.games, orders)
    run.agent.get_action_and_value, run.agent.get_value = script.draw, script.get_value
    return run, script


def play(run: Run, steps: int) -> int:
    return sum(play_phase(run)["games"] for _ in range(steps))


SOLO_SCRIPT = {
    "S1901M": ["A LON - PAR"],
    "F1901M": ["A PAR H"],
    "W1901A": ["A LON B"],
    "S1902M": ["A PAR - ROM", "A LON - POR"],
    "F1902M": ["A ROM H", "A POR H"],
    "W1902A": ["A LON B"],
    "S1903M": ["A ROM - GRE", "A POR H", "A LON H"],
    "F1903M": ["A GRE - BUL", "A POR H", "A LON H"],
}


def test_rewards_of_a_solo_by_hand():
    run, script = scripted_run(
        "ENGLAND", SOLO_SCRIPT, reward="center_delta=5,terminal=1", max_years=5
    )
    assert play(run, 7) == 0 and play(run, 1) == 1
    assert script.phases == list(SOLO_SCRIPT)
    buffer = run.buffer
    assert buffer.count.tolist() == [8] and not buffer.open.any()
    assert buffer.closed[:8, 0].all() and not buffer.closed[8:, 0].any()
    assert buffer.rewards[:8, 0].tolist() == [0, 1, 0, 0, 2, 0, 0, 2]
    assert buffer.values[:8, 0].tolist() == [10, 20, 30, 40, 50, 60, 70, 80]
    assert buffer.next_values[:8, 0].tolist() == [20, 30, 40, 50, 60, 70, 80, 0]
    assert buffer.ends[:8, 0].tolist() == [False] * 7 + [True]
    assert run.episodes.figures(run.episodes.take())["charts"] == {
        "episodic_length": 8,
        "episodic_return": 5,
        "episodic_return_center_delta": pytest.approx(4 / 5),  # without its weight of 5
        "episodic_return_terminal": 1,
    }
    figures = statistics.selfplay_figures(run.results.sums, 8)
    assert (figures["win"], figures["solo"], figures["draw"]) == (1, 1, 0)
    assert (figures["centers"], figures["years"]) == (5, 3)
    taken = run.results.take()  # a running mean that begins at 0, without the bias of that
    assert taken["win_ENGLAND"] == pytest.approx(1) and "win_RUSSIA" not in taken
    batch = take_batch(buffer, 1.0, 1.0)
    np.testing.assert_allclose(batch.returns, [5, 5, 4, 4, 4, 2, 2, 2])
    assert batch.logprobs.tolist() == [-1, -2, -3, -4, -5, -6, -7, -8]
