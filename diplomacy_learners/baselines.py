"""Three baselines of multi-agent learning beside plain self-play.

    python -m diplomacy_learners.baselines --map three --scheme independent
    python -m diplomacy_learners.baselines --map three --scheme counterfactual --alternatives 4
    python -m diplomacy_learners.baselines --map three --scheme central --teams ENGLAND+ITALY
    python -m diplomacy_learners.baselines --map three --teams ENGLAND+ITALY --partners pool

They are those of Song et al. 2019 (Arena, section 3), beside self-play itself and populations:

    independent     every power has a network of its own, which learns from its own seats alone
    central         the critic also sees what the learner's other powers order in this very phase
    counterfactual  what orders brought counts beyond what other draws of the policy would have
                    brought, against the orders that the others really gave (Foerster et al. 2018)

The learner can also have the same powers in every game (--learner-powers), or play one power of a
team whose others are the pool's (--partners pool).

Letters of shapes are those of ppo_selfplay_diplomacy.py, from which comes what is the same here:
network, pool, buffer, PPO. Its own are settings, the schemes' networks, seats, a phase of
self-play and the loop.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import diplomacy_engine as engine
from diplomacy_engine._fields import Between, NonNegative, Positive, Share
from diplomacy_engine.constants import NONE
from diplomacy_engine.games.decisions import ragged_rows
from diplomacy_engine.learning import checkpoint_state, frozen, ops, registry, startup
from diplomacy_engine.learning.boards import Boards, Codes
from diplomacy_engine.learning.experience import Experience
from diplomacy_engine.learning.players import AgentNetwork, policy_player
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.players.policy import PolicyPlayer
from diplomacy_engine.players.search.draws import PolicyDraws
from diplomacy_engine.players.search.leaves import Critic, Leaves
from diplomacy_engine.players.search.noise import phase_seeds
from diplomacy_engine.rules.state import Salt, in_movement
from ppo_selfplay_diplomacy import (
    AT_RANDOM,
    LEARNER,
    NETWORK,
    RANDOM_BOT,
    WARM_UP_PHASES,
    Agent,
    Run,
    evaluate,
    games_over,
    layer_init,
    learn,
    pay_learner,
)


@dataclass(frozen=True)
class Args:
    """Settings. The map's file in configs/ overrides these, and flags override both."""

    # To begin with
    scheme: Literal["self_play", "independent", "central", "counterfactual"] = "self_play"
    """independent: a network per power; central: a critic that sees the orders of all its powers;
    counterfactual: credit relative to other orders; self_play: as ppo_selfplay_diplomacy.py"""
    alternatives: Positive = 4
    """counterfactual: other orders that are tried for each decision of a movement phase"""
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
    exp_name: str = "baselines"
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
    self_play_share: ClassVar[float] = 0.0  # no flag: as many seats in every game
    learner_powers: tuple[str, ...] = ()
    """powers that the learner plays in every game, instead of seats that are drawn"""
    partners: Literal["self", "pool"] = "self"
    """with --teams, who plays the learner's partners: itself, or a copy or bot of the pool"""
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


class Part(NamedTuple):
    """The decisions of one power among others."""

    power: int
    rows: np.ndarray  # (n,) of D
    slots: np.ndarray  # of S
    orders: np.ndarray  # of N
    obs: engine.BoardViews
    decisions: engine.Decisions


def parts_by_power(obs: engine.BoardViews, decisions: engine.Decisions) -> Iterator[Part]:
    """Yield the decisions of each power that has some; one part without any if there are none."""
    first_order = decisions.order_start[decisions.slot_start]  # of each decision
    for power in np.unique(obs.power).tolist() or [0]:
        rows = np.flatnonzero(obs.power == power)
        own = decisions.take(rows)
        slots = ragged_rows(decisions.slot_start[rows], own.slot_start)
        orders = ragged_rows(first_order[rows], own.order_start[own.slot_start])
        yield Part(power, rows, slots, orders, obs.take(rows), own)


def in_order(rows: list[np.ndarray], found: list[torch.Tensor]) -> torch.Tensor:
    """Return what was found for the rows of each part, in the order of all rows."""
    order = torch.from_numpy(np.argsort(np.concatenate(rows)))
    return torch.cat(found).index_select(0, order.to(found[0].device))


