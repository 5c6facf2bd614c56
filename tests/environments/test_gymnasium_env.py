"""The Gymnasium environments: their interface, and that they play the game they say they play."""

import itertools
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode

from diplomacy_engine import VectorGame, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.environments import IDS
from diplomacy_engine.environments.agent_games import seeds_of
from diplomacy_engine.environments.gymnasium_env import NeedsReset
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.policy.files import policy_file

ROOT = Path(__file__).parents[2]


def legal_action(env, mask: np.ndarray, rng: np.random.Generator):
    """Return an action drawn from a mask."""
    if isinstance(env.action_space, gymnasium.spaces.Discrete):
        return int(rng.choice(np.flatnonzero(mask)))
    parts = np.split(mask, np.cumsum(env.action_space.nvec)[:-1])
    return np.array([rng.choice(np.flatnonzero(part)) for part in parts])


def any_action(env, info: dict, rng: np.random.Generator):
    """Return an action, a legal one if there is a mask."""
    if "action_mask" in info:
        return legal_action(env, info["action_mask"], rng)
    return rng.integers(0, env.action_space.nvec)


def play(env, rng: np.random.Generator, seed: int | None = None) -> list[tuple]:
    """Return `(observation, reward, terminated, truncated, info)` of one game, the reset first."""
    observation, info = env.reset(seed=seed)
    steps = [(observation, 0.0, False, False, info)]
    while not (steps[-1][2] or steps[-1][3]):
        steps.append(env.step(any_action(env, steps[-1][4], rng)))
    return steps


def order_texts(env, province: str) -> list[str]:
    """Return the orders of a province in the vocabulary; entry k of an action is the (k-1)-th."""
    games = env.unwrapped._agents.games
    v = games.map.provinces.index(province)
    first, last = games.table.province_first[v : v + 2]
    return games.vocabulary.texts[first:last]


@pytest.mark.parametrize("name", IDS)
def test_check_env(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name).unwrapped)


def test_importing_the_engine_registers_the_ids():
    code = (
        "import gymnasium; env = gymnasium.make('diplomacy_engine:Diplomacy-small-v0');"
        "import sys; print(env.spec.id, 'torch' in sys.modules, 'pettingzoo' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout == "Diplomacy-small-v0 False False\n", found.stderr


SETTINGS = (
    {"id": "Diplomacy-small-v0"},
    {"id": "Diplomacy-small-v0", "reward": "center_delta", "max_years": 4, "opponents": "chaos"},
    {
        "id": "Diplomacy-three-v0",
        "opponents": ["random", "dumbbot", "hold"],
        "start": "random",
        "warm_up_phases": 6,
        "reward": "lead_delta",
        "max_years": 6,
    },
    {"id": "Diplomacy-three-sequential-v0", "start": "random", "opponents": ["random", "dumbbot"]},
    {"id": "Diplomacy-small-deepdip-v0", "opponents": ["random", "dumbbot-paquette"]},
    {"id": "Diplomacy-standard-v0", "max_years": 2, "opponents": "dumbbot"},
)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings["id"])
def test_a_vector_plays_as_single_environments_do(settings):
    """Step for step: observations, rewards, ends, masks and infos, across the ends of games."""
    count, seed, steps = 4, 5, 120
    if "standard" in settings["id"]:
        steps = 15
    envs = gymnasium.make_vec(
        num_envs=count, vectorization_mode="vector_entry_point", threads=2, **settings
    )
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    singles = [gymnasium.make(**settings) for _ in range(count)]
    seen, infos = envs.reset(seed=seed)
    now = [env.reset(seed=seed + i) for i, env in enumerate(singles)]
    rng = np.random.default_rng(1)
    ended = 0

    def row(value, i):
        return {name: part[i] for name, part in value.items()} if type(value) is dict else value[i]

    def info_of(infos, i):
        return {name: value[i] for name, value in infos.items() if name[0] != "_"}

    for _ in range(steps):
        for i in range(count):
            assert data_equivalence(row(seen, i), now[i][0], exact=True)
            mine = {k: v for k, v in infos.items() if not k.startswith(("_", "final_"))}
            assert data_equivalence(
                {k: np.asarray(v) for k, v in info_of(mine, i).items()},
                {k: np.asarray(v) for k, v in now[i][1].items()},
            )
        actions = [any_action(env, info, rng) for env, (_, info) in zip(singles, now)]
        seen, reward, terminated, truncated, infos = envs.step(np.array(actions))
        for i, env in enumerate(singles):
            after = env.step(actions[i])
            assert (reward[i], terminated[i], truncated[i]) == after[1:4]
            now[i] = (after[0], after[4])
            over = after[2] or after[3]
            assert over == ("_final_obs" in infos and infos["_final_obs"][i])
            if over:
                ended += 1
                assert data_equivalence(infos["final_obs"][i], after[0], exact=True)
                final = info_of(infos["final_info"], i)
                assert final.keys() == after[4].keys() and infos["_final_info"][i]
                assert all(np.array_equal(final[name], after[4][name]) for name in final)
                now[i] = env.reset()
    assert ended > 3


