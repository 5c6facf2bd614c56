"""Teams: powers that play together, as a tree with the powers as its leaves: the social tree of
Song et al. 2019 (Arena, section 2.3.2), whose root is the game. `(ENGLAND+FRANCE)+GERMANY` is a
team with a team in it. Where all powers are in one team, nobody is against it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._suggest import did_you_mean, quoted
from ..errors import UserError

MOST_LEVELS = 6  # of teams within teams


class Teams(NamedTuple):
    """The teams of a map. `parts` are partitions of the powers, (P,) integers from 0 on each,
    numbered by their first powers: all together, by teams, by teams within these, and each power
    alone, as a power that is less deep in the tree than others is in the finer ones, too."""

    text: str  # as `read_teams` reads it; empty where every power plays alone
    names: tuple[str, ...]  # of the teams, ENGLAND+ITALY for example
    parts: tuple[np.ndarray, ...]
    victory_centers: int = 0  # with which a team wins; 0: none do, a power needs its own

    @property
    def of_power(self) -> np.ndarray:
        """The team of each power, (P,) int64."""
        return self.parts[1]

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels: `team`, perhaps `team2` and so on, `power`; alone only `power`."""
        between = (f"team{depth}" for depth in range(2, len(self.parts) - 1))
        return (*(("team", *between) if self.text else ()), "power")


def no_teams(powers: Sequence[str]) -> Teams:
    together = np.zeros(len(powers), np.int64)
    return Teams("", tuple(powers), (together, np.arange(len(powers))))


def read_teams(text: str, powers: Sequence[str]) -> Teams:
    """Read a text such as `ENGLAND+ITALY`, in any letter case; UserError if it names a power that
    is none, or one twice. Powers not named play alone."""
    if not isinstance(text, str):
        raise UserError(f"teams must be a text such as {'+'.join(powers[:2])}, not {quoted(text)}")
    words = re.findall(r"[+,()]|[^+,()\s]+", text.upper())
    shown, paths = quoted(text, 60), {}
    teams: dict[str, str] = {}

    def fail(reason: str) -> UserError:
        return UserError(f"teams {shown}: {reason}")

    def member(path: tuple[str, ...]) -> str:
        """Read a power or a team in brackets; return it as it is written."""
        if len(path) > MOST_LEVELS:
            raise fail(f"teams are nested more than {MOST_LEVELS} deep")
        if words and words[0] == "(":
            words.pop(0)
            inside = group((*path, str(len(words))))
            if not words or words.pop(0) != ")":
                raise fail("a bracket is not closed")
            return f"({inside})"
        if not words or words[0] in "+,()":
            first_word = quoted(words[0]) if words else "nothing"
            raise fail(f"expected a power or a bracket, not {first_word}")
        name = words.pop(0)
        if name not in powers:
            hint = did_you_mean(name[:40], powers)
            raise fail(f"{quoted(name, 40)} is not a power of {', '.join(powers)}{hint}")
        if name in paths:
            raise fail(f"{name} is named twice, but each power has one place")
        paths[name] = path
        return name

    def group(path: tuple[str, ...]) -> str:
        members = [member(path)]
        while words and words[0] == "+":
            words.pop(0)
            members.append(member(path))
        return "+".join(members)

    while True:
        path = (f"team {len(teams)}",)
        teams[path[0]] = group(path)
        if not words:
            break
        if words[0] != ",":
            raise fail(f"{quoted(words[0])} is out of place: + joins a team, a comma ends it")
        words.pop(0)
    # The way from the root to each power, as long for all of them: a power goes on by itself.
    deep = max(map(len, paths.values()))
    ways = [(*paths.get(name, ()), *[name] * (deep + 1))[: deep + 1] for name in powers]
    parts = [_numbered([way[:depth] for way in ways]) for depth in range(deep + 2)]
    if parts[1].max() + 1 == len(powers):
        return no_teams(powers)
    finer = [part for i, part in enumerate(parts) if i < 2 or (part != parts[i - 1]).any()]
    names = tuple(dict.fromkeys(teams.get(way[0], way[0]) for way in ways))
    return Teams(",".join(name for name in names if "+" in name), names, tuple(finer))


def _numbered(groups: Sequence[tuple]) -> np.ndarray:
    """A number for each group, by its first place, (P,) int64."""
    numbers: dict[tuple, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups], np.int64)
