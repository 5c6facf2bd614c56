"""A league: self-play whose pool also gets exploiters, so that no single way of playing is enough.

    python -m diplomacy_learners.league --map small
    python -m diplomacy_learners.league --resume runs/small__league__...

The learner is that of ppo_selfplay_diplomacy.py, whose flags follow. From time to time a copy of it
trains against the learner, or against the whole pool (AlphaStar's main and league exploiters,
Vinyals et al. 2019), and then joins the pool, frozen.
"""

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.errors import UserError
from diplomacy_engine.learning import registry, startup
from diplomacy_engine.learning.run_log import NoLog
from diplomacy_engine.learning.signals import StopSignals


@dataclass(frozen=True)
class Args(ppo.Args):
    """Settings: those of ppo_selfplay_diplomacy.py, and those of the exploiters."""

    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    exploiter_interval: ppo.Count = 90_000
    """learner decisions between two exploiters"""
    exploiter_timesteps: ppo.Count = 60_000
    """decisions of each exploiter's training, not counted in --total-timesteps"""


class LeagueRun(ppo.Run):
    """A run that trains an exploiter whenever one is due, before the next phase is played."""

    args: Args

    def __init__(self, setup: startup.Setup, ranks: startup.Ranks):
        if setup.args.pool_size < 2:
            raise UserError("--pool-size 1 has no place for exploiters beside the learner's copy")
        super().__init__(setup, ranks)
        self.exploiters = 0  # so far
        # By the kind of their opponents: share of its last games that the newest has won.
        self.wins: dict[str, float] = {}

    def play(self, clock: startup.Clock) -> tuple[engine.StepResult, dict[str, int]]:
        if self.step >= (self.exploiters + 1) * self.args.exploiter_interval:
            self.train_exploiter(clock)
        return super().play(clock)

    def train_exploiter(self, clock: startup.Clock) -> None:
        """Train a copy of the learner against the learner or, every second time, its whole pool;
        add the copy to the pool."""
        pool, args, ranks, log = self.pool, self.args, self.ranks, NoLog()
        log.clock, log.stop = clock, StopSignals(flag=ranks.stop)
        kind = ("learner", "pool")[self.exploiters % 2]
        number = self.exploiters + 1
        # Opponents play and stay as they are, have all other seats, and each of the pool is as
        # likely as another.
        own = replace(
            args,
            seed=args.seed + number,
            total_timesteps=args.exploiter_timesteps,
            learner_seats=1,
            opponent_temperature=1.0,
            pool_interval=10**9,
            pool_sampling="latest",
            latest_prob=0.0,
            pool_bots=args.pool_bots if kind == "pool" else (),
        )
        weights = self.average.state_dict()
        with torch.random.fork_rng(devices=[]):  # it samples apart from the learner
            setup = replace(self.setup, args=own, weights=weights)
            exploiter = ppo.Run(setup, ranks)  # its pool has a copy of the learner as it is now
            if kind == "pool":
                exploiter.pool.copies = []
                for member in pool.copies:
                    exploiter.pool.freeze(pool.agents[member], pool.frozen_at[member])
            exploiter.seat(np.arange(exploiter.games.num_games))
            while exploiter.step < own.total_timesteps:
                ppo.advance(exploiter, ranks, log)  # Stopped: a resumed run trains it anew
        self.exploiters = number
        pool.freeze(exploiter.average, self.step, newest=False)
        figures = exploiter.results.take().items()
        wins = [value for name, value in figures if name.startswith("win_")]
        if wins:  # a game of its has ended
            self.wins[kind] = float(np.mean(wins))

    def evaluate(
        self, ranks: startup.Ranks, log: startup.RunLog, last: bool, **how: object
    ) -> None:
        super().evaluate(ranks, log, last, **how)
        if ranks.rank == 0:
            wins = {f"league/win_{kind}": win for kind, win in self.wins.items()}
            log.scalars(wins | {"league/exploiters": self.exploiters}, self.step)


train = partial(ppo.train, make_run=LeagueRun)
LEARNER_SPEC = registry.register(__name__, __file__, Args, ppo.make_agent)

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_SPEC, train))
