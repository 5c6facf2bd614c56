"""Ask players about one `Game`, in texts: their orders, and what they think."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ..constants import NONE, phase_kind
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.game import Game
from ..games.vector_game import VectorGame
from .asking import orders_of
from .protocols import ExplainingPlayer, Player, SamplingPlayer


class Advice(NamedTuple):
    """What a player thinks of a power's decision."""

    value: float  # the reward that it was trained on, as expected from here on
    slots: list[tuple[str, list[tuple[str, float]]]]  # (unit, [(order, probability), ...])


def orders_by_player(
    game: Game, player: Player, powers: Collection[str], seed: int
) -> dict[str, list[str]]:
    """Return the orders that a player gives for `powers`, as far as these have a decision.

    Args:
        game: stays as it is, but for the seed of its draws.
        player: any player of this map.
        powers: their names.
        seed: 0 .. 2^64 - 1, of the player's draws.
    """
    games, decisions = _decisions(game, powers)
    games.seed_games(np.zeros(1, int), np.array([seed], np.uint64))
    if isinstance(player, SamplingPlayer):
        player.generator.manual_seed(seed)
    orders = orders_of(games, player, decisions)
    texts, given = games.vocabulary.texts, {}
    for d in range(decisions.count):
        power = game.map.powers[decisions.power[d]]
        given[power] = [
            texts[orders[0, v]] for v in _provinces(games, decisions, d) if orders[0, v] != NONE
        ]
    return given


def _decisions(game: Game, powers: Collection[str]) -> tuple[VectorGame, Decisions]:
    games = game.vector_game
    decisions = games.decisions()
    wanted = [game.map.power_index[power] for power in powers]
    return games, decisions.take(np.isin(decisions.power, wanted))


def _provinces(games: VectorGame, decisions: Decisions, d: int) -> list[int]:
    """Return the provinces whose orders decision d gives."""
    first, last = decisions.slot_start[d : d + 2]
    if decisions.slot_province[first] != NONE:
        return decisions.slot_province[first:last].tolist()
    numbers = decisions.order[decisions.order_start[first] : decisions.order_start[first + 1]]
    numbers = numbers[numbers != games.table.waive]
    return np.unique(games.board.location_province[games.table.location[numbers]]).tolist()


def advice(game: Game, player: ExplainingPlayer, power: str) -> Advice:
    """Return what a player would do as `power`: each unit's orders, the likeliest first.

    In winter a slot is one build or removal, named `build 1` or `removal 1` and so on.

    Raises:
        UserError: the power has nothing to order.
    """
    games, decisions = _decisions(game, [power])
    if not decisions.count:
        raise UserError(f"{power} has nothing to order in {game.phase}")
    explanation = player.explain(games, decisions)
    texts, slots = games.vocabulary.texts, []
    for s in range(decisions.slot_start[1]):
        here = slice(decisions.order_start[s], decisions.order_start[s + 1])
        numbers, shares = decisions.order[here], explanation.probability[here]
        ranked = [(texts[numbers[i]], float(shares[i])) for i in np.argsort(-shares, kind="stable")]
        if decisions.slot_province[s] != NONE:
            name = " ".join(texts[numbers[0]].split()[:2])
        else:
            name = f"{'build' if game.adjustments[power] > 0 else 'removal'} {s + 1}"
        slots.append((name, ranked))
    return Advice(float(explanation.value[0]), slots)


def has_decision(state: dict, power: str) -> bool:
    """Tell whether a power has something to order in the state of a saved game."""
    kind = phase_kind(state["name"])
    if kind == "retreats":
        return bool(state.get("retreats", {}).get(power))
    if kind == "adjustments":
        return bool(state.get("builds", {}).get(power, {}).get("count"))
    return kind == "movement" and bool(state["units"].get(power))
