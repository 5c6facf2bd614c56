"""Slow plain-Python rules of what may be ordered: the tests' second opinion, no engine code.

A position is a dictionary in the shape of a saved game's state:

    {"name": "S1901M",                                # M, R or A at the end names the phase kind
     "units": {"FRANCE": ["A PAR", "F BRE"]},         # "*A MUN" (dislodged) is passed over
     "retreats": {"GERMANY": {"A MUN": ["BER"]}},     # retreat phases
     "centers": {"FRANCE": ["BRE", "MAR", "PAR"]}}    # winter

Units are their texts ("F STP/SC"), locations are "PAR" or "STP/SC", provinces are "STP".
DATC numbers are those of the Diplomacy Adjudicator Test Cases; "listed" means in legal_orders.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

Units = dict[str, list[str]]  # power -> unit texts


def province(location: str) -> str:
    return location.partition("/")[0]


def place(unit: str) -> str:
    """The location in a unit's text: "F STP/SC" stands on "STP/SC"."""
    return unit[2:]


def home(unit: str) -> str:
    """The province a unit stands in."""
    return province(unit[2:])


class ReferenceMap:
    """What a map file says, provinces and borders as dictionaries of sets of codes."""

    def __init__(self, facts: dict):
        provinces = facts["provinces"]
        self.powers: list[str] = list(facts["powers"])
        self.name = {code: entry["name"] for code, entry in provinces.items()}
        self.terrain = {code: entry["terrain"] for code, entry in provinces.items()}
        self.home_of = {code: e["home_of"] for code, e in provinces.items() if e.get("home_of")}
        self.centers = [code for code, entry in provinces.items() if entry.get("supply_center")]
        self.build_any = facts.get("builds") == "any"
        self.neutral = facts.get("neutral")  # whose units nobody plays
        self.convoying = {  # provinces where a fleet convoys
            code for code, e in provinces.items() if e["terrain"] == "sea" or e.get("convoys")
        }
        self.coasts = {  # the locations of a split province; none for the others
            code: [f"{code}/{coast}" for coast in entry.get("coasts", [])]
            for code, entry in provinces.items()
        }
        places = [place for coasts in self.coasts.values() for place in coasts]
        self.locations = [*provinces, *places]
        self.army_moves: dict[str, set[str]] = {location: set() for location in self.locations}
        self.fleet_moves: dict[str, set[str]] = {location: set() for location in self.locations}
        self.neighbors: dict[str, set[str]] = {code: set() for code in provinces}
        for moves, key in ((self.army_moves, "army_borders"), (self.fleet_moves, "fleet_borders")):
            for here, line in facts.get(key, {}).items():
                for there in line.split():
                    moves[here].add(there)
                    moves[there].add(here)
                    self.neighbors[province(here)].add(province(there))
                    self.neighbors[province(there)].add(province(here))
        self._near = {
            (kind, location): {province(goal) for goal in goals}
            for kind, moves in (("A", self.army_moves), ("F", self.fleet_moves))
            for location, goals in moves.items()
        }

    def reach(self, unit: str) -> set[str]:
        """Locations a unit can move, retreat or give support to: one step, never a convoy."""
        return (self.army_moves if unit[0] == "A" else self.fleet_moves)[place(unit)]

    def near(self, unit: str) -> set[str]:
        """Provinces of `reach`; support may be given into them whatever the coast (DATC 6.B.4)."""
        return self._near[unit[0], place(unit)]


class Order(NamedTuple):
    verb: str  # H hold, - move, S support, C convoy
    unit: str
    other: str = ""  # the unit supported or convoyed
    goal: str = ""  # location of the move, supported or convoyed move; "" supports a hold
    via: bool = False

    def __str__(self) -> str:
        words = [self.unit, self.verb] if self.verb != "-" else [self.unit]
        words += [self.other] if self.other else []
        words += ["-", self.goal] if self.goal else []
        return " ".join(words + ["VIA"] * self.via)


