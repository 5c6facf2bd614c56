"""That the environments play the game they say they play: known answers."""

import itertools
import re
import shutil
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode
from support.tables import read_table

from diplomacy_engine import Game, UserError, VectorGame, make_bot, make_reward, reward_input
from diplomacy_engine.constants import NONE, phase_kind
from diplomacy_engine.environments.gymnasium_env import DiplomacyEnv
from diplomacy_engine.environments.pettingzoo_env import parallel_env
from diplomacy_engine.players.policy.files import policy_file

ROOT = Path(__file__).parents[2]


def any_action(env, info: dict):
    return env.action_space.sample(info.get("action_mask"))


def play(env, seed: int) -> list[tuple]:
    env.action_space.seed(seed)
    observation, info = env.reset(seed=seed)
    steps = [(observation, 0.0, False, False, info)]
    while not (steps[-1][2] or steps[-1][3]):
        steps.append(env.step(any_action(env, steps[-1][4])))
    return steps


def order_texts(env, province: str) -> list[str]:
    """Return the orders of a province in the vocabulary; entry k of an action is the (k-1)-th."""
    games = env.unwrapped._agents.games
    v = games.map.provinces.index(province)
    first, last = games.table.province_first[v : v + 2]
    return games.vocabulary.texts[first:last]


SETTINGS = read_table(__file__, "a_vector_plays_as_single_environments_do")


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings["id"])
def test_a_vector_plays_as_single_environments_do(settings):
    count, seed = 4, 5
    envs = gymnasium.make_vec(
        num_envs=count, vectorization_mode="vector_entry_point", threads=2, **settings
    )
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    singles = [gymnasium.make(**settings) for _ in range(count)]
    for i, env in enumerate(singles):
        env.action_space.seed(i)
    seen, infos = envs.reset(seed=seed)
    now = [env.reset(seed=seed + i) for i, env in enumerate(singles)]
    ended = 0

    def row(value, i):
        return {name: part[i] for name, part in value.items()} if type(value) is dict else value[i]

    def info_of(infos, i):
        return {name: np.asarray(value[i]) for name, value in infos.items() if name[0] != "_"}

    for _ in range(120):
        mine = {k: v for k, v in infos.items() if not k.startswith(("_", "final_"))}
        for i in range(count):
            assert data_equivalence(row(seen, i), now[i][0], exact=True)
            wanted = {k: np.asarray(v) for k, v in now[i][1].items()}
            assert data_equivalence(info_of(mine, i), wanted)
        actions = [any_action(env, info) for env, (_, info) in zip(singles, now)]
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
        if ended > 7:
            break
    assert ended > 3


@pytest.mark.parametrize("name", ["small", "three", "standard"])
def test_masks_are_the_legal_orders(name):
    years = 3 if name == "standard" else 12
    env, kinds = DiplomacyEnv(name, start="random", max_years=years, strict=True), set()
    env.action_space.seed(1)
    provinces, homes = env.game.map.provinces, env.game.map.board.home_power
    for seed in [2] if name == "standard" else range(4):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            game, parts = env.game, np.split(info["action_mask"], np.cumsum(env.action_space.nvec))
            power, kind = game.powers[info["power"]], game.phase[-1]
            kinds.add(kind)
            owed = game.adjustments.get(power, 0) if kind == "A" else 0
            mine = game.dislodged.get(power, {}) if kind == "R" else game.units[power]
            units = {unit.split()[1][:3]: unit for unit in mine}
            for v, (province, part) in enumerate(zip(provinces, parts)):
                legal = {order_texts(env, province)[k - 1] for k in np.flatnonzero(part) if k}
                expected = set()
                if owed > 0 and homes[v] == info["power"]:
                    expected = set(game.legal_orders(province)) - {"WAIVE"}
                elif owed < 0 and province in units:
                    expected = {f"{units[province]} D"}
                elif kind != "A" and province in units:
                    expected = set(game.legal_orders(units[province]))
                assert legal == expected, (game.phase, province)
                assert part[0] == (kind == "A" or province not in units)
            *_, terminated, truncated, info = env.step(any_action(env, info))
            assert info["illegal_orders"] == 0
            over = terminated or truncated
    assert kinds >= {"M", "A"}


