"""Self-play PPO for no-press Diplomacy, in one file.

    python ppo_selfplay_diplomacy.py --map small                       # learn to beat DumbBot
    python ppo_selfplay_diplomacy.py --resume runs/small__...          # continue a run
    python ppo_selfplay_diplomacy.py --map small --track               # log to W&B as well
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

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels

import sys
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import diplomacy_engine as engine
from diplomacy_engine._fields import Between, NonNegative, Positive, Share
from diplomacy_engine.constants import NONE
from diplomacy_engine.learning import (
    checkpoint_state,
    frozen,
    ops,
    players,
    registry,
    startup,
    statistics,
)
from diplomacy_engine.learning.boards import BoardInputs, Boards, Codes, Orders
from diplomacy_engine.learning.experience import Batch, Experience
from diplomacy_engine.learning.league import League


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
    exp_name: str = "ppo_selfplay_diplomacy"
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
    teams: str = ""
    """powers that win and lose together: ENGLAND+ITALY, or more teams with commas between"""
    team_victory: Annotated[int, Between(0, 10_000)] = 0
    """centers with which a team wins after a fall, if no other has as many; 0: none does"""
    learner_seats: Positive = 1
    """seats of each game that the learner plays and learns from; with --teams one team"""
    self_play_share: Share = 0.0
    """share of the games in which the learner plays all seats"""
    weak_seats: Share = 0.0
    """how much more often the learner plays powers with which it wins less; 0: not at all"""
    opponent_temperature: Annotated[float, Between(0.01, 100)] = 1.0
    """opponents draw orders at a temperature between 1 and this, drawn for each seat"""
    warm_up_share: Share = 0.0
    """probability that a power begins a game with some phases of random orders"""

    # Opponents
    pool_size: Positive = 10
    """frozen copies that new games draw from"""
    pool_interval: Positive = 50_000
    """learner decisions between two copies"""
    pool_sampling: Literal["latest", "uniform", "recency", "pfsp"] = "latest"
    """how a copy is drawn: newest with --latest-prob, uniformly, by age, or by how hard it is"""
    latest_prob: Share = 0.5
    """probability of the newest copy; the older ones share the rest"""
    freeze_score: Share | None = None
    """freeze the learner sooner, once it scores this (win 1, draw 0.5) against the newest copy"""
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
    norm_adv: bool = True
    """normalize advantages in each minibatch"""
    clip_coef: NonNegative = 0.2
    """clipping range of the policy ratio (and of the value)"""
    clip_vloss: bool = False
    """clip the value loss"""
    ent_coef: NonNegative = 0.02
    """weight of the entropy, measured as a share (0..1) of the greatest possible one"""
    anneal_ent: bool = False
    """let the weight of the entropy fall linearly to 0"""
    vf_coef: NonNegative = 0.5
    """weight of the value loss"""
    max_grad_norm: NonNegative = 0.5
    """clipping norm of the gradient"""
    target_kl: NonNegative | None = None
    """stop an update's epochs once the mean KL divergence of one passes this"""
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
    capture_thoughts: bool = False
    """keep the policy's order probabilities and values with the sample games, for the page"""


def layer_init(layer: nn.Linear, std: float = 2**0.5) -> nn.Linear:
    """Initialize a layer orthogonally with zero bias, as PPO implementations do."""
    nn.init.orthogonal_(layer.weight, std)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


