"""Map files and the Board: a map's provinces, borders and centers as arrays.

A map file is TOML (see `maps/small.toml`); `load_map` reads the ones that come with the package by
name and anybody's own by path. Reading checks everything that can be wrong and reports all of it.
"""

import copy
import hashlib
import json
import os
import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from .._suggest import did_you_mean, quoted
from ..constants import ARMY, COASTS, FLEET, NONE, SEA, UNIT_LETTERS, Terrain, parse_phase
from ..errors import UserError
from ..records import convert, parse_toml, read_content
from .teams import no_teams, read_teams

MAPS_FOLDER = Path(__file__).parents[1] / "maps"
MAP_NAMES = ("small", "three", "standard")
DEFAULT_MAX_YEARS = 20
MAX_NEIGHBORS = 32  # retreat options are kept as bits of a uint32
MAX_POSITION = 1_000_000
MAX_NAME = 100  # letters of a province's name
MAX_FILE_BYTES = 1_000_000

_UNIT = r"([AF]) (([A-Z]{3})(?:/[A-Z]{1,10})?)"  # letter, location, province
_Power = Annotated[str, Meta(pattern=r"^[A-Z][A-Z_]{1,30}\Z")]
_Coast = Annotated[str, Meta(pattern=r"^[A-Z]{1,10}\Z")]
_Coordinate = Annotated[float, Meta(ge=-MAX_POSITION, le=MAX_POSITION)]


