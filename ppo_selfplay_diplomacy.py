"""Self-play PPO for no-press Diplomacy, in one file.

    python ppo_selfplay_diplomacy.py --map small                       # learn to beat DumbBot
    python ppo_selfplay_diplomacy.py --resume runs/small__...          # continue a run
    torchrun --nproc_per_node=2 ppo_selfplay_diplomacy.py --map three  # ranks on several machines
    python -m diplomacy_engine evaluate --map small --player runs/small__.../checkpoint.pt

Many games run at once. The learner has one seat of each, or more. Frozen copies of earlier learners
have the others: they are sampled from a pool when a game starts, and play it to the end. A
*decision* is one power's orders in one phase. Powers skip phases in which they have nothing to
order, so each learner seat fills its own column of the buffer, a *stream*, at its own pace. As soon
as one stream is full, PPO learns from the closed transitions of all streams.

Letters in shapes: E games, P powers, V provinces, D pending decisions, S their order slots (one for
each unit, build or removal), N legal orders of all slots, G boards that are observed, H width of
layers, T decisions that fill a stream, B transitions of a minibatch; constants.py has all.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import nn
from torch.nn import functional as F  # noqa: F401 (for what you add)

import diplomacy_engine as engine  # maps, players, rewards, reports
from diplomacy_engine import BoardViews, Decisions, Map, StepResult, VectorGame
from diplomacy_engine.constants import NONE, RUNNING, YEAR_LIMIT
from diplomacy_engine.learning import (
    checks,  # of settings and updates
    evaluations,  # against bots
    frozen,  # copies that never learn
    ops,  # operations of networks
    registry,  # scripts, and their networks for checkpoints
    startup,  # begins, resumes and ends a run
    statistics,  # of games and episodes
)
from diplomacy_engine.learning.boards import BoardInputs, Boards, Codes, Orders  # in tensors
from diplomacy_engine.learning.experience import Batch, Experience  # what is learned from
from diplomacy_engine.learning.settings import Count, RunArgs, Share, Size, Weight  # of any run
from diplomacy_engine.learning.startup import Ranks, RunLog  # processes; curves and checkpoints
from diplomacy_engine.players.asking import reads_history
from diplomacy_engine.records import OnlyIf


@OnlyIf("it needs --pool-bots", lambda args: args.pool_bots).for_all("pool_bot_prob")
@OnlyIf("the newest has no part", lambda a: a.pool_sampling == "latest").for_all("latest_prob")
@dataclass(frozen=True)
class Args(RunArgs):
    """Settings, for the small map; configs/MAP.toml and flags override them. Help is the text below
    a field, else the comment beside it; `RunArgs` has seed, evaluations and the like."""

    total_timesteps: Annotated[int, Meta(ge=1, le=10**15)] = 1_200_000  # learner decisions in all
    exp_name: str = Path(__file__).stem  # part of the run folder's name

    # Games
    num_envs: Size = 144  # games played at once, by all processes together
    max_years: Annotated[int, Meta(ge=0, le=10_000)] | None = None  # 0: no limit; None: the map's
    year_limit: Literal["draw", "truncate"] = "draw"
    """draw: the limit is a draw and pays as one; truncate: it pays nothing, values bootstrap"""
    reward: str = "sum_of_squares=1,lead_delta=1"  # also pays for keeping RUSSIA's lead small
    """name, module:function or weighted sum: deepdip=1,center_delta=1..0 (falls from 1 to 0)"""
    learner_seats: Annotated[float, Meta(ge=1, le=1000)] = 1.8  # the learner's seats, on average
    weak_seats: Share = 0.0  # all powers equally often
    """weight of a power when the learner's seats are sampled: 1 - weak_seats * its win rate"""
    opponent_temperature: Annotated[float, Meta(ge=0.01, le=100)] = 1.0  # copies play as they are
    """highest temperature of opponents; each seat has its own, log-uniform from 1 to this"""
    random_start_prob: Share = 0.5  # so that ENGLAND, too, begins from positions that it can win
    """probability with which a power begins a game with 1 to 8 phases of random orders"""
    cross_support: bool = True  # allow supports and convoys of other powers' units

    # Opponents
    pool_size: Count = 10  # frozen copies that new games sample from, here those of half the run
    pool_interval: Count = 50_000  # learner decisions between two copies
    pool_sampling: Literal["latest", "recency", "pfsp"] = "latest"
    """latest: the newest with --latest-prob; recency: newer more often; pfsp: harder more often"""
    latest_prob: Share = 0.5  # probability of the newest copy, the others uniform; 0: all uniform
    pool_bots: tuple[str, ...] = ()  # bots, searches and policies to play against as well
    pool_bot_prob: Share = 0.2  # probability that an opponent's seat goes to one of them

    # PPO
    learning_rate: Weight = 1e-3  # step size of Adam
    anneal: bool = True  # anneal the learning rate and the weight of the entropy linearly to 0
    num_steps: Annotated[int, Meta(ge=2, le=10**6)] = 16  # decisions of a learner seat per update
    gamma: Share = 0.99  # discount per decision
    gae_lambda: Share = 0.95  # lambda of generalized advantage estimation
    num_minibatches: Size = 8  # minibatches of one epoch
    update_epochs: Size = 3  # epochs of one update
    clip_coef: Weight = 0.2  # clipping range of the policy ratio
    ent_coef: Weight = 0.3  # what loses anyway is played, too, so the winner learns to answer it
    """weight of the normalized entropy (1: all legal orders equally likely)"""
    vf_coef: Weight = 0.5  # weight of the value loss
    max_grad_norm: Weight = 0.5  # maximum norm of the gradient
    average_exponent: Weight = 0.0  # an average keeps old mistakes
    """evaluate and freeze the mean of the weights, update n with weight n ** this; 0: the newest"""

    # Network
    hidden: Size = 64  # width of the network's layers
    num_layers: Annotated[int, Meta(ge=0, le=1024)] = 0  # message passing along borders
    autoregressive: bool = True  # a unit's orders depend on those of the power's earlier units


