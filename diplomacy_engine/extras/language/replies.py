"""A model's reply, read as orders: the legal ones, and the mistakes of the others."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice, takewhile
from typing import NamedTuple

from ..._suggest import printable, quoted
from ...errors import UserError
from ...press.daide import is_daide
from ...rules.map import Map
from ...rules.notation import OrderText
from ...rules.reading import MAX_TEXT, no_order, ordered_unit, read_order
from ...textgame.game import Game
from ...textgame.order_texts import order_texts
from . import thoughts
from .questions import Question, Slot, TalkQuestion

MOST_OF_A_LINE = 500  # letters
MOST_SAID = 200  # letters of a sentence
_QUOTES = str.maketrans("\u201c\u201d\u201e\u2018\u2019\xab\xbb", '"""\'\'""')
_LIKE = thoughts.patterns("lines")
_MOST_CUTS = 12  # of a line, from its end on


class _Line(NamedTuple):
    """A line of a reply that is meant as an order."""

    text: str
    place: int | None  # the province whose unit it names
    order: OrderText | None


class Reading(NamedTuple):
    """What came of a reply."""

    numbers: dict[int, int]  # slot -> order number, for those with a legal order
    complaints: list[str]  # what is wrong with lines and units, a sentence each

    @property
    def verdict(self) -> str:
        return "; ".join(self.complaints) or "legal"


def read_reply(
    question: Question,
    open_slots: Sequence[int],
    ordered: Mapping[int, int],
    text: str,
    cut_off: bool = False,
) -> Reading:
    """Return the legal orders of a reply for `open_slots`; those already `ordered` (slot -> number)
    stay. Anything but orders is skipped. Of several lists the last complete one counts; if none is
    complete, and they differ, no order does. A reply that is `cut_off` counts only if it begins
    with its orders, or says where they begin."""
    game, slots = question.game.copy(), question.slots
    texts = game.vector_game.vocabulary.texts
    accepted = [texts[number] for number in ordered.values()]
    numbers: dict[int, int] = {}
    lines, complaints = _decision(question, open_slots, text, cut_off)
    for line in lines:
        taken = {*ordered.values(), *numbers.values()}
        if not question.winter and line.place in {*map(question.province, taken)}:
            continue
        try:
            game.submit(question.power, [*accepted, line.text])
            _check_coast(question, game, line.order)
            new = set(game.order_numbers().values()) - taken or {question.waive}
        except UserError as error:
            reason = str(error).removeprefix(f"{line.text!r:.200}: ")
            complaints.append(f"{quoted(line.text)} is not legal: {reason}")
            continue
        accepted.append(line.text)
        for slot in open_slots:  # a move may settle the coast of an earlier support
            legal = new.intersection(slots[slot].numbers)
            if legal and not (question.winter and slot in numbers):
                numbers[slot] = legal.pop()
                new.remove(numbers[slot])
    missing = [slots[s].unit for s in open_slots if s not in numbers]
    if not numbers and not complaints and text.strip():
        example = slots[open_slots[0]].texts[0]
        complaints.append(
            f"no line of it is an order, such as {example!r}; it begins {quoted(text.strip(), 60)}"
        )
    if missing:
        complaints.append(f"no legal order for {', '.join(missing)}")
    return Reading(numbers, complaints)


def _check_coast(question: Question, game: Game, order: OrderText | None) -> None:
    """Raise UserError if an order that was just submitted supports another power's fleet to any of
    several coasts: it is not known to which that one goes."""
    is_clear = game.orders[question.power][-1] in game.vector_game.vocabulary.number
    if order and not is_clear and order.other.place.province not in _own_provinces(question):
        raise UserError("it has to name the coast of another power's move")


def _own_provinces(question: Question) -> set[int]:
    return {question.province(slot.numbers[0]) for slot in question.slots}


def read_choices(
    question: TalkQuestion, open_slots: Sequence[int], text: str, cut_off: bool = False
) -> Reading:
    """Return the possible answers of a reply; none unless there is one for each open slot."""
    if cut_off:
        return Reading({}, ["it is cut off"])
    answers = {_plain(text): number for number, text in enumerate(question.texts)}

    def numbers_of(section: thoughts.Section) -> list[int]:
        plain = map(_plain, lines_of(section, lambda line: _plain(line) in answers))
        return [answers[line] for line in plain if line in answers]

    numbers = thoughts.decided(thoughts.sections(text), numbers_of)
    if len(numbers) != len(open_slots):
        return Reading({}, [f"{len(numbers)} lines are possible answers, not {len(open_slots)}"])
    return Reading(dict(zip(open_slots, numbers)), [])


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def sentence_of(text: str) -> str:
    """Return the first line of a reply as a power says it: one line of at most MOST_SAID letters.
    Nothing, if it could be read as an offer or an answer: what is said binds nobody."""
    spoken = thoughts.decided(
        thoughts.sections(text), lambda section: [*filter(None, map(str.strip, section.lines))]
    )
    if spoken and spoken[0][0] in "[{" and (lists := _json_texts(" ".join(spoken), str.strip)):
        texts = [text for texts in lists for text in texts]
        spoken = texts if len(texts) == 1 else []  # in doubt nothing is said
    line = " ".join(next(iter(spoken), "").split()).strip("`'\"* ")
    return "" if is_daide(line) else printable(line)[:MOST_SAID]


