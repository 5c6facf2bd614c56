"""Self-play PPO for no-press Diplomacy, in one file.

    python ppo_selfplay_diplomacy.py --map small                       # learn to beat DumbBot
    python ppo_selfplay_diplomacy.py --resume runs/small__...          # continue a run
    torchrun --nproc_per_node=2 ppo_selfplay_diplomacy.py --map three  # ranks on several machines
    python -m diplomacy_engine evaluate --map small --player runs/small__.../checkpoint.pt

Many games run at once. In each, a few seats (one by default) are the learner's; every other seat
is played by a frozen copy of an earlier learner, sampled from a pool when the game starts, until it
ends. A *decision* is one power's orders in one phase. Powers skip phases in which they have nothing
to order, so each learner seat fills its own buffer, a *stream*, at its own pace; as soon as one
stream is full, PPO learns from every finished transition of all of them.

Shapes. A letter means this and nothing else, here and in diplomacy_engine (constants.py):

    E  games that run at once              P  powers of the map
    D  decisions that are pending          S  slots of these: one unit, or one build or removal each
    N  legal orders of those slots         G  boards that powers look at, each once
    V  provinces of the map                H  width of the network's layers
    T  decisions that a stream holds       B  transitions of a minibatch
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import nn
from torch.nn import functional as F

import diplomacy_engine as engine
from diplomacy_engine import BoardViews, Decisions, Map, StepResult, VectorGame
from diplomacy_engine.constants import NONE, RUNNING, YEAR_LIMIT
from diplomacy_engine.learning import evaluations, frozen, ops, registry, startup, statistics
from diplomacy_engine.learning.boards import BoardInputs, Boards, Codes, Orders
from diplomacy_engine.learning.checkpoint_state import Stateful, check_learned, save, weight_bits
from diplomacy_engine.learning.evaluations import Evaluation, Seeds
from diplomacy_engine.learning.experience import Batch, Experience
from diplomacy_engine.learning.players import load_opponent
from diplomacy_engine.learning.startup import Clock, Ranks, RunLog, Setup, Stopped

Count = Annotated[int, Meta(ge=1, le=10**9)]
Size = Annotated[int, Meta(ge=1, le=10**6)]
Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=10**9)]


@dataclass(frozen=True)
class Args:
    """Settings: the recipe for the small map. A map's file in configs/ and flags override them.

    Help for a flag is the comment beside its field, or the text below where the comment says why.
    """

    # To begin with
    map: str = "small"  # small, three, standard, or the path of a map file of your own
    total_timesteps: Annotated[int, Meta(ge=1, le=10**15)] = 900_000  # more did not help
    """learner decisions in all; one decision is all orders of one power in one phase"""
    seed: Annotated[int, Meta(ge=0, le=2**62)] = 1  # seed of all random numbers
    processes: Annotated[int, Meta(ge=1, le=1024)] = 2  # that train together, one per core
    resume: str | None = None
    """run folder to continue; only --total-timesteps, --track and --cuda may be changed"""

    # The run
    config: str | None = None  # settings file (TOML); None: configs/{map}.toml if there is one
    start_from: str | None = None  # policy to begin with (checkpoint or run folder), not at random
    cuda: bool = False  # use a GPU if there is one
    track: bool = False  # log to Weights & Biases as well (WANDB_PROJECT, WANDB_ENTITY)

    # Games
    num_envs: Size = 256  # games played at once, by all processes together
    max_years: Annotated[int, Meta(ge=0, le=10_000)] | None = None  # of a game; None: the map's
    year_limit: Literal["draw", "truncate"] = "draw"
    """draw: a draw by rule, which pays end rewards; truncate: the value is bootstrapped"""
    reward: str = "sum_of_squares=1,lead_delta=1"  # also pays for keeping RUSSIA's lead small
    """a name, module:function, or a mix with weights: sum_of_squares=1,center_delta=1..0"""
    learner_seats: Count = 1  # seats of each game that the learner plays and learns from
    weak_seats: Share = 0.95  # more games as ENGLAND, which RUSSIA nearly always beats
    """how much more often the learner plays powers that win less: weight 1 - this * win rate"""
    opponent_temperature: Annotated[float, Meta(ge=0.01, le=100)] = 3.0  # so ENGLAND can win games
    """opponents sample orders at a temperature between 1 and this, sampled for each seat"""
    random_start_prob: Share = 0.0  # probability that a power begins with phases of random orders
    cross_support: bool = True  # allow supports and convoys of other powers' units

    # Opponents
    pool_size: Count = 20  # copies of the whole run: old ones are beatable opponents, too
    """frozen copies that new games sample from"""
    pool_interval: Count = 45_000  # learner decisions between two copies
    pool_sampling: Literal["latest", "recency", "pfsp"] = "latest"
    """which copy: newest with --latest-prob, by age, or by how hard it is to beat"""
    latest_prob: Share = 0.5  # probability of the newest copy, the rest uniform; 0: all uniform
    pool_bots: tuple[str, ...] = ()  # bots, searches and policies to play against as well
    pool_bot_prob: Share = 0.2  # probability that an opponent's seat goes to one of them

    # PPO
    learning_rate: Weight = 1e-3  # step size of Adam
    anneal: bool = True  # let the learning rate and the weight of the entropy fall linearly to 0
    num_steps: Annotated[int, Meta(ge=2, le=10**6)] = 16  # small updates; GAE needs a next decision
    """an update comes once a seat of the learner (a stream) has made this many decisions"""
    gamma: Share = 0.99  # discount per decision
    gae_lambda: Share = 0.8  # credits an order with about five decisions: learns faster at first
    """lambda of generalized advantage estimation"""
    num_minibatches: Size = 8  # minibatches of one epoch
    update_epochs: Size = 3  # epochs of one update
    clip_coef: Weight = 0.2  # clipping range of the policy ratio
    ent_coef: Weight = 0.05  # weight of the entropy, a share (0..1) of the greatest possible one
    vf_coef: Weight = 0.5  # weight of the value loss
    max_grad_norm: Weight = 0.5  # clipping norm of the gradient
    average_exponent: Weight = 2.0  # the newest weights go around in circles, their average not
    """play and freeze averaged weights, where update n has weight n ** this; 0: newest"""

    # Network
    hidden: Size = 64  # width of the network's layers
    num_layers: Annotated[int, Meta(ge=0, le=1024)] = 0  # as good here, in half the time
    """rounds of exchange between neighboring provinces"""
    autoregressive: bool = True  # a unit's orders see those of the decision's earlier units

    # Evaluation
    eval_interval: Count = 75_000  # learner decisions between evaluations, each with a checkpoint
    eval_games: Size = 200  # games of one evaluation against one bot, all seats equally often
    eval_bots: tuple[str, ...] = ("random", "dumbbot")  # players to evaluate against

    # Not in --help
    exp_name: str = Path(__file__).stem  # part of the run folder's name
    runs_folder: str = "runs"  # folder in which the run folder is made
    capture_games: Annotated[int, Meta(ge=0, le=1000)] = 1  # of an evaluation, with its thoughts


def layer_init(layer: nn.Linear, std: float = 2**0.5) -> nn.Linear:
    """Initialize a layer orthogonally with zero bias, as PPO implementations do."""
    nn.init.orthogonal_(layer.weight, std)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class Action(NamedTuple):
    """The orders of D decisions, and what the policy says of them."""

    chosen: np.ndarray  # (S,) int64, positions in the slots' lists of legal orders
    logprob: torch.Tensor  # (D,), of all orders of a decision together, at temperature 1
    entropy: torch.Tensor | None = None  # (D,) of orders scored, as a share of the greatest (0..1)
    probability: torch.Tensor | None = None  # (N,) of sampled orders: of every legal order
    value: torch.Tensor | None = None  # (D,)


class Agent(nn.Module):
    """Policy and value network; its size does not depend on the number of orders of the map.

    A board is encoded once for all its powers: a graph network along the borders gives each
    province a code. An order is scored from its kind, the provinces it names and how they stand to
    the power. With `autoregressive`, a unit's scores also see the orders given to earlier units.

    To change the policy, change `observe` (what it sees), `legal_orders` (what it may choose),
    `encode` or `get_action`: the learner, its copies and every player of a checkpoint use these.
    """

    def __init__(
        self, game_map: Map, hidden: int, num_layers: int, autoregressive=True, cross_support=True
    ):
        super().__init__()
        self.inputs = inputs = BoardInputs(game_map)  # makes tensors of boards and orders
        self.autoregressive, self.cross_support = autoregressive, cross_support
        self.province_features = nn.Embedding(inputs.num_features, hidden)
        self.global_features = layer_init(nn.Linear(inputs.num_globals, hidden))

        def layers(std: float = 2**0.5, bias: bool = True) -> nn.ModuleList:
            linears = (ops.Linear(hidden, hidden, bias) for _ in range(num_layers))
            return nn.ModuleList(layer_init(layer, std) for layer in linears)

        # Each layer adds to a province's code what it makes of that and of its neighbors' mean.
        self.own, self.near, self.out = layers(), layers(bias=False), layers(0.5)
        self.norms = nn.ModuleList(ops.LayerNorm(hidden) for _ in range(num_layers + 1))

        self.power = nn.Embedding(inputs.num_powers, hidden)
        self.order_provinces = layer_init(nn.Linear(hidden, 3 * hidden))  # source, place, other
        self.order_kinds = nn.Embedding(inputs.num_kinds, hidden)
        self.order_context = layer_init(ops.Linear(3 * hidden, hidden))
        self.earlier_orders = layer_init(ops.Linear(hidden, hidden), 0.5)
        for table in (self.province_features, self.power):
            nn.init.normal_(table.weight, std=0.3)
        standings, kinds, relations = self.order_kinds.weight.data.split(inputs.kind_sizes)
        nn.init.normal_(standings, std=0.1)  # who holds the provinces that an order names
        nn.init.normal_(kinds, std=0.3)  # what kind of order it is
        nn.init.zeros_(relations)  # how it relates to orders given to earlier units
        self.score = layer_init(nn.Linear(hidden, 1, bias=False), 0.1)
        first = layer_init(ops.Linear(3 * hidden, hidden))
        self.critic = nn.Sequential(first, nn.ReLU(), layer_init(nn.Linear(hidden, 1), 1.0))

    def observe(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        """Return what `powers` (D,) see of the games `rows` (D,); nothing else reaches `encode`."""
        return games.view_boards(rows, powers)

    def legal_orders(self, games: VectorGame, decisions: Decisions) -> Decisions:
        """Return D decisions with the orders that the policy chooses from, some for each slot."""
        return engine.own_choices(games, decisions, self.cross_support)

    def encode(self, boards: Boards) -> Codes:
        """Return the codes of all provinces and powers of G boards, and of the D viewers."""
        board = self.global_features(boards.globals)  # (G, H), a province's sum begins with it
        x = ops.sum_rows(boards.features, self.province_features.weight, board)  # (G V, H)
        x = x.view(-1, self.inputs.num_provinces, x.shape[1])  # (G, V, H)
        for norm, own, near, out in zip(self.norms, self.own, self.near, self.out):
            y = norm(x)
            x = x + out(ops.exchange(own(y), near(y), self.inputs))  # the near codes' mean
        x = self.norms[-1](x)
        board, units = ops.mean_provinces(x, boards)  # of all (G, 1, H), by power (G, P, H)
        powers = torch.cat([board.expand_as(units), units, self.power.weight.expand_as(units)], -1)
        return Codes(x, powers, powers.flatten(0, 1).index_select(0, boards.viewer))

    def order_tables(self, codes: Codes, orders: Orders) -> ops.OrderTables:
        """Return the tables whose rows, added up, are the codes that orders are scored from.

        Only provinces that a legal order names have rows, apart for each role they play in it.
        """
        provinces, weights = codes.provinces.flatten(0, 1), self.order_provinces.parameters()
        return ops.OrderTables(
            provinces=ops.linear_by_role(provinces, orders.named, *weights),
            kinds=self.order_kinds.weight,
            context=self.order_context(codes.view),  # (D, H), added to all orders of a decision
            weight=self.score.weight.flatten(),
            earlier=self.earlier_orders if self.autoregressive else None,
        )

    def get_action(
        self,
        codes: Codes,
        orders: Orders,
        noise: np.ndarray | None = None,
        temperature: np.ndarray | None = None,
    ) -> Action:
        """Sample orders of D decisions unit by unit, or score those that `orders` has as picked.

        This is the policy. Gumbel `noise` (N,) decides the samples, at a `temperature` (D,).
        """
        tables = self.order_tables(codes, orders)
        if orders.picked is None:
            chosen, logprob, probability = ops.sample_orders(orders, tables, noise, temperature)
            return Action(chosen, logprob, probability=probability)
        return Action(orders.chosen, *ops.score_orders(orders, tables))

    def get_value(self, obs: BoardViews) -> torch.Tensor:
        """Return the value (D,) of the boards for the powers that view them."""
        return self.critic(self.encode(self.inputs(obs)).view).squeeze(-1)

    def get_action_and_value(
        self,
        obs: BoardViews,
        decisions: Decisions,
        chosen: np.ndarray | None = None,
        noise: np.ndarray | None = None,
        temperature: np.ndarray | None = None,
    ) -> Action:
        """Do as `get_action`, with values: sample, or score the orders `chosen` (S,) int64."""
        boards = self.inputs(obs)
        codes = self.encode(boards)
        value = self.critic(codes.view).squeeze(-1)
        orders = self.inputs.orders(boards, decisions, chosen, self.autoregressive)
        return self.get_action(codes, orders, noise, temperature)._replace(value=value)


LEARNER = 0  # a member's number: the learner, then bots, then copies as they are frozen
AT_RANDOM = NONE  # the number in a power's seat while it begins with random orders
RANDOM_BOT = engine.load_player("random")
RECENCY_DECAY = 0.8  # weight of a copy, relative to the next newer one
RANDOM_START_PHASES = 8  # the most phases of a random beginning


class OpponentPool(Stateful):
    """Who else sits at the tables: frozen copies of the learner, and perhaps bots.

    New games sample from `copies`, oldest first; `agents` also has older ones still at a table.
    """

    REBUILT = ("args", "bots")  # a checkpoint keeps all other attributes

    def __init__(self, args: Args, game_map: Map):
        self.args = args
        bots = [load_opponent(name, game_map) for name in args.pool_bots]
        self.bots = dict(enumerate(bots, LEARNER + 1))
        self.agents: dict[int, Agent] = {}
        self.frozen_at: dict[int, int] = {}  # learner decisions, by number
        self.copies: list[int] = []
        self.next_number = LEARNER + 1 + len(bots)
        self.games: dict[int, float] = {}  # of the learner against each of the copies,
        self.score: dict[int, float] = {}  # and its score in them: a win 1, a draw 0.5

    def freeze(self, agent: Agent, global_step: int) -> None:
        """Add a copy of the learner as it is now; the oldest copy leaves a full pool."""
        number = self.next_number
        self.next_number += 1
        self.agents[number] = frozen.frozen_copy(agent)
        self.frozen_at[number] = global_step
        self.copies = [*self.copies, number][-self.args.pool_size :]
        self.games[number] = self.score[number] = 0.0

    def is_due(self, global_step: int) -> bool:
        """Tell whether the learner is to be frozen now."""
        return global_step - self.frozen_at[self.copies[-1]] >= self.args.pool_interval

    def weights(self) -> np.ndarray:
        """Return the probabilities (copies,) with which a seat gets each copy."""
        args, count = self.args, len(self.copies)
        if args.pool_sampling == "latest":  # the newest, or one of the older ones, evenly
            latest = max(args.latest_prob, 1 / count)
            return np.append(np.full(count - 1, (1 - latest) / max(1, count - 1)), latest)
        if args.pool_sampling == "recency":
            weights = RECENCY_DECAY ** np.arange(count)[::-1]
        else:  # pfsp: who is hard to beat (Vinyals et al. 2019, f_hard)
            wins = [(self.score[n] + 1.0) / (self.games[n] + 2.0) for n in self.copies]
            weights = (1 - np.array(wins)) ** 2 + 1e-3
        return weights / weights.sum()

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Return numbers of opponents for new games, of the given shape."""
        members = rng.choice(self.copies, shape, p=self.weights())
        if self.bots:
            bots = rng.choice(list(self.bots), shape)
            members = np.where(rng.random(shape) < self.args.pool_bot_prob, bots, members)
        return members

    def act(self, members: np.ndarray, obs, decisions, temperature) -> np.ndarray:
        """Return what copies `members` (D,), ascending, choose, (S,): each by `get_action`."""
        noise = ops.sample_noise(decisions)
        return frozen.act(self.agents, members, obs, decisions, noise, temperature)

    def record(self, games: np.ndarray, score: np.ndarray) -> None:
        """Count games (copies,) that are over, and the learner's score in them."""
        for number, played, scored in zip(self.copies, games.tolist(), score.tolist()):
            self.games[number] += played
            self.score[number] += scored

    def forget(self, seated: set[int]) -> None:
        """Drop copies that have left the pool and sit at no table."""
        for number in self.agents.keys() - seated - set(self.copies):
            del self.agents[number], self.frozen_at[number], self.games[number], self.score[number]


