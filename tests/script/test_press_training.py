"""Training with talk: wishes and orders are one decision, and the policy plays with talk."""

import numpy as np
import pytest
import torch

import ppo_press_diplomacy as press
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import evaluate_player, load_map, load_player
from diplomacy_engine.constants import NONE
from diplomacy_engine.players.negotiation import Listener
from diplomacy_engine.press.table import PressRules
from diplomacy_engine.press.views import TalkViews
from diplomacy_engine.selfplay.talk_counts import TalkCounts
from diplomacy_engine.training.clock import Clock
from tests.support.self_play import CPU, make_args, play_phase, take_batch
from tests.support.training import assert_same_run, metrics, stop_in_step, write_config

SHORT = {"map": "three", "hidden": 8, "eval_bots": ["coin+random"], "max_years": 3}


def make_run(**changes) -> press.Run:
    """Return a run with a policy that is far from indifferent."""
    settings = {"map": "three", "num_envs": 12, "learner_seats": 2, "num_steps": 16} | changes
    args = press.Args(**vars(make_args(**settings)) | {"wish_entropy": 0.5})
    run = press.Run(args, load_map(args.map), CPU)
    with torch.no_grad():
        run.agent.wish.weight.normal_(0.0, 1.0)
        run.agent.peace.weight.normal_(0.0, 1.0)
        run.agent.score.weight.normal_(0.0, 1.0)
        run.pool.members[0].player.load_state_dict(run.agent.state_dict())
    return run


def train(folder, *flags, **changes):
    """Train in a new run folder; return it."""
    folder.mkdir(exist_ok=True)
    before = set(folder.iterdir())
    config = write_config(folder.parent / "tiny.toml", **SHORT | changes)
    assert press.main(["--config", config, "--runs-folder", str(folder), *flags]) == 0
    (run,) = set(folder.iterdir()) - before
    return run