class _MapFile(Struct, forbid_unknown_fields=True):
    """The types of a map file's keys; all have a default, so that each can be read by itself."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,40}\Z")] = ""
    powers: Annotated[list[_Power], Meta(min_length=1, max_length=20)] = []
    victory_supply_centers: int = 0
    start_units: dict = {}
    provinces: Annotated[dict, Meta(min_length=1, max_length=500)] = {}
    army_borders: dict = {}
    fleet_borders: dict = {}
    first_phase: Annotated[str, Meta(pattern=r"^S0{0,3}[1-9][0-9]{0,3}M\Z")] = "S1901M"
    max_years: Annotated[int, Meta(ge=1, le=1000)] = DEFAULT_MAX_YEARS
    builds: Literal["home", "any"] = "home"
    neutral: _Power = ""
    neutral_rebuilds: bool = False


class _Province(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)] = ""
    terrain: Literal["land", "coast", "sea"] = "land"
    supply_center: bool = False
    home_of: str = ""
    coasts: Annotated[list[_Coast], Meta(max_length=len(COASTS) - 1)] = []
    convoys: bool = False
    aliases: list[str] = []
    position: tuple[_Coordinate, _Coordinate] = (0, 0)


_REQUIRED = _MapFile.__struct_fields__[:6]
_REQUIRED_OF_PROVINCE = _Province.__struct_fields__[:2]


class MapError(UserError):
    """A map file has mistakes. `problems` lists them, a sentence each."""

    def __init__(self, source: str, problems: list[str]):
        problems = [" ".join(problem.split()) for problem in problems]
        self.source, self.problems = source, problems
        more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
        super().__init__(f"map {source}: {problems[0]}{more}")

    def __reduce__(self) -> tuple:
        return MapError, (self.source, self.problems)  # ranks tell each other of their errors


class Board(NamedTuple):
    """What the kernels know of a map: read-only arrays of power, province and location indices."""

    location_province: np.ndarray  # (L,) int16
    location_coast: np.ndarray  # (L,) int8, index into COASTS; see coast_numbers
    province_location: np.ndarray  # (V,) int16, the location that is the province itself
    terrain: np.ndarray  # (V,) int8, Terrain
    neighbor: np.ndarray  # (2, L, most neighbors) int16, locations a unit kind can move to, sorted
    neighbor_count: np.ndarray  # (2, L) int16
    reach: np.ndarray  # (2, L, V) bool, whether a unit kind at a location can move to a province
    can_stand: np.ndarray  # (2, L) bool, whether a unit kind can stand at a location
    center_province: np.ndarray  # (C,) int16
    province_center: np.ndarray  # (V,) int16 or NONE
    home_power: np.ndarray  # (V,) int8, whose home center a province is, or NONE
    distance: np.ndarray  # (V, V) int16, steps over any border by any unit; V if there is no way
    removal_rank: np.ndarray  # (V,) int16, rank of the full province name in the alphabet
    build_anywhere: bool  # in all own centers, not only at home
    start_unit_power: np.ndarray  # (V,) int8 or NONE; P of a neutral unit
    start_unit_kind: np.ndarray  # (V,) int8 or NONE
    start_unit_location: np.ndarray  # (V,) int16 or NONE
    victory_centers: int
    first_year: int
    num_powers: int
    neutral_rebuilds: bool  # lost neutral units come back where nobody has taken the center
    team: np.ndarray  # (P,) int8, team of each power; its own where it plays alone
    num_teams: int  # P without teams
    team_victory: int  # centers with which a team wins, or 0 if none does by its centers


class Map:
    """A map: names for people, `board` for the kernels. Maps are equal if their `hash` and their
    teams are.

    Attributes:
        name: the map's name, such as `small`.
        powers: names of the powers, alphabetical; their positions are the power indices.
        unit_powers: `powers`, and then the name of the neutral units if the map has any.
        provinces: province codes, alphabetical; their positions are the province indices.
        locations: location texts such as `STP` or `STP/NC`, sorted; positions are location indices.
        province_names: code -> full name.
        aliases: upper-case word -> province code, for input only.
        coast_numbers: code -> the numbers of the province's coasts, as `coast_numbers` says.
        positions: code -> (x, y) of a drawing, for the provinces that give one.
        max_years: game years after which a game ends unless the user says otherwise.
        can_convoy: (V,) bool, whether a fleet in a province convoys: at sea, and if the file
            has `convoys = true`.
        facts: the parsed file.
        hash: sha256 of the facts, independent of the order of their keys.
        board: see Board.
        teams: the powers that play together; see `with_teams`.
    """

    def __init__(self, facts: dict, source: str = "(dictionary)"):
        problems = _problems(facts)
        if problems:
            raise MapError(source, problems)
        self.facts = facts = copy.deepcopy(facts)  # whoever changes theirs has another map
        self.source = source
        self.name: str = facts["name"]
        self.max_years: int | None = facts.get("max_years", DEFAULT_MAX_YEARS)
        self.powers: list[str] = sorted(facts["powers"])
        self.unit_powers = [*self.powers, *([facts["neutral"]] if "neutral" in facts else [])]
        provinces = dict(sorted(facts["provinces"].items()))
        self.provinces = list(provinces)
        self.province_names: dict[str, str] = {code: p["name"] for code, p in provinces.items()}
        aliases = ((word, code) for code, p in provinces.items() for word in p.get("aliases", []))
        self.aliases = {word.upper(): code for word, code in aliases}
        drawn = {code: p["position"] for code, p in provinces.items() if "position" in p}
        self.positions = {code: tuple(position) for code, position in drawn.items()}
        coasts = {code: p.get("coasts", []) for code, p in provinces.items()}
        self.coast_numbers = {code: coast_numbers(names) for code, names in coasts.items()}
        split = [f"{code}/{coast}" for code, names in coasts.items() for coast in names]
        self.locations = sorted([*self.provinces, *split])
        self.power_index = {name: i for i, name in enumerate(self.powers)}
        self.unit_power_index = {name: i for i, name in enumerate(self.unit_powers)}
        self.province_index = {code: i for i, code in enumerate(self.provinces)}
        self.location_index = {text: i for i, text in enumerate(self.locations)}
        self.teams = no_teams(self.powers)
        self.board = self._build_board()
        self.can_convoy = self.board.terrain == SEA
        self.can_convoy |= [p.get("convoys", False) for p in provinces.values()]
        self.can_convoy.setflags(write=False)

    def __reduce__(self) -> tuple:
        """Copied and pickled as what was read: arrays stay read-only, as kernels know them."""
        teams = self.teams
        return _map_again, (json.dumps(self.facts), self.source, teams.text, teams.victory_centers)

    def __deepcopy__(self, _memo: dict) -> "Map":
        return self

    @cached_property
    def hash(self) -> str:
        return hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()

    @property
    def is_included(self) -> bool:
        """Whether this is one of MAP_NAMES, perhaps with teams; a file may have that name, too."""
        return self.name in MAP_NAMES and load_map(self.name).hash == self.hash

    @property
    def _identity(self) -> tuple[str, str, int]:
        return self.hash, self.teams.text, self.teams.victory_centers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Map) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def with_teams(self, text: str, victory_centers: int = 0) -> "Map":
        """Return this map with other teams; itself if every power plays alone, and so did here.

        A game of teams ends as soon as only one team is alive, or a team has `victory_centers`. If
        all powers are in one team, it ends as a game without teams.

        Args:
            text: such as `ENGLAND+ITALY`; empty for no teams.
            victory_centers: a team wins with so many centers if no other has as many; 0: no such
                victory.

        Raises:
            UserError: the teams cannot be read, or no team could have so many centers.
        """
        teams = read_teams(text, self.powers) if text else no_teams(self.powers)
        most = len(self.board.center_province)
        if victory_centers and not teams.text:
            raise UserError("a team's victory needs teams of several powers")
        if type(victory_centers) is not int or not 0 <= victory_centers <= most:
            raise UserError(
                f"a team's victory takes 1 to {most} centers on map {self.name}, "
                f"not {quoted(victory_centers)}"
            )
        if not teams.text and not self.teams.text:
            return self
        same = object.__new__(Map)
        same.__dict__.update(self.__dict__)
        same.teams = teams._replace(victory_centers=victory_centers)
        team = teams.of_power.astype(np.int8)
        team.setflags(write=False)
        same.board = self.board._replace(
            team=team, num_teams=len(teams.names), team_victory=victory_centers
        )
        return same

    def contested(self) -> "Map":
        """This map, without its teams if all powers are in one: a match needs opponents."""
        return self.with_teams("") if len(self.teams.names) == 1 else self

    def _build_board(self) -> Board:
        facts, provinces = self.facts["provinces"], self.provinces
        num_locations, num_provinces = len(self.locations), len(provinces)
        codes, _, coasts = zip(*(text.partition("/") for text in self.locations))
        location_province = np.array([self.province_index[code] for code in codes], np.int16)
        terrain = np.array([Terrain[facts[c]["terrain"].upper()] for c in provinces], np.int8)
        province_location = np.array([self.location_index[c] for c in provinces], np.int16)

        borders = np.zeros((2, num_locations, num_locations), bool)
        for kind, key in ((ARMY, "army_borders"), (FLEET, "fleet_borders")):
            for first, others in self.facts.get(key, {}).items():
                for second in others.split():
                    a, b = self.location_index[first], self.location_index[second]
                    borders[kind, [a, b], [b, a]] = True
        neighbor_count = borders.sum(2, dtype=np.int16)
        most = max(1, neighbor_count.max())
        near = np.argsort(~borders, axis=2, kind="stable")[:, :, :most]  # in their own order
        neighbor = np.where(np.arange(most) < neighbor_count[:, :, None], near, NONE)
        reach = np.zeros((2, num_locations, num_provinces), bool)
        distance = np.full((num_provinces, num_provinces), num_provinces, np.int16)
        np.fill_diagonal(distance, 0)
        kinds, here, there = np.nonzero(borders)
        reach[kinds, here, location_province[there]] = True
        distance[location_province[here], location_province[there]] = 1
        for middle in range(num_provinces):
            distance = np.minimum(distance, distance[:, middle, None] + distance[None, middle, :])
        distance = np.minimum(distance, num_provinces).astype(np.int16)
        ground = terrain[location_province]
        is_coast = np.array([bool(coast) for coast in coasts])
        is_split = np.array([bool(facts[code].get("coasts")) for code in codes])
        can_stand = np.array(
            [~is_coast & (ground != SEA), (ground != Terrain.LAND) & (is_coast | ~is_split)]
        )

        center_province = np.array(
            [i for i, c in enumerate(provinces) if facts[c].get("supply_center")], np.int16
        )
        province_center = np.full(num_provinces, NONE, np.int16)
        province_center[center_province] = np.arange(len(center_province))
        home_power = np.array(
            [self.power_index.get(facts[c].get("home_of"), NONE) for c in provinces], np.int8
        )
        names = sorted(provinces, key=lambda code: (facts[code]["name"].upper(), code))
        rank = {code: i for i, code in enumerate(names)}
        unit_power, unit_kind = np.full((2, num_provinces), NONE, np.int8)
        unit_location = np.full(num_provinces, NONE, np.int16)
        for power, units in self.facts["start_units"].items():
            for letter, text in map(str.split, units):
                province = location_province[self.location_index[text]]
                unit_power[province] = self.unit_power_index[power]
                unit_kind[province] = UNIT_LETTERS.index(letter)
                unit_location[province] = self.location_index[text]
        numbers = [self.coast_numbers[c][coast] if coast else 0 for c, coast in zip(codes, coasts)]
        board = Board(
            location_province=location_province,
            location_coast=np.array(numbers, np.int8),
            province_location=province_location,
            terrain=terrain,
            neighbor=neighbor.astype(np.int16),
            neighbor_count=neighbor_count,
            reach=reach,
            can_stand=can_stand,
            center_province=center_province,
            province_center=province_center,
            home_power=home_power,
            build_anywhere=self.facts.get("builds") == "any",
            distance=distance,
            removal_rank=np.array([rank[c] for c in provinces], np.int16),
            start_unit_power=unit_power,
            start_unit_kind=unit_kind,
            start_unit_location=unit_location,
            victory_centers=self.facts["victory_supply_centers"],
            first_year=parse_phase(self.facts.get("first_phase", "S1901M"))[0],
            num_powers=len(self.powers),
            neutral_rebuilds=self.facts.get("neutral_rebuilds", False),
            team=self.teams.of_power.astype(np.int8),
            num_teams=len(self.teams.names),
            team_victory=0,
        )
        for table in board:
            if isinstance(table, np.ndarray):
                table.setflags(write=False)
        return board

    def power_number(self, name: str, or_neutral: bool = False) -> int:
        """Return the index of a power by its name in any letter case, or raise UserError.

        With `or_neutral` the name may be that of the neutral units; their number is P.
        """
        numbers = self.unit_power_index if or_neutral else self.power_index
        number = numbers.get(name.upper()) if isinstance(name, str) else None
        if number is None:
            hint = did_you_mean(name.upper()[:40], self.powers) if isinstance(name, str) else ""
            powers = ", ".join(self.powers)
            raise UserError(
                f"{quoted(name, 40)} is not a power of map {self.name} ({powers}){hint}"
            )
        return number

    def unit_text(self, kind: int, location: int) -> str:
        """Return a unit's text, such as `F STP/NC`."""
        return f"{UNIT_LETTERS[kind]} {self.locations[location]}"

    def __repr__(self) -> str:
        return f"Map({self.name!r}, {len(self.powers)} powers, {len(self.provinces)} provinces)"


