"""Training with talk: talk and orders are one decision, and the policy plays with talk."""

from itertools import combinations

import numpy as np
import pytest
import torch
from support import self_play
from support.self_play import CPU
from support.training import metrics, refused

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import Game, VectorGame, evaluate_player, load_player
from diplomacy_engine.constants import NONE
from diplomacy_engine.learning import startup
from diplomacy_engine.learning.experience import Batch
from diplomacy_engine.players.advice import orders_by_player
from diplomacy_engine.press.negotiators.negotiation import Listener, honest_seats, negotiate
from diplomacy_engine.press.press import Press
from diplomacy_engine.press.talk_views import (
    SLOTS,
    TEMPLATES,
    OfferViews,
    TalkViews,
    who_can_answer,
)
from diplomacy_learners import press
from diplomacy_learners.press import OfferRound


def begin(**changes) -> press.TalkRun:
    """Return a new run on `three`, its games with seats."""
    settings = {"map": "three", "num_envs": 12, "learner_seats": 2, "num_steps": 16} | changes
    args = self_play.make_args(press.Args, **settings)
    return self_play.begin(press.TalkRun, press.LEARNER_SPEC, args)


def make_run(**changes) -> press.TalkRun:
    """Return a run with a policy that is far from indifferent; its first copy plays the same."""
    run = begin(**{"wish_entropy": 0.5} | changes)
    agent = run.agent
    wishes = run.args.press == "mutual"
    heads = (agent.wish,) if wishes else (agent.offer, agent.agree, agent.deal)
    if not agent.binding:
        heads += agent.keeping[-1], agent.breach, agent.breaker
    with torch.no_grad():
        for head in (*heads, agent.peace, agent.score):
            head.weight.normal_(0.0, 1.0)
        if wishes and not agent.binding:
            agent.wish.bias += 3  # so that there are deals
    (copy,) = run.pool.agents.values()
    copy.load_state_dict(agent.state_dict())
    return run


play_phase = self_play.play_phase


def figures(run: press.TalkRun) -> dict[str, float]:
    return run.episodes.figures(run.episodes.take())["press"]


def play_until_full(run: press.TalkRun) -> int:
    deals, step = 0, run.games.step

    def judged(orders):
        assert run.press.binding <= (not run.press.judge(orders).any())
        return step(orders)

    run.games.step = judged
    while run.buffer.count.max() < run.args.num_steps:
        play_phase(run)
        deals += int(run.press.deals.dealt.sum())
    return deals


def check_scores(run: press.TalkRun, batch: Batch) -> ppo.Action:
    scored = run.agent.get_action_and_value(*batch.experience)
    np.testing.assert_allclose(scored.logprob.detach(), batch.logprobs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scored.value.detach(), batch.values, rtol=1e-4, atol=1e-4)
    most = 1.5 if run.press.binding else 2  # one half each for talk and for one's word
    assert (scored.entropy.detach().numpy() <= most + 1e-5).all()
    return scored


def share_changed_without(run: press.TalkRun, batch: Batch, name: str) -> float:
    """Return how much of what is due to `name` of the views is likelier or not without it."""
    obs = batch.experience.obs
    due = getattr(obs, name)
    without = batch.experience._replace(obs=obs._replace(**{name: np.zeros_like(due)}))
    other = run.agent.get_action_and_value(*without).logprob.detach().numpy()
    changed = np.abs(other - batch.logprobs) > 1e-3
    assert not changed[~due.any(1)].any()
    return changed[due.any(1)].mean()


@pytest.mark.parametrize("binding", ["yes", "no"])
def test_wishes_and_orders_are_one_decision(binding):
    run = make_run(binding=binding)
    assert play_until_full(run) > 0
    batch = self_play.take_batch(run.buffer, 0.99, 0.95)
    obs = batch.experience.obs
    assert isinstance(obs, TalkViews) and obs.peace.any()
    check_scores(run, batch)
    asked = obs.wish != NONE
    assert not asked[np.arange(len(asked)), obs.power].any(), "of itself"
    assert (obs.peace <= (obs.wish == 1)).all(), "peace without a wish"
    assert ((obs.talk_logprob < 0) == asked.any(1)).all()
    # Where there is peace some lists are shorter than all legal orders.
    assert share_changed_without(run, batch, "peace") > 0.5


