"""Training with talk: wishes and orders are one decision, and the policy plays with talk."""

from pathlib import Path

import numpy as np
import pytest
import torch

import ppo_press_diplomacy as press
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import VectorGame, evaluate_player, load_map, load_player
from diplomacy_engine.constants import NONE
from diplomacy_engine.players.negotiation import Listener, negotiate
from diplomacy_engine.press.table import Press, PressRules
from diplomacy_engine.press.views import (
    SLOTS,
    TEMPLATES,
    OfferViews,
    TalkViews,
    who_can_answer,
)
from diplomacy_engine.selfplay.talk_counts import OfferCounts, TalkCounts
from diplomacy_engine.training.clock import Clock
from tests.support.self_play import CPU, make_args, play_phase, take_batch
from tests.support.training import assert_same_run, metrics, stop_in_step, write_config

SHORT = {"map": "three", "hidden": 8, "eval_bots": ["coin+random"], "max_years": 3}


def make_run(**changes) -> press.Run:
    """Return a run with a policy that is far from indifferent."""
    settings = {"map": "three", "num_envs": 12, "learner_seats": 2, "num_steps": 16} | changes
    protocol = settings.pop("press", "mutual")
    args = press.Args(**vars(make_args(**settings)) | {"wish_entropy": 0.5, "press": protocol})
    run = press.Run(args, load_map(args.map), CPU)
    agent = run.agent
    heads = (agent.wish,) if protocol == "mutual" else (agent.offer, agent.agree, agent.deal)
    with torch.no_grad():
        for head in (*heads, agent.peace, agent.score):
            head.weight.normal_(0.0, 1.0)
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


def play_until_full(run) -> int:
    """Play until an update is due, and check that no deal is broken; return how many were made."""
    deals, talk, step = 0, run.self_play.talk, run.self_play.games.step

    def judged(orders):
        assert not talk.judge(orders).any()
        return step(orders)

    run.self_play.games.step = judged
    while not run.buffer.is_full:
        play_phase(run)
        deals += int(talk.deals.dealt.sum())
    return deals


def test_wishes_and_orders_are_one_decision():
    """What was drawn is what is scored, the lists are those of play, and no deal is broken."""
    run = make_run()
    assert play_until_full(run) > 0
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