def test_threads_change_nothing():
    def trail(threads):
        envs = gymnasium.make_vec("Diplomacy-three-v0", 40, threads=threads, start="random")
        _, infos = envs.reset(seed=3)
        rng, found = np.random.default_rng(2), []
        cuts = np.cumsum(envs.single_action_space.nvec)[:-1]
        for _ in range(20):
            parts = np.split(infos["action_mask"], cuts, axis=1)
            actions = np.stack([(rng.random(p.shape) * p).argmax(1) for p in parts], 1)
            seen, reward, *_, infos = envs.step(actions)
            found += [seen["board"].copy(), reward]
        return found

    one, three = trail(1), trail(3)
    assert all(np.array_equal(a, b) for a, b in zip(one, three))


@pytest.mark.parametrize("name", ["small", "three", "standard"])
def test_masks_are_the_legal_orders(name):
    years = 3 if name == "standard" else 12
    env = gymnasium.make(f"Diplomacy-{name}-v0", start="random", max_years=years, strict=True)
    env = env.unwrapped
    rng, kinds = np.random.default_rng(1), set()
    provinces = env._agents.games.map.provinces
    for seed in range(1, 3) if name == "standard" else range(4):
        _, info = env.reset(seed=seed)
        while True:
            game, parts = env.game, np.split(info["action_mask"], np.cumsum(env.action_space.nvec))
            power = game.powers[info["power"]]
            kinds.add(game.phase[-1])
            mine = game.units[power] if game.phase[-1] == "M" else game.dislodged.get(power, {})
            builds = game.adjustments.get(power, 0) if game.phase[-1] == "A" else 0
            places = {unit.split()[1][:3] for unit in mine}
            for province, part in zip(provinces, parts):
                texts = order_texts(env, province)
                legal = {texts[k - 1] for k in np.flatnonzero(part) if k}
                if game.phase[-1] == "A":
                    units = {unit.split()[1][:3]: unit for unit in game.units[power]}
                    expected = set()
                    if builds < 0 and province in units:
                        expected = {f"{units[province]} D"}
                    elif (
                        builds > 0
                        and game._games.map.board.home_power[provinces.index(province)]
                        == info["power"]
                    ):
                        expected = set(game.legal_orders(province)) - {"WAIVE"}
                    assert part[0] == 1
                else:
                    (unit,) = [u for u in mine if u.split()[1][:3] == province] or [None]
                    expected = set(game.legal_orders(unit)) if unit else set()
                    assert part[0] == (province not in places)
                assert legal == expected, (game.phase, province)
            *_, terminated, truncated, info = env.step(legal_action(env, info["action_mask"], rng))
            assert info["illegal_orders"] == 0
            if terminated or truncated:
                break
    assert kinds >= {"M", "A"}


def test_an_entry_is_an_order():
    env = gymnasium.make("Diplomacy-small-v0", power="ENGLAND", opponents="hold")
    env.reset(seed=1)
    provinces = env.unwrapped._agents.games.map.provinces
    action = np.zeros(len(provinces), int)
    action[provinces.index("LON")] = 1 + order_texts(env, "LON").index("A LON - PAR")
    env.step(action)
    assert env.unwrapped.game.units == {"ENGLAND": ["A PAR"], "RUSSIA": ["A MOS"]}


