"""Search for good settings with Optuna: each trial is a short training, stopped early if hopeless.

    python -m examples.tune_optuna --trials 30 --flags "--map small --total-timesteps 300_000"
    optuna-dashboard sqlite:///runs/tuned/trials.db

A trial trains the script with one seed after the other, and is worth the mean of `--figure` at the
end. After each seed a trial is given up if its mean so far is below the median of what at least
four others had after that seed. Trials are kept in a file, so a search goes on where it was
stopped, and several may run at once. Change `suggest` to search other settings. Needs optuna.
"""

import importlib.util
import json
import secrets
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from diplomacy_engine._progress import fail

if __name__ == "__main__" and importlib.util.find_spec("optuna") is None:
    sys.exit(fail("this needs a package: pip install optuna"))

import optuna
import tyro

from diplomacy_engine.errors import UserError

FEW = 4  # trials that have no median yet


@dataclass
class Args:
    """What is searched, and for how long."""

    flags: str = "--map small --total-timesteps 300_000"
    """flags of the script, in quotes"""
    script: Path = Path("ppo_selfplay_diplomacy.py")
    """script to train: this one, or a copy of yours"""
    trials: int = 30
    """trials to add"""
    seeds: int = 2
    """seeds of each trial"""
    figure: str = "eval/dumbbot/win"
    """figure of metrics.jsonl to make as large as possible"""
    runs_folder: Path = Path("runs/tuned")
    """folder for the run folders and for trials.db"""


def suggest(trial: optuna.Trial) -> dict[str, float]:
    """Return settings to try, by flag."""
    return {
        "--learning-rate": trial.suggest_float("learning_rate", 1e-4, 3e-3, log=True),
        "--ent-coef": trial.suggest_float("ent_coef", 0.03, 0.6, log=True),
        "--gae-lambda": trial.suggest_float("gae_lambda", 0.7, 0.97),
        "--num-minibatches": trial.suggest_categorical("num_minibatches", [4, 8, 16]),
    }


def train(args: Args, settings: dict[str, float], name: str, seed: int) -> float:
    """Train once; return the last value of the figure."""
    words = [sys.executable, str(args.script), *shlex.split(args.flags)]
    for flag, value in settings.items():
        words += [flag, str(value)]
    words += ["--seed", str(seed), "--exp-name", name, "--runs-folder", str(args.runs_folder)]
    if status := subprocess.run(words, stdout=subprocess.DEVNULL).returncode:
        raise UserError(f"{shlex.join(words)} ended with exit status {status}")
    (metrics,) = args.runs_folder.glob(f"*__{name}__{seed}__*/metrics.jsonl")
    lines = map(json.loads, metrics.read_text().splitlines())
    values = [line[args.figure] for line in lines if args.figure in line]
    if not values:
        raise UserError(f"{metrics} has no {args.figure}")
    return values[-1]


def is_hopeless(trial: optuna.Trial, mean: float, seed: int) -> bool:
    """Report a trial's mean up to `seed`; return whether it is below the median of the others'.

    Optuna's MedianPruner would compare the best of its means, which is the luckiest.
    """
    trials = (other.intermediate_values for other in trial.study.get_trials(deepcopy=False))
    others = [means[seed] for means in trials if seed in means]
    trial.report(mean, seed)
    return len(others) >= FEW and mean < statistics.median(others)


def main(args: Args) -> int:
    args.runs_folder.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        storage=f"sqlite:///{args.runs_folder}/trials.db",
        study_name=f"{args.figure}: {args.script} {args.flags}, {args.seeds} seeds",
        load_if_exists=True,
        direction="maximize",
    )

    def objective(trial: optuna.Trial) -> float:
        settings, values = suggest(trial), []
        name = f"trial{trial.number}_{secrets.token_hex(4)}"  # other searches have trials, too
        for seed in range(1, args.seeds + 1):
            values.append(train(args, settings, name, seed))
            if is_hopeless(trial, statistics.mean(values), seed):
                raise optuna.TrialPruned
        return statistics.mean(values)

    try:
        study.optimize(objective, n_trials=args.trials)
    except UserError as error:
        return fail(error)
    print(f"best of {len(study.trials)} trials: {study.best_value:.3f} with {study.best_params}")
    return 0


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Args, description=__doc__)))
