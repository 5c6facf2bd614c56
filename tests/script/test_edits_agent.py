"""Edits of what a policy sees, what it may order and whom it meets: each holds in training, in
commands, in a search and when a run goes on, with one and two processes, or is refused before."""

import numpy as np
import pytest
import torch
from support.edits import assert_refused, assert_usable, train_edited
from support.training import train

from diplomacy_engine import VectorGame, load_player
from diplomacy_engine.constants import HOLD
from diplomacy_engine.players.asking import orders_of

# What is edited, by what stands in its place.
OBSERVE = "        return games.view_boards(rows, powers)\n"
LISTS = "        return engine.own_choices(games, decisions, self.cross_support)\n"
ENCODE = "    def encode(self, boards: Boards) -> Codes:\n"
BOARD = "        board = self.global_features(boards.globals)"
GLOBALS = "nn.Linear(inputs.num_globals, hidden)"
VIEWED = "        x = x.view(-1, self.inputs.num_provinces, x.shape[1])  # (G, V, H)\n"
TABLES = "        tables = self.order_tables(codes, orders)\n"
CRITIC = "        self.critic = nn.Sequential("
SAMPLE = "        members = rng.choice(self.copies, shape, p=self.weights())\n"
WEIGHTS = "        args, count = self.args, len(self.copies)\n"
PAID = "    rewards = run.reward.weigh(paid, min(1.0, run.step / run.args.total_timesteps))\n"
TEMPERED = "            temperature = args.opponent_temperature**exponents\n"
NORMS = "        self.norms = nn.ModuleList("
LAST_NORM = "        x = self.norms[-1](x)\n"
NO_HOLDS = (
    LISTS,
    "        decisions = engine.own_choices(games, decisions, self.cross_support)\n"
    "        holds = games.table.kind[decisions.order] == engine.constants.HOLD\n"
    "        return engine.without_orders(decisions, holds)\n",
)
HIDDEN = (OBSERVE, "        obs = games.view_boards(rows, powers)\n"
                   "        obs.scalars[:, 1:3] = 0  # the years played and left\n"
                   "        return obs\n")  # fmt: skip
WORKS = {
    "a mask": ([NO_HOLDS], {}),
    "a hidden feature": ([HIDDEN], {}),
    "an extra global feature": (
        [(OBSERVE, "        obs = games.view_boards(rows, powers)\n"
                   "        turn = games.state.turn[np.unique(rows), None].astype(np.int16)\n"
                   "        return obs._replace(scalars=np.append(obs.scalars, turn, 1))\n"),
         (GLOBALS, GLOBALS.replace("globals", "globals + 1"))],
        {},
    ),
    "an extra feature per province": (
        [(OBSERVE, "        obs = games.view_boards(rows, powers)\n"
                   "        stood = games.state.last_power[np.unique(rows)] == 0\n"
                   "        board = np.append(obs.board, stood[..., None].astype(np.int8), 2)\n"
                   "        return obs._replace(board=board)\n"),
         (CRITIC, f"        self.stood = nn.Linear(1, hidden)\n{CRITIC}"),
         (VIEWED, f"{VIEWED}        stood = torch.from_numpy(boards.views.board[..., -1:])\n"
                  "        x = x + self.stood(stood.to(x))\n")],
        {},
    ),
    "observation normalization": (
        [(CRITIC, "        self.normal = nn.BatchNorm1d(inputs.num_globals, affine=False)\n"
                  f"{CRITIC}"),
         (BOARD, "        boards = boards._replace(globals=self.normal(boards.globals))\n"
                 f"{BOARD}")],
        {},
    ),
    "a mask by what is learned": (
        [(LISTS, "        kinds = games.table.kind[decisions.order]\n"
                 "        unwanted = kinds == int(self.score.weight[0, 0] > 0)\n"
                 "        return engine.without_orders(decisions, unwanted)\n")],
        {},
    ),
    "an opponent sampler": (
        [(SAMPLE, "        members = rng.choice(self.copies[-2:], shape)\n"),
         (WEIGHTS, f"{WEIGHTS}        assert False\n")],
        {"pool_interval": 40},
    ),
    "a temperature's schedule": (
        [(TEMPERED, "            frac = 1 - self.step / args.total_timesteps\n"
                    "            temperature = args.opponent_temperature ** (frac * exponents)\n")],
        {"opponent_temperature": 3.0},
    ),
    "a reward in place": (
        [(PAID, PAID + "        rewards = rewards + 0.01\n".replace("        ", "    "))],
        {},
    ),
}  # fmt: skip
REFUSED = {  # edit -> what the error names
    "an LSTM": (
        [(CRITIC, f"        self.lstm, self.state = nn.LSTM(hidden, hidden), None\n{CRITIC}"),
         (LAST_NORM, f"{LAST_NORM}        mean, self.state = self.lstm(x.mean((0, 1))[None])\n"
                     "        x = x + mean\n")],
        "memory",
    ),
    "dropout": (
        [(CRITIC, f"        self.dropout = nn.Dropout(0.2)\n{CRITIC}"),
         (LAST_NORM, f"{LAST_NORM}        x = self.dropout(x)\n")],
        "dropout",
    ),
    "a random mask": (
        [(LISTS, "        unwanted = np.random.random(len(decisions.order)) < 0.3\n"
                 "        return engine.without_orders(decisions, unwanted)\n")],
        "legal_orders",
    ),
    "an observation with noise": (
        [(OBSERVE, "        obs = games.view_boards(rows, powers)\n"
                   "        obs.scalars[:, 1:3] += np.random.randint(9, size=2).astype(np.int16)\n"
                   "        return obs\n")],
        "scalars",
    ),
    "a policy that counts": (
        [(LISTS, "        self.asked = getattr(self, 'asked', 0) + 1\n" + LISTS)],
        "asked",
    ),
    "a decision that is left out": (
        [(LISTS, "        return decisions.take(decisions.power > 0)\n")],
        "legal_orders",
    ),
}  # fmt: skip