def test_the_sequential_form_asks_for_each_unit_once():
    env = DiplomacyEnv("three", "sequential", strict=True, opponents="random")
    texts, provinces = env._agents.games.vocabulary.texts, env.game.map.provinces
    phases = set()
    env.action_space.seed(1)
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
                action = any_action(env, info)
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


def test_ends():
    ends = set()
    settings = {"reward": "deepdip", "max_years": 8, "opponents": ["random", "dumbbot"]}
    paid = DiplomacyEnv("three", **settings)
    cut = DiplomacyEnv("three", year_limit="truncate", **settings)
    victory = paid.game.map.board.victory_centers
    for seed in range(20):
        steps, other = play(paid, seed), play(cut, seed)
        _, reward, terminated, truncated, info = steps[-1]
        assert terminated != truncated and not any(step[1] for step in steps[:-1])
        centers, game = info["centers"], paid.game
        if truncated:
            assert (reward, info["years"], info["solo"]) == (centers, 8, False)
            most = max(map(len, game.centers.values()))
            alone = sum(len(own) == most for own in game.centers.values()) == 1
            assert info["win"] == (centers == most and alone)
            assert other[-1][1] == 0 and other[-1][3]
            ends.add("limit")
        elif info["solo"]:
            assert reward == other[-1][1] == centers + victory and info["win"]
        else:
            assert reward in (-victory, centers - victory) and not info["win"]
            ends.add("eliminated" if reward == -victory else "lost")
    assert ends == {"limit", "eliminated", "lost"}


