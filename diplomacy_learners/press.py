"""Self-play PPO with talk: before each movement phase powers wish for peace, or offer deals.

    python -m diplomacy_learners.press --map three                  # with whom to wish for peace
    python -m diplomacy_learners.press --map three --press offers   # what to offer, and agree to
    python -m diplomacy_engine evaluate --map three --press mutual \\
        --player runs/three__press...  --against peaceful+dumbbot

Deals bind (docs/press.md). What a power says is the first part of the same decision as its orders:
drawn by each policy from the codes of both sides and of what is offered; then the lists of legal
orders are cut down to what the deals leave, and the orders are drawn from these. One decision has
one log-probability, of its talk and its orders, so pool, seats, buffer, pay, advantages and update
are those of ppo_selfplay_diplomacy.py, which knows nothing of talk. Here are the heads beside its
network, the talk of a phase (`hold_wishes`, `hold_offers`), and a loop with that. Shapes are named
as there.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine._fields import Between, NonNegative, Positive, Share
from diplomacy_engine.constants import NONE
from diplomacy_engine.games.observation import BoardViews
from diplomacy_engine.learning import checkpoint_state, frozen, ops, registry, startup, statistics
from diplomacy_engine.learning.boards import BoardInputs, Boards, Codes, Orders, on_device
from diplomacy_engine.learning.experience import Experience
from diplomacy_engine.learning.offer_round import OfferRound
from diplomacy_engine.learning.players import AgentNetwork
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.learning.talk_counts import OfferCounts, WishCounts
from diplomacy_engine.players.negotiators.policies import OfferingPlayer, WishingPlayer
from diplomacy_engine.policy.talk_views import (
    SLOTS,
    TEMPLATE_OF,
    TEMPLATES,
    OfferViews,
    TalkViews,
    who_can_answer,
)
from diplomacy_engine.press.table import Press, PressRules
from ppo_selfplay_diplomacy import AT_RANDOM, LEARNER, RANDOM_BOT, Run

Told = dict[str, np.ndarray]  # the talk of TalkViews or OfferViews by name, of every seat


@dataclass(frozen=True)
class Args:
    """Settings. The map's file in configs/ overrides these, and flags override both."""

    # To begin with
    map: str = "small"
    """small, three, standard, or the path of a map file of your own"""
    total_timesteps: Positive = 1_000_000
    """learner decisions in all; one decision is all orders of one power in one phase"""
    seed: Annotated[int, Between(0, 2**62)] = 1
    """seed of all random numbers"""
    processes: Annotated[int, Between(1, 1024)] = 2
    """processes that train together, one per core; another number gives another run"""
    resume: str | None = None
    """run folder to continue; only --total-timesteps, --track and --cuda may be given with it"""

    # The run
    config: str | None = None
    """settings file (TOML); default: configs/{map}.toml if there is one"""
    exp_name: str = "press"
    """name of this experiment, part of the run folder's name"""
    start_from: str | None = None
    """checkpoint or run folder of a policy to begin with, instead of a random one"""
    runs_folder: str = "runs"
    """folder in which the run folder is made"""
    cuda: bool = False
    """use a GPU if there is one"""
    track: bool = False
    """log to Weights & Biases as well"""
    wandb_project_name: str = "diplomacy-selfplay"
    """W&B project"""
    wandb_entity: str | None = None
    """W&B team or user"""

    # Games
    num_envs: Annotated[int, Between(1, 10**6)] = 256
    """games played at once, by all processes together"""
    max_years: Annotated[int, Between(0, 10_000)] | None = None
    """game years after which a game ends (default: the map's; 0: never)"""
    year_limit: Literal["draw", "truncate"] = "draw"
    """draw: a draw by rule, which pays end rewards; truncate: a cut, the value is bootstrapped"""
    reward: str = "sum_of_squares"
    """a name, module:function, or a mix with weights: sum_of_squares=1,center_delta=1..0"""
    learner_seats: Positive = 1
    """seats of each game that the learner plays and learns from"""
    self_play_share: Share = 0.0
    """share of the games in which the learner plays all seats"""
    weak_seats: Share = 0.0
    """how much more often the learner plays powers with which it wins less; 0: not at all"""
    opponent_temperature: Annotated[float, Between(0.01, 100)] = 1.0
    """opponents draw orders at a temperature between 1 and this, drawn for each seat"""
    warm_up_share: Share = 0.0
    """probability that a power begins a game with some phases of random orders"""

    # Talk
    press: Literal["mutual", "offers"] = "mutual"
    """mutual: peace where two wish it; offers: one offer a phase, to which the other may agree"""
    wish_entropy: NonNegative = 1.0
    """weight of the entropy of wishes, or of offers and answers, relative to that of orders"""

    # Opponents
    pool_size: Positive = 10
    """frozen copies that new games draw from"""
    pool_interval: Positive = 50_000
    """learner decisions between two copies"""
    pool_sampling: Literal["latest", "uniform", "recency", "pfsp"] = "latest"
    """how a copy is drawn: newest with --latest-prob, uniformly, by age, or by how hard it is"""
    latest_prob: Share = 0.5
    """probability of the newest copy; the older ones share the rest"""
    pool_bots: tuple[str, ...] = ()
    """bots, searches and policies (names or paths) to play against as well"""
    pool_bot_prob: Share = 0.2
    """probability that an opponent's seat goes to one of them, if there are any"""

    # PPO
    learning_rate: NonNegative = 1e-3
    """step size of Adam"""
    anneal_lr: bool = True
    """let the learning rate fall linearly to 0"""
    num_steps: Annotated[int, Between(2, 10**6)] = 32  # one alone is followed by no other
    """an update comes once a seat of the learner (a stream) has made this many decisions"""
    gamma: Share = 0.99
    """discount per decision"""
    gae_lambda: Share = 0.95
    """lambda of generalized advantage estimation"""
    num_minibatches: Annotated[int, Between(1, 10**6)] = 4
    """minibatches of one epoch"""
    update_epochs: Annotated[int, Between(1, 10**6)] = 2
    """epochs of one update"""
    clip_coef: NonNegative = 0.2
    """clipping range of the policy ratio (and of the value)"""
    ent_coef: NonNegative = 0.02
    """weight of the entropy, measured as a share (0..1) of the greatest possible one"""
    anneal_ent: bool = False
    """let the weight of the entropy fall linearly to 0"""
    vf_coef: NonNegative = 0.5
    """weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """clipping norm of the gradient"""
    average: NonNegative = 0.0
    """play and freeze averaged weights, where update n counts n ** AVERAGE; 0: the newest"""

    # Network
    hidden: Annotated[int, Between(1, 10**6)] = 64
    """width of the network's layers"""
    num_layers: Annotated[int, Between(0, 1024)] = 2
    """rounds of exchange between neighboring provinces"""
    autoregressive: bool = True
    """a unit's orders see those already given to earlier units of the decision"""

    # Evaluation and records
    eval_interval: Positive = 100_000
    """learner decisions between evaluations against the bots"""
    eval_games: Annotated[int, Between(1, 10**6)] = 200
    """games of one evaluation against one bot, all seats equally often"""
    eval_bots: tuple[str, ...] = ("random", "dumbbot")
    """players to evaluate against, by name or path; by default never used for training"""
    league_games: Annotated[int, Between(0, 10**6)] = 28
    """games of one evaluation that rate the learner, three copies and those bots; 0: none"""
    save_interval: Positive = 250_000
    """learner decisions between checkpoints"""
    capture_games: Annotated[int, Between(0, 1000)] = 1
    """sample games of each evaluation against one bot, kept with a replay page and images"""

    # What imported parts ask for as well, and has no flag here.
    teams: ClassVar[str] = ""
    team_victory: ClassVar[int] = 0
    freeze_score: ClassVar[float | None] = None
    norm_adv: ClassVar[bool] = True
    clip_vloss: ClassVar[bool] = False
    target_kl: ClassVar[float | None] = None
    capture_thoughts: ClassVar[bool] = False