def lines_of(section: thoughts.Section, wanted: Callable[[str], object]) -> list[str]:
    """Return a section's lines, or where it has JSON the texts in it that are wanted, without
    bullets and quotation marks."""
    return [line for lines in _lists_of(section, wanted) for line in lines]


def _lists_of(section: thoughts.Section, wanted: Callable[[str], object]) -> list[list[str]]:
    """Return what `lines_of` does: the texts of one JSON list together, any other line alone."""
    text = "\n".join(section.lines).translate(_QUOTES)
    lists = _json_texts(text, wanted) or [[line] for line in text.splitlines()]
    cleaned = [[*map(_cleaned, lines)] for lines in lists[: thoughts.MOST_LINES]]
    return [[line for line in lines if 0 < len(line) <= MOST_OF_A_LINE] for lines in cleaned]


def _cleaned(line: str) -> str:
    line = _LIKE["arrows"].sub(" -> ", _LIKE["tag"].sub(" ", line[: 4 * MOST_OF_A_LINE]))
    line = _LIKE["signs"].sub(" ", line)
    line = line.replace("`", "").replace("**", "").strip("'\"*,;_~>|$ \t")
    return _LIKE["bullet"].sub("", line, 1).strip("'\"*,;_ ")


def _decision(
    question: Question, open_slots: Sequence[int], text: str, cut_off: bool
) -> tuple[list[_Line], list[str]]:
    """Return the lines of a reply that count, and what is unclear about them."""
    parts = thoughts.sections(text)
    order_lines = partial(_order_lines, question)
    if cut_off:
        first = next(iter(lines_of(parts[0], bool)), "{")
        if first[0] not in "[{" and not order_lines(thoughts.Section(thoughts.PLAIN, [first])):
            parts = [part for part in parts if part.kind == thoughts.FINAL]
    lines = thoughts.decided(parts, order_lines)
    if cut_off and not lines:
        return [], ["it is cut off before its decision"]
    lines = _last_list(question, open_slots, lines)
    if lines is None:
        return [], ["it has several orders for a unit: write one for each, and nothing else"]
    return lines, []


def _province(question: Question, line: str) -> int | None:
    """Return the province whose unit a line names."""
    unit = ordered_unit(question.game.map, line, question.game.unit_kinds)
    return None if unit is None else unit.place.province


def _last_list(
    question: Question, open_slots: Sequence[int], lines: list[_Line]
) -> list[_Line] | None:
    """Return the last list of orders if it is complete, all lines if they agree, else None. A list
    ends before an order for a unit that has one in it; in winter, when it has one for each slot."""
    lists: list[list[_Line]] = [[]]
    for line in lines:
        full = (
            len(lists[-1]) >= len(open_slots)
            if question.winter
            else any(line.place == other.place for other in lists[-1])
        )
        if line.order is not None and full:
            lists.append([])
        lists[-1].append(line)
    last = lists[-1]
    if question.winter:
        complete = len(last) >= len(open_slots)
        agree = {line.order for line in last} <= {line.order for line in lists[0]}
    else:
        own = {question.province(question.slots[s].numbers[0]) for s in open_slots}
        complete = own <= {line.place for line in last}
        orders = {(line.place, line.order) for line in lines if line.order}
        agree = len(orders) == len({place for place, _ in orders})
    if agree:
        return lines
    return last if complete else None


def _order_lines(question: Question, section: thoughts.Section) -> list[_Line]:
    game_map, own = question.game.map, _own_provinces(question)

    def are_orders(text: str) -> bool:
        return not any(no_order(game_map, part) for part in order_texts(text) or [""])

    def is_own(text: str) -> bool:
        return question.winter or _province(question, text) in own

    def is_meant_as_order(line: str) -> bool:
        place = _province(question, line)
        if no_order(game_map, line):
            return place in own and len(line.split()) <= 12
        return place is not None or "WAIVE" in line.upper()

    orders, heading = [], ""
    for lines in _lists_of(section, are_orders):
        texts = []
        for line in lines:
            meant = [*takewhile(is_meant_as_order, order_texts(line))]
            if not (meant and all(map(are_orders, meant))):
                tried = _readings(game_map, line, heading)
                meant = next((order_texts(t) for t in tried if are_orders(t) and is_own(t)), meant)
            bare = len(line.split()) <= 4 and no_order(game_map, f"{line.rstrip(':')} H") == ""
            clear = meant and all(map(are_orders, meant))
            heading = line.rstrip(":") if bare and not clear else ""
            texts += [] if heading else meant
        orders += _one_of_each_unit(question, texts)
    return orders


