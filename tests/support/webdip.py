"""Histories of a webDiplomacy site.

The file in `webdip/` holds JSON lines. They were recorded at commit e1aaedbc from a site that its
tests/support/webdip.py wrote after the real one's public source (kestasjk/webDiplomacy, 2025 and
2026); there they can be recorded anew. All names in them are made up.
"""

import json
import lzma
from functools import cache
from pathlib import Path


@cache
def _lines(name: str) -> dict:
    with lzma.open(Path(__file__).parent / "webdip" / f"{name}.jsonl.xz", "rt") as lines:
        return dict(map(json.loads, lines))


def variant() -> dict:
    """Return `variant.json`, as far as our client reads it."""
    return _lines("games")["variant"]


def history(name: str) -> tuple[dict, dict]:
    """Return a game as we save it, and the site's `history.json` of it."""
    saved, content = _lines("games")[name]
    return json.loads(json.dumps(saved)), json.loads(json.dumps(content))
