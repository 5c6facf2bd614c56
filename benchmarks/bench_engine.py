"""Measure how fast games of random legal orders are played, and each stage and bot alone.

    python benchmarks/bench_engine.py --map three --threads 2
    python benchmarks/bench_engine.py --seconds 20 --json speed.json

Timed games begin at positions sampled uniformly from all phases of random games. All runs once
untimed, so compilation is not counted. Run it on an otherwise idle machine.
"""

import math
import platform
import sys
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1]))
import diplomacy_engine
from diplomacy_engine._compilation import announce_compilation
from diplomacy_engine._cores import usable_cores
from diplomacy_engine._files import check_target
from diplomacy_engine._progress import fail
from diplomacy_engine.commands._console import make_console, print_table
from diplomacy_engine.commands._flags import Natural, Threads
from diplomacy_engine.commands._matches import write_result
from diplomacy_engine.constants import (
    FALL_MOVEMENT,
    FALL_RETREATS,
    RUNNING,
    SPRING_MOVEMENT,
    SPRING_RETREATS,
    WINTER_ADJUSTMENTS,
)
from diplomacy_engine.errors import UserError
from diplomacy_engine.flags import parse
from diplomacy_engine.games.decisions import Decisions
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.bots import BOTS, RandomBot
from diplomacy_engine.players.protocols import Player
from diplomacy_engine.players.search.player import SearchPlayer
from diplomacy_engine.rules.adjudicator.movement import adjudicate_rows, movement_scratch
from diplomacy_engine.rules.map import Map, load_map
from diplomacy_engine.rules.state import GameState

YEARS = 10  # of a game: on standard 1901 to 1910, as other engines' figures were taken
POOL_GAMES = 512  # played once from start to end for the positions
POOL_SHARE = 0.25  # of their phases are kept
STAGE_SHARE = 0.05  # of the seconds of play go to each stage

# Stage -> what its microseconds are counted by.
STAGES = {
    "legal_orders": "movement phase",  # complete lists of all units
    "adjudication": "movement phase",  # orders to moved units, results and retreats
    "step": "movement phase",  # adjudication, the next phase, and what a step reports
    "retreats": "retreat phase",  # lists and step
    "adjustments": "winter phase",  # lists and step
    "observation": "power and movement phase",
}
BOT_UNIT = "power and movement phase"
SEARCHED = 16  # decisions that a bot is timed with if it searches, which takes its time


@dataclass
class Bench:
    """Measure how fast games of random legal orders are played, and each stage and bot alone."""

    map: str = "standard"
    """small, three, standard, or the path of a map file"""
    threads: Threads = 1
    """threads of the play; stages and bots are always timed in one"""
    games: Annotated[int, Meta(ge=1, le=10**6)] = 4096
    """games at once"""
    seconds: Annotated[float, Meta(gt=0, le=3600)] = 5.0
    """seconds of play to measure"""
    until_year: Annotated[int, Meta(ge=1, le=20000)] | None = None
    """last year of a game; then a new one starts; None: the tenth, on standard 1910"""
    seed: Natural = 1
    """seed of the games"""
    json: str | None = None
    """write the figures to a file"""


class Play(NamedTuple):
    phases: int
    games: int  # games that ended
    seconds: float


def play(games: VectorGame, player: Player, seconds: float) -> Play:
    phases = finished = 0
    start = time.perf_counter()
    while True:
        phases += int(np.count_nonzero(games.state.end == RUNNING))
        finished += int(np.count_nonzero(games.step(orders_of(games, player)).ended))
        taken = time.perf_counter() - start
        if taken >= seconds:
            return Play(phases, finished, taken)


def sample_positions(game_map: Map, max_years: int, seed: int) -> VectorGame:
    games = VectorGame(game_map, POOL_GAMES, seed, max_years, threads=1, auto_reset=False)
    bot, rng, samples = RandomBot(), np.random.default_rng(seed), []
    while (running := np.flatnonzero(games.state.end == RUNNING)).size:
        rows = running[rng.random(running.size) < POOL_SHARE]
        samples.append([array[rows] for array in games.state])
        games.step(orders_of(games, bot))
    state = GameState(*(np.concatenate(parts) for parts in zip(*samples)))
    positions = VectorGame(game_map, len(state.phase), seed, max_years, threads=1)
    for array, sampled in zip(positions.state, state):
        array[:] = sampled
    return positions


def place_positions(
    games: VectorGame, positions: VectorGame, phases: Sequence[int], seed: int
) -> bool:
    """Set up every game at a random one of the positions in one of `phases`; False if none is."""
    rows = np.flatnonzero(np.isin(positions.state.phase, phases))
    if not len(rows):
        return False
    rows = np.random.default_rng(seed).choice(rows, games.num_games)
    games.copy_from(positions, rows, np.arange(games.num_games))
    return True


def measure(flags: Bench, game_map: Map) -> dict:
    num_games, seed, seconds = flags.games, flags.seed, flags.seconds
    until_year = last_year(game_map, flags.until_year)
    max_years = until_year - game_map.board.first_year + 1
    positions = sample_positions(game_map, max_years, seed)
    games = VectorGame(game_map, num_games, seed, max_years, flags.threads)
    place_positions(games, positions, range(5), seed)
    bot = RandomBot()
    play(games, bot, 0.0)
    played = play(games, bot, seconds)
    result = {
        "map": game_map.name,
        "threads": flags.threads,
        "games": num_games,
        "until_year": until_year,
        "seed": seed,
        "seconds": played.seconds,
        "phases": played.phases,
        "games_finished": played.games,
        "phases_per_second": played.phases / played.seconds,
        "games_per_second": played.games / played.seconds,
        "memory_bytes_per_game": bytes_per_game(games),
    }
    del games
    alone = VectorGame(game_map, num_games, seed, max_years, threads=1)
    result |= time_stages(alone, positions, STAGE_SHARE * seconds, seed)
    return result | {"machine": machine(), "versions": versions()}


