"""Training on maps with more orders than an int16 can count."""

import pytest
import torch
from support.maps import write_coastal_map
from support.training import load, metrics, resume, train


@pytest.mark.parametrize("size", [(80, 4), pytest.param((200, 8), marks=pytest.mark.slow)])
def test_a_large_map_is_trained_on(size, tmp_path):
    path = write_coastal_map(tmp_path / "coastal.toml", *size)
    run = train(
        tmp_path / "runs",
        map=path,
        num_envs=4,
        total_timesteps=100,
        max_years=2,
        hidden=8,
        eval_games=2,
        eval_bots=["dumbbot"],
    )
    saved = load(run)
    assert saved["run"]["results"]["counters"]["updates"] >= 3
    assert all(torch.isfinite(weight).all() for weight in saved["model"].values())
    assert any("eval/dumbbot/win" in line for line in metrics(run))
    assert resume(run, "--total-timesteps", "150") == 0
    assert load(run)["global_step"] >= 150