def test_too_many_builds_and_too_few_removals():
    """What a mask cannot say: the first builds in province order count; civil disorder removes."""
    env = gymnasium.make("Diplomacy-standard-v0", power="RUSSIA", opponents="hold").unwrapped
    state, games = env._agents.games.state, env._agents.games
    provinces, rng = games.map.provinces, np.random.default_rng(1)
    surplus = missing = 0
    for seed in range(40):
        _, info = env.reset(seed=seed)
        for _ in range(12):
            if state.phase[0] == 4:
                before, game = set(env.game.units["RUSSIA"]), env.game
                owed = game.adjustments["RUSSIA"]
                parts = np.split(info["action_mask"], np.cumsum(env.action_space.nvec)[:-1])
                action = np.array([part.nonzero()[0][-1] for part in parts])  # all of them
                chosen = [order_texts(env, p)[k - 1] for p, k in zip(provinces, action) if k]
                if owed < 0:
                    action[:] = 0
                *_, info = env.step(action)
                after = set(env.game.units["RUSSIA"])
                assert len(after) - len(before) == owed and info["illegal_orders"] == 0
                if owed > 0:
                    surplus += len(chosen) > owed
                    assert {f"{unit} B" for unit in after - before} == set(chosen[:owed])
                missing += owed < 0
                break
            *_, over, cut, info = env.step(legal_action(env, info["action_mask"], rng))
            if over or cut:
                break
    assert surplus > 3


def test_the_sequential_form_asks_for_each_unit_once():
    env = gymnasium.make("Diplomacy-three-sequential-v0", strict=True, opponents="random").unwrapped
    texts, provinces = env._agents.games.vocabulary.texts, env._agents.games.map.provinces
    rng, phases = np.random.default_rng(1), set()
    for seed in range(4):
        seen, info = env.reset(seed=seed)
        over = False
        while not over:
            game, power = env.game, env.game.powers[info["power"]]
            phases.add(game.phase[-1])
            asked, given, rewards = [], [], []
            slots = {
                "M": len(game.units[power]),
                "R": len(game.dislodged.get(power, {})),
                "A": abs(game.adjustments.get(power, 0)),
            }[game.phase[-1]]
            for _ in range(slots):
                assert not over and env.game.phase == game.phase
                assert [texts[n] for n in seen["given"] if n != NONE] == sorted(
                    given, key=lambda text: text.split()[1]
                )
                place = seen["province"]
                action = legal_action(env, info["action_mask"], rng)
                legal = {texts[n] for n in np.flatnonzero(info["action_mask"])}
                if game.phase[-1] == "A":
                    assert place == len(provinces) and not legal & set(given)
                else:
                    assert {text.split()[1] for text in legal} == {provinces[place]}
                    asked.append(provinces[place])
                if texts[action] != "WAIVE":
                    given.append(texts[action])
                seen, reward, terminated, truncated, info = env.step(action)
                over = terminated or truncated
                rewards.append(reward)
            assert asked == sorted(set(asked)) and not any(rewards[:-1])
            assert over or (seen["given"] == NONE).all()
    assert phases >= {"M", "A"}


@pytest.mark.parametrize("name", ["small", "three"])
def test_rewards_between_two_decisions_add_up(name):
    """`center_delta` adds up to the centers won, though many of its steps are not the agent's."""
    env = gymnasium.make(
        f"Diplomacy-{name}-v0", reward="center_delta", opponents=["random", "dumbbot"]
    ).unwrapped
    board, rng = env._agents.games.board, np.random.default_rng(1)
    for seed in range(12):
        steps = play(env, rng, seed)
        start = (board.home_power[board.center_province] == steps[0][4]["power"]).sum()
        change = (steps[-1][4]["centers"] - start) / board.victory_centers
        assert sum(step[1] for step in steps) == pytest.approx(change)


