"""Self-play PPO with talk: before each movement phase powers wish for peace, or offer deals.

    python -m diplomacy_learners.press --map three                  # learns to wish for peace
    python -m diplomacy_learners.press --map three --press offers   # learns to offer and to answer
    python -m diplomacy_engine evaluate --map three --press mutual \\
        --player runs/three__press...  --against peaceful+dumbbot

A decision is a power's talk and its orders. Orders are sampled from those that keep the deals, or
with --binding no (docs/press.md) from all orders unless the power chooses to keep its deals. A
decision has one log-probability, of its talk and its orders; everything else is as in
ppo_selfplay_diplomacy.py, which has no talk. Shapes are named as there.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import Decisions
from diplomacy_engine.constants import NONE
from diplomacy_engine.games.observation import BoardViews
from diplomacy_engine.learning import ops, registry, startup
from diplomacy_engine.learning.boards import Boards, Codes, Orders, on_device
from diplomacy_engine.learning.experience import Experience
from diplomacy_engine.learning.players import AgentNetwork
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.learning.startup import Clock
from diplomacy_engine.press.negotiators.policies import OfferingPlayer, WishingPlayer, talk_noise
from diplomacy_engine.press.negotiators.templates import deal_offers, possible_deals
from diplomacy_engine.press.press import Press
from diplomacy_engine.press.talk_views import (
    SLOTS,
    TEMPLATE_OF,
    TEMPLATES,
    OfferViews,
    TalkViews,
    WithTalk,
    silence,
    who_can_answer,
)
from diplomacy_engine.records import OnlyIf
from diplomacy_engine.rules.game_rules import RuleOptions
from diplomacy_engine.rules.state import Salt
from diplomacy_learners._talk_counts import OfferCounts, TalkEpisodes, WishCounts
from diplomacy_learners._teams import TeamArgs, TeamRun
from ppo_selfplay_diplomacy import AT_RANDOM, LEARNER, Run

# The talk of TalkViews or OfferViews by name, of every seat: (E, P, ...).
PhaseTalk = dict[str, np.ndarray]


@OnlyIf("where powers talk, they support each other", lambda args: False).for_all("cross_support")
@dataclass(frozen=True)
class Args(TeamArgs):
    """Settings: those of ppo_selfplay_diplomacy.py, those of teams, and four of talk."""

    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    press: Literal["mutual", "offers"] = "mutual"
    """mutual: peace if both powers wish it; offers: one offer a phase, which the receiver
    answers"""
    wish_entropy: ppo.Weight = 1.0
    """weight of the entropy of wishes, or of offers and answers, relative to that of orders"""
    binding: Literal["yes", "no"] = "yes"
    """no: deals may be broken; each power chooses in each phase whether it keeps its deals"""
    break_cost: Annotated[
        ppo.Weight, OnlyIf("it needs --binding no", lambda args: args.binding == "no")
    ] = 0.0
    """penalty of a power for each partner with which it breaks deals in a phase"""


class TalkCodes(NamedTuple):
    """The codes of boards (learning.boards.Codes), and an embedding of each decision's deals."""

    provinces: torch.Tensor  # (G, V, H)
    powers: torch.Tensor  # (G, P, 3 H)
    view: torch.Tensor  # (D, 3 H)
    deals: torch.Tensor  # (D, H), added to the context of a decision's orders
    obs: TalkViews | OfferViews  # (D,), with the talk so far


