"""Self-play PPO for no-press Diplomacy, in one file.

    python ppo_selfplay_diplomacy.py --map small                       # learn to beat DumbBot
    python ppo_selfplay_diplomacy.py --resume runs/small__...          # continue a run
    torchrun --nproc_per_node=2 ppo_selfplay_diplomacy.py --map three  # ranks on several machines
    python -m diplomacy_engine evaluate --map small --player runs/small__.../checkpoint.pt

Many games run at once. In each, a few seats (one by default) are the learner's; every other seat is
played by a frozen copy of an earlier learner, drawn from a pool when the game starts and kept until
it ends. A *decision* is one power's orders in one phase. Powers skip phases in which they have
nothing to order, so each learner seat fills its own buffer, a *stream*, at its own pace; as soon as
one stream is full, PPO learns from every finished transition of all of them.

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

import tyro
from msgspec import Meta

from diplomacy_engine.learning import settings

Count = Annotated[int, Meta(ge=1, le=10**9)]
Share = Annotated[float, Meta(ge=0, le=1)]
Weight = Annotated[float, Meta(ge=0, le=10**9)]


@dataclass(frozen=True)
class Args:
    """Settings: the recipe for the small map. A map's file in configs/ and flags override them."""

    # To begin with
    map: str = "small"
    """small, three, standard, or the path of a map file of your own"""
    total_timesteps: Annotated[int, Meta(ge=1, le=10**15)] = 900_000  # more did not help
    """learner decisions in all; one decision is all orders of one power in one phase"""
    seed: Annotated[int, Meta(ge=0, le=2**62)] = 1
    """seed of all random numbers"""
    processes: Annotated[int, Meta(ge=1, le=1024)] = 2
    """processes that train together, one per core; another number gives another run"""
    resume: str | None = None
    """run folder to continue; only --total-timesteps, --track and --cuda may be changed"""

    # The run
    config: str | None = None
    """settings file (TOML); None: configs/{map}.toml if there is one"""
    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    start_from: str | None = None
    """checkpoint or run folder of a policy to begin with, instead of a random one"""
    runs_folder: str = "runs"
    """folder in which the run folder is made"""
    cuda: bool = False
    """use a GPU if there is one"""
    track: bool = False
    """log to Weights & Biases as well; WANDB_PROJECT and WANDB_ENTITY say where"""

    # Games
    num_envs: Annotated[int, Meta(ge=1, le=10**6)] = 256
    """games played at once, by all processes together"""
    max_years: Annotated[int, Meta(ge=0, le=10_000)] | None = None
    """game years after which a game ends; None: the map's, 0: never"""
    year_limit: Literal["draw", "truncate"] = "draw"
    """draw: a draw by rule, which pays end rewards; truncate: a cut, the value is bootstrapped"""
    reward: str = "sum_of_squares=1,lead_delta=1"  # also pays for keeping RUSSIA's lead small
    """a name, module:function, or a mix with weights: sum_of_squares=1,center_delta=1..0"""
    learner_seats: Count = 1
    """seats of each game that the learner plays and learns from"""
    weak_seats: Share = 0.95  # more games as ENGLAND, which RUSSIA nearly always beats
    """how much more often the learner plays powers that win less: weight 1 - this * win rate"""
    opponent_temperature: Annotated[float, Meta(ge=0.01, le=100)] = 3.0  # so ENGLAND can win games
    """opponents draw orders at a temperature between 1 and this, drawn for each seat"""
    warm_up_share: Share = 0.0
    """probability that a power begins a game with some phases of random orders"""
    help_others: bool = True
    """whether a unit may support or convoy other powers' units; yes for allies and who talks"""

    # Opponents
    pool_size: Count = 20  # copies of the whole run: old ones are beatable opponents, too
    """frozen copies that new games draw from"""
    pool_interval: Count = 45_000
    """learner decisions between two copies"""
    pool_sampling: Literal["latest", "recency", "pfsp"] = "latest"
    """how a copy is drawn: newest with --latest-prob, by age, or by how hard it is to beat"""
    latest_prob: Share = 0.5
    """probability of the newest copy; the older ones share the rest evenly (0: all are alike)"""
    pool_bots: tuple[str, ...] = ()
    """bots, searches and policies (names or paths) to play against as well"""
    pool_bot_prob: Share = 0.2
    """probability that an opponent's seat goes to one of them, if there are any"""

    # PPO
    learning_rate: Weight = 1e-3
    """step size of Adam"""
    anneal_lr: bool = True
    """let the learning rate fall linearly to 0"""
    num_steps: Annotated[int, Meta(ge=2, le=10**6)] = 16  # small updates; GAE needs a next decision
    """an update comes once a seat of the learner (a stream) has made this many decisions"""
    gamma: Share = 0.99
    """discount per decision"""
    gae_lambda: Share = 0.8  # credits an order with about five decisions: learns faster at first
    """lambda of generalized advantage estimation"""
    num_minibatches: Annotated[int, Meta(ge=1, le=10**6)] = 8
    """minibatches of one epoch"""
    update_epochs: Annotated[int, Meta(ge=1, le=10**6)] = 3
    """epochs of one update"""
    clip_coef: Weight = 0.2
    """clipping range of the policy ratio"""
    ent_coef: Weight = 0.05
    """weight of the entropy, measured as a share (0..1) of the greatest possible one"""
    anneal_ent: bool = True
    """let the weight of the entropy fall linearly to 0"""
    vf_coef: Weight = 0.5
    """weight of the value loss"""
    max_grad_norm: Weight = 0.5
    """clipping norm of the gradient"""
    target_kl: Weight | None = None
    """stop an update's epochs once the mean KL divergence of one passes this"""
    average_power: Weight = 2.0  # the newest weights go around in circles; their average does not
    """play and freeze averaged weights, where update n has weight n ** AVERAGE_POWER; 0: newest"""

    # Network
    hidden: Annotated[int, Meta(ge=1, le=10**6)] = 64
    """width of the network's layers"""
    num_layers: Annotated[int, Meta(ge=0, le=1024)] = 0  # as good here, in half the time
    """rounds of exchange between neighboring provinces"""
    autoregressive: bool = True
    """a unit's orders see those already given to earlier units of the decision"""

    # Evaluation and records
    eval_interval: Count = 75_000
    """learner decisions between evaluations against the bots, each with a checkpoint"""
    eval_games: Annotated[int, Meta(ge=1, le=10**6)] = 200
    """games of one evaluation against one bot, all seats equally often"""
    eval_bots: tuple[str, ...] = ("random", "dumbbot")
    """players to evaluate against, by name or path; by default never used for training"""
    capture_games: Annotated[int, Meta(ge=0, le=1000)] = 1
    """sample games of each evaluation against one bot, with the policy's thoughts and images"""


