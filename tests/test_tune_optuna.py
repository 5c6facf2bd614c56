"""examples/tune_optuna.py: trials by Optuna, each of a training with every seed."""

import numpy as np
import pytest
from support.tables import read_text

optuna = pytest.importorskip("optuna")
tune_optuna = pytest.importorskip("examples.tune_optuna")

SCRIPT = read_text(__file__, "training.py.txt")


def make_args(folder, script="script.py", **settings):
    (folder / script).write_text(SCRIPT)
    settings = {"trials": 3, "flags": "--map m --fails 0"} | settings
    return tune_optuna.Args(script=folder / script, runs_folder=folder / "tuned", **settings)


def trials_of(args) -> list:
    file = f"sqlite:///{args.runs_folder}/trials.db"
    (study,) = optuna.get_all_study_summaries(file)
    return optuna.load_study(study_name=study.study_name, storage=file).trials


@pytest.mark.slow
def test_a_search_finds_the_best_trial_and_goes_on(tmp_path, capsys):
    args = make_args(tmp_path)
    assert tune_optuna.main(args) == tune_optuna.main(args) == 0
    trials = trials_of(args)
    assert len(trials) == 6 and "best of 6 trials" in capsys.readouterr().out
    for trial in trials:
        folders = list(args.runs_folder.glob(f"m__trial{trial.number}_*"))
        assert len(folders) == len(trial.intermediate_values)
        if trial.state == optuna.trial.TrialState.COMPLETE:  # the mean of both seeds
            assert trial.value == pytest.approx(trial.params["gae_lambda"] + 0.985)


def test_a_trial_ends_when_its_mean_falls_below_the_median_of_the_others(tmp_path, monkeypatch):
    """However well it began: 0.6, then nothing, beside four of 0.5."""
    wins = np.vstack(
        [np.full((4, 5), 0.5), [0.6, 0, 0, 0, 0], np.random.default_rng(1).random((8, 5))]
    )
    monkeypatch.setattr(  # by name: trial0_..., trial1_...
        tune_optuna, "train", lambda _, __, name, seed: wins[int(name[5:].split("_")[0]), seed - 1]
    )
    args = make_args(tmp_path, trials=len(wins), seeds=5)
    assert tune_optuna.main(args) == 0
    ended = []  # after how many seeds
    for i, means in enumerate(wins.cumsum(1) / np.arange(1, 6)):
        others = [wins[:i][np.array(ended, int) > n, : n + 1].mean(1) for n in range(5)]
        low = [len(o) >= 4 and means[n] < np.median(o) for n, o in enumerate(others)]
        ended.append(low.index(True) + 1 if any(low) else 5)
    assert [len(trial.intermediate_values) for trial in trials_of(args)] == ended
    assert ended[4] == 2 and len(set(ended[5:])) > 1


@pytest.mark.slow
def test_searches_in_one_folder_know_their_own_runs(tmp_path, capsys):
    searches = ("three", "5.", "script.py"), ("m", "1.", "script.py"), ("m", "1.", "mine.py")
    for game_map, best, script in searches:
        flags = f"--map {game_map} --fails 0"
        assert tune_optuna.main(make_args(tmp_path, script, flags=flags, trials=1, seeds=1)) == 0
        assert f"best of 1 trials: {best}" in capsys.readouterr().out


def test_a_training_that_fails_or_has_no_such_figure_ends_the_search(tmp_path, capsys):
    assert tune_optuna.main(make_args(tmp_path, flags="--map m --fails 3")) == 2
    assert "exit status 3" in capsys.readouterr().err
    assert tune_optuna.main(make_args(tmp_path, figure="eval/brane/win", seeds=1)) == 2
    assert "metrics.jsonl has no eval/brane/win" in capsys.readouterr().err
