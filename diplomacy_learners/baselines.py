"""Three baselines of multi-agent learning beside plain self-play.

    python -m diplomacy_learners.baselines --map three --scheme independent
    python -m diplomacy_learners.baselines --map three --scheme counterfactual --alternatives 4
    python -m diplomacy_learners.baselines --map three --scheme central --teams ENGLAND+ITALY
    python -m diplomacy_learners.baselines --map three --teams ENGLAND+ITALY --partners pool

They are those of Song et al. 2019 (Arena, section 3); docs/rewards_and_teams.md describes them.
Shapes are named as in ppo_selfplay_diplomacy.py.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import nn
from torch.nn import functional as F

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.games.decisions import ragged_rows
from diplomacy_engine.learning import frozen, ops, registry, startup
from diplomacy_engine.learning.boards import Codes, Orders
from diplomacy_engine.learning.experience import Experience
from diplomacy_engine.learning.players import policy_player
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.players.policy.player import PolicyPlayer
from diplomacy_engine.players.search.draws import PolicyDraws, phase_seeds
from diplomacy_engine.players.search.leaves import Critic, Leaves
from diplomacy_engine.rules.state import Salt, in_movement
from ppo_selfplay_diplomacy import Agent, OpponentPool, Run, layer_init

FREEZE_GAMES = 400  # against the newest copy, before --freeze-score can freeze another


@dataclass(frozen=True)
class Args(ppo.Args):
    """Settings: those of ppo_selfplay_diplomacy.py, and those of schemes, teams and stages."""

    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    scheme: Literal["self_play", "independent", "central", "counterfactual"] = "self_play"
    """independent: a network per power; central: a critic that sees the orders of all its powers;
    counterfactual: credit relative to other orders; self_play: as ppo_selfplay_diplomacy.py"""
    alternatives: ppo.Count = 4
    """counterfactual: other orders that are tried for each decision of a movement phase"""
    teams: str = ""
    """powers that win and lose together: ENGLAND+ITALY, or more teams with commas between"""
    team_victory: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """centers with which a team wins after a fall, if no other has as many; 0: no team wins so"""
    learner_seats: ppo.Count = 1
    """seats of each game that the learner plays and learns from; with --teams those of one team"""
    learner_powers: tuple[str, ...] = ()
    """powers that the learner plays in every game, instead of seats that are drawn"""
    partners: Literal["self", "pool"] = "self"
    """with --teams, who plays the learner's partners: itself, or a copy or bot of the pool"""
    freeze_score: ppo.Share | None = None
    """stages: freeze the learner sooner, once it scores this (win 1, draw 0.5) against the newest
    copy; with --pool-size 1 only that copy is met"""


class Part(NamedTuple):
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


def in_order(rows: list[np.ndarray], parts: list[torch.Tensor]) -> torch.Tensor:
    order = torch.from_numpy(np.argsort(np.concatenate(rows)))
    return torch.cat(parts).index_select(0, order.to(parts[0].device))


