"""What a page shows of a review: each decision in words, the better orders as arrows."""

from collections.abc import Mapping, Sequence

from ..pictures.board import orders_svg
from ..pictures.chart import values_svg
from ..pictures.drawing import drawing_of
from ..rules.notation import unit_of
from ..rules.order_words import order_words
from .replay import Replay

_LEFT_OUT = "orders", "best", "phase", "random_loss", "of_judges", "uncertainty", "hindsight"


def review_facts(
    replay: Replay, decisions: Sequence[Mapping], judge: str, done: int, total: int
) -> dict:
    """Return a review for review.js; decisions are Reviewed of play/review.py as dictionaries."""
    numbers = {frame.scene.phase: number for number, frame in enumerate(replay.frames)}
    worth: dict[str, list[float | None]] = {}
    drawing, shown = drawing_of(replay.map), []
    for decision in decisions:
        number, power = numbers[decision["phase"]], decision["power"]
        row = worth.setdefault(power, [None] * len(replay.frames))
        row[number] = decision["worth"] / 100
        better = "?" in decision["mark"]
        orders = {power: decision["best"]}
        better_scene = replay.frames[number].scene.with_orders(replay.map, orders)
        shown.append(
            {key: decision[key] for key in decision if key not in _LEFT_OUT}
            | {
                "number": number,
                "changes": _changes(replay, decision) if better else [],
                "arrows": orders_svg(drawing, better_scene) if better else "",
            }
        )
    names = [frame.scene.phase for frame in replay.frames]
    chart = values_svg(drawing, names, worth) if worth else ""
    return {"decisions": shown, "judge": judge, "done": done, "total": total, "chart": chart}


def _changes(replay: Replay, decision: Mapping) -> list[tuple[str, str, str]]:
    """Return of each unit that is to order something else: its name, its order, the better one."""
    by_unit = [{unit_of(text): text for text in decision[key]} for key in ("orders", "best")]
    submitted, best = by_unit
    changes, letter = [], decision["phase"][-1]
    removal = any(text.endswith(" D") for text in (*decision["orders"], *decision["best"]))
    missing = {"M": "no order: holds", "R": "no order: disbands"}.get(letter, "no build")
    missing = "stays" if letter == "A" and removal else missing
    for unit in sorted({*submitted, *best}):
        if submitted.get(unit) == best.get(unit):
            continue
        words = [
            order_words(replay.map, texts[unit]) if unit in texts else ("", missing)
            for texts in by_unit
        ]
        changes.append((words[0][0] or words[1][0], words[0][1], words[1][1]))
    return changes
