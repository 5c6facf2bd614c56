"""What people play: openings, from the games that `MAP_people.json` names."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..rules.map import Map
from ..rules.notation import unit_of

FIRST = "S1901M"
POPULAR = 0.04  # share of games; orders that so many people give are an opening like others


class Opening(NamedTuple):
    """A power's orders in the first year."""

    games: int = 0  # with the same position of the power's units, played by people; 0: unknown
    played: int = 0  # of them with these orders, 0 if too few
    gained: float = 0.0  # centers more a year after the start, in the mean of these
    first: bool = True  # whether these are the first orders

    @property
    def popular(self) -> bool:
        return self.first and self.played >= POPULAR * self.games > 0

    def words(self) -> str:
        if not self.games:
            return ""
        share = f"{self.played / self.games:.0%}" if self.played else "few"
        after = "games" if self.first else "games with your spring orders"
        gained = f"; {self.gained:.1f} centers more a year after the start" if self.played else ""
        return f"People: played in {share} of {self.games:,} {after}{gained}."


class People(NamedTuple):
    """Figures of people's games on a map.

    openings: power -> games, and by the orders of the first phase the games, the centers gained,
        and the same by the orders of the second phase.
    worth: policy -> weights of Worth in players/search/judge.py.
    """

    openings: Mapping = {}
    worth: Mapping = {}

    def opening(self, history: Sequence[Mapping], number: int, power: str) -> Opening:
        """Return how often people give a power's orders of phase `number`."""
        games, sets = self.openings.get(power, (0, {}))
        start = history[0]["state"]["units"].get(power) or ()
        starting = {unit_of(text) for text in next(iter(sets), "").split("; ")}
        if number > 1 or history[0]["name"] != FIRST or starting != set(start):
            return Opening()
        for phase in history[:number]:
            games, _, sets = sets.get(joint(phase, power), (0, 0, {}))
        played, gained, *_ = sets.get(joint(history[number], power), (0, 0.0))
        return Opening(games, played, gained, number == 0)


def joint(phase: Mapping, power: str) -> str:
    """Return a power's orders in a phase as one text; a unit without one holds."""
    by_unit = {unit_of(text): text for text in phase["orders"].get(power) or ()}
    units = phase["state"]["units"].get(power) or ()
    return "; ".join(sorted(by_unit.get(unit, f"{unit} H") for unit in units))


def people_of(game_map: Map) -> People:
    """Return figures of people's games on a map; none on one's own maps."""
    return _read(game_map.name) if game_map.is_included else People()


@lru_cache
def _read(name: str) -> People:
    file = Path(__file__).with_name(f"{name}_people.json")
    if not file.is_file():
        return People()
    record = json.loads(file.read_text(encoding="utf-8"))
    return People(record["openings"], record["worth"])
