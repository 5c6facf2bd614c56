"""Training with talk: talk and orders are one decision, and the policy plays with talk."""

import dataclasses
import itertools
import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import Game, VectorGame, evaluate_player, load_map, load_player
from diplomacy_engine._fields import field_kinds
from diplomacy_engine.constants import NONE
from diplomacy_engine.learning import checkpoint_state, startup
from diplomacy_engine.learning.experience import Batch
from diplomacy_engine.learning.offer_round import OfferRound
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.players.negotiation import Listener, negotiate
from diplomacy_engine.policy.talk_views import (
    SLOTS,
    TEMPLATES,
    OfferViews,
    TalkViews,
    who_can_answer,
)
from diplomacy_engine.press.table import Press, PressRules
from diplomacy_engine.training.settings import _about_fields as about_fields
from diplomacy_learners import press
from tests.support.training import assert_same_run, load, metrics, write_config

VERSION_0_2 = Path(__file__).parent / "version_0_2"
SHORT = {"map": "three", "hidden": 8, "eval_bots": ["coin+random"], "max_years": 3}
ALONE = Ranks()


def begin(**changes) -> tuple[ppo.Run, press.LearnerTalk]:
    """Return a new run on `three`, and its talk."""
    settings = {"map": "three", "num_envs": 12, "learner_seats": 2, "num_steps": 16, "hidden": 8}
    settings |= {"num_layers": 1, "reward": "score", "pool_bots": ()}
    args = press.Args(**settings | changes)
    device = torch.device("cpu")
    return press.begin(startup.Begun(press.LEARNER_HERE, args, load_map("three"), device), ALONE)


def make_run(**changes) -> tuple[ppo.Run, press.LearnerTalk]:
    """Return a run with a policy that is far from indifferent; its first copy plays the same."""
    run, talk = begin(**{"wish_entropy": 0.5} | changes)
    agent = run.agent
    wishes = run.args.press == "mutual"
    heads = (agent.wish,) if wishes else (agent.offer, agent.agree, agent.deal)
    with torch.no_grad():
        for head in (*heads, agent.peace, agent.trunk.score):
            head.weight.normal_(0.0, 1.0)
    (copy,) = run.pool.agents.values()
    copy.load_state_dict(agent.state_dict())
    return run, talk


def play_phase(run: ppo.Run, talk: press.LearnerTalk) -> None:
    """Play one phase as the loop does."""
    result, _ = press.play_phase(run, talk, startup.Clock())
    ppo.pay_learner(run, result)
    rows, _ = ppo.games_over(run, result)
    run.games.reset(rows)
    ppo.assign_seats(run, rows)


def take_batch(run: ppo.Run) -> Batch:
    return run.buffer.take_batch(ppo.compute_gae(run.buffer, 0.99, 0.95))


def figures(talk: press.LearnerTalk) -> dict[str, float]:
    return talk.counts.figures(talk.counts.take())


def main(argv: list[str]) -> int:
    return startup.main(press.LEARNER_HERE, press.train, argv)


def train(folder: Path, *flags: str, **changes) -> Path:
    """Train in a new run folder; return it."""
    folder.mkdir(exist_ok=True)
    before = set(folder.iterdir())
    config = write_config(folder.parent / "tiny.toml", **SHORT | changes)
    assert main(["--config", config, "--runs-folder", str(folder), *flags]) == 0
    (run,) = set(folder.iterdir()) - before
    return run


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, Path]:
    """Return the folder of a run of each kind of talk."""
    runs = tmp_path_factory.mktemp("press") / "runs"
    return {kind: train(runs, press=kind, total_timesteps=200) for kind in press.KINDS}


def play_until_full(run: ppo.Run, talk: press.LearnerTalk) -> int:
    """Play until an update is due, and check that no deal is broken; return how many were made."""
    deals, step = 0, run.games.step

    def judged(orders):
        assert not talk.press.judge(orders).any()
        return step(orders)

    run.games.step = judged
    while run.buffer.count.max() < run.args.num_steps:
        play_phase(run, talk)
        deals += int(talk.press.deals.dealt.sum())
    return deals