class Agent(nn.Module):
    """Policy and value network; its size does not depend on the number of orders of the map.

    A board is encoded once for all its powers, by province, and borders wire a small graph network.
    An order is scored from its kind, the provinces it is about and how they stand to the power.
    With `autoregressive`, a unit's scores also see the orders given to earlier units.
    """

    def __init__(
        self, game_map: engine.Map, hidden: int, num_layers: int, autoregressive: bool = True
    ):
        super().__init__()
        self.inputs = inputs = BoardInputs(game_map)  # makes tensors of boards and orders
        self.autoregressive = autoregressive
        self.province_features = nn.Embedding(inputs.num_features, hidden)
        self.global_features = layer_init(nn.Linear(inputs.num_globals, hidden))

        def layers(std: float = 2**0.5, bias: bool = True) -> nn.ModuleList:
            made = (nn.Linear(hidden, hidden, bias) for _ in range(num_layers))
            return nn.ModuleList(layer_init(layer, std) for layer in made)

        self.own, self.near, self.out = layers(), layers(bias=False), layers(0.5)
        self.norms = nn.ModuleList(ops.LayerNorm(hidden) for _ in range(num_layers + 1))

        self.power = nn.Embedding(inputs.num_powers, hidden)
        self.order_provinces = layer_init(nn.Linear(hidden, 3 * hidden))  # source, place, other
        self.order_kinds = nn.Embedding(inputs.num_kinds, hidden)
        self.order_context = layer_init(nn.Linear(3 * hidden, hidden))
        self.earlier_orders = layer_init(nn.Linear(hidden, hidden), 0.5)
        for table in (self.province_features, self.power):
            nn.init.normal_(table.weight, std=0.3)
        kinds = self.order_kinds.weight.data
        nn.init.normal_(kinds[: inputs.first_class], std=0.1)
        nn.init.normal_(kinds[inputs.first_class : inputs.first_relation], std=0.3)
        nn.init.zeros_(kinds[inputs.first_relation :])
        self.score = layer_init(nn.Linear(hidden, 1, bias=False), 0.1)
        first = layer_init(nn.Linear(3 * hidden, hidden))
        self.critic = nn.Sequential(first, nn.ReLU(), layer_init(nn.Linear(hidden, 1), 1.0))

    def encode(self, boards: Boards) -> Codes:
        """Return the codes of all provinces and powers of G boards, and of the D viewers."""
        board = self.global_features(boards.globals)  # (G, H), a province's sum begins with it
        x = ops.sum_rows(boards.features, self.province_features.weight, board)  # (G V, H)
        x = x.view(-1, self.inputs.num_provinces, x.shape[1])  # (G, V, H)
        for norm, own, near, out in zip(self.norms, self.own, self.near, self.out):
            y = norm(x)
            x = x + out(ops.exchange(own(y), near(y), self.inputs))  # the near codes' mean
        x = self.norms[-1](x)
        whole, mine = ops.mean_provinces(x, boards)  # (G, 1, H) of a board, (G, P, H) of own units
        powers = torch.cat([whole.expand_as(mine), mine, self.power.weight.expand_as(mine)], -1)
        return Codes(x, powers, powers.flatten(0, 1).index_select(0, boards.viewer))

    def order_tables(self, codes: Codes, orders: Orders) -> ops.OrderTables:
        """Return what legal orders are scored from; only provinces that one of them names."""
        x, layer = codes.provinces.flatten(0, 1), self.order_provinces
        named = x.index_select(0, torch.cat(orders.named)).split([len(n) for n in orders.named])
        roles = zip(named, layer.weight.chunk(3), layer.bias.chunk(3))
        provinces = torch.cat([F.linear(rows, w, bias) for rows, w, bias in roles])
        earlier = self.earlier_orders if self.autoregressive else None
        context = self.order_context(codes.view)  # (D, H)
        return ops.OrderTables(
            provinces, self.order_kinds.weight, context, self.score.weight[0], earlier
        )

    def get_value(self, obs: engine.BoardViews) -> torch.Tensor:
        """Return the value (D,) of the boards for the powers that view them."""
        return self.critic(self.encode(self.inputs(obs)).view).squeeze(-1)

    def get_action_and_value(
        self,
        obs: engine.BoardViews,
        decisions: engine.Decisions,
        chosen: np.ndarray | None = None,
        noise: np.ndarray | None = None,
    ) -> tuple[np.ndarray, torch.Tensor, torch.Tensor | None, torch.Tensor]:
        """Draw the orders of D decisions unit by unit, or score those that are given.

        `chosen` (S,) int64 are positions in the slots' lists, Gumbel `noise` (N,) decides draws.
        Returns chosen; (D,) log-probability of all orders of a decision together; (D,) entropy
        along the chosen path, as a share (0..1) of the greatest, None if drawn; (D,) value.
        """
        boards = self.inputs(obs)
        codes = self.encode(boards)
        value = self.critic(codes.view).squeeze(-1)
        return *self.get_action(boards, codes, decisions, chosen, noise), value

    def get_action(
        self,
        boards: Boards,
        codes: Codes,
        decisions: engine.Decisions,
        chosen: np.ndarray | None = None,
        noise: np.ndarray | None = None,
    ) -> tuple[np.ndarray, torch.Tensor, torch.Tensor | None]:
        """Draw or score orders as above, without values, for boards that have been encoded."""
        orders = self.inputs.orders(boards, decisions, chosen, self.autoregressive)
        tables = self.order_tables(codes, orders)
        if chosen is None:
            noise = ops.draw_noise(decisions) if noise is None else noise
            chosen, logprob, _ = ops.draw_orders(orders, tables, noise)
            return chosen, logprob, None
        bases = tables.context.index_select(0, orders.decision)  # (S, H)
        if self.autoregressive:  # a unit's orders see what earlier units were given
            given = bases + ops.sum_rows(orders.given_provinces, tables.provinces)
            given = given + ops.sum_rows(orders.given_kinds, tables.kinds)
            bases = bases + ops.sum_of_earlier(self.earlier_orders(F.relu(given)), orders)
        logprob, entropy, greatest = ops.score_orders(orders, tables, bases)  # (S,) each
        share = ops.sum_slots(entropy, orders) / ops.sum_slots(greatest, orders).clamp(min=1e-6)
        return chosen, ops.sum_slots(logprob, orders), share


