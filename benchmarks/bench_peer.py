"""How fast the `diplomacy` package plays, and how many times as fast our engine is.

    pip install diplomacy==1.1.2     # into an environment that has this project
    python benchmarks/bench_peer.py --seconds 20

Both play whole games of random legal orders on the standard map in one thread, as `bench` does. The
package plays one game at a time in a process of its own: it has another licence (AGPL) and never
becomes part of this program.
"""

import argparse
import json
import subprocess
import sys

from diplomacy_engine import VectorGame, make_bot
from diplomacy_engine.commands.bench import (
    NUM_GAMES,
    last_year,
    place_positions,
    play,
    sample_positions,
)
from diplomacy_engine.rules.map import load_map

# Plays whole games of the `diplomacy` package and prints what it counted.
PEER = """
import json, random, sys, time
from importlib.metadata import version
from diplomacy import Game

rng, last, seconds = random.Random(1), int(sys.argv[1]), float(sys.argv[2])

def play():
    game, phases = Game(), 0
    while not game.is_game_done:
        name = game.get_current_phase()
        if int(name[1:-1]) > last or name == f"W{last}A":
            break
        orders = game.get_all_possible_orders()
        for power in game.powers:
            places = game.get_orderable_locations(power)
            game.set_orders(power, [rng.choice(orders[at]) for at in places if orders[at]])
        game.process()
        phases += 1
    return phases

play()
start, phases = time.perf_counter(), 0
while phases == 0 or time.perf_counter() - start < seconds:
    phases += play()
taken = time.perf_counter() - start
print(json.dumps({"version": version("diplomacy"), "phases_per_second": phases / taken}))
"""


def ours(until_year: int, seconds: float) -> float:
    """Return the phases/s of our engine."""
    game_map = load_map("standard")
    max_years = until_year - game_map.board.first_year + 1
    games = VectorGame(game_map, NUM_GAMES, 1, max_years, threads=1)
    place_positions(games, sample_positions(game_map, max_years, 1), range(5), 1)
    play(games, make_bot("random"), 0.0)
    played = play(games, make_bot("random"), seconds)
    return played.phases / played.seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of play of each")
    parser.add_argument("--until-year", type=int, default=1910, help="last year of a game")
    arguments = parser.parse_args()
    last = last_year(load_map("standard"), arguments.until_year)
    command = [sys.executable, "-c", PEER, str(last), str(arguments.seconds)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    peer, own = found["phases_per_second"], ours(last, arguments.seconds)
    print(f"diplomacy {found['version']:10} {peer:12,.0f} phases/s")
    print(f"this engine          {own:12,.0f} phases/s, {own / peer:,.0f} times as many")


if __name__ == "__main__":
    main()
