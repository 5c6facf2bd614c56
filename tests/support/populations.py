"""A base population of a few members."""

import json
import shutil
from pathlib import Path

from diplomacy_engine.players.population import FOLDERS


def write_population(folder: Path, count: int = 6) -> dict:
    """Write the first members of that of `small`; return what population.json has."""
    source = FOLDERS / "small"
    saved = json.loads((source / "population.json").read_text())
    saved["members"] = saved["members"][:count]
    for name in ("met", "above"):
        saved[name] = [row[:count] for row in saved[name][:count]]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for member in saved["members"]:
        if member.get("file"):
            shutil.copyfile(source / member["file"], folder / member["file"])
    (folder / "population.json").write_text(json.dumps(saved))
    return saved
