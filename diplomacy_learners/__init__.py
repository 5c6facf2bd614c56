"""Learners beside the one-file trainer; each runs as `python -m diplomacy_learners.NAME`."""

from diplomacy_engine._progress import fail
from diplomacy_engine.errors import UserError

try:
    import diplomacy_engine.learning  # noqa: F401
except UserError as error:  # it says which packages are missing
    raise SystemExit(fail(error)) from None
