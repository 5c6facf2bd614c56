"""Games among many different policies: asked one after the other, and together in batches.

    python tests/benchmarks/bench_population.py
    python tests/benchmarks/bench_population.py --map standard --policies 48 --games 140

The policies are the references of the map with small random changes, so that none is another. Games
per second of processor time, and per second of the clock.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from diplomacy_engine import load_map, load_player
from diplomacy_engine.learning import frozen
from diplomacy_engine.learning.players import policy_player
from diplomacy_engine.learning.populations import PolicyGroup
from diplomacy_engine.matches.population import candidate_seats
from diplomacy_engine.matches.settings import MatchSettings
from diplomacy_engine.matches.tables import play_tables


def policies(map_name: str, count: int) -> list:
    """Return the references, and so many players with weights near theirs."""
    kinds = [load_player(f"{map_name}-pure-{n}") for n in (1, 2, 3)]
    players = []
    for number in range(count):
        agent = frozen.frozen_copy(kinds[number % 3].agent.agent)
        generator = torch.Generator().manual_seed(number)
        for weight in agent.parameters():
            noise = torch.randn(weight.shape, generator=generator)
            weight.add_(0.02 * weight.std(unbiased=False) * noise)
        players.append(policy_player(agent, f"p{number}", number))
    return [kinds[0], *players]


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="small")
    parser.add_argument("--policies", type=int, default=102)
    parser.add_argument("--games", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    game_map = load_map(arguments.map)
    powers, rng = len(game_map.powers), np.random.default_rng(1)
    seats = candidate_seats(arguments.policies, powers, arguments.games, rng)
    settings = MatchSettings(game_map, threads=1)
    for threads in (0, 1, arguments.threads):
        players = policies(arguments.map, arguments.policies)
        if threads:
            PolicyGroup(players[1:], threads)
        play_tables(replace(settings, max_years=2), players, seats[:powers])  # compiles
        clock, processor = time.perf_counter(), time.process_time()
        play_tables(settings, players, seats)
        clock, processor = time.perf_counter() - clock, time.process_time() - processor
        how = f"together in {threads} threads" if threads else "one after the other"
        print(
            f"{game_map.name}, {arguments.policies} policies, {how}: "
            f"{len(seats) / processor:,.1f} games/s of processor time, {len(seats) / clock:,.1f}/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
