"""Measure how players, or people in recorded games, play: openings, supports, convoys, leaders.

    python benchmarks/style.py standard-own-1 standard-human dumbbot --games 210 --seed 1
    python benchmarks/style.py games.jsonl  # a file that `import-game` reads

A player has all seats of its games. Of recorded games those count in which every power ordered
more than holds in 1901.
"""

import argparse
import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from math import log2
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from diplomacy_engine import load_map, load_player
from diplomacy_engine.matches.match import match_settings
from diplomacy_engine.matches.tables import play_tables
from diplomacy_engine.textgame.imports.games import read_games

YEARS = (1903, 1905, 1908, 1911)


def games_of(source: str, map_name: str, num_games: int, seed: int) -> Iterable[dict]:
    """Yield saved games: those of a file, or new ones of a player with itself."""
    if os.path.isfile(source) and not source.endswith(".pt"):
        yield from read_games(source, map_name)
        return
    game_map = load_map(map_name)
    player = load_player(source, game_map=game_map, seed=seed)
    seats = np.zeros((num_games, len(game_map.powers)), np.int8)
    rules = match_settings(game_map, seed=seed)
    yield from play_tables(rules, [player], seats, samples=num_games).sampled.values()


def all_play(game: dict) -> bool:
    """Tell whether every power ordered more than holds in the first year."""
    first = [phase for phase in game["phases"] if phase["name"] in ("S1901M", "F1901M")]
    plays = {
        power
        for phase in first
        for power, orders in phase["orders"].items()
        if any(order.split()[2:] not in ([], ["H"]) for order in orders or ())
    }
    return len(plays) == len(game["phases"][0]["state"]["units"])


def count_phase(phase: dict, counts: Counter) -> None:
    """Count supports and convoys of one movement phase, and those without a fitting order."""
    units = {
        unit.lstrip("*").split("/")[0]: power
        for power, own in phase["state"]["units"].items()
        for unit in own
    }
    goals, orders_of = {}, []
    for power, orders in phase["orders"].items():
        for order in orders or ():
            words = [word.split("/")[0] for word in order.split()]
            orders_of.append((power, words))
            if words[2:3] == ["-"]:
                goals[" ".join(words[:2])] = words[3]
                counts["via"] += words[-1] == "VIA"
    for power, words in orders_of:
        counts["orders"] += 1
        kind = words[2] if len(words) > 4 else ""
        if kind not in ("S", "C"):
            continue
        other, goal = " ".join(words[3:5]), words[6] if len(words) > 6 else None
        owner = "own" if units.get(other) == power else "other"
        counts[owner, kind] += 1
        counts[owner, kind, "unfit"] += goals.get(other) != goal


def figures(games: Iterable[dict]) -> dict:
    """Return the figures of games that were played."""
    counts: Counter = Counter()
    openings: dict[str, Counter] = defaultdict(Counter)
    solos: Counter = Counter()
    leaders: Counter = Counter()
    played = 0
    for game in games:
        if not all_play(game):
            continue
        played += 1
        centers = {
            phase["name"]: {p: len(c) for p, c in phase["state"]["centers"].items()}
            for phase in game["phases"]
        }
        last = [*centers.values()][-1]
        winner = next((power for power, count in last.items() if count >= 18), None)
        solos[winner] += 1
        for power, orders in game["phases"][0]["orders"].items():
            openings[power][tuple(sorted(orders or ()))] += 1
        for phase in game["phases"]:
            if phase["name"].endswith("M"):
                count_phase(phase, counts)
        for year in YEARS:
            held = centers.get(f"S{year + 1}M", {})
            leading = [power for power in held if held[power] == max(held.values())]
            if len(leading) == 1:
                leaders[year] += 1
                leaders[year, "solo"] += leading[0] == winner
                leaders[year, "any"] += winner is not None
    counts_of = {power: [*c.values()] for power, c in sorted(openings.items())}
    return {
        "games": played,
        "entropy": {
            power: sum(n / played * log2(played / n) for n in c) for power, c in counts_of.items()
        },
        "most_frequent": {power: max(c) / played for power, c in counts_of.items()},
        "own_supports_unfit": counts["own", "S", "unfit"] / max(1, counts["own", "S"]),
        "others_supports_unfit": counts["other", "S", "unfit"] / max(1, counts["other", "S"]),
        "others_supports": counts["other", "S"] / max(1, counts["own", "S"] + counts["other", "S"]),
        "own_convoys_unfit": counts["own", "C", "unfit"] / max(1, counts["own", "C"]),
        "convoys": (counts["own", "C"] + counts["other", "C"]) / played,
        "via": counts["via"] / played,
        "solos": 1 - solos[None] / played,
        "solos_by_power": {
            power: n / max(1, played - solos[None]) for power, n in solos.items() if power
        },
        "leader": {year: leaders[year, "solo"] / max(1, leaders[year]) for year in YEARS},
        "somebody": {year: leaders[year, "any"] / max(1, leaders[year]) for year in YEARS},
    }


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("sources", nargs="+")
    flags.add_argument("--map", default="standard")
    flags.add_argument("--games", type=int, default=210)
    flags.add_argument("--seed", type=int, default=1)
    args = flags.parse_args()
    for source in args.sources:
        result = figures(games_of(source, args.map, args.games, args.seed))
        print(json.dumps({"source": source} | result))


if __name__ == "__main__":
    main()
