"""A phase of a replay in words: its orders for a page, and all of it for a terminal."""

from typing import NamedTuple

from .._suggest import counted, printable
from ..constants import phase_kind
from ..rules.map import Map
from ..rules.order_words import in_words, order_words
from .replay import Frame, Replay


class OrderLine(NamedTuple):
    """An order as pages show it."""

    power: str
    text: str
    unit: str  # in words
    words: str  # the order without its unit
    result: list[str]  # result words
    sentence: str  # the result


def order_lines(replay: Replay, number: int) -> list[dict]:
    """Return the orders of a phase, and the units that held without one, each an OrderLine as the
    dictionary that pages read."""
    game_map = replay.map
    scene = replay.frames[number].scene
    moved = replay.was_played(number) and phase_kind(scene.phase) == "movement"
    no_order = "hold (no order)" if moved else "no order"
    lines: list[OrderLine] = []
    for power in game_map.powers:
        orders = scene.orders.get(power, ())
        for order in orders:
            unit, words = order_words(game_map, order.text)
            if order.is_missing:
                unit, words = _unit_words(game_map, order.unit), no_order
            sentence = in_words(game_map, order.said)
            lines.append(OrderLine(power, order.text, unit, words, [*order.words], sentence))
        ordered = {order.unit for order in orders}
        for unit in scene.units[power] if moved else ():
            if unit not in ordered:
                name = _unit_words(game_map, unit)
                lines.append(OrderLine(power, unit, name, no_order, [], ""))
    return [line._asdict() for line in lines]


def _unit_words(game_map: Map, unit: str) -> str:
    return order_words(game_map, f"{unit} H")[0]


def frame_text(replay: Replay, number: int) -> str:
    """Return a phase for a terminal: its position, talk and orders."""
    frame = replay.frames[number]
    lines = [
        f"{replay.map.name} {frame.scene.phase}  phase {number + 1} of {len(replay.frames)}  "
        f"game {replay.id}: {replay.result}"
    ]
    lines += [
        f"  {sender} to {recipient}: {' '.join(message.split())}"
        for sender, recipient, message in frame.talk
    ]
    lines += [f"  {power} {words}" for power, _, words in frame.declared]
    for power in replay.map.powers:
        lines += _power_lines(replay, frame, power)
    # Orders and ids are as somebody wrote them; a terminal would obey what is in them.
    return "\n".join(printable(part) for line in lines for part in line.split("\n"))


def _power_lines(replay: Replay, frame: Frame, power: str) -> list[str]:
    """Return a power's centers, and its orders with results, or else its units."""
    centers = frame.scene.centers[power]
    units = frame.scene.units[power]
    orders = frame.scene.orders.get(power, ())
    if not (centers or units or orders):
        return []
    player = f" ({replay.players[power]})" if power in replay.players else ""
    lines = [f"\n{power}{player}  {counted(len(centers), 'center')}: {' '.join(centers)}"]
    wide = max((len(shown.text) for shown in orders), default=0)
    lines += [f"  {shown.text:{wide}}  {shown.said}".rstrip() for shown in orders]
    if not orders:
        lines.append(f"  {', '.join(units)}")
    gone = frame.scene.dislodged.get(power, ())
    if gone and not orders:
        lines.append(f"  dislodged: {', '.join(gone)}")
    return lines