def test_ends():
    """Eliminated and solos are terminated, the year limit is truncated; each is paid as named."""
    ends = set()
    settings = {"reward": "deepdip", "max_years": 8, "opponents": ["random", "dumbbot"]}
    paid = gymnasium.make("Diplomacy-three-v0", **settings)
    cut = gymnasium.make("Diplomacy-three-v0", year_limit="truncate", **settings)
    victory = paid.unwrapped._agents.games.board.victory_centers
    for seed in range(40):
        steps = play(paid, np.random.default_rng(seed), seed)
        other = play(cut, np.random.default_rng(seed), seed)
        _, reward, terminated, truncated, info = steps[-1]
        assert terminated != truncated and not any(step[1] for step in steps[:-1])
        centers, game = info["centers"], paid.unwrapped.game
        if truncated:
            assert (reward, info["years"], info["solo"]) == (centers, 8, False)
            most = max(map(len, game.centers.values()))
            alone = sum(len(own) == most for own in game.centers.values()) == 1
            assert info["win"] == (centers == most and alone)
            assert other[-1][1] == 0 and other[-1][3]
            ends.add("limit")
        elif info["solo"]:
            assert reward == centers + victory and info["win"]
            assert other[-1][1] == reward
            ends.add("solo")
        else:
            assert reward in (-victory, centers - victory) and not info["win"]
            ends.add("eliminated" if reward == -victory else "lost")
    assert {"limit", "eliminated", "lost"} <= ends


def test_one_s_own_reward_is_paid_at_every_step(tmp_path, monkeypatch):
    (tmp_path / "my_reward_of_steps.py").write_text(
        "import numpy as np\ndef ones(game):\n    return np.ones(game.alive.shape)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    env = gymnasium.make("Diplomacy-small-v0", reward="my_reward_of_steps:ones").unwrapped
    env.reset(seed=1)
    rng, total = np.random.default_rng(1), 0
    for step in play(env, rng, 4):
        total += step[1]
    assert total == env._agents.games.state.turn[0]


class Watcher:
    """A player that holds and keeps which games and powers it was asked for."""

    name = "watcher"

    def __init__(self):
        self.asked = []

    def act(self, games, decisions):
        """Note the decisions."""
        self.asked += zip(decisions.game.tolist(), decisions.power.tolist())
        return make_bot("hold").act(games, decisions)


def test_opponents_never_play_the_agent_and_keep_their_seats():
    players = [Watcher(), Watcher()]
    env = gymnasium.make("Diplomacy-three-v0", opponents=players, max_years=3).unwrapped
    rng, divisions = np.random.default_rng(1), set()
    for seed in range(12):
        for player in players:
            player.asked.clear()
        me = play(env, rng, seed)[0][4]["power"]
        seats = [frozenset(power for _, power in player.asked) for player in players]
        assert me not in seats[0] | seats[1] and not seats[0] & seats[1]
        assert len(seats[0] | seats[1]) == 2
        divisions.add((me, *seats))
    assert {me for me, *_ in divisions} == {0, 1, 2}
    assert len({seats[0] for _, *seats in divisions}) > 3


def test_power_is_fixed_or_drawn():
    fixed = gymnasium.make("Diplomacy-small-v0", power="RUSSIA")
    assert {fixed.reset(seed=s)[1]["power"] for s in range(8)} == {1}
    drawn = gymnasium.make("Diplomacy-small-v0")
    drawn.reset(seed=1)
    assert {drawn.reset()[1]["power"] for _ in range(20)} == {0, 1}


def test_random_starts():
    env = gymnasium.make("Diplomacy-small-v0", start="random", warm_up_phases=12).unwrapped
    turns = []
    for seed in range(30):
        seen, info = env.reset(seed=seed)
        turns.append(int(env._agents.games.state.turn[0]))
        again, _ = env.reset(seed=seed)
        assert data_equivalence(seen, again, exact=True)
        assert env.game.units[env.game.powers[info["power"]]] or turns[-1]
        assert env._agents.reward[0] == 0 and info["action_mask"].any()
    assert min(turns) == 0 and max(turns) >= 10 and len(set(turns)) > 5
    opening = gymnasium.make("Diplomacy-small-v0").unwrapped
    opening.reset(seed=3)
    assert opening._agents.games.state.turn[0] == 0


def test_a_checkpoint_is_an_opponent(tmp_path):
    """Also played by a script that is named: here a copy of the one that comes along."""
    script = shutil.copy(ROOT / "ppo_selfplay_diplomacy.py", tmp_path / "mine.py")
    checkpoint, rng = policy_file("small-pure-1"), np.random.default_rng
    with_script = gymnasium.make("Diplomacy-small-v0", opponents=checkpoint, script=script)
    named = gymnasium.make("Diplomacy-small-v0", opponents="small-pure-1")
    assert data_equivalence(play(with_script, rng(1), 2), play(named, rng(1), 2), exact=True)
    with pytest.raises(ValueError, match="was trained on map 'small', not on 'three'"):
        gymnasium.make("Diplomacy-three-v0", opponents=str(checkpoint), script=script)


def test_one_s_own_map(tmp_path):
    page = (ROOT / "docs" / "own_map.md").read_text()
    (text,) = re.findall(r"^```toml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    path = tmp_path / "strait.toml"
    path.write_text(text)
    env = gymnasium.make("Diplomacy-v0", map=str(path), form="sequential")
    assert play(env, np.random.default_rng(1), 1)[-1][4]["years"] > 0
    assert env.observation_space["board"].shape[0] == 4


# Bad input.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"map": "smal"}, "smal"),
        ({"map": "missing.toml"}, "missing.toml"),
        ({"power": "FRANCE"}, "'FRANCE' is not a power of map small .ENGLAND, RUSSIA.$"),
        ({"power": 1}, "1 is not a power of map small"),
        ({"reward": "sum_of_square"}, "did you mean 'sum_of_squares'"),
        ({"reward": None}, "reward: "),
        ({"opponents": "dumbot"}, "there is no player 'dumbot'.*did you mean 'dumbbot'"),
        ({"opponents": []}, "the list of opponents is empty"),
        ({"opponents": ["random", 7]}, "7 is not an opponent"),
        ({"opponents": None}, "None is not an opponent"),
        ({"max_years": -1}, "max_years: "),
        ({"max_years": 2.5}, "max_years: "),
        ({"year_limit": "draws"}, "year_limit: .*'draws'.*draw, truncate"),
        ({"start": "opening2"}, "start: .*did you mean 'opening'"),
        ({"warm_up_phases": None}, "warm_up_phases: "),
        ({"warm_up_phases": 10**9}, "warm_up_phases: "),
        ({"max_years": 32768}, "max_years: .*1000"),
        ({"form": "province"}, "did you mean 'provinces'"),
        ({"warmup_phases": 3}, "warmup_phases: .*'warm_up_phases'"),
    ],
)
@pytest.mark.parametrize("make", [gymnasium.make, gymnasium.make_vec])
def test_bad_settings(make, settings, message):
    with pytest.raises(ValueError, match=message) as error:
        make("Diplomacy-v0", **settings)
    assert "\n" not in str(error.value)


