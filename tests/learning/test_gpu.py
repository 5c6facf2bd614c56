"""What a GPU computes is what a processor does; runs there, alone, shared, and by torchrun's NCCL.

Skipped where there is no GPU.
"""

import numpy as np
import pytest
import torch
from support.positions import act, noise_of, positions, ready, score, some_batch
from support.self_play import make_agent
from support.training import load, metrics, resume, torchrun, train, write_config
from torch.nn.utils import parameters_to_vector

from diplomacy_engine import evaluate_player, load_player, make_bot
from diplomacy_engine.learning import frozen
from diplomacy_engine.learning.ranks import Ranks
from ppo_selfplay_diplomacy import update

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ("cpu", "cuda")


def close(one, two) -> None:
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("autoregressive", [True, False])
@pytest.mark.parametrize("name", ["three", "standard"])
def test_orders_and_values_are_the_same(name, autoregressive):
    decisions, obs, _ = positions(name)
    heat = np.linspace(0.5, 2.0, decisions.count, dtype=np.float32)
    who = np.arange(decisions.count) * 3 // decisions.count
    found = []
    for device in DEVICES:
        options = {"scale": 3.0, "autoregressive": autoregressive}
        agents = {n: make_agent(name, n, **options).to(device) for n in range(3)}
        noise = noise_of(decisions, 3)
        cases = (3,), (3, heat), (None,)
        drawn = [part for case in cases for part in act(agents[0], obs, decisions, *case)]
        copies = frozen.act(agents, who, obs, decisions, noise, heat)
        with torch.no_grad():
            scored = [part.cpu() for part in score(agents[0], obs, decisions, drawn[0])]
        found.append([*drawn, copies, *scored])
    close(*found)


@pytest.mark.parametrize("name", ["small", "standard"])
def test_an_update_is_the_same(name):
    batch, found = some_batch(make_agent(name), 60, name), []
    for device in DEVICES:
        agent = make_agent(name).to(device)
        run = ready(agent, num_minibatches=2, update_epochs=2)
        run.optimizer = torch.optim.SGD(agent.parameters(), lr=0.01)
        before = parameters_to_vector(agent.parameters()).detach().cpu()
        losses = update(run, batch, 0.01, Ranks())
        weights = parameters_to_vector(agent.parameters()).detach().cpu()
        found.append([weights, [*losses.values()]])
        assert (found[-1][0] - before).abs().max() > 1e-3
    close(*found)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_is_resumed_and_plays_without_one(processes, tmp_path, capsys):
    run = train(tmp_path / "runs", "--cuda", "--processes", str(processes), average_exponent=2.0)
    assert "rank 0 on cuda:0" in capsys.readouterr().out
    assert resume(run, "--total-timesteps", "900") == 0
    assert load(run)["global_step"] >= 900 and metrics(run)[-1]["global_step"] >= 900
    assert resume(run, "--no-cuda", "--total-timesteps", "1200") == 0
    assert load(run)["global_step"] >= 1200
    report = evaluate_player("small", load_player(str(run)), make_bot("hold"), 4, max_years=3)
    assert report.result()["games"] == 4


def test_ranks_of_torchrun_talk_through_nccl(tmp_path):
    config, folder = write_config(tmp_path / "tiny.toml"), tmp_path / "runs"
    words = "ppo_selfplay_diplomacy.py", "--config", config, "--runs-folder", folder, "--cuda"
    count = torch.cuda.device_count()
    done = torchrun(*words, processes=count)
    assert done.returncode == 0, done.stderr[-3000:]
    (run,) = folder.iterdir()
    assert load(run)["global_step"] >= 600 and len(load(run)["ranks"]) == count
    done = torchrun(*words, processes=count + 1)
    assert done.returncode != 0 and f"none of the {count} GPUs is left for rank" in done.stderr