def test_wishes_and_orders_are_one_decision():
    """What was drawn is what is scored, the lists are those of play, and no deal is broken."""
    run, talk = make_run()
    assert play_until_full(run, talk) > 0
    batch = take_batch(run)
    obs = batch.experience.obs
    assert isinstance(obs, TalkViews) and obs.peace.any()
    _, logprob, entropy, value = run.agent.get_action_and_value(*batch.experience)
    np.testing.assert_allclose(logprob.detach(), batch.logprobs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(value.detach(), batch.values, rtol=1e-4, atol=1e-4)
    asked = obs.wish != NONE
    assert not asked[np.arange(len(asked)), obs.power].any(), "of itself"
    assert (obs.peace <= (obs.wish == 1)).all(), "peace without a wish"
    assert ((obs.talk_logprob < 0) == asked.any(1)).all()
    assert (entropy.detach().numpy() <= 1.5 + 1e-5).all()
    # Where there is peace some lists are shorter than all legal orders.
    alone = batch.experience._replace(obs=obs._replace(peace=np.zeros_like(obs.peace)))
    other = run.agent.get_action_and_value(*alone)[1].detach().numpy()
    changed = np.abs(other - batch.logprobs) > 1e-3
    assert changed[obs.peace.any(1)].mean() > 0.5 and not changed[~obs.peace.any(1)].any()


def test_offers_answers_and_orders_are_one_decision():
    """As above; all that was offered could be, and only what was offered is answered."""
    run, talk = make_run(press="offers", num_steps=32)
    assert play_until_full(run, talk) > 0
    batch = take_batch(run)
    obs = batch.experience.obs
    assert isinstance(obs, OfferViews) and obs.peace.any() and (obs.dealt & ~obs.peace).any()
    _, logprob, entropy, value = run.agent.get_action_and_value(*batch.experience)
    np.testing.assert_allclose(logprob.detach(), batch.logprobs, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(value.detach(), batch.values, rtol=1e-4, atol=1e-4)
    assert (entropy.detach().numpy() <= 1.5 + 1e-5).all()
    # The loss of PPO begins with a ratio of 1.
    old = batch.tensors(torch.device("cpu"))
    _, losses = ppo.ppo_loss(run.args, 0.0, logprob, entropy, value, old, len(old["values"]))
    losses = dict(zip(ppo.LOSSES, losses.tolist()))
    assert losses["clipfrac"] == 0 and abs(losses["approx_kl"]) < 1e-5
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
    other = run.agent.get_action_and_value(*silent)[1].detach().numpy()
    changed = np.abs(other - batch.logprobs) > 1e-3
    assert changed[obs.dealt.any(1)].mean() > 0.2 and not changed[~obs.dealt.any(1)].any()


def test_offers_are_drawn_as_often_as_they_are_likely():
    """So are answers; without noise the likeliest are taken, and each has its log-probability."""
    run, talk = make_run(press="offers", num_envs=6)
    for _ in range(6):
        play_phase(run, talk)
    decisions = run.games.decisions()
    talking = decisions.take(talk.press.talking()[decisions.game])
    offers = OfferRound(talk.press, decisions, who_can_answer(talking, run.seats.member.shape))
    game, power = np.nonzero(offers.able)
    could = offers.question(game, power)[0].any((1, 2))
    game, power = game[could], power[could]
    asked = offers.question(game, power)
    obs = run.games.view_boards(game, power.astype(np.int8))
    agent, n, draws = run.agent, len(game), 600
    assert n > 4
    with torch.no_grad():
        codes = agent.trunk.encode(agent.inputs(obs))
        offers, answers = agent.talk_logits(obs, codes, *asked)
    likely, agreeing = offers.softmax(1).numpy(), answers.sigmoid().numpy()
    generator = torch.Generator().manual_seed(2)
    shares, agreed = np.zeros_like(likely), np.zeros(agreeing.shape)
    for _ in range(draws):
        noise = torch.rand(n, 1 + len(run.game_map.powers), generator=generator).numpy()
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
def test_a_player_says_what_the_policy_says_in_training(protocol, monkeypatch):
    """Where both say what is likeliest, the same deals come of it."""
    (run, talk), made = make_run(press=protocol, num_envs=20), 0
    with torch.no_grad():  # more often yes
        if protocol == "mutual":
            seats = np.repeat(np.arange(20), 3), np.tile(np.arange(3, dtype=np.int8), 20)
            obs = run.games.view_boards(*seats)
            codes = run.agent.trunk.encode(run.agent.inputs(obs))
            run.agent.wish.bias -= run.agent.wish_logits(obs, codes).min()
        else:
            run.agent.agree.bias += 2
    (copy,) = run.pool.agents.values()
    copy.load_state_dict(run.agent.state_dict())
    player, draw = press.make_player(run.agent, "greedy", greedy=True), type(run.agent).draw_talk

    def likeliest(agent, obs, *asked):
        noise = None if protocol == "offers" else np.full_like(asked[-1], 0.5)
        return draw(agent, obs, *asked[:-1], noise)

    for _ in range(16):
        play_phase(run, talk)
        trained, played = Press(run.games, protocol), Press(run.games, protocol)
        with monkeypatch.context() as patch:
            patch.setattr(type(run.agent), "draw_talk", likeliest)
            talk.hold(talk._replace(press=trained), run, run.games.decisions(), startup.Clock())
        seats = np.zeros(run.seats.member.shape, int)
        negotiate(played, run.games.decisions(), [player], seats)
        assert np.array_equal(trained.deals.dealt, played.deals.dealt)
        assert np.array_equal(trained.deals.peace, played.deals.peace)
        made += int(played.deals.dealt.sum())
    assert made > 20


def test_the_entropy_of_talk():
    """1 where all is alike, 0 where it is sure: the mean over the offer and the answers."""
    run, talk = make_run(press="offers")
    play_until_full(run, talk)
    obs = take_batch(run).experience.obs
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


def test_the_gradient_of_offers_is_that_of_small_steps():
    """Of the heads of offers and answers, of what deals add to orders, and of what these read."""
    run, talk = make_run(press="offers")
    play_until_full(run, talk)
    experience = take_batch(run).take(np.arange(60)).experience
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
    run, talk = begin(press="offers", learner_seats=3, gamma=0.0, ent_coef=0.0, **changes)
    found = []
    for _ in range(10):
        while run.buffer.count.max() < run.args.num_steps:
            result, _ = press.play_phase(run, talk, startup.Clock())
            deals = np.zeros(run.buffer.open.shape, np.float32)
            deals[run.seats.stream] = talk.press.deals.dealt.sum(2)
            run.buffer.pay(sign * deals)
            ppo.pay_learner(run, result)
            rows, _ = ppo.games_over(run, result)
            run.games.reset(rows)
            ppo.assign_seats(run, rows)
        batch = run.buffer.take_batch(ppo.compute_gae(run.buffer, 0.0, run.args.gae_lambda))
        ppo.update(run, batch, 0.0, ALONE)
        found.append(figures(talk)["deals_per_phase"])
    return found


def test_the_gradient_is_that_of_small_steps():
    """Of the wishes' head, of what peace adds to orders, and of the codes that both read."""
    run, talk = make_run()
    play_until_full(run, talk)
    experience = take_batch(run).take(np.arange(40)).experience
    agent = run.agent
    for weight in (agent.wish_own.weight, agent.wish_other.weight, agent.peace.weight):
        check_gradient(agent, experience, weight)


def check_gradient(agent, experience, weight) -> None:
    """Compare the gradient of all log-probabilities with the slope along some direction."""
    found = torch.autograd.grad(agent.get_action_and_value(*experience)[1].sum(), [weight])[0]
    direction = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    direction /= direction.norm()
    sums = []
    for step in (0.02, -0.02):
        with torch.no_grad():
            weight += step * direction
            sums.append(agent.get_action_and_value(*experience)[1].sum().item())
            weight -= step * direction
    slope = (sums[0] - sums[1]) / 0.04
    assert slope == pytest.approx((found * direction).sum().item(), rel=0.05, abs=0.05)


def test_wishes_are_drawn_as_often_as_they_are_likely():
    """The frequency of a wish is its probability; with 0.5 as noise the likelier is taken."""
    run, _ = make_run(num_envs=4)
    games, agent = run.games, run.agent
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
        codes = agent.trunk.encode(agent.inputs(obs))
        likely = agent.wish_logits(obs, codes).sigmoid().numpy()
    np.testing.assert_allclose((shares / draws)[asked], likely[asked], atol=0.08)
    wish, logprob = agent.draw_talk(obs, asked, np.full((12, 3), 0.5, np.float32))
    assert (wish[asked] == (likely > 0.5)[asked]).all()
    each = np.where(wish == 1, likely, 1 - likely)
    np.testing.assert_allclose(logprob, np.log(np.where(asked, each, 1)).sum(1), rtol=1e-4)


def test_a_new_policy_wishes_at_random():
    """Wishes begin near one half, and peace changes no order."""
    run, talk = begin(num_envs=4)
    for _ in range(3):
        play_phase(run, talk)
    assert 0.2 < figures(talk)["wishes"] < 0.8
    assert (run.agent.peace.weight == 0).all()


def test_a_new_policy_offers_at_random():
    """All that it could offer is alike, it agrees to half, and deals change no order."""
    run, talk = begin(press="offers", num_envs=40, learner_seats=1)
    for _ in range(12):
        play_phase(run, talk)
    found = figures(talk)
    assert 0.5 < found["offers"] < 0.95 and 0.3 < found["accepted"] < 0.7
    shares = [found[f"offers/{name}"] for name in TEMPLATES]
    assert sum(shares) == pytest.approx(found["offers"])
    assert found["deals_per_phase"] > 0 and 0 < found["deals"] < 1
    assert (run.agent.peace.weight == 0).all() and (run.agent.deal.weight == 0).all()


def test_what_is_said_is_counted_by_power_and_by_pair():
    """Two games of three powers: in one all talk, in the other ENGLAND alone, to nobody."""
    _, talk = begin(num_envs=2)
    able = np.array([[True] * 3, [True, False, False]])
    wish = np.full((2, 3, 3), NONE, np.int8)
    wish[0] = [[NONE, 1, 0], [1, NONE, 1], [1, 0, NONE]]
    peace = np.zeros((2, 3, 3), bool)
    peace[0, [0, 1], [1, 0]] = True
    learns = np.array([[True, False, True], [True, False, False]])
    talk.counts.add(able, {"wish": wish, "peace": peace}, learns)
    assert figures(talk) == {
        "wishes": 0.5,
        "wishes/ENGLAND_ITALY": 1.0,
        "wishes/ENGLAND_RUSSIA": 0.0,
        "wishes/RUSSIA_ENGLAND": 1.0,
        "wishes/RUSSIA_ITALY": 0.0,
        "deals": pytest.approx(1 / 3),
        "deals/ENGLAND_ITALY": 1.0,
        "deals/ENGLAND_RUSSIA": 0.0,
        "deals/ITALY_RUSSIA": 0.0,
        "deals_per_phase": 1.0,
    }
    assert figures(talk) == {}, "they are forgotten"


def stop_in_phase(patch: pytest.MonkeyPatch, number: int) -> None:
    """Have this process asked to stop while it plays that phase."""
    phases, play = itertools.count(1), press.play_phase

    def stopping(*args):
        if next(phases) == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return play(*args)

    patch.setattr(press, "play_phase", stopping)


@pytest.mark.parametrize(
    ("protocol", "processes"),
    [("mutual", 1), ("offers", 1), pytest.param("offers", 2, marks=pytest.mark.slow)],
)
def test_a_run_that_is_stopped_goes_on_the_same(tmp_path, monkeypatch, protocol, processes):
    """With ranks, two seats, bots and warm-ups, a resumed run is one that never stopped."""
    changes = {
        "press": protocol,
        "processes": processes,
        "learner_seats": 2,
        "warm_up_share": 0.4,
        "pool_bots": ["dumbbot"],
        "total_timesteps": 400,
    }
    whole = train(tmp_path / "whole", **changes)
    with monkeypatch.context() as patch:
        stop_in_phase(patch, 13)
        part = train(tmp_path / "part", **changes)
    assert load(part)["global_step"] < load(whole)["global_step"]
    assert main(["--resume", str(part)]) == 0
    assert_same_run(whole, part)
    assert any("press/deals_per_phase" in line for line in metrics(whole))


def test_a_run_whose_talk_cannot_be_is_not_continued(tmp_path, monkeypatch, capsys):
    """A checkpoint that lacks it, has another kind, or counts below nothing: one sentence."""
    with monkeypatch.context() as patch:
        stop_in_phase(patch, 13)
        run = train(tmp_path / "runs", total_timesteps=250)
    saved = load(run)
    (counts,), (own,) = saved["talk"], saved["ranks"]
    plain = [part | {"obs": dict(list(part["obs"].items())[:5])} for part in own["buffer"]["seen"]]
    assert plain, "some decisions are kept"
    no_talk = own | {"buffer": own["buffer"] | {"seen": plain}}
    capsys.readouterr()
    for bad in (
        {"talk": [{}]},
        {"talk": None},
        {"talk": [counts | {"met": counts["met"] - 10**6}]},
        {"ranks": [no_talk]},
    ):
        torch.save(saved | bad, run / "checkpoint.pt")
        assert main(["--resume", str(run)]) == 2
        err = capsys.readouterr().err
        assert "checkpoint.pt: cannot be continued" in err and err.count("\n") == 1, err
    torch.save(saved, run / "checkpoint.pt")
    assert main(["--resume", str(run)]) == 0


def some_talk(protocol: str) -> tuple:
    """Return what is said and ordered in a position where units meet: views, decisions, chosen.

    It is made up by counting, so that every version says the same.
    """
    games = Game.from_position(
        "three S1901M; ENGLAND A GRE, A GAL = LON GRE; ITALY A VIE, A ALB = ROM VIE; "
        "RUSSIA A SER, A BUD = MOS SER BUD NWY SWE"
    ).vector_game
    decisions = games.decisions()
    lengths = np.diff(decisions.order_start)
    chosen = 7 * np.arange(len(lengths)) % lengths
    power = np.arange(3)
    game, other = np.zeros(3, np.int64), power != power[:, None]
    views, yes = games.view_boards(game, power), (power + 2 * power[:, None]) % 2
    peace = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], bool)
    if protocol == "mutual":
        wish = np.where(other, yes, NONE).astype(np.int8)
        return TalkViews.of(views, wish, np.zeros(3, np.float32), peace), decisions, chosen
    offers = OfferRound(Press(games, protocol), decisions, who_can_answer(decisions, (1, 3)))
    able, places, kinds, about = offers.question(game, power)
    last = kinds.argmax(2)[..., None]
    heard = np.take_along_axis(kinds, last, 2)[..., 0].astype(np.int8)
    told = {"able": able, "places": places, "heard": heard, "peace": peace, "dealt": other}
    told["choice"] = able.reshape(3, -1).argmax(1).astype(np.int16)
    told["choice"][2] = NONE
    told["heard_places"] = np.take_along_axis(about, last[..., None], 2)[:, :, 0]
    told["answer"] = np.where(heard == NONE, NONE, yes).astype(np.int8)
    return OfferViews.of(views, 3, **told), decisions, chosen