def test_offers_answers_and_orders_are_one_decision():
    """As above; all that was offered could be, and only what was offered is answered."""
    run = make_run(press="offers", num_steps=32)
    assert play_until_full(run) > 0
    batch = take_batch(run.buffer, 0.99, 0.95)
    obs = batch.experience.obs
    assert isinstance(obs, OfferViews) and obs.peace.any() and (obs.dealt & ~obs.peace).any()
    logprob, entropy, value = run.agent.get_logprob_entropy_value(*batch.experience)
    np.testing.assert_allclose(logprob.detach(), batch.logprobs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(value.detach(), batch.values, rtol=1e-4, atol=1e-4)
    assert (entropy.detach().numpy() <= 1.5 + 1e-5).all()
    # The loss of PPO begins with a ratio of 1.
    _, figures = ppo.ppo_loss(
        run.args, 0.0, logprob, entropy, value, *(torch.from_numpy(part) for part in batch[1:-1])
    )
    assert figures["clipfrac"] == 0 and abs(figures["approx_kl"]) < 1e-5
    assert obs.talk_is_sound(len(run.game_map.provinces))
    could, made = obs.able.any((1, 2)), obs.choice != NONE
    assert could.any() and not could.all() and (made <= could).all()
    assert not obs.able[np.arange(len(made)), obs.power].any(), "to itself"
    assert 0.2 < made[could].mean() < 1
    answered = (obs.answer != NONE).any(1)
    assert ((obs.talk_logprob < 0) == (could | answered)).all()
    # Who has a deal has offered something to that power, or agreed to what it has offered.
    to = np.where(made, obs.choice // SLOTS, NONE)
    offered = to[:, None] == np.arange(len(run.game_map.powers))
    assert (obs.dealt <= (offered | (obs.answer == 1))).all()
    assert (obs.dealt >= obs.peace).all()
    seen = set(obs.heard[obs.answer != NONE].tolist())
    assert {0, 2, 3} <= seen <= set(range(len(TEMPLATES)))
    silent = batch.experience._replace(obs=obs._replace(dealt=np.zeros_like(obs.dealt)))
    other = run.agent.get_logprob_entropy_value(*silent)[0].detach().numpy()
    changed = np.abs(other - batch.logprobs) > 1e-3
    assert changed[obs.dealt.any(1)].mean() > 0.2 and not changed[~obs.dealt.any(1)].any()


def test_offers_are_drawn_as_often_as_they_are_likely():
    """So are answers; without noise the likeliest are taken, and each has its log-probability."""
    run = make_run(press="offers", num_envs=6)
    for _ in range(6):
        play_phase(run)
    run.self_play.decisions(Clock())
    talk = run.self_play.round
    game, power = np.nonzero(talk.asked & talk.told["able"].any((2, 3)))
    asked = talk.question(game, power)
    obs = run.self_play.games.view_boards(game, power.astype(np.int8))
    agent, n, draws = run.agent, len(game), 600
    assert n > 4
    with torch.no_grad():
        offers, answers = agent.talk_logits(obs, agent.encode(obs), *asked)
    likely, agreeing = offers.softmax(1).numpy(), answers.sigmoid().numpy()
    generator = torch.Generator().manual_seed(2)
    shares, agreed = np.zeros_like(likely), np.zeros(agreeing.shape)
    for _ in range(draws):
        noise = agent.draw_noise((n, 1 + len(run.game_map.powers)), generator)
        choice, logprob, said, said_logprob = agent.draw_talk(obs, *asked, noise)
        shares[np.arange(n), choice] += 1  # NONE is the last
        agreed += said
    np.testing.assert_allclose(shares / draws, likely, atol=0.1)
    heard = asked[2] != NONE
    np.testing.assert_allclose((agreed / draws)[heard], agreeing[heard], atol=0.1)
    assert not agreed[~heard].any()
    np.testing.assert_allclose(logprob, np.log(likely[np.arange(n), choice]), rtol=1e-3, atol=1e-4)
    each = np.log(np.where(said, agreeing, 1 - agreeing))
    np.testing.assert_allclose(said_logprob[heard], each[heard], rtol=1e-3, atol=1e-4)
    choice, _, said, _ = agent.draw_talk(obs, *asked, None)
    column = np.where(choice == NONE, likely.shape[1] - 1, choice)
    assert (column == likely.argmax(1)).all() and (said[heard] == (agreeing > 0.5)[heard]).all()


@pytest.mark.parametrize("protocol", ["mutual", "offers"])
def test_a_player_says_what_the_policy_says_in_training(protocol):
    """Greedy both times, the same deals come of it."""
    run, made = make_run(press=protocol, num_envs=20), 0
    with torch.no_grad():  # more often yes
        if protocol == "mutual":
            seats = np.repeat(np.arange(20), 3), np.tile(np.arange(3, dtype=np.int8), 20)
            obs = run.self_play.games.view_boards(*seats)
            run.agent.wish.bias -= run.agent.wish_logits(obs, run.agent.encode(obs)).min()
        else:
            run.agent.agree.bias += 2
    for _ in range(16):
        play_phase(run)
        made += check_what_is_said(run, protocol)
    assert made > 20


def check_what_is_said(run, protocol: str) -> int:
    """Hold the talk of a phase by the policy in training and by a player; return their deals."""
    games, agent, self_play = run.self_play.games, run.agent, run.self_play
    decisions, before = games.decisions(), self_play.talk
    self_play.talk = Press(games, protocol)
    talking = decisions.take(self_play.talk.talking()[decisions.game])
    able = who_can_answer(talking, (games.num_games, games.num_powers))
    if not able.any():
        self_play.talk = before
        return 0
    self_play.begin(decisions, able)
    game, power = np.nonzero(able)
    asked = self_play.question(game, power)[:-1]
    likeliest = None if protocol == "offers" else np.full(able[game].shape, 0.5, np.float32)
    obs = games.view_boards(game, power.astype(np.int8))
    self_play.note(game, power, *agent.draw_talk(obs, *asked, likeliest))
    self_play.settle()
    table, player = Press(games, protocol), press.press_player(agent, "greedy", greedy=True)
    negotiate(table, decisions, [player], np.zeros(able.shape, int))
    made, self_play.talk = self_play.talk.deals, before
    assert np.array_equal(table.deals.dealt, made.dealt)
    assert np.array_equal(table.deals.peace, made.peace)
    return int(made.dealt.sum())


def test_the_entropy_of_talk():
    """1 where all is alike, 0 where it is sure: the mean over the offer and the answers."""
    run = make_run(press="offers")
    play_until_full(run)
    obs = take_batch(run.buffer, 0.99, 0.95).experience.obs
    agent = run.agent

    def entropy() -> np.ndarray:
        with torch.no_grad():
            return agent._score_talk(obs, agent.encode(obs))[1].numpy()

    with torch.no_grad():
        for head in (agent.offer, agent.agree):
            head.weight.zero_()
            head.bias.zero_()
    offer, answers = obs.able.any((1, 2)), (obs.answer != NONE).sum(1)
    said = offer + answers
    assert (answers > 1).any() and (offer & (answers > 0)).any() and not said.all()
    np.testing.assert_allclose(entropy(), said > 0, atol=1e-5)
    with torch.no_grad():
        agent.agree.bias += 50
    np.testing.assert_allclose(entropy(), offer / np.maximum(said, 1), atol=1e-5)


def test_the_gradient_of_offers_is_that_of_small_steps():
    """Of the heads of offers and answers, of what deals add to orders, and of what these read."""
    run = make_run(press="offers")
    play_until_full(run)
    experience = take_batch(run.buffer, 0.99, 0.95).take(np.arange(60)).experience
    agent = run.agent
    weights = agent.deal_own, agent.deal_other, agent.deal_places, agent.deal_kinds, agent.deal
    for weight in (*(part.weight for part in weights), agent.offer.weight, agent.agree.weight):
        check_gradient(agent, experience, weight)


def test_deals_that_pay_are_made():
    """A policy that is paid for deals makes more of them; paid for having none, fewer."""
    shares = {sign: learn_of_deals(sign) for sign in (1.0, -1.0)}
    assert shares[1.0][-1] > 1.5 * shares[1.0][0], shares
    assert shares[-1.0][-1] < 0.5 * shares[-1.0][0], shares


def learn_of_deals(sign: float) -> list[float]:
    """Train with `sign` times a seat's deals as reward; return deals_per_phase of each update."""
    changes = {"num_envs": 24, "num_steps": 8, "learning_rate": 0.02, "hidden": 16}
    args = press.Args(
        **vars(make_args(map="three", learner_seats=3, gamma=0.0, ent_coef=0.0, **changes))
        | {"press": "offers"}
    )
    run, found = press.Run(args, load_map("three"), CPU), []
    for _ in range(10):
        while not run.buffer.is_full:
            result, _ = run.self_play.step(Clock())
            seats = run.self_play.seating.seats.stream
            deals = np.zeros(seats.max() + 1, np.float32)
            deals[seats[seats != NONE]] = run.self_play.round.told["dealt"].sum(2)[seats != NONE]
            run.buffer.reward(sign * deals, {part: deals for part in run.buffer.parts})
            run.self_play.credit(result, 0.0)
            run.self_play.seating.end_phase(result)
        batch = take_batch(run.buffer, args.gamma, args.gae_lambda)
        shared = run.rng, Clock(), run.workers, run.ranks
        ppo.update(args, run.agent, run.optimizer, batch, 0.0, *shared)
        found.append(run.self_play.counts.take()["deals_per_phase"])
    return found


def test_the_gradient_is_that_of_small_steps():
    """Of the wishes' head, of what peace adds to orders, and of the codes that both read."""
    run = make_run()
    while not run.buffer.is_full:
        play_phase(run)
    experience = take_batch(run.buffer, 0.99, 0.95).take(np.arange(40)).experience
    agent = run.agent
    for weight in (agent.wish_own.weight, agent.wish_other.weight, agent.peace.weight):
        check_gradient(agent, experience, weight)


def check_gradient(agent, experience, weight) -> None:
    """Compare the gradient of all log-probabilities with the slope along some direction."""
    found = torch.autograd.grad(agent.get_logprob_entropy_value(*experience)[0].sum(), [weight])[0]
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


def test_a_new_policy_offers_at_random():
    """All that it could offer is alike, it agrees to half, and deals change no order."""
    args = press.Args(**vars(make_args(map="three", num_envs=40)) | {"press": "offers"})
    run = press.Run(args, load_map("three"), CPU)
    for _ in range(12):
        play_phase(run)
    figures = run.self_play.figures(run.ranks, 0)["press"]
    assert 0.5 < figures["offers"] < 0.95 and 0.3 < figures["accepted"] < 0.7
    shares = [figures[f"offers/{name}"] for name in TEMPLATES]
    assert sum(shares) == pytest.approx(figures["offers"])
    assert figures["deals_per_phase"] > 0 and 0 < figures["deals"] < 1
    assert (run.agent.peace.weight == 0).all() and (run.agent.deal.weight == 0).all()


@pytest.mark.parametrize("protocol", ["mutual", "offers"])
def test_a_run_that_is_stopped_goes_on_the_same(tmp_path, monkeypatch, protocol):
    """With two workers, two seats and warm-ups, a resumed run is one that never stopped."""
    changes = {
        "press": protocol,
        "threads": 2,
        "learner_seats": 2,
        "warm_up_share": 0.4,
        "pool_bots": ["dumbbot"],
    }
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
        result = evaluate_player("three", player, player, 3, max_years=6, press=rules).result()
        assert result["press"]["agreed"] > 0 and result["press"]["kept"] == 1
    wants_no_help = load_player("nash+random")
    evaluate_player("three", player, wants_no_help, 3, max_years=3, press=PressRules("offers"))
    evaluate_player("three", player, load_player("random"), 3, max_years=2)
    greedy = load_player(path, greedy=True)
    found = [
        evaluate_player(
            "three", greedy, greedy, 3, max_years=2, press=PressRules("mutual")
        ).result()
        for _ in range(2)
    ]
    assert found[0] == found[1]


def test_one_player_that_stands_twice_knows_the_deals_of_all_its_seats(tmp_path):
    """`evaluate_player(m, player, player)` asks it once for each of its two places."""
    player = load_player(train(tmp_path / "runs") / "checkpoint.pt", seed=1)
    games = VectorGame("three", 40, 1)
    table, decisions = Press(games, "mutual"), games.decisions()
    seats = np.zeros((40, 3), int)
    seats[:, 1:] = 1
    negotiate(table, decisions, [player, player], seats)
    row, power = np.divmod(np.arange(120), 3)
    seen = player.observe(games, row, power).peace
    assert np.array_equal(seen, table.deals.peace[row, power])
    assert seen[power == 0].any() and seen[power > 0].any()


def test_a_checkpoint_plays_with_offers(tmp_path):
    """It offers and answers in matches, by any protocol, against bots and policies of wishes."""
    path = train(tmp_path / "runs", press="offers") / "checkpoint.pt"
    player = load_player(path)
    assert isinstance(player, Listener)
    for rules in (
        PressRules("offers"),
        PressRules("offers", 2),
        PressRules("mutual"),
        PressRules("propose-choose"),
        PressRules("offers", 1, False),
    ):
        result = evaluate_player("three", player, player, 3, max_years=6, press=rules).result()
        assert result["press"]["agreed"] > 0 and result["press"]["kept"] == 1, rules
    evaluate_player("three", player, load_player("random"), 3, max_years=2)
    rules = PressRules("offers")
    for other in ("nash+dumbbot", train(tmp_path / "runs") / "checkpoint.pt"):
        result = evaluate_player(
            "three", player, load_player(other), 3, max_years=8, press=rules
        ).result()
        assert result["press"]["agreed"] > 0, other.name
    greedy = load_player(path, greedy=True)
    found = [
        evaluate_player("three", greedy, greedy, 3, max_years=2, press=rules).result()
        for _ in range(2)
    ]
    assert found[0] == found[1]


def test_offers_in_hostile_checkpoints():
    """Talk that cannot be is refused, and so are counts."""
    run = make_run(press="offers")
    for _ in range(8):
        play_phase(run)
    saved = run.buffer.state_dict()
    run.buffer.load_state_dict(saved, run.self_play.games)
    ((obs, *others),) = saved["collected"]
    bad_values = {
        "places": (-2, 37),
        "choice": (-2, 3 * SLOTS, 0),
        "heard": (-2, len(TEMPLATES)),
        "heard_places": (-2, 37),
        "answer": (-2, 2, 1),
        "talk_logprob": (1, np.nan),
    }
    silent = np.flatnonzero(~obs[OfferViews._fields.index("able")].any((1, 2)))[0]
    for name, values in bad_values.items():
        number = OfferViews._fields.index(name)
        for bad in values:
            array = obs[number].copy()
            array[silent] = bad
            broken = (*obs[:number], array, *obs[number + 1 :])
            with pytest.raises(ValueError):
                run.buffer.load_state_dict(
                    saved | {"collected": [(broken, *others)]}, run.self_play.games
                )
    counts, good = OfferCounts(run.game_map.powers), run.self_play.counts.state_dict()
    counts.load_state_dict(good)
    assert counts.take() == run.self_play.counts.take()
    for bad in ({"chances": -1}, {"offered": [0]}, {"heard": [-1] * len(TEMPLATES)}):
        with pytest.raises(ValueError):
            counts.load_state_dict(good | bad)


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
        (["--eval-bots", "grudge+dumbbot"], "'grudge+dumbbot' has no use: deals bind in training"),
    )
    for more, words in refusals:
        assert press.main([*flags, *more]) == 2
        assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_two_kinds_of_talk_are_not_mixed(tmp_path, capsys):
    """A run with offers neither begins with a policy of wishes nor exploits one, and no reverse."""
    wishing, offering = (
        str(train(tmp_path / "runs", press=protocol)) for protocol in ("mutual", "offers")
    )
    flags = ["--runs-folder", str(tmp_path / "none")]
    refusals = (
        ([*flags, "--press", "offers", "--start-from", wishing], "--press is 'mutual' there"),
        ([*flags, "--start-from", offering], "--press is 'offers' there, here mutual"),
        ([*flags, "--press", "offers", "--exploit", wishing], "talks by --press 'mutual'"),
        ([*flags, "--exploit", offering], "talks by --press 'offers', this run by"),
        ([*flags, "--exploit", wishing, "--exploit-greedy"], "--exploit-greedy goes without talk"),
        (["--resume", wishing, "--press", "offers"], "--press cannot be changed on resume"),
        ([*flags, "--map", "three", "--press", "peace"], "--press must be"),
    )
    for argv, words in refusals:
        assert press.main(argv) == 2
        err = capsys.readouterr().err
        assert words in err and err.count("\n") == 1, err
    args = Path(wishing) / "args.json"
    args.write_text(args.read_text().replace('"mutual"', '"offers"'))
    assert press.main(["--resume", wishing]) == 2
    assert "made with press 'mutual', but args.json" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


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
    assert "--wish-entropy" in text and "what the entropy of the wishes" in text
    assert "--press" in text and "mutual: peace where two" in text
    assert "--learner-seats" in text and "seats of each game that the learner plays" in text