def test_bad_actions():
    env = gymnasium.make("Diplomacy-small-v0", strict=True, power="ENGLAND").unwrapped
    with pytest.raises(NeedsReset, match=r"call reset\(\) first"):
        env.step(np.zeros(19, int))
    with pytest.raises(NeedsReset):
        env.action_masks()
    _, info = env.reset(seed=1)
    provinces = env._agents.games.map.provinces
    london, paris = provinces.index("LON"), provinces.index("PAR")
    for action in (np.zeros(18, int), np.zeros((1, 19), int), 3, [[0] * 19, [0]], "hold", None):
        with pytest.raises(ValueError, match=r"an action must be integers of shape \(19,\)"):
            env.step(action)
    for dtype in (float, bool, object):
        with pytest.raises(ValueError, match="an action must be integers"):
            env.step(np.zeros(19, dtype))
    wrong = {
        "A LON: action 0 .no order. is not legal in S1901M": (london, 0),
        "PAR: action 1 .'A PAR H'. is not legal in S1901M": (paris, 1),
        "A LON: action 999, not in 0..[0-9]+, is not legal": (london, 999),
        "A LON: action -1, not in 0..": (london, -1),
        "A LON: action [0-9]+ .'A LON R PAR'. is not legal in S1901M": (
            london,
            1 + order_texts(env, "LON").index("A LON R PAR"),
        ),
    }
    good = legal_action(env, info["action_mask"], np.random.default_rng(1))
    before = env._agents.orders.copy()
    for message, (v, value) in wrong.items():
        action = good.copy()
        action[v] = value
        with pytest.raises(ValueError, match=message) as error:
            env.step(action)
        assert "\n" not in str(error.value)
        assert (env._agents.orders == before).all() and env.game.phase == "S1901M"
    *_, info = env.step(good.astype(np.int8))
    over = False
    while not over:
        action = legal_action(env, info["action_mask"], np.random.default_rng(1))
        *_, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    assert not np.concatenate(
        [p[1:] for p in np.split(info["action_mask"], np.cumsum(env.action_space.nvec)[:-1])]
    ).any()
    with pytest.raises(NeedsReset):
        env.step(action)
    env.reset()
    env.step(good if env.game.phase == "S1901M" else action)