class Independent(nn.Module):
    """A network for each power.

    None learns from another's seats. One optimizer steps them all; Adam treats every weight by
    itself, so that is as good as several.
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

    def observe(
        self, games: engine.VectorGame, rows: np.ndarray, powers: np.ndarray
    ) -> engine.BoardViews:
        return frozen.without_weights(self.powers[0]).observe(games, rows, powers)

    def legal_orders(
        self, games: engine.VectorGame, decisions: engine.Decisions
    ) -> engine.Decisions:
        return frozen.without_weights(self.powers[0]).legal_orders(games, decisions)

    def get_value(self, obs: engine.BoardViews) -> torch.Tensor:
        powers = np.unique(obs.power).tolist() or [0]
        rows = [np.flatnonzero(obs.power == power) for power in powers]
        values = [self.powers[p].get_value(obs.take(own)) for p, own in zip(powers, rows)]
        return in_order(rows, values)

    def get_action_and_value(
        self,
        obs: engine.BoardViews,
        decisions: engine.Decisions,
        chosen: np.ndarray | None = None,
        noise: np.ndarray | None = None,
        temperature: np.ndarray | None = None,
    ) -> ppo.Action:
        drawn = np.empty(len(decisions.slot_province), np.int64)
        probability = torch.zeros(len(decisions.order))
        rows, actions = [], []
        for part in parts_by_power(obs, decisions):
            own_chosen = None if chosen is None else chosen[part.slots]
            own_noise = noise[part.orders] if noise is not None and len(noise) else noise
            own_temperature = None if temperature is None else temperature[part.rows]
            agent = self.powers[part.power]
            action = agent.get_action_and_value(
                part.obs, part.decisions, own_chosen, own_noise, own_temperature
            )
            drawn[part.slots] = action.chosen
            if chosen is None:
                probability[part.orders] = action.probability.cpu()
            rows.append(part.rows)
            actions.append(action)
        logprob = in_order(rows, [action.logprob for action in actions])
        value = in_order(rows, [action.value for action in actions])
        if chosen is None:
            return ppo.Action(drawn, logprob, probability=probability, value=value)
        entropy = in_order(rows, [action.entropy for action in actions])
        return ppo.Action(drawn, logprob, entropy, value=value)


class Central(Agent):
    """A critic that also sees what the learner's other powers order in the same phase.

    Given the board the others' orders do not depend on one's own, so the baseline stays unbiased
    (Lowe et al. 2017). It is for learning only: who plays, and `get_value`, do without.
    """

    def __init__(self, game_map: engine.Map, hidden: int = 64, *network):
        super().__init__(game_map, hidden, *network)
        first, last = nn.Linear(4 * hidden, hidden), nn.Linear(hidden, 1, bias=False)
        self.mates = nn.Sequential(layer_init(first), nn.ReLU(), layer_init(last, 0.1))

    def load_state_dict(self, saved: dict, *how, **options):
        """Take weights; what plain self-play has not learned stays as it is new (--start-from)."""
        return super().load_state_dict(self.state_dict() | saved, *how, **options)

    def get_action_and_value(
        self,
        obs: engine.BoardViews,
        decisions: engine.Decisions,
        chosen: np.ndarray | None = None,
        noise: np.ndarray | None = None,
        temperature: np.ndarray | None = None,
    ) -> ppo.Action:
        """Do as Agent; the value depends on the orders of all decisions on the same board."""
        boards = self.inputs(obs)
        codes = self.encode(boards)
        orders = self.inputs.orders(boards, decisions, chosen, self.autoregressive)
        action = self.get_action(codes, orders, noise, temperature)
        orders = self.inputs.orders(boards, decisions, action.chosen, related=False)
        value = self.critic(codes.view).squeeze(-1) + self.value_of_mates(codes, orders, obs.row)
        return action._replace(value=value)

    def value_of_mates(self, codes: Codes, orders: Orders, board: np.ndarray) -> torch.Tensor:
        tables = self.order_tables(codes, orders)
        order_codes = ops.sum_rows(orders.given_provinces, tables.provinces)
        order_codes = F.relu(order_codes + ops.sum_rows(orders.given_kinds, tables.kinds))  # (S, H)
        count = orders.decisions.count
        own = order_codes.new_zeros(count, order_codes.shape[1])
        own = own.index_add(0, orders.decision, order_codes)
        rows = torch.from_numpy(board.astype(np.int64)).to(order_codes.device)
        board_sum = own.new_zeros(len(codes.provinces), own.shape[1]).index_add(0, rows, own)
        others = board_sum.index_select(0, rows) - own
        return self.mates(torch.cat([codes.view, others], 1)).squeeze(-1)


def make_player(
    agent: nn.Module, name: str, seed: int = 0, greedy: bool = False, settings: dict | None = None
) -> PolicyPlayer:
    player = policy_player(agent, name, seed, greedy, settings)
    if isinstance(agent, Central):  # a player does not see what other powers order
        alone = partial(Agent.get_action_and_value, agent)
        names = "inputs", "observe", "legal_orders", "get_value"
        methods = {name: getattr(agent, name) for name in names}
        player.agent.agent = SimpleNamespace(**methods, get_action_and_value=alone)
    return player


class Policies(OpponentPool):
    """The pool of a scheme: each power of a copy may have a network of its own."""

    def __init__(self, args: Args, game_map: engine.Map):
        super().__init__(args, game_map)
        self.each = len(game_map.powers) if args.scheme == "independent" else 1

    def is_due(self, global_step: int) -> bool:
        wanted, newest = self.args.freeze_score, self.copies[-1]
        games, score = self.games[newest], self.score[newest]
        beaten = wanted is not None and games >= FREEZE_GAMES and score >= wanted * games
        return beaten or super().is_due(global_step)

    def act(
        self,
        copies: np.ndarray,
        obs: engine.BoardViews,
        decisions: engine.Decisions,
        temperature: np.ndarray,
    ) -> np.ndarray:
        if self.each == 1:
            return super().act(copies, obs, decisions, temperature)
        networks = {
            number * self.each + power: network
            for number, agent in self.agents.items()
            for power, network in enumerate(agent.powers)
        }
        key = copies * self.each + decisions.power
        order = np.argsort(key, kind="stable")
        sorted_decisions = decisions.take(order)
        chosen = np.empty(len(decisions.slot_province), np.int64)
        slots = ragged_rows(decisions.slot_start[order], sorted_decisions.slot_start)
        chosen[slots] = frozen.act(
            networks,
            key[order],
            obs.take(order),
            sorted_decisions,
            ops.sample_noise(sorted_decisions),
            temperature[order],
        )
        return chosen


class TeamRun(Run):
    """A run of teams: what becomes of a team counts for its powers that are out, too.

    Otherwise no sacrifice could be learned.
    """

    REBUILT = (*Run.REBUILT, "counterfactual")

    def __init__(self, setup: startup.Setup, ranks: Ranks):
        check_seating(setup.args, setup.game_map)
        super().__init__(setup, ranks, Policies)
        scheme = self.args.scheme
        self.counterfactual = Counterfactual(self) if scheme == "counterfactual" else None

    def seat(self, rows: np.ndarray) -> None:
        """Seat learner and opponents in the new games `rows`.

        A side is a power, or a team of powers. As in plain self-play, but the learner's sides are
        among those of `learner_powers`, if there are any, and with `partners` of the pool it has
        one power of its team, the pool the others.
        """
        args, rng, side = self.args, self.rng, self.game_map.teams.of_power  # (P,)
        by_side = len(rows), int(side.max()) + 1
        learners = [self.game_map.power_number(name) for name in args.learner_powers]
        playable = np.isin(np.arange(len(side)), learners or np.arange(len(side)))  # (P,)
        weights = np.maximum(1 - args.weak_seats * self.results.win_share, 0.05)
        keys = rng.exponential(size=by_side) / weights  # the lowest are the learner's
        keys[:, np.setdiff1d(side, side[playable])] = np.inf
        learns = keys.argsort(1).argsort(1)[:, side] < (1 if args.teams else args.learner_seats)
        members = self.pool.sample(rng, by_side)[:, side]
        place = keys[:, side].argsort(1, kind="stable").argsort(1)  # the learner's come first
        if args.partners == "pool":  # one power of the team is the learner's
            score = rng.random((len(rows), len(side))) * (learns & playable)
            learns = np.arange(len(side)) == score.argmax(1)[:, None]
        self.fill_seats(rows, learns, place, members)

    def store(self, experience: Experience, action: ppo.Action, orders: np.ndarray) -> None:
        if self.counterfactual:
            values = action.value.cpu().numpy()
            values = self.counterfactual.values(self.games, experience, orders, values)
            action = action._replace(value=torch.from_numpy(values))
        super().store(experience, action, orders)

    def plays_on(self, result: engine.StepResult) -> np.ndarray:
        return engine.alive_with_team(result.alive, self.game_map.teams.of_power)

    def values_of(self, rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
        alive, team = self.games.outcomes().alive[rows], self.game_map.teams.of_power
        return super().values_of(rows, engine.living_mate(alive, team, powers))


class LearnerCritic(Critic):
    def __init__(self, run: Run):
        self.run, self.policy = run, make_player(run.agent, "learner", settings=vars(run.args))
        self.discount, self.at_once = run.args.gamma, False

    def paid(self, result: engine.StepResult, victory_centers: int) -> np.ndarray:
        """Return the reward of this moment of training that a step has paid every power, (n, P)."""
        run, args = self.run, self.run.args
        position = engine.reward_input(result, victory_centers, args.year_limit != "truncate")
        return run.reward(position, min(1.0, run.step / args.total_timesteps))


class Counterfactual:
    """The mean of what other draws would have brought, in the place of a decision's value.

    `alternatives` draws of the policy are adjudicated against what the others really ordered, and
    played to the power's next decision. A retreat or a winter is valued by the critic.
    """

    def __init__(self, run: Run):
        self.count, critic = run.args.alternatives, LearnerCritic(run)
        self.draws = PolicyDraws(critic.policy)
        self.leaves = Leaves(run.games, critic, engine.load_player("dumbbot"))

    def values(
        self,
        games: engine.VectorGame,
        experience: Experience,
        orders: np.ndarray,
        values: np.ndarray,
    ) -> np.ndarray:
        """Return the values (D,) of decisions, given the orders (E, V) of all.

        `values` (D,) are the critic's, which stay those of retreats and winters.
        """
        moving = in_movement(games.state, experience.decisions.game)
        values = values.copy()
        if moving.any():
            values[moving] = self.expected(games, experience.decisions.take(moving), orders)
        return values

    def expected(
        self, games: engine.VectorGame, decisions: engine.Decisions, orders: np.ndarray
    ) -> np.ndarray:
        count, seats = self.count, (decisions.game, decisions.power)
        drawn, _ = self.draws.draw(games, decisions, phase_seeds(games, *seats, Salt.PLAIN, count))
        row, power = np.repeat(decisions.game, count), np.repeat(decisions.power, count)
        mine = games.state.unit_power[row] == power[:, None]
        joint_orders = np.where(mine, drawn.reshape(len(row), -1), orders[row])
        # What follows is drawn alike for all alternatives.
        follow = np.repeat(phase_seeds(games, *seats, Salt.FOLLOWING, 1), count)
        values = self.leaves.evaluate(games, row, power, joint_orders, follow)
        return values.reshape(-1, count).mean(1)


def check_seating(args: Args, game_map: engine.Map) -> None:
    teams, flags = game_map.teams, " ".join(args.learner_powers)
    learners = {game_map.power_number(name) for name in args.learner_powers}
    mixed = args.partners == "pool"
    if mixed and not teams.text:
        raise engine.UserError("--partners pool needs --teams: no power has a partner here")
    if learners and not teams.text and len(learners) != args.learner_seats:
        raise engine.UserError(f"--learner-powers {flags} needs --learner-seats {len(learners)}")
    if learners and teams.text and not mixed:
        team = teams.of_power
        if learners != set(np.flatnonzero(team == team[min(learners)]).tolist()):
            names = ", ".join(teams.names)
            raise engine.UserError(f"--learner-powers {flags} must be one team of {names}")
    if args.scheme == "central" and (mixed or args.learner_seats == 1):
        raise engine.UserError("--scheme central needs --learner-seats 2 or more, or --teams")


train = partial(ppo.train, make_run=TeamRun)
AGENTS = {"independent": Independent, "central": Central}


def make_agent(options: dict, game_map: engine.Map) -> nn.Module:
    names = "hidden", "num_layers", "autoregressive", "cross_support"
    network = (options[name] for name in names)
    return AGENTS.get(options["scheme"], Agent)(game_map, *network)


LEARNER_SPEC = registry.register(__name__, __file__, Args, make_agent, make_player)

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_SPEC, train))
