"""Matches: seat players, play many games at once, tally the results with intervals.

`play_games` is the core; `evaluate_player` seats one player as every power equally often against
copies of another and returns the figures below, each with a 95 % interval. Of one power in one
game, rates are 0 or 1:

    solo            it reached the victory count, ahead of everyone else
    win             solo, or at the year limit more centers than any other power
    draw            nobody solos
    survival        it has a unit or a center at the end
    elimination     it has none
    loss            another power solos; solo + draw + loss = 1
    most_centers    no power has more centers at the end (ties included)

and means:

    centers         at the end
    rank            by centers at the end, 1 = best, ties averaged
    sum_of_squares  1 for a solo, 0 if another power solos, else its squared centers over the sum
                    of all powers' squares
    deepdip_reward  the reward `deepdip` of scoring.py; with the year limit `truncate` a game cut
                    there pays none
    game_years      years played, the last one included
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .constants import BUILD, FALL_RETREATS, NONE, RUNNING, SOLO, SPRING_RETREATS, phase_name
from .game import Game
from .map import Map, load_map
from .players import Player
from .scoring import RewardInput, make_reward, ranks, reward_input
from .vector_game import VectorGame

RATES = ("solo", "win", "draw", "survival", "elimination", "loss", "most_centers")
MEANS = ("centers", "rank", "sum_of_squares", "deepdip_reward", "game_years")
FIGURES = RATES + MEANS
YEAR_LIMITS = ("draw", "truncate")
BATCH = 1024  # games at once; bounds the memory a network needs for their decisions
RESAMPLES = 2000  # of the bootstrap
Z = 1.959963984540054  # 97.5 % quantile of the normal distribution


class Outcomes(NamedTuple):
    """How finished games ended."""

    ended: np.ndarray  # (E,) int8, End
    winner: np.ndarray  # (E,) int8, power that won a solo, or NONE
    centers: np.ndarray  # (E, P) int16
    alive: np.ndarray  # (E, P) bool, has a unit or a center
    years: np.ndarray  # (E,) int16, game years played


class GameRecorder:
    """Keeps the orders of the first rows of a match, to write saved games afterwards."""

    def __init__(self, rows: int):
        self.rows = rows
        self._steps: list[tuple[np.ndarray, ...]] = []

    def note(self, games: VectorGame, orders: np.ndarray) -> None:
        """Keep the orders (E, V) about to be given."""
        state, rows = games.state, slice(self.rows)
        retreating = np.isin(state.phase[rows, None], (SPRING_RETREATS, FALL_RETREATS))
        owner = np.where(retreating, state.dislodged_power[rows], state.unit_power[rows])
        building = (games.table.kind[orders[rows]] == BUILD) & (orders[rows] != NONE)
        owner = np.where(building, games.board.home_power, owner)
        running = state.end[rows] == RUNNING
        self._steps.append(
            (running, state.year[rows].copy(), state.phase[rows].copy(), owner, orders[rows].copy())
        )

    def replay(
        self, games: VectorGame, think: Callable[[int, Game], dict] | None = None
    ) -> list[Game]:
        """Return the recorded games of a match that began with the opening position.

        Args:
            games: those that were played.
            think: asked before every phase, with row and Game, for the `thoughts` to keep with it.
        """
        replayed = [Game(games.map, games.max_years or None) for _ in range(self.rows)]
        texts = games.vocabulary.texts
        for running, year, phase, owner, orders in self._steps:
            for row in np.flatnonzero(running):
                game = replayed[row]
                recorded = phase_name(year[row], phase[row])
                if game.phase != recorded:
                    raise RuntimeError(f"the replay of a game is in {game.phase}, not {recorded}")
                for power, name in enumerate(game.powers):
                    mine = np.flatnonzero((owner[row] == power) & (orders[row] != NONE))
                    given = [texts[number] for number in orders[row, mine]]
                    game.submit(name, given, strict=False)
                thoughts = think(int(row), game) if think else {}
                game.adjudicate()
                if thoughts:
                    game.history[-1]["thoughts"] = thoughts
        return replayed


def play_games(
    games: VectorGame,
    seat_player: np.ndarray,
    players: Sequence[Player],
    recorder: GameRecorder | None = None,
    report: Callable[[int], None] | None = None,
) -> Outcomes:
    """Play all games to their end.

    Args:
        games: made with auto_reset=False, and with a year limit unless the players surely end
            their games.
        seat_player: (E, P) integers, which of `players` plays each power of each game.
        players: each is asked once a step for all its decisions in all games.
        recorder: notes the orders of its rows.
        report: called after each step with the number of games that have ended.

    Raises:
        ValueError: the arguments do not fit each other.
    """
    seat_player = np.asarray(seat_player)
    if games.auto_reset:
        raise ValueError("play_games needs a VectorGame with auto_reset=False")
    if seat_player.shape != (games.num_games, games.num_powers):
        raise ValueError(
            f"seat_player must be of shape ({games.num_games}, {games.num_powers}), "
            f"not {seat_player.shape}"
        )
    if not 0 <= seat_player.min() <= seat_player.max() < len(players):
        raise ValueError(f"seat_player must be 0..{len(players) - 1}")
    while (games.state.end == RUNNING).any():
        decisions, orders = games.decisions(), games.new_orders()
        playing = seat_player[decisions.game, decisions.power]
        for number, player in enumerate(players):
            rows = np.flatnonzero(playing == number)
            if len(rows):
                player.act(games, decisions.take(rows), orders)
        if recorder is not None:
            recorder.note(games, orders)
        games.step(orders)
        if report is not None:
            report(int((games.state.end != RUNNING).sum()))
    return _outcomes(games)


def _outcomes(games: VectorGame) -> Outcomes:
    state, centers = games.state, games.centers()
    alive = np.stack(
        [
            ((state.unit_power == power) | (state.dislodged_power == power)).any(1)
            for power in range(games.num_powers)
        ],
        axis=1,
    )
    return Outcomes(
        state.end.copy(),
        state.winner.copy(),
        centers,
        alive | (centers > 0),
        state.year - np.int16(games.board.first_year - 1),
    )


def figure_values(
    outcomes: Outcomes, victory_centers: int, year_limit: str = "draw"
) -> dict[str, np.ndarray]:
    """Return FIGURES of every power of every game, (E, P) float64 each."""
    centers, alive = outcomes.centers, outcomes.alive
    powers = alive.shape[1]
    someone = np.broadcast_to((outcomes.ended == SOLO)[:, None], alive.shape)
    solo = someone & (np.arange(powers) == outcomes.winner[:, None])
    most = centers == centers.max(1, keepdims=True)
    alone = most & (most.sum(1, keepdims=True) == 1)
    squares = centers.astype(np.float64) ** 2
    share = squares / np.maximum(squares.sum(1, keepdims=True), 1)
    # The end of every power, whenever it came, as if it all were this step's.
    ends = RewardInput(
        outcomes.ended,
        outcomes.winner,
        np.ones(len(alive), bool),
        centers,
        centers,
        alive,
        ~alive,
        victory_centers,
    )
    paid = make_reward("deepdip")(
        reward_input(ends, victory_centers, pay_year_limit=year_limit != "truncate")
    )
    values = {
        "solo": solo,
        "win": solo | (alone & ~someone),
        "draw": ~someone,
        "survival": alive,
        "elimination": ~alive,
        "loss": someone & ~solo,
        "most_centers": most,
        "centers": centers,
        "rank": ranks(centers),
        "sum_of_squares": np.where(someone, solo, share),
        "deepdip_reward": paid,
        "game_years": np.broadcast_to(outcomes.years[:, None], alive.shape),
    }
    return {name: values[name].astype(np.float64) for name in FIGURES}


def wilson_interval(successes: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate (Wilson 1927)."""
    rate, z2 = successes / count, Z * Z
    middle = (rate + z2 / (2 * count)) / (1 + z2 / count)
    half = Z / (1 + z2 / count) * math.sqrt(rate * (1 - rate) / count + z2 / (4 * count**2))
    return max(0.0, min(middle - half, rate)), min(1.0, max(middle + half, rate))


