"""Policies over observations as players, and opponents that change between games."""

import gymnasium
import numpy as np
import pytest
from support.environments import legal_text
from support.tables import read_table

from diplomacy_engine import UserError, VectorGame, load_map, load_player, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.environments.agent_games import seeds_of
from diplomacy_engine.environments.forms import FORMS
from diplomacy_engine.environments.gymnasium_env import DiplomacyEnv, DiplomacyVectorEnv
from diplomacy_engine.environments.observation_player import ObservationPlayer
from diplomacy_engine.players.asking import ask_players, orders_of


class Scripted:
    """Draws legal actions (deepdip: any) from a seed, and keeps what it has been shown.

    In winter it builds, or removes, wherever the mask allows it, which is more than it may.
    """

    def __init__(self, env: DiplomacyEnv, seed: int = 1):
        self.space, self.shown, self.rng = env.action_space, [], np.random.default_rng(seed)

    def __call__(self, seen, mask):
        self.shown.append((seen, mask))
        if isinstance(seen, str):
            return legal_text(seen, self.rng)
        if mask is None:
            return self.rng.integers(0, self.space.nvec)
        if isinstance(self.space, gymnasium.spaces.Discrete):
            return self.rng.choice(np.flatnonzero(mask))
        parts = map(np.flatnonzero, np.split(mask, np.cumsum(self.space.nvec)[:-1]))
        winter = seen["scalars"][0] == 4
        return np.array([self.rng.choice(p[1:] if winter and len(p) > 1 else p) for p in parts])


def of_environment(env: DiplomacyEnv, policy: Scripted, seed: int) -> dict:
    seen, info = env.reset(seed=seed)
    over = False
    while not over:
        action = policy(seen, info.get("action_mask"))
        seen, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
    return info


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("draw_votes", [False, True])
def test_a_player_sees_and_does_what_an_environment_shows_and_takes(form, draw_votes):
    if draw_votes and form in ("sequential", "text"):
        with pytest.raises(UserError, match="draw_votes"):
            ObservationPlayer(hold, form, draw_votes=True)
        return
    votes = {"draw_votes": True, "draws_after": 3000} if draw_votes else {}
    for name, power, bot, seed in (
        ("small", 1, "dumbbot", 3),
        ("small", 1, "dumbbot", 4),
        ("standard", 2, "hold", 5),
    ):
        env = DiplomacyEnv(
            name, form, opponents=bot, power=load_map(name).powers[power], max_years=5, **votes
        )
        theirs, ours = Scripted(env), Scripted(env)
        info = of_environment(env, theirs, seed)
        player = ObservationPlayer(ours, form, single=True, draw_votes=draw_votes)
        games = VectorGame(name, 1, max_years=5, auto_reset=False)
        games.seed_games(np.arange(1), seeds_of([seed]))
        games.reset(np.arange(1))
        while (decisions := games.decisions()).count:
            who = (decisions.power != power).astype(int)
            games.step(ask_players(games, decisions, [player, make_bot(bot)], who))
        assert len(ours.shown) == len(theirs.shown) > 5
        for (seen, mask), (wanted, wanted_mask) in zip(ours.shown, theirs.shown):
            if form in ("deepdip", "text"):
                assert np.array_equal(seen, wanted) and mask is wanted_mask is None
                continue
            assert seen.keys() == wanted.keys() and np.array_equal(mask, wanted_mask)
            assert all(np.array_equal(seen[name], wanted[name]) for name in seen)
        assert games.outcomes().centers[0, power] == info["centers"]
        assert games.outcomes().years[0] == info["years"]


def hold(seen, masks):
    return np.zeros((len(masks), seen["board"].shape[1]), int)


def illegal(seen, masks):
    return np.where(seen["board"][:, :, 1] == 1, 900, 0)


