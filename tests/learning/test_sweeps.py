"""Every settings file and every sweep goes through the trainer's real command line."""

import dataclasses
import itertools
import random
import re
import tomllib

import pytest
import yaml  # comes with wandb

from diplomacy_engine import BOTS, MAP_NAMES, load_map
from diplomacy_engine.learning.checks import check_args
from diplomacy_engine.learning.settings import CONFIGS, flags_of, map_file, parse_args, with_file
from ppo_selfplay_diplomacy import Args

SWEEPS = sorted(CONFIGS.glob("*.yaml"))
SETTINGS = sorted(CONFIGS.glob("*.toml"))
# How W&B writes a run's values; `args_no_boolean_flags` would drop what is false.
MACROS = {
    "${args}": lambda values: [f"--{name}={value}" for name, value in values.items()],
    "${args_no_equals}": lambda values: [
        word for name, value in values.items() for word in (f"--{name}", str(value))
    ],
}


def choices(parameter: dict) -> list:
    if "value" in parameter:
        return [parameter["value"]]
    return parameter.get("values") or [parameter["min"], parameter["max"]]


def grid(sweep: dict) -> list[dict]:
    names, parameters = zip(*sweep["parameters"].items())
    return [dict(zip(names, values)) for values in itertools.product(*map(choices, parameters))]


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
@pytest.mark.parametrize("macro", MACROS)
@pytest.mark.parametrize("most", [6, pytest.param(10**6, marks=pytest.mark.slow)])
def test_every_run_of_a_sweep_is_a_command_line(path, macro, most):
    sweep = yaml.safe_load(path.read_text())
    flags = [word for word in sweep["command"] if word.startswith("--")]
    runs = grid(sweep)
    for values in random.Random(path.stem).sample(runs, min(most, len(runs))):
        args = parse_args(Args, flags + MACROS[macro](values))
        check_args(args, load_map(args.map))
        # Not so if PyYAML read 1e-3, which has no dot, as a text
        assert {name: getattr(args, name) for name in values} == values


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_sweep(path):
    """One run of its grid has the shipped settings; so a sweep says what its changes are worth."""
    sweep = yaml.safe_load(path.read_text())
    assert (CONFIGS.parent / sweep["program"]).is_file()
    assert sweep["method"] in ("grid", "random", "bayes")
    assert sum(word in MACROS for word in sweep["command"]) == 1
    assert sweep["command"].index("${program}") < sweep["command"].index("--track")
    bot, figure = re.fullmatch(r"eval/(.+)/(\w+)", sweep["metric"]["name"]).groups()
    for name in choices(sweep["parameters"].get("map", {"value": Args.map})):
        assert bot in parse_args(Args, ["--map", name]).eval_bots
    assert figure in ("solo", "win", "survival", "sum_of_squares", "deepdip_reward", "rank")
    runs = grid(sweep)
    shipped = parse_args(Args, ["--map", runs[0]["map"]])
    assert sum(all(getattr(shipped, name) == run[name] for name in run) for run in runs) == 1
    assert f"These are {len(runs)} runs of about" in path.read_text()


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.stem)
def test_settings_file(path):
    """It is found by its map's name, or names its map; fits it, and holds differences only."""
    own = path.stem in MAP_NAMES  # that of a map, which --map takes
    values = tomllib.loads(path.read_text())
    name = path.stem if own else values.pop("map")
    assert name in MAP_NAMES and path.stem.startswith(name)
    assert path.read_text().startswith(f"# The {name} map{':' if own else ','} ")
    args = parse_args(Args, ["--map", name] if own else ["--config", str(path)])
    assert args == dataclasses.replace(with_file(Args, name, path), map=name, config=args.config)
    check_args(args, load_map(name))
    assert not values.keys() & {"map", "seed", "processes", "cuda", "track"}
    differing = flags_of(Args(), values).replace("--no-", "--").split()
    assert all(f"--{key.replace('_', '-')}" in differing for key in values)
    assert args.eval_games % len(load_map(name).powers) == 0
    assert set(args.eval_bots) <= BOTS.keys()
    assert args.eval_interval <= args.total_timesteps


def test_the_maps_have_settings():
    """The small one has those of the script."""
    assert {name for name in MAP_NAMES if not map_file(name)} == {Args.map} == {"small"}
    assert CONFIGS / "sweep_small.yaml" in SWEEPS
