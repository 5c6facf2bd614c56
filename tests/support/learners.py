"""Tiny runs of every learner beside the script, which tests/script has."""

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from support.tables import read_text
from support.training import main, write_config

from diplomacy_learners import anchored, baselines, exploit, league, press

# What a stopped run is to have under way.
RICH = tomllib.loads(read_text(__file__, "learners.toml"))
TEAM = {
    "teams": "ENGLAND+ITALY",
    "learner_seats": baselines.Args.learner_seats,
    "reward": "team:sum_of_squares=1,power:center_delta=0.2..0",
}


class Learner(NamedTuple):
    """A learner as a command."""

    main: Callable[[list[str]], int]  # takes a command line, returns the exit status
    settings: dict[str, Any]
    first: tuple[str, ...] = ()  # words before the flags of a new run


def exploiting(argv: list[str]) -> int:
    """Run exploit's command; return the exit status."""
    try:
        return exploit.main(argv)
    except SystemExit as end:
        return end.code


BASELINES, PRESS = partial(main, script=baselines), partial(main, script=press)
ALONE = {
    "opponent_temperature": 1.0,
    "learner_seats": baselines.Args.learner_seats,
    "pool_bots": [],
}
LEARNERS = {
    "independent": Learner(BASELINES, RICH | {"scheme": "independent"}),
    "central": Learner(BASELINES, RICH | {"scheme": "central", "capture_games": 1}),
    "counterfactual": Learner(BASELINES, RICH | {"scheme": "counterfactual", "alternatives": 2}),
    "partners": Learner(BASELINES, RICH | TEAM | {"partners": "pool", "freeze_score": 0.5}),
    "board": Learner(BASELINES, RICH | TEAM | {"board": 3}),
    "mutual": Learner(PRESS, RICH | TEAM | {"press": "mutual", "eval_bots": ["coin+random"]}),
    "offers": Learner(
        PRESS,
        RICH
        | {"press": "offers", "eval_bots": ["coin+random"], "capture_games": 1}
        | {"binding": "no", "break_cost": 0.1},
    ),
    "league": Learner(
        partial(main, script=league), RICH | {"exploiter_interval": 120, "exploiter_timesteps": 40}
    ),
    "anchored": Learner(
        partial(main, script=anchored), RICH | {"anchor": "three-pure-1", "anchor_coef": 0.01}
    ),
    "exploit": Learner(exploiting, RICH | ALONE, ("three-pure-1",)),
}


def train(name: str, folder: Path, *flags: str, status: int = 0, **changes: Any) -> Path:
    """Train a learner in a new run folder below `folder`; return the run folder."""
    learner = LEARNERS[name]
    folder.mkdir(exist_ok=True)
    before = set(folder.iterdir())
    config = write_config(folder.with_suffix(".toml"), **learner.settings | changes)
    argv = [*learner.first, "--config", config, "--runs-folder", str(folder), *flags]
    assert learner.main(argv) == status
    (run,) = set(folder.iterdir()) - before
    return run
