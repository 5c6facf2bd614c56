"""A base population of a few members."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from diplomacy_engine.players.population import FOLDERS


def write_population(folder: Path, numbers: Sequence[int] = range(6)) -> dict:
    """Write members of that of `small`; return what population.json has."""
    source = FOLDERS / "small"
    saved = json.loads((source / "population.json").read_text())
    saved["members"] = [saved["members"][n] for n in numbers]
    for name in ("met", "above"):
        saved[name] = [[saved[name][m][n] for n in numbers] for m in numbers]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for member in saved["members"]:
        if member.get("file"):
            shutil.copyfile(source / member["file"], folder / member["file"])
    (folder / "population.json").write_text(json.dumps(saved))
    return saved
