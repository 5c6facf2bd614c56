"""What powers say to each other, as messages of docs/protocol.md, and back."""

from collections.abc import Iterator, Sequence

import numpy as np

from ...constants import NONE
from ...errors import UserError
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...press import deals
from ...press.daide import ClauseRow, Terms, clauses_of, offer_text, offer_words, read_message
from ...press.negotiators.negotiation import Talk
from ...press.press import PEACE_ALONE, Press
from ...textgame.position import current_phase
from .lines import Message, Position, Talking

OfferRow = tuple[int, int, int, tuple[ClauseRow, ...]]  # game, sender, receiver


class Boards:
    """Games of which texts are read and written one at a time."""

    def __init__(self, games: VectorGame):
        self.games, self._one, self._row = games, games.spare(1), NONE

    def __getitem__(self, row: int) -> VectorGame:
        if row != self._row:
            self._one.copy_from(self.games, np.array([row]), np.zeros(1, int), keep_seeds=True)
            self._row = row
        return self._one

    def write(self, row: int, p: int, q: int, clauses: Sequence[ClauseRow]) -> Message:
        names = self.games.map.powers
        return Message(names[p], names[q], offer_text(self[row], p, q, Terms(tuple(clauses))))

    def offers(self, offers: deals.Offers) -> Iterator[tuple[int, Message]]:
        """Yield the game of each offer, and the offer."""
        for o, (row, p, q) in enumerate(zip(*(array.tolist() for array in offers[:3]))):
            yield row, self.write(row, p, q, clauses_of(offers, o))

    def read(self, row: int, message: Message) -> tuple[tuple[int, int], str, OfferRow]:
        """Return a message's sender and recipient, its verb, and the offer that it is or
        answers."""
        number = self.games.map.power_number
        p, q = pair = number(message.sender), number(message.recipient)
        if not message.message.lstrip().startswith("PRP"):
            p, q = q, p
        verb, terms = read_message(self[row], p, q, message.message)
        if terms.others or terms.phase not in ("", current_phase(self[row])):
            raise UserError("programs make deals between two powers, for the phase at hand")
        return pair, verb, (row, p, q, terms.clauses)

    def read_offers(self, row: int, messages: Sequence[Message]) -> list[OfferRow]:
        offers = [self.read(row, message) for message in messages]
        if any(verb != "PRP" for _, verb, _ in offers):
            raise UserError("an answer stands where an offer should")
        return [offer for _, _, offer in offers]


def deals_of(talk: Talk, s: int, boards: Boards) -> list[Message]:
    """Return as offers what the power of seat `s` knows to be agreed upon."""
    row, agreed, messages = int(talk.game[s]), deals.Deals(*(array[s] for array in talk.known)), []
    board, state = talk.games.board, talk.games.state
    owner, held = state.unit_power[row], np.full(len(board.terrain), NONE)
    held[board.center_province] = state.center_owner[row]
    closed, leave = (
        deals.province_bits(sets, len(held)) for sets in (agreed.closed, agreed.vacate)
    )
    for p, q in np.argwhere(np.triu(agreed.dealt | agreed.peace)).tolist():
        peace = bool(agreed.peace[p, q])
        zone = closed[p, q] & closed[q, p] & leave[p, q] & leave[q, p]
        clauses = [*PEACE_ALONE * peace, *_clauses(deals.Clause.ZONE, deals.Side.BOTH, zone)]
        for side, me, other in ((deals.Side.SENDER, p, q), (deals.Side.RECEIVER, q, p)):
            to = agreed.promised_to >> np.uint64(other) & np.uint64(1) != 0
            promised = to & (owner == me) & (agreed.promised != NONE)
            clauses += _clauses(deals.Clause.ORDER, side, promised, agreed.promised)
            out = closed[me, other] & ~zone
            if peace:  # which says this by itself
                out &= (owner != other) & (held != other)
            clauses += _clauses(deals.Clause.KEEP_OUT, side, out)
            clauses += _clauses(deals.Clause.LEAVE, side, leave[me, other] & ~zone & (owner == me))
        for first in range(0, len(clauses), deals.MAX_CLAUSES):
            messages.append(boards.write(row, p, q, clauses[first : first + deals.MAX_CLAUSES]))
    return messages


def _clauses(
    kind: deals.Clause, side: deals.Side, where: np.ndarray, orders: np.ndarray | None = None
) -> list[ClauseRow]:
    return [
        (kind, side, v, NONE if orders is None else int(orders[v]))
        for v in np.flatnonzero(where).tolist()
    ]


def press_of(
    games: VectorGame,
    decisions: Decisions,
    positions: Sequence[Position],
    boards: Boards,
    terms: Talking,
) -> Press:
    """Return the press in which the deals of positions have been made; `decisions` are all of
    theirs."""
    press = Press(games, "offers", binding=terms.binding, open_press=terms.open)
    rest = [o for p in positions for o in boards.read_offers(p.game, p.deals)]
    while rest:
        now = list({(row, p): (row, p, q, clauses) for row, p, q, clauses in rest}.values())
        rest = [offer for offer in rest if offer not in now]
        results = press.settle(deals.make_offers(now), np.ones(len(now), bool), decisions)
        for result, offer in zip(results, now):
            if result != deals.OfferResult.CONFIRMED:
                words = offer_words(games.map, *offer[1:3], Terms(offer[3]))
                raise UserError(f"game {offer[0]}: this cannot be a deal: {words}")
    return press
