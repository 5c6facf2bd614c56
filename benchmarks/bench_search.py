"""What looking ahead costs: leaves a second, and milliseconds a movement decision of each preset.

    python benchmarks/bench_search.py --map standard --policy runs/reference/standard__pure__2

Positions come from games of `dumbbot`, one power of each searched for, all games in one batch; then
the same with one game at a time, as on the page. Everything runs on one thread.

    python benchmarks/bench_search.py --map small --on-game

times what a search on `Game` does, beside python-chess if that is installed, in processor time.
"""

import argparse
import os
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from diplomacy_engine import Game, UserError, VectorGame, make_bot
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.loading import load_player
from diplomacy_engine.rules.state import in_movement


def positions(game_map, count: int, moves: int) -> tuple[VectorGame, np.ndarray]:
    """Return games in movement phases of the first years, and whose decision counts in each."""
    games = VectorGame(game_map, count, seed=1, threads=1, auto_reset=False)
    bot, wanted = make_bot("dumbbot"), np.arange(count) % moves
    played = np.zeros(count, int)
    while True:
        asked = games.decisions()
        moving = np.zeros(count, bool)
        moving[asked.game[in_movement(games.state, asked.game)]] = True
        rows = np.flatnonzero(~moving | (played < wanted))
        rows = rows[games.state.end[rows] == 0]
        if not len(rows):
            return games, np.arange(count) % games.num_powers
        played[rows] += moving[rows]
        games.step(orders_of(games, bot), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--map", default="standard")
    parser.add_argument("--policy", help="default: runs/reference/MAP__pure__2")
    parser.add_argument("--games", type=int, default=70)
    parser.add_argument("--kinds", nargs="+", default=["fast"])
    parser.add_argument("--on-game", action="store_true")
    arguments = parser.parse_args()
    if arguments.on_game:
        return time_game(arguments.map)
    policy = arguments.policy or f"runs/reference/{arguments.map}__pure__2"
    try:
        games, seat = positions(arguments.map, arguments.games, 24)
        players = {
            kind: load_player(f"{kind}:{policy}", game_map=games.map) for kind in arguments.kinds
        }
    except UserError as error:
        parser.error(str(error))
    asked = games.decisions()
    asked = asked.take(in_movement(games.state, asked.game) & (asked.power == seat[asked.game]))
    each = [asked.take(np.array([d])) for d in range(min(10, asked.count))]
    print(f"{arguments.map}: {asked.count} movement decisions in {arguments.games} games")
    for kind, player in players.items():
        player.act(games, asked.take(np.arange(2)))  # what is compiled once
        for name, batches in (("one batch", [asked]), ("one by one", each)):
            leaves = player.leaves(games)
            before, begun = leaves.tried, time.perf_counter()
            for batch in batches:
                player.act(games, batch)
            seconds, tried = time.perf_counter() - begun, leaves.tried - before
            count = sum(batch.count for batch in batches)
            print(
                f"{kind:12} {name:11} {1000 * seconds / count:8.1f} ms a decision, "
                f"{tried / count:6.0f} leaves each, {tried / seconds:8,.0f} leaves/s in all"
            )


def micros(action: Callable, make: Callable) -> float:
    """Return the median processor time of an action on what `make` returns, in us."""
    return statistics.median(once(action, make()) for _ in range(500))


def once(action: Callable, thing: Any) -> float:
    """Return the processor time of an action, in us."""
    begun = time.process_time_ns()
    action(thing)
    return (time.process_time_ns() - begun) / 1000


def time_game(game_map: str) -> None:
    """Print what copies of a game in its fourth year, in a movement phase, take."""
    games = VectorGame(game_map, 1, seed=1, threads=1, auto_reset=False)
    while games.state.year[0] < games.board.first_year + 3:
        games.step(orders_of(games, make_bot("random")))
    game = Game.from_row(games, 0)
    unit = next(iter(filter(None, game.units.values())))[0]

    def listed() -> Game:
        copy = game.copy()
        copy.legal_orders(unit)
        return copy

    def turn(game: Game) -> None:
        copy = game.copy()
        for power in game.powers:
            orders = [random.choice(copy.legal_orders(unit)) for unit in copy.units[power]]
            copy.submit(power, orders)
        copy.adjudicate()

    turn(game)  # what is compiled once
    print(f"{game_map}, {game.phase}: copy {micros(Game.copy, lambda: game):.0f} us")
    print(f"first legal_orders {micros(lambda one: one.legal_orders(unit), game.copy):.0f} us")
    print(f"first adjudicate {micros(Game.adjudicate, listed):.0f} us")
    print(f"copy, random orders of all, adjudicate {micros(turn, lambda: game):.0f} us")
    page = (Path(__file__).parents[1] / "docs" / "search.md").read_text(encoding="utf-8")
    own: dict = {}
    exec(re.search(r"```python\n(import math\n.*?)\ngame = ", page, re.DOTALL)[1], own)
    search = micros(lambda one: own["search"](one, one.powers[0], 20), lambda: game) / 20
    print(f"a simulation of the tree search of docs/search.md: {search:.0f} us")
    if find_spec("chess"):
        import chess

        def move(board: chess.Board) -> None:
            copy = board.copy()
            copy.push(random.choice(list(copy.legal_moves)))

        board = chess.Board()  # in turn, since a busy machine slows one or the other
        pairs = [(once(turn, game), once(move, board)) for _ in range(3000)]
        ours, theirs = (statistics.median(times) for times in zip(*pairs))
        ratio = ours / theirs
        print(f"ours {ours:.0f} us, python-chess {theirs:.0f} us: {ratio:.1f} times")


if __name__ == "__main__":
    main()
