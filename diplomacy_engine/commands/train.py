"""The command `diplomacy-train` of an installation: `ppo_selfplay_diplomacy.py` from any folder."""

import importlib
import sys

from ..errors import UserError
from ..players.loading import learning


def main() -> int:
    """Train as the script does; return its exit status, or 2 if packages for it are missing."""
    try:
        startup = learning("startup")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    script = importlib.import_module("ppo_selfplay_diplomacy")
    return startup.main(script.LEARNER_HERE, script.train)
