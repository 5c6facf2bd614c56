"""Self-play that stays close to another policy, such as one that has learned from people's games.

    python -m diplomacy_learners.anchored --map standard --anchor runs/... --start-from runs/...
    python -m diplomacy_learners.anchored --map standard --anchor standard-human --anchor-coef 0.01

The learner is that of ppo_selfplay_diplomacy.py, whose flags follow. Each decision costs
`anchor_coef` times the log-ratio of its orders' probabilities under learner and anchor, so that the
learner maximizes reward less the KL divergence from the anchor (Jacob et al. 2022, Bakhtin et al.
2022).
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import Decisions, UserError
from diplomacy_engine.constants import NONE
from diplomacy_engine.games.decisions import order_positions
from diplomacy_engine.games.order_lists import matched
from diplomacy_engine.learning import registry, startup
from diplomacy_engine.learning.experience import Experience
from diplomacy_engine.learning.players import agent_of
from diplomacy_engine.learning.startup import Clock, Ranks, Setup
from diplomacy_engine.players.policy.player import PolicyPlayer


@dataclass(frozen=True)
class Args(ppo.Args):
    """Settings: those of ppo_selfplay_diplomacy.py, and those of the anchor."""

    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    anchor: str = "standard-human"
    """policy to stay close to: a name, a checkpoint or a run folder"""
    anchor_coef: ppo.Weight = 0.002
    """weight of the KL penalty: reward subtracted for each nat of log-ratio to the anchor"""


class AnchoredRun(ppo.Run):
    """A run that pays for every nat of distance from the anchor."""

    REBUILT = (*ppo.Run.REBUILT, "anchor", "pending")
    args: Args

    def __init__(self, setup: Setup, ranks: Ranks):
        super().__init__(setup, ranks)
        anchor = engine.load_player(self.args.anchor, game_map=setup.game_map)
        if not isinstance(anchor, PolicyPlayer):
            raise UserError(f"--anchor {self.args.anchor} is not a policy")
        if self.args.cross_support and not anchor.settings.get("cross_support", True):
            raise UserError(f"--anchor {self.args.anchor} needs --no-cross-support, as it has")
        self.anchor = anchor
        self.pending = self.games.decisions()  # with all legal orders, of this phase

    def ask_for_orders(
        self, decisions: Decisions, clock: Clock
    ) -> tuple[np.ndarray, Experience, ppo.Action]:
        self.pending = decisions
        return super().ask_for_orders(decisions, clock)

    def store(self, experience: Experience, action: ppo.Action, orders: np.ndarray) -> None:
        super().store(experience, action, orders)
        own = experience.decisions
        nats = action.logprob.cpu().numpy() - self.anchor_logprobs(own, experience.chosen)
        costs = (-self.args.anchor_coef * nats).astype(np.float32)
        streams = self.seats.stream[own.game, own.power]
        self.buffer.pay(streams, costs)
        self.episodes.pay(streams, costs)

    def anchor_logprobs(self, own: Decisions, chosen: np.ndarray) -> np.ndarray:
        """Return how probable (D,) the anchor finds the orders `chosen` (S,) of D decisions."""
        learns = self.seats.stream != NONE
        learns &= self.seats.random_phases == 0
        mine = learns[self.pending.game, self.pending.power]
        full = self.anchor.legal_orders(self.games, self.pending.take(mine))
        numbers = matched(full, own, engine.order_numbers(own, chosen))
        obs = self.anchor.observe(self.games, full.game, full.power)
        with torch.no_grad():
            scored = agent_of(self.anchor).get_action_and_value(
                obs, full, order_positions(full, numbers)
            )
        return scored.logprob.numpy()


train = partial(ppo.train, make_run=AnchoredRun)
LEARNER_SPEC = registry.register(__name__, __file__, Args, ppo.make_agent)

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_SPEC, train))