@pytest.mark.parametrize("binding", ["yes", "no"])
def test_offers_answers_and_orders_are_one_decision(binding):
    run = make_run(press="offers", num_steps=32, binding=binding)
    assert play_until_full(run) > 0
    batch = self_play.take_batch(run.buffer, 0.99, 0.95)
    obs = batch.experience.obs
    assert isinstance(obs, OfferViews) and obs.peace.any() and (obs.dealt & ~obs.peace).any()
    scored = check_scores(run, batch)
    # The loss of PPO begins with a ratio of 1.
    old = batch.tensors(CPU)
    _, metrics = ppo.ppo_loss(run.args, 0.0, scored, old)
    assert metrics["clipfrac"] == 0 and abs(metrics["approx_kl"]) < 1e-5
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
    assert share_changed_without(run, batch, "dealt") > 0.2


def test_offers_are_drawn_as_often_as_they_are_likely():
    """So are answers; without noise the likeliest are taken, and each has its log-probability."""
    run = make_run(press="offers", num_envs=18)
    for _ in range(6):
        play_phase(run)
    decisions = run.games.decisions()
    talking = decisions.take(run.press.talking()[decisions.game])
    offers = OfferRound(run.press, decisions, who_can_answer(talking, run.seats.member.shape))
    game, power = np.nonzero(offers.able)
    could = offers.question(game, power)[0].any((1, 2))
    game, power = game[could], power[could]
    asked = offers.question(game, power)
    obs = run.games.view_boards(game, power.astype(np.int8))
    agent, n, draws = run.agent, len(game), 600
    assert n > 4
    with torch.no_grad():
        codes = agent.encode_boards(agent.inputs(obs))
        offers, answers = agent.talk_logits(obs, codes, *asked)
    likely, agreeing = offers.softmax(1).numpy(), answers.sigmoid().numpy()
    generator = torch.Generator().manual_seed(2)
    shares, agreed = np.zeros_like(likely), np.zeros(agreeing.shape)
    for _ in range(draws):
        noise = torch.rand(n, 1 + len(run.game_map.powers), generator=generator).numpy()
        choice, logprob, said, said_logprob = agent.sample_talk(obs, *asked, noise)
        shares[np.arange(n), choice] += 1  # NONE is the last
        agreed += said
    np.testing.assert_allclose(shares / draws, likely, atol=0.1)
    heard = asked[2] != NONE
    np.testing.assert_allclose((agreed / draws)[heard], agreeing[heard], atol=0.1)
    assert not agreed[~heard].any()
    np.testing.assert_allclose(logprob, np.log(likely[np.arange(n), choice]), rtol=1e-3, atol=1e-4)
    each = np.log(np.where(said, agreeing, 1 - agreeing))
    np.testing.assert_allclose(said_logprob[heard], each[heard], rtol=1e-3, atol=1e-4)
    choice, _, said, _ = agent.sample_talk(obs, *asked, None)
    column = np.where(choice == NONE, likely.shape[1] - 1, choice)
    assert (column == likely.argmax(1)).all() and (said[heard] == (agreeing > 0.5)[heard]).all()


