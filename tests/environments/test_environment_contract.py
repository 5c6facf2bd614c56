"""What holds of every environment: its interface, masks, seeds, ends, rewards, votes, pictures."""

import copy
import pickle
import random
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.test import api_test, parallel_api_test
from support.environments import (
    ALL_POWERS,
    FORMS,
    KINDS,
    ORDERING,
    TALK,
    TALKING_RULES,
    legal_text,
    make,
)
from support.maps import TRIBES
from support.tables import read_table, slow_but

from diplomacy_engine import GameRules, UserError, environments, load_map
from diplomacy_engine.environments import IDS, NEGOTIATION_IDS, gymnasium_env
from diplomacy_engine.environments.forms import flat_scale
from diplomacy_engine.environments.gymnasium_env import NeedsReset
from diplomacy_engine.environments.pettingzoo_env import env as aec_env
from diplomacy_engine.environments.pettingzoo_env import parallel_env

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # PettingZoo's: names, Dict spaces
each = pytest.mark.parametrize("kind", KINDS)


# All kinds, and those of all powers in turn as well as at once.
EVERY = KINDS | {
    f"{name} in turn": partial(aec_env, **rules) for name, rules in TALKING_RULES.items()
}


def every_case() -> Iterator[tuple[str, dict]]:
    """Yield each kind on each map, with and without teams, votes and flat observations."""
    maps = ("small", None), ("three", None), ("three", "ENGLAND+ITALY"), ("tribes", None)
    for kind, (name, teams), votes, flat in product(EVERY, maps, (False, True), (False, True)):
        unfit = (teams and kind == "negotiation") or (flat and kind in ("text", "negotiation"))
        if unfit or (votes and kind in ("text", "sequential")):
            continue
        changes = {"map": name, "draw_votes": votes}
        changes |= ({"teams": teams} if teams else {}) | ({"flat": True} if flat else {})
        yield kind, changes


CASES = list(every_case())
FEW = [random.Random(n).choice([c for c in CASES if c[0] == kind]) for n, kind in enumerate(EVERY)]


COPIES = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "cloudpickle": lambda value: cloudpickle.loads(cloudpickle.dumps(value)),
    "copy": copy.deepcopy,
}


def go_on(env, steps: int = 12):
    """Play on with actions that are drawn without masks; yield all that the environment says."""
    for _ in range(steps):
        if isinstance(env, AECEnv):
            yield env.agent_selection, (said := env.last())
            over, space = said[2] or said[3], env.action_space(env.agent_selection)
            env.step(None if over else space.sample())
        elif isinstance(env, ParallelEnv):
            yield env.step({name: env.action_space(name).sample() for name in env.agents})
        else:
            yield env.step(env.action_space.sample())
        if not getattr(env, "agents", True) or not getattr(env, "_running", True):
            return


