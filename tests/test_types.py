"""Types: what public functions say, keywords that are said twice, and a user's strict checker."""

import ast
import contextlib
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import get_type_hints

import pytest
from support.tables import read_text

import diplomacy_engine
import diplomacy_learners
from diplomacy_engine.environments import settings
from diplomacy_engine.matches.match import MatchOptions, MatchSettings
from diplomacy_engine.players.protocols import ExplainingPlayer
from diplomacy_engine.rules.game_rules import GameOptions, GameRules, RuleOptions

ROOT = Path(__file__).parents[1]
FILES = [*ROOT.glob("diplomacy_engine/**/*.py"), *ROOT.glob("diplomacy_learners/*.py")]
FILES += [ROOT / "ppo_selfplay_diplomacy.py"]
UNTYPED = {"Any", "SimpleNamespace"}


def public_functions(body: list[ast.stmt]):
    for node in body:
        private = getattr(node, "name", "").startswith("_")
        if isinstance(node, ast.ClassDef) and not private:
            yield from public_functions(node.body)
        elif isinstance(node, ast.FunctionDef) and (not private or node.name == "__init__"):
            yield node


def test_no_public_function_takes_or_returns_just_anything():
    untyped = []
    for path in FILES:
        for function in public_functions(ast.parse(path.read_text()).body):
            signature = [*ast.walk(function.args), *ast.walk(function.returns or ast.Pass())]
            words = {getattr(node, "id", getattr(node, "attr", "")) for node in signature}
            if words & UNTYPED:
                untyped.append(f"{path.relative_to(ROOT)}:{function.lineno} {function.name}")
    assert not untyped


def test_keywords_are_those_of_their_records():
    rules = {field.name for field in fields(GameRules)} - {"map"}
    match = {field.name for field in fields(MatchSettings)} - {"rules"}
    hints = get_type_hints(GameRules) | get_type_hints(MatchSettings)
    for options, names in (
        (RuleOptions, rules),
        (GameOptions, rules | {"teams", "team_victory"}),
        (MatchOptions, rules | match | {"teams", "team_victory"}),
    ):
        own = get_type_hints(options)
        assert own.keys() == names
        assert all(own[name] == hints[name] for name in names & hints.keys())
    for kind in (settings.AgentSettings, settings.PowersSettings, settings.TalkSettings):
        own, hints = get_type_hints(kind.ARGUMENTS), get_type_hints(kind)
        for name in own.keys() & hints.keys():
            assert hints[name] in (own[name], object), name


def plain(value):
    """Return a default as every machine writes it."""
    known = isinstance(value, bool | int | float | str | tuple | dict | NoneType) or is_dataclass(
        value
    )
    return re.sub(" at 0x[0-9a-f]+", "", repr(value)) if known else "..."


def declared(value):
    """Return in a line which parameters of a class or function have defaults or limits."""
    own, words = getattr(value, "__annotations__", {}), []
    for one in inspect.signature(value).parameters.values():
        limits = "".join(re.findall(r"Meta\([^)]*\)", repr(own.get(one.name))))
        default = "" if one.default is one.empty else f"= {plain(one.default)}"
        if one.name in own and (limits or default):
            words.append(f"{'*' * (one.kind is one.KEYWORD_ONLY)}{one.name} {limits}{default}")
    frozen = getattr(getattr(value, "__dataclass_params__", None), "frozen", False)
    return [f"  {value.__qualname__} {'frozen ' * frozen}{'; '.join(words)}"] * bool(words)


def test_defaults_and_limits_are_the_golden_ones(golden):
    """Of all records, settings, flags and public functions."""
    lines, names = [], ["ppo_selfplay_diplomacy"]
    for package in (diplomacy_engine, diplomacy_learners):
        walk = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        names += [info.name for info in walk if not info.name.endswith("__main__")]
    for module in map(importlib.import_module, names):
        found = []
        for name, value in vars(module).items():
            own = getattr(value, "__module__", "") == module.__name__
            if own and (isinstance(value, type) or (inspect.isfunction(value) and name[0] != "_")):
                for each in (value, *vars(value).values()):
                    public = each is value or getattr(each, "__name__", "_")[0] != "_"
                    with contextlib.suppress(TypeError, ValueError):  # it has no signature
                        found += declared(each) if public else []
        lines += [module.__name__, *sorted(found)] if found else []
    golden("declared", lines)


class Explains:
    name = "explains"

    def act(self, games, decisions): ...

    def explain(self, games, decisions): ...


def test_an_object_with_the_methods_of_a_protocol_is_such_a_player():
    """Else an attribute that a player need not have would decide what it can do, in silence."""
    assert isinstance(Explains(), ExplainingPlayer)


@pytest.mark.slow  # reads the whole package
def test_a_user_with_a_strict_checker_gets_types(tmp_path):
    text, user = read_text(__file__, "user.py.txt"), tmp_path / "user.py"
    user.write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml"]
    command += ["--no-error-summary", "--follow-imports", "silent", user]
    env = {**os.environ, "MYPYPATH": str(ROOT)}
    out = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    wrong = {number for number, line in enumerate(text.splitlines(), 1) if "# wrong" in line}
    reported = [line.split(":")[1] for line in out.stdout.splitlines() if ": error:" in line]
    assert {int(number) for number in reported} == wrong, out.stdout + out.stderr
