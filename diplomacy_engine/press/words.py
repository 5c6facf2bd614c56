"""Offers and the messages of saved games in words."""

from collections.abc import Mapping, Sequence

from ..errors import UserError
from ..games.vector_game import VectorGame
from ..rules.map import Map
from ..rules.notation import order_words
from ..rules.vocabulary import vocabulary
from .daide import ClauseRow, is_answer, is_daide, read_message
from .deals import Clause, Side

_VERBS = {"PRP": "offers a deal", "YES": "agrees to the deal", "REJ": "declines the deal"}
_MOST_SAID = 2000  # letters that are shown of a free message


def offer_words(
    game_map: Map, sender: int, receiver: int, clauses: Sequence[ClauseRow], full: bool = False
) -> str:
    """With `full` names as people write them, rather than as orders are written."""
    return "; ".join(_clause_words(game_map, sender, receiver, row, full) for row in clauses)


def _clause_words(game_map: Map, sender: int, receiver: int, clause: ClauseRow, full: bool) -> str:
    kind, side, v, number = clause
    names = [power.capitalize() if full else power for power in game_map.powers]
    both = " and ".join(sorted(names[power] for power in (sender, receiver)))
    if kind == Clause.PEACE:
        return f"peace between {both}"
    if kind == Clause.ORDER:
        text = vocabulary(game_map).texts[number]
        return ": ".join(order_words(game_map, text)) if full else text
    where = game_map.provinces[v]
    where = game_map.province_names[where] if full else where
    if kind == Clause.ZONE:
        return f"{both} keep out of {where} and leave it"
    who = names[sender if side == Side.SENDER else receiver]
    return f"{who} {'keeps out of' if kind == Clause.KEEP_OUT else 'leaves'} {where}"


def message_words(games: VectorGame, message: Mapping) -> str:
    """Return a message of a saved game in words; what means nothing as it stands. `games` is of one
    game, in the position in which it was said."""
    text, powers = message["message"], games.map.power_index
    p, q = (powers.get(message[role]) for role in ("sender", "recipient"))
    if is_daide(text) and None not in (p, q):
        if is_answer(text):
            p, q = q, p  # an answer to an offer
        try:
            verb, clauses = read_message(games, p, q, text)
        except UserError:
            return text[:_MOST_SAID]
        return f"{_VERBS[verb]} ({offer_words(games.map, p, q, clauses, full=True)})"
    return text[:_MOST_SAID]
