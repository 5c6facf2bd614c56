"""webDiplomacy's numbers and rows. A variant's `variant.json` names territories and countries;
Classic is known without. Source: the site's api/README.md and doc/gamedata/02-spec.md."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from ..._suggest import quoted
from ...constants import COMPLETED, NONE, PHASE_KINDS, phase_name
from ...errors import UserError
from ...records import convert, shipped_toml
from ...rules.map import Map
from ...rules.names import power_called
from ...rules.notation import place_text, province_of
from ...rules.reading import read_order, read_place

FIRST_YEAR = 1901
FINISHED, DRAWN = "Finished", "Drawn"  # a phase; how a game that is over ended (gameOver)
PHASES = ("Diplomacy", "Retreats", "Builds")
MOST_PHASES = 2000
_LETTERS = {"Army": "A", "Fleet": "F"}
_YES = (True, "Yes")


class _Territory(Struct):
    id: int
    name: str


class _Country(Struct):
    countryID: int
    name: str


class _Variant(Struct):
    territories: list[_Territory]
    countries: list[_Country]


class _UnitRow(Struct):
    terrID: int
    countryID: int
    type: str | None = None
    unitType: str | None = None
    retreating: bool | str | None = None


class OrderRow(Struct):
    type: str
    terrID: int | None = None
    toTerrID: int | None = None
    fromTerrID: int | None = None
    unitType: str | None = None
    viaConvoy: bool | str | None = None


class _ArchivedOrder(OrderRow, kw_only=True):
    countryID: int
    dislodged: bool | str | None = None


class _CenterRow(Struct):
    terrID: int
    countryID: int | None = None


class _PhaseRow(Struct):
    phase: str
    units: list[_UnitRow]
    centers: list[_CenterRow]
    orders: list[_ArchivedOrder]
    turn: int = -1


class _History(Struct):
    phases: Annotated[list[_PhaseRow], Meta(min_length=1, max_length=MOST_PHASES)]


class Variant(NamedTuple):
    map: Map
    powers: dict[int, str]  # by country
    places: dict[int, str]  # locations by territory
    numbers: dict[str, int]  # territories by location

    def power(self, country: int | None) -> str:
        return _known(self.powers, country, "country")

    def country(self, power: str) -> int:
        return next(number for number, name in self.powers.items() if name == power)

    def place(self, territory: int | None) -> str:
        return _known(self.places, territory, "territory")


def _known(names: Mapping[int, str], number: int | None, what: str) -> str:
    if number is None or number not in names:
        raise UserError(f"there is no {what} {quoted(number, 40)}")
    return names[number]


def classic(game_map: Map) -> Variant:
    """Return the site's Classic variant; UserError unless the map is like the standard one."""
    try:
        return read_variant(shipped_toml(__package__, "classic.toml"), game_map)
    except UserError:
        reason = f"map {game_map.name} is not the site's Classic: give its variant.json"
        raise UserError(reason) from None


def read_variant(data: object, game_map: Map) -> Variant:
    """Return a site's variant on a map; UserError if their places or powers differ."""
    places, powers = {}, {}
    variant = convert(_Variant, data, "the variant")
    for row in variant.territories:
        _, place = read_place(game_map, row.name)
        places[row.id] = place_text(game_map, place)
    for row in variant.countries:
        power = power_called(game_map, row.name) or row.name
        powers[row.countryID] = game_map.powers[game_map.power_number(power)]
    other = set(places.values()) ^ set(game_map.locations)
    other |= set(powers.values()) ^ set(game_map.powers)
    if other:
        raise UserError(f"map {game_map.name} and the variant differ in {min(other)}")
    return Variant(game_map, powers, places, {place: n for n, place in places.items()})


class Phase(NamedTuple):
    name: str  # such as S1901M; COMPLETED for how it ended
    orders: dict[str, list[str]]  # texts by power
    units: dict[str, list[str]]  # by power, dislodged ones with a star; none: unsaid
    centers: dict[str, list[str]]  # none: unsaid
    retreats: Mapping[str, list[str]] = MappingProxyType({})  # dislodged unit -> places
    # Of a report: (power, text) -> line.
    lines: Mapping[tuple[str, str], int] = MappingProxyType({})


