"""The loss and an update, against slow references; test_buffer.py has the advantages."""

import copy
import itertools

import numpy as np
import pytest
import torch
from support.positions import ready, some_batch
from support.self_play import make_agent, make_args

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.learning import checks
from diplomacy_engine.learning.ranks import Ranks, TrainingError
from ppo_selfplay_diplomacy import Action, ppo_loss, update


def past(logprobs, values, advantages, returns) -> dict[str, torch.Tensor]:
    arrays = {"logprobs": logprobs, "values": values, "advantages": advantages, "returns": returns}
    return {name: torch.as_tensor(array) for name, array in arrays.items()}


def test_loss_equals_a_loop_over_rows():
    args = make_args(clip_coef=0.2, vf_coef=0.7)
    rng = np.random.default_rng(0)
    count = 40
    new, old = rng.normal(size=(2, count)) * 0.4
    entropy = rng.random(count)
    newvalue, value, advantage, returns = rng.normal(size=(4, count))
    action = Action(None, *map(torch.tensor, (new, entropy)), value=torch.tensor(newvalue))
    loss, metrics = ppo_loss(args, 0.03, action, past(old, value, advantage, returns))

    policy, values, clipped, kl, old_kl = 0.0, 0.0, 0, 0.0, 0.0
    for i in range(count):
        ratio = np.exp(new[i] - old[i])
        policy -= min(ratio * advantage[i], min(max(ratio, 0.8), 1.2) * advantage[i])
        values += 0.5 * (newvalue[i] - returns[i]) ** 2
        clipped += abs(ratio - 1) > 0.2
        kl += ratio - 1 - np.log(ratio)
        old_kl -= np.log(ratio)
    expected = {
        "policy_loss": policy / count,
        "value_loss": values / count,
        "entropy": entropy.mean(),
        "clipfrac": clipped / count,
        "approx_kl": kl / count,
        "old_approx_kl": old_kl / count,
    }
    assert {name: value.item() for name, value in metrics.items()} == pytest.approx(expected)
    total = policy / count - 0.03 * entropy.mean() + 0.7 * values / count
    assert loss.item() == pytest.approx(total)
    assert 0 < clipped < count


def test_update_learns_from_every_transition_once_an_epoch(monkeypatch):
    agent = make_agent()
    before = copy.deepcopy(agent.state_dict())
    seen, loss = [], ppo.ppo_loss

    def spy(args, ent_coef, new, old):
        if not seen:  # before the first step, the new policy is the old one
            np.testing.assert_allclose(new.logprob.detach(), old["logprobs"], rtol=1e-4, atol=1e-4)
        seen.append(old["values"].tolist())
        return loss(args, ent_coef, new, old)

    monkeypatch.setattr(ppo, "ppo_loss", spy)
    run = ready(agent, update_epochs=3, num_minibatches=4)
    figures = update(run, some_batch(agent), 0.01, Ranks())
    epochs = [list(itertools.chain(*seen[i : i + 4])) for i in (0, 4, 8)]
    assert all(sorted(epoch) == list(range(30)) for epoch in epochs) and epochs[0] != epochs[1]
    assert all(np.isfinite(value) for value in figures.values())
    assert any((agent.state_dict()[name] != before[name]).any() for name in before)

    seen.clear()
    run = ready(agent, update_epochs=1, num_minibatches=50)
    update(run, some_batch(agent), 0.01, Ranks())
    assert sorted(itertools.chain(*seen)) == list(range(30)), "more minibatches than transitions"


def test_a_loss_that_is_not_finite_is_refused():
    agent = make_agent()
    run, batch = ready(agent), some_batch(agent)
    batch.advantages[3] = np.nan
    losses = update(run, batch, 0.01, Ranks())
    with pytest.raises(TrainingError, match="not finite"):
        checks.check_learned(run, losses, 0, Ranks())
    with pytest.raises(TrainingError, match="a weight is not finite"):
        checks.check_learned(run, {"policy_loss": 0.0}, 0, Ranks())
