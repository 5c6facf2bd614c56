"""Edits of what a policy sees, what it may order and whom it meets: each holds in training, in
commands, in a search and when a run goes on, with one and two processes, or is refused before."""

import itertools

import numpy as np
import pytest
from support.edits import assert_refused, assert_usable, named, read_edits, train_edited
from support.tables import slow_but
from support.training import opened, train

from diplomacy_engine import VectorGame, load_player
from diplomacy_engine.constants import HOLD
from diplomacy_engine.learning import checkpoints
from diplomacy_engine.players.asking import orders_of

EDITS = read_edits("agent")
NO_HOLDS = EDITS["a mask"].edits
# Of how a policy draws and whom it meets; what it may order is tested below.
ALWAYS = [("a sampling rule in get_action", 1), ("an opponent sampler", 1)]
WORKS = slow_but(ALWAYS, itertools.product(named(EDITS, "works"), (1, 2)))
ONE_AND_TWO = [1, pytest.param(2, marks=pytest.mark.slow)]


def holds_of(player, games: VectorGame) -> float:
    """Return the share of holds among the orders of six phases."""
    given = []
    for _ in range(6):
        orders = orders_of(games, player)
        given.append(games.table.kind[orders[orders >= 0]] == HOLD)
        games.step(orders)
    return float(np.concatenate(given).mean())


@pytest.mark.parametrize(("edit", "processes"), WORKS)
def test_an_edit_works(edit, processes, imported, tmp_path):
    _, edits, _, settings = EDITS[edit]
    script, run = train_edited(edits, imported, tmp_path, processes, **settings)
    assert_usable(script, run)


@pytest.mark.parametrize("edit", named(EDITS, "refused"))
def test_an_edit_is_refused_before_it_trains(edit, imported, tmp_path, capsys):
    _, edits, names, _ = EDITS[edit]
    assert_refused(edits, imported, tmp_path, *names, capsys=capsys)


@pytest.mark.parametrize("processes", ONE_AND_TWO)
def test_a_mask_holds_everywhere(processes, imported, tmp_path):
    """A policy that may never hold does not: not in training, nor alone, greedy or in a search."""
    script, run = train_edited(NO_HOLDS, imported, tmp_path, processes, eval_interval=20)
    first = opened(checkpoints.read(min((run / "checkpoints").glob("*.pt"))))
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


@pytest.mark.parametrize("processes", ONE_AND_TWO)
def test_a_reward_of_one_s_own(processes, tmp_path, monkeypatch):
    """A function by name: also in a run that goes on, and known to a search once it is imported."""
    text = "def center(position):\n    return position.centers * 0.1\n"
    (tmp_path / "my_rewards_here.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    run = train(
        tmp_path / "runs", processes=processes, reward="my_rewards_here:center", total_timesteps=150
    )
    games = VectorGame("small", 2)
    search = load_player(f"fast(candidates=2 draws=2 profiles=2):{run}")
    assert search.act(games, games.decisions()).size