def phase_of(turn: int, phase: str) -> str:
    if phase == FINISHED:
        return COMPLETED
    if not 0 <= turn < 10_000 or phase not in PHASES:
        raise UserError(f"turn {quoted(turn, 20)}, {quoted(phase, 20)} is not a phase")
    if phase == "Builds":
        number = PHASE_KINDS.index("adjustments")
    else:
        number = 2 * (turn % 2) + (phase == "Retreats")
    return phase_name(FIRST_YEAR + turn // 2, number)


def history_phases(variant: Variant, data: object) -> list[Phase]:
    """Return the phases of a site's history in order; UserError names what is wrong."""
    rows = convert(_History, data, "the history").phases
    phases = []
    for before, row in zip([None, *rows], rows):
        name = phase_of(row.turn, row.phase)
        try:
            phases.append(_phase(variant, name, row))
            if name == COMPLETED and before is not None and before.phase in PHASES:
                _complete_end(variant, phases[-1], before)
        except UserError as error:
            raise UserError(f"phase {name} of the history: {error}") from None
    return phases


def _phase(variant: Variant, name: str, row: _PhaseRow) -> Phase:
    units: dict[str, list[str]] = {power: [] for power in variant.map.powers}
    letters = {}
    for unit in row.units:
        text = unit_text(variant, unit.type or unit.unitType, unit.terrID)
        star = "*" if unit.retreating in _YES else ""
        units[variant.power(unit.countryID)].append(star + text)
        letters[province_of(text)] = text[0]
    centers: dict[str, list[str]] = {power: [] for power in variant.map.powers}
    for center in row.centers:  # other provinces have owners there, too
        place = province_of(variant.place(center.terrID))
        if center.countryID and _is_center(variant.map, place):
            centers[variant.power(center.countryID)].append(place)
    orders: dict[str, list[str]] = {power: [] for power in variant.map.powers}
    for order in row.orders:
        orders[variant.power(order.countryID)].append(order_text(variant, order, letters))
    return Phase(name, orders, units, centers)


def _is_center(game_map: Map, province: str) -> bool:
    return bool(game_map.board.province_center[game_map.province_index[province]] != NONE)


def _complete_end(variant: Variant, end: Phase, before: _PhaseRow) -> None:
    """Mark who was dislodged in the phase before the end, and let its fall take centers. The site
    tells the units as they stand after that phase, and the centers as they were before."""
    gone = {
        (variant.power(order.countryID), variant.place(order.terrID))
        for order in before.orders
        if before.phase == "Diplomacy" and order.dislodged in _YES
    }
    takes = before.turn % 2 and before.phase != "Builds" and not gone
    for power, texts in end.units.items():
        end.units[power] = [f"*{t}" if (power, t.split()[1]) in gone else t for t in texts]
        for place in map(province_of, texts if takes else ()):
            for other, held in end.centers.items():
                end.centers[other] = [code for code in held if code != place]
            end.centers[power] += [place] if _is_center(variant.map, place) else []


def unit_text(variant: Variant, kind: str | None, territory: int | None) -> str:
    if kind not in _LETTERS:
        raise UserError(f"{quoted(kind, 20)} is neither Army nor Fleet")
    place = variant.place(territory)
    return f"{_LETTERS[kind]} {place if kind == 'Fleet' else province_of(place)}"


def order_text(variant: Variant, row: OrderRow, letters: Mapping[str, str]) -> str:
    """Return an order of the site as a text; `letters` are A or F by province of the units."""
    kind = row.type
    if kind == "Wait":
        return "WAIVE"
    where = row.toTerrID or row.terrID  # of winter orders: open ones, and archived
    if kind in ("Build Army", "Build Fleet"):
        return f"{unit_text(variant, kind.removeprefix('Build '), where)} B"
    if kind == "Destroy":
        place = province_of(variant.place(where))
        return f"{_letter(letters, place)} {place} D"
    here = variant.place(row.terrID)
    unit = f"{_letter(letters, province_of(here), row.unitType)} {here}"
    if kind == "Hold":
        return f"{unit} H"
    if kind == "Disband":
        return f"{unit} D"
    goal = variant.place(row.toTerrID)
    if kind == "Retreat":
        return f"{unit} R {goal}"
    if kind == "Move":
        return f"{unit} - {goal}{' VIA' if row.viaConvoy in _YES else ''}"
    if kind == "Support hold":
        return f"{unit} S {_letter(letters, province_of(goal))} {goal}"
    origin = variant.place(row.fromTerrID)
    if kind == "Support move":
        return f"{unit} S {_letter(letters, province_of(origin))} {origin} - {goal}"
    if kind == "Convoy":
        return f"{unit} C A {province_of(origin)} - {province_of(goal)}"
    raise UserError(f"{quoted(kind, 30)} is not a kind of order")


def _letter(letters: Mapping[str, str], province: str, kind: str | None = None) -> str:
    if kind in _LETTERS:
        return _LETTERS[kind]
    if province not in letters:
        raise UserError(f"there is no unit in {province}")
    return letters[province]


def order_row(variant: Variant, text: str, winter: bool, path: Sequence[str] = ()) -> dict:
    """Return an order of ours as the site takes it. `path` are the provinces of its convoy, from
    the army's to the last fleet's."""
    row: dict = dict.fromkeys(("terrID", "fromTerrID", "toTerrID", "viaConvoy"))
    if text == "WAIVE":
        return row | {"type": "Wait"}
    number, provinces = variant.numbers, variant.map.provinces
    order, (letter, here, verb, *_) = read_order(variant.map, text), text.split()
    row["terrID"] = number[here]
    goal = number[place_text(variant.map, order.aim)] if order.targets else None
    to, other = (number[provinces[v]] for v in (order.aim.province, order.units[-1].place.province))
    if path:
        row["convoyPath"] = [number[place] for place in path]
    if verb == "D" and winter:
        parent = number[province_of(here)]  # by which the site names units that are removed
        return row | {"type": "Destroy", "terrID": parent, "toTerrID": parent}
    if verb == "B":
        kind = "Build Army" if letter == "A" else "Build Fleet"
        return row | {"type": kind, "toTerrID": number[here]}
    if verb == "-":
        return row | {"type": "Move", "toTerrID": goal, "viaConvoy": "Yes" if order.via else "No"}
    if verb == "S" and goal is None:
        return row | {"type": "Support hold", "toTerrID": other}
    if verb in ("S", "C"):
        kind = "Support move" if verb == "S" else "Convoy"
        return row | {"type": kind, "fromTerrID": other, "toTerrID": to}
    kind = {"H": "Hold", "R": "Retreat", "D": "Disband"}[verb]
    return row | {"type": kind, "toTerrID": goal}
