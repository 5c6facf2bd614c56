"""Legal orders in the forms in which servers can be held to them, and how each is asked for.

The options' names change with the servers' versions: they stand in `request_fields` alone, as read
in November 2026. A server may ignore one, so every reply is checked, constrained or not.
"""

import json
import re
from collections.abc import Sequence

from .questions import Slot

# Limits of OpenAI's structured outputs; longer decisions are asked in several parts.
MOST_VALUES = 1000  # enum values of a schema
MOST_LETTERS = 15_000  # of one enum with more than 250 values
_MANY = 250


def request_fields(server: str, constraint: str, slots: Sequence[Slot]) -> dict:
    """Return what a request must have besides its messages, for a reply that orders all slots."""
    if constraint == "json":
        schema = {"name": "orders", "strict": True, "schema": json_schema(slots)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    if constraint == "none":
        return {}
    if server == "vllm":  # 0.33; its older `guided_...` are ignored without an error
        form = {"regex": regex, "grammar": grammar, "choice": lambda slots: slots[0].texts}
        return {"structured_outputs": {constraint: form[constraint](slots)}}
    if server == "sglang":
        name = {"regex": "regex", "grammar": "ebnf"}[constraint]
        return {name: regex(slots) if constraint == "regex" else grammar(slots)}
    return {"grammar": grammar(slots)}  # llama.cpp


def parts(constraint: str, slots: Sequence[Slot]) -> list[list[Slot]]:
    """Return slots in the parts in which they are asked, by what a server allows at once."""
    if constraint == "choice":
        return [[slot] for slot in slots]
    if constraint != "json":
        return [list(slots)]
    split: list[list[Slot]] = []
    values = MOST_VALUES + 1
    for slot in slots:
        count = len(slot.texts)
        values += count
        if values > MOST_VALUES:
            split.append([])
            values = count
        split[-1].append(slot)
    return split


def regex(slots: Sequence[Slot]) -> str:
    return "".join(f"({'|'.join(map(re.escape, slot.texts))})\n" for slot in slots)


def grammar(slots: Sequence[Slot]) -> str:
    """Return a grammar for one line each, in the notation that llama.cpp and SGLang share."""
    names = [f"unit{number}" for number in range(1, len(slots) + 1)]
    lines = ["root ::= " + " ".join(f'{name} "\\n"' for name in names)]
    for name, slot in zip(names, slots):
        lines.append(f"{name} ::= " + " | ".join(json.dumps(text) for text in slot.texts))
    return "\n".join(lines) + "\n"


def json_schema(slots: Sequence[Slot]) -> dict:
    properties = {slot.unit: {"type": "string", **_values(slot)} for slot in slots}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _values(slot: Slot) -> dict:
    """Return the texts of a slot as an enum; nothing, so any text, beyond a server's limit."""
    count, letters = len(slot.texts), sum(map(len, slot.texts))
    if count > MOST_VALUES or (count > _MANY and letters > MOST_LETTERS):
        return {}
    return {"enum": slot.texts}
