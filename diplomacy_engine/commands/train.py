"""The command `diplomacy-train` of an installation: `ppo_selfplay_diplomacy.py` from any folder."""

import importlib
import sys

from ..errors import UserError
from ..players.loading import learning


def main() -> int:
    try:
        startup = learning("startup")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    script = importlib.import_module("ppo_selfplay_diplomacy")
    settings = importlib.import_module("diplomacy_engine.learning.settings")
    args = settings.parse_args(script.Args, sys.argv[1:])
    return startup.main(script.LEARNER_HERE, script.train, args)
