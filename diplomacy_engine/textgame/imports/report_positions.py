"""The position that a report states: the units and centers that it lists for each power."""

from collections.abc import Iterable, Mapping, Sequence

from ...constants import NONE, phase_kind, phase_name
from ...errors import UserError
from ...rules.map import Map
from ...rules.notation import province_of
from .reports import GROUPED, Entry, EntryKind, Report, shown_line


def read_position(game_map: Map, report: Report) -> dict | None:
    """Return the state that a report of units says; None if it has orders."""
    units = by_power(report.entries, "unit", "position")
    centers = by_power(report.entries, "center")
    if not units or any(entry.kind == "order" for entry in report.entries):
        return None
    for line, text, reason, _ in report.remarks:
        if reason not in GROUPED:
            raise UserError(f"{shown_line(line, text)}, is no unit or center: {reason}")
    phases = {entry.phase for entry in report.entries}
    if len(phases) > 1:
        raise UserError(f"a position has one phase, not {' and '.join(sorted(phases))}")
    name = phases.pop() or phase_name(int(game_map.board.first_year), 0)
    if phase_kind(name) == "retreats":
        raise UserError(f"{name}: it needs the orders before, which decide the retreats")
    return {"name": name, "units": units, "centers": all_centers(game_map, units, centers)}


def by_power(entries: Iterable[Entry], *kinds: EntryKind) -> dict[str, list[str]]:
    """Return power -> the texts of its entries of some kinds."""
    texts: dict[str, list[str]] = {}
    for entry in entries:
        if entry.kind in kinds:
            texts.setdefault(entry.power, []).append(entry.text)
    return texts


def all_centers(
    game_map: Map, units: Mapping[str, Sequence[str]], named: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Return power -> its centers. A power in `named` has the centers named there. Any other power
    has the centers on which it stands, and those of its home on which nobody does. `units` are
    texts by power."""
    board = game_map.board
    standing = {province_of(text): power for power, own in units.items() for text in own}
    owned = {power: list(codes) for power, codes in named.items()}
    taken = {code for codes in named.values() for code in codes}
    for province, code in enumerate(game_map.provinces):
        home = board.home_power[province]
        owner = standing.get(code, game_map.powers[home] if home != NONE else "")
        is_unclaimed = board.province_center[province] != NONE and code not in taken
        owner_names_none = owner != "" and owner not in named
        if is_unclaimed and owner_names_none:
            owned.setdefault(owner, []).append(code)
    return owned