class Seats(NamedTuple):
    """Who plays what in the games that run, (E, P) each; fixed until a game ends."""

    member: np.ndarray  # int64, who gives the orders, by number
    stream: np.ndarray  # int64, the learner's column of the buffer; NONE: an opponent's seat
    random_phases: np.ndarray  # int64, phases in which the power still orders at random
    temperature: np.ndarray  # float32, at which orders are sampled; 1 for the learner


class Buffer(Stateful):
    """What the learner did since its last update, a column for each stream, filled at its own pace.

    A transition is open from its orders on. What closes it: the stream's next decision (`add`), the
    end of its game or its power's elimination (with value 0), a year limit that truncates and the
    end of training (with the value of the position).
    """

    def __init__(self, num_steps: int, num_streams: int):
        self.clear((num_steps, num_streams))

    def clear(self, shape: tuple[int, int]) -> None:
        """Empty all columns; `shape` is (T, streams)."""
        self.rewards = np.zeros(shape, np.float32)
        self.values = np.zeros(shape, np.float32)
        self.next_values = np.zeros(shape, np.float32)
        self.logprobs = np.zeros(shape, np.float32)
        self.ends = np.zeros(shape, bool)  # the last transition of a game
        self.closed = np.zeros(shape, bool)
        self.row = np.zeros(shape, np.int64)  # its number in `experience`, in order of time
        self.count = np.zeros(shape[1], np.int64)  # transitions of each stream
        self.open = np.zeros(shape[1], bool)
        self.seat = np.zeros((2, shape[1]), np.int64)  # game and power of each stream
        self.experience: list[Experience] = []
        self.num_rows = 0  # decisions in `experience`

    def add(
        self, streams: np.ndarray, experience: Experience, logprobs: np.ndarray, values: np.ndarray
    ) -> None:
        """Store a new decision of each of `streams`; it closes the stream's open one."""
        was_open = self.open[streams]
        self.close(streams[was_open], values[was_open], ends=False)
        t = self.count[streams]
        self.values[t, streams] = values
        self.logprobs[t, streams] = logprobs
        self.row[t, streams] = self.num_rows + np.arange(len(streams))
        self.count[streams] += 1
        self.open[streams] = True
        self.seat[:, streams] = experience.decisions.game, experience.decisions.power
        self.num_rows += len(streams)
        self.experience.append(experience)

    def open_seats(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the streams (n,) with an open transition, and the game and power of each."""
        streams = np.flatnonzero(self.open)
        return streams, *self.seat[:, streams]

    def pay(self, streams: np.ndarray, rewards: np.ndarray) -> None:
        """Add `rewards` (n,) to the open transitions of `streams` (n,)."""
        self.rewards[self.count[streams] - 1, streams] += rewards

    def close(self, streams: np.ndarray, next_values: np.ndarray | float, ends: bool = True):
        """Close the open transitions of `streams` (n,), as the last ones of their games or as
        followed by another; `next_values` (n,) are worth what comes after them."""
        t = self.count[streams] - 1
        self.next_values[t, streams] = next_values
        self.ends[t, streams] = ends
        self.closed[t, streams] = True
        self.open[streams] = False

    def take_batch(self, advantages: np.ndarray) -> Batch:
        """Return closed transitions with their `advantages` (T, streams); open ones carry over."""
        everything, closed = Experience.join(self.experience), self.closed
        values, advantages = self.values[closed], advantages[closed]
        experience = everything.take(self.row[closed])
        batch = Batch(experience, self.logprobs[closed], values, advantages, advantages + values)
        streams = np.flatnonzero(self.open)
        t = self.count[streams] - 1
        carried = everything.take(self.row[t, streams])
        logprobs, values = self.logprobs[t, streams], self.values[t, streams]
        rewards = self.rewards[t, streams]
        self.clear(self.rewards.shape)
        if len(streams):
            self.add(streams, carried, logprobs, values)
            self.rewards[0, streams] = rewards
        return batch


def pay_learner(run: "Run", result: StepResult) -> None:
    """Pay the open transitions for the phase, and close those whose game is over."""
    buffer, truncates = run.buffer, run.args.year_limit == "truncate"
    streams, row, power = buffer.open_seats()
    position = engine.reward_input(result, run.games.board.victory_centers, not truncates)
    paid = {name: reward(position)[row, power] for name, reward in run.reward.parts.items()}
    rewards = run.reward.weigh(paid, min(1.0, run.step / run.args.total_timesteps))
    buffer.pay(streams, rewards)
    run.episodes.pay(streams, rewards, paid)

    lives = run.plays_on(result)[row, power]
    over = ~lives | (result.ended != RUNNING)[row]
    # A cut is no end: the position's value stands for what would have come.
    cut = over & lives & truncates & (result.ended == YEAR_LIMIT)[row]
    buffer.close(streams[over & ~cut], 0.0)
    buffer.close(streams[cut], run.values_of(row[cut], power[cut]))
    run.episodes.end(streams[over])


def games_over(run: "Run", result: StepResult) -> tuple[np.ndarray, dict]:
    """Return the rows whose game is over for the learner, and what is counted of those games."""
    seats = run.seats
    learns, at_random = seats.stream != NONE, seats.random_phases > 0
    seats.random_phases[:] -= at_random
    out = ~(run.plays_on(result) & learns).any(1)
    rows = np.flatnonzero((result.ended != RUNNING) | out)
    return rows, run.results.of_games(result, rows, seats.member, learns & ~at_random, run.pool)


def compute_gae(buffer: Buffer, gamma: float, gae_lambda: float) -> np.ndarray:
    """Return generalized advantage estimates (Schulman et al. 2016) of ragged streams.

    (T, streams) float32, 0 where a transition is not closed. `buffer.next_values` is the value of
    the stream's next decision; 0 after the end of a game, the last position's value after a cut.
    """
    advantages = np.zeros_like(buffer.rewards)
    lastgaelam = np.zeros(advantages.shape[1], np.float32)
    for t in reversed(range(len(advantages))):
        delta = buffer.rewards[t] + gamma * buffer.next_values[t] - buffer.values[t]
        lastgaelam = delta + gamma * gae_lambda * np.where(buffer.ends[t], 0.0, lastgaelam)
        advantages[t] = lastgaelam = np.where(buffer.closed[t], lastgaelam, 0.0)
    return advantages


def ppo_loss(
    args: Args, ent_coef: float, new: Action, old: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return the PPO loss of (B,) transitions, and metrics to chart by name; all of it means.

    `new` is what the policy says now; `old` has logprobs, values, advantages and returns of then.
    """
    logratio = new.logprob - old["logprobs"]
    ratio = logratio.exp()
    change = ratio - 1.0
    with torch.no_grad():  # http://joschu.net/blog/kl-approx.html
        old_approx_kl = -logratio.mean()
        approx_kl = (change - logratio).mean()
        clipfrac = (change.abs() > args.clip_coef).mean(dtype=torch.float32)
    # As max(-A * ratio, -A * clamp(ratio)): what a ratio gains beyond its range counts for nothing.
    beyond = F.relu(old["advantages"] * change - args.clip_coef * old["advantages"].abs())
    pg_loss = (beyond - old["advantages"] * ratio).mean()
    v_loss = 0.5 * F.mse_loss(new.value, old["returns"])
    entropy_loss = new.entropy.mean()
    loss = pg_loss - ent_coef * entropy_loss + v_loss * args.vf_coef
    metrics = {"policy_loss": pg_loss, "value_loss": v_loss, "entropy": entropy_loss}
    metrics |= {"old_approx_kl": old_approx_kl, "approx_kl": approx_kl, "clipfrac": clipfrac}
    return loss, metrics


def update(run: "Run", batch: Batch, ent_coef: float, ranks: Ranks) -> dict[str, float]:
    """Learn from the batches of all ranks in epochs of minibatches; return the metrics' means."""
    args, agent, device = run.args, run.agent.train(), run.setup.device
    epochs = [batch.split(args.num_minibatches, run.rng) for _ in range(args.update_epochs)]
    # Size of each minibatch on all ranks together, mean and deviation of its advantages.
    moments = ranks.moments(batch.advantages, epochs)  # (epochs, minibatches, 3)
    parts = []  # this rank's share of each minibatch, and its metrics there
    for minibatches, of_minibatch in zip(epochs, moments, strict=True):
        for rows, (count, mean, deviation) in zip(minibatches, of_minibatch, strict=True):
            if not count:
                continue
            share, metrics = len(rows) / float(count), {}
            run.optimizer.zero_grad()
            if share:
                minibatch = batch.take(rows)
                new = agent.get_action_and_value(*minibatch.experience)
                advantages = (minibatch.advantages - mean) / (deviation + 1e-8)
                old = minibatch._replace(advantages=np.float32(advantages)).tensors(device)
                loss, metrics = ppo_loss(args, ent_coef, new, old)
                loss.backward(torch.full_like(loss, share))  # the sum over ranks is the mean
            ranks.sum_gradients(agent.parameters())
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            run.optimizer.step()
            parts.append((share, {n: torch.as_tensor(m).detach() for n, m in metrics.items()}))
    ranks.average_buffers(agent.eval())  # it plays as it is kept, by running statistics
    return ranks.mean_metrics(parts)


class Run(Stateful):
    """Everything that changes while training goes on."""

    # Made anew by __init__; a checkpoint keeps all other attributes. Those OF_RANK differ from
    # process to process, what is neither must be the same on all.
    REBUILT = ("args", "game_map", "setup", "reward")
    OF_RANK = ("games", "seats", "buffer", "episodes", "rng")

    def __init__(self, setup: Setup, ranks: Ranks, pool: type = OpponentPool):
        args, game_map = setup.args, setup.game_map
        self.args, self.game_map, self.setup = args, game_map, setup
        own = ranks.share(args)  # this rank's part of the games, and a seed of its own
        startup.seed_generators(args.seed)
        self.agent = setup.learner.make_agent(vars(args), game_map).to(setup.device).eval()
        if setup.weights:
            self.agent.load_state_dict(setup.weights)
        self.average = frozen.frozen_copy(self.agent) if args.average_exponent else self.agent
        weights = self.agent.parameters()
        self.optimizer = torch.optim.Adam(weights, args.learning_rate, eps=1e-5, fused=True)
        if ranks.rank:  # only the first weights are the same samples on all ranks
            startup.seed_generators(own.seed)
        self.rng = np.random.default_rng(own.seed)  # seats, opponents, minibatches; torch's: orders

        self.games = VectorGame(
            game_map,
            own.num_envs,
            seed=own.seed,
            max_years=args.max_years,
            threads=ranks.game_threads(setup.device),
            auto_reset=False,
        )
        self.pool = pool(args, game_map)
        self.pool.freeze(self.agent, 0)
        self.reward = engine.make_reward_mix(args.reward, game_map)
        num_streams = own.num_envs * args.learner_seats
        self.buffer = Buffer(args.num_steps, num_streams)
        self.episodes = statistics.Episodes(num_streams, self.reward.parts)
        self.results = statistics.Results(game_map)
        self.evaluations, self.evaluated_at = 0, 0  # so far, and learner decisions at the last
        none = np.zeros((own.num_envs, len(game_map.powers)), np.int64)
        self.seats = Seats(none, none + NONE, none.copy(), np.ones(none.shape, np.float32))

    @property
    def step(self) -> int:
        """Learner decisions made so far."""
        return self.results.counters["global_step"]

    def seat(self, rows: np.ndarray) -> None:
        """Seat learner and opponents in the new games `rows`.

        The learner gets `learner_seats`, more often of powers with which it wins less.
        """
        args, shape = self.args, (len(rows), len(self.game_map.powers))
        # Weighted sampling without replacement (Efraimidis & Spirakis 2006): the lowest keys win.
        weights = np.maximum(1 - args.weak_seats * self.results.win_share, 0.05)
        keys = self.rng.exponential(size=shape) / weights
        place = keys.argsort(1).argsort(1)  # the rank of each key in its game
        learns = place < args.learner_seats
        self.fill_seats(rows, learns, place, self.pool.sample(self.rng, shape))

    def fill_seats(
        self, rows: np.ndarray, learns: np.ndarray, place: np.ndarray, members: np.ndarray
    ) -> None:
        """Give seats (n, P) of games `rows` (n,) to the learner's streams, by `place` in a game,
        where it `learns`, else to `members`. These err at a higher temperature, so that it can win;
        random beginnings are positions that its play never reaches."""
        args, rng, seats, side = self.args, self.rng, self.seats, self.game_map.teams.of_power
        seats.member[rows] = np.where(learns, LEARNER, members)
        seats.stream[rows] = np.where(learns, rows[:, None] * args.learner_seats + place, NONE)
        if args.opponent_temperature != 1:
            exponents = rng.random((len(rows), side.max() + 1))[:, side]  # one for each team
            temperature = args.opponent_temperature**exponents
            seats.temperature[rows] = np.where(learns, 1.0, temperature)
        if args.random_start_prob > 0:
            phases = rng.integers(1, RANDOM_START_PHASES + 1, learns.shape)
            seats.random_phases[rows] = phases * (rng.random(learns.shape) < args.random_start_prob)

    def play(self, clock: Clock) -> tuple[StepResult, dict[str, int]]:
        """Play one phase of every game; return its result and by how much each counter rises."""
        orders, experience, action = self.ask_for_orders(self.games.decisions(), clock)
        self.store(experience, action, orders)
        counts = {"global_step": experience.decisions.count, "order_steps": len(experience.chosen)}
        return self.games.step(orders), counts | {"env_steps": self.games.num_games}

    def observe(self, agent: nn.Module, decisions: Decisions) -> BoardViews:
        """Return what an agent sees of D decisions."""
        return agent.observe(self.games, decisions.game, decisions.power)

    def ask_for_orders(
        self, decisions: Decisions, clock: Clock
    ) -> tuple[np.ndarray, Experience, Action]:
        """Split D decisions between learner, copies and bots; return all their orders (E, V), and
        what the learner saw and chose."""
        games, seats, pool = self.games, self.seats, self.pool
        at = decisions.game, decisions.power
        members = np.where(seats.random_phases[at] > 0, AT_RANDOM, seats.member[at])  # (D,)
        orders = games.new_orders()  # (E, V), merged below

        # The learner.
        own = self.agent.legal_orders(games, decisions.take(members == LEARNER))
        obs, noise = self.observe(self.agent, own), ops.sample_noise(own)
        with clock("inference"), torch.no_grad():
            action = self.agent.get_action_and_value(obs, own, noise=noise)
        games.write_orders(orders, own, engine.order_numbers(own, action.chosen))
        experience = Experience(obs, own, action.chosen)

        # Its frozen copies, all together, each for its own seats.
        rows = np.argsort(members, kind="stable")
        rows = rows[np.count_nonzero(members <= LEARNER + len(pool.bots)) :]
        theirs = decisions.take(rows)
        theirs, obs = frozen.ask(pool.agents, members[rows], games, theirs, self.observe)
        with clock("inference"):
            chosen = pool.act(members[rows], obs, theirs, seats.temperature[at][rows])
        games.write_orders(orders, theirs, engine.order_numbers(theirs, chosen))

        # Bots, and powers that begin at random.
        for number, bot in {AT_RANDOM: RANDOM_BOT, **pool.bots}.items():
            theirs = decisions.take(members == number)
            if theirs.count:
                games.write_orders(orders, theirs, engine.ask_player(games, theirs, bot))
        return orders, experience, action

    def store(self, experience: Experience, action: Action, orders: np.ndarray) -> None:
        """Keep what the learner saw and chose, open until its stream's next decision; `orders`
        (E, V) are those of all powers."""
        streams = self.seats.stream[experience.decisions.game, experience.decisions.power]
        logprobs, values = action.logprob.cpu().numpy(), action.value.cpu().numpy()
        self.buffer.add(streams, experience, logprobs, values)
        self.episodes.decide(streams)

    def evaluate(self, ranks: Ranks, log: RunLog, last: bool, **options) -> None:
        """Play the policy against each bot, a part on each rank, and log it; `last`: searches, too.

        Stopped: a signal came meanwhile; then nothing is logged, and the run has not changed.
        """
        args, game_map = self.args, self.game_map
        games = dict.fromkeys(args.eval_bots, args.eval_games)
        if last:
            games |= evaluations.against_searches(args, game_map, log)

        def play(bot: str, seeds: Seeds, part: tuple[int, int]) -> Evaluation:
            make_player = self.setup.learner.make_player
            player = make_player(self.average, "learner", seeds.player, settings=vars(args))
            opponent = engine.load_player(bot, game_map=game_map, seed=seeds.opponent)
            seats = game_map.contested(), player, opponent, games[bot]
            settings = evaluations.match_settings(args, player, log) | options
            return engine.evaluate_player(*seats, part=part, seed=seeds.games, **settings)

        reports = evaluations.on_all_ranks(play, games, (args.seed, self.step), ranks)
        log.evaluations(reports, self.step, args.eval_bots, self.setup.policy(self))

    def plays_on(self, result: StepResult) -> np.ndarray:
        """Return for which powers (E, P) the game goes on if it does for any."""
        return result.alive

    def values_of(self, rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
        """Return the value (n,) of the positions of games `rows` (n,) for `powers` (n,)."""
        with torch.no_grad():
            return self.agent.get_value(self.agent.observe(self.games, rows, powers)).cpu().numpy()


def learn(run: Run, ranks: Ranks, log: RunLog) -> None:
    """Estimate advantages of every finished transition of all streams, and learn from them."""
    args = run.args
    with log.clock("batching"):
        batch = run.buffer.take_batch(compute_gae(run.buffer, args.gamma, args.gae_lambda))
        sums = ranks.sum(batch.sums() | run.episodes.take())
    first = run.step - int(sums["batch"][0])  # so that the last batch is learned from, too
    frac = max(0.0, 1.0 - first / args.total_timesteps) if args.anneal else 1.0
    for group in run.optimizer.param_groups if args.anneal else ():
        group["lr"] = frac * group.setdefault("initial_lr", group["lr"])
    ent_coef = args.ent_coef * frac
    with log.clock("learning"):
        before, losses = weight_bits(run.agent), update(run, batch, ent_coef, ranks)
        counters = run.results.counters
        if run.average is not run.agent:
            frozen.update_average(
                run.average, run.agent, counters["updates"], args.average_exponent
            )
    check_learned(run, losses, before, ranks)
    counters["updates"] += 1
    charts = {"learning_rate": run.optimizer.param_groups[0]["lr"], "ent_coef": ent_coef}
    log.update(counters, statistics.of_update(run, losses, sums, charts))


def advance(run: Run, ranks: Ranks, log: RunLog) -> bool:
    """Play one phase of every game, and learn if a stream is full; True if a signal came."""
    with log.clock("games"):
        result, counts = run.play(log.clock)
    with log.clock("batching"):
        pay_learner(run, result)
    rows, finished = games_over(run, result)
    # Summed over all ranks, so that each comes to the same conclusions.
    flags = {"full": run.buffer.count.max() >= run.args.num_steps, "stop": log.stop.received}
    total = ranks.sum(counts | finished | flags)
    run.results.count(total, run.pool.copies)
    run.pool.record(total["copy_games"], total["copy_score"])
    with log.clock("games"):
        run.games.reset(rows)
        run.seat(rows)
    if run.pool.is_due(run.step):
        run.pool.freeze(run.average, run.step)
        run.pool.forget(ranks.union(run.seats.member))
    if total["full"]:
        learn(run, ranks, log)
    return bool(total["stop"])


def train(
    setup: Setup, ranks: Ranks, stop_after: int | None = None, make_run: type | None = None
) -> bool:
    """Play, learn, evaluate and save until all decisions are made; False if it stops before.

    `stop_after`: it stops after the first evaluation from that step on.
    """
    run, args = (make_run or Run)(setup, ranks), setup.args
    if not setup.resume(run, ranks):
        run.seat(np.arange(run.games.num_games))

    def evaluate_and_save(log: RunLog, last: bool = False) -> None:
        with log.clock("evaluation"):
            run.evaluate(ranks, log, last)
        run.evaluations, run.evaluated_at = run.evaluations + 1, run.step
        save(run, ranks, log)

    with startup.logs(setup, ranks, run) as log:
        while run.step < args.total_timesteps:
            if run.step // args.eval_interval > run.evaluated_at // args.eval_interval:
                evaluate_and_save(log)
                if stop_after is not None and run.step >= stop_after:
                    return False
            if advance(run, ranks, log):
                raise Stopped  # saves
        # A resumed run may have come so far; else open transitions count as they are valued.
        if ranks.sum({"rows": run.buffer.num_rows})["rows"]:
            streams, row, power = run.buffer.open_seats()
            run.buffer.close(streams, run.values_of(row, power))
            learn(run, ranks, log)
        if run.evaluated_at < run.step:
            evaluate_and_save(log, last=True)
        else:
            log.message("this run was finished; a larger --total-timesteps continues it")
        return True
    return False


def make_agent(options: dict, game_map: Map) -> Agent:
    """Return a new agent; what is read of `options`, the settings, says which network it is."""
    names = "hidden", "num_layers", "autoregressive", "cross_support"
    return Agent(game_map, *(options[name] for name in names))


LEARNER_SPEC = registry.register(__name__, __file__, Args, make_agent)  # plays its checkpoints

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_SPEC, train))