def coast_numbers(coasts: Sequence[str]) -> dict[str, int]:
    """Return the numbers of a province's coasts, indices into COASTS. NC, EC, SC and WC have their
    own; a coast of another name has the first that is free."""
    free = [i for i in range(1, len(COASTS)) if COASTS[i] not in coasts]
    return {name: COASTS.index(name) if name in COASTS else free.pop(0) for name in coasts}


_LOADED: dict[str, Map] = {}


def load_map(name: "str | Path | Map") -> Map:
    """Return the map of that name (`small`, `three`, `standard`) or in that TOML file; the same
    object as before while the file is the same.

    Raises:
        MapError: there is no such map, or its file has mistakes; the message lists them.
    """
    if isinstance(name, Map):
        return name
    if not isinstance(name, str | Path):
        raise MapError(quoted(name, 60), ["a map is given by its name or the path of its file"])
    if name in MAP_NAMES:
        if name not in _LOADED:
            _LOADED[name] = read_map_file(MAPS_FOLDER / f"{name}.toml")
        return _LOADED[name]
    path = Path(name)
    if str(name) and path.name and os.path.isdir(path):
        raise MapError(f"{str(name)!r:.200}", ["this is a folder; a map is one file (TOML)"])
    if not os.path.isfile(path):  # nor is a name that no file can have
        hint = did_you_mean(str(name), MAP_NAMES)
        raise MapError(
            f"{str(name)!r:.200}",
            [
                f"there is no map of that name ({', '.join(MAP_NAMES)}) and no such file{hint}; "
                "`import-map` makes a map file of another program's map, which `--map FILE` plays"
            ],
        )
    return read_map_file(path)


