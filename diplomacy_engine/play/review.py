"""What a policy thinks of a game: of each decision, beside what was ordered, and how it may end."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..constants import NONE, RUNNING
from ..errors import UserError
from ..players.advice import Advice, advice_to_all, has_decision
from ..players.asking import ask_players
from ..players.protocols import ExplainingPlayer, Player, SamplingPlayer
from ..rules.map import Map
from ..textgame.game import Game
from .file import rebuild

CHOICES = 3  # likeliest orders of a unit that are kept, and the one that was given
GAMES = 32  # that are played for an outlook


class Outlook(NamedTuple):
    games: int  # that a policy has played on from a position, for all powers
    won: int  # of them by the power outright, or by its team
    centers: float  # that the power had at their ends, on average


def outlook(
    game: Game,
    players: Mapping[str, Player],
    wanted: Callable[[], bool] = lambda: True,
    orders: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Outlook] | None:
    """Return power -> how a game may end; None once it is not `wanted` any more.

    `players` play on for the powers; `orders` are given now by some of these.
    """
    rows, games = np.arange(GAMES), game.vector_game.spare(GAMES)
    games.copy_from(game.vector_game, np.zeros(GAMES, int), rows)
    games.seed_games(rows, rows.astype(np.uint64))
    copies = {id(player): _own_draws(player) for player in players.values()}
    playing, number = list(copies.values()), {one: n for n, one in enumerate(copies)}
    seated = np.array([number[id(players[power])] for power in game.powers])
    gone = [game.map.power_index[name] for name in game.conceded]
    trial, left_out = game.copy(), [*gone, *(game.map.power_index[name] for name in orders or ())]
    for power, texts in (orders or {}).items():
        trial.submit(power, texts)
    fixed = trial.order_numbers()
    while (games.state.end == RUNNING).any():
        if not wanted():
            return None
        decisions = games.decisions()
        decisions = decisions.take(~np.isin(decisions.power, left_out))
        all_orders = ask_players(games, decisions, playing, seated[decisions.power])
        all_orders[:, list(fixed)] = list(fixed.values())
        games.step(all_orders)
        left_out, fixed = gone, {}
    outcomes, team = games.outcomes(), games.board.team
    won = (outcomes.winner[:, None] != NONE) & (team[outcomes.winner][:, None] == team)
    figures = zip(game.powers, won.sum(0).tolist(), outcomes.centers.mean(0).tolist())
    return {power: Outlook(GAMES, *row) for power, *row in figures}


def _own_draws(player: Player) -> Player:
    """Return a player without its search, which leaves the game's own draws as they are."""
    player = copy.copy(getattr(getattr(player, "own", None), "policy", player))
    player.group = None
    if isinstance(player, SamplingPlayer):
        player.generator = type(player.generator)()
        player.generator.manual_seed(1)
    return player


def review(
    saved: Mapping,
    player: ExplainingPlayer,
    game_map: Map | str | None = None,
    powers: Sequence[str] | None = None,
) -> dict:
    """Return a saved game with a player's `thoughts` of the decisions of powers; None: of all.

    None are where nothing was to be ordered or another program played by other rules.
    """
    game, phases = Game.from_saved_game(saved, game_map), list(saved["phases"])
    for number, phase in enumerate(game.history):
        deciding = [p for p in powers or game.powers if has_decision(phase["state"], p)]
        try:
            advices = advice_to_all(rebuild(game, number), player, deciding)
        except UserError:
            continue
        orders = phase["orders"]
        thoughts = {power: _beside(one, orders.get(power) or ()) for power, one in advices.items()}
        phases[number] = phases[number] | {"thoughts": thoughts}
    return {**saved, "phases": phases}


def _beside(advice: Advice, order_texts: Sequence[str]) -> dict:
    """Return a power's thought with the orders that it gave among the likeliest."""
    orders, by_unit = {}, {" ".join(text.split()[:2]): text for text in order_texts}
    for number, (slot, ranked) in enumerate(advice.slots):
        unit, own = slot, by_unit.get(slot, f"{slot} H")
        if slot.split()[0] in ("build", "removal") and number < len(order_texts):
            own = order_texts[number]
            unit = " ".join(own.split()[:2])
        choices = ranked[:CHOICES] + [one for one in ranked[CHOICES:] if one[0] == own]
        orders[unit] = [(text, round(share, 3)) for text, share in choices]
    return {"value": None if advice.value is None else round(advice.value, 3), "orders": orders}
