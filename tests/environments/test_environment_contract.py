"""What holds of every environment: its interface, masks, seeds, ends, rewards, votes, pictures."""

import copy
import pickle
import random
import sys
import warnings
from collections.abc import Iterator
from itertools import product

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.test import api_test, parallel_api_test
from support.environments import legal_text
from support.maps import TRIBES
from support.tables import read_table, slow_but

from diplomacy_engine import GameRules, UserError, environments, load_map
from diplomacy_engine.environments import IDS, NEGOTIATION_IDS, gymnasium_env
from diplomacy_engine.environments.forms import flat_scale
from diplomacy_engine.environments.gymnasium_env import NeedsReset
from diplomacy_engine.environments.negotiation_env import NegotiationEnv
from diplomacy_engine.environments.pettingzoo_env import env as aec_env
from diplomacy_engine.environments.pettingzoo_env import parallel_env

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # PettingZoo's: names, Dict spaces
TALK = {"orders_by": "random", "answers": "peaceful"}


def one(form: str):
    return lambda **settings: gymnasium.make("Diplomacy-v0", form=form, **settings).unwrapped


def many(**settings):
    return gymnasium.make_vec("Diplomacy-v0", **{"num_envs": 2} | settings)


def talk(**settings):
    return NegotiationEnv(**TALK | settings)


FORMS = {name: one(name) for name in ("provinces", "sequential", "deepdip", "text")}


TALKING_RULES = {
    "press": {"press": "mutual"},
    "free press": {"press": "mutual", "binding": False},
    "offers": {"press": "offers"},
}
TALKING = {
    name: lambda rules=rules, **settings: parallel_env(**rules | settings)
    for name, rules in TALKING_RULES.items()
}
ALL_POWERS = {"all powers": parallel_env, "in turn": aec_env} | TALKING
ORDERING = FORMS | {"many": many} | ALL_POWERS  # in which agents order
KINDS = ORDERING | {"negotiation": talk}
each = pytest.mark.parametrize("kind", KINDS)


