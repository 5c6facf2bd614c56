"""Self-play beside an anchor: what a distance costs, and what may be an anchor."""

import numpy as np
import pytest
from support.self_play import begin, make_args
from support.tables import slow_but
from support.training import refused, write_config

from diplomacy_engine import load_player, order_numbers
from diplomacy_engine.clock import Clock
from diplomacy_engine.constants import NONE
from diplomacy_engine.games.decisions import order_positions
from diplomacy_learners import anchored


def make_run(anchor, coef=0.5, **changes):
    settings = {"reward": "terminal", "hidden": 64, "num_layers": 0} | changes
    args = make_args(anchored.Args, anchor=anchor, anchor_coef=coef, **settings)
    return begin(anchored.AnchoredRun, anchored.LEARNER_SPEC, args)


@pytest.mark.parametrize(
    ("anchor", "changes"),
    [
        ("small-pure-1", {}),
        ("standard-own-1", {"map": "standard", "cross_support": False}),  # armies come first there
    ],
)
def test_a_decision_pays_for_its_distance_from_the_anchor(anchor, changes):
    run, player = make_run(anchor, **changes), load_player(anchor)
    full = run.games.decisions()
    full = full.take(run.seats.stream[full.game, full.power] != NONE)
    legal = player.legal_orders(run.games, full)
    obs = player.observe(run.games, full.game, full.power)
    run.play(Clock())
    (_, own, chosen), provinces = run.buffer.experience[0], len(run.game_map.provinces)
    orders = own.by_province(order_numbers(own, chosen), provinces)
    numbers = orders[legal.slot_decision, legal.slot_province]
    scored = player.agent.agent.get_action_and_value(obs, legal, order_positions(legal, numbers))
    streams = run.seats.stream[own.game, own.power]
    nats = run.buffer.transitions["logprobs"][0, streams] - scored.logprob.detach().numpy()
    np.testing.assert_allclose(
        run.buffer.transitions["rewards"][0, streams], -0.5 * nats, rtol=1e-4, atol=1e-4
    )
    assert (np.abs(nats) > 0.1).any()


@pytest.mark.parametrize("name", slow_but(["central"], ["independent", "central"]))
def test_a_scheme_s_policy_is_an_anchor(name, trained):
    run = make_run(str(trained(name) / "checkpoint.pt"), map="three")
    run.play(Clock())
    assert run.buffer.transitions["rewards"].any()


def test_what_cannot_be_an_anchor_is_named(tmp_path, capsys):
    config = write_config(tmp_path / "tiny.toml", map="standard", num_envs=4)
    for anchor, names in (("dumbbot", ["dumbbot"]), ("standard-own-1", ["--no-cross-support"])):
        flags = ["--cross-support", "--runs-folder", str(tmp_path / "runs"), "--processes", "1"]
        argv = ["--config", config, "--anchor", anchor, *flags]
        refused(argv, "--anchor", *names, capsys=capsys, script=anchored)
