"""What a power thought before it ordered: as a saved game has it, and as a page shows it."""

import contextlib
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from ..errors import UserError
from ..records import convert
from ..rules.map import Map
from ..rules.order_words import order_words

MOST_SAID = 100_000  # letters that are shown of a language model's prompt or reply
_Number = Annotated[float, Meta(gt=-1e9, lt=1e9)]
_Probability = Annotated[float, Meta(ge=0, le=1)]


class Thought(Struct):
    """What a policy, a search or a language model thought."""

    value: _Number | None = None  # the result that it expects
    orders: dict[str, list[tuple[str, _Probability]]] = {}  # unit -> orders that it considered
    # Of a search: all orders that it tried together, what they are worth and their probability.
    tried: list[tuple[list[str], _Number | None, _Number]] = []
    prompt: str | None = None  # of a language model
    reply: str | None = None


def read_thoughts(game_map: Map, saved: object) -> dict[str, Thought]:
    """Return the thoughts of a saved phase by power. A bad one is left out, since the game can be
    shown without."""
    thoughts = {}
    for power, thought in saved.items() if isinstance(saved, Mapping) else ():
        if power in game_map.power_index:
            with contextlib.suppress(UserError):
                thoughts[power] = convert(Thought, thought, power)
    return thoughts


def thought_view(game_map: Map, thought: Thought) -> dict:
    """Return a thought for replay.js: each order in words, without its unit."""
    orders = {
        unit: [(order_words(game_map, text)[1], share) for text, share in choices]
        for unit, choices in thought.orders.items()
    }
    tried = [(", ".join(texts), value, share) for texts, value, share in thought.tried]
    view = {"value": thought.value, "orders": orders, "tried": tried}
    texts = {"prompt": thought.prompt, "reply": thought.reply}
    return view | {name: text[:MOST_SAID] for name, text in texts.items() if text is not None}
