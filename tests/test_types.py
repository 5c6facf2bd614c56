"""Types: what public functions say, keywords that are said twice, and a user's strict checker."""

import ast
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

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


class Explains:
    name = "explains"

    def act(self, games, decisions): ...

    def explain(self, games, decisions): ...


def test_an_object_with_the_methods_of_a_protocol_is_such_a_player():
    """Else an attribute that a player need not have would decide what it can do, in silence."""
    assert isinstance(Explains(), ExplainingPlayer)


USER = """
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import diplomacy_engine as engine
from diplomacy_engine import Decisions, Game, Map, Player, StepResult, VectorGame
from diplomacy_engine.environments import parallel_env
from diplomacy_engine.environments.gymnasium_env import DiplomacyEnv


class First:
    name = "first"

    def act(self, games: VectorGame, decisions: Decisions) -> NDArray[np.int32]:
        orders: NDArray[np.int32] = decisions.order[decisions.order_start[:-1]]
        return orders


player: Player = First()
game = Game("standard", max_years=5, press="offers")
assert_type(game.map, Map)
assert_type(game.map.powers, list[str])
assert_type(game.rules.max_years, int | None)
assert_type(game.units, dict[str, list[str]])
assert_type(game.adjudicate(), dict[str, list[str]])
assert_type(game.history[0].get("results"), dict[str, list[str]] | None)
games = VectorGame("small", num_games=4, seed=1)
assert_type(games.state.unit_power, NDArray[np.int8])
assert_type(games.outcomes().alive, NDArray[np.bool])
decisions = games.decisions()
orders = games.new_orders()
games.write_orders(orders, decisions, player.act(games, decisions))
result = games.step(orders)
assert_type(result, StepResult)
assert_type(result.centers, NDArray[np.int16])
assert_type(decisions.take(np.arange(2)), Decisions)
report = engine.evaluate_player("small", player, engine.make_bot("random"), 10, seed=3)
report.result()
env = DiplomacyEnv("small", form="provinces", opponents=player, max_years=3)
seen, info = env.reset(seed=1)
rewards = parallel_env("three", draw_votes=True).step({})[1]
assert_type(rewards, dict[str, float])
Game("standard", max_year=5)  # wrong: no such field
Game("standard", press="loud")  # wrong: no such press
VectorGame("small", games=4)  # wrong
engine.evaluate_player("small", player, player, 10, sed=3)  # wrong
parallel_env("three", votes=True)  # wrong
engine.vectorgame  # wrong
"""


@pytest.mark.slow  # reads the whole package
def test_a_user_with_a_strict_checker_gets_types(tmp_path):
    user = tmp_path / "user.py"
    user.write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml"]
    command += ["--no-error-summary", "--follow-imports", "silent", user]
    env = {**os.environ, "MYPYPATH": str(ROOT)}
    out = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    wrong = {number for number, line in enumerate(USER.splitlines(), 1) if "# wrong" in line}
    reported = [line.split(":")[1] for line in out.stdout.splitlines() if ": error:" in line]
    assert {int(number) for number in reported} == wrong, out.stdout + out.stderr
