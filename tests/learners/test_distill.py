"""A policy that learns what a search finds: the games, the learning, the command."""

import itertools
import re
from functools import partial

import numpy as np
import pytest
import torch
from support.tables import read_table
from support.training import STOPPED, command, events

from diplomacy_engine import VectorGame, load_player, order_numbers
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.players.search.best_response import FAST, BestResponse
from diplomacy_engine.players.search.draws import PolicyDraws
from diplomacy_engine.players.search.leaves import Critic
from diplomacy_learners import distill

POLICY = "runs/reference/small__pure__1"
CHEAP = "fast(candidates=4 draws=8 profiles=4)"


def play(player, policy, games, others=(), **settings):
    rng = np.random.default_rng(1)
    return distill.play(distill.Args(**settings), player, policy, games, list(others), rng)


def teacher():
    policy = load_player(POLICY)
    settings = FAST._replace(candidates=4, draws=8, profiles=4, halving=False, ahead=0)
    return policy, BestResponse(PolicyDraws(policy), Critic(policy), "search", settings=settings)


def test_what_is_taught_is_what_was_played():
    policy, player = teacher()
    games = VectorGame("small", 6, 3, 6, 1, False)
    lesson = play(player, policy, games)
    assert (games.state.end != RUNNING).all()
    taught = lesson.experience
    assert taught.decisions.count == len(lesson.value) == len(taught.obs.row)
    assert (lesson.share == 1).all()
    again = VectorGame("small", 6, 3, 6, 1, False)
    numbers = order_numbers(taught.decisions, taught.chosen)
    asked = again.decisions()
    assert player.act(again, asked).tolist() == numbers[: len(asked.slot_province)].tolist()
    np.testing.assert_allclose(policy.agent.values(taught.obs), lesson.value, atol=1e-5)


def test_one_power_is_taught_among_others():
    policy, player = teacher()
    others = [load_player("dumbbot"), load_player("random")]
    games = VectorGame("small", 6, 3, 6, 1, False)
    asked = play(player, policy, games, others).experience.decisions
    assert set(zip(asked.game.tolist(), asked.power.tolist())) == {(e, e % 2) for e in range(6)}


def test_softer_teaching_spreads_over_candidates():
    policy, player = teacher()

    def lesson(spread):
        return play(player, policy, VectorGame("small", 6, 3, 6, 1, False), spread=spread)

    hard, soft, cold = lesson(0.0), lesson(0.3), lesson(1e-9)

    # The searches are the same, and a decision counts once, however many orders are taught for it.
    assert soft.share.sum() == pytest.approx(len(hard.share), rel=0.02)
    assert len(soft.share) > len(hard.share)
    numbers = [order_numbers(x.experience.decisions, x.experience.chosen) for x in (hard, cold)]
    assert len(cold.share) == len(hard.share)  # all weight is on the best candidate,
    assert sorted(numbers[0].tolist()) == sorted(numbers[1].tolist())  # which was played
    assert ((soft.share > 0) & (soft.share <= 1)).all()


def test_learning_makes_the_taught_orders_likelier_and_keeps_values():
    policy, player = teacher()
    games = VectorGame("small", 8, 3, 6, 1, False)
    lesson = play(player, policy, games)
    taught, values = lesson.experience, lesson.value
    network = load_player(POLICY).agent
    agent = network.agent
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)

    def likelihood() -> float:
        with torch.no_grad():
            return agent.get_action_and_value(*taught).logprob.mean().item()

    before, args = likelihood(), distill.Args(epochs=8, batch_size=64)
    figures = distill.learn(args, agent, optimizer, lesson, np.random.default_rng(1))
    assert likelihood() > before + 0.05
    assert figures["cross_entropy"] < -before and figures["value_distance"] < 0.02
    assert np.abs(network.values(taught.obs) - values).mean() < 0.1


COMMAND = ["--policy", POLICY, "--search", CHEAP, "--rounds", "2", "--games", "4"]
COMMAND += ["--max-years", "4", "--eval-games", "4"]


main = partial(command, distill)


def test_the_command_that_is_interrupted(tmp_path, monkeypatch, capsys, golden):
    """What comes of a finished round is a policy of the script's, which plays."""
    rounds, learn = itertools.count(1), distill.learn

    def interrupted(*given):
        if next(rounds) == 2:
            raise KeyboardInterrupt
        return learn(*given)

    monkeypatch.setattr(distill, "learn", interrupted)
    assert main([*COMMAND, "--runs-folder", str(tmp_path)]) == STOPPED
    (folder,) = tmp_path.iterdir()
    shown = re.sub(r"minutes \S+|^run folder.*", "", capsys.readouterr().out, flags=re.M)
    golden("distill", [shown, *sorted(tag for _, tag, _ in events(folder))], rel=0.01)
    player, start = load_player(folder), load_player(POLICY)
    assert player.settings == start.settings and len(list(folder.glob("checkpoints/*.pt"))) == 1
    games = VectorGame("small", 2, 1, auto_reset=False)
    assert len(player.act(games, games.decisions())) == len(games.decisions().slot_province)
    weights = zip(player.agent.agent.parameters(), start.agent.agent.parameters())
    assert any((one != other).any() for one, other in weights)


@pytest.mark.parametrize(("words", "word"), read_table(__file__, "bad_command_lines"))
def test_bad_command_lines(words, word, tmp_path, capsys):
    assert main([*words, "--runs-folder", str(tmp_path / "runs")]) == 2
    error = capsys.readouterr().err
    assert word in error and error.count("\n") == 1 and error.startswith("error: ")
    assert not (tmp_path / "runs").exists()