def _one_of_each_unit(question: Question, texts: Sequence[str]) -> list[_Line]:
    """Return the orders of a line or JSON list. Different ones for a unit, such as `A PAR - BUR / A
    PAR - PIC`, stay one text, which is no order."""
    lines: dict[object, _Line] = {}
    for number, text in enumerate(texts):
        line = _Line(text, _province(question, text), None)
        with suppress(UserError):
            order = read_order(question.game.map, text, question.game.unit_kinds)
            line = line._replace(order=order)
        key = number if question.winter else line.place
        first = lines.setdefault(key, line)
        if (first.order or first.text) != (line.order or line.text):
            lines[key] = _Line(f"{first.text} or {text}", line.place, None)
    return list(lines.values())


def _readings(game_map: Map, line: str, heading: str) -> Iterator[str]:
    """Yield what a line may say that is no order as it stands: below a unit's name, behind a label,
    in the cells of a table, with a reason behind it."""
    if len(line) > MAX_TEXT:
        return
    yield _LIKE["between"].sub("\n", line)
    plain = " ".join(_LIKE["manners"].sub(" ", line).split())
    labels = [line[label.end() :] for label in islice(_LIKE["label"].finditer(line), 3)]
    for text in (f"{heading} {line}", plain, *labels, _LIKE["label"].sub(" ", line, 1)):
        yield text
        for cut in reversed([*_LIKE["reason"].finditer(text)][-_MOST_CUTS:]):
            # What begins with a place is no reason: it may be where a supported unit is to go.
            if ordered_unit(game_map, f"A {_LIKE['to'].sub('', text[cut.end() :])}") is None:
                yield text[: cut.start()]
    cells = [cell.strip() for cell in re.split(r"[|\t;,]", line) if cell.strip(" -:")]
    for first in range(min(3, len(cells) - 1)):
        for last in range(min(len(cells), first + 5), first + 1, -1):
            yield " ".join(cells[first:last])


def _json_texts(text: str, wanted: Callable[[str], object]) -> list[list[str]]:
    """Return the wanted texts of JSON in a reply, whole or not: alone, with the key, or with those
    before it in an object, as in {"unit": "A PAR", "order": "- BUR"}, and the object's key. Those
    of one list are together, with all that is in it. What keys call thoughts or alternatives is
    left out."""
    texts, key, held, dropped = [], "", [""], False
    levels = [(False, False)]  # of brackets: whether thoughts, and whether a list, are around
    begin = min((at for at in map(text.find, "{[") if at >= 0), default=len(text))
    for match in islice(_LIKE["string"].finditer(text, begin), 5 * thoughts.MOST_LINES):
        if not match[1]:
            is_draft, in_list = levels[-1]
            if match[0] in "{[":
                texts += [] if in_list else [[]]
                is_draft = is_draft or thoughts.heading_kind(key) == thoughts.DRAFT
                levels.append((is_draft, in_list or match[0] == "["))
            elif len(levels) > 1:
                levels.pop()
            if match[0] in "{}":
                key, held = "", [key]
            continue
        try:
            value = json.loads(match[1])
        except ValueError:
            continue
        if match[2]:
            key = value.replace("_", " ")
            continue
        is_draft, in_list = levels[-1]
        if is_draft or thoughts.heading_kind(key) == thoughts.DRAFT:
            key, dropped = "", dropped or bool(wanted(value))
            continue
        held.append(value)
        tried = (value, f"{key} {value}", " ".join(held[1:5]), " ".join(held[:5]))
        texts += [] if in_list else [[]]
        texts[-1] += [one for one in tried if wanted(one)][:1]
        key = ""
    return [*filter(None, texts)] or [[""]] * dropped


def complaint(reading: Reading, slots: Sequence[Slot]) -> str:
    """Return the text of another request, for the slots that still have no order."""
    lines = ["Not all of that can be carried out:"]
    lines += [f"- {sentence}" for sentence in reading.complaints[:20]]
    lines.append("Legal orders")
    lines += [f"{slot.unit}: {'; '.join(slot.texts)}" for slot in slots]
    lines.append(f"Write nothing but {len(slots)} line(s), an order each, for:")
    lines += [slot.unit for slot in slots]
    return "\n".join(lines) + "\n"