class Board:
    """The units of a movement phase, and what they can do given each other."""

    def __init__(self, game_map: ReferenceMap, units: Units):
        self.map = game_map
        self.owner = {
            unit: power
            for power, texts in units.items()
            for unit in texts
            if not unit.startswith("*")
        }
        self.standing = {home(unit): unit for unit in self.owner}
        self.convoy_fleets = {
            home(unit)
            for unit in self.owner
            if unit[0] == "F" and home(unit) in game_map.convoying and not self.is_neutral(unit)
        }
        self.routes = cache(self._routes)

    def is_neutral(self, unit: str) -> bool:
        """Whether nobody plays a unit: it always holds."""
        return self.map.neutral is not None and self.owner[unit] == self.map.neutral

    def _routes(self, start: str) -> dict[str, list[frozenset[str]]]:
        """Convoy routes for an army in `start`: goal -> sets of seas, of which all are needed.

        In such a route only the first fleet touches the start, only the last one the goal, and
        each fleet only the ones before and after it.
        """
        found: dict[str, list[frozenset[str]]] = {}
        touching = {
            sea: {province(goal) for goal in self.map.fleet_moves[sea]}
            for sea in self.convoy_fleets
        }

        def extend(route: list[str]) -> None:
            *before, last = route
            for goal in sorted(touching[last]):
                passed = goal in route or any(goal in touching[sea] for sea in before)
                if self.map.terrain[goal] == "coast" and goal != start and not passed:
                    found.setdefault(goal, []).append(frozenset(route))
            for sea in sorted(touching[last] & self.convoy_fleets):
                passed = any(sea in touching[earlier] for earlier in before)
                if sea not in (*route, start) and start not in touching[sea] and not passed:
                    extend([*route, sea])

        for sea in sorted(self.convoy_fleets):
            if start in touching[sea]:
                extend([sea])
        return found

    def convoys(self, army: str, goal: str) -> list[frozenset[str]]:
        return self.routes(home(army)).get(goal, []) if army[0] == "A" else []

    def is_legal(self, order: Order) -> bool:
        """Whether a normalised order can take effect given the units on the board."""
        verb, unit, other, goal, via = order
        if self.is_neutral(unit):
            return False
        if verb == "H":
            return True
        if verb == "-":
            return bool(self.convoys(unit, goal)) if via else goal in self.map.reach(unit)
        if other == unit or (goal and self.is_neutral(other)):
            return False
        if verb == "C":
            return any(home(unit) in route for route in self.convoys(other, goal))
        if not goal:
            return home(other) in self.map.near(unit)
        return province(goal) in self.map.near(unit) and (
            goal in self.map.reach(other)
            or any(home(unit) not in route for route in self.convoys(other, goal))
        )

    def conceivable(self, unit: str) -> Iterator[Order]:
        """Every order of a unit worth asking about.

        Left out are only supports into provinces it does not border, and convoys by anything but a
        fleet at sea.
        """
        yield Order("H", unit)
        for goal in self.map.locations:
            yield Order("-", unit, "", goal)
            yield Order("-", unit, "", goal, via=True)
        near = [goal for goal in self.map.locations if province(goal) in self.map.near(unit)]
        carried = self.map.locations if home(unit) in self.convoy_fleets else []
        for other in self.owner:
            yield Order("S", unit, other)
            yield from (Order("S", unit, other, goal) for goal in near)
            yield from (Order("C", unit, other, goal) for goal in carried)

    def read(self, text: str) -> Order:
        """The order that a legal text says."""
        words = text.split()
        unit = " ".join(words[:2])
        match words[2:]:
            case ["-", goal, *via]:
                return Order("-", unit, "", goal, bool(via))
            case ["S" | "C" as verb, kind, location, *move]:
                return Order(verb, unit, f"{kind} {location}", move[1] if move else "")
        return Order("H", unit)


def owed(position: dict, power: str) -> int:
    """Builds (above zero) or removals (below zero) a power owes."""
    return len(position.get("centers", {}).get(power, [])) - len(position["units"].get(power, []))


def builds(game_map: ReferenceMap, center: str) -> list[str]:
    """The builds a home center allows: one for each unit kind and coast."""
    armies = [f"A {center} B"]
    fleets = [f"F {location} B" for location in game_map.coasts[center] or [center]]
    return armies + (fleets if game_map.terrain[center] == "coast" else [])


def retreating(units: Units, retreats: dict) -> dict[str, dict[str, list[str]]]:
    """Retreats of every dislodged unit; a starred one without an entry has none."""
    starred = {
        power: {text[1:]: [] for text in texts if text.startswith("*")}
        for power, texts in units.items()
    }
    powers = dict.fromkeys([*starred, *retreats])
    return {power: {**starred.get(power, {}), **retreats.get(power, {})} for power in powers}


def legal_orders(game_map: ReferenceMap, position: dict) -> dict[str, list[str]]:
    """Every legal order: {unit text, or home center in winter: sorted texts}.

    Units and centers with nothing to order have an empty list.
    """
    units = position["units"]
    listed: dict[str, list[str]] = {}
    if position["name"].endswith("M"):
        board = Board(game_map, units)
        for unit in board.owner:
            listed[unit] = [str(o) for o in board.conceivable(unit) if board.is_legal(o)]
    elif position["name"].endswith("R"):
        listed = {unit: [] for texts in units.values() for unit in texts if unit[0] != "*"}
        for retreats in retreating(units, position.get("retreats", {})).values():
            for unit, places in retreats.items():
                listed[unit] = [f"{unit} D"] + [f"{unit} R {goal}" for goal in places]
    else:
        occupied = {home(unit) for texts in units.values() for unit in texts}
        for power, texts in units.items():
            for unit in texts:
                removes = power != game_map.neutral and owed(position, power) < 0
                listed[unit] = [f"{unit} D"] if removes else []
        owner = {code: power for power, owned in position["centers"].items() for code in owned}
        sites = dict.fromkeys(game_map.centers) if game_map.build_any else game_map.home_of
        for center, power in sites.items():
            power = owner.get(center) if game_map.build_any else power
            may_build = (
                power is not None
                and owed(position, power) > 0
                and center in position["centers"][power]
                and center not in occupied
            )
            listed[center] = [*builds(game_map, center), "WAIVE"] if may_build else []
    return {key: sorted(texts) for key, texts in listed.items()}
