"""Three baselines of multi-agent learning beside plain self-play.

    python -m diplomacy_learners.baselines --map three --scheme independent
    python -m diplomacy_learners.baselines --map three --scheme counterfactual --alternatives 4
    python -m diplomacy_learners.baselines --map three --scheme central --teams ENGLAND+ITALY
    python -m diplomacy_learners.baselines --map three --teams ENGLAND+ITALY --partners pool
    python -m diplomacy_learners.baselines --map three --teams ENGLAND+ITALY --board 8

They are those of Song et al. 2019 (Arena, section 3); docs/rewards_and_teams.md describes them.
Shapes are named as in ppo_selfplay_diplomacy.py.
"""

import copy
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import nn
from torch.nn import functional as F

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import BoardViews, Decisions, VectorGame
from diplomacy_engine.games.decisions import ragged_rows
from diplomacy_engine.games.draws import phase_seeds
from diplomacy_engine.games.observation import NUM_BOARD_FEATURES
from diplomacy_engine.learning import frozen, ops, registry, startup
from diplomacy_engine.learning.boards import Boards, Codes, Orders, on_device
from diplomacy_engine.learning.experience import Experience
from diplomacy_engine.learning.players import policy_player
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.players.policy.player import PolicyPlayer
from diplomacy_engine.players.search.draws import PolicyDraws
from diplomacy_engine.players.search.leaves import Critic, Leaves
from diplomacy_engine.records import OnlyIf
from diplomacy_engine.rules.state import Salt, in_movement
from diplomacy_learners._teams import TeamArgs, TeamRun
from ppo_selfplay_diplomacy import Agent, OpponentPool, Run, layer_init

_BOARD = OnlyIf(
    "it needs --teams, --partners self and --scheme self_play or counterfactual, since a network's "
    "own powers write for each other",
    lambda args: args.teams and args.partners == "self" and args.scheme not in AGENTS,
)
FREEZE_GAMES = 400  # against the newest copy, before --freeze-score can freeze another


@dataclass(frozen=True)
class Args(TeamArgs):
    """Settings: those of ppo_selfplay_diplomacy.py, and those of schemes, teams and stages."""

    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    scheme: Literal["self_play", "independent", "central", "counterfactual"] = "self_play"
    """independent: a network per power; central: a critic that sees the orders of all its powers;
    counterfactual: credit relative to other orders; self_play: as ppo_selfplay_diplomacy.py"""
    alternatives: Annotated[
        ppo.Count,
        OnlyIf("it needs --scheme counterfactual", lambda args: args.scheme == "counterfactual"),
    ] = 4
    """counterfactual: other orders to try for each decision of a movement phase"""
    board: Annotated[int, Meta(ge=0, le=1024), _BOARD] = 0
    """numbers that each power of a team writes for its teammates; 0: none"""
    freeze_score: ppo.Share | None = None
    """stages: freeze the learner as soon as it has this score (win 1, draw 0.5) against the newest
    copy; with --pool-size 1 this copy is the only opponent"""


class Part(NamedTuple):
    power: int
    rows: np.ndarray  # (n,) of D
    slots: np.ndarray  # of S
    orders: np.ndarray  # of N
    obs: BoardViews
    decisions: Decisions


