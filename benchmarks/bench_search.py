"""What looking ahead costs: leaves a second, and milliseconds a movement decision of each preset.

    python benchmarks/bench_search.py --map standard --policy runs/reference/standard__pure__2

Positions come from games of `dumbbot`, one power of each searched for, all games in one batch; then
the same with one game at a time, as on the page. Everything runs on one thread.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from diplomacy_engine import UserError, VectorGame, make_bot
from diplomacy_engine.games.decisions import Decisions
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.loading import load_player
from diplomacy_engine.rules.state import in_movement


def decisions_of(games: VectorGame, seat: np.ndarray) -> Decisions:
    """Return the movement decisions of one power of each game."""
    asked = games.decisions()
    return asked.take(in_movement(games.state, asked.game) & (asked.power == seat[asked.game]))


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
    arguments = parser.parse_args()
    policy = arguments.policy or f"runs/reference/{arguments.map}__pure__2"
    try:
        games, seat = positions(arguments.map, arguments.games, 24)
        players = {
            kind: load_player(f"{kind}:{policy}", game_map=games.map) for kind in arguments.kinds
        }
    except UserError as error:
        parser.error(str(error))
    asked = decisions_of(games, seat)
    print(f"{arguments.map}: {asked.count} movement decisions in {arguments.games} games")
    for kind, player in players.items():
        player.act(games, asked.take(np.arange(2)))  # what is compiled once
        for name, batches in (("one batch", [asked]), ("one by one", split(asked, 10))):
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


def split(asked: Decisions, most: int) -> list[Decisions]:
    """Return the first decisions, each by itself."""
    return [asked.take(np.array([d])) for d in range(min(most, asked.count))]


if __name__ == "__main__":
    main()