@pytest.mark.parametrize("protocol", ["mutual", "offers"])
def test_a_policy_of_version_0_2_scores_as_it_did(protocol):
    """A trunk with heads has the weights of what was one network then."""
    path = VERSION_0_2 / f"{protocol}.pt"
    before = json.loads((VERSION_0_2 / "scores.json").read_text())[protocol]
    agent = load_player(path).agent.agent
    with torch.no_grad():
        _, *found = agent.get_action_and_value(*some_talk(protocol))
    np.testing.assert_allclose(torch.stack(found), before, rtol=1e-4, atol=1e-5)
    rules = PressRules(protocol)
    match = evaluate_player("three", load_player(path), load_player(path), 3, press=rules)
    assert match.result()["press"]["agreed"] > 0


def test_a_checkpoint_plays_with_talk(trained):
    """A trained policy wishes, offers and answers in matches, and plays without talk, too."""
    path = trained["mutual"] / "checkpoint.pt"
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


def test_one_player_that_stands_twice_knows_the_deals_of_all_its_seats(trained):
    """`evaluate_player(m, player, player)` asks it once for each of its two places."""
    player = load_player(trained["mutual"], seed=1)
    games = VectorGame("three", 40, 1)
    table, decisions = Press(games, "mutual"), games.decisions()
    seats = np.zeros((40, 3), int)
    seats[:, 1:] = 1
    negotiate(table, decisions, [player, player], seats)
    row, power = np.divmod(np.arange(120), 3)
    seen = player.observe(games, row, power).peace
    assert np.array_equal(seen, table.deals.peace[row, power])
    assert seen[power == 0].any() and seen[power > 0].any()