def parts_by_power(obs: BoardViews, decisions: Decisions) -> Iterator[Part]:
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

    def observe(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        return frozen.without_weights(self.powers[0]).observe(games, rows, powers)

    def legal_orders(self, games: VectorGame, decisions: Decisions) -> Decisions:
        return frozen.without_weights(self.powers[0]).legal_orders(games, decisions)

    def get_value(self, obs: BoardViews) -> torch.Tensor:
        powers = np.unique(obs.power).tolist() or [0]
        rows = [np.flatnonzero(obs.power == power) for power in powers]
        values = [self.powers[p].get_value(obs.take(own)) for p, own in zip(powers, rows)]
        return in_order(rows, values)

    def get_action_and_value(
        self, obs: BoardViews, decisions: Decisions, chosen=None, noise=None, temperature=None
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


class Extended(Agent):
    """The script's network with more layers."""

    def load_state_dict(self, saved: dict, *how, **options):
        """Load weights; parts that plain self-play lacks stay as initialized (--start-from)."""
        return super().load_state_dict(self.state_dict() | saved, *how, **options)


class Broadcasting(Extended):
    """Each power of a team writes `size` numbers, and reads the mean of its teammates' numbers.

    That is a step of CommNet (Sukhbaatar et al. 2016) at a node of Arena's social tree. One pass
    writes and reads, so that the loss of who reads reaches who writes. Mates are those powers of
    the team that the network is asked for in the same call and have something to order.
    """

    def __init__(self, game_map: engine.Map, *network, size: int):
        super().__init__(game_map, *network)
        width = 3 * self.power.embedding_dim
        self.write = layer_init(nn.Linear(width, size), 1.0)
        self.read = nn.Linear(size, width, bias=False)
        nn.init.zeros_(self.read.weight)  # begins as a policy without a board

    def observe(self, games: VectorGame, rows: np.ndarray, powers: np.ndarray) -> BoardViews:
        """Return what is seen, with one more column in each board: as its entry v it has the team,
        from 1 on, of power v; 0 if the network is not asked for that power."""
        views = super().observe(games, rows, powers)
        team = np.zeros((*views.board.shape[:2], 1), np.int8)
        team[views.row, views.power, 0] = 1 + games.map.teams.of_power[views.power]
        return views._replace(board=np.concatenate([views.board, team], 2))

    def encode(self, boards: Boards) -> Codes:
        """Return the script's codes; the teammates' numbers are added to the deciding powers'
        views."""
        codes = super().encode(boards)
        team = boards.views.board[:, : boards.num_powers, NUM_BOARD_FEATURES]  # (G, P)
        mates = (team[:, :, None] == team[:, None]) & (team[:, None] > 0)
        mates &= ~np.eye(boards.num_powers, dtype=bool)  # (G, P, P)
        shares = mates / np.maximum(mates.sum(2, keepdims=True), 1)
        shares = on_device(shares.astype(np.float32), codes.view.device)
        messages = shares @ torch.tanh(self.write(codes.powers))  # (G, P, size), to each power
        added = self.read(messages).flatten(0, 1).index_select(0, boards.viewer)
        return codes._replace(view=codes.view + added)


class Central(Extended):
    """A critic that also sees the orders of the learner's other powers in the same phase.

    Given the board the others' orders do not depend on one's own, so the baseline stays unbiased
    (Lowe et al. 2017). Who is `alone`, as a player, and `get_value` see no orders of others.
    """

    def __init__(self, game_map: engine.Map, hidden: int = 64, *network):
        super().__init__(game_map, hidden, *network)
        first, last = nn.Linear(4 * hidden, hidden), nn.Linear(hidden, 1, bias=False)
        self.mates = nn.Sequential(layer_init(first), nn.ReLU(), layer_init(last, 0.1))

    def get_action_and_value(
        self,
        obs: BoardViews,
        decisions: Decisions,
        chosen=None,
        noise=None,
        temperature=None,
        *,
        alone=False,
    ) -> ppo.Action:
        """Do as Agent; the value depends on the orders of all decisions on the same board."""
        boards = self.inputs(obs)
        codes = self.encode(boards)
        orders = self.inputs.orders(boards, decisions, chosen, self.autoregressive)
        action = self.get_action(codes, orders, noise, temperature)
        if alone:
            return action._replace(value=self.value(codes))
        orders = self.inputs.orders(boards, decisions, action.chosen, related=False)
        return action._replace(value=self.value(codes, self.mates_orders(codes, orders, obs.row)))

    def get_value(self, obs: BoardViews) -> torch.Tensor:
        return self.value(self.encode(self.inputs(obs)))

    def value(self, codes: Codes, others: torch.Tensor | None = None) -> torch.Tensor:
        """Return values (D,); `others` (D, H) are codes of mates' orders, None: there are none."""
        if others is None:
            others = codes.view.new_zeros(len(codes.view), codes.provinces.shape[2])
        of_mates = self.mates(torch.cat([codes.view, others], 1))
        return (self.critic(codes.view) + of_mates).squeeze(-1)

    def mates_orders(self, codes: Codes, orders: Orders, board: np.ndarray) -> torch.Tensor:
        """Return the sum (D, H) of the codes of the other powers' orders on each board."""
        tables = self.order_tables(codes, orders)
        order_codes = ops.sum_rows(orders.given_provinces, tables.provinces)
        order_codes = F.relu(order_codes + ops.sum_rows(orders.given_kinds, tables.kinds))  # (S, H)
        own = order_codes.new_zeros(orders.decisions.count, order_codes.shape[1])
        own = own.index_add(0, orders.decision, order_codes)
        rows = torch.from_numpy(board.astype(np.int64)).to(order_codes.device)
        board_sum = own.new_zeros(len(codes.provinces), own.shape[1]).index_add(0, rows, own)
        return board_sum.index_select(0, rows) - own


def make_player(
    agent: nn.Module, name: str, greedy: bool = False, settings: dict | None = None
) -> PolicyPlayer:
    if isinstance(agent, Central):  # a player does not see what other powers order
        agent = copy.copy(agent)
        agent.__dict__["get_action_and_value"] = partial(agent.get_action_and_value, alone=True)
    return policy_player(agent, name, greedy, settings)


class Policies(OpponentPool):
    """A pool that can freeze the learner as soon as it beats its newest copy."""

    args: Args

    def is_due(self, global_step: int) -> bool:
        wanted, newest = self.args.freeze_score, self.copies[-1]
        games, score = self.games[newest], self.score[newest]
        beaten = wanted is not None and games >= FREEZE_GAMES and score >= wanted * games
        return beaten or super().is_due(global_step)


class SchemeRun(TeamRun):
    args: Args

    def __init__(self, setup: startup.Setup, ranks: Ranks):
        super().__init__(setup, ranks, Policies)
        args = self.args
        if args.scheme == "central" and (args.partners == "pool" or args.learner_seats < 2):
            raise engine.UserError("--scheme central needs --learner-seats 2 or more, or --teams")

    @cached_property
    def leaves(self) -> Leaves:
        return Leaves(self.games, LearnerCritic(self), engine.load_player("dumbbot"))

    def store(self, experience: Experience, action: ppo.Action, orders: np.ndarray) -> None:
        """Store decisions; with the scheme `counterfactual` the value of one of a movement phase is
        its baseline, and the critic's in retreats and winters."""
        moving = in_movement(self.games.state, experience.decisions.game)
        if self.args.scheme == "counterfactual" and moving.any():
            baselines = self.baselines(experience.decisions.take(moving), orders)
            value = action.value.cpu().index_copy(
                0, torch.from_numpy(np.flatnonzero(moving)), torch.from_numpy(np.float32(baselines))
            )
            action = action._replace(value=value)
        super().store(experience, action, orders)

    def baselines(self, decisions: Decisions, orders: np.ndarray) -> np.ndarray:
        """Return the mean values (D,) after other samples of the policy.

        `alternatives` samples for each decision are adjudicated against the orders (E, V) of the
        other powers, and played to the power's next decision.
        """
        games, count = self.games, self.args.alternatives
        seats = decisions.game, decisions.power
        draws = PolicyDraws(LearnerCritic(self).policy)
        drawn, _ = draws.draw(games, decisions, phase_seeds(games, *seats, Salt.PLAIN, count))
        row, power = np.repeat(decisions.game, count), np.repeat(decisions.power, count)
        mine = games.state.unit_power[row] == power[:, None]
        joint_orders = np.where(mine, drawn.reshape(len(row), -1), orders[row])
        # What follows is drawn alike for all alternatives.
        follow = np.repeat(phase_seeds(games, *seats, Salt.FOLLOWING, 1), count)
        values = self.leaves.evaluate(games, row, power, joint_orders, follow)
        return values.reshape(-1, count).mean(1)


class LearnerCritic(Critic):
    def __init__(self, run: Run):
        self.run, self.policy = run, make_player(run.agent, "learner")
        self.discount, self.at_once = run.args.gamma, False

    def paid(self, result: engine.StepResult, victory_centers: int) -> np.ndarray:
        """Return the reward of this moment of training that a step has paid every power, (n, P)."""
        run, args = self.run, self.run.args
        position = engine.reward_input(result, victory_centers, args.year_limit != "truncate")
        return run.reward(position, min(1.0, run.step / args.total_timesteps))


train = partial(ppo.train, make_run=SchemeRun)
AGENTS: dict[str, type[nn.Module]] = {"independent": Independent, "central": Central}


def make_agent(options: dict, game_map: engine.Map) -> nn.Module:
    if size := options["board"]:
        return ppo.make_agent(options, game_map, Broadcasting, size=size)
    return ppo.make_agent(options, game_map, AGENTS.get(options["scheme"], Agent))


LEARNER_SPEC = registry.register(__name__, __file__, Args, make_agent, make_player)

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_SPEC, train))