def bootstrap_intervals(strata: Sequence[np.ndarray]) -> np.ndarray:
    """Return the 95 % intervals of the means of K figures, (2, K): low and high.

    Each stratum, (n, K), is resampled on its own, always with the same random numbers.
    """
    generator = np.random.default_rng(0)
    count = sum(len(values) for values in strata)
    totals = 0.0
    for values in strata:
        # Drawing n rows with replacement is drawing how often each distinct row comes.
        distinct, times = np.unique(values, axis=0, return_counts=True)
        drawn = generator.multinomial(len(values), times / len(values), RESAMPLES)
        totals = totals + drawn @ distinct
    return np.quantile(totals / count, (0.025, 0.975), axis=0)


def summarize(values: dict[str, np.ndarray], seat: np.ndarray) -> dict[str, dict[str, float]]:
    """Return value, low and high of FIGURES over games.

    Args:
        values: (games,) of each figure.
        seat: (games,) the power played, by which means are stratified.
    """
    count = len(seat)
    summary = {}
    for name in RATES:
        low, high = wilson_interval(float(values[name].sum()), count)
        summary[name] = {"value": float(values[name].mean()), "low": low, "high": high}
    table = np.stack([values[name] for name in MEANS], axis=1)
    lows, highs = bootstrap_intervals([table[seat == power] for power in np.unique(seat)])
    for name, mean, low, high in zip(MEANS, table.mean(0), lows, highs):
        # Rounding may leave the mean of equal values just outside.
        bounds = min(low, mean), mean, max(high, mean)
        summary[name] = dict(zip(("low", "value", "high"), map(float, bounds)))
    return {name: {key: summary[name][key] for key in ("value", "low", "high")} for name in FIGURES}