# All kinds, and those of all powers in turn as well as at once.
EVERY = KINDS | {
    f"{name} in turn": lambda rules=rules, **settings: aec_env(**rules | settings)
    for name, rules in TALKING_RULES.items()
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


def make(kind: str, **settings):
    return KINDS[kind](**{"map": "small", "max_years": 4} | settings)


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

    first, games = [], 0
    while games < 2 or len(first) < 12:  # random votes soon agree
        games += 1
        first += play(env, games)

    def played(env, seed):
        return [step for i in range(games) for step in play(env, seed + i)]

    assert data_equivalence(first, played(picky, 1), exact=True)
    assert not data_equivalence(first, played(env, 4), exact=True)
    *_, (*_, over) = (step for _, step in zip(range(3), play(env, 7)))  # of talk, where there is
    copies = [by(env) for by in COPIES.values()]
    later = [[] if over else list(go_on(one)) for one in (env, *copies)]
    assert all(data_equivalence(later[0], other, exact=True) for other in later[1:])
    for one in (env, *copies):
        assert data_equivalence(first, played(one, 1), exact=True)


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
        many().reset(seed=seed)


def test_what_only_many_games_have():
    for name in ("num_envs", "threads"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            gymnasium.make("Diplomacy-small-v0", **{name: 2})


def vote(space, yes: int) -> dict | np.ndarray:
    if isinstance(space, gymnasium.spaces.Dict):
        return {name: part.sample() * 0 for name, part in space.items()} | {"vote": yes}
    action = np.zeros(space.shape, np.int64)
    action[..., -1] = yes
    return action


@pytest.mark.parametrize("kind", ["provinces", "deepdip", "negotiation", "many"])
def test_an_agent_and_the_others_agree_to_a_draw(kind):
    """The others vote from a year on; the second of many games, whose agent does not, goes on."""
    bots = {"orders_by": "hold"} if kind == "negotiation" else {"opponents": "hold"}
    settings = {"reward": "draw_size", "draws_after": 1902} | bots
    env, plain = make(kind, draw_votes=True, **settings), make(kind, **bots)
    space, before = (getattr(e, "single_action_space", e.action_space) for e in (env, plain))
    assert space.nvec.tolist() == [*before.nvec.tolist(), 2]
    env.reset(seed=1)
    action = vote(env.action_space, 1)
    if kind == "many":
        action[1, -1] = 0
    for ends in (False, False, True):  # spring and fall of 1901, spring of 1902
        _, paid, terminated, truncated, info = env.step(action)
        assert np.atleast_1d(terminated).tolist() == [ends, False][: np.size(terminated)]
        assert not np.any(truncated)
    assert np.atleast_1d(paid).tolist() == [0.5, 0][: np.size(paid)]
    final = info.get("final_info", info)
    if kind != "negotiation":
        assert np.atleast_1d(final["agreed"])[0] and np.atleast_1d(final["years"])[0] == 2
    if kind in ("provinces", "many"):
        assert info["action_mask"].shape[-1] == space.nvec.sum()
    env.reset(seed=1)
    if kind in ("provinces", "deepdip"):
        for yes in (1, 1, 0, 0):  # a vote is of its phase
            assert not env.step(vote(env.action_space, yes))[2]


@pytest.mark.parametrize("talk", [None, "mutual", "offers"])
def test_all_powers_agree_to_a_draw(talk):
    env = parallel_env("three", press=talk, draw_votes=True, reward="draw_size", max_years=3)
    _, infos = env.reset(seed=1)

    def step(*voters):
        talks = "wishing", "offering", "answering"  # where a vote means nothing
        while any(infos["ITALY"].get(name) for name in talks):
            found = env.step({n: vote(env.action_space(n), 1) for n in env.agents})
            assert not any(found[2].values())
            infos.update(found[-1])
        return env.step({n: vote(env.action_space(n), int(n in voters)) for n in env.agents})

    assert not any(step("ENGLAND", "ITALY")[2].values())
    infos.update(env._infos(env.agents, *env._nothing()))
    _, rewards, terminated, truncated, _ = step(*env.agents)
    assert all(terminated.values()) and not any(truncated.values()) and not env.agents
    assert rewards == pytest.approx(dict.fromkeys(rewards, 1 / 3))


def test_an_eliminated_ally_has_no_vote():
    env = parallel_env("three", draw_votes=True, teams="ENGLAND+ITALY")
    env.reset(seed=1)
    state, italy = env._games.state, env.possible_agents.index("ITALY")
    state.unit_power[state.unit_power == italy] = -1
    state.unit_kind[state.unit_power == -1] = state.unit_location[state.unit_power == -1] = -1
    state.center_owner[state.center_owner == italy] = -1

    def step(*voters):
        return env.step({n: vote(env.action_space(n), int(n in voters)) for n in env.agents})

    _, _, terminated, _, infos = step("ITALY", "ENGLAND")
    assert not any(terminated.values()) and infos["ITALY"]["eliminated"]
    assert infos["ITALY"]["action_mask"][-2:].tolist() == [1, 0]
    assert all(step("ENGLAND", "RUSSIA")[2].values())


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


NOTHING, OTHER = np.zeros(19, int), {"orders": np.zeros(19, int), "wish": np.zeros(2, int)}


def both(england, russia):
    return {"ENGLAND": england, "RUSSIA": russia}


@pytest.mark.parametrize(
    ("kind", "settings", "action", "name"),
    [
        *(("provinces", {}, wrong, "(19,)") for wrong in (NOTHING[:18], NOTHING[None], 3, "hold")),
        *(("provinces", {}, NOTHING.astype(kind), "(19,)") for kind in (float, bool, object)),
        *(("sequential", {}, wrong, "()") for wrong in (1.0, "A LON H", None, True, [1])),
        ("many", {}, np.zeros((3, 19), int), "(2, 19)"),
        ("provinces", {"power": "ENGLAND"}, NOTHING, "A LON: action 0 "),
        ("provinces", {"power": "ENGLAND"}, NOTHING + 999, "action 999"),
        ("sequential", {"power": "ENGLAND"}, -1, "A LON: action -1"),
        ("deepdip", {"power": "ENGLAND"}, NOTHING + 50, "S1901M"),
        ("many", {}, np.zeros((2, 19), int), "of game 0"),
        ("deepdip", {"draw_votes": True}, np.array([*NOTHING, 2]), "the vote: 2"),
        ("all powers", {}, {"ENGLAND": NOTHING}, "RUSSIA"),
        ("all powers", {}, both(NOTHING, NOTHING), "ENGLAND, A LON: action 0 "),
        ("all powers", {"draw_votes": True}, both(*[np.array([*NOTHING, 2])] * 2), "ENGLAND"),
        ("press", {}, both(OTHER, NOTHING), "RUSSIA"),
        ("press", {}, both(OTHER, {"orders": NOTHING}), "RUSSIA"),
        ("press", {}, both(OTHER, OTHER | {"wish": np.array([0, 2])}), "RUSSIA"),
        ("press", {"draw_votes": True}, both(OTHER, OTHER), "ENGLAND"),
        ("negotiation", {}, [0, 0, 0, 0], "action"),
        ("negotiation", {}, np.array([0, 0, 9, 0, 0]), "9"),
    ],
)
def test_actions_that_are_refused(kind, settings, action, name):
    """A step that fails leaves the game where it was; before `reset` there is none."""
    strict = {} if kind == "negotiation" else {"strict": True}
    env = make(kind, **strict, **settings)
    with pytest.raises(NeedsReset, match="reset"):
        env.step(action)
    env.reset(seed=1)
    with pytest.raises(UserError) as error:
        env.step(action)
    assert name in str(error.value) and "\n" not in str(error.value)
    games = env._games if kind in (*ALL_POWERS, "negotiation") else env._agents.games
    assert (games.state.turn == 0).all() and (games.state.last_order == -1).all()


def test_a_game_that_is_over_needs_a_reset():
    env = make("provinces")
    for _ in play(env, 1):
        pass
    with pytest.raises(NeedsReset):
        env.step(NOTHING)


def test_illegal_orders_hold_and_are_counted():
    for form in ("provinces", "deepdip"):
        env = make(form, power="ENGLAND", opponents="hold")
        env.reset(seed=1)
        *_, info = env.step(np.full(19, 10**12))
        assert info["illegal_orders"] == (19 if form == "provinces" else 1)
        assert env.game.units == {"ENGLAND": ["A LON"], "RUSSIA": ["A MOS"]}
    env = make("sequential", power="ENGLAND", opponents="hold")
    env.reset(seed=1)
    for number in (-1, 364, 10**6):
        assert env.step(number)[-1]["illegal_orders"] == 1
    assert env.game.units["ENGLAND"] == ["A LON"]
    powers = parallel_env("small")
    powers.reset(seed=1)
    *_, infos = powers.step(both(NOTHING, NOTHING))
    assert infos["RUSSIA"]["illegal_orders"] == 1 and powers.game.units["RUSSIA"] == ["A MOS"]
    votes = make("provinces", draw_votes=True, power="ENGLAND")
    votes.reset(seed=1)
    assert votes.step(np.array([*NOTHING, 2]))[4]["illegal_orders"] == 2


def test_without_pettingzoo(monkeypatch):
    monkeypatch.delitem(sys.modules, "diplomacy_engine.environments.pettingzoo_env")
    monkeypatch.delattr(environments, "pettingzoo_env")
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(UserError, match="pip install pettingzoo"):
        environments.parallel_env("small")