def play(env, seed: int, steps: int = 60):
    if isinstance(env, AECEnv):
        env.reset(seed=seed)
        for number, name in enumerate(env.possible_agents):
            env.action_space(name).seed(seed + number)
        for name in env.agent_iter(steps):
            seen, paid, terminated, truncated, info = env.last()
            assert env.observation_space(name).contains(seen)
            over = terminated or truncated
            yield seen, [paid], over
            env.step(None if over else env.action_space(name).sample(info["action_mask"]))
    elif isinstance(env, ParallelEnv):
        seen, infos = env.reset(seed=seed)
        for number, space in enumerate(env.action_spaces.values()):
            space.seed(seed + number)
        while env.agents:
            alive = env.agents
            assert all(env.observation_space(name).contains(seen[name]) for name in alive)
            actions = {n: env.action_space(n).sample(infos[n]["action_mask"]) for n in alive}
            seen, rewards, terminated, truncated, infos = env.step(actions)
            assert set(seen) == set(rewards) == set(infos) == set(alive)
            assert set(env.agents) == {n for n in alive if not (terminated[n] or truncated[n])}
            yield seen, [rewards.get(name, 0.0) for name in env.possible_agents], not env.agents
    elif isinstance(env, gymnasium.vector.VectorEnv):
        seen, infos = env.reset(seed=seed)
        env.single_action_space.seed(seed)
        for _ in range(steps // 3):
            assert env.observation_space.contains(seen)
            actions = [env.single_action_space.sample(mask) for mask in infos["action_mask"]]
            seen, paid, terminated, truncated, infos = env.step(np.array(actions))
            yield seen, paid.tolist(), (terminated | truncated).all()
    else:
        seen, info = env.reset(seed=seed)
        env.action_space.seed(seed)
        over = False
        while not over:
            assert env.observation_space.contains(seen), seen
            mask, text = info.get("action_mask"), isinstance(seen, str)
            action = legal_text(seen, env.np_random) if text else env.action_space.sample(mask)
            seen, paid, terminated, truncated, info = env.step(action)
            assert not (terminated and truncated)
            over = terminated or truncated
            yield seen, [paid], over


@pytest.mark.parametrize("name", [*IDS, *NEGOTIATION_IDS])
def test_gymnasium_finds_nothing_wrong(name):
    settings = TALK if name in NEGOTIATION_IDS else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        no_pictures = {"skip_render_check": name != "Diplomacy-small-v0"}
        check_env(gymnasium.make(name, **settings).unwrapped, **no_pictures)
        if name.startswith("Diplomacy-small") and not name.endswith(("sequential-v0", "text-v0")):
            voting = gymnasium.make(name, **settings, draw_votes=True).unwrapped
            check_env(voting, skip_render_check=True)


@pytest.mark.parametrize(
    ("name", "talk", "votes"),
    [
        *product(["small"], [None, "mutual", "offers"], [False, True]),
        ("standard", None, False),
        ("standard", "mutual", True),
    ],
)
def test_pettingzoo_finds_nothing_wrong(name, talk, votes):
    settings = {"map": name, "press": talk, "draw_votes": votes}
    parallel_api_test(parallel_env(**settings), num_cycles=60)
    if name == "small":
        api_test(aec_env(**settings), num_cycles=30)


@pytest.mark.parametrize(("kind", "changes"), slow_but(FEW, CASES))
def test_every_environment_by_every_rule(kind, changes, tmp_path):
    """Masks are legal, observations fit, a seed repeats also after a game that was left in the
    middle, and copies go on the same way, made before the first game or within one."""
    (tmp_path / "tribes.toml").write_text(TRIBES)
    changes = dict(changes)
    if changes["map"] == "tribes":
        changes["map"] = str(tmp_path / "tribes.toml")
    if kind in AGENTS:
        changes["opponents"] = ["random", "dumbbot"]
    strict = {} if kind in ("negotiation", "deepdip") else {"strict": True}
    start = {} if kind == "negotiation" else {"start": "random"}
    env, picky = (EVERY[kind](**start | changes | more, max_years=4) for more in ({}, strict))

    seed = next(n for n in range(1, 60) if len(list(play(env, n))) > 5)  # random votes soon agree
    first = list(play(env, seed))
    assert data_equivalence(first, list(play(picky, seed)), exact=True)
    assert not data_equivalence(first, list(play(env, seed + 1)), exact=True)
    *_, (*_, over) = (step for _, step in zip(range(3), play(env, 7)))  # of talk, where there is
    copies = [by(env) for by in COPIES.values()]
    later = [[] if over else list(go_on(one)) for one in (env, *copies)]
    assert all(data_equivalence(later[0], other, exact=True) for other in later[1:])
    for one in (env, *copies):
        assert data_equivalence(first, list(play(one, seed)), exact=True)


@each
def test_info_has_one_shape(kind, monkeypatch):
    """From step to step, the end of a game aside, which adds to it what only an end has."""
    shapes = {}

    def note(self, *arguments):
        found = said(self, *arguments)
        for agent, info in found.items() if kind in ALL_POWERS else [(None, found)]:
            mask = info.get("action_mask", 0)
            parts = mask if isinstance(mask, dict) else {"action_mask": mask}
            values = {name: value for name, value in info.items() if name != "action_mask"} | parts
            kinds = {n: (np.asarray(v).shape, np.asarray(v).dtype) for n, v in values.items()}
            assert shapes.setdefault(agent, kinds) == kinds
            assert all(of_numbers.kind in "biu" for _, of_numbers in kinds.values())
        return found

    env = make(kind, map="three")
    own = type(getattr(env.unwrapped, "env", env.unwrapped) if kind == "in turn" else env)
    method = "_infos" if hasattr(own, "_infos") else "_info"
    said = getattr(own, method)
    monkeypatch.setattr(own, method, note)
    assert sum(1 for _ in play(env, 1)) > 4 and shapes


@pytest.mark.parametrize("kind", [kind for kind in ORDERING if kind != "text"])
def test_flat_observations(kind):
    """They hold the same numbers, as many each time, and games are played alike."""
    plain, flat = (list(play(make(kind, flat=wanted), 3)) for wanted in (False, True))
    assert len(plain) == len(flat) > 4
    env = make(kind)
    space = getattr(env, "single_observation_space", env.observation_space)
    scale = flat_scale(env.observation_space("RUSSIA") if kind in ALL_POWERS else space)
    for (seen, *others), (vector, *others_flat) in zip(plain, flat):
        assert others == others_flat
        agents = seen.items() if kind in ALL_POWERS and kind != "in turn" else [(None, seen)]
        for name, parts in agents:
            numbers = vector if name is None else vector[name]
            parts = parts if isinstance(parts, dict) else {"all": parts}
            rows = 2 if kind == "many" else 1
            arrays = [np.reshape(parts[key], (rows, -1)) for key in sorted(parts)]
            assert numbers.dtype == np.float32 and numbers.ndim == (2 if kind == "many" else 1)
            assert (abs(numbers) <= 1).all()
            expected = np.concatenate(arrays, 1).reshape(numbers.shape)
            np.testing.assert_allclose(numbers * scale, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("frameskip", None), ("oponents", "opponents"), ("max_yeers", "max_years"), ("max-years", "")],
)
@pytest.mark.parametrize("kind", [*KINDS, "made"])
def test_arguments_that_there_are_not(kind, name, hint):
    """In Python's own words, for which torchrl looks."""
    maker = (lambda **given: gymnasium.make("Diplomacy-v0", **given)) if kind == "made" else None
    with pytest.raises(TypeError) as error:
        (maker or KINDS[kind])(**{name: 3})
    assert f"__init__() got an unexpected keyword argument {name!r}" in str(error.value)
    if hint and (hint != "opponents" or kind in AGENTS):
        assert f"did you mean {hint!r}?" in str(error.value)


