"""Property: whatever a field of GameRules says, each way that a game travels keeps it."""

import copy
import json
import pickle
from dataclasses import fields, replace

import gymnasium
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.serving import reopened, seated, viewer

from diplomacy_engine import Game, Map, UserError, VectorGame, load_map, make_bot
from diplomacy_engine.commands import cli
from diplomacy_engine.commands._flags import Evaluate, Play
from diplomacy_engine.commands._matches import rules_of
from diplomacy_engine.commands.play import _game_of_file
from diplomacy_engine.environments.pettingzoo_env import parallel_env
from diplomacy_engine.environments.settings import AgentSettings, PowersSettings
from diplomacy_engine.matches.forks import fork
from diplomacy_engine.matches.match import match_settings
from diplomacy_engine.play.file import read_session
from diplomacy_engine.players.population import FOLDERS, read_population, write_population
from diplomacy_engine.rules.game_rules import PROTOCOLS, GameRules

THREE = load_map("three")
OWN = Map(load_map("small").facts | {"name": "mine", "max_years": 7})
TALK = {"press": st.just("offers")}
# Field -> values off its default, with those of other fields without which they have no effect.
OFF = {
    "map": {"map": st.sampled_from([OWN, THREE, THREE.with_teams("ENGLAND+ITALY", 8)])},
    "max_years": {"max_years": st.integers(1, 1000)},
    "year_limit": {"max_years": st.integers(1, 1000), "year_limit": st.just("truncate")},
    "draw_votes": {"draw_votes": st.just(True)},
    "draws_after": {"draws_after": st.integers(1901, 30_000)},
    "press": {"press": st.sampled_from(PROTOCOLS)},
    "press_rounds": TALK | {"press_rounds": st.integers(1, 3)},
    "binding": TALK | {"binding": st.just(False)},
    "open_press": TALK | {"open_press": st.just(True)},
    "break_cost": TALK | {"binding": st.just(False), "break_cost": st.floats(0.125, 8)},
}


def through_json(notes):
    return json.loads(json.dumps(notes))


def saved_in(file, rules: GameRules):
    file.write_text(json.dumps(played(rules).to_saved_game()))
    return file


def played(rules: GameRules) -> Game:
    game = Game(rules)
    game.adjudicate()
    return game


def over(rules: GameRules) -> Game:
    game = Game(rules)
    for power in game.powers:
        if not game.is_over:
            game.concede(power)
    return game


def forked(rules: GameRules) -> GameRules:
    games = VectorGame(rules, 2, threads=1, auto_reset=False)
    rollouts = fork(games, [0], 1, years=1, players=[make_bot("random")], record=1)
    return Game.from_saved_game(through_json(rollouts.saved_games[0])).rules


def at_the_table(file, game: Game, act) -> GameRules:
    """What `act` makes of a session stands in its file."""
    file.unlink(missing_ok=True)
    session = seated(file, "h" + "p" * (len(game.powers) - 1), game)
    act(session)
    assert session.game.rules == read_session(session.file)[0].rules
    return reopened(session.file).game.rules


def resumed(file, rules: GameRules, **flags) -> GameRules:
    if rules.press == "propose-choose":  # which people at the page do not have
        return rules
    arguments = Play(resume=str(saved_in(file, rules)), against=("hold",), **flags)
    return _game_of_file(arguments, arguments.resume)[0].rules


def in_a_match(rules: GameRules) -> GameRules:
    games = match_settings(rules, max_years=rules.max_years or 30).new_games(1, [])
    return replace(games.rules, max_years=rules.max_years)


def by_its_spec(rules: GameRules) -> GameRules:
    options = {
        name: getattr(rules, name)
        for name in AgentSettings.ARGUMENTS.__annotations__
        if hasattr(rules, name)
    }
    env = gymnasium.make("diplomacy_engine:Diplomacy-v0", map=rules.map, **options)
    again = gymnasium.make(env.spec).unwrapped.game.rules
    assert again == env.unwrapped.game.rules
    others = {name: getattr(rules, name) for name in vars(rules) if name not in options}
    return replace(again, **others, max_years=rules.max_years)


