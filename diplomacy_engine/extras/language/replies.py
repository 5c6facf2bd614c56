"""What a model has written, read as orders: which are legal, and what is wrong with the others."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from ..._suggest import printable, quoted
from ...errors import UserError
from ...press.daide import is_daide
from ...rules.notation import no_order, order_texts, ordered_unit
from .prompt import OPENING
from .questions import Question, Slot, TalkQuestion

MOST_LINES = 1000  # of a reply that are looked at
MOST_OF_A_LINE = 500  # letters
MOST_SAID = 200  # letters of a sentence
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_BULLET = re.compile(r"^(?:[-*•]|\(?\d{1,3}[.):])\s+")
_STRING = re.compile(r'[{}]|("(?:[^"\\\n]|\\.){0,500}")(\s*:)?')  # of JSON; the second: a key


class Reading(NamedTuple):
    """What came of a reply."""

    numbers: dict[int, int]  # slot -> order number, for those with a legal order
    complaints: list[str]  # what is wrong with lines and units, a sentence each


def read_reply(
    question: Question, asked: Sequence[int], given: Mapping[int, int], text: str
) -> Reading:
    """Return the legal orders of a reply for the slots `asked`; those `given` (slot -> number)
    stay. Anything but orders is skipped, and of two legal orders for one unit the first counts."""
    game, power = question.game.copy(), question.power
    texts = game.vector_game.vocabulary.texts
    accepted = [texts[number] for number in given.values()]
    numbers: dict[int, int] = {}
    complaints = []
    kinds = game.unit_kinds
    for line in _order_lines(question, text, kinds):
        ordered, unit = {**given, **numbers}, ordered_unit(game.map, line, kinds)
        places = map(question.province, ordered.values())
        if not question.winter and unit is not None and unit.place.province in places:
            continue  # of several orders the first counts
        try:
            game.submit(power, [*accepted, line])
            number, slot = _slot_of(question, game, asked, ordered)
        except UserError as error:
            reason = str(error).removeprefix(f"{line!r:.200}: ")
            complaints.append(f"{quoted(line)} is not legal: {reason}")
            continue
        if slot is None:
            continue
        accepted.append(texts[number])
        numbers[slot] = number
    missing = [question.slots[s].unit for s in asked if s not in numbers]
    if not numbers and not complaints and text.strip():
        example = question.slots[asked[0]].texts[0]
        complaints.append(
            f"no line of it is an order, such as {example!r}; it begins {quoted(text.strip(), 60)}"
        )
    if missing:
        complaints.append(f"no legal order for {', '.join(missing)}")
    return Reading(numbers, complaints)


def read_choices(question: TalkQuestion, asked: Sequence[int], text: str) -> Reading:
    known = {_plain(text): number for number, text in enumerate(question.texts)}
    lines = reply_lines(text, lambda line: _plain(line) in known)
    found = [known[line] for line in map(_plain, lines) if line in known]
    if len(found) != len(asked):
        return Reading({}, [f"{len(found)} lines are possible answers, not {len(asked)}"])
    return Reading(dict(zip(asked, found)), [])


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def sentence_of(text: str) -> str:
    """Return the first line of a reply as a power says it: one line of at most MOST_SAID letters.
    Nothing, if it could be read as an offer or an answer: what is said binds nobody."""
    lines = (" ".join(line.split()) for line in _without_thoughts(text).splitlines())
    line = next((line for line in lines if line), "").strip("`'\"* ")
    return "" if is_daide(line) else printable(line)[:MOST_SAID]


def reply_lines(text: str, wanted: Callable[[str], object]) -> list[str]:
    """Return the texts of JSON in a reply that are wanted, wherever they stand; without any, its
    lines, without bullets and quotation marks."""
    text = _without_thoughts(text)
    found = _json_texts(text, wanted)
    lines = found or text.rpartition(OPENING)[2].splitlines()
    cleaned = (_BULLET.sub("", line.strip()).strip("`'\"*,; ") for line in lines[:MOST_LINES])
    return [line for line in cleaned if 0 < len(line) <= MOST_OF_A_LINE]


def _order_lines(question: Question, text: str, kinds: Sequence[int]) -> list[str]:
    game_map = question.game.map

    def whole(said: str) -> bool:
        return not any(no_order(game_map, part) for part in order_texts(said) or [""])

    return [
        order
        for line in reply_lines(text, whole)
        for order in takewhile(
            lambda part: _is_meant_as_order(question, part, kinds), order_texts(line)
        )
    ]


def _without_thoughts(text: str) -> str:
    """Return a text without what stands between <think> and the next </think>. In one pass: a
    pattern for the whole would look for an end once for each <think> that has none, and hold the
    interpreter's lock meanwhile."""
    kept, end, opened = [], 0, None
    for tag in _TAG.finditer(text):
        if not tag[1]:
            opened = tag.start() if opened is None else opened
        elif opened is not None:
            kept.append(text[end:opened])
            end, opened = tag.end(), None
    return "".join(kept) + text[end:]


def _json_texts(text: str, wanted: Callable[[str], object]) -> list[str]:
    """Return the wanted texts of JSON in a reply, whole or not: alone, with the key, or with those
    before it in an object, as in {"unit": "A PAR", "order": "- BUR"}, and the object's key."""
    texts, key, held = [], "", [""]
    begin = min((at for at in map(text.find, "{[") if at >= 0), default=len(text))
    for match in islice(_STRING.finditer(text, begin), 5 * MOST_LINES):
        if not match[1]:
            key, held = "", [key]
            continue
        try:
            said = json.loads(match[1])
        except ValueError:
            continue
        if match[2]:
            key = said
            continue
        held.append(said)
        tried = (said, f"{key} {said}", " ".join(held[1:5]), " ".join(held[:5]))
        texts += [one for one in tried if wanted(one)][:1]
        key = ""
    return texts


def _is_meant_as_order(question: Question, line: str, kinds: Sequence[int]) -> bool:
    game_map = question.game.map
    unit = ordered_unit(game_map, line, kinds)
    if not no_order(game_map, line):
        return unit is not None or "WAIVE" in line.upper()
    if unit is None or len(line.split()) > 12:
        return False
    return (
        any(ordered_unit(game_map, slot.texts[0]) == unit for slot in question.slots)
        or line.isupper()
    )


def _slot_of(
    question: Question, game, asked: Sequence[int], given: Mapping[int, int]
) -> tuple[int, int | None]:
    """Return the number of the last order that a game has taken, and the slot it is for. No slot if
    that is not among those asked, or has an order."""
    if game.orders[question.power][-1] == "WAIVE":
        number = question.waive
    else:
        before = set(given.values())
        new = [number for number in game.order_numbers().values() if number not in before]
        if not new:
            return question.waive, None
        number = new[0]
    free = [s for s in asked if s not in given]
    return number, next((s for s in free if number in question.slots[s].numbers), None)


def complaint(reading: Reading, slots: Sequence[Slot]) -> str:
    lines = ["Not all of that can be carried out:"]
    lines += [f"- {sentence}" for sentence in reading.complaints[:20]]
    lines.append("Legal orders")
    lines += [f"{slot.unit}: {'; '.join(slot.texts)}" for slot in slots]
    lines.append(f"Write nothing but {len(slots)} line(s), an order each, for:")
    lines += [slot.unit for slot in slots]
    return "\n".join(lines) + "\n"