def test_a_checkpoint_plays_with_offers(trained):
    """It offers and answers in matches, by any protocol, against bots and policies of wishes."""
    path = trained["offers"] / "checkpoint.pt"
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
    for other in ("nash+dumbbot", trained["mutual"]):
        result = evaluate_player(
            "three", player, load_player(other), 3, max_years=8, press=rules
        ).result()
        assert result["press"]["agreed"] > 0, other
    greedy = load_player(path, greedy=True)
    found = [
        evaluate_player("three", greedy, greedy, 3, max_years=2, press=rules).result()
        for _ in range(2)
    ]
    assert found[0] == found[1]


def refuses(run: ppo.Run, saved: dict, number: int, **changes: torch.Tensor) -> None:
    """Check that a buffer is restored, and not where the talk of a part is changed."""
    part = saved["seen"][number]
    for seen, sound in ((part, True), (part | {"obs": part["obs"] | changes}, False)):
        parts = [*saved["seen"][:number], seen, *saved["seen"][number + 1 :]]
        buffer = ppo.Buffer(*run.buffer.rewards.shape)
        if sound:
            checkpoint_state.restore(buffer, saved | {"seen": parts}, run.games)
            continue
        with pytest.raises(ValueError, match="a decision has"):
            checkpoint_state.restore(buffer, saved | {"seen": parts}, run.games)


