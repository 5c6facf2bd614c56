"""A policy that learns what a search finds: the games, the learning, the command."""

import re

import numpy as np
import pytest
import torch

import distill_search_diplomacy as distill
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import VectorGame, load_player
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.games import order_numbers
from diplomacy_engine.players.search.best_response import FAST, BestResponse
from diplomacy_engine.players.search.draws import PolicyDraws
from diplomacy_engine.players.search.leaves import Critic

POLICY = "runs/reference/small__pure__1"
CHEAP = "fast(candidates=4 draws=8 profiles=4)"


def teacher():
    policy = load_player(POLICY)
    settings = FAST._replace(candidates=4, draws=8, profiles=4, halvings=())
    return policy, BestResponse(PolicyDraws(policy), Critic(policy), "search", settings=settings)


def test_what_is_taught_is_what_was_played():
    policy, player = teacher()
    games = VectorGame("small", 6, 3, 6, 1, False)
    taught, values = distill.play(player, policy, games)
    assert (games.state.end != RUNNING).all()
    assert taught.decisions.count == len(values) == len(taught.obs.row)
    again = VectorGame("small", 6, 3, 6, 1, False)
    numbers = order_numbers(taught.decisions, taught.chosen)
    asked = again.decisions()
    assert player.act(again, asked).tolist() == numbers[: len(asked.slot_province)].tolist()
    np.testing.assert_allclose(policy.agent.values(taught.obs), values, atol=1e-5)


def test_learning_makes_the_taught_orders_likelier_and_keeps_values():
    policy, player = teacher()
    games = VectorGame("small", 24, 3, 6, 1, False)
    taught, values = distill.play(player, policy, games)
    agent = ppo.load_player(POLICY).agent
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)

    def likelihood() -> float:
        with torch.no_grad():
            return agent.get_logprob_entropy_value(*taught)[0].mean().item()

    before, args = likelihood(), distill.Args(epochs=8, batch_size=64)
    figures = distill.learn(args, agent, optimizer, taught, values, np.random.default_rng(1))
    assert likelihood() > before + 0.05
    assert figures["cross_entropy"] < -before and figures["value_distance"] < 0.02
    assert np.abs(agent.values(taught.obs) - values).mean() < 0.1


def test_the_command(tmp_path, capsys):
    words = ["--policy", POLICY, "--search", CHEAP, "--rounds", "2", "--games", "4"]
    words += ["--max-years", "4", "--eval-games", "4", "--runs-folder", str(tmp_path)]
    assert distill.main(words) == 0
    shown = capsys.readouterr().out
    assert (
        len(re.findall(r"^round [12]: [\d,]+ decisions, cross_entropy", shown, re.MULTILINE)) == 2
    )
    (folder,) = tmp_path.iterdir()
    player = load_player(folder)
    start = load_player(POLICY)
    assert player.settings == start.settings and len(list(folder.glob("checkpoints/*.pt"))) == 2
    games = VectorGame("small", 2, 1, auto_reset=False)
    assert len(player.act(games, games.decisions())) == len(games.decisions().slot_province)
    weights = zip(player.agent.parameters(), start.agent.parameters())
    assert any((one != other).any() for one, other in weights)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--policy is missing"),
        (["--policy", "nowhere"], "nowhere"),
        (["--policy", POLICY, "--search", "slow"], "--search 'slow' is no search"),
        (["--policy", POLICY, "--search", "fast(profiles=0)"], "profiles must be a whole number"),
        (["--policy", POLICY, "--eval-bot", "nobody"], "there is no player 'nobody'"),
        (["--policy", POLICY, "--rounds", "0"], "rounds"),
        (["--policies", POLICY], "--policies"),
    ],
)
def test_bad_command_lines(words, message, tmp_path, capsys):
    assert distill.main([*words, "--runs-folder", str(tmp_path / "runs")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and "Traceback" not in error
    assert not (tmp_path / "runs").exists()