class TalkingAgent(ppo.Agent):
    """The script's network, with talk before the orders of a decision.

    A class with heads for one kind of talk has `sample_talk`, `score_talk` and `deals`. Where deals
    are not `binding` it sees which powers broke a deal with it, and has a head that chooses whether
    it keeps its deals.
    """

    wish_entropy = 1.0  # that of the settings while it learns

    def __init__(self, game_map: engine.Map, *network, binding: bool = True):
        super().__init__(game_map, *network)
        self.binding, hidden = binding, self.power.embedding_dim
        if not binding:
            last = ppo.layer_init(nn.Linear(hidden, 1), 0.01)  # begins near one half
            self.keeping = nn.Sequential(
                ppo.layer_init(nn.Linear(4 * hidden, hidden)), nn.ReLU(), last
            )
            self.breach = nn.Linear(1, hidden, bias=False)
            self.breaker = nn.Linear(3 * hidden, hidden, bias=False)
            nn.init.zeros_(self.breach.weight)
            nn.init.zeros_(self.breaker.weight)

    def encode_boards(self, boards: Boards) -> Codes:
        return super().encode(boards)

    def encode(self, boards: Boards) -> TalkCodes:
        codes, obs = self.encode_boards(boards), boards.views
        deals = self.deals(obs, codes)
        if not self.binding:
            row = on_device(obs.row, codes.view.device)
            breakers = self.breaker(codes.powers).index_select(0, row)  # (D, P, H)
            deals = deals + (self.memory(obs) * breakers).sum(1)
        return TalkCodes(*codes, deals, obs)

    def memory(self, obs: TalkViews | OfferViews) -> torch.Tensor:
        """Return how fresh each power's last breach of a deal is, (D, P, 1): from 1 on less with
        each year, 0 without any."""
        fresh = np.where(obs.breaches == NONE, 0, 1 / np.maximum(1 + obs.breaches, 1))
        return on_device(fresh.astype(np.float32)[..., None], self.power.weight.device)

    def keep_logits(self, codes: TalkCodes) -> torch.Tensor:
        return self.keeping(torch.cat([codes.view, codes.deals], 1)).squeeze(1)

    @torch.no_grad()
    def sample_keeps(
        self, obs: TalkViews | OfferViews, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each power keeps its deals, (D,) int8, and the log-probabilities, by
        `noise` (D,) in (0, 1)."""
        logits = self.keep_logits(self.encode(self.inputs(obs))).float().cpu()
        keeps = (torch.from_numpy(noise) < logits.sigmoid()).numpy().astype(np.int8)
        return keeps, answers_logprob_entropy(logits, keeps)[0].numpy()

    def order_tables(self, codes: TalkCodes, orders: Orders) -> ops.OrderTables:
        tables = super().order_tables(codes, orders)
        return tables._replace(context=tables.context + codes.deals)

    def get_value(self, obs: BoardViews) -> torch.Tensor:
        return self.critic(self.encode_boards(self.inputs(obs)).view).squeeze(-1)

    def get_action(
        self, codes: TalkCodes, orders: Orders, noise=None, temperature=None
    ) -> ppo.Action:
        """Draw orders after the talk, or score those that are given, and the talk.

        As of the script's network; but the log-probability is that of talk and orders, and the
        entropy is the sum of that of the orders and, times `wish_entropy`, of the talk.
        """
        action = super().get_action(codes, orders, noise, temperature)
        if orders.picked is None:
            of_talk = on_device(codes.obs.talk_logprob, action.logprob.device)
            return action._replace(logprob=action.logprob + of_talk)
        of_talk, talk_entropy = self.score_talk(codes.obs, codes)
        if not self.binding:
            of_keeping = answers_logprob_entropy(self.keep_logits(codes), codes.obs.keeps)
            of_talk, talk_entropy = of_talk + of_keeping[0], talk_entropy + of_keeping[1]
        entropy = action.entropy + self.wish_entropy * talk_entropy
        return action._replace(logprob=action.logprob + of_talk, entropy=entropy)


class WishingAgent(TalkingAgent):
    """The network with a head for wishes; its orders depend on the powers at peace with it."""

    def __init__(self, game_map: engine.Map, *network, **options: bool):
        super().__init__(game_map, *network, **options)
        hidden = self.power.embedding_dim
        self.wish_own = ppo.layer_init(nn.Linear(3 * hidden, hidden))
        self.wish_other = ppo.layer_init(nn.Linear(3 * hidden, hidden, bias=False))
        self.wish = ppo.layer_init(nn.Linear(hidden, 1), 0.01)  # begins near one half
        self.peace = nn.Linear(3 * hidden, hidden, bias=False)
        nn.init.zeros_(self.peace.weight)

    def wish_logits(self, obs: TalkViews, codes: Codes | TalkCodes) -> torch.Tensor:
        row = on_device(obs.row, codes.view.device)
        others = self.wish_other(codes.powers).index_select(0, row)  # (D, P, H)
        others = others if self.binding else others + self.breach(self.memory(obs))
        return self.wish(F.relu(self.wish_own(codes.view).unsqueeze(1) + others)).squeeze(-1)

    def deals(self, obs: TalkViews, codes: Codes) -> torch.Tensor:
        device = codes.view.device
        row, peace = (on_device(array, device) for array in (obs.row, obs.peace))
        partners = self.peace(codes.powers).index_select(0, row)  # (D, P, H)
        return (peace.to(partners.dtype).unsqueeze(-1) * partners).sum(1)

    @torch.no_grad()
    def sample_talk(
        self, obs: TalkViews, wishing: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return each power's wishes for peace, (D, P) int8, and their log-probability (D,).

        A wish is 1, none 0, and NONE where not `wishing` (D, P). It is drawn by `noise` (D, P) in
        (0, 1); with 0.5 everywhere it is what is likelier.
        """
        logits = self.wish_logits(obs, self.encode_boards(self.inputs(obs))).float().cpu()
        wish = torch.from_numpy(noise) < logits.sigmoid()
        wish = np.where(wishing, wish.numpy(), NONE).astype(np.int8)
        return wish, answers_logprob_entropy(logits, wish)[0].sum(1).numpy()

    def score_talk(self, obs: TalkViews, codes: TalkCodes) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability (D,) of the wishes, and their mean entropy (0..1)."""
        logprob, entropy = answers_logprob_entropy(self.wish_logits(obs, codes), obs.wish)
        num_wishes = on_device(obs.wish != NONE, entropy.device).sum(1)
        return logprob.sum(1), entropy.sum(1) / num_wishes.clamp(min=1)


class OfferingAgent(TalkingAgent):
    """The network with heads for offers and answers; its orders depend on its deal partners.

    An offer is scored from the codes of both powers, what kind it is, and the codes of the
    provinces it is about: from where and to where a unit moves, and who supports it.
    """

    def __init__(self, game_map: engine.Map, *network, **options: bool):
        super().__init__(game_map, *network, **options)
        hidden = self.power.embedding_dim
        self.deal_own = ppo.layer_init(nn.Linear(3 * hidden, hidden))
        self.deal_other = ppo.layer_init(nn.Linear(3 * hidden, hidden, bias=False))
        self.deal_places = ppo.layer_init(nn.Linear(3 * hidden, hidden, bias=False))
        self.deal_kinds = nn.Embedding(2 * len(TEMPLATES) + 1, hidden)  # offered, heard, nothing
        nn.init.normal_(self.deal_kinds.weight, std=0.3)
        self.offer = ppo.layer_init(nn.Linear(hidden, 1), 0.01)  # begins with all alike
        self.agree = ppo.layer_init(nn.Linear(hidden, 1), 0.01)  # begins near one half
        self.peace, self.deal = (nn.Linear(3 * hidden, hidden, bias=False) for _ in range(2))
        nn.init.zeros_(self.peace.weight)
        nn.init.zeros_(self.deal.weight)

    def talk_logits(
        self,
        obs: OfferViews,
        codes: Codes | TalkCodes,
        able: np.ndarray,
        places: np.ndarray,
        heard: np.ndarray,
        heard_places: np.ndarray,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits (D, P * SLOTS + 1) of what D powers can offer, those of nothing last,
        and (D, P, any) of agreeing to what they have `heard`: templates, NONE for nothing, about
        `heard_places` (D, P, any, PLACES). `able` and `places` are as in OfferViews."""
        x, powers, view, device = *codes[:3], codes.view.device
        # All deals in one list, first what can be offered, then what is heard.
        d, q, slot = np.nonzero(able)
        to, sender, k = np.nonzero(heard != NONE)
        at, power = np.concatenate([d, to]), np.concatenate([q, sender])
        about = np.concatenate([places[d, q, slot], heard_places[to, sender, k]]).astype(np.int64)
        kind = np.concatenate([TEMPLATE_OF[slot], heard[to, sender, k] + len(TEMPLATES)])
        row = obs.row[at]
        # The sum of their codes: provinces, kind, both powers.
        rows = np.where(about == NONE, 0, row[:, None] * x.shape[1] + about)
        is_place = on_device(about != NONE, device).to(x.dtype).view(-1, 1)
        deals = (rows_of(x.flatten(0, 1), rows) * is_place).view(len(at), 2, 3 * x.shape[-1]).sum(1)
        deals = self.deal_places(deals)  # a swap's two moves are added up
        # Most decisions have nothing to say.
        speaker, of_speaker = np.unique(at, return_inverse=True)
        partner, of_partner = np.unique(row * powers.shape[1] + power, return_inverse=True)
        own = self.deal_own(rows_of(view, speaker))
        deals = deals + rows_of(own, of_speaker) + rows_of(self.deal_kinds.weight, kind)
        if not self.binding:
            deals = deals + self.breach(self.memory(obs))[at, power]
        others = self.deal_other(rows_of(powers.flatten(0, 1), partner))
        offered, answered = F.relu(deals + rows_of(others, of_partner)).split([len(d), len(to)])
        nothing = F.relu(own + self.deal_kinds.weight[-1])
        last = powers.shape[1] * SLOTS
        offers = x.new_full((len(able), last + 1), -torch.inf)
        offers[:, last] = 0
        columns = np.concatenate([q * SLOTS + slot, np.full(len(speaker), last)])
        where = [on_device(i, device) for i in (np.concatenate([d, speaker]), columns)]
        offers = offers.index_put(where, self.offer(torch.cat([offered, nothing])).squeeze(-1))
        where = [on_device(index, device) for index in (to, sender, k)]
        answers = x.new_zeros(heard.shape).index_put(where, self.agree(answered).squeeze(-1))
        return offers, answers

    def deals(self, obs: OfferViews, codes: Codes) -> torch.Tensor:
        added = codes.view.new_zeros(len(obs.row), self.deal.out_features)
        for partners, layer in ((obs.peace, self.peace), (obs.dealt, self.deal)):
            at, power = np.nonzero(partners)
            partner = rows_of(codes.powers.flatten(0, 1), obs.row[at] * partners.shape[1] + power)
            added = added.index_add(0, on_device(at, added.device), layer(partner))
        return added

    @torch.no_grad()
    def sample_talk(
        self,
        obs: OfferViews,
        able: np.ndarray,
        places: np.ndarray,
        heard: np.ndarray,
        heard_places: np.ndarray,
        noise: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Choose what each power offers, and whether it would agree to what it could be offered, by
        `noise` (D, 1 + P) in (0, 1); None: the likeliest. Returns power * SLOTS + slot of each
        offer (D,), or NONE; its log-probability; what is agreed to (D, P, any), and the
        log-probabilities of that."""
        codes = self.encode_boards(self.inputs(obs))
        logits = self.talk_logits(obs, codes, able, places, heard, heard_places)
        offers, answers = (part.float().cpu() for part in logits)
        logprobs, last = offers.log_softmax(1), offers.shape[1] - 1
        if noise is None:
            choice, noise = offers.argmax(1), np.full((len(able), 2), 0.5, np.float32)
        else:
            drawn = torch.from_numpy(noise[:, :1]).contiguous()
            choice = torch.searchsorted(logprobs.exp().cumsum(1), drawn, right=True).squeeze(1)
            choice = choice.clamp(max=last)
        logprob = logprobs.gather(1, choice.unsqueeze(1)).squeeze(1)
        agreed = (torch.from_numpy(noise[:, 1:, None]) < answers.sigmoid()).numpy()
        answer = np.where(heard == NONE, NONE, agreed).astype(np.int8)
        choice = np.where(choice == last, NONE, choice).astype(np.int16)
        answer_logprob = answers_logprob_entropy(answers, answer)[0].numpy()
        return choice, logprob.numpy(), answer == 1, answer_logprob

    def score_talk(self, obs: OfferViews, codes: TalkCodes) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability (D,) of offer and answers, and their mean entropy (0..1)."""
        heard = obs.heard[:, :, None], obs.heard_places[:, :, None]
        offers, answers = self.talk_logits(obs, codes, obs.able, obs.places, *heard)
        logprobs = offers.log_softmax(1)
        choice = np.where(obs.choice == NONE, offers.shape[1] - 1, obs.choice).astype(np.int64)
        choice = on_device(choice, offers.device).unsqueeze(1)
        possible = torch.isfinite(logprobs)
        each = -torch.where(possible, logprobs.exp() * logprobs.masked_fill(~possible, 0), 0.0)
        count = possible.sum(1)
        share = each.sum(1) / count.clamp(min=2).log()
        logprob, entropy = answers_logprob_entropy(answers.squeeze(-1), obs.answer)
        num_choices = on_device(obs.answer != NONE, offers.device).sum(1) + (count > 1)
        of_offer = logprobs.gather(1, choice).squeeze(1)
        return of_offer + logprob.sum(1), (share + entropy.sum(1)) / num_choices.clamp(min=1)


def rows_of(table: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
    return table.index_select(0, on_device(rows.ravel(), table.device))


def answers_logprob_entropy(
    logits: torch.Tensor, answer: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log-probabilities of answers of yes (1) and no (0), and their entropies (0..1), in
    the shape of the answers; 0 for those that are NONE and were not asked for."""
    answer = on_device(answer, logits.device)
    is_answer, sign = (answer != NONE).to(logits.dtype), torch.where(answer == 1, 1.0, -1.0)
    logprob, share = is_answer * F.logsigmoid(sign * logits), logits.sigmoid()
    each = -(share * F.logsigmoid(logits) + (1 - share) * F.logsigmoid(-logits)) / np.log(2)
    return logprob, is_answer * each


class TalkRun(TeamRun):
    REBUILT = (*TeamRun.REBUILT, "kind", "phase_talk", "broken")
    OF_RANK = (*TeamRun.OF_RANK, "memory", "counts")
    args: Args

    def __init__(self, setup: startup.Setup, ranks: Ranks):
        super().__init__(setup, ranks)
        self.agent.wish_entropy = self.args.wish_entropy
        self.kind = KINDS[self.args.press]
        self.counts = self.kind.counts(self.game_map.powers)
        self.games.rules = replace(self.games.rules, **rules_of(self.args))
        self.memory = self.press.memory
        # What is said in this phase, and the words that it breaks, (E, P, P).
        self.phase_talk: PhaseTalk = {}
        self.broken = np.zeros(self.press.deals.dealt.shape, bool)
        self.episodes = TalkEpisodes(len(self.buffer.open), self.reward.parts, self.counts)

    @cached_property
    def press(self) -> Press:
        return Press(self.games)

    def observe(self, agent: nn.Module, rows: np.ndarray, powers: np.ndarray) -> WithTalk:
        """Return an agent's observations of boards and talk of games `rows` (n,) as `powers`."""
        talk = {name: array[rows, powers] for name, array in self.phase_talk.items()}
        obs = agent.observe(self.games, rows, powers)
        return self.kind.views.of(obs, self.games.num_powers, **talk)

    def ask_for_orders(
        self, decisions: Decisions, clock: Clock
    ) -> tuple[np.ndarray, Experience, ppo.Action]:
        """Let all talk, then ask for the orders that their deals leave them.

        Where words need not be kept, each says first whether it keeps its own.
        """
        press = self.press
        press.remember(*self.memory)  # another one's after a checkpoint
        self.memory = press.memory
        self.phase_talk = talk = self.kind.hold(press, self, decisions, clock)
        if press.binding:
            return super().ask_for_orders(press.bound(decisions), clock)
        keeps = talk["keeps"] = np.full(self.seats.member.shape, NONE, np.int8)
        bound = decisions.take(press.deals.dealt[decisions.game, decisions.power].any(1))
        for agent, game, power in speakers(self, bound):
            obs = self.observe(agent, game, power)
            noise = talk_noise(self.games, game, power, Salt.KEEPS, 1)[:, 0]
            with clock("inference"):
                keeps[game, power], logprob = agent.sample_keeps(obs, noise)
            talk["talk_logprob"][game, power] += logprob
        orders, experience, action = super().ask_for_orders(
            press.bound(decisions, keeps != 0), clock
        )
        self.broken = press.judge(orders, decisions) > 0
        return orders, experience, action

    def store(self, experience: Experience, action: ppo.Action, orders: np.ndarray) -> None:
        """Keep the learner's decisions; those that break its word pay `break_cost`."""
        super().store(experience, action, orders)
        if self.press.binding:
            return
        learns = self.seats.stream != NONE
        self.counts.add_words(self.press.deals.dealt[learns], self.broken[learns])
        row, power = np.nonzero(learns & self.broken.any(2))
        streams = self.seats.stream[row, power]
        costs = -self.args.break_cost * self.broken.sum(2)[row, power]
        self.buffer.pay(streams, costs)
        self.episodes.pay(streams, costs)

    def evaluate(self, ranks: Ranks, log: startup.RunLog, last: bool, **options: object) -> None:
        super().evaluate(ranks, log, last, **options, **rules_of(self.args), think=None)


def rules_of(args: Args) -> RuleOptions:
    rules: RuleOptions = {"press": args.press, "press_rounds": 1, "break_cost": args.break_cost}
    return {**rules, "binding": args.binding == "yes"}


def speakers(run: Run, talking: Decisions) -> Iterator[tuple[TalkingAgent, np.ndarray, np.ndarray]]:
    """Yield each network that talks, with the games (n,) and powers (n,) in which it does.

    Bots and powers that order at random are silent.
    """
    at = talking.game, talking.power
    member = np.where(run.seats.random_phases[at] > 0, AT_RANDOM, run.seats.member[at])
    for number, agent in {LEARNER: run.agent, **run.pool.agents}.items():
        mine = np.flatnonzero(member == number)
        if len(mine):
            yield agent, talking.game[mine], talking.power[mine]


def hold_wishes(press: Press, run: TalkRun, decisions: Decisions, clock: Clock) -> PhaseTalk:
    games, powers = run.games, np.arange(run.games.num_powers)
    talking = decisions.take(press.talking()[decisions.game])
    able, breaches = who_can_answer(talking, run.seats.member.shape), breaches_of(press)
    wish = np.full((*able.shape, len(powers)), NONE, np.int8)
    logprob = np.zeros(able.shape, np.float32)
    for agent, game, power in speakers(run, talking):
        others = able[game] & (powers != power[:, None])
        obs = agent.observe(games, game, power)
        noise = talk_noise(games, game, power, Salt.WISHES, len(powers))
        obs = run.kind.views.of(obs, len(powers), breaches=breaches[game, power])
        with clock("inference"):
            wish[game, power], logprob[game, power] = agent.sample_talk(obs, others, noise)
    talk = {"wish": wish, "talk_logprob": logprob, "peace": press.deals.peace}
    talk["breaches"] = breaches
    if talking.count:
        press.propose(wish == 1)
        run.counts.add(able, talk, run.seats.stream != NONE)
    return talk


class OfferRound:
    """One round of offers in all games; all powers that are asked talk at once.

    Each power is asked once for its offer and its answers to all possible offers, so its board is
    encoded once. `able` (E, P): powers that can talk; `talk`: the talk of OfferViews of every seat,
    (E, P, ...).
    """

    def __init__(self, press: Press, decisions: Decisions, able: np.ndarray):
        self.press, self.decisions, self.able = press, decisions, able
        games, rows = press.games, np.flatnonzero(able.any(1))
        self.row = np.full(len(able), NONE)
        self.row[rows] = np.arange(len(rows))
        self.possible = possible_deals(games, decisions, rows)
        self.asked = np.zeros(able.shape, bool)
        talk = silence(OfferViews, able.size, games.num_powers).items()
        self.talk = {name: array.reshape(*able.shape, *array.shape[1:]) for name, array in talk}
        self.talk["peace"], self.talk["dealt"] = press.deals.peace, press.deals.dealt
        # By receiver and sender: offers that would be accepted, and the answers' log-probabilities.
        self.agreed = np.zeros(self.possible.able.shape, bool)
        self.answer_logprob = np.zeros(self.agreed.shape, np.float32)

    def question(self, game: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the possible offers of powers (n,) of games (n,) to each other power, with places.

        Then the templates that each other one can offer them, or NONE, and their places.
        """
        row, able, places = self.row[game], self.possible.able, self.possible.places
        self.asked[game, power] = True
        self.talk["able"][game, power] = able[row, power]
        self.talk["places"][game, power] = places[row, power]
        heard = np.where(able[row, :, power], TEMPLATE_OF, NONE)
        return able[row, power], places[row, power], heard, places[row, :, power]

    def note(
        self,
        game: np.ndarray,
        power: np.ndarray,
        choice: np.ndarray,
        logprob: np.ndarray,
        agreed: np.ndarray,
        answer_logprob: np.ndarray,
    ) -> None:
        """Keep the talk of powers (n,) of games (n,).

        `choice` (n,) is power * SLOTS + slot of what is offered, or NONE; `agreed` (n, P, SLOTS)
        what they would agree to.
        """
        self.talk["choice"][game, power] = choice
        self.talk["talk_logprob"][game, power] = logprob
        self.agreed[self.row[game], power] = agreed
        self.answer_logprob[self.row[game], power] = answer_logprob

    def settle(self) -> None:
        """Make deals of the accepted offers; powers that were not asked accept nothing."""
        talk = self.talk
        game, sender = np.nonzero(talk["choice"] != NONE)
        receiver, slot = np.divmod(talk["choice"][game, sender].astype(np.int64), SLOTS)
        row = self.row[game]
        agreed = self.agreed[row, receiver, sender, slot]
        offers = deal_offers(self.possible, row, game, sender, receiver, slot)
        self.press.settle(offers, agreed, self.decisions)
        answered = self.asked[game, receiver]
        game, row, sender, receiver, slot = (
            array[answered] for array in (game, row, sender, receiver, slot)
        )
        heard = game, receiver, sender
        talk["heard"][heard] = TEMPLATE_OF[slot]
        talk["heard_places"][heard] = self.possible.places[row, sender, receiver, slot]
        talk["answer"][heard] = agreed[answered]
        of_answers = self.answer_logprob[row, receiver, sender, slot]
        np.add.at(talk["talk_logprob"], (game, receiver), of_answers)


def hold_offers(press: Press, run: TalkRun, decisions: Decisions, clock: Clock) -> PhaseTalk:
    games = run.games
    talking = decisions.take(press.talking()[decisions.game])
    able = who_can_answer(talking, run.seats.member.shape)
    offers = OfferRound(press, decisions, able)
    breaches = offers.talk["breaches"] = breaches_of(press)
    for agent, game, power in speakers(run, talking):
        question = offers.question(game, power)
        obs = agent.observe(games, game, power)
        obs = run.kind.views.of(obs, games.num_powers, breaches=breaches[game, power])
        noise = talk_noise(games, game, power, Salt.OFFERS, 1 + games.num_powers)
        with clock("inference"):
            reply = agent.sample_talk(obs, *question, noise)
        offers.note(game, power, *reply)
    if talking.count:
        offers.settle()
        run.counts.add(able, offers.talk, run.seats.stream != NONE)
    return offers.talk


def breaches_of(press: Press) -> np.ndarray:
    """Return how many years ago each power broke a deal with each, (E, P, P); NONE where it did
    not, and where nobody talks now."""
    shape = press.deals.dealt.shape
    ages = press.breaches(*(index.ravel() for index in np.indices(shape[:2]))).reshape(shape)
    return np.where(press.talking()[:, None, None], ages, NONE).astype(np.int32)


class TalkingAgentNetwork(AgentNetwork):
    """An agent in arrays, as players ask it that talk (press/negotiators/policies.py)."""

    def __init__(self, agent: TalkingAgent):
        super().__init__(agent)
        self.binding = agent.binding
        self.sample_talk, self.sample_keeps = agent.sample_talk, agent.sample_keeps


class Kind(NamedTuple):
    agent: type[TalkingAgent]
    player: type[WishingPlayer]
    views: type[WithTalk]  # observations of the deciding powers
    counts: type[WishCounts]
    hold: Callable[[Press, TalkRun, Decisions, Clock], PhaseTalk]  # holds the talk of a phase


KINDS = {
    "mutual": Kind(WishingAgent, WishingPlayer, TalkViews, WishCounts, hold_wishes),
    "offers": Kind(OfferingAgent, OfferingPlayer, OfferViews, OfferCounts, hold_offers),
}


train = partial(ppo.train, make_run=TalkRun)


def make_agent(options: dict, game_map: engine.Map) -> TalkingAgent:
    kind, binding = KINDS[options["press"]].agent, options["binding"] == "yes"
    return ppo.make_agent(options, game_map, kind, binding=binding)


def make_player(
    agent: TalkingAgent, name: str, greedy: bool = False, settings: dict | None = None
) -> WishingPlayer:
    (player,) = (kind.player for kind in KINDS.values() if isinstance(agent, kind.agent))
    return player(TalkingAgentNetwork(agent), name, greedy, settings)


LEARNER_SPEC = registry.register(__name__, __file__, Args, make_agent, make_player, talks=True)

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_SPEC, train))
