"""Time of the network for each decision: to act, and to learn from it once.

    python tests/benchmarks/bench_network.py
    python tests/benchmarks/bench_network.py --map standard --hidden 128 --num-layers 2

Processor time of one thread, the least of several rounds, on positions of DumbBot's games; all
powers of a game are asked together, as with `--learner-seats` for all of them, and one alone.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from diplomacy_engine.players.asking import orders_of

sys.path.insert(0, str(Path(__file__).parents[2]))

from diplomacy_engine import VectorGame, load_map
from diplomacy_engine.players.bots import make_bot
from ppo_selfplay_diplomacy import Agent

PHASES = 23  # of DumbBot's play before the positions that are measured
GAMES = {"small": 512, "three": 256, "standard": 64}


def microseconds(function: Callable[[], object], decisions: int, rounds: int) -> float:
    """Return the least processor time of a call, for each decision."""
    function()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best / decisions * 1e6


def measure(name: str, hidden: int, num_layers: int, rounds: int) -> None:
    """Print the figures of one map."""
    game_map = load_map(name)
    games = VectorGame(game_map, GAMES.get(name, 64), seed=1, threads=1)
    bot = make_bot("dumbbot")
    for _ in range(PHASES):
        games.step(orders_of(games, bot))
    agent = Agent(game_map, hidden, num_layers)
    everyone = games.decisions()
    alone = everyone.take(np.unique(everyone.game, return_index=True)[1])
    weights = sum(parameter.numel() for parameter in agent.parameters())
    print(
        f"{name}: {weights:,} weights, {len(everyone.order) / len(everyone.game):.0f} orders each"
    )
    for who, decisions in (("all powers", everyone), ("one power", alone)):
        obs = games.view_boards(decisions.game, decisions.power)

        @torch.no_grad()
        def act(obs=obs, decisions=decisions) -> np.ndarray:
            return agent.get_action_and_value(obs, decisions)[0]

        chosen = act()

        def learn(obs=obs, decisions=decisions, chosen=chosen) -> None:
            _, *scored = agent.get_action_and_value(obs, decisions, chosen)
            sum(part.mean() for part in scored).backward()

        def encode(obs=obs) -> None:
            with torch.no_grad():
                agent.encode(agent.inputs(obs))

        count = len(decisions.game)
        figures = {
            "encode": microseconds(encode, count, rounds),
            "act": microseconds(act, count, rounds),
            "learn": microseconds(learn, count, rounds),
        }
        print(f"  {who:11}", *(f"{part} {figure:6.1f} us" for part, figure in figures.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--map", action="append", help="a map (default: all three)")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.map or GAMES:
        measure(name, arguments.hidden, arguments.num_layers, arguments.rounds)


if __name__ == "__main__":
    main()
