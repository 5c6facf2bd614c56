"""Three baselines of multi-agent learning beside plain self-play, on top of its script.

    python ppo_baselines_diplomacy.py --map three --scheme independent
    python ppo_baselines_diplomacy.py --map three --scheme counterfactual --alternatives 4
    python ppo_baselines_diplomacy.py --map three --scheme central --teams ENGLAND+ITALY

They are those of Song et al. 2019 (Arena, section 3), beside self-play itself and populations:

    independent     every power has a network of its own, which learns from its own seats alone
    central         the critic also sees what the learner's other powers order in this very phase
    counterfactual  what orders brought counts beyond what other draws of the policy would have
                    brought, against the orders that the others really gave (Foerster et al. 2018)

All flags are those of ppo_selfplay_diplomacy.py, and so are the files, the curves and `--resume`.
What each scheme changes is a class below; the rest is that script's.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, load_player
from diplomacy_engine.games.decisions import Decisions, ragged_rows
from diplomacy_engine.games.observation import BoardViews
from diplomacy_engine.games.vector_game import StepResult
from diplomacy_engine.players import Explanation, PolicyPlayer
from diplomacy_engine.players.search.draws import PolicyDraws, is_moving
from diplomacy_engine.players.search.leaves import Critic, Leaves
from diplomacy_engine.players.search.noise import FOLLOWING, PLAIN, phase_seeds
from diplomacy_engine.policy.order_logits import RowSums
from diplomacy_engine.rules.map import Map
from diplomacy_engine.scoring.rewards import reward_input
from diplomacy_engine.selfplay import Experience, Member
from diplomacy_engine.training.checks import NETWORK
from diplomacy_engine.training.policy_files import PolicyFiles
from diplomacy_engine._fields import Positive


@dataclass(frozen=True)
class Args(ppo.Args):
    """Settings: those of ppo_selfplay_diplomacy.py and the scheme."""

    exp_name: str = "ppo_baselines_diplomacy"
    """name of this experiment, part of the run folder's name"""
    scheme: Literal["self_play", "independent", "central", "counterfactual"] = "self_play"
    """which baseline, see the top of the script; self_play: what ppo_selfplay_diplomacy.py does"""
    alternatives: Positive = 4
    """counterfactual: other orders that are tried for each decision of a movement phase"""


