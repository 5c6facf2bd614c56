"""Tiny runs of every learner beside the script, which tests/script has."""

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from support.tables import read_text
from support.training import main, write_config

from diplomacy_learners import anchored, baselines, exploit, league, press

SETTINGS = tomllib.loads(read_text(__file__, "learners.toml"))
IN_TEAMS = "partners", "board", "mutual"


class Learner(NamedTuple):
    """A learner as a command."""

    main: Callable[[list[str]], int]  # takes a command line, returns the exit status
    settings: dict[str, Any]
    first: list[str]  # words before the flags of a new run


def exploiting(argv: list[str]) -> int:
    """Run exploit's command; return the exit status."""
    try:
        return exploit.main(argv)
    except SystemExit as end:
        return end.code


LEARNERS = {
    name: Learner(
        exploiting if script is exploit else partial(main, script=script),
        SETTINGS["all"] | (SETTINGS["team"] if name in IN_TEAMS else {}) | own,
        ["three-pure-1"] * (script is exploit),
    )
    for script in (baselines, press, league, anchored, exploit)
    for name, own in SETTINGS[script.__name__.rpartition(".")[2]].items()
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
