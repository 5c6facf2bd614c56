"""Slow plain-Python adjudicator: the tests' second opinion, which shares no code with the engine.

    orders.py       the map, reading orders, lists of legal orders
    reference_movement.py     movement, solved as equations
    adjudicator.py  retreats, adjustments, and the names of all three for the tests

Positions and notation are explained in orders.py. Result words of retreats are bounce and
disband (two to one province), void and disband (illegal), disband; of adjustments void.
"""

from __future__ import annotations

from typing import NamedTuple

from reference.movement import Movement, MovementResult, adjudicate_movement
from reference.orders import (
    Board,
    Order,
    ReferenceMap,
    Units,
    home,
    legal_orders,
    owed,
    province,
    retreating,
)

__all__ = [
    "AdjustmentResult",
    "Board",
    "Movement",
    "MovementResult",
    "Order",
    "ReferenceMap",
    "RetreatResult",
    "adjudicate_adjustments",
    "adjudicate_movement",
    "adjudicate_retreats",
    "civil_disorder",
    "legal_orders",
    "sort_orders",
]


class RetreatResult(NamedTuple):
    units: Units
    disbanded: list[str]  # dislodged units that are gone
    results: dict[str, list[str]]  # dislodged unit -> result words


class AdjustmentResult(NamedTuple):
    units: Units
    removed: Units  # by civil disorder, in the order of removal
    results: list[tuple[str, str, list[str]]]  # power, order text, result words; as submitted


def _read_retreat(
    game_map: ReferenceMap, retreats: dict[str, list[str]], text: str
) -> tuple[str | None, str | None]:
    """The dislodged unit a text orders, if any, and its goal: a location, "D", or None if void."""
    words = text.upper().split()
    meant = [u for u in retreats if (u[0], home(u)) == (words[0], province(words[1]))]
    if not meant:
        return None, None
    unit = meant[0]
    if words[2:] == ["D"]:
        return unit, "D"
    if len(words) == 4 and words[2] == "R":
        goals = [g for g in game_map.meant(unit[0], words[3]) if g in retreats[unit]]
        return unit, goals[0] if len(goals) == 1 else None
    return unit, None


def sort_orders(
    game_map: ReferenceMap, position: dict, orders: dict[str, list[str]]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """From each power's list, one order for each of its units in a movement or retreat phase.

    Also gives the orders that belong to no unit of the power, which touch nothing.
    Rule  of two legal orders the first counts; an illegal one gives way to a legal one
    """
    chosen: dict[str, str] = {}
    is_legal: dict[str, bool] = {}
    strays = []
    board = Board(game_map, position["units"])
    retreats = retreating(position["units"], position.get("retreats", {}))
    for power, texts in orders.items():
        for text in texts:
            words = text.upper().split()
            if len(words) < 2:
                unit, legal = None, False
            elif position["name"].endswith("R"):
                unit, goal = _read_retreat(game_map, retreats.get(power, {}), text)
                legal = goal is not None
            else:
                unit = board.unit(words[0], words[1])
                unit = unit if unit and board.owner[unit] == power else None
                legal = board.read(text) is not None
            if unit is None:
                strays.append((power, text))
            elif unit not in chosen or (legal and not is_legal[unit]):
                chosen[unit], is_legal[unit] = text, legal
    return chosen, strays


def adjudicate_retreats(
    game_map: ReferenceMap,
    units: Units,
    retreats: dict[str, dict[str, list[str]]],
    orders: dict[str, str],
) -> RetreatResult:
    """Adjudicate one order text for each dislodged unit; `units` are the standing ones."""
    goals: dict[str, str] = {}
    results: dict[str, list[str]] = {}
    retreats = retreating(units, retreats)
    for options in retreats.values():
        for unit in options:
            meant, goal = _read_retreat(game_map, options, orders.get(unit, f"{unit} D"))
            if meant != unit or goal is None:
                results[unit] = ["void", "disband"]
            elif goal == "D":
                results[unit] = ["disband"]
            else:
                goals[unit] = goal
    provinces = [province(goal) for goal in goals.values()]
    after = {power: [u for u in texts if u[0] != "*"] for power, texts in units.items()}
    for power, options in retreats.items():
        for unit in options:
            if unit in goals and provinces.count(province(goals[unit])) == 1:
                after.setdefault(power, []).append(f"{unit[0]} {goals[unit]}")
                results[unit] = []
            elif unit in goals:
                results[unit] = ["bounce", "disband"]
    standing = {power: sorted(texts) for power, texts in sorted(after.items()) if texts}
    disbanded = sorted(unit for unit, words in results.items() if words)
    return RetreatResult(standing, disbanded, results)


def civil_disorder(game_map: ReferenceMap, units: list[str], centers: list[str]) -> list[str]:
    """A power's units in the order in which they are removed without orders.

    Rule  2023 rulebook, DATC 4.D.8: farthest from the owned centers over any kind of province,
          fleets before armies, then by the English names of the provinces
    """
    distance = dict.fromkeys(centers, 0)
    ring = list(centers)
    while ring:
        here = ring.pop(0)
        for there in game_map.neighbors[here]:
            if there not in distance:
                distance[there] = distance[here] + 1
                ring.append(there)

    def rank(unit: str) -> tuple[float, bool, str]:
        code = home(unit)
        return -distance.get(code, float("inf")), unit[0] == "A", game_map.name[code]

    return sorted(units, key=rank)


def adjudicate_adjustments(
    game_map: ReferenceMap,
    units: Units,
    centers: dict[str, list[str]],
    orders: dict[str, list[str]],
) -> AdjustmentResult:
    """Adjudicate each power's list of builds, removals and waives, first legal ones first.

    Rule  DATC 4.D.4 to 4.D.6; builds not ordered are waived, removals not ordered made
    """
    position = {"name": "W1901A", "units": units, "centers": centers}
    listed = legal_orders(game_map, position)
    after = {power: list(texts) for power, texts in units.items()}
    removed: Units = {}
    results = []
    for power in dict.fromkeys([*units, *orders]):
        left = owed(position, power)
        own_centers = [c for c, owner in game_map.home_of.items() if owner == power]
        if game_map.build_any:
            own_centers = centers.get(power, [])
        if power == game_map.neutral:
            continue
        for text in orders.get(power, []):
            words = text.upper().split()
            done = False
            if words == ["WAIVE"]:
                done = left > 0 and any("WAIVE" in listed[center] for center in own_centers)
                left -= done
            elif len(words) == 3 and words[2] == "B" and left > 0:
                goals = game_map.meant(words[0], words[1])
                center = province(words[1])
                build = f"{words[0]} {goals[0]}" if len(goals) == 1 else ""
                free = center not in {home(unit) for unit in after.get(power, [])}
                done = free and center in own_centers and f"{build} B" in listed[center]
                if done:
                    after.setdefault(power, []).append(build)
                    left -= 1
            elif len(words) == 3 and words[2] == "D" and left < 0:
                code = province(words[1])
                gone = [u for u in after.get(power, []) if (u[0], home(u)) == (words[0], code)]
                done = bool(gone)
                if done:
                    after[power].remove(gone[0])
                    left += 1
            results.append((power, text, [] if done else ["void"]))
        if left < 0:
            removed[power] = civil_disorder(game_map, after[power], centers.get(power, []))[:-left]
            after[power] = [unit for unit in after[power] if unit not in removed[power]]
    standing = {power: sorted(texts) for power, texts in sorted(after.items()) if texts}
    return AdjustmentResult(standing, removed, results)
