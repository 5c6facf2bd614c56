"""Settings of the script: the command line, settings files, and which of them wins."""

import dataclasses
import importlib.util
import os
import re
import runpy
import sys
import typing

import pytest
from msgspec import Meta
from support.tables import read_table
from support.training import REPOSITORY, write_config

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.learning import registry, settings
from diplomacy_engine.learning.settings import parse_args
from diplomacy_engine.records import convert
from diplomacy_learners import imitate

FILES = sorted(path.stem for path in (REPOSITORY / "diplomacy_learners").glob("[a-z]*.py"))
LEARNERS = ["ppo_selfplay_diplomacy", *(f"diplomacy_learners.{name}" for name in FILES)]
WORDS = dict(read_table(__file__, "words_of_people_and_of_sweeps"))


@pytest.mark.parametrize("words", WORDS)
def test_words_of_people_and_of_sweeps(words):
    args = parse_args(ppo.Args, words.split())
    for name, value in WORDS[words].items():
        found = getattr(args, name)
        value = tuple(value) if isinstance(value, list) else value
        assert found == value and type(found) is type(value)


def test_the_defaults_are_as_a_file_could_give_them():
    assert convert(ppo.Args, dataclasses.asdict(ppo.Args()), "defaults") == ppo.Args()


def test_a_flag_wins_over_the_file_and_the_file_over_the_default(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "CONFIGS", tmp_path)
    (tmp_path / "three.toml").write_text("num_envs = 1e3\npool-bots = ['hold']\ngamma = 0.5\n")
    args = parse_args(ppo.Args, ["--map", "three", "--gamma", "0.25", "--hidden", "8"])
    assert args == ppo.Args(map="three", num_envs=1000, pool_bots=("hold",), gamma=0.25, hidden=8)
    assert settings.origins(args) == [
        "settings file three.toml: --num-envs 1000 --pool-bots hold --gamma 0.5",
        "flags: --map three --gamma 0.25 --hidden 8",
    ]
    # A file that is named takes the place of the map's; a map's path has none.
    other = write_config(tmp_path / "other.toml")
    args = parse_args(ppo.Args, ["--map=three", "--config", other])
    assert (args.map, args.num_envs, args.pool_bots) == ("three", 8, ())
    assert parse_args(ppo.Args, ["--map", "my/three.toml"]).num_envs == ppo.Args.num_envs
    assert settings.origins(ppo.Args()) == []
    # A run that begins with a policy is on its map.
    (tmp_path / "standard.toml").write_text("num_envs = 7\n")
    args = parse_args(ppo.Args, ["--start-from", "standard-pure-2"])
    assert (args.map, args.num_envs) == ("standard", 7)


def test_flags_give_the_settings_again():
    values = {"track": True, "anneal": False, "reward": "a b", "eval_bots": ["hold"], "gone": 1}
    flags = settings.flags_of(ppo.Args(), values)
    assert flags == "--track --eval-bots hold --reward 'a b' --no-anneal"


def test_help_has_the_values_of_the_settings_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(settings, "CONFIGS", tmp_path)
    (tmp_path / "three.toml").write_text("num_envs = 123\n")
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as end:
        parse_args(ppo.Args, ["--map", "three", "--help"])
    shown = capsys.readouterr().out
    assert end.value.code == 0 and "(default: 123)" in shown
    names = [field.name.replace("_", "-") for field in dataclasses.fields(ppo.Args)]
    places = [re.search(rf"^\W*--{name}\b", shown, re.MULTILINE).start() for name in names]
    assert places == sorted(places)  # the first flags are those that one needs first


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # runpy finds it imported
@pytest.mark.parametrize("name", LEARNERS)
def test_the_help_of_a_command_has_every_flag_and_every_number_a_range(name, monkeypatch, capsys):
    """A test that imports a script and calls its main function leaves out its last lines."""
    if name == "diplomacy_learners.language_model":
        pytest.importorskip("transformers")
    script = pytest.importorskip(name, exc_type=ImportError)
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.setattr(registry, "_learners", dict(registry._learners))  # it registers once more
    with pytest.raises(SystemExit) as end:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    shown = capsys.readouterr().out
    assert end.value.code in (0, None)
    args_class = getattr(script, "Args", ppo.Args)
    hints = typing.get_type_hints(args_class, include_extras=True)
    for flag, hint in hints.items():
        if hint == imitate.Positional[tuple[str, ...]]:
            continue  # shown without its name
        word = flag.replace("_", "-")
        assert re.search(rf"--{word}[ ,]", shown)
        kinds = [hint, *typing.get_args(hint)]
        metas = [meta for kind in kinds for meta in getattr(kind, "__metadata__", ())]
        assert not {int, float} & {*kinds} or any(isinstance(meta, Meta) for meta in metas), flag


def test_one_of_torchruns_processes_speaks(capsys, monkeypatch):
    for rank, speaks in (("0", True), ("1", False)):
        monkeypatch.setitem(os.environ, "RANK", rank)
        for words in (["--batch-size", "3"], ["--num-env", "3"]):
            with pytest.raises(SystemExit) as end:
                parse_args(ppo.Args, words)
            assert end.value.code == 2 and bool(capsys.readouterr().err) == speaks


def test_a_learner_says_how_it_is_started(capsys, monkeypatch):
    spec = importlib.util.find_spec("diplomacy_learners.league")
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
    with pytest.raises(SystemExit):
        parse_args(ppo.Args, ["--mpa", "small"])
    assert "python -m diplomacy_learners.league --help" in capsys.readouterr().err