LEARNER = 0  # a member's number: the learner, then bots, then copies as they are frozen
AT_RANDOM = NONE  # in the place of a member: the power still begins at random
RANDOM_BOT = engine.load_player("random")
FREEZE_GAMES = 400  # against the newest copy, before --freeze-score can freeze another
MEMORY = 0.995  # per game, of the running means of wins
LAST_BOTS = {"lookahead": 2, "mcts": 20}  # met at the end, in one of so many games
RECENCY_DECAY = 0.8  # weight of a copy, relative to the next newer one
WARM_UP_PHASES = 8  # the most phases of a random beginning


class OpponentPool:
    """Who else sits at the tables: frozen copies of the learner, and perhaps bots.

    New games draw from `copies`, oldest first; `agents` also has older ones still at a table.
    """

    KEPT = ("agents", "frozen_at", "copies", "next_number", "games", "score")

    def __init__(self, args: Args, game_map: engine.Map):
        self.args = args
        bots = [players.load_opponent(name, game_map) for name in args.pool_bots]
        self.bots = dict(enumerate(bots, LEARNER + 1))
        self.agents: dict[int, Agent] = {}
        self.frozen_at: dict[int, int] = {}  # learner decisions, by number
        self.copies: list[int] = []
        self.next_number = LEARNER + 1 + len(bots)
        # The learner's games against each of the copies, and its score in them.
        self.games: dict[int, float] = {}
        self.score: dict[int, float] = {}

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
        newest, wanted = self.copies[-1], self.args.freeze_score
        games, score = self.games[newest], self.score[newest]
        beaten = wanted is not None and games >= FREEZE_GAMES and score >= wanted * games
        return beaten or global_step - self.frozen_at[newest] >= self.args.pool_interval

    def weights(self) -> np.ndarray:
        """Return the probabilities (copies,) with which a seat gets each copy."""
        args, count = self.args, len(self.copies)
        if args.pool_sampling == "latest":  # the newest, or one of the older ones, evenly
            latest = max(args.latest_prob, 1 / count)
            return np.append(np.full(count - 1, (1 - latest) / max(1, count - 1)), latest)
        weights = np.ones(count)  # uniform
        if args.pool_sampling == "recency":  # a copy weighs so much of the next newer one
            weights = RECENCY_DECAY ** np.arange(count)[::-1]
        elif args.pool_sampling == "pfsp":  # who is hard to beat (Vinyals et al. 2019, f_hard)
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
        """Return which streams are in use `among` those (streams,) bool, with game and power."""
        row, power = np.nonzero(self.stream != NONE)
        order = np.argsort(self.stream[row, power])
        streams, row, power = self.stream[row, power][order], row[order], power[order]
        kept = among[streams]
        return streams[kept], row[kept], power[kept]


