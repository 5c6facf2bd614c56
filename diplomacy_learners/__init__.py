"""Learners beside the one-file trainer; each runs as `python -m diplomacy_learners.NAME`."""

import os

from diplomacy_engine._progress import fail
from diplomacy_engine.errors import UserError

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels
try:
    import diplomacy_engine.learning  # noqa: F401
except UserError as error:  # it says which packages are missing
    raise SystemExit(fail(error)) from None