def test_one_s_own_reward_is_paid_at_every_step(tmp_path, monkeypatch):
    (tmp_path / "my_reward_of_steps.py").write_text(
        "import numpy as np\ndef ones(game):\n    return np.ones(game.alive.shape)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    env = DiplomacyEnv("small", reward="my_reward_of_steps:ones")
    total = sum(step[1] for step in play(env, 4))
    assert total == env._agents.games.state.turn[0] > 0


class Watcher:
    name = "watcher"

    def __init__(self):
        self.asked = set()

    def act(self, games, decisions):
        self.asked |= set(decisions.power.tolist())
        return make_bot("hold").act(games, decisions)


def test_opponents_never_play_the_agent_and_keep_their_seats():
    players = [Watcher(), Watcher()]
    env = DiplomacyEnv("three", opponents=players, max_years=3)
    divisions = set()
    for seed in range(12):
        for player in players:
            player.asked.clear()
        me = play(env, seed)[0][4]["power"]
        one, other = (frozenset(player.asked) for player in players)
        assert me not in one | other and not one & other and len(one | other) == 2
        divisions.add((me, one))
    assert {me for me, _ in divisions} == {0, 1, 2} and len(divisions) > 3
    fixed = DiplomacyEnv("three", power="RUSSIA")
    assert {fixed.reset(seed=seed)[1]["power"] for seed in range(8)} == {2}


def test_random_starts():
    env = DiplomacyEnv("small", start="random", warm_up_phases=12)
    turns = []
    for seed in range(30):
        _, info = env.reset(seed=seed)
        turns.append(int(env._agents.games.state.turn[0]))
        assert env.game.units[env.game.powers[info["power"]]] or turns[-1]
        assert env._agents.reward[0] == 0 and info["action_mask"].any()
    assert min(turns) == 0 and max(turns) >= 10 and len(set(turns)) > 5
    powers = parallel_env(map="small", start="random", warm_up_phases=15)
    assert len({powers.reset(seed=seed) and powers.game.phase for seed in range(15)}) > 4


def test_a_checkpoint_is_an_opponent(tmp_path):
    script = shutil.copy(ROOT / "ppo_selfplay_diplomacy.py", tmp_path / "mine.py")
    checkpoint = policy_file("small-pure-1")
    with_script = DiplomacyEnv("small", opponents=checkpoint, script=script)
    named = DiplomacyEnv("small", opponents="small-pure-1")
    assert data_equivalence(play(with_script, 2), play(named, 2), exact=True)
    with pytest.raises(ValueError, match="'small', not on 'three'"):
        DiplomacyEnv("three", opponents=str(checkpoint), script=script)


def test_deepdip_orders():
    env = DiplomacyEnv("small", "deepdip", opponents="hold")
    games, rng = env._agents.games, np.random.default_rng(1)
    provinces, texts = games.map.provinces, games.vocabulary.texts
    count, kinds = len(provinces), set()
    for seed in range(6):
        env.reset(seed=seed)
        with pytest.raises(UserError, match="no masks"):
            env.action_masks()
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
    env = DiplomacyEnv("three", "deepdip", opponents="random")
    for seed in range(3):
        seen = play(env, seed)[-1][0]
        game, me = env.game, int(env._agents.agent[0])
        order = [game.powers[(me + i) % 3] for i in range(3)]
        centers = {game.map.provinces[v] for v in game.map.board.center_province}
        for v, province in enumerate(game.map.provinces):
            owner = [1 + i for i, p in enumerate(order) if province in game.centers[p]]
            unit = [1 + i for i, p in enumerate(order) if f"A {province}" in game.units[p]]
            triple = [province in centers, sum(owner), sum(unit)]
            assert seen[3 * v : 3 * v + 3].tolist() == triple


def sample(game, infos) -> dict:
    return {
        name: game.action_space(name).sample(infos[name]["action_mask"]) for name in game.agents
    }


def test_all_powers_play_the_game():
    game = parallel_env(map="three", reward="deepdip", strict=True, max_years=12)
    games = VectorGame("three", 1, max_years=12, auto_reset=False)
    eliminated = limits = 0
    for seed in range(8, 11):  # somebody is eliminated in the last one
        for name, space in game.action_spaces.items():
            space.seed(seed + len(name))
        _, infos = game.reset(seed=seed)
        games.reset()
        while game.agents:
            agents, actions, orders = game.agents, sample(game, infos), games.new_orders()
            for v, k in itertools.chain.from_iterable(map(enumerate, actions.values())):
                if k:
                    orders[0, v] = games.table.province_first[v] + k - 1
            _, rewards, terminated, truncated, infos = game.step(actions)
            result = games.step(orders)
            paid = make_reward("deepdip")(reward_input(result, games.board.victory_centers))[0]
            assert game.game.units == Game.from_row(games, 0).units
            for name in agents:
                power = game.possible_agents.index(name)
                assert rewards[name] == paid[power] and infos[name]["illegal_orders"] == 0
                gone = not result.alive[0, power]
                assert terminated[name] == (gone or result.ended[0] == 1)
                assert truncated[name] == (not gone and result.ended[0] == 2)
                eliminated, limits = eliminated + gone, limits + truncated[name]
    assert eliminated and limits


def test_offers_then_answers_then_orders():
    """A movement phase has three steps; a deal's two moves are all that both units may order."""
    game = parallel_env(map="small", press="offers", strict=True, max_years=4)
    place = game.game.map.province_index
    for number, space in enumerate(game.action_spaces.values()):
        space.seed(number)
    dealt = silent = 0
    for seed in range(3):
        seen, infos = game.reset(seed=seed)
        while game.agents:
            steps = ("offering", "answering")
            movement = phase_kind(game.game.phase) == "movement"
            assert [{infos[n][s] for n in game.agents} for s in steps] == [{movement}, {False}]
            deals = []
            if movement:
                before = game.game.to_state()
                offers = sample(game, infos)
                offers["RUSSIA"]["offer"] = offers["RUSSIA"]["offer"].tolist()  # in the space, too
                seen, rewards, *_, infos = game.step(offers)
                assert all(infos[name]["answering"] for name in game.agents)
                answers = sample(game, infos)
                for p, name in enumerate(game.possible_agents):
                    other, mine = 1 - p, [*offers[name]["offer"]]
                    shown = seen[game.possible_agents[other]]["offers"][p]
                    says = answers[game.possible_agents[other]]["answer"]
                    open_to = infos[name]["action_mask"]["answer"][1::2]
                    assert open_to.tolist() == seen[name]["offers"][:, 0].tolist()
                    if mine[2] == p or not shown[0]:
                        silent += 1
                        assert not shown.any() and not says[p]
                    else:
                        assert shown.tolist() == [1, *mine[:2], *mine[3:]]
                        deals += [mine] if says[p] else []
                seen, rewards, *_, infos = game.step(answers)
                assert game.game.to_state() == before and set(rewards.values()) == {0.0}
            for deal in deals[:1]:  # a second one may contradict the first
                for origin, goal in (deal[:2], deal[3:]):
                    name = next(n for n in game.agents for u in game.game.units[n]
                                if place[u.split()[1][:3]] == origin)  # fmt: skip
                    masks = game.action_space(name)["orders"].split(
                        infos[name]["action_mask"]["orders"]
                    )
                    if len(deals) == 1 and goal != origin:  # a unit that stays may support
                        assert masks[origin].sum() == 1 and seen[name]["bound"][origin]
                        dealt += 1
            seen, _, _, _, infos = game.step(sample(game, infos))
    assert dealt > 5 and silent > 5


def test_masks_of_offers_leave_only_what_some_valid_offer_has():
    for name, valid_at_random in (("small", 0.03), ("standard", 0.003)):
        env = gymnasium.make(f"Diplomacy-{name}-negotiation-v0").unwrapped
        env.action_space.seed(1)
        valid = 0
        _, info = env.reset(seed=1)
        for _ in range(100):
            assert np.array_equal(info["action_mask"], env.action_masks())
            action = env.action_space.sample(info["action_mask"])
            masks = env.action_space.split(info["action_mask"])
            _, _, terminated, truncated, info = env.step(action)
            valid += info["valid"]
            assert all(mask[number] for mask, number in zip(masks, action))
            if terminated or truncated:
                _, info = env.reset()
        assert valid / 100 > valid_at_random


def test_wishes_then_orders():
    """A movement phase has two steps; peace takes orders from the masks of the second."""
    game = parallel_env(map="three", press="mutual", strict=True, max_years=8)
    peace = bound = 0
    for number, space in enumerate(game.action_spaces.values()):
        space.seed(number)
    for seed in range(2):
        seen, infos = game.reset(seed=seed)
        while game.agents:
            phase, wishing = game.game.phase, phase_kind(game.game.phase) == "movement"
            before = game.game.to_state()
            assert {infos[n]["wishing"] for n in game.agents} == {wishing}
            if wishing:
                actions = sample(game, infos)
                pairs = {
                    (p, q)
                    for p, name in enumerate(game.possible_agents)
                    if name in game.agents
                    for q in np.flatnonzero(actions[name]["wish"])
                }
                assert all(p != q for p, q in pairs)
                seen, rewards, terminated, truncated, infos = game.step(actions)
                assert game.game.to_state() == before and set(rewards.values()) == {0.0}
                assert not any((*terminated.values(), *truncated.values()))
                for name in game.agents:
                    p = game.possible_agents.index(name)
                    wanted = [(p, q) in pairs and (q, p) in pairs for q in range(3)]
                    assert seen[name]["peace"].tolist() == wanted
                    assert seen[name]["closed"].any(1).tolist() <= wanted
                    masks = infos[name]["action_mask"]
                    assert not masks["wish"][1::2].any()
                    allowed = game.action_space(name)["orders"].split(masks["orders"])
                    peace += sum(wanted)
                    for text in game.game.units[name]:  # a bound one has fewer orders than else
                        v = game.game.map.province_index[text.split()[1][:3]]
                        fewer = allowed[v].sum() < len(game.game.legal_orders(text))
                        assert fewer <= bool(seen[name]["bound"][v])
                        bound += fewer
                assert game.game.phase == phase
            seen, rewards, terminated, truncated, infos = game.step(sample(game, infos))
    assert peace > 20 and bound