@pytest.mark.parametrize(
    ("policy", "settings", "name"),
    [
        (lambda *_: np.zeros((2, 19), int), {}, "(4, 19)"),
        (lambda *_: np.zeros((4, 19)), {}, "float64"),
        (lambda *_: [[1, 2]], {"form": "sequential"}, "(4,)"),
        (lambda *_: None, {"form": "deepdip"}, "(4, 19)"),
        (illegal, {"strict": True}, "ENGLAND"),
        (lambda seen, _: ["A LON - MOS"] * len(seen), {"form": "text", "strict": True}, "ENGLAND"),
        (lambda seen, _: seen[:3], {"form": "text"}, "4 texts"),
        (lambda *_: 3, {"form": "text"}, "4 texts"),
        (hold, {"form": "text", "flat": True}, "flat"),
        (hold, {"form": "province"}, "'province'"),
        (hold, {"game_map": "three"}, "'three', not 'small'"),
    ],
)
def test_what_is_refused(policy, settings, name):
    games = VectorGame("small", 2)
    assert (ObservationPlayer(illegal).act(games, games.decisions()) == NONE).all()
    with pytest.raises(UserError) as error:
        ObservationPlayer(policy, name="mine", **settings).act(games, games.decisions())
    assert name in str(error.value) and "\n" not in str(error.value)
    assert "'mine'" in str(error.value) or {"form", "flat"} & settings.keys()


def test_players_of_modules(tmp_path, monkeypatch):
    (tmp_path / "mine_of_modules.py").write_text(
        "from diplomacy_engine import make_bot\n"
        "class Mine:\n"
        "    def __init__(self, text='nothing'):\n"
        "        self.text = text\n"
        "    act = make_bot('hold').act\n"
        "class Broken:\n"
        "    def __init__(self):\n"
        "        raise ValueError('no file\\nmodel.zip')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    player = load_player("mine_of_modules:Mine")
    assert (player.name, player.text) == ("mine_of_modules:Mine", "nothing")
    player = load_player("mine_of_modules:Mine:some/where/model.zip")
    assert (player.name, player.text) == ("mine_of_modules:Mine:model.zip", "some/where/model.zip")
    games = VectorGame("small", 1)
    assert np.array_equal(orders_of(games, player), orders_of(games, make_bot("hold")))
    for name, sentence in read_table(__file__, "players_of_modules"):
        with pytest.raises(UserError) as error:
            load_player(name)
        assert sentence in str(error.value) and "\n" not in str(error.value)


class Counted:
    def __init__(self, name: str):
        self.name, self.asked = name, set()

    def act(self, games, decisions):
        self.asked |= set(decisions.game.tolist())
        return make_bot("hold").act(games, decisions)


def test_opponents_of_a_vector_change_as_games_begin():
    first, second, third = map(Counted, ("first", "second", "third"))
    envs = DiplomacyVectorEnv(3, "small", opponents="hold", power="ENGLAND", max_years=2)
    nothing = np.zeros(envs.action_space.shape, int)
    envs.set_opponents(first)  # before the first game
    for wrong in ("nobody", []):  # after which nothing has changed
        with pytest.raises(UserError):
            envs.set_opponents(wrong)
    envs.reset(seed=1)
    assert first.asked == {0, 1, 2}
    with pytest.raises(UserError, match="next_game"):
        envs.set_opponents(second)
    envs.set_opponents(second, next_game=True)
    first.asked.clear()
    envs.step(nothing)
    assert first.asked == {0, 1, 2} and not second.asked
    over = np.zeros(3, bool)
    while not over.any():
        _, _, terminated, truncated, _ = envs.step(nothing)
        over = terminated | truncated
    assert over.all() and second.asked == {0, 1, 2}
    envs.set_opponents([third, third], next_game=True)
    envs.set_opponents(third, next_game=True)
    first.asked.clear(), second.asked.clear()
    envs.step(nothing)
    assert second.asked == {0, 1, 2} and not first.asked and not third.asked
    envs.reset()
    second.asked.clear()
    assert third.asked == {0, 1, 2}
    envs.step(nothing)
    assert not second.asked and not first.asked
