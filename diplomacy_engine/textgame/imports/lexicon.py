"""The words of reports: what headings.toml lists, as tables and patterns, and names of powers."""

import re
import unicodedata
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from ...constants import Phase
from ...records import filled_pattern, shipped_toml
from ...rules.map import Map
from ...rules.names import POWERS

_TOML = shipped_toml(__package__, "headings.toml")
# A word that names a season -> the phase with which the season begins.
SEASONS = {word: Phase[name] for name, words in _TOML["seasons"].items() for word in words.split()}


class PhaseKind(IntEnum):
    """The kinds of phases, as they follow each other in a season."""

    MOVEMENT = 1
    RETREATS = 2
    ADJUSTMENTS = 3


# A word that names a kind -> the kind.
KINDS = {word: kind for kind in PhaseKind for word in _TOML["kinds"][kind.name.lower()].split()}
# A word that says what the lines below are -> build, remove, position or centers.
LABELS = {word: label for label, words in _TOML["labels"].items() for word in words.split()}
FILLERS = {*_TOML["beside"].split(), *LABELS} - {*KINDS}  # say nothing in a heading
IDLE = {*_TOML["idle"].split()}  # say nothing beside a power: `France: no moves received`
ABOUT = {*_TOML["about"].split()}  # tell of another phase than the heading's: `until Spring 1902`
DASHES = "+-\u2013\u2212 "  # before an order, as the sign of a list


class Patterns(NamedTuple):
    """What is searched for in a line; headings.toml has the patterns, with a comment each."""

    # in headings
    aside: re.Pattern[str]
    game: re.Pattern[str]
    parts: re.Pattern[str]
    due: re.Pattern[str]
    no_phase: re.Pattern[str]
    phase: re.Pattern[str]
    # in orders
    orders_begin: re.Pattern[str]
    words: re.Pattern[str]
    unit: re.Pattern[str]
    nothing: re.Pattern[str]
    idle_units: re.Pattern[str]
    centers: re.Pattern[str]
    nobody: re.Pattern[str]
    # in results
    cause: re.Pattern[str]
    retreats: re.Pattern[str]
    disbands: re.Pattern[str]
    routine: re.Pattern[str]
    # marks of mails, markdown and HTML
    tags: re.Pattern[str]
    struck: re.Pattern[str]
    marks: re.Pattern[str]
    dots: re.Pattern[str]


_STANDING_FOR = {"TIME": _TOML["time"], "MONTH": _TOML["month"]}
PATTERNS = Patterns(  # (?xi): spaces, comments and case do not count
    **{k: filled_pattern(f"(?xi){text}", _STANDING_FOR) for k, text in _TOML["patterns"].items()}
)


def words_of(text: str) -> list[str]:
    """Return the words and numbers of a text in small letters, without accents and a final 's."""
    plain = unicodedata.normalize("NFKD", text.lower())
    plain = re.sub("['\u2019]s\\b|[\u0300-\u036f]", "", plain)
    words = re.findall(r"unit.placement|[^\W\d_]+|\d+", plain)
    return [word.replace(" ", "-") for word in words]


@lru_cache(maxsize=16)
def power_names(game_map: Map) -> re.Pattern[str]:
    """Return a pattern that matches what a map's powers are called, with `Orders for the` before
    it."""
    names = [name for power in game_map.powers for name in (power, *POWERS.get(power, ()))]
    spaced = [r"[\W_]+".join(map(re.escape, re.split(r"[\W_]+", name))) for name in names]
    longest_first = "|".join(sorted(spaced, key=len, reverse=True))
    return re.compile(
        rf"(?:\b(?:orders|moves|of|for|the)\s+)*\b(?:{longest_first})\b", re.IGNORECASE
    )


@lru_cache(maxsize=16)
def power_begins_pattern(game_map: Map) -> re.Pattern[str]:
    """Return a pattern that matches before the name of a power that begins its orders within a
    line."""
    named = rf"(?={power_names(game_map).pattern}(?:\s*\([^()]*\))?\s*:)"
    return re.compile(rf"(?<=[:;.,|])\s*{named}|\s\s{named}", re.IGNORECASE)