def test_offers_in_hostile_checkpoints():
    """Talk that cannot be is refused, and so are counts."""
    run, talk = make_run(press="offers")
    for _ in range(8):
        play_phase(run, talk)
    saved = checkpoint_state.pack(run.buffer)
    bad_values = {
        "places": (-2, 37),
        "choice": (-2, 3 * SLOTS, 0),
        "heard": (-2, len(TEMPLATES)),
        "heard_places": (-2, 37),
        "answer": (-2, 2, 1),
        "talk_logprob": (1, np.nan),
    }
    silent = [~part.obs.able.any((1, 2)) for part in run.buffer.seen]
    number = next(number for number, rows in enumerate(silent) if rows.any())
    row = int(silent[number].argmax())
    for name, values in bad_values.items():
        for bad in values:
            array = saved["seen"][number]["obs"][name].clone()
            array[row] = bad
            refuses(run, saved, number, **{name: array})
    check_counts(talk, {"chances": 0.5}, {"offered": torch.zeros(1)}, {"heard": negative})


def test_wishes_in_hostile_checkpoints():
    """Wishes that cannot be are refused, and so are counts."""
    run, talk = make_run()
    for _ in range(4):
        play_phase(run, talk)
    saved = checkpoint_state.pack(run.buffer)
    for name, bad in (("wish", 2), ("talk_logprob", 1), ("talk_logprob", np.nan)):
        array = saved["seen"][0]["obs"][name].clone()
        array[0] = bad
        refuses(run, saved, 0, **{name: array})
    refuses(run, saved, 0, peace=saved["seen"][0]["obs"]["peace"][:1])
    check_counts(talk, {"phases": None}, {"met": torch.zeros(1, 1)}, {"asked": negative})


