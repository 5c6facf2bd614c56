"""Where in a reply the decision stands: neither thoughts nor drafts are orders, and none is said.

A thought ends where a mark says so. Text after the last end is what counts, wherever the thought
began: many chat templates open it, and the reply has its end alone.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

MOST_LINES = 1000  # of a reply that are looked at, the last ones
_LONGEST_HEADING = 200  # letters
DRAFT, PLAIN, FINAL = -1, 0, 1  # kinds of sections

_THOUGHT = r"(?:think|thought|reason|reflect|scratch|analy[sz]|ponder|deliberat|monolog|draft)"
_NAME = rf"[\w:. ]{{0,20}}?{_THOUGHT}\w{{0,20}}"
_CHANNEL = r"<\|?channel\|?>\s*"
_MARK = re.compile(
    rf"(?P<end><unused95>|<channel\|>|{_CHANNEL}final\b|assistantfinal"
    rf"|[<◁]\|?(?:/|end_(?:of_)?){_NAME}\s*\|?[>▷]|(?-i:\[/[A-Z]*THINK[A-Z]*\]))"
    rf"|{_CHANNEL}\w+|\A\s*(?:analysis|commentary)(?-i:(?=[A-Z]))|<unused94>"
    rf"|[<◁]\|?{_NAME}(?:\s[^<>\n]{{0,40}})?\|?[>▷]|(?-i:\[[A-Z]*THINK[A-Z]*\])",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"<\|?(?P<end>/|end_(?:of_)?)?(?:(?:start|begin)_(?:of_)?)?(?:my_?|final_?)?"
    r"(?:answer|response|solution|output|result|decision|orders)\s*\|?>",
    re.IGNORECASE,
)
_SPECIAL = re.compile(r"<\|[\w/ ]{1,30}\|>")
_STRUCK = re.compile("~~[^~]{1,200}~~")
_CROSS = re.compile("[\u274c\u2716-\u2718\U0001f6ab]")
_BOX = re.compile(r"[\s>*+-]{0,12}\[([ xX]?)\]")
_FENCE = re.compile(r"\s*(?:```|~~~)\s*(\w*)")
# A line that is no order and says what the next ones are.
_HEADING = re.compile(r"\s*(?:#|\*\*|__|==|-{3}).{0,80}|[^:\n]{0,80}:\W{0,4}|[\w' ]{0,40}\W{0,4}")
_LABEL = re.compile(r"[^\w{}\[\"']*([\w' ]{3,40}?)[\s*_]{0,4}:[\s*_]{0,4}(?=\S)")
_KINDS = (  # the first whose words stand in a heading
    (FINAL, r"\bfinal|\bdeci(?:de|sion)|\bsubmi|\banswer|\bresponse|\bchos?en?\b"
     r"|\bgo(?:ing)? with"),
    (DRAFT, r"alternat|\boption|possib|candidat|consider|reject|\bdraft|\binitial|\bcould\b|\bmight"
     r"|\bmaybe|\bperhaps|\bprevious|\blast (?:turn|season|phase|year)|\bbackup|\bif\b|\blegal"
     r"|\bexpect|\bpredict|\benem|\bother power|\bopponent|\bnot\b|\bdiscard|\bidea"),
    (FINAL, r"\borders?\W*$|\bmy orders\b|\bbetter\b|\brevised|\bcorrected|\binstead"),
    (DRAFT, _THOUGHT + r"|\bexplanation|\brationale|\bnotes?\b|\bremarks?\b"),
)  # fmt: skip
_KIND_PATTERNS = [(kind, re.compile(words, re.IGNORECASE)) for kind, words in _KINDS]
_ENDS = {"START_": "END_", "start_": "end_", "begin_of_": "end_of_", "unused94": "unused95"}


class Section(NamedTuple):
    """Consecutive lines of a reply below a heading, or within a code fence."""

    kind: int  # DRAFT, PLAIN or FINAL
    lines: list[str]


def without_thoughts(text: str) -> str:
    """Return a reply without its thoughts; nothing of one that is cut off within them. In one pass:
    a pattern for a whole thought would look for its end once for each beginning."""
    parts, start, inside = [], 0, False
    for mark in _MARK.finditer(text):
        if mark["end"]:
            if not inside:
                parts.clear()
            inside, start = False, mark.end()
        elif not inside:
            parts.append(text[start : mark.start()])
            inside = True
    return "" if inside else _SPECIAL.sub("\n", "".join([*parts, text[start:]]))


def thought_end(text: str) -> str | None:
    """Return the mark that ends the thought in which a text stops; "" if it has no marks, None if
    the last one has ended the thought."""
    marks = [*_MARK.finditer(text)][-1:]
    if not marks:
        return ""
    begin = marks[0][0]
    if marks[0]["end"]:
        return None
    for word, end in _ENDS.items():
        if word in begin:
            return begin.replace(word, end)
    if "channel" in begin or begin[0] not in "<[\u25c1":
        return "<channel|>"
    return re.sub(r"(<\||.)", r"\1/", begin, count=1)


def decided(parts: Sequence[Section], read: Callable[[Section], list]) -> list:
    """Return what is read of the final sections, or else of the plain ones."""
    for kind in (FINAL, PLAIN):
        if lines := [line for part in parts if part.kind == kind for line in read(part)]:
            return lines
    return []


def heading_kind(line: str) -> int:
    """Return the kind of section that a heading begins."""
    kinds = (kind for kind, words in _KIND_PATTERNS if words.search(line))
    return next(kinds, PLAIN)


def _without_struck(line: str) -> str:
    """Leave out what is struck through, and from 200 letters before a cross on all: an order is not
    longer. A cross that is itself struck through does not count."""
    pieces, at, cross = [], 0, _CROSS.search(line)
    for struck in _STRUCK.finditer(line):
        if cross and max(at, cross.start() - 200) < struck.start():
            break
        pieces.append(line[at : struck.start()])
        at = struck.end()
        if cross and cross.start() < at:
            cross = _CROSS.search(line, at)
    pieces.append(line[at : max(at, cross.start() - 200)] if cross else line[at:])
    return "".join(pieces)


def sections(text: str) -> list[Section]:
    """Return the sections of a reply in their order, without thoughts, headings and code fences."""
    text = _ANSWER.sub(
        lambda tag: "\nRemarks:\n" if tag["end"] else "\nFinal:\n", without_thoughts(text)
    )
    lines = [*map(_without_struck, text.splitlines()[-MOST_LINES:])]
    boxes = [box[1].strip() if (box := _BOX.match(line)) else None for line in lines]
    if any(boxes):  # of boxes those with a cross count
        lines = [line for line, box in zip(lines, boxes) if box != ""]
    parts, fenced = [Section(PLAIN, [])], False
    for line in lines:
        kind, begin = parts[-1].kind, line[:_LONGEST_HEADING]
        if fence := _FENCE.match(begin):
            fenced = not fenced
            inner = DRAFT if heading_kind(fence[1]) == DRAFT else kind or FINAL
            parts.append(Section(inner if fenced else PLAIN, []))
        elif fenced:
            parts[-1].lines.append(line)
        elif begin == line and _HEADING.fullmatch(line) and (kind := heading_kind(line)):
            parts.append(Section(kind, []))
        elif (label := _LABEL.match(begin)) and (kind := heading_kind(label[1])):
            parts.append(Section(kind, [line[label.end() :]]))
            if kind == DRAFT:
                parts.append(Section(parts[-2].kind, []))
        else:
            parts[-1].lines.append(line)
    return parts
