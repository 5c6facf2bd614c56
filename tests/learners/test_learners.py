"""What every learner does: it stops and goes on bit for bit, plays, and begins with a policy."""

import json

import pytest
import torch
from support.learners import LEARNERS, train
from support.tables import slow_but
from support.training import (
    STOPPED,
    assert_same_run,
    load,
    metrics,
    stop_in_evaluation,
    stop_in_step,
)

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import evaluate_player, load_player

QUICK = ("league",)  # other pools
ONE = [(name, 1) for name in LEARNERS]
TWO = [("independent", 2), ("offers", 2)]


@pytest.mark.parametrize(("name", "processes"), slow_but([(name, 1) for name in QUICK], ONE + TWO))
def test_a_run_that_is_stopped_goes_on_bit_for_bit(name, processes, trained, tmp_path, monkeypatch):
    """With warm-ups, temperatures, averages and bots, it ends as one that never stopped."""
    changes = {"processes": processes}
    whole = trained(name) if processes == 1 else train(name, tmp_path / "whole", **changes)
    with monkeypatch.context() as patch:
        stop_in_step(patch, 9)
        stopped = train(name, tmp_path / "stopped", status=STOPPED, **changes)
    assert load(stopped)["global_step"] < load(whole)["global_step"]
    assert LEARNERS[name].main(["--resume", str(stopped)]) == 0
    assert_same_run(whole, stopped)


@pytest.mark.parametrize(  # two evaluate in their own way
    "name", slow_but([], ["league", "offers", "central"])
)
def test_an_evaluation_that_is_broken_off_is_done_anew(name, trained, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_in_evaluation(patch, 1)
        stopped = train(name, tmp_path / "stopped", status=STOPPED)
    assert load(stopped)["run"]["evaluations"] == 0
    assert LEARNERS[name].main(["--resume", str(stopped)]) == 0
    assert_same_run(trained(name), stopped)


@pytest.mark.parametrize("name", slow_but(QUICK, LEARNERS))
def test_its_checkpoint_plays(name, trained):
    """By the script that it names, without a word of how; greedy, always alike."""
    run = trained(name)
    assert [path.name for path in run.glob("*.py")] == [load(run)["script_name"]]
    results = []
    for _ in range(2):
        player = load_player(run, greedy=True)
        results.append(evaluate_player("three", player, load_player("hold"), 3, max_years=2))
    assert results[0].result() == results[1].result() and results[0].result()["games"] == 3


@pytest.mark.parametrize("name", slow_but(["offers"], LEARNERS))
def test_a_run_begins_with_a_policy(name, trained, tmp_path):
    changes = {"learning_rate": 0.0, "total_timesteps": 40}
    if name in ("mutual", "offers"):
        changes["wish_entropy"] = 0.25  # it is no part of the network
    run = train(name, tmp_path / "runs", "--start-from", str(trained(name)), **changes)
    before, after = load(trained(name))["model"], load(run)["model"]
    assert before.keys() == after.keys()
    assert all(torch.equal(weight, after[key]) for key, weight in before.items())


@pytest.mark.parametrize("name", slow_but(["offers", "league", "mutual"], LEARNERS))
def test_the_figures_of_a_run_are_golden(name, trained, golden):
    golden(name, map(json.dumps, metrics(trained(name))), rel=0.01)


def test_an_exploiter_has_one_seat_against_the_learner_as_it_is_or_its_pool(tmp_path, monkeypatch):
    exploiters, advance = {}, ppo.advance

    def watched(run, *rest):
        if type(run) is ppo.Run:
            assert ((run.seats.stream >= 0).sum(1) == 1).all()
            copies = [run.pool.agents[number].state_dict() for number in run.pool.copies]
            own = run.agent.state_dict()
            same = [all(torch.equal(own[key], copy[key]) for key in own) for copy in copies]
            exploiters.setdefault(run.args.seed, same)
        advance(run, *rest)

    monkeypatch.setattr(ppo, "advance", watched)
    train("league", tmp_path / "runs", average_exponent=0.0)
    assert exploiters[2] == [True] and len(exploiters[3]) > 1 and not any(exploiters[3])
