"""Who sits where in the games of self-play, until when, and how the finished ones went."""

from typing import NamedTuple, Protocol

import numpy as np

from ..constants import NONE, RUNNING, YEAR_LIMIT
from ..games.vector_game import StepResult, VectorGame
from ..scoring.rewards import lead
from .opponent_pool import LEARNER, OpponentPool

MEMORY = 0.995  # per game, of the running means of wins
WARM_UP = -1000  # in place of a pool member's number while a power's random orders last


class SeatSettings(Protocol):
    """The settings that seating reads, explained in the trainer's Args."""

    learner_seats: int
    weak_seats: float
    opponent_temperature: float
    warm_up_share: float
    warm_up_phases: int
    finish_games: bool


class Finished(NamedTuple):
    """Finished games."""

    statistics: dict  # sums over them
    seats: np.ndarray  # (games, P), as in Seating
    scores: np.ndarray  # (games,) of the learner: 1 win, 0.5 draw, 0 loss
    victory: np.ndarray  # (games, P) bool, which power has won, if any


class Seating:
    """Who sits where in the running games.

    `seats` (E, P) holds LEARNER or a pool member's number, fixed until the game ends;
    `learner_power` (E, learner seats) the powers of the learner's streams; `stream` (E, P) the
    streams of the learner's powers, else NONE; `warm_up` (E, P) the phases in which a power still
    gives random orders. Random beginnings, of a length of its own for each power, set the learner
    before positions that its own play never reaches: behind as well as ahead, and against opponents
    that lost time. `temperature` (E, P) float32 is that of a seat's draws of orders, 1 for the
    learner; hot opponents err, which a learner whose power loses to strong ones can learn from, and
    cold ones stay strong while the learner explores.
    `win_share` (P,) is the learner's running mean share of wins with each power.
    """

    def __init__(
        self, args: SeatSettings, games: VectorGame, pool: OpponentPool, rng: np.random.Generator
    ):
        self.args, self.games, self.pool, self.rng = args, games, pool, rng
        shape = (games.num_games, games.num_powers)
        self.seats = np.full(shape, LEARNER)
        self.learner_power = np.zeros((games.num_games, args.learner_seats), np.int64)
        self.stream = np.full(shape, NONE)
        self.warm_up = np.zeros(shape, np.int64)
        self.temperature = np.ones(shape, np.float32)
        self.win_share = np.zeros(games.num_powers)
        self.statistics: list[dict] = []
        self.assign_seats(np.arange(games.num_games))

    def assign_seats(self, rows: np.ndarray) -> None:
        """Seat learner and opponents in new games.

        The learner's powers are drawn without replacement, with weights that fall with the share of
        games it wins with them, from 1 to 1 - `weak_seats`, but never below 0.05.
        """
        shape = (len(rows), self.games.num_powers)
        weights = np.maximum(1 - self.args.weak_seats * self.win_share, 0.05)
        arrival = self.rng.exponential(size=shape) / weights
        learners = arrival.argsort(1)[:, : self.args.learner_seats]
        game = np.arange(len(rows))[:, None]
        seats = self.pool.draw(self.rng, shape)
        seats[game, learners] = LEARNER
        self.seats[rows] = seats
        if self.args.opponent_temperature != 1:
            drawn = self.args.opponent_temperature ** self.rng.random(shape)
            self.temperature[rows] = np.where(seats == LEARNER, 1.0, drawn)
        self.learner_power[rows] = learners
        stream = np.full(shape, NONE)
        stream[game, learners] = rows[:, None] * self.args.learner_seats + np.arange(
            self.args.learner_seats
        )
        self.stream[rows] = stream
        if self.args.warm_up_share > 0:
            phases = self.rng.integers(1, self.args.warm_up_phases + 1, shape)
            self.warm_up[rows] = phases * (self.rng.random(shape) < self.args.warm_up_share)

    def forget_unused(self) -> None:
        """Drop copies that have left the pool and play in no game of any process."""
        self.pool.forget_unused(np.concatenate(self.pool.gather(np.unique(self.seats))))

    def players(self) -> np.ndarray:
        """Return who gives each power's orders, (E, P): as `seats`, or WARM_UP."""
        return np.where(self.warm_up > 0, WARM_UP, self.seats)

    def end_phase(self, result: StepResult) -> int:
        """Start new games where they are over for the learner; return how many those are.

        A game that ends before the learner has taken part is not counted.
        """
        warm = self.warm_up > 0  # these have just given random orders
        self.warm_up -= warm
        row = np.arange(self.games.num_games)[:, None]
        alive = result.alive[row, self.learner_power]
        over = result.ended != RUNNING
        if not self.args.finish_games:
            over |= ~alive.any(1)
        rows = np.flatnonzero(over)
        played = rows[~warm[row, self.learner_power].all(1)[rows]]
        finished = self._count(result, played, alive[played]) if len(played) else None
        # Finished games of all processes that train together count in each of them.
        for part in filter(None, self.pool.gather(finished)):
            self.statistics.append(part.statistics)
            mine = part.seats == LEARNER
            games = mine.sum(0)
            shares = (mine & part.victory).sum(0) / np.maximum(games, 1)
            self.win_share += (1 - MEMORY**games) * (shares - self.win_share)
            self.pool.record(part.seats, part.scores)
        self.games.reset(rows)
        self.assign_seats(rows)
        return len(played)

    def _count(self, result: StepResult, rows: np.ndarray, alive: np.ndarray) -> Finished:
        """Return how the games `rows` went; `alive` (games, learner seats)."""
        centers, mine = result.centers[rows], self.seats[rows] == LEARNER
        own = np.where(mine, centers, 0).max(1)
        at_limit = result.ended[rows] == YEAR_LIMIT
        solo = np.arange(centers.shape[1]) == result.winner[rows, None]
        victory = solo | (at_limit[:, None] & (lead(centers) > 0))
        won_solo, win = (mine & solo).any(1), (mine & victory).any(1)
        draw = at_limit & alive.any(1)
        age = [self.pool.all[n].frozen_at for n in self.seats[rows].ravel() if n >= 0]
        statistics = {
            "games": len(rows),
            "win": int(win.sum()),
            "solo": int(won_solo.sum()),
            "draw": int(draw.sum()),
            "loss": int(len(rows) - won_solo.sum() - draw.sum()),
            "centers": float(own.sum()),
            "years": int((result.year[rows] - self.games.board.first_year + 1).sum()),
            "frozen_at": float(np.sum(age)),
            "opponents": len(age),
        }
        scores = np.where(win, 1.0, np.where(draw, 0.5, 0.0))
        return Finished(statistics, self.seats[rows], scores, victory)

    def state_dict(self) -> dict:
        """Return all of it for a checkpoint, the games too."""
        return {
            "games": self.games.snapshot(),
            "seats": self.seats,
            "learner_power": self.learner_power,
            "stream": self.stream,
            "warm_up": self.warm_up,
            "temperature": self.temperature,
            "win_share": self.win_share,
            "statistics": self.statistics,
        }

    def load_state_dict(self, saved: dict) -> None:
        """Go on from a `state_dict()`."""
        self.games.restore(saved["games"])
        self.seats, self.learner_power = saved["seats"], saved["learner_power"]
        self.stream, self.warm_up = saved["stream"], saved["warm_up"]
        self.temperature, self.win_share = saved["temperature"], saved["win_share"]
        self.statistics = saved["statistics"]

    def take_statistics(self, global_step: int) -> dict[str, float]:
        """Return `selfplay/*`, means over the games finished since the last call.

        Only the share of wins with each power is a running mean.
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
        means |= {f"win_{p}": share for p, share in zip(self.games.map.powers, self.win_share)}
        return {"games": games} | means
