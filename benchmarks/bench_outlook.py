"""Compare the chances of a solo that hints name with what came of games at mixed tables.

    python benchmarks/bench_outlook.py --map standard --games 160 --seed 5

A hint is asked for once in each game, in a movement phase drawn at random.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from diplomacy_engine import Game, VectorGame, load_player
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.play.review import outlook
from diplomacy_engine.players.asking import ask_players
from diplomacy_engine.players.policy.files import policies_of

EDGES = (0, 0.001, 0.05, 0.15, 0.3, 0.5, 0.8)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("--map", default="small")
    flags.add_argument("--games", type=int, default=100)
    flags.add_argument("--seed", type=int, default=1)
    args = flags.parse_args()
    names, rng = policies_of(args.map), np.random.default_rng(args.seed)
    games = VectorGame(args.map, args.games, args.seed, threads=1, auto_reset=False)
    players = [load_player(one, game_map=games.map, careful=True) for one in names]
    seats = np.array([np.resize(rng.permutation(len(names)), 7) for _ in range(args.games)])
    asked, phases = games.spare(args.games), np.zeros(args.games, int)
    while (games.state.end == RUNNING).any():
        moving = np.isin(games.state.phase, (0, 2)) & (games.state.end == RUNNING)
        phases += moving
        chosen = np.flatnonzero(moving & (rng.random(args.games) * phases < 1))
        asked.copy_from(games, chosen, chosen)
        decisions = games.decisions()
        seated = seats[decisions.game, decisions.power]
        games.step(ask_players(games, decisions, players, seated))
    rows, ended, alive = [], games.outcomes(), asked.outcomes().alive
    began = time.perf_counter()
    for row in range(args.games):
        game, seated = Game.from_row(asked, row), [players[one] for one in seats[row]]
        found = outlook(game, dict(zip(game.powers, seated)))
        for p, one in enumerate(found.values()):
            if alive[row, p]:
                solo, centers = ended.winner[row] == p, ended.centers[row, p]
                rows.append((one.won / one.games, one.centers, solo, centers))
    chance, expected, solo, centers = np.array(rows, float).T
    for number, low in enumerate(EDGES):
        mine = np.digitize(chance, EDGES) == number + 1
        if mine.any():
            said, was = chance[mine].mean(), solo[mine].mean()
            print(f"from {low:.1%}: {mine.sum()} hints said {said:.1%}, solos were {was:.1%}")
    print(f"centers: root mean square error {np.sqrt(np.mean((expected - centers) ** 2)):.2f}")
    print(f"{(time.perf_counter() - began) / args.games:.2f} s a hint")


if __name__ == "__main__":
    main()
