"""Ratings during training: the learner, copies of it from the pool and bots at mixed tables.

Every frozen copy, and the learner at each evaluation, is a player of fixed strength with a rating
of its own. It starts from the rating that the learner had at the evaluation before, since it stems
from that policy, with a newcomer's deviation. The first bot is the anchor: its rating stays what a
newcomer's is, so that ratings compare from one evaluation to the next. What the other bots and the
copies that stay in the pool are worth is known better with every evaluation, and links the learner
to the anchor also when it has long beaten that in every game.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..matches.match import MatchSettings
from ..matches.ratings import DEVIATION, MEAN, fit_ratings
from ..matches.tables import play_tables
from ..matches.tournament import balanced_seats
from ..players.loading import load_player
from ..players.protocols import Player
from ..rules.map import Map
from ..scoring.rewards import places

COPIES = 3  # of the pool: the newest, the oldest, and one between


class League:
    """The ratings of a training run.

    Args:
        args: settings of the run. The first of `eval_bots` is the anchor, `league_games` is the
            number of games of one evaluation.
        game_map: with its teams; not if all powers are in one, so that there are games to win.
        active: whether any games are played here; of several processes one is enough.
    """

    KEPT = ("evaluations", "ratings")

    def __init__(self, args: Any, game_map: Map, active: bool = True):
        self.game_map, self.bots, self.seed = game_map.contested(), tuple(args.eval_bots), args.seed
        plays = active and self.bots and len(game_map.powers) > 1
        self.num_games = args.league_games if plays else 0
        self.max_years = args.max_years or None
        self.evaluations = 0  # so far; each has games of its own
        # Ratings by name of a bot, number of a copy, or "learner".
        self.ratings: dict[str | int, tuple[float, float]] = {
            bot: (MEAN, 0.0 if bot == self.bots[0] else DEVIATION) for bot in self.bots
        } | {"learner": (MEAN, DEVIATION)}

    def play(
        self,
        learner: Any,
        pool: Any,
        make_player: Callable[[Any, str, int], Player],
    ) -> dict[str, float]:
        """Play the games of an evaluation; return `league/rating_*`, nothing without games.

        Args:
            learner: the trainer's policy as it is now.
            pool: of the run; `copies` are numbers in its `agents`, oldest first.
            make_player: makes a player of a policy, a name and the seed of its draws.
        """
        if not self.num_games:
            return {}
        self.evaluations += 1
        figures = self._play(learner, pool, make_player)
        return {f"league/{name}": value for name, value in figures.items()}

    def _play(
        self,
        learner: Any,
        pool: Any,
        make_player: Callable[[Any, str, int], Player],
    ) -> dict[str, float]:
        """Play the league's games; return `rating_*` figures."""
        seeds = np.random.SeedSequence([self.seed, self.evaluations])
        rng = np.random.default_rng(seeds)
        picked = np.unique(np.linspace(0, len(pool.copies) - 1, COPIES).round().astype(int))
        copies = [pool.copies[i] for i in picked]
        names = ["learner", *copies, *self.bots]
        policies = [learner, *(pool.agents[number] for number in copies)]
        drawn = rng.integers(2**62, size=len(policies)).tolist()
        players = [make_player(p, str(n), seed) for p, n, seed in zip(policies, names, drawn)]
        players += [load_player(bot, game_map=self.game_map) for bot in self.bots]
        teams = self.game_map.teams
        seats = balanced_seats(len(players), len(teams.names), self.num_games, rng)
        settings = MatchSettings(
            self.game_map,
            seed=int(seeds.generate_state(1)[0]),
            max_years=self.max_years,
            threads=1,
        )
        report = play_tables(settings, players, seats[:, teams.of_power])
        standing = report.outcomes.of_teams(teams.of_power).centers
        start = self.ratings["learner"][0], DEVIATION
        kept = {name: rating for name, rating in self.ratings.items() if name != "learner"}
        before = np.array([kept.get(name, start) for name in names])
        rated = fit_ratings(*before.T, seats, places(standing), rng)
        kept |= {name: (float(m), float(d)) for name, m, d in zip(names, *rated)}
        present = {"learner", *self.bots, *pool.copies}
        self.ratings = {name: kept[name] for name in kept if name in present}
        shown = {"learner": "learner"} | {bot: bot for bot in self.bots}
        shown |= {"pool_oldest": copies[0], "pool_newest": copies[-1]}
        figures = {f"rating_{label}": kept[name][0] for label, name in shown.items()}
        return figures | {"rating_learner_deviation": kept["learner"][1]}