def holds_of(player, games: VectorGame) -> float:
    """Return the share of holds among the orders of six phases."""
    given = []
    for _ in range(6):
        orders = orders_of(games, player)
        given.append(games.table.kind[orders[orders >= 0]] == HOLD)
        games.step(orders)
    return float(np.concatenate(given).mean())


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("edit", WORKS)
def test_an_edit_works(edit, processes, imported, tmp_path):
    edits, settings = WORKS[edit]
    script, run = train_edited(edits, imported, tmp_path, processes, **settings)
    assert_usable(script, run)


@pytest.mark.parametrize("edit", REFUSED)
def test_an_edit_is_refused_before_it_trains(edit, imported, tmp_path, capsys):
    edits, word = REFUSED[edit]
    assert_refused(edits, imported, tmp_path, word, capsys=capsys)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_mask_holds_everywhere(processes, imported, tmp_path):
    """A policy that may never hold does not: not in training, nor alone, greedy or in a search."""
    script, run = train_edited([NO_HOLDS], imported, tmp_path, processes, eval_interval=20)
    first = torch.load(min((run / "checkpoints").glob("*.pt")), weights_only=True)
    experience = first["ranks"][-1]["buffer"]["experience"]
    kinds = VectorGame("small", 1).table.kind
    orders = np.concatenate([part["decisions"]["order"].numpy() for part in experience])
    assert (kinds[orders] == HOLD).mean() < 0.02
    assert holds_of(load_player(str(run), script=script.__file__), VectorGame("small", 30)) == 0
    name = f"{script.__file__}:{run}"
    for spec in (f"greedy:{name}", f"fast(candidates=3 draws=6 profiles=2):{name}"):
        assert holds_of(load_player(spec), VectorGame("small", 4, seed=1)) == 0
    games = VectorGame("small", 4, seed=1)
    decisions = games.decisions()
    holds = kinds[decisions.order] == HOLD
    assert (load_player(name).explain(games, decisions).probability[holds] == 0).all()
    assert holds_of(load_player("small-pure-1"), VectorGame("small", 30)) > 0


@pytest.mark.parametrize("processes", [1, 2])
def test_a_reward_of_one_s_own(processes, tmp_path, monkeypatch):
    """A function by name: also in a run that goes on, and known to a search once it is imported."""
    text = "def center(position):\n    return position.centers * 0.1\n"
    (tmp_path / "my_rewards_here.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    run = train(
        tmp_path / "runs", processes=processes, reward="my_rewards_here:center", total_timesteps=150
    )
    games = VectorGame("small", 2)
    assert (
        load_player(f"fast(candidates=2 draws=2 profiles=2):{run}")
        .act(games, games.decisions())
        .size
    )