class Independent(nn.Module):
    """A network for each power. None learns from another's seats.

    One optimizer steps them all; Adam treats every weight by itself, so that is as good as several.
    """

    def __init__(self, game_map: engine.Map, *network):
        super().__init__()
        self.powers = nn.ModuleList(Agent(game_map, *network) for _ in game_map.powers)
        self.inputs = self.powers[0].inputs
        for agent in self.powers:
            agent.inputs = self.inputs  # it has nothing to learn

    def load_state_dict(self, saved: dict, *how, **options):
        """Take weights; those of one network become those of each power (--start-from)."""
        if not any(name.startswith("powers.") for name in saved):
            each = range(len(self.powers))
            saved = {f"powers.{p}.{name}": saved[name] for p in each for name in saved}
        return super().load_state_dict(saved, *how, **options)

    def get_value(self, obs: engine.BoardViews) -> torch.Tensor:
        """Return the value (D,) of boards, each from the network of the power that views it."""
        powers = np.unique(obs.power).tolist() or [0]
        rows = [np.flatnonzero(obs.power == power) for power in powers]
        found = [self.powers[p].get_value(obs.take(own)) for p, own in zip(powers, rows)]
        return in_order(rows, found)

    def get_action_and_value(
        self,
        obs: engine.BoardViews,
        decisions: engine.Decisions,
        chosen: np.ndarray | None = None,
        noise: np.ndarray | None = None,
    ) -> tuple[np.ndarray, torch.Tensor, torch.Tensor | None, torch.Tensor]:
        """Do as Agent, each decision with the network of its power."""
        drawn = np.empty(len(decisions.slot_province), np.int64)
        rows, found = [], []
        for part in parts_by_power(obs, decisions):
            given = None if chosen is None else chosen[part.slots]
            own_noise = None if noise is None else noise[part.orders]
            agent = self.powers[part.power]
            drawn[part.slots], *tensors = agent.get_action_and_value(
                part.obs, part.decisions, given, own_noise
            )
            rows.append(part.rows)
            found.append(tensors)
        logprob, entropy, value = zip(*found)
        entropy = None if chosen is None else in_order(rows, entropy)
        return drawn, in_order(rows, logprob), entropy, in_order(rows, value)


class IndependentNetwork(AgentNetwork):
    """The networks of all powers in arrays, as players ask them."""

    def _draw(
        self,
        obs: engine.BoardViews,
        decisions: engine.Decisions,
        noise: np.ndarray,
        temperature: np.ndarray | None,
    ) -> tuple[np.ndarray, ...]:
        """Return chosen, logprob, probability and value, each by the network of its power."""
        chosen = np.empty(len(decisions.slot_province), np.int64)
        probability = np.zeros(len(decisions.order), np.float32)
        logprob, value = np.empty((2, decisions.count), np.float32)
        for power, rows, slots, orders, *asked in parts_by_power(obs, decisions):
            own = AgentNetwork(self.agent.powers[power])
            own_noise = noise[orders] if len(noise) else noise
            heat = None if temperature is None else temperature[rows]
            chosen[slots], logprob[rows], probability[orders], value[rows] = own._draw(
                *asked, own_noise, heat
            )
        return chosen, logprob, probability, value


