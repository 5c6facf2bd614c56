"""Slow plain-Python adjudicator: the tests' second opinion, which shares no code with the engine.

    orders.py       the map, reading orders, lists of legal orders
    movement.py     movement, solved as equations
    adjudicator.py  retreats and adjustments, of legal orders alone

Positions and notation are explained in orders.py.
"""

from __future__ import annotations

from reference.orders import ReferenceMap, Units, home, owed, province, retreating


def adjudicate_retreats(
    units: Units, retreats: dict[str, dict[str, list[str]]], orders: dict[str, str]
) -> Units:
    """Return what stands after one order text for each dislodged unit."""
    goals = {unit: text.split()[3] for unit, text in orders.items() if " R " in text}
    provinces = [province(goal) for goal in goals.values()]
    after = {power: [u for u in texts if u[0] != "*"] for power, texts in units.items()}
    for power, options in retreating(units, retreats).items():
        for unit in options:
            if unit in goals and provinces.count(province(goals[unit])) == 1:
                after.setdefault(power, []).append(f"{unit[0]} {goals[unit]}")
    return {power: sorted(texts) for power, texts in after.items()}


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
) -> Units:
    """Return what stands after each power's builds, removals and waives.

    Rule  builds not ordered are waived, removals not ordered made
    """
    after = {power: list(texts) for power, texts in units.items()}
    for power in units:
        if power == game_map.neutral:
            continue
        for text in orders.get(power, []):
            if text.endswith(" B"):
                after[power].append(text[:-2])
            elif text.endswith(" D"):
                after[power].remove(text[:-2])
        left = owed({"units": after, "centers": centers}, power)
        gone = civil_disorder(game_map, after[power], centers.get(power, []))[: max(0, -left)]
        after[power] = [unit for unit in after[power] if unit not in gone]
    return {power: sorted(texts) for power, texts in after.items()}