def assign_seats(run: "Run", rows: np.ndarray) -> None:
    """Seat learner and opponents in the new games `rows`. A side is a power, or a team of powers.

    The learner gets all, or `learner_seats` or a team, more often a side with which it wins less.
    Random beginnings are positions that its play never reaches; hot opponents err, so it can win.
    """
    args, rng, seats = run.args, run.rng, run.seats
    side = run.game_map.teams.of_power  # (P,)
    shape, by_side = (len(rows), len(side)), (len(rows), int(side.max()) + 1)
    weights = np.maximum(1 - args.weak_seats * run.win_share, 0.05)
    arrival = rng.exponential(size=by_side) / weights  # the first to arrive are the learner's
    learns = arrival.argsort(1).argsort(1)[:, side] < (1 if args.teams else args.learner_seats)
    if args.self_play_share > 0:
        learns |= rng.random((len(rows), 1)) < args.self_play_share
    members = run.pool.sample(rng, by_side)[:, side]
    place = arrival[:, side].argsort(1, kind="stable").argsort(1)  # the learner's come first
    stream = rows[:, None] * run.streams_per_game + place
    seats.member[rows] = np.where(learns, LEARNER, members)
    seats.stream[rows] = np.where(learns, stream, NONE)
    if args.opponent_temperature != 1:
        drawn = args.opponent_temperature ** rng.random(by_side)[:, side]
        seats.temperature[rows] = np.where(learns, 1.0, drawn)
    if args.warm_up_share > 0:
        phases = rng.integers(1, WARM_UP_PHASES + 1, shape)
        seats.warm_up[rows] = phases * (rng.random(shape) < args.warm_up_share)


class Buffer:
    """What the learner did since its last update, a column for each stream, filled at its own pace.

    A transition is open from its orders on. What closes it: the stream's next decision (`add`), the
    end of its game or its power's elimination (with value 0), a year limit that truncates and the
    end of training (with the value of the position).
    """

    KEPT = ("rewards", "values", "next_values", "logprobs", "ends", "closed")
    KEPT += ("row", "count", "open", "seen", "num_rows")

    def __init__(self, num_steps: int, num_streams: int):
        shape = num_steps, num_streams  # (T, streams)
        self.rewards = np.zeros(shape, np.float32)
        self.values = np.zeros(shape, np.float32)
        self.next_values = np.zeros(shape, np.float32)
        self.logprobs = np.zeros(shape, np.float32)
        self.ends = np.zeros(shape, bool)  # the last transition of a game
        self.closed = np.zeros(shape, bool)
        self.row = np.zeros(shape, np.int64)  # of `seen`, which is in the order of collection
        self.count = np.zeros(num_streams, np.int64)
        self.open = np.zeros(num_streams, bool)
        self.seen: list[Experience] = []
        self.num_rows = 0  # of all that was seen

    def add(
        self, streams: np.ndarray, seen: Experience, logprobs: np.ndarray, values: np.ndarray
    ) -> None:
        """Store a new decision of each of `streams`; it closes the stream's open one."""
        self._close(streams, values, ends=False)
        t = self.count[streams]
        self.values[t, streams] = values
        self.logprobs[t, streams] = logprobs
        self.row[t, streams] = self.num_rows + np.arange(len(streams))
        self.count[streams] += 1
        self.open[streams] = True
        self.num_rows += len(streams)
        self.seen.append(seen)

    def pay(self, rewards: np.ndarray) -> None:
        """Add `rewards` (streams,) to the open transitions."""
        streams = np.flatnonzero(self.open)
        self.rewards[self.count[streams] - 1, streams] += rewards[streams]

    def close(self, streams: np.ndarray, final_values: np.ndarray | float) -> np.ndarray:
        """Close the transitions of `streams` that are open as the last ones; return which were."""
        final_values = np.broadcast_to(np.asarray(final_values, np.float32), streams.shape)
        return self._close(streams, final_values, ends=True)

    def _close(self, streams: np.ndarray, next_values: np.ndarray, ends: bool) -> np.ndarray:
        was_open = self.open[streams]
        streams = streams[was_open]
        t = self.count[streams] - 1
        self.next_values[t, streams] = next_values[was_open]
        self.ends[t, streams] = ends
        self.closed[t, streams] = True
        self.open[streams] = False
        return streams

    def take_batch(self, advantages: np.ndarray) -> Batch:
        """Return all closed transitions and forget them; open ones carry over to the next batch.

        `advantages` is (T, streams), of the closed transitions.
        """
        seen, closed = Experience.join(self.seen), self.closed
        values, advantages = self.values[closed], advantages[closed]
        experience = seen.take(self.row[closed])
        batch = Batch(experience, self.logprobs[closed], values, advantages, advantages + values)
        streams = np.flatnonzero(self.open)
        t = self.count[streams] - 1
        carried = seen.take(self.row[t, streams])
        logprobs, values = self.logprobs[t, streams], self.values[t, streams]
        rewards = self.rewards[t, streams]
        Buffer.__init__(self, *self.rewards.shape)
        if len(streams):
            self.add(streams, carried, logprobs, values)
            self.rewards[0, streams] = rewards
        return batch