@lru_cache(maxsize=16)
def _map_again(facts: str, source: str, teams: str, team_victory: int) -> Map:
    """Return a map that was copied or pickled, the same each time: its vocabulary is there."""
    content = json.loads(facts)
    game_map = load_map(content["name"]) if content["name"] in MAP_NAMES else None
    if game_map is None or game_map.facts != content:
        game_map = Map(content, source)
    return game_map.with_teams(teams, team_victory)


def read_map_file(path: Path) -> Map:
    try:
        return _read_map(str(path), read_content(path, MAX_FILE_BYTES))
    except MapError:
        raise
    except UserError as error:
        raise MapError(str(path), [str(error).removeprefix(str(path)).lstrip(": ")]) from None


@lru_cache(maxsize=16)
def _read_map(source: str, content: bytes) -> Map:
    return Map(parse_toml(content, source), source)


def _problems(facts: dict) -> list[str]:
    return (
        _shape_problems(facts)
        or _province_problems(facts)
        or _border_problems(facts) + _unit_problems(facts) + _victory_problems(facts)
    )


def _misfits(
    record: type[Struct], table: dict, required: Sequence[str], where: str = ""
) -> list[str]:
    """Return what does not fit a record, a problem at the most for each key."""
    problems = [f"{where}{key}: is missing" for key in required if key not in table]
    for key, value in table.items():
        try:
            convert(record, {key: value}, "")
        except UserError as error:
            problems.append(where + str(error).removeprefix(": "))
    return problems


