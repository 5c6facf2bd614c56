"""Who sits where in the games of self-play, until when, and how the finished ones went."""

from typing import NamedTuple, Protocol

import numpy as np

from ..constants import NONE, RUNNING
from ..games.vector_game import StepResult, VectorGame
from ..scoring.outcomes import Outcomes
from .opponent_pool import OpponentPool
from .rollout_buffer import checked

MEMORY = 0.995  # per game, of the running means of wins
# What is summed up over finished games.
COUNTED = ("games", "win", "solo", "draw", "loss", "centers", "years", "frozen_at", "opponents")


class SeatSettings(Protocol):
    """The settings that seating reads, explained in the trainer's Args."""

    learner_seats: int
    learner_powers: tuple[str, ...]
    partners: str
    weak_seats: float
    opponent_temperature: float
    warm_up_share: float
    warm_up_phases: int
    finish_games: bool


class Seats(NamedTuple):
    """The seats of the running games, (E, P) each: who plays, who learns, and in which team."""

    member: np.ndarray  # int64, number of the pool's member that gives the orders
    stream: np.ndarray  # int64, column of that member's buffer; NONE: nothing is learned here
    team: np.ndarray  # int64, powers of one number play together; without teams the power's own
    warm_up: np.ndarray  # int64, phases in which the power still gives random orders
    temperature: np.ndarray  # float32, of the draws of orders; 1 for a learner

    @property
    def learns(self) -> np.ndarray:
        """Whether somebody learns from each seat, (E, P) bool."""
        return self.stream != NONE

    def of_learner(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return row and power of each of a learner's streams, (streams,) each."""
        row, power = np.nonzero((self.member == number) & self.learns)
        order = np.argsort(self.stream[row, power])
        return row[order], power[order]


class Finished(NamedTuple):
    """Finished games."""

    statistics: dict  # sums over them
    member: np.ndarray  # (games, sides), as in Seats
    learns: np.ndarray  # (games, sides) bool
    scores: np.ndarray  # (games,) of the learner: 1 win, 0.5 draw, 0 loss
    victory: np.ndarray  # (games, sides) bool, which side has won, if any


class Seating:
    """Seats learners and opponents, and counts how their games go.

    `seats` is fixed until a game ends, but for `warm_up`, which counts down. Random beginnings, of
    1 to `warm_up_phases` phases for a share `warm_up_share` of the seats, each drawn on its own,
    set the learner before positions that its own play never reaches: behind as well as ahead, and
    against opponents that lost time. Hot opponents err, which
    a learner whose power loses to strong ones can learn from, and cold ones stay strong while the
    learner explores.
    A side is a power, or where the games' map has teams one of these: all powers of a team have one
    player. With `partners` of the pool, a learner plays one power of its team, and a member of the
    pool the others. `win_share` (sides,) is the learners' running mean share of wins with each
    side.
    """

    def __init__(
        self,
        args: SeatSettings,
        games: VectorGame,
        pool: OpponentPool,
        rng: np.random.Generator,
    ):
        self.args, self.games, self.pool, self.rng = args, games, pool, rng
        shape = (games.num_games, games.num_powers)
        self.teams, self.side = games.map.teams, games.map.teams.of_power
        sides = np.arange(len(self.teams.names))
        self.first = (self.side == sides[:, None]).argmax(1)  # power of each side
        self.place = np.array([(self.side[:p] == s).sum() for p, s in enumerate(self.side)])
        # Sides that each learner has; with teams one, whose powers have the seats.
        self.own_sides = 1 if self.teams.text else args.learner_seats
        self.mixed = args.partners == "pool"  # whether a learner's team has other players, too
        chosen = [games.map.power_number(name) for name in args.learner_powers]
        powers = np.arange(games.num_powers)
        self.own_powers = np.isin(powers, chosen if chosen else powers)
        self.playable = np.isin(sides, self.side[chosen] if chosen else sides)
        self.seats = Seats(
            member=np.zeros(shape, np.int64),
            stream=np.full(shape, NONE),
            team=np.broadcast_to(self.side, shape).astype(np.int64),
            warm_up=np.zeros(shape, np.int64),
            temperature=np.ones(shape, np.float32),
        )
        self.win_share = np.zeros(len(sides))
        self.statistics: list[dict] = []
        self.assign_seats(np.arange(games.num_games))

    def assign_seats(self, rows: np.ndarray) -> None:
        """Seat learners and opponents in new games.

        Each learner gets `learner_seats` powers of a game, or one team. They are drawn without
        replacement, with weights that fall with the share of games that are won with them, from 1
        to 1 - `weak_seats`, but never below 0.05; where there are `learner_powers`, only they are.
        Games begin one by one, and who is to sit there changes as they are learned from, so that
        seats cannot be balanced beforehand.
        """
        args, seats = self.args, self.seats
        shape, by_side = (len(rows), self.games.num_powers), (len(rows), len(self.first))
        weights = np.maximum(1 - args.weak_seats * self.win_share, 0.05)
        arrival = self.rng.exponential(size=by_side) / weights
        first_sides = np.where(self.playable, arrival, np.inf).argsort(1)
        member = self.pool.draw(self.rng, by_side)[:, self.side]
        stream = np.full(shape, NONE)
        place = 0 if self.mixed else self.place
        first_stream = np.broadcast_to(rows[:, None] * args.learner_seats + place, shape)
        for number, learner in enumerate(self.pool.learners):
            for own in range(self.own_sides):
                mine = self.side == first_sides[:, [number * self.own_sides + own]]
                if self.mixed:  # one of its powers
                    drawn = self.rng.random(shape) * (mine & self.own_powers)
                    mine = np.arange(shape[1]) == drawn.argmax(1)[:, None]
                member[mine] = learner.number
                stream[mine] = (first_stream + own)[mine]
        seats.member[rows], seats.stream[rows] = member, stream
        if args.opponent_temperature != 1:
            drawn = args.opponent_temperature ** self.rng.random(by_side)[:, self.side]
            seats.temperature[rows] = np.where(stream != NONE, 1.0, drawn)
        if args.warm_up_share > 0:
            phases = self.rng.integers(1, args.warm_up_phases + 1, shape)
            seats.warm_up[rows] = phases * (self.rng.random(shape) < args.warm_up_share)

    def forget_unused(self) -> None:
        """Drop copies that have left the pool and play in no game of any process."""
        self.pool.forget_unused(np.concatenate(self.pool.gather(np.unique(self.seats.member))))

    def end_phase(self, result: StepResult) -> int:
        """Start new games where they are over for the learners; return how many those are.

        A game that ends before a learner has taken part is not counted.
        """
        seats, learns = self.seats, self.seats.learns
        warm = seats.warm_up > 0  # these have just given random orders
        seats.warm_up[:] -= warm
        over = result.ended != RUNNING
        if not self.args.finish_games:
            over |= ~(self.alive_sides(result.alive) & learns).any(1)
        rows = np.flatnonzero(over)
        played = rows[(learns & ~warm)[rows].any(1)]
        finished = self._count(result, played) if len(played) else None
        # Finished games of all processes that train together count in each of them.
        for part in filter(None, self.pool.gather(finished)):
            self.statistics.append(part.statistics)
            games = part.learns.sum(0)
            shares = (part.learns & part.victory).sum(0) / np.maximum(games, 1)
            self.win_share += (1 - MEMORY**games) * (shares - self.win_share)
            self.pool.record(part.member, part.scores)
        self.games.reset(rows)
        self.assign_seats(rows)
        return len(played)

    def alive_sides(self, alive: np.ndarray) -> np.ndarray:
        """Return whether each power (E, P), or with teams any of its team, is alive."""
        if not self.teams.text:
            return alive
        return (alive[:, :, None] & (self.side[:, None] == self.side)).any(1)

    def _count(self, result: StepResult, rows: np.ndarray) -> Finished:
        """Return how the games `rows` went."""
        years = result.year[rows] - self.games.board.first_year + 1
        found = (result.ended, result.winner, result.centers, result.alive)
        outcomes = Outcomes(*(array[rows] for array in found), years)
        if self.teams.text:
            outcomes = outcomes.of_teams(self.side)
        learns, here = self.seats.learns[rows], self.side == np.arange(len(self.first))[:, None]
        mine = (learns[:, None] & here).any(2)  # (games, sides)
        # A partner is no opponent: of a learner's side, the learner is counted.
        speaker = np.where(mine, (learns[:, None] & here).argmax(2), self.first)
        member = self.seats.member[rows[:, None], speaker]
        victory = outcomes.win()
        won_solo, win = (mine & outcomes.solo()).any(1), (mine & victory).any(1)
        draw = outcomes.draw() & (mine & outcomes.alive).any(1)
        opponents = [self.pool.all[number] for number in member[~mine].tolist()]
        copies = [opponent for opponent in opponents if opponent.frozen_at is not None]
        statistics = {
            "games": len(rows),
            "win": int(win.sum()),
            "solo": int(won_solo.sum()),
            "draw": int(draw.sum()),
            "loss": int(len(rows) - won_solo.sum() - draw.sum()),
            "centers": float(np.where(mine, outcomes.centers, 0).max(1).sum()),
            "years": int(years.sum()),
            "frozen_at": float(sum(copy.frozen_at for copy in copies)),
            "opponents": len(copies),
        }
        scores = np.where(win, 1.0, np.where(draw, 0.5, 0.0))
        return Finished(statistics, member, mine, scores, victory)

    def state_dict(self) -> dict:
        """Return all of it for a checkpoint, the games too."""
        return {
            "games": self.games.snapshot(),
            "seats": self.seats._asdict(),
            "win_share": self.win_share,
            "statistics": self.statistics,
        }

    def load_state_dict(self, saved: dict) -> None:
        """Go on from a `state_dict()`, once the pool has.

        Raises:
            KeyError, TypeError, ValueError: it is none, or its members are not those of the pool.
        """
        hottest = self.args.opponent_temperature
        ranges = {
            "stream": (NONE, None),
            "team": (0, len(self.first) - 1),
            "warm_up": (0, self.args.warm_up_phases),
            "temperature": (min(1.0, hottest) * 0.999, max(1.0, hottest) * 1.001),
        }
        arrays = (
            checked(saved["seats"], name, array, *ranges.get(name, ()))
            for name, array in self.seats._asdict().items()
        )
        seats = Seats(*arrays)
        if not set(np.unique(seats.member).tolist()) <= self.pool.all.keys():
            raise ValueError("'member' seats somebody who is not in the pool")
        if not np.array_equal(seats.team, self.seats.team):
            raise ValueError("'team' has other teams")
        most = self.args.learner_seats
        learning = np.zeros_like(seats.learns)
        for learner in self.pool.learners:
            row, power = seats.of_learner(learner.number)
            learning[row, power] = True
            mine = (seats.member == learner.number) & seats.learns
            sides, own = mine[:, self.first], seats.stream[row, power]
            if self.mixed:
                whole = (mine.sum(1) == 1).all() and self.own_powers[power].all()
            else:
                whole = np.array_equal(sides[:, self.side], mine)
                whole = whole and (sides.sum(1) == self.own_sides).all()
            # Within a row the streams follow each other from its first one on.
            follow = np.arange(len(own)) - np.searchsorted(row, row)
            if not whole or not np.array_equal(own, row * most + follow):
                raise ValueError("'stream' does not give every learner its seats")
        theirs = np.isin(seats.member, [learner.number for learner in self.pool.learners])
        if (learning != theirs).any() or (learning != seats.learns).any():
            raise ValueError("'stream' and 'member' disagree")
        statistics = [dict(counted) for counted in saved["statistics"]]
        for counted in statistics:
            known = tuple(counted) == COUNTED and counted["games"] >= 1
            if not known or not all(
                type(value) in (int, float) and 0 <= value < 1e15 for value in counted.values()
            ):
                raise ValueError("'statistics' has other figures")
        win_share = checked(saved, "win_share", self.win_share, 0, 1)
        self.games.restore(saved["games"])
        self.seats, self.win_share, self.statistics = seats, win_share, statistics

    def take_statistics(self, global_step: int) -> dict[str, float]:
        """Return `selfplay/*`, means over the games finished since the last call.

        Only the share of wins with each side is a running mean.
        """
        if not self.statistics:
            return {}
        sums = {name: sum(s[name] for s in self.statistics) for name in self.statistics[0]}
        self.statistics = []
        games = sums.pop("games")
        opponents, frozen_at = sums.pop("opponents"), sums.pop("frozen_at")
        means = {name: total / games for name, total in sums.items()}
        if opponents:  # that are copies
            means["opponent_age"] = global_step - frozen_at / opponents
        means |= {f"win_{side}": share for side, share in zip(self.teams.names, self.win_share)}
        return {"games": games} | means