class TalkCodes(NamedTuple):
    """The codes of boards (learning.boards.Codes), and what the deals add for those who decide."""

    provinces: torch.Tensor  # (G, V, H)
    powers: torch.Tensor  # (G, P, 3 H)
    view: torch.Tensor  # (D, 3 H)
    deals: torch.Tensor  # (D, H), to what all orders of a decision have in common


class TalkingAgent(nn.Module):
    """The script's network as a trunk, of whose decisions talk is the first part.

    A class with heads for one kind of talk has `draw_talk`, `score_talk` and `deals`.
    """

    def __init__(self, game_map: engine.Map, *network, wish_entropy: float = 1.0):
        super().__init__()
        self.trunk = ppo.Agent(game_map, *network)
        self.wish_entropy = wish_entropy

    @property
    def inputs(self) -> BoardInputs:
        """Makes tensors of boards and orders."""
        return self.trunk.inputs

    @property
    def critic(self) -> nn.Module:
        """Values the codes of those who view boards."""
        return self.trunk.critic

    def state_dict(self, *args, **kwargs) -> dict[str, torch.Tensor]:
        """Return the weights by name; checkpoints have had the trunk's without a prefix so far."""
        weights = super().state_dict(*args, **kwargs)
        return {name.removeprefix("trunk."): weight for name, weight in weights.items()}

    def load_state_dict(self, state_dict: dict[str, torch.Tensor], *args, **kwargs):
        """Take over such weights."""
        own = self.trunk.state_dict()
        weights = {f"trunk.{n}" if n in own else n: weight for n, weight in state_dict.items()}
        return super().load_state_dict(weights, *args, **kwargs)

    def encode(self, boards: Boards) -> TalkCodes:
        """Return the codes of boards whose views tell of deals."""
        codes = self.trunk.encode(boards)
        return TalkCodes(*codes, self.deals(boards.views, codes))

    def order_tables(self, codes: TalkCodes, orders: Orders) -> ops.OrderTables:
        """Return what legal orders are scored from, with whom there are deals as well."""
        tables = self.trunk.order_tables(codes, orders)
        return tables._replace(context=tables.context + codes.deals)

    def get_value(self, obs: BoardViews) -> torch.Tensor:
        """Return the value (D,) of the boards for the powers that view them."""
        return self.trunk.get_value(obs)

    def get_action_and_value(
        self,
        obs: TalkViews | OfferViews,
        decisions: engine.Decisions,
        chosen: np.ndarray | None = None,
        noise: np.ndarray | None = None,
    ) -> tuple[np.ndarray, torch.Tensor, torch.Tensor | None, torch.Tensor]:
        """Draw orders after the talk of `obs`, or score those that are given, and the talk.

        As of the script's network; but the log-probability is that of talk and orders, and the
        entropy is the sum of that of the orders and, times `wish_entropy`, of the talk.
        """
        trunk, boards = self.trunk, self.inputs(obs)
        codes = self.encode(boards)
        value = self.critic(codes.view).squeeze(-1)
        orders = self.inputs.orders(boards, decisions, chosen, trunk.autoregressive)
        tables = self.order_tables(codes, orders)
        if chosen is None:
            noise = ops.draw_noise(decisions) if noise is None else noise
            chosen, logprob, _ = ops.draw_orders(orders, tables, noise)
            return chosen, logprob + on_device(obs.talk_logprob, logprob.device), None, value
        bases = tables.context.index_select(0, orders.decision)  # (S, H)
        if trunk.autoregressive:
            given = bases + ops.sum_rows(orders.given_provinces, tables.provinces)
            given = given + ops.sum_rows(orders.given_kinds, tables.kinds)
            bases = bases + ops.sum_of_earlier(trunk.earlier_orders(F.relu(given)), orders)
        logprob, entropy, greatest = ops.score_orders(orders, tables, bases)  # (S,) each
        share = ops.sum_slots(entropy, orders) / ops.sum_slots(greatest, orders).clamp(min=1e-6)
        of_talk, talk_entropy = self.score_talk(obs, codes)
        logprob = ops.sum_slots(logprob, orders) + of_talk
        return chosen, logprob, share + self.wish_entropy * talk_entropy, value


