"""Asking players for orders, so that none sees what another orders in the same phase."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..constants import NONE
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..rules.notation import unit_of
from .protocols import Player, PlayerGroup


class Slot(NamedTuple):
    unit: str  # such as A PAR; in winter `build 1` or `removal 1`, and so on
    numbers: list[int]  # of its legal orders
    texts: list[str]  # of the same

    def harmless(self) -> list[int]:
        return [
            number
            for number, text in zip(self.numbers, self.texts)
            if text.endswith((" H", " D")) or text == "WAIVE"
        ]


def reads_history(*players: Player) -> bool:
    return any(getattr(player, "reads_history", True) for player in players)


def ask_player(games: VectorGame, decisions: Decisions, player: Player) -> np.ndarray:
    """Return the order numbers (S,) int32 that one player gives.

    Raises:
        UserError: it returns something else.
    """
    return _checked(player.act(games, decisions), decisions, player)


def _checked(numbers: object, decisions: Decisions, player: object) -> np.ndarray:
    slots = len(decisions.slot_province)
    if (
        not isinstance(numbers, np.ndarray)
        or numbers.dtype.kind != "i"
        or numbers.shape != (slots,)
    ):
        shown = type(numbers).__name__
        if isinstance(numbers, np.ndarray):
            shown = f"{numbers.dtype} of shape {numbers.shape}"
        name = str(getattr(player, "name", type(player).__name__))
        raise UserError(
            f"player {name:.60} must return an order number for each of {slots} slots, int32 of "
            f"shape ({slots},), not {shown}"
        )
    return numbers


def ask_players(
    games: VectorGame, decisions: Decisions, players: Sequence[Player], decider: np.ndarray
) -> np.ndarray:
    """Return the orders of all, (E, V) int32; `decider` (D,) says which of `players` decides.

    Each player is asked once for all its decisions; those of a `group` together.
    """
    orders = games.new_orders()
    groups: dict[int, tuple[PlayerGroup, list[int]]] = {}
    for number, player in enumerate(players):
        group = getattr(player, "group", None)
        if group is not None:
            groups.setdefault(id(group), (group, []))[1].append(number)
            continue
        rows = np.flatnonzero(decider == number)
        if len(rows):
            own = decisions if len(rows) == decisions.count else decisions.take(rows)
            games.write_orders(orders, own, ask_player(games, own, player))
    for group, numbers in groups.values():
        rows = np.flatnonzero(np.isin(decider, numbers))
        if len(rows):
            own = decisions.take(rows)
            answers = group.act(games, own, players, decider[rows])
            games.write_orders(orders, own, _checked(answers, own, players[numbers[0]]))
    return orders


def orders_of(games: VectorGame, player: Player, decisions: Decisions | None = None) -> np.ndarray:
    """Return the orders (E, V) int32 of one player, for all pending decisions or these."""
    decisions = games.decisions() if decisions is None else decisions
    orders = games.new_orders()
    if decisions.count:
        games.write_orders(orders, decisions, ask_player(games, decisions, player))
    return orders


def slots_of(games: VectorGame, decisions: Decisions, d: int) -> list[Slot]:
    slots, first = [], int(decisions.slot_start[d])
    for s in range(first, int(decisions.slot_start[d + 1])):
        numbers = decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]].tolist()
        texts = [games.vocabulary.texts[number] for number in numbers]
        unit = unit_of(texts[0])
        if decisions.slot_province[s] == NONE:
            unit = f"{'removal' if texts[0].endswith(' D') else 'build'} {s - first + 1}"
        slots.append(Slot(unit, numbers, texts))
    return slots
