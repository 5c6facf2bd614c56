"""What places and powers are called on other sites, by judges and in zines. A map's own names come
before these; an entry counts on every map that has what it stands for."""

import re
from functools import lru_cache

from ..records import shipped_toml
from .map import Map

WORDS = shipped_toml(__package__, "words.toml")
PLACES: dict[str, str] = WORDS["places"]  # other name -> name on maps
POWERS: dict[str, list[str]] = WORDS["powers"]
_AROUND = re.compile(r"\s*\(.*?\)|\b(?:ORDERS|MOVES|FOR|THE)\b|[\W_]+")


@lru_cache(maxsize=1 << 10)
def power_called(game_map: Map, text: str) -> str | None:
    """Return the power that a text names in a usual way; None: no power, or several."""
    name, *powers = (
        " ".join(_AROUND.sub(" ", word.upper()).split()) for word in (text, *game_map.powers)
    )
    spellings = list(zip(game_map.powers, powers))
    called = [power for power, plain in spellings if name in (plain, *POWERS.get(power, ()))]
    if not called and len(name) >= 3:
        called = [power for power, plain in spellings if plain.startswith(name)]
    return called[0] if len(called) == 1 else None