@pytest.mark.parametrize("protocol", ["mutual", "offers"])
def test_a_player_says_what_the_policy_says_in_training(protocol, monkeypatch):
    run, made = make_run(press=protocol, num_envs=20, binding="no"), 0
    both = set()
    with torch.no_grad():  # more often yes
        if protocol == "mutual":
            seats = np.repeat(np.arange(20), 3), np.tile(np.arange(3, dtype=np.int8), 20)
            obs = run.kind.views.of(run.games.view_boards(*seats), 3)
            codes = run.agent.encode_boards(run.agent.inputs(obs))
            run.agent.wish.bias -= run.agent.wish_logits(obs, codes).min()
        else:
            run.agent.agree.bias += 2
    (copy,) = run.pool.agents.values()
    copy.load_state_dict(run.agent.state_dict())
    player, draw = press.make_player(run.agent, "greedy", greedy=True), type(run.agent).sample_talk

    def likeliest(agent, obs, *asked):
        noise = None if protocol == "offers" else np.full_like(asked[-1], 0.5)
        return draw(agent, obs, *asked[:-1], noise)

    for _ in range(16):
        play_phase(run)
        trained, played = (Press(run.games, protocol, binding=False) for _ in range(2))
        for one in (trained, played):
            one.tally.broken_year[:] = run.press.tally.broken_year
        with monkeypatch.context() as patch:
            patch.setattr(type(run.agent), "sample_talk", likeliest)
            told = run.kind.hold(trained, run, run.games.decisions(), startup.Clock())
        seats = np.zeros(run.seats.member.shape, int)
        negotiate(played, run.games.decisions(), [player], seats)
        assert np.array_equal(trained.deals.dealt, played.deals.dealt)
        assert np.array_equal(trained.deals.peace, played.deals.peace)
        at = np.nonzero(played.deals.dealt.any(2))
        made += len(at[0])
        obs = run.games.view_boards(at[0], at[1].astype(np.int8))
        obs = run.kind.views.of(obs, 3, **{name: array[at] for name, array in told.items()})
        keeps, _ = run.agent.sample_keeps(obs, np.full(len(at[0]), 0.5, np.float32))
        assert np.array_equal(honest_seats([player], seats)[at], keeps == 1)
        both.update(keeps.tolist())
    assert made > 20 and both == {0, 1} and (run.press.tally.broken_year >= 0).any()


def test_the_seed_decides_whether_a_word_is_kept():
    """So a game that was stopped goes on as it would have."""
    player = press.make_player(make_run(press="offers", binding="no").agent, "x")
    game = Game("three", press="offers", binding=False)
    for one, other in combinations(game.powers, 2):
        game.accept(other, game.offer(one, other, peace=True))

    def broken(seed: int) -> bytes:
        orders_by_player(game, player, game.powers, seed)
        return player.breaks_deals.tobytes()

    first, *others = map(broken, (7, *range(16)))
    assert first == broken(7) and len(set(others)) > 1


def test_a_broken_word_is_counted_and_has_a_price():
    def played(cost: float, phases: int = 20) -> press.TalkRun:
        told = {"press": "offers", "binding": "no", "learner_seats": 3, "num_steps": 32}
        run = make_run(break_cost=cost, **told)
        for _ in range(phases):
            play_phase(run)
        return run

    free, priced = played(0), played(2)
    words, kept = (getattr(free.press.tally, name).sum() for name in ("words", "words_kept"))
    assert 0 < kept < words and figures(free)["kept"] == pytest.approx(kept / words)
    paid = free.buffer.transitions["rewards"] - priced.buffer.transitions["rewards"]
    numbers = [run.buffer.transitions["decision"] for run in (free, priced)]
    assert np.array_equal(*numbers) and set(np.unique(paid)) <= {0, 2, 4}
    assert paid.sum() == 2 * (words - kept)
    again, broken = played(0, 0), free.press.tally.broken_year
    again.games.copy_from(free.games, *2 * [np.arange(free.games.num_games)], keep_seeds=True)
    again.memory = tuple(map(np.copy, free.memory))  # as from a checkpoint
    play_phase(again)
    assert (again.press.tally.broken_year >= broken).all() and (broken > 0).any()