def of_all_powers(rules: GameRules) -> GameRules:
    one_round = replace(rules, press_rounds=1)
    try:
        return replace(parallel_env(one_round).game.rules, press_rounds=rules.press_rounds)
    except UserError as error:
        name = str(error).split()[0].rstrip(":")
        usual = GameRules("small")
        assert getattr(rules, name) != getattr(usual, name)
        assert (
            name not in PowersSettings.ARGUMENTS.__annotations__ or rules.press == "propose-choose"
        )
        return rules


def printed(rules: GameRules) -> GameRules:
    """The commands that a run prints, for the fields for which there are flags."""
    evaluate = cli.parse(["evaluate", "--player", "hold", *rules.flags()])[1]
    assert isinstance(evaluate, Evaluate)
    bare = rules.map.with_teams("")
    understood = rules_of(evaluate, bare)
    if rules.max_years is None:
        understood = replace(understood, max_years=None)
    return replace(understood, draw_votes=rules.draw_votes, break_cost=rules.break_cost)


def of_a_population(folder, rules: GameRules) -> GameRules:
    population = read_population(FOLDERS / "small")
    write_population(replace(population, folder=folder, rules=rules))
    return read_population(folder).rules


WAYS = {
    "JSON": lambda rules, _: GameRules.from_json(through_json(rules.to_json()), None, "a game"),
    "pickle": lambda rules, _: pickle.loads(pickle.dumps(rules)),
    "deepcopy": lambda rules, _: copy.deepcopy(Game(rules)).rules,
    "copy": lambda rules, _: Game(rules).copy().rules,
    "saved game": lambda rules, _: (
        Game.from_saved_game(through_json(Game(rules).to_saved_game())).rules
    ),
    "state": lambda rules, _: Game.from_state(rules, Game(rules).to_state()).rules,
    "position": lambda rules, _: Game.from_position(Game(rules).to_position(), rules).rules,
    "many games": lambda rules, _: pickle.loads(pickle.dumps(VectorGame(rules, 2))).spare(1).rules,
    "one of many": lambda rules, _: Game.from_row(VectorGame(rules, 2, threads=1), 1).rules,
    "fork": lambda rules, _: forked(rules),
    "match": lambda rules, _: in_a_match(rules),
    "restart": lambda rules, file: at_the_table(file, over(rules), lambda session: None),
    "New game": lambda rules, file: at_the_table(
        file, over(rules), lambda s: s.new_game(viewer(s))
    ),
    "take back": lambda rules, file: at_the_table(
        file, played(rules), lambda s: s.take_back(viewer(s), s.now.step)
    ),
    "--resume": lambda rules, file: resumed(file, rules),
    "--phase": lambda rules, file: resumed(file, rules, phase="S1901M"),
    "an environment's spec": lambda rules, _: by_its_spec(rules),
    "all powers": lambda rules, _: of_all_powers(rules),
    "population": lambda rules, file: of_a_population(file.parent, rules),
    "printed command": lambda rules, _: printed(rules),
}


def test_every_field_has_values_off_its_default():
    assert OFF.keys() == {field.name for field in fields(GameRules)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OFF)
@settings(max_examples=1, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_way_keeps_every_field(name, way, tmp_path, data):
    values = {field: data.draw(strategy) for field, strategy in OFF[name].items()}
    rules = GameRules(**{"map": "small"} | values)
    assert getattr(rules, name) != getattr(GameRules("small"), name)
    assert WAYS[way](rules, tmp_path / "game.jsonl") == rules


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_years", -1), ("max_years", 1001), ("year_limit", "never"), ("press", "loud"),
        ("draws_after", "soon"), ("break_cost", -1.0), ("press_rounds", 0), ("binding", 1),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(UserError, match=f"{name}: "):
        GameRules("small", **{name: value})
    saved = Game("small").to_saved_game() | {name: value}
    with pytest.raises(UserError, match=f"{name}: "):
        Game.from_saved_game(saved)


def test_numbers_of_numpy_and_no_limit():
    assert GameRules("small", max_years=np.int64(3)).max_years == 3
    assert GameRules("small", max_years=0).max_years is None
