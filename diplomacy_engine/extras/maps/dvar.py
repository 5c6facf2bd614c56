"""Reads DVAR files (JSON), in which diplicity describes variants; its schema is version 1.

What the schema has and this engine does not is refused: other victories than a number of centers
(but a last year with a shared draw is our year limit), other seasons than two movements and a
winter, centers that are owned and not at home, borders that go one way.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Literal, NoReturn, TypeVar, get_args

from msgspec import Meta, Struct, field

from ..._suggest import quoted
from ...records import convert, parse_json
from ...rules.map import MapError
from .draft import Draft, Neutral, add_neutral, border_lines, map_name, read_text

_Modifier = Literal["allow-builds-in-non-home-centers", "neutral-nations-auto-build"]
_ANYWHERE, _REBUILD = get_args(_Modifier)
_TERRAIN = {"land": "land", "coastal": "coast", "sea": "sea"}
_CYCLE = [*[("Movement", 0), ("Retreat", 0)] * 2, ("Adjustment", 1)]  # and years that pass
_Item = TypeVar("_Item")


class _Record(Struct, forbid_unknown_fields=True):
    """A part of a file, with the names of its schema."""


class _Majority(_Record, tag_field="type", tag="supply-center-majority"):
    supplyCenters: int


class _Timed(_Record, tag_field="type", tag="timed-resolution"):
    year: int
    resolution: Literal["shared-draw"]


class _Step(_Record):
    season: str
    type: str


class _NextStep(_Step):
    yearDelta: int


class _Transition(_Record, rename={"start": "from", "end": "to"}):
    start: _Step
    end: _NextStep


class _Progression(_Record):
    seasons: list[str]
    transitions: list[_Transition]


class _Nation(_Record):
    id: str
    name: str
    color: str
    non_playable: bool = False


class _Edge(_Record):
    to: str
    kind: Literal["army", "fleet", "both"] = field(name="pass")


class _Place(_Record):
    id: str
    name: str
    adjacencies: list[_Edge]


class _Province(_Place, kw_only=True):
    type: Literal["land", "coastal", "sea"]
    supplyCenter: bool
    homeNation: str | None = None


class _Coast(_Place, kw_only=True):
    parentProvince: str


class _Unit(_Record):
    nation: str
    type: Literal["Army", "Fleet"]
    location: str


class _Owner(_Record):
    nation: str
    province: str


class _Phase(_Step):
    year: Annotated[int, Meta(ge=1, le=9999)]


class _State(_Record):
    phase: _Phase
    units: list[_Unit]
    supplyCenters: list[_Owner]


class _Dominance(Struct):
    """Who rules a province; a color on a picture, unless it is a center."""

    province: str


class _Variant(_Record):
    schemaVersion: Literal[1]
    id: str
    name: str
    description: str
    author: str
    victoryConditions: list[_Majority | _Timed]
    phaseProgression: _Progression
    nations: Annotated[list[_Nation], Meta(min_length=1)]
    provinces: list[_Province]
    namedCoasts: list[_Coast]
    initialState: _State
    rules: str = ""
    adjudicationModifiers: list[_Modifier] = []
    dominanceRules: list[_Dominance] = []


def read_dvar(path: Path) -> Draft:
    source = f"map {path}"
    return _Reader(path, convert(_Variant, parse_json(read_text(path), source), source)).draft()


def _listed(where: str, items: Sequence[_Item]) -> Iterator[tuple[str, _Item]]:
    return ((f"{where}[{i}]", item) for i, item in enumerate(items))


class _Reader:
    def __init__(self, path: Path, variant: _Variant):
        self.path, self.variant, self.state = path, variant, variant.initialState
        self.build_any = _ANYWHERE in variant.adjudicationModifiers
        self.powers: dict[str, str] = {}  # nation -> power
        self.neutral: list[str] = []  # nations
        self.places: dict[str, str] = {}  # id -> location
        self.provinces: dict[str, dict] = {}  # code -> what a map file says of it

    def fail(self, where: str, reason: str) -> NoReturn:
        raise MapError(str(self.path), [f"{where}: {reason}"])

    def known(self, where: str, word: str, table: Mapping[str, str] | Sequence[str]) -> None:
        if word not in table:
            self.fail(where, f"{quoted(word, 40)} is not on this map")

    def draft(self) -> Draft:
        draft = Draft(self.path)
        facts = draft.facts
        facts["name"] = map_name(self.variant.id, draft.notes)
        self.nations()
        facts["powers"] = sorted(self.powers.values())
        self.victory(facts)
        self.seasons(draft)
        if self.build_any:
            facts["builds"] = "any"
        self.set_provinces(draft)
        self.coasts(draft)
        army, fleet = self.borders()
        owner = self.owners()
        self.units(draft, owner)
        self.homes(owner)
        facts["provinces"] = self.provinces
        facts["army_borders"], facts["fleet_borders"] = border_lines(army), border_lines(fleet)
        for where, rule in _listed("dominanceRules", self.variant.dominanceRules):
            self.known(where, rule.province, self.places)
            if self.provinces[self.places[rule.province][:3]].get("supply_center"):
                self.fail(where, f"of the center {rule.province}, which cannot be played")
        return draft

    def nations(self) -> None:
        for where, nation in _listed("nations", self.variant.nations):
            if nation.id in self.powers or nation.id in self.neutral:
                self.fail(where, f"there are two nations {quoted(nation.id, 40)}")
            if nation.non_playable:
                self.neutral.append(nation.id)
            else:
                self.powers[nation.id] = _power_name(nation.id) or nation.id

    def victory(self, facts: dict) -> None:
        won = [each for each in self.variant.victoryConditions if isinstance(each, _Majority)]
        timed = [each for each in self.variant.victoryConditions if isinstance(each, _Timed)]
        if len(won) != 1 or len(timed) > 1:
            self.fail("victoryConditions", "one number of supply centers must win")
        facts["victory_supply_centers"] = won[0].supplyCenters
        if timed:
            facts["max_years"] = timed[0].year - self.state.phase.year + 1

    def seasons(self, draft: Draft) -> None:
        steps, phase = self.variant.phaseProgression.transitions, self.state.phase
        starts = [(step.start.season, step.start.type) for step in steps]
        for number, start in enumerate(starts):
            if start in starts[:number]:
                where = f"phaseProgression.transitions[{number}]"
                self.fail(where, f"two phases follow the {' '.join(start)}")
        follows = {start: step.end for start, step in zip(starts, steps)}
        first = here = phase.season, phase.type
        names, cycle = [], []
        for _ in steps:
            names.append(here[0])
            step = follows.get(here)
            if step is not None:
                cycle.append((here[1], step.yearDelta))
                here = step.season, step.type
        if cycle != _CYCLE or len(steps) != len(_CYCLE) or here != first:
            self.fail("phaseProgression", "a year is two movements with retreats, then adjustments")
        seasons = names[0], names[2]
        if [name.lower() for name in seasons] != ["spring", "fall"]:
            draft.notes.append(f"the seasons {' and '.join(seasons)} are spring and fall here")
        draft.facts["first_phase"] = f"S{phase.year}M"

    def set_provinces(self, draft: Draft) -> None:
        entries = self.variant.provinces
        short = {e.id.upper() for e in entries if re.fullmatch(r"[A-Za-z]{3}", e.id)}
        for where, entry in _listed("provinces", entries):
            word = entry.id
            if word in self.places:
                self.fail(where, f"there are two provinces {quoted(word, 40)}")
            code = word.upper()
            if code not in short:
                code = _new_code(word, short | set(self.provinces))
                draft.notes.append(f"{word} is {code} here")
            self.places[word] = code
            province: dict = {"name": entry.name, "terrain": _TERRAIN[entry.type]}
            if word.upper() != code and word.isprintable():
                province["aliases"] = [word]
            if entry.supplyCenter:
                province["supply_center"] = True
            self.provinces[code] = province

    def coasts(self, draft: Draft) -> None:
        coasts: dict[str, list[tuple[str, str]]] = {}
        for where, entry in _listed("namedCoasts", self.variant.namedCoasts):
            parent, _, coast = entry.id.partition("/")
            if parent not in self.places or (parent, bool(coast)) != (entry.parentProvince, True):
                self.fail(where, f"{quoted(entry.id, 40)} is not a coast of a province")
            if entry.id in self.places:
                self.fail(where, f"there are two coasts {quoted(entry.id, 40)}")
            code, word = self.places[parent], coast.upper()
            self.places[entry.id] = f"{code}/{word}"
            coasts.setdefault(code, []).append((entry.id, word))
        for code, several in coasts.items():
            if self.provinces[code]["terrain"] == "land":
                self.provinces[code]["terrain"] = "coast"
            if len(several) == 1:
                self.places[several[0][0]] = code
                draft.notes.append(f"{code} has only one coast, which has no name here")
            else:
                self.provinces[code]["coasts"] = sorted(word for _, word in several)

    def borders(self) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        edges: dict[tuple[str, str], tuple[str, str]] = {}
        places = [
            *_listed("provinces", self.variant.provinces),
            *_listed("namedCoasts", self.variant.namedCoasts),
        ]
        for place_at, entry in places:
            for where, edge in _listed(f"{place_at}.adjacencies", entry.adjacencies):
                self.known(where, edge.to, self.places)
                if (entry.id, edge.to) in edges:
                    self.fail(where, f"{entry.id} lists {edge.to} twice")
                edges[entry.id, edge.to] = edge.kind, where
        army, fleet = set(), set()
        for (here, there), (kind, where) in edges.items():
            if edges.get((there, here), ("",))[0] != kind:
                self.fail(where, f"one can go from {here} to {there} by {kind}, but not back")
            pair = self.places[here], self.places[there]
            if kind != "fleet":
                army.add(pair)
            # The schema allows fleets in a place with coasts; they go to one of these.
            split = (
                place in self.provinces and "coasts" in self.provinces[place] for place in pair
            )
            if kind != "army" and not any(split):
                fleet.add(pair)
        return army, fleet

    def owners(self) -> dict[str, str]:
        owner: dict[str, str] = {}
        for where, entry in _listed("initialState.supplyCenters", self.state.supplyCenters):
            self.known(where, entry.nation, (*self.powers, *self.neutral))
            code = self.places.get(entry.province, "")
            if not self.provinces.get(code, {}).get("supply_center"):
                self.fail(where, f"{quoted(entry.province, 40)} is not a supply center")
            if code in owner:
                self.fail(where, f"{entry.province} has two owners")
            owner[code] = entry.nation
        return owner

    def units(self, draft: Draft, owner: Mapping[str, str]) -> None:
        start: dict[str, list[str]] = {name: [] for name in sorted(self.powers.values())}
        rebuilds = _REBUILD in self.variant.adjudicationModifiers
        neutral = {}
        for nation in self.neutral:
            centers = {code for code, whose in owner.items() if whose == nation}
            neutral[nation] = Neutral(_power_name(nation), "initialState", centers, [])
        for where, entry in _listed("initialState.units", self.state.units):
            self.known(where, entry.nation, (*self.powers, *self.neutral))
            self.known(where, entry.location, self.places)
            unit = f"{entry.type[0]} {self.places[entry.location]}"
            if entry.nation in self.powers:
                start[self.powers[entry.nation]].append(unit)
                continue
            neutral[entry.nation].units.append(unit)
            if rebuilds and entry.type == "Fleet":
                self.fail(where, f"a fleet of {entry.nation} would be built again as an army")
        draft.facts["start_units"] = {power: units for power, units in start.items() if units}
        add_neutral(draft, neutral)
        if rebuilds and "neutral" in draft.facts:
            draft.facts["neutral_rebuilds"] = True

    def homes(self, owner: Mapping[str, str]) -> None:
        for where, entry in _listed("provinces", self.variant.provinces):
            code, home = self.places[entry.id], entry.homeNation
            owned = owner.get(code)
            if home is not None:
                self.known(f"{where}.homeNation", home, (*self.powers, *self.neutral))
            if not self.build_any and home != owned and not {home, owned} <= {None, *self.neutral}:
                names = f"{home or 'nobody'}, and {owned or 'nobody'}"
                self.fail(where, f"{entry.id} is home of {names} owns it at the start")
            if owned in self.powers:
                self.provinces[code]["home_of"] = self.powers[owned]


def _power_name(nation: str) -> str:
    return re.sub(r"[^A-Z]+", "_", nation.upper()).strip("_")


def _new_code(word: str, taken: set[str]) -> str:
    """Return three letters for a place, in the order of its id if they are free."""
    first, *others = re.sub(r"[^A-Z]", "", word.upper()) or "X"
    ends = [*combinations(others, 2), *product(ascii_uppercase, repeat=2)]
    codes = (first + "".join(end) for end in ends)
    return next((code for code in codes if code not in taken), "XXX")