if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv):
    tyro.cli(Args, **settings.command_line(Args))  # ends here: a help need not load PyTorch

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import diplomacy_engine as engine
from diplomacy_engine import BoardViews, Decisions, Map, VectorGame
from diplomacy_engine.constants import NONE
from diplomacy_engine.learning import frozen, ops, players, registry, startup, statistics
from diplomacy_engine.learning.boards import BoardInputs, Boards, Codes, Orders
from diplomacy_engine.learning.checkpoint_state import Kept, check_learned, save, weight_bits
from diplomacy_engine.learning.evaluations import evaluate
from diplomacy_engine.learning.experience import Batch, Experience


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
    probability: torch.Tensor | None = None  # (N,) of orders drawn: of every legal order
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
        self, game_map: Map, hidden: int, num_layers: int, autoregressive=True, help_others=True
    ):
        super().__init__()
        self.inputs = inputs = BoardInputs(game_map)  # makes tensors of boards and orders
        self.autoregressive, self.help_others = autoregressive, help_others
        self.province_features = nn.Embedding(inputs.num_features, hidden)
        self.global_features = layer_init(nn.Linear(inputs.num_globals, hidden))

        def layers(std: float = 2**0.5, bias: bool = True) -> nn.ModuleList:
            linears = (nn.Linear(hidden, hidden, bias) for _ in range(num_layers))
            return nn.ModuleList(layer_init(layer, std) for layer in linears)

        # Each layer adds to a province's code what it makes of that and of its neighbors' mean.
        self.own, self.near, self.out = layers(), layers(bias=False), layers(0.5)
        self.norms = nn.ModuleList(ops.LayerNorm(hidden) for _ in range(num_layers + 1))

        self.power = nn.Embedding(inputs.num_powers, hidden)
        self.order_provinces = layer_init(nn.Linear(hidden, 3 * hidden))  # source, place, other
        self.order_kinds = nn.Embedding(inputs.num_kinds, hidden)
        self.order_context = layer_init(nn.Linear(3 * hidden, hidden))
        self.earlier_orders = layer_init(nn.Linear(hidden, hidden), 0.5)
        for table in (self.province_features, self.power):
            nn.init.normal_(table.weight, std=0.3)
        standings, kinds, relations = self.order_kinds.weight.data.split(inputs.kind_sizes)
        nn.init.normal_(standings, std=0.1)  # who holds the provinces that an order names
        nn.init.normal_(kinds, std=0.3)  # what kind of order it is
        nn.init.zeros_(relations)  # how it relates to orders given to earlier units
        self.score = layer_init(nn.Linear(hidden, 1, bias=False), 0.1)
        first = layer_init(nn.Linear(3 * hidden, hidden))
        self.critic = nn.Sequential(first, nn.ReLU(), layer_init(nn.Linear(hidden, 1), 1.0))

    def observe(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        """Return what `powers` (D,) see of the games `rows` (D,); nothing else reaches `encode`."""
        return games.view_boards(rows, powers)

    def legal_orders(self, games: VectorGame, decisions: Decisions) -> Decisions:
        """Return D decisions with the orders that the policy chooses from, some for each slot."""
        return engine.own_choices(games, decisions, self.help_others)

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
        layer = self.order_provinces
        roles = zip(orders.named_codes(codes), layer.weight.chunk(3), layer.bias.chunk(3))
        return ops.OrderTables(
            provinces=torch.cat([F.linear(rows, weight, bias) for rows, weight, bias in roles]),
            kinds=self.order_kinds.weight,
            context=self.order_context(codes.view),  # (D, H), added to all orders of a decision
            weight=self.score.weight[0],
            earlier=self.earlier_orders if self.autoregressive else None,
        )

    def get_action(
        self,
        codes: Codes,
        orders: Orders,
        noise: np.ndarray | None = None,
        temperature: np.ndarray | None = None,
    ) -> Action:
        """Draw the orders of D decisions unit by unit, or score those that `orders` has as picked.

        This is the policy. Gumbel `noise` (N,) decides the draws, at a `temperature` (D,).
        """
        tables = self.order_tables(codes, orders)
        if orders.picked is None:
            chosen, logprob, probability = ops.draw_orders(orders, tables, noise, temperature)
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
        """Do as `get_action`, with values: draw, or score the orders `chosen` (S,) int64."""
        boards = self.inputs(obs)
        codes = self.encode(boards)
        value = self.critic(codes.view).squeeze(-1)
        orders = self.inputs.orders(boards, decisions, chosen, self.autoregressive)
        return self.get_action(codes, orders, noise, temperature)._replace(value=value)


LEARNER = 0  # a member's number: the learner, then bots, then copies as they are frozen
AT_RANDOM = NONE  # the number in a power's seat while it begins with random orders
RANDOM_BOT = engine.load_player("random")
RECENCY_DECAY = 0.8  # weight of a copy, relative to the next newer one
WARM_UP_PHASES = 8  # the most phases of a random beginning


class OpponentPool(Kept):
    """Who else sits at the tables: frozen copies of the learner, and perhaps bots.

    New games draw from `copies`, oldest first; `agents` also has older ones still at a table.
    """

    REBUILT = ("args", "bots")  # a checkpoint keeps all other attributes

    def __init__(self, args: Args, game_map: Map):
        self.args = args
        bots = [players.load_opponent(name, game_map) for name in args.pool_bots]
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

    def act(self, who: np.ndarray, obs, decisions, temperature) -> np.ndarray:
        """Return what copies `who` (D,), in ascending order, choose, (S,): each by `get_action`."""
        noise = ops.draw_noise(decisions)
        return frozen.act(self.agents, who, obs, decisions, noise, temperature)

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
    warm_up: np.ndarray  # int64, phases in which the power still orders at random
    temperature: np.ndarray  # float32, of the draws; 1 for the learner

    def learner(self, among: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return those of the streams `among` (streams,) bool that a seat has, game and power."""
        row, power = np.nonzero(self.stream != NONE)
        order = np.argsort(self.stream[row, power])
        streams, row, power = self.stream[row, power][order], row[order], power[order]
        chosen = among[streams]
        return streams[chosen], row[chosen], power[chosen]


def assign_seats(run: "Run", rows: np.ndarray) -> None:
    """Seat learner and opponents in the new games `rows`.

    The learner gets `learner_seats`, more often of powers with which it wins less. Opponents at a
    higher temperature err, so it can win; random beginnings are positions its play never reaches.
    """
    args, rng, seats = run.args, run.rng, run.seats
    shape = len(rows), len(run.game_map.powers)
    # Weighted sampling without replacement (Efraimidis & Spirakis 2006): the lowest keys are in.
    weights = np.maximum(1 - args.weak_seats * run.results.win_share, 0.05)
    keys = rng.exponential(size=shape) / weights
    place = keys.argsort(1).argsort(1)
    learns = place < args.learner_seats
    seats.member[rows] = np.where(learns, LEARNER, run.pool.sample(rng, shape))
    seats.stream[rows] = np.where(learns, rows[:, None] * args.learner_seats + place, NONE)
    if args.opponent_temperature != 1:
        drawn = args.opponent_temperature ** rng.random(shape)
        seats.temperature[rows] = np.where(learns, 1.0, drawn)
    if args.warm_up_share > 0:
        phases = rng.integers(1, WARM_UP_PHASES + 1, shape)
        seats.warm_up[rows] = phases * (rng.random(shape) < args.warm_up_share)


class Buffer(Kept):
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
        self.row = np.zeros(shape, np.int64)  # its number in `seen`, which is in order of time
        self.count = np.zeros(shape[1], np.int64)  # transitions of each stream
        self.open = np.zeros(shape[1], bool)
        self.seen: list[Experience] = []
        self.num_rows = 0  # decisions in `seen`

    def add(
        self, streams: np.ndarray, seen: Experience, logprobs: np.ndarray, values: np.ndarray
    ) -> None:
        """Store a new decision of each of `streams`; it closes the stream's open one."""
        self.close(streams, values, ends=False)
        t = self.count[streams]
        self.values[t, streams] = values
        self.logprobs[t, streams] = logprobs
        self.row[t, streams] = self.num_rows + np.arange(len(streams))
        self.count[streams] += 1
        self.open[streams] = True
        self.num_rows += len(streams)
        self.seen.append(seen)

    def pay(self, streams: np.ndarray, rewards: np.ndarray) -> None:
        """Add `rewards` (n,) to the open transitions of `streams` (n,)."""
        self.rewards[self.count[streams] - 1, streams] += rewards

    def close(
        self, streams: np.ndarray, next_values: np.ndarray | float, ends: bool = True
    ) -> np.ndarray:
        """Close the transitions of `streams` that are open, as the last ones of their games or as
        followed by another; return which were. `next_values` are worth what comes after them.
        """
        next_values = np.broadcast_to(np.asarray(next_values, np.float32), streams.shape)
        was_open = self.open[streams]
        streams = streams[was_open]
        t = self.count[streams] - 1
        self.next_values[t, streams] = next_values[was_open]
        self.ends[t, streams] = ends
        self.closed[t, streams] = True
        self.open[streams] = False
        return streams

    def take_batch(self, advantages: np.ndarray) -> Batch:
        """Return closed transitions with their `advantages` (T, streams); open ones carry over."""
        seen, closed = Experience.join(self.seen), self.closed
        values, advantages = self.values[closed], advantages[closed]
        experience = seen.take(self.row[closed])
        batch = Batch(experience, self.logprobs[closed], values, advantages, advantages + values)
        streams = np.flatnonzero(self.open)
        t = self.count[streams] - 1
        carried = seen.take(self.row[t, streams])
        logprobs, values = self.logprobs[t, streams], self.values[t, streams]
        rewards = self.rewards[t, streams]
        self.clear(self.rewards.shape)
        if len(streams):
            self.add(streams, carried, logprobs, values)
            self.rewards[0, streams] = rewards
        return batch


def play_phase(
    run: "Run", clock: startup.Clock, decisions: Decisions | None = None, view=None, revalue=None
) -> tuple[engine.StepResult, dict[str, int]]:
    """Play one phase of every game; return its result and by how much each counter rises.

    Other learners may give the `decisions`, with fewer legal orders, `view(agent, decisions)`: what
    an agent sees, and `revalue(experience, orders, values)`: the learner's values that are kept.
    """
    games, seats, pool = run.games, run.seats, run.pool
    decisions = decisions or games.decisions()
    view = view or (lambda agent, asked: agent.observe(games, asked.game, asked.power))
    at = decisions.game, decisions.power
    who = np.where(seats.warm_up[at] > 0, AT_RANDOM, seats.member[at])  # (D,)
    orders = games.new_orders()  # (E, V), merged below

    # The learner.
    learner = run.agent.legal_orders(games, decisions.take(who == LEARNER))
    obs, noise = view(run.agent, learner), ops.draw_noise(learner)
    with clock("inference"), torch.no_grad():
        action = run.agent.get_action_and_value(obs, learner, noise=noise)
    games.write_orders(orders, learner, engine.order_numbers(learner, action.chosen))

    # Its frozen copies, all together, each for its own seats.
    rows = np.argsort(who, kind="stable")[np.count_nonzero(who <= LEARNER + len(pool.bots)) :]
    asked, obs_of_copies = frozen.ask(pool.agents, who[rows], games, decisions.take(rows), view)
    with clock("inference"):
        chosen = pool.act(who[rows], obs_of_copies, asked, seats.temperature[at][rows])
    games.write_orders(orders, asked, engine.order_numbers(asked, chosen))

    # Bots, and powers that begin at random.
    for number, bot in {AT_RANDOM: RANDOM_BOT, **pool.bots}.items():
        asked = decisions.take(who == number)
        if asked.count:
            games.write_orders(orders, asked, engine.ask_player(games, asked, bot))

    # What the learner did is kept, until the stream's next decision closes it.
    seen, values = Experience(obs, learner, action.chosen), action.value.cpu().numpy()
    values = revalue(seen, orders, values) if revalue else values
    streams = seats.stream[learner.game, learner.power]
    run.buffer.add(streams, seen, action.logprob.cpu().numpy(), values)
    run.episodes.decide(streams)
    counts = {"global_step": learner.count, "order_steps": len(learner.slot_province)}
    return games.step(orders), counts | {"env_steps": games.num_games}


def pay_learner(run: "Run", result: engine.StepResult) -> None:
    """Pay the open transitions for the phase, and close those whose game is over."""
    buffer, truncates = run.buffer, run.args.year_limit == "truncate"
    streams, row, power = run.seats.learner(buffer.open)
    position = engine.reward_input(result, run.games.board.victory_centers, not truncates)
    paid = {name: reward(position)[row, power] for name, reward in run.reward.parts.items()}
    rewards = run.reward.weigh(paid, min(1.0, run.step / run.args.total_timesteps))
    buffer.pay(streams, rewards)
    run.episodes.pay(streams, rewards, paid)

    lives = run.plays_on(result)[row, power]
    over = ~lives | (result.ended != engine.constants.RUNNING)[row]
    # A cut is no end: the position's value stands for what would have come.
    cut = over & lives & truncates & (result.ended == engine.constants.YEAR_LIMIT)[row]
    ended = buffer.close(streams[over & ~cut], 0.0)
    broken_off = buffer.close(streams[cut], run.values_of(row[cut], power[cut]))
    run.episodes.end(np.concatenate([ended, broken_off]))


def games_over(run: "Run", result: engine.StepResult) -> tuple[np.ndarray, dict]:
    """Return the rows whose game is over for the learner, and what is counted of those games."""
    seats = run.seats
    learns, at_random = seats.stream != NONE, seats.warm_up > 0
    seats.warm_up[:] -= at_random
    out = ~(run.plays_on(result) & learns).any(1)
    rows = np.flatnonzero((result.ended != engine.constants.RUNNING) | out)
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


def update(run: "Run", batch: Batch, ent_coef: float, ranks: startup.Ranks) -> dict[str, float]:
    """Learn from the batches of all ranks in epochs of minibatches; return the metrics' means."""
    args, agent, device = run.args, run.agent.train(), run.setup.device
    epochs = [batch.split(args.num_minibatches, run.rng) for _ in range(args.update_epochs)]
    # Size of each minibatch on all ranks together, mean and deviation of its advantages.
    moments = ranks.moments(batch.advantages, epochs)  # (epochs, minibatches, 3)
    means = []  # of the metrics, by epoch
    for minibatches, of_minibatch in zip(epochs, moments, strict=True):
        parts = []
        for rows, (count, mean, deviation) in zip(minibatches, of_minibatch, strict=True):
            if not count:
                continue
            share, metrics = len(rows) / float(count), {}  # what this rank has of the minibatch
            run.optimizer.zero_grad()
            if share:
                own = batch.take(rows)
                own = own._replace(advantages=(own.advantages - mean) / (deviation + 1e-8))
                new = agent.get_action_and_value(*own.experience)
                loss, metrics = ppo_loss(args, ent_coef, new, own.tensors(device))
                (loss * share).backward()  # so that the sum over all ranks is the mean
            ranks.sum_gradients(agent.parameters())
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            run.optimizer.step()
            parts.append((share, {n: torch.as_tensor(m).detach() for n, m in metrics.items()}))
        means.append(ranks.mean_metrics(parts))
        if args.target_kl is not None and means[-1]["approx_kl"] > args.target_kl:
            break
    ranks.average_buffers(agent.eval())  # it plays as it is kept, by running statistics
    return {name: sum(epoch[name] for epoch in means) / len(means) for name in means[0]}


class Run(Kept):
    """Everything that changes while training goes on."""

    # Made anew by __init__; a checkpoint keeps all other attributes. Those OF_RANK differ from
    # process to process, what is neither must be the same on all.
    REBUILT = ("args", "game_map", "setup", "reward")
    OF_RANK = ("games", "seats", "buffer", "episodes", "rng")

    def __init__(self, setup: startup.Setup, ranks: startup.Ranks, pool: type = OpponentPool):
        args, game_map = setup.args, setup.game_map
        self.args, self.game_map, self.setup = args, game_map, setup
        own = ranks.share(args)  # this rank's part of the games, and a seed of its own
        startup.seed_generators(args.seed)
        self.agent = setup.learner.make_agent(vars(args), game_map).to(setup.device).eval()
        if setup.weights:
            self.agent.load_state_dict(setup.weights)
        self.average = frozen.frozen_copy(self.agent) if args.average_power else self.agent
        weights = self.agent.parameters()
        self.optimizer = torch.optim.Adam(weights, args.learning_rate, eps=1e-5, fused=True)
        if ranks.rank:  # only the first weights are the same draws on all ranks
            startup.seed_generators(own.seed)
        self.rng = np.random.default_rng(own.seed)  # seats, opponents, minibatches; torch's: orders

        games = game_map, own.num_envs, own.seed, args.max_years, ranks.game_threads(setup.device)
        self.games = VectorGame(*games, auto_reset=False)
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

    def plays_on(self, result: engine.StepResult) -> np.ndarray:
        """Return for which powers (E, P) the game goes on if it does for any."""
        return result.alive

    def values_of(self, rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
        """Return the value (n,) of the positions of games `rows` (n,) for `powers` (n,)."""
        with torch.no_grad():
            return self.agent.get_value(self.agent.observe(self.games, rows, powers)).cpu().numpy()


def learn(run: Run, ranks: startup.Ranks, log: startup.RunLog) -> None:
    """Estimate advantages of every finished transition of all streams, and learn from them."""
    args = run.args
    with log.clock("batching"):
        batch = run.buffer.take_batch(compute_gae(run.buffer, args.gamma, args.gae_lambda))
        sums = ranks.sum(batch.sums() | run.episodes.take())
    first = run.step - int(sums["batch"][0])  # so that the last batch is learned from, too
    left = max(0.0, 1.0 - first / args.total_timesteps)
    for group in run.optimizer.param_groups if args.anneal_lr else ():
        group["lr"] = left * group.setdefault("initial_lr", group["lr"])
    ent_coef = args.ent_coef * left if args.anneal_ent else args.ent_coef
    with log.clock("learning"):
        before, losses = weight_bits(run.agent), update(run, batch, ent_coef, ranks)
        counters = run.results.counters
        if run.average is not run.agent:
            frozen.update_average(run.average, run.agent, counters["updates"], args.average_power)
    check_learned(run, losses, before, ranks)
    counters["updates"] += 1
    charts = {"learning_rate": run.optimizer.param_groups[0]["lr"], "ent_coef": ent_coef}
    log.update(counters, statistics.of_update(run, losses, sums, charts))


def train(setup: startup.Setup, ranks: startup.Ranks, until: int | None = None, **parts) -> bool:
    """Play, learn, evaluate and save until all decisions are made; False if it stops before.

    `until`: it stops after the first evaluation from that step on. Other learners give `parts`.
    """
    make_run, play = parts.get("make_run", Run), parts.get("play", play_phase)
    seat, assess = parts.get("seat", assign_seats), parts.get("assess", evaluate)
    run, args = make_run(setup, ranks), setup.args
    if not setup.resume(run, ranks):
        seat(run, np.arange(run.games.num_games))

    def evaluate_and_save(log: startup.RunLog, **last: bool) -> None:
        with log.clock("evaluation"):
            assess(run, ranks, log, **last)
        run.evaluations, run.evaluated_at = run.evaluations + 1, run.step
        save(run, ranks, log)

    with startup.logs(setup, ranks, run) as log:
        while run.step < args.total_timesteps:
            if run.step // args.eval_interval > run.evaluated_at // args.eval_interval:
                evaluate_and_save(log)
                if until is not None and run.step >= until:
                    return False
            with log.clock("games"):
                result, counts = play(run, log.clock)
            with log.clock("batching"):
                pay_learner(run, result)
            rows, finished = games_over(run, result)
            # Summed over all ranks, so that each comes to the same conclusions.
            flags = {"full": run.buffer.count.max() >= args.num_steps, "stop": log.stop.received}
            total = ranks.sum(counts | finished | flags)
            run.results.count(total)
            run.pool.record(total["copy_games"], total["copy_score"])
            with log.clock("games"):
                run.games.reset(rows)
                seat(run, rows)
            if run.pool.is_due(run.step):
                run.pool.freeze(run.average, run.step)
                run.pool.forget(ranks.union(run.seats.member))
            if total["full"]:
                learn(run, ranks, log)
            if total["stop"]:
                raise startup.Stopped  # saves
        # A resumed run may have come so far; else open transitions count as they are valued.
        if ranks.sum({"rows": run.buffer.num_rows})["rows"]:
            streams, row, power = run.seats.learner(run.buffer.open)
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
    names = "hidden", "num_layers", "autoregressive", "help_others"
    return Agent(game_map, *(options[name] for name in names))


LEARNER_HERE = registry.register(__name__, __file__, Args, make_agent)  # plays its checkpoints

if __name__ == "__main__":
    args = tyro.cli(Args, **settings.command_line(Args))
    sys.exit(startup.main(LEARNER_HERE, train, args))