def negative(counts: torch.Tensor) -> torch.Tensor:
    return -1 - counts


def check_counts(talk: press.LearnerTalk, *changes: dict) -> None:
    """Check that counts are restored as they were, and not with such changes."""
    games, saved = talk.press.games, checkpoint_state.pack(talk.counts)
    counts = type(talk.counts)(games.map.powers)
    checkpoint_state.restore(counts, saved, games)
    assert counts.figures(counts.take()) == figures(talk)
    for change in changes:
        bad = {name: new(saved[name]) if callable(new) else new for name, new in change.items()}
        with pytest.raises(ValueError):
            checkpoint_state.restore(type(talk.counts)(games.map.powers), saved | bad, games)


def test_silent_voices_are_refused(tmp_path, capsys):
    """Bots of the pool do not talk; a policy without a head for wishes is none to begin with."""
    flags = ["--map", "three", "--processes", "1", "--runs-folder", str(tmp_path)]
    refusals = (
        (["--pool-bots", "nash+dumbbot"], "would have nobody to talk to"),
        (["--start-from", "runs/reference/three__pure__1"], "does not fit press.py"),
        (["--wish-entropy", "-1"], "--wish-entropy must be"),
        (
            ["--eval-bots", "grudge+dumbbot"],
            "'grudge+dumbbot' has no effect: deals are binding in training",
        ),
    )
    for more, words in refusals:
        assert main([*flags, *more]) == 2
        assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_two_kinds_of_talk_are_not_mixed(trained, tmp_path, capsys):
    """A run with offers neither begins nor goes on with a policy of wishes, and no reverse."""
    wishing, offering = map(str, trained.values())
    flags = ["--processes", "1", "--runs-folder", str(tmp_path / "none")]
    refusals = (
        ([*flags, "--press", "offers", "--start-from", wishing], "--press is 'mutual' there"),
        ([*flags, "--start-from", offering], "--press is 'offers' there and mutual here"),
        (["--resume", wishing, "--press", "offers"], "--press cannot be changed on resume"),
        ([*flags, "--map", "three", "--press", "peace"], "--press must be"),
    )
    for argv, words in refusals:
        assert main(argv) == 2
        err = capsys.readouterr().err
        assert words in err and err.count("\n") == 1, err
    changed = shutil.copytree(wishing, tmp_path / "changed")
    args = changed / "args.json"
    args.write_text(args.read_text().replace('"mutual"', '"offers"'))
    assert main(["--resume", str(changed)]) == 2
    assert "made with press 'mutual', but args.json" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_flags_are_those_of_the_script():
    """Those of one name have one sentence, range and default; the others are of talk."""
    ours, theirs = field_kinds(press.Args), field_kinds(ppo.Args)
    assert ours.keys() - theirs.keys() == {"press", "wish_entropy"}
    about = [about_fields(args_class) for args_class in (press.Args, ppo.Args)]
    defaults = [dataclasses.asdict(args_class()) for args_class in (press.Args, ppo.Args)]
    for name in ours.keys() & theirs.keys() - {"exp_name"}:
        assert ours[name] == theirs[name], name
        assert defaults[0][name] == defaults[1][name], name
        assert about[0][name][1] == about[1][name][1].removesuffix("; with --teams one team"), name
    fixed = theirs.keys() - ours.keys()
    assert {name: getattr(press.Args, name) for name in fixed} == {
        name: defaults[1][name] for name in fixed
    }, "what has no flag is as the script has it"


def test_help_names_every_setting(capsys):
    """The settings of the trainer and of talk are explained."""
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert "--wish-entropy" in text and "weight of the entropy of wishes" in text
    assert "--press" in text and "mutual: peace where two" in text
    assert "--learner-seats" in text and "seats of each game that the learner plays" in text
