"""examples/compare_runs.py: means and intervals over seeds, by experiment."""

import json
import runpy
import sys

import numpy as np
import pytest

from diplomacy_engine.errors import UserError
from examples import compare_runs


def run(folder, name: str, seed: int, wins: list[float], script: str = "", **settings):
    path = folder / f"small__{name}__{seed}__{len(list(folder.iterdir()))}"
    path.mkdir()
    args = {"map": "small", "exp_name": name, "seed": seed, "runs_folder": str(path)} | settings
    (path / "args.json").write_text(json.dumps(args))
    (path / "script.py").write_text(script)
    lines = ({"global_step": 100 * i, "eval/dumbbot/win": w} for i, w in enumerate(wins, 1))
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_comparison_is_golden(tmp_path, capsys, golden):
    """Seeds of one experiment are one line, and twice the same seed is no spread; other settings
    and scripts are other lines; a learner without these settings is named by its folder."""
    runs = [run(tmp_path, "mine", seed, [0.1, seed / 10]) for seed in (1, 2, 3)]
    runs += [run(tmp_path, "plain", seed, [0.2, 0.9 - seed / 20]) for seed in (1, 2)]
    runs += [run(tmp_path, "mine", 1, [rate], learning_rate=rate) for rate in (0.1, 0.2)]
    runs += [run(tmp_path, "mine", seed, [0.4], "edited", learning_rate=0.1) for seed in (1, 2, 2)]
    runs += [run(tmp_path, "m", n, [0.5] * n, total_timesteps=200) for n in (1, 2, 3)]
    runs.append(run(tmp_path, "imitate", 1, [0.5]))
    (runs[-1] / "args.json").write_text('{"seed": 1}')
    out = tmp_path / "a.png"
    compare_runs.main(compare_runs.Args(tuple(runs), figures=("eval/dumbbot/win",), out=out))
    *lines, last = capsys.readouterr().out.splitlines()
    golden("comparison", lines)
    assert last == str(out) and out.stat().st_size > 1000


@pytest.mark.parametrize("seeds", [2, 5])
def test_19_of_20_intervals_hold_the_true_mean(seeds):
    """A bootstrap's hold it 5 to 8 times in 10."""
    rng = np.random.default_rng(seeds)
    wins = rng.normal(0.7, 0.05, (seeds, 4000))
    mean, low, high = compare_runs.mean_and_interval(wins)
    assert np.allclose(mean, wins.mean(0))
    assert np.mean((low < 0.7) & (high > 0.7)) == pytest.approx(0.95, abs=0.015)
    others = rng.normal(0.6, 0.01, (seeds, 4000))
    ends = np.array([compare_runs.difference(*pair) for pair in zip(wins.T, others.T)])
    held = np.mean((ends[:, 1] < 0.1) & (ends[:, 2] > 0.1))
    assert 0.935 < held < 0.99  # Welch's freedom is estimated, from few seeds too low


def test_a_missing_figure_is_named(tmp_path):
    folder = run(tmp_path, "mine", 1, [0.1])
    with pytest.raises(UserError, match="eval/brane/win"):
        compare_runs.curve(folder, "eval/brane/win")


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(UserError, match="no_run"):
        compare_runs.main(compare_runs.Args((tmp_path / "no_run",)))
    folder = run(tmp_path, "mine", 1, [0.1])
    (folder / "metrics.jsonl").unlink()
    with pytest.raises(UserError, match="metrics"):
        compare_runs.curve(folder, "eval/dumbbot/win")


def test_a_training_that_fails_is_named(tmp_path):
    args = compare_runs.Args(train=("no_script.py --map small",), runs_folder=tmp_path)
    with pytest.raises(UserError, match="no_script"):
        compare_runs.main(args)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # runpy finds it imported
def test_without_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit) as end:
        runpy.run_module("examples.compare_runs", run_name="__main__")
    assert end.value.code == 2 and "pip install matplotlib" in capsys.readouterr().err