def _in_seats(
    think: Callable[[Game, str], dict], seats: Sequence[str]
) -> Callable[[int, Game], dict]:
    """Return what GameRecorder.replay asks, for a player that sits in `seats` of the rows."""
    return lambda row, game: think(game, seats[row])


def evaluate_player(
    game_map: str | Map,
    player: Player,
    against: Player,
    num_games: int,
    seed: int = 1,
    max_years: int | None = None,
    year_limit: str = "draw",
    threads: int | None = None,
    samples: int = 0,
    batch: int = BATCH,
    report: Callable[[int], None] | None = None,
    think: Callable[[Game, str], dict] | None = None,
) -> tuple[dict, list[dict]]:
    """Play a player as every power equally often against copies of another.

    Args:
        game_map: a map's name or file, or a Map.
        player: the one whose results are tallied.
        against: plays every other power.
        num_games: rounded up to a multiple of the powers.
        seed: of the games; the same seed gives the same result whatever the threads.
        max_years: game years after which a game ends; None: the map's own.
        year_limit: `draw` or `truncate`.
        threads: of the games; None: as many as there are processors.
        samples: so many games are returned as saved games.
        batch: games played at once.
        report: called now and then with the number of games that have ended.
        think: of a Game and the player's power, returns the `thoughts` that the samples keep.

    Returns:
        The result as `evaluate --json` writes it, and the saved games.

    Raises:
        ValueError: a number is out of range.
    """
    game_map = load_map(game_map)
    max_years = game_map.max_years if max_years is None else max_years
    if num_games < 1 or max_years < 1:
        raise ValueError("an evaluation needs at least one game, and at least one year")
    if year_limit not in YEAR_LIMITS:
        raise ValueError(f"year_limit must be one of {', '.join(YEAR_LIMITS)}, not {year_limit!r}")
    powers = len(game_map.powers)
    num_games = -(-num_games // powers) * powers
    batch = max(powers, batch // powers * powers)
    seat = np.arange(num_games) % powers
    parts, saved_games = [], []
    for first in range(0, num_games, batch):
        mine = seat[first : first + batch]
        games = VectorGame(
            game_map,
            len(mine),
            seed=int(np.random.SeedSequence([seed, first]).generate_state(1, np.uint64)[0]),
            max_years=max_years,
            threads=threads,
            auto_reset=False,
        )
        recorder = GameRecorder(min(samples - len(saved_games), len(mine)))
        outcomes = play_games(
            games,
            (np.arange(powers) != mine[:, None]).astype(np.int8),
            (player, against),
            recorder if recorder.rows > 0 else None,
            None if report is None else lambda done, first=first: report(first + done),
        )
        values = figure_values(outcomes, game_map.board.victory_centers, year_limit)
        rows = np.arange(len(mine))
        parts.append({name: values[name][rows, mine] for name in FIGURES})
        seats = [game_map.powers[power] for power in mine]
        for row, game in enumerate(recorder.replay(games, think and _in_seats(think, seats))):
            game.id = f"{seed}-{first + row}-{game_map.powers[mine[row]]}"
            saved_games.append(game.to_saved_game())
    values = {name: np.concatenate([part[name] for part in parts]) for name in FIGURES}
    result = {
        "map": game_map.name,
        "player": player.name,
        "against": against.name,
        "games": num_games,
        "seed": seed,
        "max_years": max_years,
        "year_limit": year_limit,
        "greedy": bool(getattr(player, "greedy", False)),
        "overall": summarize(values, seat),
        "by_power": {
            name: summarize(
                {figure: values[figure][seat == power] for figure in FIGURES},
                seat[seat == power],
            )
            for power, name in enumerate(game_map.powers)
        },
    }
    return result, saved_games