class Central(nn.Module):
    """A critic that also sees what the learner's other powers order in the same phase.

    No-press Diplomacy hides nothing else, as all see the board, and given the board the others'
    orders do not depend on one's own, so the baseline stays unbiased (Lowe et al. 2017). It is for
    learning only: who plays, and `get_value`, do without.
    """

    def __init__(self, game_map: engine.Map, hidden: int = 64, *network):
        super().__init__()
        self.trunk = Agent(game_map, hidden, *network)
        first, last = nn.Linear(4 * hidden, hidden), nn.Linear(hidden, 1, bias=False)
        self.mates = nn.Sequential(layer_init(first), nn.ReLU(), layer_init(last, 0.1))

    def state_dict(self, *how, **options) -> dict[str, torch.Tensor]:
        """Return the weights; those of the trunk are called as in the plain network."""
        found = super().state_dict(*how, **options)
        return {name.removeprefix("trunk."): weight for name, weight in found.items()}

    def load_state_dict(self, saved: dict, *how, **options):
        """Take weights; what plain self-play has not learned stays as it is new (--start-from)."""
        whole = self.state_dict() | saved
        named = {n if n.startswith("mates.") else f"trunk.{n}": whole[n] for n in whole}
        return super().load_state_dict(named, *how, **options)

    def get_value(self, obs: engine.BoardViews) -> torch.Tensor:
        """Return the value (D,) of the trunk, which sees nobody's orders."""
        return self.trunk.get_value(obs)

    def get_action_and_value(
        self,
        obs: engine.BoardViews,
        decisions: engine.Decisions,
        chosen: np.ndarray | None = None,
        noise: np.ndarray | None = None,
    ) -> tuple[np.ndarray, torch.Tensor, torch.Tensor | None, torch.Tensor]:
        """Do as Agent; the value depends on the orders of all decisions on the same board."""
        boards = self.trunk.inputs(obs)
        codes = self.trunk.encode(boards)
        chosen, *found = self.trunk.get_action(boards, codes, decisions, chosen, noise)
        value = self.trunk.critic(codes.view).squeeze(-1)
        return chosen, *found, value + self.value_of_mates(boards, codes, decisions, chosen)

    def value_of_mates(
        self, boards: Boards, codes: Codes, decisions: engine.Decisions, chosen: np.ndarray
    ) -> torch.Tensor:
        """Return what the others' orders add to the values of D decisions, (D,)."""
        orders = self.trunk.inputs.orders(boards, decisions, chosen, related=False)
        tables = self.trunk.order_tables(codes, orders)
        given = ops.sum_rows(orders.given_provinces, tables.provinces)
        given = F.relu(given + ops.sum_rows(orders.given_kinds, tables.kinds))  # (S, H)
        own = given.new_zeros(decisions.count, given.shape[1]).index_add(0, orders.decision, given)
        board = torch.from_numpy(boards.views.row.astype(np.int64)).to(given.device)
        whole = own.new_zeros(len(codes.provinces), own.shape[1]).index_add(0, board, own)
        others = whole.index_select(0, board) - own
        return self.mates(torch.cat([codes.view, others], 1)).squeeze(-1)


def network_of(agent: nn.Module, power: int) -> Agent:
    """Return the network by which a policy of any scheme plays a power."""
    if isinstance(agent, Independent):
        return agent.powers[power]
    return agent.trunk if isinstance(agent, Central) else agent


def make_player(
    agent: nn.Module, name: str, seed: int = 0, greedy: bool = False, settings: dict | None = None
) -> PolicyPlayer:
    """Return a policy of any scheme as a player of matches; see `policy_player`."""
    player = policy_player(network_of(agent, 0), name, seed, greedy, settings)
    if isinstance(agent, Independent):
        player.agent = IndependentNetwork(agent)
    return player


class Prospects(Critic):
    """What positions are worth to a learner while it learns; see Critic."""

    def __init__(self, run: Run):
        self.run, self.policy = run, make_player(run.agent, "learner")
        self.discount, self.at_once = run.args.gamma, False

    def paid(self, result: engine.StepResult, victory_centers: int) -> np.ndarray:
        """Return the reward of this moment of training that a step has paid every power, (n, P)."""
        run, args = self.run, self.run.args
        position = engine.reward_input(result, victory_centers, args.year_limit != "truncate")
        return run.reward(position, min(1.0, run.step / args.total_timesteps))