def play_phase(run: "Run", clock: startup.Clock) -> tuple[engine.StepResult, dict[str, int]]:
    """Play one phase of every game; return its result and by how much each counter rises."""
    games, seats, pool = run.games, run.seats, run.pool
    decisions = games.decisions()  # D, of all powers of all games
    at = decisions.game, decisions.power
    who = np.where(seats.warm_up[at] > 0, AT_RANDOM, seats.member[at])  # (D,)
    orders = games.new_orders()  # (E, V), merged below

    # The learner: what it does is kept, until the stream's next decision closes it.
    asked = decisions.take(who == LEARNER)
    obs, noise = games.view_boards(asked.game, asked.power), ops.draw_noise(asked)
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
    obs, noise = games.view_boards(asked.game, asked.power), ops.draw_noise(asked)
    with clock("inference"):
        chosen = frozen.act(pool.agents, who[rows], obs, asked, noise, temperature)
    games.write_orders(orders, asked, engine.order_numbers(asked, chosen))

    # Bots, and powers that begin at random.
    for number, bot in {AT_RANDOM: RANDOM_BOT, **pool.bots}.items():
        asked = decisions.take(who == number)
        if asked.count:
            games.write_orders(orders, asked, engine.ask_player(games, asked, bot))
    return games.step(orders), counts


def pay_learner(run: "Run", result: engine.StepResult) -> None:
    """Pay the open transitions for the phase, and close those whose game is over.

    A stream ends with its power's team: what becomes of the team still counts for the last decision
    of a power that is out; otherwise no sacrifice could be learned.
    """
    buffer, victory_centers = run.buffer, run.games.board.victory_centers
    truncates = run.args.year_limit == "truncate"
    streams, row, power = run.seats.learner(buffer.open)
    position = engine.reward_input(result, victory_centers, not truncates)
    paid = {}
    for name, reward in run.reward.parts.items():
        paid[name] = np.zeros(len(buffer.open), np.float32)
        paid[name][streams] = reward(position)[row, power]
    rewards = run.reward.weigh(paid, min(1.0, run.step / run.args.total_timesteps))
    buffer.pay(rewards)
    run.episodes.pay(np.flatnonzero(buffer.open), rewards, paid)

    lives = engine.alive_with_team(result.alive, run.game_map.teams.of_power)[row, power]
    over = ~lives | (result.ended != engine.constants.RUNNING)[row]
    # A cut is no end: the position's value stands for what would have come.
    cut = over & lives & truncates & (result.ended == engine.constants.YEAR_LIMIT)[row]
    ended = buffer.close(streams[over & ~cut], 0.0)
    broken_off = buffer.close(streams[cut], run.values_of(row[cut], power[cut]))
    run.episodes.end(np.concatenate([ended, broken_off]))


def games_over(run: "Run", result: engine.StepResult) -> tuple[np.ndarray, statistics.Sums]:
    """Return the rows whose game is over for the learner, and what is counted of those games."""
    seats, side = run.seats, run.game_map.teams.of_power
    learns, warm = seats.stream != NONE, seats.warm_up > 0  # the warm have just ordered at random
    seats.warm_up[:] -= warm
    plays = (engine.alive_with_team(result.alive, side) & learns).any(1)
    rows = np.flatnonzero((result.ended != engine.constants.RUNNING) | ~plays)
    where = seats.member, learns & ~warm, side, run.games.board.first_year
    return rows, statistics.finished_games(
        result, rows, *where, run.pool.frozen_at, run.pool.copies
    )


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


