"""The `diplomacy` package, where it is installed: its map files and its program."""

import hashlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from diplomacy_engine.rules.convoy_routes import convoy_routes
from diplomacy_engine.rules.map import Map

# Convoys over many seas take the package many minutes; without any, the rest is the same game.
_WITHOUT_CONVOYS = ("colonial", "empire", "known_world_901", "world")


@cache
def package_python() -> tuple[str, Path] | None:
    """Return a Python that has the package, and its folder there; None without one.

    The environment's DIPLOMACY_PYTHON may name one: the package need not be where the tests run.
    """
    program = os.environ.get("DIPLOMACY_PYTHON", "")
    if not program:
        spec = importlib.util.find_spec("diplomacy")
        return (sys.executable, Path(spec.origin).parent) if spec and spec.origin else None
    code = "import importlib.util as u; print(u.find_spec('diplomacy').origin)"
    found = subprocess.run([program, "-c", code], capture_output=True, text=True, check=True)
    return program, Path(found.stdout.strip()).parent


def package_maps() -> list[Path]:
    """Return the package's map files; none without it."""
    found = package_python()
    return sorted((found[1] / "maps").glob("*.map")) if found else []


def spare_convoys(home: Path) -> None:
    """Write in a folder that is its user's home that the largest maps have no convoys."""
    _write_convoys(
        home, {name: {count: [] for count in range(1, 1000)} for name in _WITHOUT_CONVOYS}
    )


def write_short_convoys(home: Path, maps: Mapping[str, Map], most_fleets: int) -> None:
    """Write in a folder that is its user's home the convoys of maps over so many fleets at the
    most, which are soon counted; the package takes them as all."""
    known = {}
    for name, game_map in maps.items():
        routes, codes = convoy_routes(game_map), game_map.provinces
        ends: dict[tuple[int, int], set[str]] = {}
        short = np.bitwise_count(routes.fleets) <= most_fleets
        rows = zip(*(column[short].tolist() for column in routes[:3]))
        for origin, goal, fleets in rows:
            ends.setdefault((origin, fleets), set()).add(codes[goal])
        known[name] = {count: [] for count in range(1, 1000)}
        for (origin, fleets), goals in ends.items():
            seas = {codes[sea] for i, sea in enumerate(routes.seas) if fleets >> i & 1}
            known[name][len(seas)].append((codes[origin], seas, goals))
    _write_convoys(home, known)


def _write_convoys(home: Path, convoys: Mapping[str, dict]) -> None:
    known = {"__version__": "20180913_0915"}
    for name, paths in convoys.items():
        text = (package_python()[1] / "maps" / f"{name}.map").read_bytes()
        known[hashlib.md5(text).hexdigest()] = paths
    cache_file = home / ".cache" / "diplomacy" / "convoy_paths_cache.pkl"
    cache_file.parent.mkdir(parents=True)
    cache_file.write_bytes(pickle.dumps(known))


class PackageAdjudicator:
    """The package in a process of its own; see package_adjudicator.py."""

    def __init__(self, home: Path):
        program, _ = package_python()
        self.process = subprocess.Popen(
            [program, str(Path(__file__).with_name("package_adjudicator.py"))],
            env={**os.environ, "HOME": str(home), "PYTHONPATH": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, name: str, state: dict, orders: dict[str, list[str]]) -> dict:
        """Return what the package makes of the orders in a position of its map of that name."""
        self.process.stdin.write(json.dumps({"map": name, "state": state, "orders": orders}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()
