"""Files of other programs that are known, but not read."""

import re

from ...errors import UserError

_FILES = {
    r"\A\s*<(?:svg|[^<]{,300}<svg|[^<]{,300}<[^<]{,300}<svg)\b": "a drawing (SVG)",
    r"\A\s*<(?:\?xml|(?:ADJACENCY|VARIANTS?|BORDER_DEFINITIONS|SYMBOLS)\b)": (
        "XML, as jDip's variants and saved games are (jDip shows its results as text)"
    ),
    r"(?m)^\w{3}-(?:mv|xc|[nesw]c):": "a map file of njudge",
    r"\bProv\(\"": "a map of diplicity as Go code (import-map reads its DVAR files)",
}


def refuse_foreign(text: str) -> None:
    """Raise a UserError that names what a text is, if it is a known file of another program."""
    for pattern, what in _FILES.items():
        if re.search(pattern, text):
            raise UserError(f"this is {what}, which cannot be read here")
