"""A league: self-play whose pool also gets exploiters, so that no single way of playing is enough.

    python -m diplomacy_learners.league --map small
    python -m diplomacy_learners.league --resume runs/small__league__...

The learner is that of ppo_selfplay_diplomacy.py, whose flags follow. From time to time a copy of it
learns to beat the learner, or the whole pool: AlphaStar's main and league exploiters (Vinyals et
al. 2019). It then joins the pool, frozen.
"""

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
import tyro

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.errors import UserError
from diplomacy_engine.learning import registry, settings, startup
from diplomacy_engine.learning.evaluations import evaluate
from diplomacy_engine.learning.run_log import NoLog


@dataclass(frozen=True)
class Args(ppo.Args):
    """Settings: those of ppo_selfplay_diplomacy.py, and those of the exploiters."""

    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    exploiter_interval: ppo.Count = 90_000
    """learner decisions between two exploiters"""
    exploiter_timesteps: ppo.Count = 60_000
    """decisions from which each exploiter learns; they count apart from --total-timesteps"""


class League(ppo.OpponentPool):
    """A pool in which exploiters are, too; what they won is kept by the kind of their opponents."""

    def __init__(self, args: Args, game_map: engine.Map):
        super().__init__(args, game_map)
        self.exploiters = 0  # so far
        self.wins: dict[str, float] = {}  # share of their last games that the newest of a kind won

    def join(self, agent: ppo.Agent, global_step: int) -> None:
        """Take in a network beside the learner's copies, of which the newest stays the last."""
        self.freeze(agent, global_step)
        *others, newest, joined = self.copies
        self.copies = [*others, joined, newest]


def train_exploiter(run: ppo.Run, ranks: startup.Ranks, clock: startup.Clock) -> None:
    """Let a copy of the learner learn to beat it, or in turn its whole pool, and join that."""
    league, args, log = run.pool, run.args, NoLog()
    log.clock = clock
    kind = ("learner", "pool")[league.exploiters % 2]
    copies = league.copies if kind == "pool" else league.copies[-1:]
    number = league.exploiters + 1
    # Opponents play as they are, and each of the pool is as likely as another.
    own = replace(
        args,
        seed=args.seed + number,
        total_timesteps=args.exploiter_timesteps,
        opponent_temperature=1.0,
        pool_sampling="latest",
        latest_prob=0.0,
        pool_bots=args.pool_bots if kind == "pool" else (),
    )
    weights = run.average.state_dict()
    with torch.random.fork_rng(devices=[]):  # its own draws are not the learner's
        exploiter = ppo.Run(replace(run.setup, args=own, weights=weights, saved=None), ranks)
        exploiter.pool.agents = {number: league.agents[number] for number in copies}
        exploiter.pool.copies, exploiter.pool.frozen_at = copies, league.frozen_at
        ppo.assign_seats(exploiter, np.arange(exploiter.games.num_games))
        while exploiter.step < own.total_timesteps:
            result, counts = ppo.play_phase(exploiter, clock)
            ppo.pay_learner(exploiter, result)
            rows, finished = ppo.games_over(exploiter, result)
            flags = {
                "full": exploiter.buffer.count.max() >= own.num_steps,
                "stop": ranks.stop.value,
            }
            total = ranks.sum(counts | finished | flags)
            if total["stop"]:
                raise startup.Stopped  # a resumed run trains it anew
            exploiter.results.count(total)
            exploiter.games.reset(rows)
            ppo.assign_seats(exploiter, rows)
            if total["full"]:
                ppo.learn(exploiter, ranks, log)
    league.exploiters = number
    league.join(exploiter.average, run.step)
    wins = [value for name, value in exploiter.results.take().items() if name.startswith("win_")]
    if wins:  # a game of its has ended
        league.wins[kind] = float(np.mean(wins))


def train(setup: startup.Setup, ranks: startup.Ranks, until: int | None = None) -> bool:
    make_run = partial(ppo.Run, pool=League)

    def play(run: ppo.Run, clock: startup.Clock) -> tuple[engine.StepResult, dict[str, int]]:
        if run.step >= (run.pool.exploiters + 1) * run.args.exploiter_interval:
            train_exploiter(run, ranks, clock)
        return ppo.play_phase(run, clock)

    def assess(run: ppo.Run, ranks: startup.Ranks, log: startup.RunLog, **last: bool) -> None:
        evaluate(run, ranks, log, **last)
        if ranks.rank == 0:
            wins = {f"league/win_{kind}": win for kind, win in run.pool.wins.items()}
            log.scalars(wins | {"league/exploiters": run.pool.exploiters}, run.step)

    if setup.args.pool_size < 2:
        raise UserError("--pool-size 1 has no place for exploiters beside the learner's copy")
    return ppo.train(setup, ranks, until, make_run=make_run, play=play, assess=assess)


LEARNER_HERE = registry.register(__name__, __file__, Args, ppo.make_agent)

if __name__ == "__main__":
    args = tyro.cli(Args, **settings.command_line(Args))
    sys.exit(startup.main(LEARNER_HERE, train, args))
