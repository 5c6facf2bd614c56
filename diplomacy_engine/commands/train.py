"""The command `diplomacy-train` of an installation: `ppo_selfplay_diplomacy.py` from any folder."""

import importlib

from .._progress import fail
from ..errors import UserError
from ..players.loading import learning_module


def main() -> int:
    try:
        startup = learning_module("startup")
    except UserError as error:
        return fail(error)
    script = importlib.import_module("ppo_selfplay_diplomacy")
    args = learning_module("settings").parse_args(script.Args)
    return startup.main(script.LEARNER_SPEC, script.train, args)
