"""What places and powers are called on other sites, by judges and in zines. A map's own names come
before these; an entry counts on every map that has what it stands for."""

import re

from .map import Map

PLACES = {  # other name -> name on maps
    "Skagerrack": "Skagerrak",
    "Heligoland Bight": "Helgoland Bight",
    "Gulf of Lyons": "Gulf of Lyon",
    "Channel": "English Channel",
    "Mid-Atl": "Mid-Atlantic Ocean",
    "NTS": "North Sea",
    "BLK": "Black Sea",
    "EME": "Eastern Mediterranean",
    "WME": "Western Mediterranean",
    "Romania": "Rumania",
    "Pontus Euxinus": "Black Sea",  # webDiplomacy's Ancient Mediterranean, as the next
    "Mare Erithraerum": "Red Sea",
}
POWERS = {
    "AUSTRIA": ("AUSTRIA HUNGARY", "AUSTRIAN", "AUSTRIANS", "AUSTRO HUNGARY"),
    "ENGLAND": ("GREAT BRITAIN", "BRITAIN", "BRITISH", "ENGLISH", "UNITED KINGDOM"),
    "FRANCE": ("FRENCH",),
    "GERMANY": ("GERMAN", "GERMANS", "GERMAN EMPIRE"),
    "ITALY": ("ITALIAN", "ITALIANS"),
    "RUSSIA": ("RUSSIAN", "RUSSIANS", "RUSSIAN EMPIRE"),
    "TURKEY": ("TURKISH", "TURKS", "OTTOMAN EMPIRE", "OTTOMANS"),
}
_AROUND = re.compile(r"\s*\(.*?\)|\b(?:ORDERS|MOVES|FOR|THE)\b|[\W_]+")


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