def test_a_team_talks_and_is_paid_together_and_who_breaks_its_word_pays_alone():
    def played(cost: float) -> press.TalkRun:
        told = {"press": "offers", "binding": "no", "reward": "center_delta", "num_steps": 32}
        run = make_run(break_cost=cost, teams="ENGLAND+ITALY", num_envs=60, **told)
        for _ in range(14):
            play_phase(run)
        return run

    runs = played(0), played(2)
    learns = runs[0].seats.stream != NONE
    assert (learns[:, 0] == learns[:, 1]).all() and (learns[:, 0] != learns[:, 2]).all()
    assert figures(runs[0])["deals"] > 0
    free, priced = (run.episodes.running[:, 1].reshape(-1, 2)[learns[:, 0]] for run in runs)
    assert free.any() and np.array_equal(*free.T)
    paid = free - priced
    assert set(np.unique(paid)) > {0} and (paid % 2 == 0).all() and not np.array_equal(*paid.T)


def test_the_entropy_of_talk():
    """1 where all is alike, 0 where it is sure: the mean over the offer and the answers."""
    run = make_run(press="offers", seed=2)
    play_until_full(run)
    obs = self_play.take_batch(run.buffer, 0.99, 0.95).experience.obs
    agent = run.agent

    def entropy() -> np.ndarray:
        with torch.no_grad():
            return agent.score_talk(obs, agent.encode(agent.inputs(obs)))[1].numpy()

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


ANY = ("mutual", 1, True), ("offers", 1, True), ("offers", 1, False)
MORE = ("offers", 2, True), ("propose-choose", 1, True), ("mutual", 1, False)


@pytest.mark.parametrize(
    ("protocol", "all_rules"),
    [
        ("offers", ANY),
        *(
            pytest.param(*more, marks=pytest.mark.slow)
            for more in (("offers", MORE), ("mutual", ANY))
        ),
    ],
)
def test_a_checkpoint_plays_with_talk(protocol, all_rules, trained):
    player = load_player(trained(protocol))
    assert isinstance(player, Listener)

    def agreed(other, rules) -> int:
        options = dict(zip(("press", "press_rounds", "binding"), rules))
        result = evaluate_player("three", player, other, 3, max_years=6, **options).result()
        assert result["press"]["kept"] == 1 or (protocol == "offers" and not rules[2])
        return result["press"]["agreed"]

    assert any("press/deals_per_phase" in line for line in metrics(trained(protocol)))
    for rules in all_rules:
        assert agreed(player, rules) > 0, rules
    others = "nash+dumbbot", trained("offers"), trained("mutual")
    found = [agreed(load_player(other), ("offers", 1, True)) for other in others]
    assert protocol == "mutual" or min(found) > 0
    evaluate_player("three", player, load_player("random"), 3, max_years=2)


def test_one_player_that_stands_twice_knows_the_deals_of_all_its_seats(trained):
    """`evaluate_player(m, player, player)` asks it once for each of its two places."""
    player = load_player(trained("mutual"))
    games = VectorGame("three", 40, 1)
    table, decisions = Press(games, "mutual"), games.decisions()
    seats = np.zeros((40, 3), int)
    seats[:, 1:] = 1
    negotiate(table, decisions, [player, player], seats)
    row, power = np.divmod(np.arange(120), 3)
    seen = player.observe(games, row, power).peace
    assert np.array_equal(seen, table.deals.peace[row, power])
    assert seen[power == 0].any() and seen[power > 0].any()


def test_talk_of_another_kind_is_refused(trained, tmp_path, capsys):
    """Bots of the pool do not talk, deals bind in training, and each kind has heads of its own."""
    flags = ["--map", "three", "--processes", "1", "--runs-folder", str(tmp_path / "runs")]
    sizes = ["--hidden", "8", "--num-layers", "1"]
    for more, *words in (
        (["--pool-bots", "nash+dumbbot"], "--pool-bots", "'nash+dumbbot'"),
        (["--eval-bots", "grudge+dumbbot"], "--eval-bots", "'grudge+dumbbot'"),
        (["--wish-entropy", "-1"], "--wish-entropy"),
        (["--break-cost", "0.1"], "--break-cost", "--binding no"),
        (["--start-from", "three-pure-1"], "press.py"),
        (["--start-from", str(trained("offers")), *sizes], "--press", "'offers'"),
    ):
        refused([*flags, *more], *words, capsys=capsys, script=press)
    assert not (tmp_path / "runs").exists()