def _shape_problems(facts: dict) -> list[str]:
    problems = _misfits(_MapFile, facts, _REQUIRED)
    if problems:
        return problems
    powers, neutral = facts["powers"], facts.get("neutral")
    if len(set(powers)) < len(powers):
        problems.append("powers: one is listed twice")
    if neutral in powers:
        problems.append(f"neutral: {neutral} is one of the powers")
    elif neutral is not None and not facts["start_units"].get(neutral):
        problems.append(f"neutral: {neutral} has no start_units")
    if facts.get("neutral_rebuilds") and neutral is None:
        problems.append("neutral_rebuilds: needs 'neutral', the name of those units")
    return problems


def _province_problems(facts: dict) -> list[str]:
    problems, words = [], {}
    for code, province in facts["provinces"].items():
        where = f"provinces.{code:.40}"
        if not re.fullmatch(r"[A-Z]{3}", code):
            problems.append(f"{where}: a code is three capital letters")
        if not isinstance(province, dict):
            problems.append(f"{where}: must be a table, such as {{ name = ..., terrain = ... }}")
            continue
        misfits = _misfits(_Province, province, _REQUIRED_OF_PROVINCE, f"{where}.")
        problems += misfits
        if misfits:
            continue
        coasts, home = province.get("coasts", []), province.get("home_of")
        if coasts and province["terrain"] != "coast":
            problems.append(f"{where}.coasts: only a province with terrain coast can have coasts")
        if len(coasts) == 1 or len(set(coasts)) < len(coasts):
            problems.append(f"{where}.coasts: must be two or more different ones")
        if province.get("convoys") and (coasts or province["terrain"] != "coast"):
            problems.append(
                f"{where}.convoys: is for a province with terrain coast and without coasts; at sea "
                "every fleet convoys"
            )
        if not province["name"].isprintable():
            problems.append(f"{where}.name: has control characters")
        if home is not None and home not in facts["powers"]:
            problems.append(f"{where}.home_of: {home!r:.40} is not one of the powers")
        if home is not None and not province.get("supply_center", False):
            problems.append(f"{where}.home_of: a home center must have supply_center = true")
        for word in province.get("aliases", []):
            if not word.strip() or not word.isprintable():
                problems.append(f"{where}.aliases: {quoted(word, 40)} must be a text of one line")
            elif word.upper() in facts["provinces"] and word.upper() != code:
                problems.append(f"{where}.aliases: {word!r:.40} is the code of another province")
            elif words.setdefault(word.upper(), code) != code:
                problems.append(f"{where}.aliases: {word!r:.40} also names {words[word.upper()]}")
    return problems