def test_wishes_and_orders_are_one_decision():
    """What was drawn is what is scored, the lists are those of play, and no deal is broken."""
    run, deals = make_run(), 0
    talk, step = run.self_play.talk, run.self_play.games.step

    def judged(orders):
        assert not talk.judge(orders).any()
        return step(orders)

    run.self_play.games.step = judged
    while not run.buffer.is_full:
        play_phase(run)
        deals += int(talk.deals.peace.sum())
    assert deals > 0
    batch = take_batch(run.buffer, 0.99, 0.95)
    obs = batch.experience.obs
    assert isinstance(obs, TalkViews) and obs.peace.any()
    logprob, entropy, value = run.agent.get_logprob_entropy_value(*batch.experience)
    np.testing.assert_allclose(logprob.detach(), batch.logprobs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(value.detach(), batch.values, rtol=1e-4, atol=1e-4)
    asked = obs.wish != NONE
    assert not asked[np.arange(len(asked)), obs.power].any(), "of itself"
    assert (obs.peace <= (obs.wish == 1)).all(), "peace without a wish"
    assert ((obs.talk_logprob < 0) == asked.any(1)).all()
    assert (entropy.detach().numpy() <= 1.5 + 1e-5).all()
    # Where there is peace some lists are shorter than all legal orders.
    alone = batch.experience._replace(obs=obs._replace(peace=np.zeros_like(obs.peace)))
    other = run.agent.get_logprob_entropy_value(*alone)[0].detach().numpy()
    changed = np.abs(other - batch.logprobs) > 1e-3
    assert changed[obs.peace.any(1)].mean() > 0.5 and not changed[~obs.peace.any(1)].any()


def test_the_gradient_is_that_of_small_steps():
    """Of the wishes' head, of what peace adds to orders, and of the codes that both read."""
    run = make_run()
    while not run.buffer.is_full:
        play_phase(run)
    experience = take_batch(run.buffer, 0.99, 0.95).take(np.arange(40)).experience
    agent = run.agent
    for weight in (agent.wish_own.weight, agent.wish_other.weight, agent.peace.weight):
        found = torch.autograd.grad(
            agent.get_logprob_entropy_value(*experience)[0].sum(), [weight]
        )[0]
        direction = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
        direction /= direction.norm()
        sums = []
        for step in (0.02, -0.02):
            with torch.no_grad():
                weight += step * direction
                sums.append(agent.get_logprob_entropy_value(*experience)[0].sum().item())
                weight -= step * direction
        slope = (sums[0] - sums[1]) / 0.04
        assert slope == pytest.approx((found * direction).sum().item(), rel=0.05, abs=0.05)


def test_wishes_are_drawn_as_often_as_they_are_likely():
    """The frequency of a wish is its probability; with 0.5 as noise the likelier is taken."""
    run = make_run(num_envs=4)
    games, agent = run.self_play.games, run.agent
    rows, powers = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    obs = games.view_boards(rows, powers.astype(np.int8))
    asked = np.arange(3) != powers[:, None]
    draws = 800
    noise = torch.rand(12, 3, draws, generator=torch.Generator().manual_seed(2)).numpy()
    shares = np.zeros((12, 3))
    for k in range(draws):
        wish, logprob = agent.draw_talk(obs, asked, noise[..., k])
        assert ((wish == NONE) == ~asked).all()
        shares += wish == 1
    with torch.no_grad():
        likely = agent.wish_logits(obs, agent.encode(obs)).sigmoid().numpy()
    np.testing.assert_allclose((shares / draws)[asked], likely[asked], atol=0.08)
    wish, logprob = agent.draw_talk(obs, asked, np.full((12, 3), 0.5, np.float32))
    assert (wish[asked] == (likely > 0.5)[asked]).all()
    each = np.where(wish == 1, likely, 1 - likely)
    np.testing.assert_allclose(logprob, np.log(np.where(asked, each, 1)).sum(1), rtol=1e-4)


def test_a_new_policy_wishes_at_random():
    """Wishes begin near one half, and peace changes no order."""
    args = press.Args(**vars(make_args(map="three", num_envs=4)))
    run = press.Run(args, load_map("three"), CPU)
    for _ in range(3):
        play_phase(run)
    figures = run.self_play.figures(run.ranks, 0)["press"]
    assert 0.2 < figures["wishes"] < 0.8
    assert (run.agent.peace.weight == 0).all()


def test_a_run_that_is_stopped_goes_on_the_same(tmp_path, monkeypatch):
    """With two workers, two seats and warm-ups, a resumed run is one that never stopped."""
    changes = {"threads": 2, "learner_seats": 2, "warm_up_share": 0.4, "pool_bots": ["dumbbot"]}
    whole = train(tmp_path / "whole", **changes)
    with monkeypatch.context() as patch:
        stop_in_step(patch, 25)
        part = train(tmp_path / "part", **changes)
    assert press.main(["--resume", str(part)]) == 0
    assert_same_run(whole, part)
    assert any("press/deals_per_phase" in line for line in metrics(whole))


def test_a_checkpoint_plays_with_talk(tmp_path):
    """A trained policy wishes, offers and answers in matches, and plays without talk, too."""
    path = train(tmp_path / "runs") / "checkpoint.pt"
    player = load_player(path)
    assert isinstance(player, Listener)
    for rules in (PressRules("mutual"), PressRules("offers"), PressRules("mutual", 1, False)):
        result, _ = evaluate_player("three", player, player, 3, max_years=6, press=rules)
        assert result["press"]["agreed"] > 0 and result["press"]["kept"] == 1
    evaluate_player("three", player, load_player("random"), 3, max_years=2)
    greedy = load_player(path, greedy=True)
    found = [
        evaluate_player("three", greedy, greedy, 3, max_years=2, press=PressRules("mutual"))[0]
        for _ in range(2)
    ]
    assert found[0] == found[1]


def test_talk_in_hostile_checkpoints():
    """Wishes that cannot be are refused, and so are counts."""
    run = make_run()
    for _ in range(4):
        play_phase(run)
    saved = run.buffer.state_dict()
    run.buffer.load_state_dict(saved, run.self_play.games)
    ((obs, *others),) = saved["collected"]
    for number, bad in ((5, np.int8(2)), (6, np.float32(1)), (6, np.float32(np.nan))):
        array = obs[number].copy()
        array[0] = bad
        broken = (*obs[:number], array, *obs[number + 1 :])
        with pytest.raises(ValueError):
            run.buffer.load_state_dict(
                saved | {"collected": [(broken, *others)]}, run.self_play.games
            )
    with pytest.raises(ValueError):
        run.buffer.load_state_dict(
            saved | {"collected": [((*obs[:7], obs[7][:1]), *others)]}, run.self_play.games
        )
    counts = TalkCounts(run.game_map.powers)
    good = run.self_play.counts.state_dict()
    counts.load_state_dict(good)
    assert counts.take() == run.self_play.counts.take()
    for bad in ({"phases": -1}, {"met": [[0]]}, {"asked": (-np.ones((3, 3))).tolist()}):
        with pytest.raises(ValueError):
            counts.load_state_dict(good | bad)


def test_silent_voices_are_refused(tmp_path, capsys):
    """Bots of the pool do not talk; a policy without a head for wishes is none to begin with."""
    flags = ["--map", "three", "--runs-folder", str(tmp_path)]
    refusals = (
        (["--pool-bots", "nash+dumbbot"], "would be silent"),
        (["--start-from", "runs/reference/three__pure__1"], "does not fit ppo_press_diplomacy.py"),
        (["--wish-entropy", "-1"], "--wish-entropy must be"),
    )
    for more, words in refusals:
        assert press.main([*flags, *more]) == 2
        assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_plain_trainer_knows_no_talk():
    """Its experience has no wishes, and its decisions have all legal orders."""
    run = ppo.Run(make_args(map="three"), load_map("three"), CPU)
    run.self_play.step(Clock())
    assert not isinstance(run.buffer.collected[0].obs, TalkViews)
    assert run.press is None


def test_help_names_every_setting(capsys):
    """The settings of the trainer and of talk are explained."""
    with pytest.raises(SystemExit):
        press.main(["--help"])
    text = capsys.readouterr().out
    assert "--wish-entropy" in text and "what the entropy of the wishes counts" in text
    assert "--learner-seats" in text and "seats of each game that the learner plays" in text
