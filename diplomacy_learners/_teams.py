"""Teams in training: the seats of learner and partners, and rewards of eliminated powers."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.learning import startup
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.records import OnlyIf
from ppo_selfplay_diplomacy import OpponentPool, Run


@OnlyIf(
    "with --teams the learner has a seat for each power of a team, which support each other",
    lambda args: not args.teams,
).for_all("learner_seats", "cross_support")
@dataclass(frozen=True)
class TeamArgs(ppo.Args):
    """Settings: those of ppo_selfplay_diplomacy.py, and those of teams."""

    teams: str = ""
    """powers that win and lose together: ENGLAND+ITALY, or several teams separated by commas"""
    team_victory: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """centers a team needs to win after a fall, if no other team has as many; 0: no such victory"""
    learner_powers: tuple[str, ...] = ()
    """powers that the learner plays in every game, instead of seats that are drawn"""
    partners: Annotated[
        Literal["self", "pool"], OnlyIf("it needs --teams", lambda args: args.teams)
    ] = "self"
    """with --teams: player of the learner's partners: the learner, or a copy or bot of the pool"""


class TeamRun(Run):
    """A run of teams: later rewards of a team count for its eliminated powers, too.

    Otherwise no sacrifice could be learned.
    """

    args: TeamArgs

    def __init__(self, setup: startup.Setup, ranks: Ranks, pool: type = OpponentPool):
        super().__init__(setup, ranks, pool)
        check_seating(self.args, self.game_map)

    def seat(self, rows: np.ndarray) -> None:
        """Seat learner and opponents in the new games `rows`.

        A side is a power, or a team of powers. As in plain self-play, but `learner_powers` limits
        the learner's sides, and with `partners` of the pool the learner has one power of its team
        and the pool the others.
        """
        args, rng, side = self.args, self.rng, self.game_map.teams.of_power  # (P,)
        by_side = len(rows), int(side.max()) + 1
        learners = [self.game_map.power_number(name) for name in args.learner_powers]
        playable = np.isin(np.arange(len(side)), learners or np.arange(len(side)))  # (P,)
        weights = np.maximum(1 - args.weak_seats * self.results.win_share, 0.05)
        keys = rng.exponential(size=by_side) / weights  # the lowest are the learner's
        keys[:, np.setdiff1d(side, side[playable])] = np.inf
        count = 1 if args.teams else self.sample_counts(len(rows))
        learns = keys.argsort(1).argsort(1)[:, side] < count
        members = self.pool.sample(rng, by_side)[:, side]
        place = keys[:, side].argsort(1, kind="stable").argsort(1)  # the learner's come first
        if args.partners == "pool":  # one power of the team is the learner's
            score = rng.random((len(rows), len(side))) * (learns & playable)
            learns = np.arange(len(side)) == score.argmax(1)[:, None]
        self.fill_seats(rows, learns, place, members)

    def plays_on(self, result: engine.StepResult) -> np.ndarray:
        return engine.alive_with_team(result.alive, self.game_map.teams.of_power)

    def values_of(self, rows: np.ndarray, powers: np.ndarray) -> np.ndarray:
        alive, team = self.games.outcomes().alive[rows], self.game_map.teams.of_power
        return super().values_of(rows, engine.living_mate(alive, team, powers))


def check_seating(args: TeamArgs, game_map: engine.Map) -> None:
    teams, flags = game_map.teams, " ".join(args.learner_powers)
    learners = {game_map.power_number(name) for name in args.learner_powers}
    if learners and not teams.text and len(learners) != args.learner_seats:
        raise engine.UserError(f"--learner-powers {flags} needs --learner-seats {len(learners)}")
    if learners and teams.text and args.partners == "self":
        team = teams.of_power
        if learners != set(np.flatnonzero(team == team[min(learners)]).tolist()):
            names = ", ".join(teams.names)
            raise engine.UserError(f"--learner-powers {flags} must be one team of {names}")