class WishingAgent(TalkingAgent):
    """The network with a head for wishes, whose orders know with whom there is peace."""

    def __init__(self, game_map: engine.Map, *network, wish_entropy: float = 1.0):
        super().__init__(game_map, *network, wish_entropy=wish_entropy)
        hidden = self.trunk.power.embedding_dim
        self.wish_own = ppo.layer_init(nn.Linear(3 * hidden, hidden))
        self.wish_other = ppo.layer_init(nn.Linear(3 * hidden, hidden, bias=False))
        self.wish = ppo.layer_init(nn.Linear(hidden, 1), 0.01)  # begins near one half
        self.peace = nn.Linear(3 * hidden, hidden, bias=False)
        nn.init.zeros_(self.peace.weight)

    def wish_logits(self, obs: BoardViews, codes: Codes | TalkCodes) -> torch.Tensor:
        """Return the logit (D, P) of wishing peace with each power."""
        row = on_device(obs.row, codes.view.device)
        others = self.wish_other(codes.powers).index_select(0, row)  # (D, P, H)
        return self.wish(F.relu(self.wish_own(codes.view).unsqueeze(1) + others)).squeeze(-1)

    def deals(self, obs: TalkViews, codes: Codes) -> torch.Tensor:
        """Return what the peace of those who decide adds to their orders, (D, H)."""
        device = codes.view.device
        row, peace = (on_device(array, device) for array in (obs.row, obs.peace))
        partners = self.peace(codes.powers).index_select(0, row)  # (D, P, H)
        return (peace.to(partners.dtype).unsqueeze(-1) * partners).sum(1)

    @torch.no_grad()
    def draw_talk(
        self, obs: BoardViews, asked: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Say with whom each power wishes peace.

        Args:
            obs: (D,) of the powers.
            asked: (D, P) bool, about which others.
            noise: (D, P) in (0, 1), by which it is drawn; 0.5 everywhere: what is likelier.

        Returns:
            (D, P) int8, 1 for a wish, 0 for none, NONE where not asked; (D,) float32, the
            log-probability of these.
        """
        logits = self.wish_logits(obs, self.trunk.encode(self.inputs(obs))).float().cpu()
        wish = torch.from_numpy(noise) < logits.sigmoid()
        wish = np.where(asked, wish.numpy(), NONE).astype(np.int8)
        return wish, answers_logprob_entropy(logits, wish)[0].sum(1).numpy()

    def score_talk(self, obs: TalkViews, codes: TalkCodes) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability (D,) of the wishes, and their mean entropy (0..1)."""
        logprob, entropy = answers_logprob_entropy(self.wish_logits(obs, codes), obs.wish)
        asked = on_device(obs.wish != NONE, entropy.device).sum(1)
        return logprob.sum(1), entropy.sum(1) / asked.clamp(min=1)


class OfferingAgent(TalkingAgent):
    """The network with heads for offers and answers, whose orders know with whom there are deals.

    An offer is scored from the codes of both powers, what kind it is, and the codes of the
    provinces it is about: from where and to where a unit moves, and who supports it.
    """

    def __init__(self, game_map: engine.Map, *network, wish_entropy: float = 1.0):
        super().__init__(game_map, *network, wish_entropy=wish_entropy)
        hidden = self.trunk.power.embedding_dim
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
        obs: BoardViews,
        codes: Codes | TalkCodes,
        able: np.ndarray,
        places: np.ndarray,
        heard: np.ndarray,
        heard_places: np.ndarray,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Score what powers can offer, and what they are offered.

        Args:
            obs, codes: (D,) of the powers, and what `encode` returns of them.
            able, places: as in OfferViews.
            heard: (D, P, any) templates of what each power offers, NONE for nothing.
            heard_places: (D, P, any, PLACES), what that is about.

        Returns:
            (D, P * SLOTS + 1) logits of the offers, of none last, -inf for those that cannot be
            made; (D, P, any) logits of agreeing, 0 for nothing.
        """
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
        known = on_device(about != NONE, device).to(x.dtype).view(-1, 1)
        deals = (rows_of(x.flatten(0, 1), rows) * known).view(len(at), 2, 3 * x.shape[-1]).sum(1)
        deals = self.deal_places(deals)  # a swap's two moves are added up
        who, of_who = np.unique(at, return_inverse=True)  # most decisions have nothing to say
        whom, of_whom = np.unique(row * powers.shape[1] + power, return_inverse=True)
        own = self.deal_own(rows_of(view, who))
        deals = deals + rows_of(own, of_who) + rows_of(self.deal_kinds.weight, kind)
        others = self.deal_other(rows_of(powers.flatten(0, 1), whom))
        offered, answered = F.relu(deals + rows_of(others, of_whom)).split([len(d), len(to)])
        nothing = F.relu(own + self.deal_kinds.weight[-1])
        last = powers.shape[1] * SLOTS
        offers = x.new_full((len(able), last + 1), -torch.inf)
        offers[:, last] = 0
        columns = np.concatenate([q * SLOTS + slot, np.full(len(who), last)])
        where = [on_device(i, device) for i in (np.concatenate([d, who]), columns)]
        offers = offers.index_put(where, self.offer(torch.cat([offered, nothing])).squeeze(-1))
        where = [on_device(index, device) for index in (to, sender, k)]
        answers = x.new_zeros(heard.shape).index_put(where, self.agree(answered).squeeze(-1))
        return offers, answers

    def deals(self, obs: OfferViews, codes: Codes) -> torch.Tensor:
        """Return what the deals of those who decide add to their orders, (D, H)."""
        added = codes.view.new_zeros(len(obs.row), self.deal.out_features)
        for made, layer in ((obs.peace, self.peace), (obs.dealt, self.deal)):
            at, power = np.nonzero(made)
            partner = rows_of(codes.powers.flatten(0, 1), obs.row[at] * made.shape[1] + power)
            added = added.index_add(0, on_device(at, added.device), layer(partner))
        return added

    @torch.no_grad()
    def draw_talk(
        self,
        obs: BoardViews,
        able: np.ndarray,
        places: np.ndarray,
        heard: np.ndarray,
        heard_places: np.ndarray,
        noise: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Choose what each power offers, and whether it would agree to what it could be offered.

        Args:
            obs, able, places, heard, heard_places: as for `talk_logits`.
            noise: (D, 1 + P) in (0, 1), by which offers and answers are drawn; None: the likeliest.

        Returns:
            (D,) int16, power * SLOTS + slot of the offer, NONE for none; (D,) float32, its
            log-probability; (D, P, any) bool, what is agreed to; (D, P, any) float32, the
            log-probability of each of these answers.
        """
        codes = self.trunk.encode(self.inputs(obs))
        given = codes, able, places, heard, heard_places
        offers, answers = (part.float().cpu() for part in self.talk_logits(obs, *given))
        logprobs, last = offers.log_softmax(1), offers.shape[1] - 1
        if noise is None:
            choice, noise = offers.argmax(1), np.full((len(able), 2), 0.5, np.float32)
        else:
            drawn = torch.from_numpy(noise[:, :1]).contiguous()
            choice = torch.searchsorted(logprobs.exp().cumsum(1), drawn, right=True).squeeze(1)
            choice = choice.clamp(max=last)
        logprob = logprobs.gather(1, choice.unsqueeze(1)).squeeze(1)
        agreed = (torch.from_numpy(noise[:, 1:, None]) < answers.sigmoid()).numpy()
        said = np.where(heard == NONE, NONE, agreed).astype(np.int8)
        choice = np.where(choice == last, NONE, choice).astype(np.int16)
        return choice, logprob.numpy(), said == 1, answers_logprob_entropy(answers, said)[0].numpy()

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
        asked = on_device(obs.answer != NONE, offers.device).sum(1) + (count > 1)
        of_offer = logprobs.gather(1, choice).squeeze(1)
        return of_offer + logprob.sum(1), (share + entropy.sum(1)) / asked.clamp(min=1)


def rows_of(table: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
    """Return the rows of a table that integers of any shape name, in one list."""
    return table.index_select(0, on_device(rows.ravel(), table.device))


def answers_logprob_entropy(
    logits: torch.Tensor, answer: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the log-probabilities of answers of yes (1) and no (0), and their entropies (0..1).

    Both have the shape of the answers; they are 0 for those that are NONE and were not asked for.
    """
    answer = on_device(answer, logits.device)
    asked, sign = (answer != NONE).to(logits.dtype), torch.where(answer == 1, 1.0, -1.0)
    logprob, share = asked * F.logsigmoid(sign * logits), logits.sigmoid()
    each = -(share * F.logsigmoid(logits) + (1 - share) * F.logsigmoid(-logits)) / np.log(2)
    return logprob, asked * each


class LearnerTalk(NamedTuple):
    """How powers talk in the games of this process."""

    press: Press
    counts: WishCounts
    views: type  # what those see who decide
    # Holds the talk of a phase.
    hold: Callable[["LearnerTalk", Run, engine.Decisions, startup.Clock], Told]

    @classmethod
    def of(cls, args: Args, games: engine.VectorGame) -> "LearnerTalk":
        """Return the talk of a run's games, of which nothing has been counted yet."""
        kind = KINDS[args.press]
        counts = kind.counts(games.map.powers)
        return cls(Press(games, args.press), counts, kind.views, kind.hold)

    def view(self, games: engine.VectorGame, asked: engine.Decisions, told: Told):
        """Return what those see who decide: their boards, talk and deals."""
        at = asked.game, asked.power
        return self.views(*games.view_boards(*at), *(array[at] for array in told.values()))


def speakers(
    run: Run, talking: engine.Decisions
) -> Iterator[tuple[TalkingAgent, np.ndarray, np.ndarray]]:
    """Yield each network that talks, with the games (n,) and powers (n,) in which it does.

    Bots and powers that order at random are silent.
    """
    at = talking.game, talking.power
    who = np.where(run.seats.warm_up[at] > 0, AT_RANDOM, run.seats.member[at])
    for number, agent in {LEARNER: run.agent, **run.pool.agents}.items():
        mine = np.flatnonzero(who == number)
        if len(mine):
            yield agent, talking.game[mine], talking.power[mine]


def hold_wishes(
    talk: LearnerTalk, run: Run, decisions: engine.Decisions, clock: startup.Clock
) -> Told:
    """Hold the talk of a phase in which each power says with which others it wishes peace.

    Returns:
        The talk of TalkViews by name, of every seat: (E, P, ...).
    """
    games, powers = run.games, np.arange(run.games.num_powers)
    talking = decisions.take(talk.press.talking()[decisions.game])
    able = who_can_answer(talking, run.seats.member.shape)
    wish = np.full((*able.shape, len(powers)), NONE, np.int8)
    logprob = np.zeros(able.shape, np.float32)
    for agent, game, power in speakers(run, talking):
        others = able[game] & (powers != power[:, None])
        obs, noise = games.view_boards(game, power), torch.rand(others.shape).numpy()
        with clock("inference"):
            wish[game, power], logprob[game, power] = agent.draw_talk(obs, others, noise)
    told = {"wish": wish, "talk_logprob": logprob, "peace": talk.press.deals.peace}
    if talking.count:
        talk.press.propose(wish == 1)
        talk.counts.add(able, told, run.seats.stream != NONE)
    return told


def hold_offers(
    talk: LearnerTalk, run: Run, decisions: engine.Decisions, clock: startup.Clock
) -> Told:
    """Hold the talk of a phase in which each power makes one offer, and answers what it hears.

    Returns:
        The talk of OfferViews by name, of every seat: (E, P, ...).
    """
    games = run.games
    talking = decisions.take(talk.press.talking()[decisions.game])
    able = who_can_answer(talking, run.seats.member.shape)
    offers = OfferRound(talk.press, decisions, able)
    for agent, game, power in speakers(run, talking):
        asked = offers.question(game, power)
        obs = games.view_boards(game, power)
        noise = torch.rand(len(game), 1 + games.num_powers).numpy()
        with clock("inference"):
            said = agent.draw_talk(obs, *asked, noise)
        offers.note(game, power, *said)
    if talking.count:
        offers.settle()
        talk.counts.add(able, offers.told, run.seats.stream != NONE)
    return offers.told


class TalkingAgentNetwork(AgentNetwork):
    """An agent in arrays, as players ask it that talk (players/negotiators/policies.py)."""

    def draw_talk(self, obs: BoardViews, *asked: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """Return what powers say."""
        return self.agent.draw_talk(obs, *asked)

    @staticmethod
    def draw_noise(shape: tuple[int, ...], generator: torch.Generator) -> np.ndarray:
        """Return noise in (0, 1), by which talk is drawn."""
        return torch.rand(shape, generator=generator).numpy()


class Kind(NamedTuple):
    """What one kind of talk is made of."""

    agent: type[TalkingAgent]
    player: type[WishingPlayer]
    views: type
    counts: type[WishCounts]
    hold: Callable[..., Told]


KINDS = {
    "mutual": Kind(WishingAgent, WishingPlayer, TalkViews, WishCounts, hold_wishes),
    "offers": Kind(OfferingAgent, OfferingPlayer, OfferViews, OfferCounts, hold_offers),
}


def play_phase(
    run: Run, talk: LearnerTalk, clock: startup.Clock
) -> tuple[engine.StepResult, dict[str, int]]:
    """Play one phase of every game, with its talk first; as the script's."""
    games, seats, pool = run.games, run.seats, run.pool
    decisions = games.decisions()  # D, of all powers of all games
    told = talk.hold(talk, run, decisions, clock)
    decisions = talk.press.bound(decisions)  # with the orders that the deals leave
    at = decisions.game, decisions.power
    who = np.where(seats.warm_up[at] > 0, AT_RANDOM, seats.member[at])  # (D,)
    orders = games.new_orders()  # (E, V), merged below

    # The learner: what it says and does is kept, until the stream's next decision closes it.
    asked = decisions.take(who == LEARNER)
    obs, noise = talk.view(games, asked, told), ops.draw_noise(asked)
    with clock("inference"), torch.no_grad():
        chosen, logprobs, _, values = run.agent.get_action_and_value(obs, asked, noise=noise)
    games.write_orders(orders, asked, engine.order_numbers(asked, chosen))
    streams = seats.stream[asked.game, asked.power]
    seen = Experience(obs, asked, chosen)
    run.buffer.add(streams, seen, logprobs.cpu().numpy(), values.cpu().numpy())
    run.episodes.decide(streams)
    counts = {"global_step": asked.count, "order_steps": len(asked.slot_province)}
    counts["env_steps"] = games.num_games

    # Its frozen copies, all together, each for its own seats.
    rows = np.flatnonzero(who > LEARNER + len(pool.bots))
    rows = rows[np.argsort(who[rows], kind="stable")]
    asked, temperature = decisions.take(rows), seats.temperature[at][rows]
    obs, noise = talk.view(games, asked, told), ops.draw_noise(asked)
    with clock("inference"):
        chosen = frozen.act(pool.agents, who[rows], obs, asked, noise, temperature)
    games.write_orders(orders, asked, engine.order_numbers(asked, chosen))

    # Bots, and powers that begin at random.
    for number, bot in {AT_RANDOM: RANDOM_BOT, **pool.bots}.items():
        asked = decisions.take(who == number)
        if asked.count:
            games.write_orders(orders, asked, engine.ask_player(games, asked, bot))
    return games.step(orders), counts


def evaluate(run: Run, ranks: Ranks, log: startup.RunLog) -> None:
    """Play the policy against each bot, with talk; as the script's."""
    args, parts = run.args, {}
    for number, name in enumerate(args.eval_bots):
        drawn = [args.seed, run.step, number]
        seed = int(np.random.SeedSequence(drawn).generate_state(1)[0])  # of the games
        own, theirs = np.random.SeedSequence([*drawn, ranks.rank]).generate_state(2).tolist()
        parts[name] = engine.evaluate_player(
            run.game_map,
            run.begun.learner.make_player(run.average, "learner", own),
            engine.load_player(name, game_map=run.game_map, seed=theirs),
            args.eval_games,
            part=(ranks.rank, ranks.count),
            samples=args.capture_games,
            seed=seed,
            max_years=args.max_years or None,  # an evaluation needs some limit
            year_limit=args.year_limit,
            threads=1,
            press=PressRules(args.press),
        )
    everywhere = ranks.gather(parts)
    reports = {name: parts[name].join([found[name] for found in everywhere]) for name in parts}
    ratings = run.league.play(run.average, run.pool, run.begun.learner.make_player)
    log.evaluations(reports, run.step, ratings, run.begun.policy(run.average, run.step))


def learn(run: Run, talk: LearnerTalk, ranks: Ranks, log: startup.RunLog) -> None:
    """Estimate advantages of every finished transition of all streams, and learn from them."""
    args = run.args
    with log.clock("batching"):
        batch = run.buffer.take_batch(ppo.compute_gae(run.buffer, args.gamma, args.gae_lambda))
        sums = {"variance": statistics.variance_sums(batch.returns, batch.values)}
        sums = ranks.sum(sums | run.episodes.take() | talk.counts.take())
    size = int(sums["variance"][0])
    begun = run.step - size  # so that the last batch is learned from, too
    left = max(0.0, 1.0 - begun / args.total_timesteps)
    if args.anneal_lr:
        run.optimizer.param_groups[0]["lr"] = left * args.learning_rate
    ent_coef = args.ent_coef * left if args.anneal_ent else args.ent_coef
    with log.clock("learning"):
        losses = ppo.update(run, batch, ent_coef, ranks)
        if run.average is not run.agent:
            frozen.update_average(run.average, run.agent, run.counters["updates"], args.average)
    checkpoint_state.check_learned(run.agent, run.optimizer, losses)
    run.counters["updates"] += 1
    charts = {"learning_rate": run.optimizer.param_groups[0]["lr"], "ent_coef": ent_coef}
    figures = statistics.of_update(run, losses, sums, charts)
    log.update(run.counters, figures | {"press": talk.counts.figures(sums)})


def begin(begun: startup.Begun, ranks: Ranks) -> tuple[Run, LearnerTalk]:
    """Return a new run and its talk, or both as the checkpoint has them."""
    run = Run(begun, ranks)
    talk = LearnerTalk.of(begun.args, run.games)
    if begun.saved is not None:
        with begun.reading():
            checkpoint_state.restore(
                talk.counts, begun.saved["talk"][ranks.rank], run.games, "talk"
            )
            if any(type(part.obs) is not talk.views for part in run.buffer.seen):
                raise ValueError("a decision has no such talk")
    return run, talk


def train(begun: startup.Begun, ranks: Ranks) -> bool:
    """Play, learn, evaluate and save until all decisions are made; False if a signal stops it."""
    (run, talk), args = begin(begun, ranks), begun.args

    def save() -> None:
        with log.clock("saving"):
            policy = begun.policy(run.average, run.step)
            counts = {"talk": ranks.gather(checkpoint_state.pack(talk.counts))}
            checkpoint_state.save(run, policy | counts, ranks, log)

    with startup.logs(begun, ranks) as log:
        while run.step < args.total_timesteps:
            with log.clock("games"):
                result, counts = play_phase(run, talk, log.clock)
            with log.clock("batching"):
                ppo.pay_learner(run, result)
            rows, finished = ppo.games_over(run, result)
            # What all ranks agree on, so that they go on alike.
            full = run.buffer.count.max() >= args.num_steps
            flags = {"full": full, "stop": log.stop.received}
            total = ranks.sum(counts | finished | flags)
            run.count(total)
            with log.clock("games"):
                run.games.reset(rows)
                ppo.assign_seats(run, rows)
            if run.pool.is_due(run.step):
                run.pool.freeze(run.average, run.step)
                run.pool.forget(ranks.union(run.seats.member))
            if total["full"]:
                learn(run, talk, ranks, log)
            if run.next_eval <= run.step < args.total_timesteps:
                run.next_eval += args.eval_interval
                with log.clock("evaluation"):
                    evaluate(run, ranks, log)
            if run.step >= run.next_save or total["stop"]:
                while run.next_save <= run.step:
                    run.next_save += args.save_interval
                save()
            if total["stop"]:
                return False
        if ranks.sum({"open": run.buffer.open.sum()})["open"]:  # else a finished run was resumed
            # What is still open counts as its position is valued.
            streams, row, power = run.seats.learner(run.buffer.open)
            run.buffer.close(streams, run.values_of(row, power))
            learn(run, talk, ranks, log)
            evaluate(run, ranks, log)
            save()
    return True


NETWORK = ("press", *ppo.NETWORK)  # the settings that a network is made of


def make_agent(settings: dict, game_map: engine.Map) -> TalkingAgent:
    """Return a new agent with the network settings of `settings`."""
    network = (settings[name] for name in ppo.NETWORK)
    kind = KINDS[settings["press"]].agent
    return kind(game_map, *network, wish_entropy=settings["wish_entropy"])


def make_player(
    agent: TalkingAgent,
    name: str,
    seed: int = 0,
    greedy: bool = False,
    settings: dict | None = None,
) -> WishingPlayer:
    """Return an agent as a player of matches; `settings` are those it was trained with."""
    (player,) = (kind.player for kind in KINDS.values() if isinstance(agent, kind.agent))
    generator = torch.Generator().manual_seed(seed)
    return player(TalkingAgentNetwork(agent), name, generator, greedy, settings)


LEARNER_HERE = registry.register(
    __name__, __file__, Args, make_agent, NETWORK, make_player, talks=True
)

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_HERE, train))
