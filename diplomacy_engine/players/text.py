"""Players that read and write texts, one game at a time: people's scripts, language models.

player = TextAdapter(MyTextPlayer())       # plays wherever any other player does
orders = orders_for(game, player)          # what any player orders in one Game, as texts
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from .._suggest import quoted
from ..constants import NONE
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.game import Game
from ..games.vector_game import VectorGame
from .asking import ask_player
from .bots import make_bot
from .protocols import Player


class Question(NamedTuple):
    """What a text player is asked: one power's orders in one phase."""

    game: Game  # the position, to be read; changing it changes nothing
    power: str
    slots: list[tuple[str, list[str]]]  # (unit, its legal orders); in winter ("build 1", ...)
    history: list[dict]  # the phases in which it was asked before in this game: name and state


class TextPlayer(Protocol):
    """Gives orders as texts."""

    name: str

    def orders(self, question: Question) -> list[str]:
        """Return order texts. Units without a legal one hold, disband or build nothing."""


class TextAdapter:
    """A TextPlayer as a Player.

    Args:
        player: asked once for each decision.
        fallback: gives the orders of units for which the player gives no legal one; None: they get
            none.
    """

    def __init__(self, player: TextPlayer, fallback: Player | str | None = None):
        self.player, self.name = player, player.name
        self.fallback = make_bot(fallback) if isinstance(fallback, str) else fallback
        self._history: dict[tuple[int, int], list[dict]] = {}  # of each row and power

    def begin(self, games: VectorGame, rows: np.ndarray) -> None:
        """Forget what was in these rows."""
        gone = set(rows.tolist())
        self._history = {key: seen for key, seen in self._history.items() if key[0] not in gone}

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return an order number for each slot, (S,) int32."""
        numbers = np.full(len(decisions.slot_province), NONE, np.int32)
        if self.fallback is not None:
            numbers[:] = ask_player(games, decisions, self.fallback)
        for d in range(decisions.count):
            row, power = int(decisions.game[d]), int(decisions.power[d])
            game, name = Game.from_row(games, row), games.map.powers[power]
            seen = self._history.setdefault((row, power), [])
            question = Question(game.copy(), name, _lists(games, decisions, d), list(seen))
            seen.append({"name": game.phase, "state": game.to_state()})
            texts = [text for text in self.player.orders(question) if isinstance(text, str)]
            game.submit(name, texts, strict=False)
            slots = slice(*decisions.slot_start[d : d + 2].tolist())
            _write_numbers(decisions, slots, game.order_numbers(), numbers)
        return numbers


def _lists(games: VectorGame, decisions: Decisions, d: int) -> list[tuple[str, list[str]]]:
    texts, slots = games.vocabulary.texts, []
    for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
        legal = decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]]
        listed = [texts[number] for number in legal]
        unit = " ".join(listed[0].split()[:2])
        if decisions.slot_province[s] == NONE:
            what = "removal" if listed[0].endswith(" D") else "build"
            unit = f"{what} {s - decisions.slot_start[d] + 1}"
        slots.append((unit, listed))
    return slots


def _write_numbers(
    decisions: Decisions, slots: slice, given: dict[int, int], numbers: np.ndarray
) -> None:
    """Write the orders given, by province, into the slots of a decision.

    In winter one slot takes one order after the other; if any is given, the fallback's are gone.
    """
    if decisions.slot_province[slots.start] == NONE:
        if given:
            numbers[slots] = NONE
            numbers[slots.start : slots.start + len(given)] = list(given.values())
        return
    for s in range(slots.start, slots.stop):
        numbers[s] = given.get(int(decisions.slot_province[s]), numbers[s])


def orders_for(
    game: Game, player: Player, powers: Iterable[str] | None = None
) -> dict[str, list[str]]:
    """Return the orders that a player gives in one game, as `Game.submit` takes them.

    Args:
        game: stays as it is.
        player: from `make_bot` or `load_player`, or one's own. One that remembers is not told here
            that a game begins (`begin_games`).
        powers: for whom it decides; None for all. Those with nothing to order get an empty list.

    Raises:
        UserError: there is no such power, or the player is none.
    """
    if isinstance(powers, str):
        raise UserError(f"powers must be a list of names, such as [{quoted(powers)}]")
    if not hasattr(player, "act"):
        raise UserError(
            f"{quoted(player)} is no player: make one with make_bot or load_player, or your own"
        )
    games = game.vector_game
    names = list(game.map.powers if powers is None else powers)
    wanted = [game.map.power_number(name) for name in names]
    found = {game.map.powers[power]: [] for power in wanted}
    decisions = games.decisions()
    decisions = decisions.take(np.flatnonzero(np.isin(decisions.power, wanted)))
    if not decisions.count:
        return found
    numbers = ask_player(games, decisions, player)
    for d in range(decisions.count):
        slots = slice(*decisions.slot_start[d : d + 2].tolist())
        given = numbers[slots]
        texts = [games.vocabulary.texts[number] for number in given[given != NONE].tolist()]
        found[game.map.powers[decisions.power[d]]] = texts
    return found