class Counterfactual:
    """The mean of what other draws would have brought, in the place of a decision's value.

    Given the others' orders the engine adjudicates any orders exactly, so nothing is to be learned
    but what positions are worth: `alternatives` draws of the policy are adjudicated against what
    the others really ordered, and played to the power's next decision. A retreat or a winter is
    valued by the critic, as it is without a scheme.
    """

    def __init__(self, run: Run):
        self.count, prospects = run.args.alternatives, Prospects(run)
        self.draws = PolicyDraws(prospects.policy)
        self.leaves = Leaves(run.games, prospects, engine.load_player("dumbbot"))

    def values(
        self, games: engine.VectorGame, seen: Experience, orders: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Return the values (D,) of decisions, given the orders (E, V) of all.

        `values` (D,) are the critic's, which stay those of retreats and winters.
        """
        moving = in_movement(games.state, seen.decisions.game)
        values = values.copy()
        if moving.any():
            values[moving] = self.expected(games, seen.decisions.take(moving), orders)
        return values

    def expected(
        self, games: engine.VectorGame, decisions: engine.Decisions, orders: np.ndarray
    ) -> np.ndarray:
        """Return what D movement decisions would bring on average, the others' orders given."""
        count, asked = self.count, (decisions.game, decisions.power)
        drawn, _ = self.draws.draw(games, decisions, phase_seeds(games, *asked, Salt.PLAIN, count))
        row, power = np.repeat(decisions.game, count), np.repeat(decisions.power, count)
        mine = games.state.unit_power[row] == power[:, None]
        given = np.where(mine, drawn.reshape(len(row), -1), orders[row])
        # What follows is drawn alike for all alternatives.
        follow = np.repeat(phase_seeds(games, *asked, Salt.FOLLOWING, 1), count)
        return self.leaves.evaluate(games, row, power, given, follow).reshape(-1, count).mean(1)


def check_seating(args: Args, game_map: engine.Map) -> None:
    """Raise UserError for a scheme and seats that do not fit each other, or the map's teams."""
    teams, flags = game_map.teams, " ".join(args.learner_powers)
    learners = [game_map.power_number(name) for name in args.learner_powers]
    mixed = args.partners == "pool"
    if mixed and not teams.text:
        raise engine.UserError("--partners pool needs --teams: no power has a partner here")
    if len(set(learners)) < len(learners):
        raise engine.UserError("--learner-powers names a power twice")
    if learners and not teams.text and len(learners) != args.learner_seats:
        raise engine.UserError(
            f"--learner-powers {flags} needs as many seats: --learner-seats {len(learners)}"
        )
    if learners and teams.text and not mixed:
        team = teams.of_power
        if set(learners) != set(np.flatnonzero(team == team[learners[0]]).tolist()):
            raise engine.UserError(
                f"--learner-powers {flags} must be one team of {', '.join(teams.names)}"
            )
    if args.scheme == "central" and (mixed or args.learner_seats == 1):
        raise engine.UserError(
            "--scheme central needs a learner with several seats, whose orders its critic sees: "
            "--learner-seats 2 or more, or --teams"
        )


def assign_seats(run: Run, rows: np.ndarray) -> None:
    """Seat learner and opponents in the new games `rows`. A side is a power, or a team of powers.

    As in plain self-play, but the learner's sides are among those of `learner_powers`, if there are
    any, and with `partners` of the pool it has one power of its team, the pool the others.
    """
    args, rng, seats = run.args, run.rng, run.seats
    side = run.game_map.teams.of_power  # (P,)
    shape, by_side = (len(rows), len(side)), (len(rows), int(side.max()) + 1)
    learners = [run.game_map.power_number(name) for name in args.learner_powers]
    playable = np.isin(np.arange(len(side)), learners or np.arange(len(side)))  # (P,)
    weights = np.maximum(1 - args.weak_seats * run.win_share, 0.05)
    arrival = rng.exponential(size=by_side) / weights  # the first to arrive are the learner's
    arrival[:, np.setdiff1d(side, side[playable])] = np.inf
    learns = arrival.argsort(1).argsort(1)[:, side] < (1 if args.teams else args.learner_seats)
    members = run.pool.sample(rng, by_side)[:, side]
    place = arrival[:, side].argsort(1, kind="stable").argsort(1)  # the learner's come first
    stream = rows[:, None] * run.streams_per_game + place
    if args.partners == "pool":  # one power of the team is the learner's
        drawn = rng.random(shape) * (learns & playable)
        learns = np.arange(len(side)) == drawn.argmax(1)[:, None]
    seats.member[rows] = np.where(learns, LEARNER, members)
    seats.stream[rows] = np.where(learns, stream, NONE)
    if args.opponent_temperature != 1:
        drawn = args.opponent_temperature ** rng.random(by_side)[:, side]
        seats.temperature[rows] = np.where(learns, 1.0, drawn)
    if args.warm_up_share > 0:
        phases = rng.integers(1, WARM_UP_PHASES + 1, shape)
        seats.warm_up[rows] = phases * (rng.random(shape) < args.warm_up_share)


def make_run(begun: startup.Begun, ranks: Ranks) -> Run:
    """Return a run with the seats of this script."""
    run = Run(begun, ranks)
    if begun.saved is None:
        assign_seats(run, np.arange(run.games.num_games))
    return run


def play_phase(
    run: Run, clock: startup.Clock, tried: Counterfactual | None = None
) -> tuple[engine.StepResult, dict[str, int]]:
    """Play one phase of every game; return its result and by how much each counter rises."""
    games, seats, pool = run.games, run.seats, run.pool
    decisions = games.decisions()  # D, of all powers of all games
    at = decisions.game, decisions.power
    who = np.where(seats.warm_up[at] > 0, AT_RANDOM, seats.member[at])  # (D,)
    orders = games.new_orders()  # (E, V), merged below

    # The learner.
    learner = decisions.take(who == LEARNER)
    obs, noise = games.view_boards(learner.game, learner.power), ops.draw_noise(learner)
    with clock("inference"), torch.no_grad():
        chosen, logprobs, _, values = run.agent.get_action_and_value(obs, learner, noise=noise)
    games.write_orders(orders, learner, engine.order_numbers(learner, chosen))
    seen, values = Experience(obs, learner, chosen), values.cpu().numpy()
    counts = {"global_step": learner.count, "order_steps": len(learner.slot_province)}
    counts["env_steps"] = games.num_games

    # Its frozen copies, all together; each power of one may have a network of its own.
    each = games.num_powers if run.args.scheme == "independent" else 1
    networks = {
        number * each + power: network_of(agent, power)
        for number, agent in pool.agents.items()
        for power in range(each)
    }
    key = who * each + decisions.power % each
    rows = np.flatnonzero(who > LEARNER + len(pool.bots))
    rows = rows[np.argsort(key[rows], kind="stable")]
    asked, temperature = decisions.take(rows), seats.temperature[at][rows]
    obs, noise = games.view_boards(asked.game, asked.power), ops.draw_noise(asked)
    with clock("inference"):
        chosen = frozen.act(networks, key[rows], obs, asked, noise, temperature)
    games.write_orders(orders, asked, engine.order_numbers(asked, chosen))

    # Bots, and powers that begin at random.
    for number, bot in {AT_RANDOM: RANDOM_BOT, **pool.bots}.items():
        asked = decisions.take(who == number)
        if asked.count:
            games.write_orders(orders, asked, engine.ask_player(games, asked, bot))

    # What the learner did is kept, until the stream's next decision closes it.
    if tried is not None:
        values = tried.values(games, seen, orders, values)
    streams = seats.stream[learner.game, learner.power]
    run.buffer.add(streams, seen, logprobs.cpu().numpy(), values)
    run.episodes.decide(streams)
    return games.step(orders), counts


def train(begun: startup.Begun, ranks: Ranks, until: int | None = None) -> bool:
    """Play, learn, evaluate and save until all decisions are made; False if it stops before.

    It stops if a signal asks for it, and after the first evaluation from step `until` on.
    """
    check_seating(begun.args, begun.game_map)
    run, args = make_run(begun, ranks), begun.args
    tried = Counterfactual(run) if args.scheme == "counterfactual" else None

    def save() -> None:
        with log.clock("saving"):
            checkpoint_state.save(run, begun.policy(run.average, run.step), ranks, log)

    with startup.logs(begun, ranks) as log:
        while run.step < args.total_timesteps:
            with log.clock("games"):
                result, counts = play_phase(run, log.clock, tried)
            with log.clock("batching"):
                pay_learner(run, result)
            rows, finished = games_over(run, result)
            # What all ranks agree on, so that they go on alike.
            full = run.buffer.count.max() >= args.num_steps
            flags = {"full": full, "stop": log.stop.received}
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
            evaluate(run, ranks, log)
            save()
    return True


AGENTS = {"independent": Independent, "central": Central}


def make_agent(settings: dict, game_map: engine.Map) -> nn.Module:
    """Return a new agent with the scheme and the network settings of `settings`."""
    kind = AGENTS.get(settings["scheme"], Agent)
    return kind(game_map, *(settings[name] for name in NETWORK))


LEARNER_HERE = registry.register(__name__, __file__, Args, make_agent, NETWORK, make_player)

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_HERE, train))
