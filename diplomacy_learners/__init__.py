"""Learners beside the one-file trainer; each runs as `python -m diplomacy_learners.NAME`."""

import sys

from diplomacy_engine.errors import UserError

try:
    import diplomacy_engine.learning  # noqa: F401
except UserError as error:  # it says which packages are missing
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2) from None