LOSSES = ("policy_loss", "value_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac")


def ppo_loss(
    args: Args,
    ent_coef: float,
    newlogprob: torch.Tensor,
    entropy: torch.Tensor,
    newvalue: torch.Tensor,
    old: dict[str, torch.Tensor],
    count: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what (B,) transitions add to the PPO loss of a minibatch, and to the LOSSES.

    `old` has logprobs, values, advantages and returns (B,) of when the orders were given, `count`
    is the size of the minibatch on all ranks together.
    """
    advantages, values, returns = old["advantages"], old["values"], old["returns"]
    logratio = newlogprob - old["logprobs"]
    ratio = logratio.exp()
    pg_loss1 = -advantages * ratio
    pg_loss2 = -advantages * torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)
    pg_loss = torch.max(pg_loss1, pg_loss2).sum() / count
    v_loss = (newvalue - returns) ** 2
    if args.clip_vloss:
        v_clipped = values + torch.clamp(newvalue - values, -args.clip_coef, args.clip_coef)
        v_loss = torch.max(v_loss, (v_clipped - returns) ** 2)
    v_loss = 0.5 * v_loss.sum() / count
    entropy_loss = entropy.sum() / count
    loss = pg_loss - ent_coef * entropy_loss + v_loss * args.vf_coef
    with torch.no_grad():  # http://joschu.net/blog/kl-approx.html
        old_approx_kl = (-logratio).sum() / count
        approx_kl = ((ratio - 1) - logratio).sum() / count
        clipfrac = ((ratio - 1.0).abs() > args.clip_coef).sum() / count
    figures = pg_loss, v_loss, entropy_loss, old_approx_kl, approx_kl, clipfrac
    return loss, torch.stack([figure.detach() for figure in figures])


def update(run: "Run", batch: Batch, ent_coef: float, ranks: startup.Ranks) -> dict[str, float]:
    """Learn from the batches of all ranks in epochs of minibatches; return means of the LOSSES."""
    args, device = run.args, run.weights.device
    splits = [batch.split(args.num_minibatches, run.rng) for _ in range(args.update_epochs)]
    moments = statistics.moments(batch.advantages, splits, ranks)  # (epochs, minibatches, 3)
    collected = []
    for parts, of_epoch in zip(splits, moments):
        epoch = []
        for rows, (count, mean, deviation) in zip(parts, of_epoch):
            if not count:
                continue
            part = batch.take(rows)  # this rank's part of a minibatch of all ranks
            if args.norm_adv:
                part = part._replace(advantages=(part.advantages - mean) / (deviation + 1e-8))
            _, *new = run.agent.get_action_and_value(*part.experience)
            loss, figures = ppo_loss(args, ent_coef, *new, part.tensors(device), float(count))
            run.optimizer.zero_grad(set_to_none=False)
            loss.backward()
            epoch.append(ranks.sum_gradients(run.weights, figures))
            nn.utils.clip_grad_norm_(run.weights, args.max_grad_norm)
            run.optimizer.step()
        collected += epoch
        approx_kl = torch.stack(epoch).mean(0)[LOSSES.index("approx_kl")]
        if args.target_kl is not None and approx_kl > args.target_kl:
            break
    return dict(zip(LOSSES, torch.stack(collected).mean(0).tolist()))


def evaluate(run: "Run", ranks: startup.Ranks, log: startup.RunLog, last: bool = False) -> None:
    """Play the policy against each bot, all seats equally often, a part on each rank; log it."""
    args, parts = run.args, {}
    games = dict.fromkeys(args.eval_bots, args.eval_games)
    if last and len(run.game_map.provinces) <= 100:  # searches of larger maps take hours
        games = {bot: args.eval_games // part for bot, part in LAST_BOTS.items()} | games
    for number, name in enumerate(bot for bot in games if games[bot]):
        drawn = [args.seed, run.step, number]
        seed = int(np.random.SeedSequence(drawn).generate_state(1)[0])  # of the games
        own, theirs = np.random.SeedSequence([*drawn, ranks.rank]).generate_state(2).tolist()
        player = run.begun.learner.make_player(run.average, "learner", own)
        parts[name] = engine.evaluate_player(
            run.game_map.contested(),
            player,
            engine.load_player(name, game_map=run.game_map, seed=theirs),
            games[name],
            part=(ranks.rank, ranks.count),
            samples=args.capture_games,
            think=startup.thoughts_of(player) if args.capture_thoughts else None,
            seed=seed,
            max_years=args.max_years or None,  # an evaluation needs some limit
            year_limit=args.year_limit,
            threads=1,
        )
    everywhere = ranks.gather(parts)
    reports = {name: parts[name].join([found[name] for found in everywhere]) for name in parts}
    ratings = run.league.play(run.average, run.pool, run.begun.learner.make_player)
    log.evaluations(reports, run.step, ratings, run.begun.policy(run.average, run.step))


class Run:
    """Everything that changes while training goes on; a new run, or as its checkpoint has it."""

    # What a checkpoint keeps: this is the same on all ranks, and each has those of OF_RANK.
    KEPT = ("agent", "average", "optimizer", "pool", "league", "counters", "win_share", "sums")
    KEPT += ("next_eval", "next_save")
    OF_RANK = ("games", "seats", "buffer", "episodes", "rng")

    def __init__(self, begun: startup.Begun, ranks: startup.Ranks):
        args, game_map = begun.args, begun.game_map
        self.args, self.game_map, self.begun = args, game_map, begun
        own = ranks.share(args)  # this rank's part of the games, and a seed of its own
        torch.manual_seed(args.seed)
        self.agent = begun.learner.make_agent(vars(args), game_map).to(begun.device)
        if begun.weights:
            self.agent.load_state_dict(begun.weights)
        # Evaluated, frozen and kept: the newest weights go around in circles, averages do not.
        self.average = frozen.frozen_copy(self.agent) if args.average else self.agent
        self.weights = ops.flatten(self.agent)  # stepped and clipped in one pass over all of them
        self.optimizer = torch.optim.Adam([self.weights], args.learning_rate, eps=1e-5, fused=True)
        if ranks.rank:
            torch.manual_seed(own.seed)  # only the first weights are the same draws on all ranks
        self.rng = np.random.default_rng(own.seed)  # seats, opponents, minibatches; torch's: orders

        threads = ranks.game_threads(begun.device)
        self.games = engine.VectorGame(
            game_map, own.num_envs, own.seed, args.max_years, threads, auto_reset=False
        )
        self.pool = OpponentPool(args, game_map)
        self.pool.freeze(self.agent, 0)
        self.reward = engine.make_reward_mix(args.reward, game_map.teams)
        powers = len(game_map.powers)
        self.streams_per_game = startup.streams_per_game(args, powers)
        num_streams = own.num_envs * self.streams_per_game
        self.buffer = Buffer(args.num_steps, num_streams)
        self.episodes = statistics.Episodes(num_streams, self.reward.parts)
        self.league = League(args, game_map, active=ranks.rank == 0)

        self.counters = dict.fromkeys(statistics.COUNTERS, 0)
        self.sums = dict.fromkeys(statistics.SELFPLAY, 0.0)  # of games since the last update
        self.win_share = np.zeros(len(game_map.teams.names))  # running, by power or team
        self.next_eval, self.next_save = args.eval_interval, args.save_interval
        whole = np.zeros((own.num_envs, powers), np.int64)
        self.seats = Seats(whole, whole + NONE, whole.copy(), np.ones(whole.shape, np.float32))
        assign_seats(self, np.arange(own.num_envs))
        begun.take_up(self, ranks)

    @property
    def step(self) -> int:
        """Learner decisions made so far."""
        return self.counters["global_step"]

    def values_of(self, rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
        """Return the value (n,) of the positions of games `rows` (n,) for `powers` (n,).

        Of a power that is out, that for a living one of its team: no policy learns it for the dead.
        """
        alive, team = self.games.outcomes().alive[rows], self.game_map.teams.of_power
        powers = engine.living_mate(alive, team, powers)
        with torch.no_grad():
            return self.agent.get_value(self.games.view_boards(rows, powers)).cpu().numpy()

    def count(self, total: statistics.Sums) -> None:
        """Take in the sums of a step of all ranks."""
        for name in self.counters.keys() & total.keys():
            self.counters[name] += int(total[name])
        for name in self.sums:
            self.sums[name] += total[name]
        games = total["side_games"]
        share = total["side_wins"] / np.maximum(games, 1)
        self.win_share += (1 - MEMORY**games) * (share - self.win_share)
        self.pool.record(total["copy_games"], total["copy_score"])


def learn(run: Run, ranks: startup.Ranks, log: startup.RunLog) -> None:
    """Estimate advantages of every finished transition of all streams, and learn from them."""
    args = run.args
    with log.clock("batching"):
        batch = run.buffer.take_batch(compute_gae(run.buffer, args.gamma, args.gae_lambda))
        sums = {"variance": statistics.variance_sums(batch.returns, batch.values)}
        sums = ranks.sum(sums | run.episodes.take())
    size = int(sums["variance"][0])
    begun = run.step - size  # so that the last batch is learned from, too
    left = max(0.0, 1.0 - begun / args.total_timesteps)
    if args.anneal_lr:
        run.optimizer.param_groups[0]["lr"] = left * args.learning_rate
    ent_coef = args.ent_coef * left if args.anneal_ent else args.ent_coef
    with log.clock("learning"):
        losses = update(run, batch, ent_coef, ranks)
        if run.average is not run.agent:
            frozen.update_average(run.average, run.agent, run.counters["updates"], args.average)
    checkpoint_state.check_learned(run.agent, run.optimizer, losses)
    run.counters["updates"] += 1
    charts = {"learning_rate": run.optimizer.param_groups[0]["lr"], "ent_coef": ent_coef}
    log.update(run.counters, statistics.of_update(run, losses, sums, charts))


def train(begun: startup.Begun, ranks: startup.Ranks, until: int | None = None) -> bool:
    """Play, learn, evaluate and save until all decisions are made; False if it stops before.

    It stops if a signal asks for it, and after the first evaluation from step `until` on.
    """
    run, args = Run(begun, ranks), begun.args

    def save() -> None:
        with log.clock("saving"):
            checkpoint_state.save(run, begun.policy(run.average, run.step), ranks, log)

    with startup.logs(begun, ranks) as log:
        while run.step < args.total_timesteps:
            with log.clock("games"):
                result, counts = play_phase(run, log.clock)
            with log.clock("batching"):
                pay_learner(run, result)
            rows, finished = games_over(run, result)
            # What all ranks agree on, so that they go on alike.
            flags = {"full": run.buffer.count.max() >= args.num_steps, "stop": log.stop.received}
            total = ranks.sum(counts | finished | flags)
            run.count(total)
            with log.clock("games"):
                run.games.reset(rows)
                assign_seats(run, rows)
            if run.pool.is_due(run.step):
                run.pool.freeze(run.average, run.step)
                run.pool.forget(ranks.union(run.seats.member))
            if total["full"]:
                learn(run, ranks, log)
            stops = total["stop"] > 0
            if run.next_eval <= run.step < args.total_timesteps:
                run.next_eval += args.eval_interval
                with log.clock("evaluation"):
                    evaluate(run, ranks, log)
                stops = stops or (until is not None and run.step >= until)
            if run.step >= run.next_save or stops:
                while run.next_save <= run.step:
                    run.next_save += args.save_interval
                save()
            if stops:
                return False
        if ranks.sum({"open": run.buffer.open.sum()})["open"]:  # else a finished run was resumed
            # What is still open counts as its position is valued.
            streams, row, power = run.seats.learner(run.buffer.open)
            run.buffer.close(streams, run.values_of(row, power))
            learn(run, ranks, log)
            evaluate(run, ranks, log, last=True)
            save()
    return True


NETWORK = ("hidden", "num_layers", "autoregressive")  # the settings that a network is made of


def make_agent(settings: dict, game_map: engine.Map) -> Agent:
    """Return a new agent with the network settings of `settings`."""
    return Agent(game_map, *(settings[name] for name in NETWORK))


LEARNER_HERE = registry.register(__name__, __file__, Args, make_agent, NETWORK)

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_HERE, train))
