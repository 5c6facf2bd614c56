"""Games of reports: their orders and positions by phase, replayed by our rules."""

from collections.abc import Mapping, Sequence

from ...constants import OrderKind, phase_kind
from ...errors import UserError
from ...rules import notation, reading
from ...rules.map import Map
from ..game import Game
from ..saved_game import moment
from . import order_blocks, reports
from .order_lines import retreat_in_remark
from .replaying import Note, replayed
from .report_positions import all_centers, by_power, read_position
from .webdiplomacy import Phase


def game_of_report(report: reports.Report, game_map: Map, game_id: str, note: Note) -> dict:
    """Return the saved game of a report of units, or of orders; those without a phase are of the
    map's first. Units without an order hold. An illegal order is kept as void, with a note."""
    state = read_position(game_map, report)
    if state is not None:
        game = Game.from_state(game_map, state)
        game.id = game_id
        return game.to_saved_game()
    phases, remarks = _phases_of(report, game_map)
    if not any(entry.kind == "order" for entry in report.entries):
        raise UserError(f"no phase with orders was found; {order_blocks.FORMS}")
    notes: list[str] = []
    if moment(phases[0].name) > moment(Game(game_map).phase) and not phases[0].units:
        phases = _begun_later(phases, game_map, notes.append)
    game = replayed(phases, game_map, game_id, notes.append)
    own, others = reports.notes_of(remarks)
    for text in (*own, *notes, *others):
        note(text)
    return game.to_saved_game()


# What a report orders: phase -> power -> texts.
_Orders = dict[str, dict[str, list[str]]]


def _phases_of(report: reports.Report, game_map: Map) -> tuple[list[Phase], list[reports.Remark]]:
    """Return the phases of a report in order, and what is to be noted."""
    ordering, stating, counted = _sorted_entries(report.entries, game_map)
    orders: _Orders = {}
    lines: dict[str, dict[tuple[str, str], int]] = {}
    for name, entry in ordering:
        texts = orders.setdefault(name, {}).setdefault(entry.power, [])
        if entry.kind and not _may_hold(name, entry) and entry.text not in texts:
            texts.append(entry.text)
            lines.setdefault(name, {})[entry.power, entry.text] = entry.line
    holding = _add_holds(orders, ordering, game_map)
    _add_retreats(orders, lines, game_map)
    phases = []
    for name in sorted({*orders, *stating}, key=moment):
        units = by_power(stating.get(name, ()), "position")
        centers = by_power(stating.get(name, ()), "center")
        if units and not phases:
            centers = all_centers(game_map, units, centers)
        phases.append(Phase(name, orders.get(name, {}), units, centers, lines=lines.get(name, {})))
    remarks = [
        remark._replace(reason=reports.COUNTED) if remark.kind == "center" else remark
        for remark in report.remarks
    ]
    remarks += [reports.Remark(entry.line, entry.text, reports.COUNTED) for entry in counted]
    remarks += [reports.Remark(entry.line, entry.text, reports.HOLDS) for entry in holding]
    return phases, remarks


def _sorted_entries(
    entries: Sequence[reports.Entry], game_map: Map
) -> tuple[list[tuple[str, reports.Entry]], dict[str, list[reports.Entry]], list[reports.Entry]]:
    """Return entries of orders and of units, each with its phase; those of positions and centers by
    phase; and those of positions and centers that our rules count, since they come after orders: a
    position after some of its phase, a list of centers after any."""
    first = Game(game_map).phase
    ordering: list[tuple[str, reports.Entry]] = []
    stating: dict[str, list[reports.Entry]] = {}
    counted, ordered = [], set()  # phases of which orders are known
    for entry in entries:
        name = entry.phase or first
        if entry.kind not in ("position", "center"):
            name = _phase_of_order(game_map, name, entry.text) if entry.kind == "order" else name
            ordering.append((name, entry))
            if entry.kind and not _may_hold(name, entry):
                ordered.add(name)
        elif name in ordered or (entry.kind == "center" and ordered):
            counted.append(entry)
        else:
            stating.setdefault(name, []).append(entry)
    return ordering, stating, counted


def _may_hold(phase: str, entry: reports.Entry) -> bool:
    """Tell whether an entry is a unit that holds unless it has an order; in winter it is built."""
    return entry.kind == "unit" and phase_kind(phase) == "movement"


def _add_holds(
    orders: _Orders, ordering: Sequence[tuple[str, reports.Entry]], game_map: Map
) -> list[reports.Entry]:
    """Add a hold for each unit of a list that has no order; return the entries of these."""
    holding = []
    for name, entry in ordering:
        if not _may_hold(name, entry):
            continue
        texts = orders[name][entry.power]
        _, place = reading.read_place(game_map, entry.text)
        if place.province not in _ordered(game_map, texts):
            texts.append(f"{entry.text} H")
            holding.append(entry)
    return holding


def _add_retreats(
    orders: _Orders, lines: Mapping[str, Mapping[tuple[str, str], int]], game_map: Map
) -> None:
    """Add the retreats that stand in remarks behind orders: `A Mun H (dislodged, retreats to Ber)`.
    Those of lines of their own come first."""
    kinds = reading.likely_kinds(game_map)
    for name in [name for name in lines if phase_kind(name) == "movement"]:
        for power, text in lines[name]:
            remark = retreat_in_remark(game_map, text)
            unit = reading.ordered_unit(game_map, text, kinds)
            if not (remark and unit):
                continue
            texts = orders.setdefault(f"{name[:-1]}R", {}).setdefault(power, [])
            if unit.place.province not in _ordered(game_map, texts):
                texts.append(f"{notation.place_text(game_map, unit.place)} {remark}")


def _ordered(game_map: Map, texts: Sequence[str]) -> set[int]:
    """Return the provinces whose units some texts order."""
    kinds = reading.likely_kinds(game_map)
    units = (reading.ordered_unit(game_map, text, kinds) for text in texts)
    return {unit.place.province for unit in units if unit}


def _phase_of_order(game_map: Map, phase: str, text: str) -> str:
    """Return the phase of an order that may stand among those of an earlier phase of its season."""
    kind, kinds = reading.order_kind(game_map, text), phase_kind(phase)
    if kind == OrderKind.RETREAT and kinds == "movement":
        return f"{phase[:-1]}R"
    return f"W{phase[1:-1]}A" if kind == OrderKind.BUILD and phase[0] == "F" else phase


def _begun_later(phases: list[Phase], game_map: Map, note: Note) -> list[Phase]:
    at = next((i for i, p in enumerate(phases) if phase_kind(p.name) == "movement"), None)
    if at is None:
        return phases
    for phase in phases[:at]:
        note(f"{phase.name} is skipped: nothing says what its position was")
    kinds, taken, units = reading.likely_kinds(game_map), set(), {}
    for power, texts in phases[at].orders.items():
        for unit in (reading.ordered_unit(game_map, text, kinds) for text in texts):
            if unit is not None and unit.place.province not in taken:
                taken.add(unit.place.province)
                units.setdefault(power, []).append(notation.unit_text(game_map, unit))
    centers = all_centers(game_map, units, phases[at].centers)
    about = "its units are those that have orders, its centers the likely ones"
    note(f"it begins with {phases[at].name}: {about}")
    return [phases[at]._replace(units=units, centers=centers), *phases[at + 1 :]]
