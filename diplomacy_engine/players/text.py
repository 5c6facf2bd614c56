"""What a player orders in one game, as texts."""

from collections.abc import Iterable

import numpy as np

from .._suggest import quoted
from ..constants import NONE
from ..errors import UserError
from ..games.game import Game
from .asking import ask_player
from .protocols import Player


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
            f"{quoted(player)} is not a player: make one with make_bot or load_player, or your own"
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
