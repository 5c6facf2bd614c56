"""Count the openings of people's games, and learn what policies' values mean in them.

    python benchmarks/people.py human_games.jsonl.xz

Writes diplomacy_engine/play/standard_people.json, which reviews use. The file has a game a line, as
shared/human_games.md describes: every second one of the games that the site droidippy recorded
until January 2015, as the repository zond/godip-history (commit 5520b47) keeps them. Orders count
from the games in which their power sent some in that phase. The values are compared with how games
ended in some of those that `diplomacy_learners.imitate` does not hold out.
"""

import argparse
import json
import lzma
import os
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from diplomacy_engine import Game, VectorGame, load_map, load_player
from diplomacy_engine.constants import COMPLETED
from diplomacy_engine.play.people import joint
from diplomacy_engine.players.search.judge import Worth, regression
from diplomacy_engine.rules.map import Map
from diplomacy_engine.textgame.imports.games import read_games

TARGET = Path(__file__).parents[1] / "diplomacy_engine/play/standard_people.json"
SOURCE = "every second game of zond/godip-history, commit 5520b47 (droidippy, until January 2015)"
JUDGES = "standard-human", "standard-anchored-1", "standard-own-1"
SHARE, FALL_GAMES, FALL_SHARE = 0.005, 5, 0.01  # least of a set that is kept
EVERY, PHASES = 9, 6  # one game in so many, and so many phases of each, for the values
HELD_OUT = 10  # one game in so many


def lines_of(file: str) -> list[str]:
    with lzma.open(file, "rt") as lines:
        return lines.readlines()


def is_held_out(line: str) -> bool:
    """Tell whether `diplomacy_learners.imitate` does not learn from the game of a line."""
    return zlib.crc32(str(json.loads(line)["id"]).encode()) % HELD_OUT == 0


def games_of(lines: list[str], game_map: Map) -> Iterator[dict]:
    """Yield the games of lines as saved games."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(lines)
        file.flush()
        yield from read_games(file.name, game_map)


def openings(lines: list[str]) -> dict:
    """Return power -> games, and by its orders in spring the games, the centers gained by the end
    of the year, and the same by its orders in fall."""
    games: dict = defaultdict(int)
    sets: dict = defaultdict(lambda: defaultdict(lambda: ([], defaultdict(list), [0])))
    for line in lines:
        phases = json.loads(line)["phases"]
        names = [phase["name"] for phase in phases]
        if names[0] != "S1901M" or "S1902M" not in names:
            continue
        end = phases[names.index("S1902M")]
        fall = phases[names.index("F1901M")] if "F1901M" in names else None
        for power, orders in phases[0]["orders"].items():
            if not orders:
                continue
            games[power] += 1
            start = len(phases[0]["centers"][power])
            gained = len(end["centers"].get(power, ())) - start
            at, after, followed = sets[power][_joint(phases[0], power)]
            at.append(gained)
            if fall and fall["orders"].get(power):
                followed[0] += 1
                after[_joint(fall, power)].append(gained)
    result = {}
    for power in sorted(games):
        kept = {}
        for orders, (at, after, followed) in sets[power].items():
            if len(at) < SHARE * games[power]:
                continue
            least = max(FALL_GAMES, FALL_SHARE * followed[0])
            falls = {
                text: [len(each), round(float(np.mean(each)), 2)]
                for text, each in sorted(after.items())
                if len(each) >= least
            }
            kept[orders] = [len(at), round(float(np.mean(at)), 2), falls]
        result[power] = [games[power], dict(sorted(kept.items()))]
    return result


def _joint(phase: dict, power: str) -> str:
    return joint(phase | {"state": phase}, power)


def values(lines: list[str]) -> dict:
    """Return the weights of Worth of each judge, from positions of people's games."""
    board, rng = load_map("standard"), np.random.default_rng(1)
    learned = [line for line in lines if not is_held_out(line)]
    saved = [game["phases"] for game in games_of(learned[::EVERY], board)]
    games = VectorGame(board, len(saved) * PHASES, threads=1, auto_reset=False)
    score = []
    for number, phases in enumerate(saved):
        over = Game.from_state(board, dict(phases[-1]["state"]) | {"name": COMPLETED}).figures()
        shares = [over[power]["sum_of_squares"] for power in board.powers]
        moving = [phase for phase in phases[:-1] if phase["name"][-1] == "M"]
        for n, at in enumerate(rng.choice(len(moving), PHASES, replace=len(moving) < PHASES)):
            built = Game.from_state(board, moving[at]["state"])
            row = np.array([number * PHASES + n])
            games.copy_from(built.vector_game, np.zeros(1, int), row)
            score.append(shares)
    decisions = games.decisions()
    score = np.array(score)[decisions.game, decisions.power]
    result = {}
    for name in JUDGES:
        worth = Worth(load_player(name, game_map=board), np.zeros((3, 4)))
        looks = [worth.look(games, decisions.game, decisions.power)]
        weights = worth.weights = regression(worth.inputs(looks), score)
        error = np.sqrt(np.mean((worth.values(looks) - score) ** 2))
        print(f"{name}: {len(score):,} positions, root mean square error {error:.3f}")
        result[name] = weights.round(4).tolist()
    return result


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("games")
    lines = lines_of(flags.parse_args().games)
    record = {"source": SOURCE, "openings": openings(lines), "worth": values(lines)}
    TARGET.write_text(json.dumps(record, indent=None, separators=(",", ":")) + "\n")
    print(f"{TARGET}: {TARGET.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
