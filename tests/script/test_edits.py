"""Edits of the script: each holds in training, in commands and when a run goes on, with one and two
processes, or is refused before it trains, or stops the run in its first update."""

import numpy as np
import pytest
import torch
from support.edits import assert_refused, assert_usable, named, read_edits, train_edited, write
from support.tables import slow_but
from support.training import load, metrics, opened, train

from diplomacy_engine import VectorGame, load_player
from diplomacy_engine.constants import HOLD
from diplomacy_engine.learning import checkpoints
from diplomacy_engine.players.asking import orders_of

EDITS = read_edits()
CHECKS = ("metric", "weight", "rates", "kept")  # of what an edit does, in `check_effect`
# How a policy draws, whom it meets, a network whose state could be one of each process;
# test_resume.py has more, and what a policy may order is tested below.
ALWAYS = [("an opponent sampler", 1), ("BatchNorm", 1)]
WORKS = [(name, n) for name in named(EDITS, "works") for n in EDITS[name].processes]
# These take longest, each to be stopped in its first update; test_ranks.py has cheaper ones.
LONG = ("gradients of two minibatches, summed twice", "a break of one process")
REFUSED = named(EDITS, "refused", "stopped")
ONE_AND_TWO = [1, pytest.param(2, marks=pytest.mark.slow)]


def check_effect(run, settings: dict) -> None:
    saved, lines = load(run), metrics(run)
    if "metric" in settings:
        assert any(f"losses/{settings['metric']}" in line for line in lines)
    if "weight" in settings:
        first, weight = (
            policy[settings["weight"]]
            for policy in (saved["run"]["pool"]["agents"][1], saved["model"])
        )
        assert torch.isfinite(weight).all() and not torch.equal(first, weight)
    if "rates" in settings:
        first, second = saved["run"]["optimizer"]["param_groups"]
        assert (
            first["lr"] == pytest.approx(settings["rates"] * second["lr"]) and second["lr"] < 1e-3
        )
    if "kept" in settings:
        assert any(settings["kept"] in part for part in (saved["run"], *saved["ranks"]))


@pytest.mark.parametrize(("edit", "processes"), slow_but(ALWAYS, WORKS))
def test_an_edit_works(edit, processes, imported, tmp_path):
    settings = EDITS[edit].settings
    changes = {name: value for name, value in settings.items() if name not in CHECKS}
    script, run = train_edited(EDITS[edit].edits, imported, tmp_path, processes, **changes)
    check_effect(run, settings)
    assert_usable(script, run)


@pytest.mark.parametrize("edit", slow_but(set(REFUSED).difference(LONG), REFUSED))
def test_an_edit_is_refused_before_it_trains_or_stops_it(edit, imported, tmp_path, capsys):
    kind, edits, names, (processes, *_), changes = EDITS[edit]
    how = {"begins": kind == "stopped", "processes": processes} | changes
    assert_refused(edits, imported, tmp_path, *names, capsys=capsys, **how)


@pytest.mark.slow
@pytest.mark.parametrize("edit", named(EDITS, "slow refused"))
def test_a_compiled_method_is_refused(edit, imported, tmp_path, capsys):
    """PyTorch fails on its arrays where nothing is learned."""
    torch.compiler.reset()  # what other tests have compiled does not matter
    edit = EDITS[edit]
    assert_refused(edit.edits, imported, tmp_path, *edit.names, capsys=capsys)


def test_each_edit_s_lines_stand_in_the_script(tmp_path):
    """Most edits are tried by slow tests alone."""
    for title, edit in EDITS.items():
        write(tmp_path / f"{title}.py", *edit.edits)


def holds_of(player, games: VectorGame) -> float:
    """Return the share of holds among the orders of six phases."""
    given = []
    for _ in range(6):
        orders = orders_of(games, player)
        given.append(games.table.kind[orders[orders >= 0]] == HOLD)
        games.step(orders)
    return float(np.concatenate(given).mean())


@pytest.mark.parametrize("processes", ONE_AND_TWO)
def test_a_mask_holds_everywhere(processes, imported, tmp_path):
    """A policy that may never hold does not: not in training, nor alone, greedy or in a search."""
    edits = EDITS["a mask"].edits
    script, run = train_edited(edits, imported, tmp_path, processes, eval_interval=20)
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
    reward, runs = "my_rewards_here:center", tmp_path / "runs"
    run = train(runs, processes=processes, reward=reward, total_timesteps=150)
    games = VectorGame("small", 2)
    search = load_player(f"fast(candidates=2 draws=2 profiles=2):{run}")
    assert search.act(games, games.decisions()).size
