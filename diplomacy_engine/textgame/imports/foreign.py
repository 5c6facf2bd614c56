"""Files of other programs that are known, but not read."""

import re

from ...errors import UserError
from ...records import shipped_toml

_FILES: dict[str, str] = shipped_toml(__package__, "foreign.toml")  # pattern -> what it is


def refuse_foreign(text: str) -> None:
    """Raise a UserError that names what a text is, if it is a known file of another program."""
    for pattern, what in _FILES.items():
        if re.search(pattern, text):
            raise UserError(f"this is {what}, which cannot be read here")