def _stand_problem(facts: dict, kind: int, location: str) -> str | None:
    """Say why a unit kind cannot stand at a location text, or None if it can."""
    code, _, coast = location.partition("/")
    if code not in facts["provinces"]:
        return f"{code!r:.40} is not a province of this map"
    province = facts["provinces"][code]
    coasts = province.get("coasts", [])
    if "/" in location and coast not in coasts:
        return f"{code} has no coast {coast!r:.20}"
    if kind == ARMY and province["terrain"] == "sea":
        return f"{code} is a sea, where no army can stand"
    if kind == ARMY and coast:
        return f"an army stands in {code}, not on its coast {coast}"
    if kind == FLEET and province["terrain"] == "land":
        return f"{code} is inland, where no fleet can stand"
    if kind == FLEET and coasts and not coast:
        return f"a fleet in {code} must name its coast ({', '.join(coasts)})"
    return None


def _border_problems(facts: dict) -> list[str]:
    problems, degree = [], {}
    for kind, key in ((ARMY, "army_borders"), (FLEET, "fleet_borders")):
        borders = set()
        for first, others in facts.get(key, {}).items():
            if not isinstance(others, str):
                problems.append(
                    f"{key}: {first!r:.40} must be a text of neighbors, such as 'BUR GAS'"
                )
                continue
            for second in others.split():
                where = f"{key}: {first:.40} - {second:.40}"
                reasons = dict.fromkeys(_stand_problem(facts, kind, end) for end in (first, second))
                reasons.pop(None, None)
                if not reasons and first.partition("/")[0] == second.partition("/")[0]:
                    reasons = ["a province does not border itself"]
                elif not reasons and frozenset((first, second)) in borders:
                    reasons = ["this border is listed twice; each stands once"]
                borders.add(frozenset((first, second)))
                problems += [f"{where}: {reason}" for reason in reasons]
                if not reasons:
                    for end in (first, second):
                        degree[kind, end] = degree.get((kind, end), 0) + 1
    problems += [
        f"{location} has {count} neighbors; at most {MAX_NEIGHBORS} are possible"
        for (_, location), count in degree.items()
        if count > MAX_NEIGHBORS
    ]
    if not problems:
        touched = {location.partition("/")[0] for _, location in degree}
        problems += [
            f"province {code} has no border" for code in facts["provinces"] if code not in touched
        ]
    return problems


def _unit_problems(facts: dict) -> list[str]:
    problems, taken = [], {}
    for power, units in facts["start_units"].items():
        if power not in (*facts["powers"], facts.get("neutral")):
            problems.append(f"start_units: unknown power {power!r:.40}")
        if not isinstance(units, list):
            problems.append(f"start_units: {power:.40} must have a list of units")
            continue
        for unit in units:
            where = f"start_units: {power:.40} {quoted(unit, 40)}"
            form = re.fullmatch(_UNIT, unit) if isinstance(unit, str) else None
            if form is None:
                problems.append(f"{where} is not a unit such as 'A PAR' or 'F STP/SC'")
                continue
            letter, location, province = form.groups()
            reason = _stand_problem(facts, UNIT_LETTERS.index(letter), location)
            if reason:
                problems.append(f"{where}: {reason}")
            elif province in taken:
                problems.append(f"{where}: {province} already holds {taken[province]}")
            else:
                taken[province] = unit
    return problems


def _victory_problems(facts: dict) -> list[str]:
    provinces = facts["provinces"].values()
    centers = sum(bool(p.get("supply_center")) for p in provinces)
    homes = {p.get("home_of") for p in provinces}
    problems = [
        f"power {power} has no home center" for power in facts["powers"] if power not in homes
    ]
    victory = facts["victory_supply_centers"]
    most_homes = max(sum(p.get("home_of") == power for p in provinces) for power in facts["powers"])
    what = f"victory_supply_centers is {quoted(victory, 20)}"
    if not 1 <= victory <= centers:
        problems.append(f"{what}, out of reach with {centers} supply centers")
    elif victory <= most_homes:
        problems.append(f"{what}, which a power has with its home centers alone")
    return problems
