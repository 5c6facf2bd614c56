"""The orders of a replay in words, as both pages show them."""

from ..constants import phase_kind
from ..rules.words import in_words, order_words
from .replay import Replay


def order_lines(replay: Replay, number: int) -> list[dict]:
    """Return the orders of a phase in words, and the units that held without one.

    Of each: power; text; unit and words, both in words; result, its words; said, the result in a
    sentence.
    """
    game_map, frame, lines = replay.map, replay.frames[number], []
    last = number == len(replay.frames) - 1
    played = bool(frame.outcome) or not (last or frame.declared)  # a vote may have ended it
    moved = played and phase_kind(frame.scene.phase) == "movement"
    without = "hold (no order)" if moved else "no order"

    def line(power: str, text: str, unit: str, words: str, result=(), said: str = "") -> dict:
        found = {"power": power, "text": text, "unit": unit, "words": words}
        return found | {"result": list(result), "said": said}

    for power in game_map.powers:
        ordered = set()
        for given in frame.orders.get(power, ()):
            unit, words = order_words(game_map, given.text)
            if given.text == f"{given.unit} (no order)":
                unit, words = order_words(game_map, f"{given.unit} H")[0], without
            ordered.add(given.unit)
            said = in_words(game_map, given.said)
            lines.append(line(power, given.text, unit, words, given.words, said))
        for unit in frame.scene.units[power] if moved else ():
            if unit not in ordered:
                name, _ = order_words(game_map, f"{unit} H")
                lines.append(line(power, unit, name, without))
    return lines
