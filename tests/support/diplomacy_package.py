"""The `diplomacy` package, where it is installed: its map files and its program."""

import hashlib
import importlib.util
import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path

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
    known = {"__version__": "20180913_0915"}
    for name in _WITHOUT_CONVOYS:
        text = (package_python()[1] / "maps" / f"{name}.map").read_bytes()
        known[hashlib.md5(text).hexdigest()] = {count: [] for count in range(1, 1000)}
    cache_file = home / ".cache" / "diplomacy" / "convoy_paths_cache.pkl"
    cache_file.parent.mkdir(parents=True)
    cache_file.write_bytes(pickle.dumps(known))