def last_year(game_map: Map, until_year: int | None) -> int:
    first_year = game_map.board.first_year
    last = first_year + YEARS - 1 if until_year is None else until_year
    if not first_year <= last < first_year + 1000:
        raise UserError(f"--until-year {last} is not {first_year} to {first_year + 999}")
    return last


def bytes_per_game(games: VectorGame) -> int:
    """Return the bytes that a game needs: state, orders and what a step returns; no order lists."""
    orders = games.new_orders()
    arrays = [*games.state, games.row_seed, orders, *games.step(orders)]
    return math.ceil(sum(array.nbytes for array in arrays) / games.num_games)


def median_microseconds(
    function: Callable[[], object],
    items: int,
    seconds: float,
    prepare: Callable[[], object] = lambda: None,
) -> float:
    """Return the median microseconds an item of at least three calls; `prepare` is not timed."""
    prepare()
    function()
    taken, start = [], time.perf_counter()
    while len(taken) < 3 or time.perf_counter() - start < seconds:
        prepare()
        begin = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(taken)) / items


def time_stages(games: VectorGame, positions: VectorGame, seconds: float, seed: int) -> dict:
    """None stands for a stage whose phase kind did not come up; STAGES says what is counted."""
    stages, bots = dict.fromkeys(STAGES), dict.fromkeys(BOTS)
    if place_positions(games, positions, (SPRING_MOVEMENT, FALL_MOVEMENT), seed):
        stages |= _time_movement(games, seconds)
        decisions = games.decisions()
        stages["observation"] = median_microseconds(
            lambda: games.observe(decisions), decisions.count, seconds
        )
        for name in BOTS:
            bots[name] = _time_bot(name, games, decisions, seconds)
    for stage, phases in (
        ("retreats", (SPRING_RETREATS, FALL_RETREATS)),
        ("adjustments", (WINTER_ADJUSTMENTS,)),
    ):
        if place_positions(games, positions, phases, seed):
            lists = median_microseconds(games.decisions, games.num_games, seconds)
            stages[stage] = lists + _time_step(games, seconds)
    return {"stage_microseconds": stages, "bot_microseconds": bots}


def _restore(games: VectorGame, start: VectorGame) -> None:
    rows = np.arange(games.num_games)
    games.copy_from(start, rows, rows, keep_seeds=True)


def _time_step(games: VectorGame, seconds: float) -> float:
    orders, start = orders_of(games, RandomBot()), copy(games)
    taken = median_microseconds(
        lambda: games.step(orders), games.num_games, seconds, lambda: _restore(games, start)
    )
    _restore(games, start)
    return taken


def _time_movement(games: VectorGame, seconds: float) -> dict[str, float]:
    orders, start = orders_of(games, RandomBot()), copy(games)
    scratch = movement_scratch(games.board)
    adjudication = median_microseconds(
        lambda: adjudicate_rows(games.board, games.table, games.state, orders, scratch),
        games.num_games,
        seconds,
        lambda: _restore(games, start),
    )
    _restore(games, start)
    return {
        "legal_orders": median_microseconds(games.decisions, games.num_games, seconds),
        "adjudication": adjudication,
        "step": _time_step(games, seconds),
    }


def _time_bot(name: str, games: VectorGame, decisions: Decisions, seconds: float) -> float:
    bot = BOTS[name]()
    if isinstance(bot, SearchPlayer):
        decisions = decisions.take(np.arange(min(decisions.count, SEARCHED)))
    return median_microseconds(lambda: bot.act(games, decisions), decisions.count, seconds)


def machine() -> dict:
    return {"cpu": _cpu_name(), "cores": usable_cores(), "system": platform.system()}


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    return {
        "diplomacy_engine": diplomacy_engine.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": version("numba"),
    }


def print_bench(console: Console, result: dict) -> None:
    machine = result["machine"]
    console.print(
        f"random play on map {result['map']} to {result['until_year']}: {result['threads']} "
        f"thread{'s' * (result['threads'] > 1)}, {result['games']:,} games at once, "
        f"{result['seconds']:.1f} s; {machine['cpu']}, {machine['cores']} cores",
        markup=False,
    )
    rows = [
        ("phases/s", f"{result['phases_per_second']:,.0f}"),
        ("games/s", f"{result['games_per_second']:,.0f}"),
        ("bytes/game", f"{result['memory_bytes_per_game']:,}"),
    ]
    console.print()
    for name, figure in rows:
        console.print(f"{name:{max(len(label) for label, _ in rows)}}  {figure}", markup=False)
    bots = {f"bot {name}": taken for name, taken in result["bot_microseconds"].items()}
    figures = result["stage_microseconds"] | bots
    stages = [
        (
            name.replace("_", " "),
            ("-" if taken is None else f"{taken:.2f}", STAGES.get(name, BOT_UNIT)),
        )
        for name, taken in figures.items()
    ]
    print_table(console, "stage, in one thread", ("microseconds", "per"), stages)


def main(argv: Sequence[str]) -> int:
    """Measure, print and write what the command line asks for; return the exit status."""
    try:
        flags = parse(Bench, argv, "benchmarks/bench_engine.py")
        if flags.json:
            check_target(Path(flags.json))
        game_map = load_map(flags.map)
        last_year(game_map, flags.until_year)
        announce_compilation()
        result = measure(flags, game_map)
    except UserError as error:
        return fail(error)
    print_bench(make_console(), result)
    write_result(flags.json, result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
