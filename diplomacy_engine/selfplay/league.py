"""Ratings during training: the learner, copies of it from the pool and bots at mixed tables.

Every frozen copy, and the learner at each evaluation, is a player of fixed strength with a rating
of its own. It starts from the rating that the learner had at the evaluation before, since it stems
from that policy, with a newcomer's deviation. The first bot is the anchor: its rating stays what a
newcomer's is, so that ratings compare from one evaluation to the next. What the other bots and the
copies that stay in the pool are worth is known better with every evaluation, and links the learner
to the anchor also when it has long beaten that in every game.

A base population (docs/population.md) has ratings that stand, so that ranks in it compare from one
run to the next as well.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import UserError
from ..matches.population import rank_player
from ..matches.population_page import population_ladder, population_matrix
from ..matches.ratings import DEVIATION, MEAN, fit_ratings
from ..matches.settings import MatchSettings
from ..matches.tables import play_tables
from ..matches.tournament import balanced_seats
from ..pictures.png import png
from ..players.loading import load_members, load_player
from ..players.population import population_folder, read_population
from ..players.protocols import Player
from ..rules.map import Map
from ..scoring.rewards import ranks
from .opponent_pool import Member

COPIES = 3  # of the pool: the newest, the oldest, and one between


class Rated(NamedTuple):
    """What an evaluation says of the learner's strength."""

    figures: Mapping[str, float]  # by their names in TensorBoard
    pictures: Mapping[str, bytes]  # the same, PNG


class League:
    """The ratings of a training run.

    Args:
        game_map: the map of the games.
        bots: names; the first is the anchor.
        num_games: of one evaluation; 0 for none at all.
        seed: of all games; training's own draws are left alone.
        max_years: as for MatchSettings.
        threads: of the games.
        population_games: of one evaluation that rank the learner in the map's base population.
    """

    def __init__(
        self,
        game_map: Map,
        bots: Sequence[str],
        num_games: int,
        seed: int,
        max_years: int | None = None,
        threads: int | None = None,
        population_games: int = 0,
    ):
        self.game_map, self.bots, self.seed = game_map, tuple(bots), seed
        self.num_games = num_games if bots and len(game_map.powers) > 1 else 0
        self.max_years, self.threads = max_years, threads
        self.evaluations = 0  # so far; each has games of its own
        # Ratings by name of a bot, number of a copy, or "learner".
        self.ratings: dict[str | int, tuple[float, float]] = {
            bot: (MEAN, 0.0 if bot == self.bots[0] else DEVIATION) for bot in self.bots
        }
        self.population_games = population_games
        if population_games:
            self.population = read_population(population_folder(None, game_map), game_map)
            self.members = load_members(self.population, threads=threads)

    @classmethod
    def of(cls, args: Any, game_map: Map, active: bool) -> "League":
        """Return that of a run's settings; one that is not active never plays."""
        rated = args.eval_bots, args.league_games * active, args.seed, args.max_years or None
        return cls(game_map, *rated, args.threads, args.eval_population * active)

    def play(
        self,
        learner: Any,
        members: Sequence[Member],
        make_player: Callable[[Any, str, int], Player],
    ) -> Rated:
        """Play the games of an evaluation; return `league/rating_*` and `population/*`.

        Args:
            learner: the trainer's policy as it is now.
            members: the copies in the pool, oldest first.
            make_player: makes a player of a policy, a name and the seed of its draws.
        """
        self.evaluations += bool(self.num_games or self.population_games)
        figures = self._play(learner, members, make_player) if self.num_games else {}
        figures = {f"league/{name}": value for name, value in figures.items()}
        if not self.population_games:
            return Rated(figures, {})
        # The same seats and draws at every evaluation: what differs is the learner alone.
        population, drawn = self.population, np.random.SeedSequence([self.seed, 2**32 - 1])
        player = make_player(learner, "learner", int(drawn.generate_state(1)[0]))
        stands = rank_player(
            population,
            player,
            self.members,
            self.population_games,
            seed=self.seed,
            threads=self.threads,
        )
        for name in ("rank", "best", "worst", "share"):
            figures[f"population/{name}"] = float(getattr(stands, name))
        figures["population/rating"] = stands.value
        drawings = {"population/ladder": population_ladder(population, {"learner": stands})}
        if self.evaluations == 1:  # this one never changes
            drawings["population/matrix"] = population_matrix(population)
        try:
            pictures = {name: png(svg, self.game_map, width=760) for name, svg in drawings.items()}
        except UserError:  # there is no resvg-py, which pictures need and nothing else
            pictures = {}
        return Rated(figures, pictures)

    def _play(
        self,
        learner: Any,
        members: Sequence[Member],
        make_player: Callable[[Any, str, int], Player],
    ) -> dict[str, float]:
        """Play the league's games; return `rating_*` figures."""
        seeds = np.random.SeedSequence([self.seed, self.evaluations])
        rng = np.random.default_rng(seeds)
        picked = np.unique(np.linspace(0, len(members) - 1, COPIES).round().astype(int))
        copies = [members[i] for i in picked]
        names = ["learner", *(copy.number for copy in copies), *self.bots]
        policies = [learner, *(copy.player for copy in copies)]
        drawn = rng.integers(2**62, size=len(policies)).tolist()
        players = [make_player(p, str(n), seed) for p, n, seed in zip(policies, names, drawn)]
        players += [load_player(bot, game_map=self.game_map) for bot in self.bots]
        teams = self.game_map.teams
        seats = balanced_seats(len(players), len(teams.names), self.num_games, rng)
        settings = MatchSettings(
            self.game_map,
            seed=int(seeds.generate_state(1)[0]),
            max_years=self.max_years,
            threads=self.threads,
        )
        report = play_tables(settings, players, seats[:, teams.of_power])
        standing = report.outcomes.of_teams(teams.of_power).centers
        start = self.ratings.get("learner", (MEAN, DEVIATION))[0], DEVIATION
        kept = {name: rating for name, rating in self.ratings.items() if name != "learner"}
        before = np.array([kept.get(name, start) for name in names])
        rated = fit_ratings(*before.T, seats, ranks(standing), rng)
        kept |= {name: (float(m), float(d)) for name, m, d in zip(names, *rated)}
        present = {"learner", *self.bots, *(member.number for member in members)}
        self.ratings = {name: kept[name] for name in kept if name in present}
        shown = {"learner": "learner"} | {bot: bot for bot in self.bots}
        shown |= {"pool_oldest": copies[0].number, "pool_newest": copies[-1].number}
        figures = {f"rating_{label}": kept[name][0] for label, name in shown.items()}
        return figures | {"rating_learner_deviation": kept["learner"][1]}

    def state_dict(self) -> dict:
        """Return what a checkpoint has to hold."""
        return {"evaluations": self.evaluations, "ratings": dict(self.ratings)}

    def load_state_dict(self, saved: dict) -> None:
        """Go on from a `state_dict()`; KeyError, TypeError or ValueError if it is none."""
        ratings = {name: (float(m), float(d)) for name, (m, d) in dict(saved["ratings"]).items()}
        evaluations = saved["evaluations"]
        sound = type(evaluations) is int and 0 <= evaluations < 2**62
        if not sound or not all(abs(m) < 1e6 and 0 <= d < 1e6 for m, d in ratings.values()):
            raise ValueError("the league has numbers that cannot be")
        self.ratings, self.evaluations = ratings, evaluations