class IndependentAgent(ppo.Agent):
    """A network for each power. None learns from another's seats.

    One optimizer steps them all; Adam treats every weight by itself, so that is as good as several.
    """

    def __init__(self, game_map: Map, *network):
        nn.Module.__init__(self)
        self.powers = nn.ModuleList(ppo.Agent(game_map, *network) for _ in game_map.powers)
        self.vocabulary_hash, self.num_powers = self.powers[0].vocabulary_hash, len(self.powers)

    @property
    def borders(self) -> torch.Tensor:
        """The map's; its device is the network's."""
        return self.powers[0].borders

    def load_state_dict(self, saved: dict, *how, **options):
        """See Module. Weights of one network are those of each power's (--start-from)."""
        if not any(name.startswith("powers.") for name in saved):
            each = range(self.num_powers)
            saved = {f"powers.{p}.{name}": saved[name] for p in each for name in saved}
        return super().load_state_dict(saved, *how, **options)

    def _parts(self, obs: BoardViews) -> list[tuple[ppo.Agent, np.ndarray]]:
        """Return the network of each power that is there, and its rows of `obs`."""
        return [(self.powers[p], np.flatnonzero(obs.power == p)) for p in np.unique(obs.power)]

    def get_value(self, obs: BoardViews) -> torch.Tensor:
        """See Agent."""
        parts = self._parts(obs)
        return _in_order(parts, [agent.get_value(obs.take(rows)) for agent, rows in parts])

    def get_logprob_entropy_value(
        self, obs: BoardViews, decisions: Decisions, chosen: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """See Agent."""
        parts, asked = self._parts(obs), Experience(obs, decisions, chosen)
        found = [agent.get_logprob_entropy_value(*asked.take(rows)) for agent, rows in parts]
        return tuple(_in_order(parts, list(part)) for part in zip(*found))

    def _draw(self, obs: BoardViews, decisions: Decisions, noise: np.ndarray, heat: np.ndarray):
        """See Agent."""
        count, slots = decisions.count, decisions.slot_start
        of_orders = decisions.order_start[slots]  # where the orders of each decision begin
        chosen, logprob = np.zeros(slots[-1], np.int64), np.zeros(count, np.float32)
        probability = np.zeros(len(decisions.order), np.float32)
        value = np.zeros(count, np.float32)
        for agent, rows in self._parts(obs):
            own_slots, own_orders = _places(slots, rows), _places(of_orders, rows)
            own_noise = noise[own_orders] if len(noise) else noise
            asked = obs.take(rows), decisions.take(rows), own_noise, heat[rows]
            (chosen[own_slots], logprob[rows], found), value[rows] = agent._draw(*asked)
            if len(found):
                probability[own_orders] = found
        return (chosen, logprob, probability), value


def _places(starts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the places starts[r] .. starts[r + 1] - 1 of all `rows`, one row after the other."""
    ends = np.cumsum([0, *(starts[rows + 1] - starts[rows])]).astype(np.int32)
    return ragged_rows(starts[rows], ends)


def _in_order(parts: list[tuple[ppo.Agent, np.ndarray]], found: list[torch.Tensor]):
    """Return what was found for the rows of each part, in the order of all rows."""
    rows = np.concatenate([rows for _, rows in parts])
    return torch.cat(found)[torch.from_numpy(np.argsort(rows)).to(found[0].device)]


class CentralAgent(ppo.Agent):
    """The critic also sees what the learner's other powers order in the same phase.

    No-press Diplomacy hides nothing else, as all see the board, and given the board the others
    orders do not depend on one's own, so the baseline stays unbiased (Lowe et al. 2017). It is for
    learning only: who plays, and `values`, do without.
    """

    def __init__(self, game_map: Map, hidden: int = 64, *network):
        super().__init__(game_map, hidden, *network)
        first, last = nn.Linear(4 * hidden, hidden), nn.Linear(hidden, 1, bias=False)
        self.mates = nn.Sequential(ppo.layer_init(first), nn.ReLU(), ppo.layer_init(last, 0.1))
        self.seen: tuple[torch.Tensor, torch.Tensor] | None = None  # of the last boards encoded

    def load_state_dict(self, saved: dict, *how, **options):
        """See Module. What plain self-play has not learned stays as it is new (--start-from)."""
        own = {name: part for name, part in self.state_dict().items() if name.startswith("mates.")}
        return super().load_state_dict(own | saved, *how, **options)

    def encode(self, obs: BoardViews) -> tuple[torch.Tensor, ...]:
        """See Agent."""
        provinces, powers, view, value = super().encode(obs)
        self.seen = provinces, view
        return provinces, powers, view, value

    def _of_mates(self, obs: BoardViews, decisions: Decisions, chosen: np.ndarray):
        """Return what the others' orders add to the values of D decisions, (D,)."""
        (x, view), self.seen = self.seen, None
        picked = decisions.order_start[:-1] + chosen
        rows = self.inputs.orders(obs, decisions, picked, False).of_chosen(picked)
        tables = zip(rows, self._tables(x))
        codes = sum(ppo.Kernel.apply(RowSums(part), table)[0] for part, table in tables)
        codes = F.relu(codes).to(x.device)  # of each order
        decision = decisions.slot_decision
        own = codes.new_zeros(decisions.count, codes.shape[1])
        own = own.index_add(0, torch.from_numpy(decision).to(x.device), codes)
        board = torch.from_numpy(obs.row).to(x.device)
        whole = codes.new_zeros(len(obs.board), codes.shape[1]).index_add(0, board, own)
        others = whole.index_select(0, board) - own
        return self.mates(torch.cat([view, others], 1)).squeeze(-1)

    def get_logprob_entropy_value(
        self, obs: BoardViews, decisions: Decisions, chosen: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """See Agent."""
        logprob, entropy, value = super().get_logprob_entropy_value(obs, decisions, chosen)
        return logprob, entropy, value + self._of_mates(obs, decisions, chosen)

    @torch.no_grad()
    def act(self, obs: BoardViews, decisions: Decisions, *how, **options):
        """See Agent."""
        chosen, logprob, value = super().act(obs, decisions, *how, **options)
        return chosen, logprob, value + self._of_mates(obs, decisions, chosen).cpu().numpy()

    @torch.no_grad()
    def explain(self, obs: BoardViews, decisions: Decisions) -> Explanation:
        """See Agent."""
        found, self.seen = super().explain(obs, decisions), None
        return found


class Prospects(Critic):
    """What positions are worth to a learner while it learns; see Critic."""

    def __init__(self, member: Member, args: Args):
        self.policy = ppo.policy_player(member.player, "learner")
        self.reward, self.truncates = member.reward, args.year_limit == "truncate"
        self.discount, self.at_once, self.progress = args.gamma, False, 0.0

    def paid(self, result: StepResult, victory_centers: int) -> np.ndarray:
        """See LeafValue."""
        found = reward_input(result, victory_centers, not self.truncates)
        return self.reward(found, self.progress)


class CounterfactualSelfPlay(ppo.SelfPlay):
    """Takes the mean of what other draws would have brought for the value of a decision.

    Given the others' orders the engine adjudicates any orders exactly, so nothing is to be learned
    but what positions are worth: `alternatives` draws of the policy are adjudicated against what
    the others really ordered, and played to the power's next decision. A retreat or a winter is
    valued by the critic, as it is without a scheme.
    """

    def __init__(self, args: Args, game_map: Map, *others):
        super().__init__(args, game_map, *others)
        (member,) = self.pool.learners
        self.prospects = Prospects(member, args)
        self.draws = PolicyDraws(self.prospects.policy)
        self.leaves = Leaves(self.games, self.prospects, load_player("dumbbot"))

    def credit(self, result: StepResult, progress: float) -> None:
        """See SelfPlay."""
        super().credit(result, progress)
        self.prospects.progress = progress

    def learn_from(self, member: Member, taken: Experience, orders: np.ndarray, *found) -> None:
        """See SelfPlay."""
        logprobs, values = found
        moving = is_moving(self.games, taken.decisions)
        if moving.any():
            values = values.copy()
            values[moving] = self.baselines(taken.decisions.take(moving), orders)
        super().learn_from(member, taken, orders, logprobs, values)

    def baselines(self, decisions: Decisions, orders: np.ndarray) -> np.ndarray:
        """Return what D movement decisions would bring on average, the others' orders given."""
        games, count = self.games, self.args.alternatives
        seeds = phase_seeds(games, decisions.game, decisions.power, PLAIN, count)
        drawn, _ = self.draws.draw(games, decisions, seeds)
        row, power = np.repeat(decisions.game, count), np.repeat(decisions.power, count)
        mine = games.state.unit_power[row] == power[:, None]
        given = np.where(mine, drawn.reshape(len(row), -1), orders[row])
        follow = phase_seeds(games, decisions.game, decisions.power, FOLLOWING, 1)
        # What follows is drawn alike for all alternatives.
        brought = self.leaves.evaluate(games, row, power, given, np.repeat(follow, count))
        return brought.reshape(-1, count).mean(1)


AGENTS = {"independent": IndependentAgent, "central": CentralAgent}


def make_agent(settings: dict, game_map: Map) -> ppo.Agent:
    """Return a new agent with the scheme and the network settings of `settings`."""
    if settings["scheme"] == "central" and settings.get("learner_seats") == 1:
        raise UserError(
            "--scheme central needs a learner with several seats, whose orders its critic sees: "
            "--learner-seats 2 or more, or --teams"
        )
    agent = AGENTS.get(settings["scheme"], ppo.Agent)
    return agent(game_map, *(settings[name] for name in NETWORK))


def make_self_play(args: Args, *others) -> ppo.SelfPlay:
    """Return the games of a scheme."""
    counterfactual = args.scheme == "counterfactual"
    return (CounterfactualSelfPlay if counterfactual else ppo.SelfPlay)(args, *others)


FILES = PolicyFiles(__file__, Args, ppo.READ, make_agent, partial(torch.device, "meta"))
checkpoint_header, load_agent = FILES.header, FILES.network


def load_policy_player(
    path: str | Path, greedy: bool = False, seed: int = 0, device: str = "cpu"
) -> PolicyPlayer:
    """Return the policy of a checkpoint as a player; UserError if it cannot be played."""
    saved = FILES.read(path)
    agent = load_agent(saved, path).to(device).eval()
    return ppo.policy_player(agent, str(path), seed, greedy, FILES.settings(saved))


class Run(ppo.Run):
    """A run of a scheme."""

    files, self_play_class = FILES, staticmethod(make_self_play)


if __name__ == "__main__":
    sys.exit(ppo.main(kind=Run))