def test_lenient_illegal_orders_hold():
    env = gymnasium.make("Diplomacy-small-v0", power="ENGLAND", opponents="hold").unwrapped
    env.reset(seed=1)
    action = np.full(19, 10**12)
    *_, info = env.step(action)
    assert info["illegal_orders"] == 19
    assert env.game.units == {"ENGLAND": ["A LON"], "RUSSIA": ["A MOS"]}
    texts = env._agents.games.vocabulary.texts
    assert texts[env._agents.games.state.last_order[0, action.size - 10]] != "A LON - PAR"
    sequential = gymnasium.make("Diplomacy-small-sequential-v0", opponents="hold", power="ENGLAND")
    sequential.reset(seed=1)
    for number in (-1, 364, 10**6, texts.index("A MOS - UKR")):
        *_, info = sequential.step(number)
        assert info["illegal_orders"] == 1
    assert sequential.unwrapped.game.units["ENGLAND"] == ["A LON"]
    strict = gymnasium.make("Diplomacy-small-sequential-v0", strict=True, power="ENGLAND")
    strict.reset(seed=1)
    for action in (1.0, "A LON H", None, True, [1]):
        with pytest.raises(ValueError, match="an action must be one integer, not"):
            strict.step(action)
    for number, words in ((-1, "not in 0"), (texts.index("A MOS - UKR"), "A MOS - UKR")):
        with pytest.raises(ValueError, match=f"A LON: action {number} .*{words}.* is not legal"):
            strict.step(number)
    assert strict.unwrapped.game.phase == "S1901M"


def test_bad_vector_calls():
    envs = gymnasium.make_vec("Diplomacy-small-v0", num_envs=3, strict=True)
    with pytest.raises(NeedsReset):
        envs.step(np.zeros((3, 19), int))
    with pytest.raises(ValueError, match="there must be 3 seeds, not 2"):
        envs.reset(seed=[1, 2])
    with pytest.raises(ValueError, match="seeds must be integers of 0 or more"):
        envs.reset(seed=["a", 1, 2])
    envs.reset(seed=[1, 2, 3])
    with pytest.raises(ValueError, match=r"integers of shape \(3, 19\)"):
        envs.step(np.zeros((2, 19), int))
    with pytest.raises(ValueError, match="is not legal in S1901M of game 0"):
        envs.step(np.zeros((3, 19), int))
    with pytest.raises(ValueError, match="num_envs must be at least 1"):
        gymnasium.make_vec("Diplomacy-small-v0", num_envs=0)
    with pytest.raises(ValueError, match=r"num_envs must be an integer, not 2\.5"):
        gymnasium.make_vec("Diplomacy-small-v0", num_envs=2.5)
    with pytest.raises(ValueError, match="threads must be an integer, not 'a'"):
        gymnasium.make_vec("Diplomacy-small-v0", num_envs=2, threads="a")


# The thesis' formulation.


