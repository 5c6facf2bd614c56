"""Counts of play and learning, as sums over processes, and the metrics computed from them."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ..constants import NONE
from ..games.vector_game import StepResult
from ..rules.map import Map
from ..scoring.outcomes import Outcomes
from .copy_ratings import NOW, copy_ratings
from .of_scripts import Pool, Run
from .ranks import Sums

COUNTERS = ("global_step", "order_steps", "env_steps", "games", "updates")  # of a run so far
MEMORY = 0.995  # per game, of the running means of wins
RESULTS = ("win", "solo", "draw", "centers_behind")  # of games with an opponent
SELFPLAY = ("games", "opposed", *RESULTS, "centers", "years", "frozen_at", "opponents")


def selfplay_figures(sums: Mapping[str, float], global_step: int) -> dict[str, float]:
    """Return `selfplay/*`, means over finished games, from sums with the names SELFPLAY."""
    sums = dict(sums)
    games = sums.pop("games", 0)
    if not games:
        return {}
    opponents, frozen_at, opposed = (sums.pop(n) for n in ("opponents", "frozen_at", "opposed"))
    counts = {name: opposed if name in RESULTS else games for name in sums}
    figures = {name: sums[name] / count for name, count in counts.items() if count}
    if opponents:  # that are copies
        figures["opponent_age"] = global_step - frozen_at / opponents
    return figures


class Results:
    """What has been counted, and how games went by side: a team, or a power that plays alone."""

    def __init__(self, game_map: Map):
        self.game_map = game_map
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.sums = dict.fromkeys(SELFPLAY, 0.0)  # of games since the last update
        # By side: running means of the learner's wins, and the games that they are of.
        self.win_share = np.zeros(len(game_map.teams.names))
        self.side_games = np.zeros(len(game_map.teams.names))
        # Newest copy then -> copy -> pairs with it, and in how many the learner ended ahead.
        self.duels: dict[int, dict[int, tuple[float, float]]] = {}

    def of_games(
        self,
        result: StepResult,
        rows: np.ndarray,
        member: np.ndarray,
        learns: np.ndarray,
        pool: Pool,
    ) -> Sums:
        """Return sums over the games `rows` in which the learner took part. `member` (E, P) played,
        `learns` (E, P) where the learner. `copy_score`: a win counts 1, a draw 0.5; `duels`: pairs
        of a side of the learner and one of a copy, the better `ahead`, a tie as half."""
        side = self.game_map.teams.of_power  # (P,)
        rows = rows[learns[rows].any(1)]
        years = result.year[rows] - self.game_map.board.first_year + 1
        arrays = (result.ended, result.winner, result.centers, result.alive)
        outcomes = Outcomes._make([*(array[rows] for array in arrays), years])
        sides = int(side.max()) + 1
        if sides < len(side):
            outcomes = outcomes.of_teams(side)
        here = side == np.arange(sides)[:, None]  # (sides, P)
        mine = (learns[rows][:, None] & here).any(2)  # (games, sides)
        victory, opposed = outcomes.win(), ~mine.all(1)
        won_solo, win = ((mine & wins).any(1) & opposed for wins in (outcomes.solo(), victory))
        draw = outcomes.draw() & (mine & outcomes.alive).any(1) & opposed
        own = np.where(mine, outcomes.centers, 0).max(1, initial=0)
        scores = np.where(win, 1.0, np.where(draw, 0.5, 0.0))
        opponent = np.where(mine, NONE, member[rows[:, None], here.argmax(1)])  # (games, sides)
        frozen_at = pool.frozen_at
        frozen = [frozen_at[number] for number in opponent.ravel().tolist() if number in frozen_at]
        is_copy = opponent[:, :, None] == np.array(pool.copies)  # (games, sides, copies)
        met = is_copy.any(1)
        reached = outcomes.centers + victory * 1000  # a victory comes before any count of centers
        lead = np.sign(reached[:, :, None] - reached[:, None])  # (games, sides, sides)
        ahead = np.einsum("gs,gst,gtc->c", mine, (lead + 1) / 2, is_copy)
        return {
            "games": len(rows),
            "opposed": int(opposed.sum()),
            "win": int(win.sum()),
            "solo": int(won_solo.sum()),
            "draw": int(draw.sum()),
            "centers": float(own.sum()),
            "centers_behind": float((outcomes.centers.max(1, initial=0) - own).sum()),
            "years": int(years.sum()),
            "frozen_at": float(sum(frozen)),
            "opponents": len(frozen),
            "side_games": mine.sum(0).astype(np.float64),
            "side_wins": (mine & victory).sum(0).astype(np.float64),
            "copy_games": met.sum(0).astype(np.float64),
            "copy_score": (met * scores[:, None]).sum(0),
            "duels": (mine.sum(1)[:, None] * is_copy.sum(1)).sum(0).astype(np.float64),
            "duels_ahead": ahead,
        }

    def count(self, total: Mapping[str, np.ndarray], copies: Sequence[int]) -> None:
        row = self.duels.setdefault(copies[-1], {})
        duels = np.stack([total["duels"], total["duels_ahead"]], 1)
        for number, new in zip(copies, duels.tolist()):
            if new[0]:
                row[number] = tuple(np.add(row.get(number, (0.0, 0.0)), new).tolist())
        for name in self.counters.keys() & total.keys():
            self.counters[name] += int(total[name])
        for name in self.sums:
            self.sums[name] += float(total[name])
        games = total["side_games"]
        share = total["side_wins"] / np.maximum(games, 1)
        self.win_share += (1 - MEMORY**games) * (share - self.win_share)
        self.side_games += games

    def take(self) -> dict[str, float]:
        figures = selfplay_figures(self.sums, self.counters["global_step"])
        self.sums = dict.fromkeys(self.sums, 0.0)
        for side, share, games in zip(self.game_map.teams.names, self.win_share, self.side_games):
            if games:  # the mean has begun at 0, which weighs MEMORY ** games
                figures[f"win_{side}"] = float(share / (1 - MEMORY**games))
        return figures


class Episodes:
    """Counts episodes (a stream's decisions in one game) and their rewards by `parts`."""

    def __init__(self, num_streams: int, parts: Collection[str]):
        self.parts = tuple(parts)
        # Of each stream (streams, 2 + parts): decisions, return, and that in parts.
        self.running = np.zeros((num_streams, 2 + len(self.parts)))
        self.ended = np.zeros(3 + len(self.parts))  # how many have ended, and their sums

    def decide(self, streams: np.ndarray) -> None:
        self.running[streams, 0] += 1

    def pay(
        self,
        streams: np.ndarray,
        rewards: np.ndarray,
        parts: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Add rewards (n,) of streams (n,), and their `parts` by name; None: they are of none."""
        self.running[streams, 1] += rewards
        for column, name in enumerate(self.parts, 2):
            self.running[streams, column] += 0 if parts is None else parts[name]

    def end(self, streams: np.ndarray) -> None:
        self.ended += [len(streams), *self.running[streams].sum(0)]
        self.running[streams] = 0

    def take(self) -> Sums:
        ended, self.ended = self.ended, np.zeros_like(self.ended)
        return {"episodes": ended}

    def figures(self, sums: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
        count, *totals = sums["episodes"].tolist()
        names = ["episodic_length", "episodic_return"]
        if len(self.parts) > 1:
            names += [f"episodic_return_{part}" for part in self.parts]
        means = {name: total / count for name, total in zip(names, totals)} if count else {}
        return {"charts": means}


def explained_variance(sums: np.ndarray) -> float:
    """Return how much of the returns' variance the values explain; 1 is all of it."""
    count, total, squares, residual, residual_squares = sums.tolist()
    variance = squares / count - (total / count) ** 2
    unexplained = residual_squares / count - (residual / count) ** 2
    return 1 - unexplained / variance if variance > 1e-12 else 0.0


def of_update(
    run: Run,
    losses: Mapping[str, float],
    sums: Mapping[str, np.ndarray],
    charts: Mapping[str, float],
) -> dict[str, dict[str, float]]:
    """Return figures of an update by group, and forget them; `sums` are those of all ranks."""
    episodes, pool = run.episodes.figures(sums), run.pool
    frozen = pool.next_number - len(pool.bots) - 1  # copies so far
    duels = run.results.duels
    rating = {"rating": copy_ratings(duels)[NOW]} if any(duels.values()) else {}
    return episodes | {
        "losses": {**losses, "explained_variance": explained_variance(sums["batch"])},
        "selfplay": run.results.take(),
        "charts": {**charts, "batch_size": sums["batch"][0], **episodes["charts"]},
        "pool": {"size": len(pool.copies), "frozen": frozen} | rating,
    }
