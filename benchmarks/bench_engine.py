"""Measure how fast games of random legal orders are played, and each stage and bot alone.

    python benchmarks/bench_engine.py --map three --threads 2
    python benchmarks/bench_engine.py --seconds 20

Games end after ten years, on `standard` with 1910, as those of other engines' figures. Timed games
begin at positions sampled uniformly from all phases of random games. All runs once untimed, so
compilation is not counted. Stages and bots are timed in one thread. Run it on an otherwise idle
machine.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from diplomacy_engine import VectorGame, load_map
from diplomacy_engine.constants import RUNNING, Phase
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.bots import BOTS, RandomBot
from diplomacy_engine.players.search.player import SearchPlayer
from diplomacy_engine.rules.map import Map
from diplomacy_engine.rules.state import GameState

YEARS = 10
POOL_GAMES, POOL_SHARE = 512, 0.25  # played once for the positions; of their phases are kept
STAGE_SHARE = 0.05  # of the seconds of play go to each stage
KINDS = {
    "movement": (Phase.SPRING_MOVEMENT, Phase.FALL_MOVEMENT),
    "retreats": (Phase.SPRING_RETREATS, Phase.FALL_RETREATS),
    "adjustments": (Phase.WINTER_ADJUSTMENTS,),
}
SEARCHED = 16  # decisions that a bot is timed with if it searches, which takes its time


def play(games: VectorGame, seconds: float) -> tuple[int, int, float]:
    """Return the phases that were played, the games that ended, and the seconds."""
    phases = finished = 0
    start = time.perf_counter()
    while True:
        phases += int(np.count_nonzero(games.state.end == RUNNING))
        finished += int(np.count_nonzero(games.step(orders_of(games, RandomBot())).ended))
        taken = time.perf_counter() - start
        if taken >= seconds:
            return phases, finished, taken


def sample_positions(game_map: Map, years: int, seed: int) -> VectorGame:
    """Return games, one in each of the positions."""
    games = VectorGame(game_map, POOL_GAMES, seed, years, threads=1, auto_reset=False)
    rng, samples = np.random.default_rng(seed), []
    while (running := np.flatnonzero(games.state.end == RUNNING)).size:
        rows = running[rng.random(running.size) < POOL_SHARE]
        samples.append([array[rows] for array in games.state])
        games.step(orders_of(games, RandomBot()))
    state = GameState(*(np.concatenate(parts) for parts in zip(*samples)))
    positions = VectorGame(game_map, len(state.phase), seed, years, threads=1)
    for array, sampled in zip(positions.state, state):
        array[:] = sampled
    return positions


def place(games: VectorGame, positions: VectorGame, phases: tuple[int, ...], seed: int) -> bool:
    """Set up every game at a random one of the positions in one of `phases`; False if none is."""
    rows = np.flatnonzero(np.isin(positions.state.phase, phases))
    if len(rows):
        rows = np.random.default_rng(seed).choice(rows, games.num_games)
        games.copy_from(positions, rows, np.arange(games.num_games))
    return len(rows) > 0


def median_micros(action: Callable, items: int, seconds: float, prepare: Callable = list) -> float:
    """Return the median microseconds an item of at least three calls; `prepare` is not timed."""
    prepare()
    action()
    taken, start = [], time.perf_counter()
    while len(taken) < 3 or time.perf_counter() - start < seconds:
        prepare()
        begin = time.perf_counter()
        action()
        taken.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(taken)) / items


def stages(
    games: VectorGame, positions: VectorGame, seconds: float, seed: int
) -> Iterator[tuple[str, float]]:
    """Yield each stage, what it is counted by, and its microseconds."""
    every = np.arange(games.num_games)
    for kind, phases in KINDS.items():
        if not place(games, positions, phases, seed):
            continue
        count = games.num_games
        yield f"legal orders, a phase of {kind}", median_micros(games.decisions, count, seconds)
        restore = partial(games.copy_from, copy(games), every, every, keep_seeds=True)
        step = partial(games.step, orders_of(games, RandomBot()))
        yield f"step, a phase of {kind}", median_micros(step, count, seconds, restore)
        restore()
        if kind == "movement":
            asked = games.decisions()
            observe = partial(games.observe, asked)
            yield "observation, a decision", median_micros(observe, asked.count, seconds)
            for name, bot_class in BOTS.items():
                bot = bot_class()
                most = SEARCHED if isinstance(bot, SearchPlayer) else asked.count
                some = asked.take(np.arange(min(asked.count, most)))
                act = partial(bot.act, games, some)
                yield f"{name}, a decision of movement", median_micros(act, some.count, seconds)


def main(argv: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="standard", help="or the path of a map file")
    parser.add_argument("--threads", type=int, default=1, help="of the play")
    parser.add_argument("--games", type=int, default=4096, help="at once")
    parser.add_argument("--seconds", type=float, default=5.0, help="of play")
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args(argv)
    try:
        game_map = load_map(flags.map)
        positions = sample_positions(game_map, YEARS, flags.seed)
        games = VectorGame(game_map, flags.games, flags.seed, YEARS, flags.threads)
    except ValueError as error:
        parser.error(str(error))
    place(games, positions, tuple(Phase), flags.seed)
    play(games, 0.0)
    phases, finished, seconds = play(games, flags.seconds)
    print(f"{phases / seconds:12,.0f} phases/s, {finished / seconds:,.0f} games/s")
    alone = VectorGame(game_map, flags.games, flags.seed, YEARS, threads=1)
    for name, micros in stages(alone, positions, STAGE_SHARE * flags.seconds, flags.seed):
        print(f"{micros:12,.2f} us  {name}", flush=True)


if __name__ == "__main__":
    main()