def test_deepdip_orders():
    """Moves, supports of what one's own unit does, and holds, on positions reached by play."""
    env = gymnasium.make("Diplomacy-small-deepdip-v0", opponents="hold").unwrapped
    games, rng = env._agents.games, np.random.default_rng(1)
    provinces, texts = games.map.provinces, games.vocabulary.texts
    count, kinds = len(provinces), set()
    for seed in range(6):
        env.reset(seed=seed)
        over = False
        while not over:
            game = env.game
            mine = {unit[2:]: unit for unit in game.units[game.powers[env._agents.agent[0]]]}
            legal = {place: game.legal_orders(unit) for place, unit in mine.items()}
            action = rng.integers(0, 1 + 2 * count, count)
            for place, other in itertools.product(mine, mine):
                near = [text.split()[-1] for text in legal[place] if text.split()[2] == "-"]
                if place == other and rng.random() < 0.6:
                    action[provinces.index(place)] = 1 + provinces.index(rng.choice(near))
                elif place != other and rng.random() < 0.4:
                    action[provinces.index(place)] = 1 + count + provinces.index(other)
                elif rng.random() < 0.1:
                    action[provinces.index(place)] = 0
            expected, invalid = {}, 0  # what is invalid holds, and may be supported in that
            for supports in (False, True):
                for place, unit in mine.items():
                    what, r = divmod(int(action[provinces.index(place)]) - 1, count)
                    if supports != (what == 1):
                        continue
                    order = f"{unit} H"
                    if what == 0:
                        order = f"{unit} - {provinces[r]}"
                    elif what == 1:
                        supported = expected.get(provinces[r], "")
                        moves = supported.split()[2:3] == ["-"]
                        order = f"{unit} S {supported if moves else f'A {provinces[r]}'}"
                    if order in legal[place]:
                        kinds.add(re.sub("[A-Z]{3}", "", order))
                    else:
                        order, invalid = f"{unit} H", invalid + 1
                    expected[place] = order
            *_, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            assert info["illegal_orders"] == invalid
            if games.state.turn[0] == game._games.state.turn[0] + 1:  # no movement phase since
                for place, order in expected.items():
                    number = games.state.last_order[0, provinces.index(place)]
                    assert order == (texts[number] if number != NONE else f"{mine[place]} H")
    assert kinds == {"A  H", "A  - ", "A  S A ", "A  S A  - "}


def test_deepdip_observation():
    env = gymnasium.make("Diplomacy-three-deepdip-v0", opponents="random").unwrapped
    rng = np.random.default_rng(1)
    for seed in range(3):
        seen = play(env, rng, seed)[-1][0]
        game = env.game
        me = int(env._agents.agent[0])
        order = [game.powers[(me + i) % len(game.powers)] for i in range(len(game.powers))]
        games = env._agents.games
        centers = {games.map.provinces[v] for v in games.board.center_province}
        for v, province in enumerate(games.map.provinces):
            owner = [1 + i for i, p in enumerate(order) if province in game.centers[p]] or [0]
            unit = [
                1 + i
                for i, p in enumerate(order)
                if any(text == f"A {province}" for text in game.units[p])
            ] or [0]
            triple = seen[3 * v : 3 * v + 3].tolist()
            assert triple == [province in centers, owner[0], unit[0]]


# What they are made of.


def test_steps_and_decisions_of_some_rows():
    one, other = (VectorGame("three", 6, seed=4, auto_reset=False) for _ in range(2))
    bot, rows = make_bot("random"), np.array([1, 4])
    for _ in range(5):
        whole = one.step(orders_of(one, bot))
        some = other.decisions(rows)
        assert set(some.game.tolist()) <= {1, 4}
        part = other.step(orders_of(other, bot, some), rows)
        for all_of_it, mine in zip(whole, part):
            assert np.array_equal(all_of_it[rows], mine)
    assert (other.state.turn == [0, 5, 0, 0, 5, 0]).all()
    for mine, theirs in zip(one.state, other.state):
        assert np.array_equal(mine[rows], theirs[rows])


@pytest.mark.parametrize("threads", (1, 2))
def test_arrays_that_are_used_again_hold_what_new_ones_do(threads):
    games = VectorGame("standard", 40, seed=4, threads=threads)
    bot, rng, result = make_bot("random"), np.random.default_rng(1), None
    for _ in range(30):
        rows = rng.random(40) < rng.random()
        kept = games.decisions()
        for some in (None, rows):
            for new, old in zip(games.decisions(some), games.decisions(some, reuse=True)):
                assert np.array_equal(new, old)
        orders, before = orders_of(games, bot, kept), games.snapshot()
        wanted = games.step(orders)
        games.restore(before)
        result = games.step(orders, out=result)
        for new, old in zip(wanted, result):
            assert np.array_equal(new, old)


def test_orders_are_checked():
    games = VectorGame("small", 2)
    decisions = games.decisions()
    numbers = make_bot("random").act(games, decisions)
    for orders in (
        np.zeros((2, 19), np.int64),
        np.zeros((1, 19), np.int32),
        np.zeros((4, 19), np.int32)[::2],
    ):
        for call in (games.step, lambda orders: games.write_orders(orders, decisions, numbers)):
            with pytest.raises(ValueError, match="orders must be"):
                call(orders)


def test_seeds_differ():
    assert len(set(seeds_of(range(100)).tolist())) == 100