def layer_init(layer: nn.Linear, std: float = 2**0.5) -> nn.Linear:
    """Initialize a layer orthogonally with zero bias, as PPO implementations do."""
    nn.init.orthogonal_(layer.weight, std)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class Action(NamedTuple):
    """The orders of D decisions, sampled or scored, with their log-probabilities and values."""

    chosen: np.ndarray  # (S,) int64, positions in the slots' lists of legal orders
    logprob: torch.Tensor  # (D,), of all orders of a decision together, at temperature 1
    entropy: torch.Tensor = None  # (D,), normalized to 0..1; only if scored
    probability: torch.Tensor = None  # (N,), of every legal order; only if sampled
    value: torch.Tensor = None  # (D,)


class Agent(nn.Module):
    """Policy and value network; its size does not depend on the number of orders of the map.

    A graph network along the borders encodes a board once for all powers; each province gets a
    code, an embedding. An order is scored from its kind, the provinces it names and who holds them,
    and with `autoregressive` from the orders that the power's earlier units have.

    To change the policy, change `observe` (what it sees), `legal_orders` (what it may choose),
    `encode` or `get_action`. The learner, its copies and every player of a checkpoint call them.
    """

    observes_alike = True  # observe and legal_orders read no weight, so all copies ask them once

    def __init__(
        self, game_map: Map, hidden: int, num_layers: int, autoregressive=True, cross_support=True
    ):
        super().__init__()
        self.inputs = inputs = BoardInputs(game_map)  # turns boards and orders into tensors
        self.autoregressive, self.cross_support = autoregressive, cross_support
        self.province_features = nn.Embedding(inputs.num_features, hidden)
        self.global_features = layer_init(ops.Linear(inputs.num_globals, hidden))

        def layers(std: float = 2**0.5, bias: bool = True) -> nn.ModuleList:
            linears = (ops.Linear(hidden, hidden, bias) for _ in range(num_layers))
            return nn.ModuleList(layer_init(layer, std) for layer in linears)

        # A layer of `encode`: x + out(relu(own(y) + mean over neighbors of near(y))), y = norm(x).
        self.own, self.near, self.out = layers(), layers(bias=False), layers(0.5)
        self.norms = nn.ModuleList(ops.LayerNorm(hidden) for _ in range(num_layers + 1))

        self.power = nn.Embedding(inputs.num_powers, hidden)
        self.order_provinces = layer_init(nn.Linear(hidden, 3 * hidden))  # source, place, other
        self.order_kinds = nn.Embedding(inputs.num_kinds, hidden)
        self.order_context = layer_init(ops.Linear(3 * hidden, hidden))
        self.earlier_orders = layer_init(ops.Linear(hidden, hidden), 0.5)
        for table in (self.province_features, self.power):
            nn.init.normal_(table.weight, std=0.3)
        holders, kinds, relations = self.order_kinds.weight.data.split(inputs.kind_sizes)
        nn.init.normal_(holders, std=0.1)  # who holds the provinces that an order names
        nn.init.normal_(kinds, std=0.3)  # what kind of order it is
        nn.init.zeros_(relations)  # how it relates to orders given to earlier units
        self.score = layer_init(nn.Linear(hidden, 1, bias=False), 0.1)
        first = layer_init(ops.Linear(3 * hidden, hidden))
        self.critic = nn.Sequential(first, nn.ReLU(), layer_init(ops.Linear(hidden, 1), 1.0))

    def observe(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        """Return all that the policy sees of games `rows` (D,) as `powers` (D,)."""
        return games.view_boards(rows, powers)

    def legal_orders(self, games: VectorGame, decisions: Decisions) -> Decisions:
        """Return `decisions` with the orders that the policy may choose, at least one a slot."""
        return engine.own_choices(games, decisions, self.cross_support)

    def encode(self, boards: Boards) -> Codes:
        """Return codes of the provinces and powers of G boards, and of the D powers that decide."""
        board = self.global_features(boards.globals)  # (G, H), added to each of its provinces
        x = ops.sum_rows(boards.features, self.province_features.weight, board)  # (G V, H)
        x = x.view(-1, self.inputs.num_provinces, x.shape[1])  # (G, V, H)
        for norm, own, near, out in zip(self.norms, self.own, self.near, self.out):
            y = norm(x)
            x = x + out(ops.pass_messages(own(y), near(y), self.inputs))
        x = self.norms[-1](x)
        x, mean, units = ops.mean_provinces(x, boards)  # of all (G, 1, H), of units (G, P, H)
        powers = torch.cat([mean.expand_as(units), units, self.power.weight.expand_as(units)], -1)
        return Codes(x, powers, powers.flatten(0, 1).index_select(0, boards.viewer))

    def order_tables(self, codes: Codes, orders: Orders) -> ops.OrderTables:
        """Return embedding tables: an order's code is the sum of its rows, provinces' by role."""
        weight, bias = self.order_provinces.weight, self.order_provinces.bias
        return ops.OrderTables(
            provinces=ops.linear_by_role(codes.provinces, orders.named, weight, bias),
            kinds=self.order_kinds.weight,
            context=self.order_context(codes.view),  # (D, H), added to all orders of a decision
            weight=self.score.weight.flatten(),
            earlier=self.earlier_orders if self.autoregressive else None,
        )

    def get_action(self, codes: Codes, orders: Orders, noise=None, temperature=None) -> Action:
        """Sample orders of D decisions unit by unit, or score `orders.picked` if it is set.

        Gumbel `noise` (N,), `ops.sample_noise`, and `temperature` (D,), None: 1, are float32.
        """
        tables = self.order_tables(codes, orders)
        if orders.picked is None:
            chosen, logprob, probability = ops.sample_orders(orders, tables, noise, temperature)
            return Action(chosen, logprob, probability=probability)
        return Action(orders.chosen, *ops.score_orders(orders, tables))

    def get_value(self, obs: BoardViews) -> torch.Tensor:
        """Return the value (D,) of each power's position."""
        return self.critic(self.encode(self.inputs(obs)).view).squeeze(-1)

    def get_action_and_value(
        self, obs: BoardViews, decisions: Decisions, chosen=None, noise=None, temperature=None
    ) -> Action:
        """Sample orders as `get_action`, or score the orders `chosen` (S,) int64; with values."""
        boards = self.inputs(obs)
        codes = self.encode(boards)
        value = self.critic(codes.view).squeeze(-1)
        orders = self.inputs.orders(boards, decisions, chosen, self.autoregressive)
        return self.get_action(codes, orders, noise, temperature)._replace(value=value)


LEARNER = 0  # members of a run have numbers: the learner, bots, then copies as they are frozen
AT_RANDOM = NONE  # instead of a member's number, while a power begins with random orders
RANDOM_BOT = engine.load_player("random")
RECENCY_DECAY = 0.8  # weight of a copy relative to the next newer one
MAX_RANDOM_PHASES = 8  # at the start of a game


class OpponentPool:
    """The learner's opponents: frozen copies of it, and bots if there are any."""

    def __init__(self, args: Args, game_map: Map):
        self.args = args
        bots = [engine.load_player(name, game_map=game_map) for name in args.pool_bots]
        self.bots = dict(enumerate(bots, LEARNER + 1))
        self.copies: list[int] = []  # that new games sample from, oldest first
        self.agents: dict[int, Agent] = {}  # by number; older ones, too, while a game has them
        self.frozen_at: dict[int, int] = {}  # by number; the run's step then
        self.next_number = LEARNER + 1 + len(bots)
        self.games: dict[int, float] = {}  # by number; finished games of the learner against it
        self.score: dict[int, float] = {}  # by number; the learner's in these: a win 1, a draw 0.5

    def freeze(self, agent: Agent, global_step: int, newest: bool = True) -> None:
        """Add a copy of `agent`, the newest or beside it; the oldest copy leaves a full pool."""
        number = self.next_number
        self.next_number += 1
        self.agents[number] = frozen.frozen_copy(agent)
        self.frozen_at[number] = global_step
        last = [number] if newest else [number, self.copies.pop()]
        self.copies = [*self.copies, *last][-self.args.pool_size :]
        self.games[number] = self.score[number] = 0.0

    def is_due(self, global_step: int) -> bool:
        """Return whether it is time to freeze a copy."""
        return global_step - self.frozen_at[self.copies[-1]] >= self.args.pool_interval

    def weights(self) -> np.ndarray:
        """Return the probability (copies,) of each copy for an opponent's seat."""
        args, count = self.args, len(self.copies)
        if args.pool_sampling == "latest":  # the older ones uniformly
            latest = max(args.latest_prob, 1 / count)
            return np.append(np.full(count - 1, (1 - latest) / max(1, count - 1)), latest)
        if args.pool_sampling == "recency":
            weights = RECENCY_DECAY ** np.arange(count)[::-1]
        else:  # prioritized fictitious self-play (Vinyals et al. 2019, f_hard)
            wins = [(self.score[n] + 1.0) / (self.games[n] + 2.0) for n in self.copies]
            weights = (1 - np.array(wins)) ** 2 + 1e-3
        return weights / weights.sum()

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return the numbers of opponents for new games, in that shape."""
        members = rng.choice(self.copies, shape, p=self.weights())
        if self.bots:
            bots = rng.choice(list(self.bots), shape)
            members = np.where(rng.random(shape) < self.args.pool_bot_prob, bots, members)
        return members

    def record(self, games: np.ndarray, score: np.ndarray) -> None:
        """Add finished `games` (copies,) against each copy, and the learner's `score` in them."""
        for number, played, scored in zip(self.copies, games.tolist(), score.tolist()):
            self.games[number] += played
            self.score[number] += scored

    def forget(self, seated: set[int]) -> None:
        """Drop copies that have left the pool and are not `seated` in any game."""
        for number in self.agents.keys() - seated - set(self.copies):
            del self.agents[number], self.frozen_at[number], self.games[number], self.score[number]


class Seats(NamedTuple):
    """Who plays each power of the running games, (E, P) each; fixed until a game ends."""

    member: np.ndarray  # int64, number of the player
    stream: np.ndarray  # int64, the learner's column of the buffer; NONE: an opponent's seat
    random_phases: np.ndarray  # int64, phases of random orders still to come
    temperature: np.ndarray  # float32, of sampled orders; 1 for the learner


# Columns of the buffer; add your own, as ("bonus", np.float32). `ends`: the last transition of an
# episode; `decision`: its number in `Buffer.experience`.
TRANSITION = np.dtype(
    [(name, np.float32) for name in ("values", "logprobs", "rewards", "next_values")]
    + [("ends", bool), ("closed", bool), ("decision", np.int64)]
)


class Buffer:
    """Rollout buffer with a column for each stream, filled at its own pace.

    A transition is open and collects rewards until it is closed by the stream's next decision, the
    end of the game or the power's elimination (next value 0), a year limit that truncates or the
    end of training (value of the final position).
    """

    def __init__(self, num_steps: int, num_streams: int):
        self.clear((num_steps, num_streams))

    def clear(self, shape: tuple[int, int]) -> None:
        """Empty all columns; `shape` is (T, streams)."""
        self.transitions = np.zeros(shape, TRANSITION)
        self.count = np.zeros(shape[1], np.int64)  # transitions of each stream
        self.open = np.zeros(shape[1], bool)
        self.game_and_power = np.zeros((2, shape[1]), np.int64)  # of each stream
        self.experience: list[Experience] = []  # one for each phase
        self.num_decisions = 0  # of `experience`

    def add(
        self, streams: np.ndarray, experience: Experience, logprobs: np.ndarray, values: np.ndarray
    ) -> None:
        """Store a new decision of each of `streams` (n,), which closes the stream's open one."""
        was_open = self.open[streams]
        self.close(streams[was_open], values[was_open], ends=False)
        transitions = np.zeros(len(streams), TRANSITION)
        transitions["values"], transitions["logprobs"] = values, logprobs
        self.append(streams, experience, transitions)

    def append(self, streams: np.ndarray, experience: Experience, transitions: np.ndarray) -> None:
        """Open `transitions` (n,) of `streams` (n,), which have none that is open."""
        transitions["decision"] = self.num_decisions + np.arange(len(streams))
        self.transitions[self.count[streams], streams] = transitions
        self.count[streams] += 1
        self.open[streams] = True
        self.game_and_power[:, streams] = experience.decisions.game, experience.decisions.power
        self.num_decisions += len(streams)
        self.experience.append(experience)

    def open_streams(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the streams (n,) with an open transition, and the game and power of each."""
        streams = np.flatnonzero(self.open)
        return streams, *self.game_and_power[:, streams]

    def pay(self, streams: np.ndarray, rewards: np.ndarray) -> None:
        """Add `rewards` (n,) to the open transitions of `streams` (n,)."""
        self.transitions["rewards"][self.count[streams] - 1, streams] += rewards

    def close(self, streams: np.ndarray, next_values: np.ndarray | float, ends: bool = True):
        """Close the open transitions of `streams` (n,), with the value (n,) of what follows."""
        last = self.count[streams] - 1, streams
        self.transitions["next_values"][last] = next_values
        self.transitions["ends"][last], self.transitions["closed"][last] = ends, True
        self.open[streams] = False

    def take_batch(self, advantages: np.ndarray) -> Batch:
        """Return closed transitions with their `advantages` (T, streams); open ones carry over."""
        experience, closed = Experience.join(self.experience), self.transitions["closed"]
        learned, advantages = self.transitions[closed], advantages[closed]
        logprobs, values = (np.ascontiguousarray(learned[n]) for n in ("logprobs", "values"))
        taken = experience.take(learned["decision"])
        batch = Batch(taken, logprobs, values, advantages, advantages + values)
        streams = np.flatnonzero(self.open)
        carried = self.transitions[self.count[streams] - 1, streams]
        self.clear(self.transitions.shape)
        if len(streams):
            self.append(streams, experience.take(carried["decision"]), carried)
        return batch


def pay_learner(run: "Run", result: StepResult) -> None:
    """Add a phase's rewards to the open transitions, and close those whose episode is over."""
    buffer, truncates = run.buffer, run.args.year_limit == "truncate"
    streams, game, power = buffer.open_streams()
    position = engine.reward_input(result, run.games.board.victory_centers, not truncates)
    paid = {name: reward(position)[game, power] for name, reward in run.reward.parts.items()}
    rewards = run.reward.weigh(paid, min(1.0, run.step / run.args.total_timesteps))
    buffer.pay(streams, rewards)
    run.episodes.pay(streams, rewards, paid)
    alive = run.plays_on(result)[game, power]
    done = ~alive | (result.ended != RUNNING)[game]
    truncated = done & alive & truncates & (result.ended == YEAR_LIMIT)[game]
    buffer.close(streams[done & ~truncated], 0.0)
    buffer.close(streams[truncated], run.values_of(game[truncated], power[truncated]))
    run.episodes.end(streams[done])


def games_over(run: "Run", result: StepResult) -> tuple[np.ndarray, dict]:
    """Return the games (n,) that are over, or over for the learner, and their statistics."""
    seats = run.seats
    learns, at_random = seats.stream != NONE, seats.random_phases > 0
    rows = np.flatnonzero((result.ended != RUNNING) | ~(run.plays_on(result) & learns).any(1))
    return rows, run.results.of_games(result, rows, seats.member, learns & ~at_random, run.pool)


def compute_gae(buffer: Buffer, gamma: float, gae_lambda: float) -> np.ndarray:
    """Return GAE (Schulman et al. 2016), (T, streams) float32, 0 where no transition is closed."""
    advantages = np.zeros(buffer.transitions.shape, np.float32)
    lastgaelam = np.zeros(advantages.shape[1], np.float32)
    for t in reversed(range(len(advantages))):
        step = buffer.transitions[t]
        delta = step["rewards"] + gamma * step["next_values"] - step["values"]
        lastgaelam = delta + gamma * gae_lambda * np.where(step["ends"], 0.0, lastgaelam)
        advantages[t] = lastgaelam = np.where(step["closed"], lastgaelam, 0.0)
    return advantages


def ppo_loss(
    args: Args, ent_coef: float, new: Action, old: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return the PPO loss of (B,) transitions, and metrics to chart by name; all of it means.

    `new` is what the policy says now; `old` has logprobs, values, advantages and returns of then.
    """
    logratio = new.logprob - old["logprobs"]
    ratio = logratio.exp()
    with torch.no_grad():  # http://joschu.net/blog/kl-approx.html
        old_approx_kl = (-logratio).mean()
        approx_kl = ((ratio - 1) - logratio).mean()
        clipfrac = ((ratio - 1.0).abs() > args.clip_coef).float().mean()
    pg_loss1 = -old["advantages"] * ratio
    pg_loss2 = -old["advantages"] * torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)
    pg_loss = torch.max(pg_loss1, pg_loss2).mean()
    v_loss = 0.5 * ((new.value - old["returns"]) ** 2).mean()
    entropy_loss = new.entropy.mean()
    loss = pg_loss - ent_coef * entropy_loss + v_loss * args.vf_coef
    metrics = {"policy_loss": pg_loss, "value_loss": v_loss, "entropy": entropy_loss}
    metrics |= {"old_approx_kl": old_approx_kl, "approx_kl": approx_kl, "clipfrac": clipfrac}
    return loss, metrics


def update(run: "Run", batch: Batch, ent_coef: float, ranks: Ranks) -> dict[str, float]:
    """Learn from the batches of all ranks in epochs of minibatches; return the metrics' means."""
    args, agent, device = run.args, run.agent.train(), run.setup.device
    epochs = [batch.split(args.num_minibatches, run.rng) for _ in range(args.update_epochs)]
    parts = []  # this rank's share of each minibatch, and its metrics there
    # Of each minibatch this rank's rows and share; mean and deviation of advantages on all ranks.
    for rows, share, mean, deviation in ranks.minibatches(batch.advantages, epochs):
        metrics = {}
        run.optimizer.zero_grad()
        if share:
            minibatch = batch.take(rows)
            new = agent.get_action_and_value(*minibatch.experience)
            advantages = (minibatch.advantages - mean) / (deviation + 1e-8)
            old = minibatch._replace(advantages=advantages.astype(np.float32)).tensors(device)
            loss, metrics = ppo_loss(args, ent_coef, new, old)
            (loss * share).backward()  # so that the sum over all ranks is the mean
        ranks.sum_gradients(agent.parameters())
        nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
        run.optimizer.step()
        parts.append((share, {n: torch.as_tensor(m).detach() for n, m in metrics.items()}))
    ranks.average_buffers(agent.eval())  # it plays as it is kept, by running statistics
    return ranks.mean_metrics(parts)


class Run:
    """The state of a training run, and how it plays; other learners override its methods."""

    # A checkpoint keeps all other attributes.
    REBUILT: tuple[str, ...] = ("args", "game_map", "setup", "ranks", "reward", "pool.bots")
    OF_RANK: tuple[str, ...] = ("games", "seats", "buffer", "episodes", "rng")  # differ by rank

    def __init__(self, setup: startup.Setup, ranks: Ranks, pool: type[OpponentPool] = OpponentPool):
        args, game_map = setup.args, setup.game_map
        self.args, self.game_map, self.setup, self.ranks = args, game_map, setup, ranks
        local = ranks.share(args)  # the settings with this rank's number of games and seed
        startup.seed_generators(args.seed)
        self.agent = setup.learner.make_agent(vars(args), game_map).to(setup.device).eval()
        if setup.weights:
            self.agent.load_state_dict(setup.weights)
        self.average = frozen.frozen_copy(self.agent) if args.average_exponent else self.agent
        weights = self.agent.parameters()
        self.optimizer = torch.optim.Adam(weights, args.learning_rate, eps=1e-5, fused=True)
        if ranks.rank:  # all ranks begin with the same weights, but sample different orders
            startup.seed_generators(local.seed)
        self.rng = np.random.default_rng(local.seed)  # of seats, opponents and minibatches

        self.pool = pool(args, game_map)
        self.games = VectorGame(
            game_map,
            local.num_envs,
            local.seed,
            args.max_years,
            ranks.game_threads(setup.device),
            auto_reset=False,
            keep_history=reads_history(*self.pool.bots.values()),
        )
        self.pool.freeze(self.agent, 0)
        self.reward = engine.make_reward_mix(args.reward, game_map)
        num_streams = local.num_envs * checks.most_seats(args)
        self.buffer = Buffer(args.num_steps, num_streams)
        self.episodes = statistics.Episodes(num_streams, self.reward.parts)
        self.results = statistics.Results(game_map)
        self.evaluations, self.evaluated_at = 0, 0  # how many, and the step of the last
        zeros = np.zeros((local.num_envs, len(game_map.powers)), np.int64)
        self.seats = Seats(zeros, zeros + NONE, zeros.copy(), np.ones(zeros.shape, np.float32))

    @property
    def step(self) -> int:
        """Learner decisions so far, on all ranks."""
        return self.results.counters["global_step"]

    def seat(self, rows: np.ndarray) -> None:
        """Seat learner and opponents in the new games `rows` (n,)."""
        args, shape = self.args, (len(rows), len(self.game_map.powers))
        # Weighted sampling without replacement (Efraimidis & Spirakis 2006): the lowest keys win.
        weights = np.maximum(1 - args.weak_seats * self.results.win_share, 0.05)
        keys = self.rng.exponential(size=shape) / weights
        seat_rank = keys.argsort(1).argsort(1)  # of each key in its game
        learns = seat_rank < self.sample_counts(len(rows))
        self.fill_seats(rows, learns, seat_rank, self.pool.sample(self.rng, shape))

    def sample_counts(self, num_games: int) -> np.ndarray:
        """Return how many seats (games, 1) of each game are the learner's."""
        return np.floor(self.args.learner_seats + self.rng.random((num_games, 1)))

    def fill_seats(
        self, rows: np.ndarray, learns: np.ndarray, seat_rank: np.ndarray, members: np.ndarray
    ) -> None:
        """Seat the learner, as number `seat_rank` (n, P) from 0 on, where it `learns` (n, P)."""
        args, rng, seats, team = self.args, self.rng, self.seats, self.game_map.teams.of_power
        seats.member[rows] = np.where(learns, LEARNER, members)
        stream = rows[:, None] * checks.most_seats(args) + seat_rank
        seats.stream[rows] = np.where(learns, stream, NONE)
        if args.opponent_temperature != 1:  # opponents that err give the learner games to win
            exponents = rng.random((len(rows), team.max() + 1))[:, team]  # one a team
            seats.temperature[rows] = np.where(learns, 1.0, args.opponent_temperature**exponents)
        if args.random_start_prob > 0:  # positions that the learner's play never reaches
            phases = rng.integers(1, MAX_RANDOM_PHASES + 1, learns.shape)
            seats.random_phases[rows] = phases * (rng.random(learns.shape) < args.random_start_prob)

    def play(self, clock: startup.Clock) -> tuple[StepResult, dict[str, int]]:
        """Play one phase of every game; return its result and the counters' increments."""
        orders, experience, action = self.ask_for_orders(self.games.decisions(), clock)
        self.store(experience, action, orders)
        counts = {"global_step": experience.decisions.count, "order_steps": len(experience.chosen)}
        return self.games.step(orders), counts | {"env_steps": self.games.num_games}

    def observe(self, agent: nn.Module, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        """Return what an agent sees of games `rows` (n,) as `powers` (n,)."""
        return agent.observe(self.games, rows, powers)

    def ask_for_orders(
        self, decisions: Decisions, clock: startup.Clock
    ) -> tuple[np.ndarray, Experience, Action]:
        """Return all players' orders (E, V) for D decisions, and what the learner saw and chose."""
        games, seats, pool = self.games, self.seats, self.pool
        where = decisions.game, decisions.power
        members = np.where(seats.random_phases[where] > 0, AT_RANDOM, seats.member[where])  # (D,)
        orders = games.new_orders()  # (E, V), no orders yet

        # The learner.
        own = self.agent.legal_orders(games, decisions.take(members == LEARNER))
        obs, noise = self.observe(self.agent, own.game, own.power), ops.sample_noise(games, own)
        with clock("inference"), torch.no_grad():
            action = self.agent.get_action_and_value(obs, own, noise=noise)
        games.write_orders(orders, own, engine.order_numbers(own, action.chosen))
        experience = Experience(obs, own, action.chosen)

        # Frozen copies, sorted by number, in one call.
        rows = np.flatnonzero(members > LEARNER + len(pool.bots))
        rows = rows[members[rows].argsort(kind="stable")]
        copies, theirs = members[rows], decisions.take(rows)
        theirs, obs = frozen.ask(pool.agents, copies, games, theirs, self.observe)
        noise, temperature = ops.sample_noise(games, theirs), seats.temperature[where][rows]
        with clock("inference"):
            chosen = frozen.act(pool.agents, copies, obs, theirs, noise, temperature)
        games.write_orders(orders, theirs, engine.order_numbers(theirs, chosen))

        # Bots, and powers that begin with random orders.
        def ask_bots() -> None:
            for number, bot in {AT_RANDOM: RANDOM_BOT, **pool.bots}.items():
                theirs = decisions.take(members == number)
                if theirs.count:
                    games.write_orders(orders, theirs, engine.ask_player(games, theirs, bot))

        # If a bot of one rank fails, all stop before they store anything of this phase.
        self.ranks.all_or_stop(ask_bots) if pool.bots else ask_bots()
        return orders, experience, action

    def store(self, experience: Experience, action: Action, orders: np.ndarray) -> None:
        """Add the learner's decisions to the buffer; `orders` (E, V) are those of all powers."""
        streams = self.seats.stream[experience.decisions.game, experience.decisions.power]
        logprobs, values = action.logprob.cpu().numpy(), action.value.cpu().numpy()
        self.buffer.add(streams, experience, logprobs, values)
        self.episodes.decide(streams)

    def evaluate(self, ranks: Ranks, log: RunLog, last: bool, **options: object) -> None:
        """Evaluate the policy, `last` against searches, too; with options of `evaluate_player`."""
        evaluations.evaluate(self, ranks, log, last, options)

    def plays_on(self, result: StepResult) -> np.ndarray:
        """Return the powers (E, P) whose episodes go on, unless their game has ended."""
        return result.alive

    def values_of(self, rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
        """Return the value (n,) of games `rows` (n,) for `powers` (n,)."""
        with torch.no_grad():
            return self.agent.get_value(self.observe(self.agent, rows, powers)).cpu().numpy()


def learn(run: Run, ranks: Ranks, log: RunLog) -> None:
    """Learn from the closed transitions of all streams."""
    args, counters = run.args, run.results.counters
    with log.clock("batching"):
        batch = run.buffer.take_batch(compute_gae(run.buffer, args.gamma, args.gae_lambda))
        sums = ranks.sum(batch.sums() | run.episodes.take())
    start = run.step - int(sums["batch"][0])  # of the batch: even the last one has a rate above 0
    frac = max(0.0, 1.0 - start / args.total_timesteps) if args.anneal else 1.0
    if args.anneal:
        for group in (group for each in checks.optimizers(run) for group in each.param_groups):
            group["lr"] = frac * group.setdefault("initial_lr", group["lr"])
    ent_coef = args.ent_coef * frac
    with log.clock("learning"):
        before = checks.weight_hash(run.agent)
        losses = update(run, batch, ent_coef, ranks)
        if args.average_exponent:
            updates = counters["updates"]
            frozen.update_average(run.average, run.agent, updates, args.average_exponent)
    checks.check_learned(run, losses, before, ranks)
    counters["updates"] += 1
    charts = {"learning_rate": run.optimizer.param_groups[0]["lr"], "ent_coef": ent_coef}
    log.update(counters, statistics.of_update(run, losses, sums, charts))


def advance(run: Run, ranks: Ranks, log: RunLog) -> None:
    """Play one phase of every game, and learn if a stream is full; Stopped after a signal."""
    with log.clock("games"):
        result, counts = run.play(log.clock)
    with log.clock("batching"):
        pay_learner(run, result)  # while the games stand where they ended
    rows, finished = games_over(run, result)
    run.seats.random_phases[:] -= run.seats.random_phases > 0  # this one has been played
    # Sums over all ranks, so that all freeze, learn and stop together.
    flags = {"full": run.buffer.count.max() >= run.args.num_steps, "stop": log.stop.received}
    total = ranks.sum(counts | finished | flags)
    run.results.count(total, run.pool.copies)
    run.pool.record(total["copy_games"], total["copy_score"])
    with log.clock("games"):  # seats are drawn by these results
        run.games.reset(rows)
        run.seat(rows)
    if run.pool.is_due(run.step):
        run.pool.freeze(run.average, run.step)
        run.pool.forget(ranks.union(run.seats.member))
    if total["full"]:
        learn(run, ranks, log)
    if total["stop"]:
        raise startup.Stopped  # which saves


def train(
    setup: startup.Setup, ranks: Ranks, stop_after: int | None = None, make_run: type[Run] = Run
) -> bool:
    """Train; return False if a signal ends it, or the first evaluation from `stop_after` on."""
    run, args = make_run(setup, ranks), setup.args
    if not setup.resume(run, ranks):
        run.seat(np.arange(run.games.num_games))
    with startup.logs(setup, ranks, run) as log:
        while run.step < args.total_timesteps:
            if run.step // args.eval_interval > run.evaluated_at // args.eval_interval:
                startup.evaluate_and_save(run, ranks, log)
                if stop_after is not None and run.step >= stop_after:
                    return False
            advance(run, ranks, log)
        # Learn from what is left, open transitions with the value of their positions.
        if ranks.sum({"decisions": run.buffer.num_decisions})["decisions"]:
            streams, game, power = run.buffer.open_streams()
            run.buffer.close(streams, run.values_of(game, power))
            learn(run, ranks, log)
        if run.evaluated_at < run.step:
            startup.evaluate_and_save(run, ranks, log, last=True)
        else:
            log.message("this run was finished; a larger --total-timesteps continues it")
        return True
    return False


def make_agent(options: dict, game_map: Map, kind: type[Agent] = Agent, **more: bool) -> Agent:
    """Return a new agent; the settings that are read here decide which network it is."""
    names = "hidden", "num_layers", "autoregressive", "cross_support"
    return kind(game_map, *(options[name] for name in names), **more)


LEARNER_SPEC = registry.register(__name__, __file__, Args, make_agent)  # to play checkpoints

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_SPEC, train))