@pytest.mark.parametrize("seed", [[1], [1, 2, 3], [1, None], np.int64(1)])
def test_seeds_that_are_not_those_of_all_games(seed):
    with pytest.raises(UserError, match="seed"):
        make("many").reset(seed=seed)


def test_what_only_many_games_have():
    for name in ("num_envs", "threads"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            gymnasium.make("Diplomacy-small-v0", **{name: 2})


@pytest.mark.parametrize("mode", ["ansi", "rgb_array", None])
def test_rendering(mode, monkeypatch):
    monkeypatch.setattr(gymnasium_env, "WIDTH", 81)
    frames = []
    for kind in ORDERING:
        env = make(kind, map="three", render_mode=mode)
        assert env.render_mode == mode and "ansi" in env.metadata["render_modes"]
        if kind in FORMS:
            with pytest.raises(NeedsReset):
                env.render()
        env.reset(seed=1)
        found = env.render()
        frames += found if isinstance(found, tuple) else [found]
    for frame in frames:
        if mode == "ansi":
            assert frame.startswith("three S1901M\nENGLAND ") and len(frame.splitlines()) == 4
        elif mode is not None:
            assert frame.dtype == np.uint8 and frame.shape[1:] == (80, 3) and len(frame) % 2 == 0
            assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 10
        assert np.array_equal(frame, frames[0])


AGENTS = [*FORMS, "many"]
GROUPS = {
    "all": KINDS,
    "ordering": ORDERING,
    "agents": AGENTS,
    "agents and negotiation": [*AGENTS, "negotiation"],
}


OF_RULES = [  # that come with the game
    ("all", {"map": GameRules("small", press="offers", press_rounds=2)}, "press"),
    ("negotiation", {"map": load_map("three").with_teams("ENGLAND+ITALY")}, "teams"),
]


@pytest.mark.parametrize(
    ("kinds", "settings", "name"), [*read_table(__file__, "settings_refused"), *OF_RULES]
)
def test_settings_that_are_refused(kinds, settings, name):
    for kind in GROUPS.get(kinds, [kinds]):
        with pytest.raises(UserError) as error:
            make(kind, **settings)
        assert name in str(error.value) and "\n" not in str(error.value), kind


def test_without_pettingzoo(monkeypatch):
    monkeypatch.delitem(sys.modules, "diplomacy_engine.environments.pettingzoo_env")
    monkeypatch.delattr(environments, "pettingzoo_env")
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(UserError, match="pip install pettingzoo"):
        environments.parallel_env("small")
