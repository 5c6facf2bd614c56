"""Games of reports: their orders and positions by phase, replayed by our rules."""

from collections.abc import Sequence

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


def _phases_of(report: reports.Report, game_map: Map) -> tuple[list[Phase], list[reports.Remark]]:
    """Return the phases of a report in order, and what is to be noted. A position or a list of
    centers counts if no order is known from before it."""
    first = Game(game_map).phase
    remarks = [
        remark._replace(reason=reports.COUNTED) if remark.kind == "center" else remark
        for remark in report.remarks
    ]
    orders_of: dict[str, dict[str, list[str]]] = {}
    lines: dict[str, dict[tuple[str, str], int]] = {}
    stated: dict[str, list[reports.Entry]] = {}  # positions and centers, by phase
    idle, retreats = [], []
    for entry in report.entries:
        name = entry.phase or first
        if entry.kind == "order":
            name = _phase_of_order(game_map, name, entry.text)
        if entry.kind in ("position", "center"):
            if name in lines or (entry.kind == "center" and lines):
                reason = reports.COUNTED
                remarks.append(reports.Remark(entry.line, entry.text, reason))
            else:
                stated.setdefault(name, []).append(entry)
            continue
        texts = orders_of.setdefault(name, {}).setdefault(entry.power, [])
        moving = phase_kind(name) == "movement"
        if entry.kind == "unit" and moving:
            idle.append((name, entry))
        elif entry.kind and entry.text not in texts:
            texts.append(entry.text)
            lines.setdefault(name, {})[entry.power, entry.text] = entry.line
            remark = retreat_in_remark(game_map, entry.text) if moving else ""
            unit = reading.ordered_unit(game_map, entry.text, reading.likely_kinds(game_map))
            if remark and unit:
                retreats.append((f"{name[:-1]}R", entry.power, unit.place, remark))
    for name, entry in idle:
        texts = orders_of[name][entry.power]
        _, place = reading.read_place(game_map, entry.text)
        if place.province not in _ordered(game_map, texts):
            texts.append(f"{entry.text} H")
            remarks.append(reports.Remark(entry.line, entry.text, reports.HOLDS))
    for name, power, place, remark in retreats:
        texts = orders_of.setdefault(name, {}).setdefault(power, [])
        if place.province not in _ordered(game_map, texts):
            texts.append(f"{notation.place_text(game_map, place)} {remark}")
    phases = []
    for name in sorted({*orders_of, *stated}, key=moment):
        units = by_power(stated.get(name, ()), "position")
        centers = by_power(stated.get(name, ()), "center")
        if units and not phases:
            centers = all_centers(game_map, units, centers)
        orders, places = orders_of.get(name, {}), lines.get(name, {})
        phases.append(Phase(name, orders, units, centers, lines=places))
    return phases, remarks


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
