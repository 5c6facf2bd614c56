"""What can be done with a run that has ended, as commands to paste."""

import os
import sys
from pathlib import Path
from shlex import quote

from .run_folder import RunFolder


def program() -> str:
    """Return how this program was called, for a command line: `python FILE.py`, for example."""
    main = sys.modules["__main__"].__spec__
    called = f"-m {main.name}" if main else quote(sys.argv[0])
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return f"torchrun --nproc_per_node={os.environ.get('LOCAL_WORLD_SIZE', 1)} {called}"
    if not main and not sys.argv[0].endswith(".py"):  # a command that an installation has
        return quote(Path(sys.argv[0]).name)
    return f"python {called}"


def next_steps(
    folder: RunFolder, *, resume: bool, player: str | Path | None = None, flags: str = ""
) -> str:
    """Return the commands, each below what it is for; an empty text if no policy has been saved.

    The policy is written `player`, else as its folder; `flags` are those that matches of it need.
    """
    if not folder.checkpoint.is_file():
        return ""
    tools, player = "python -m diplomacy_engine", quote(str(player or folder.path))
    steps = {
        "measure how strong it is": f"{tools} evaluate --player {player} {flags}",
        "play against it": f"{tools} play --against {player} {flags}",
    }
    pages = sorted(folder.path.glob("games/*.html"))
    if pages:
        page = pages[-1].resolve().as_uri()
        steps["look at its last sample games"] = f"python -m webbrowser -t {quote(page)}"
    if resume:
        steps["continue it"] = f"{program()} --resume {quote(str(folder.path))}"
    return "\n".join(f"{what}:\n  {command.strip()}" for what, command in steps.items())
