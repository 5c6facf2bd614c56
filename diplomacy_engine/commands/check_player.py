"""`check-player`: whether a player keeps what matches rely on, and how fast it is."""

import time

import numpy as np

from ..errors import UserError
from ..games.vector_game import VectorGame
from ..players.asking import ask_player, begin_games
from ..players.checking import check_player
from ..players.loading import load_player
from ..rules.map import load_map
from ._flags import CheckPlayer
from ._matches import faults_text

GAMES = 64  # of the measurement, in all of which all powers are asked
SECONDS = 2.0


def run_check_player(arguments: CheckPlayer) -> int:
    game_map = load_map(arguments.map)
    player = load_player(arguments.player, game_map=game_map)
    check_player(player, game_map)
    games = VectorGame(game_map, GAMES, 1, threads=1, auto_reset=True)
    begin_games(games, [player], np.arange(GAMES))
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < SECONDS:
        decisions, orders = games.decisions(), games.new_orders()
        games.write_orders(orders, decisions, ask_player(games, decisions, player))
        games.step(orders)
        count += decisions.count
    seconds = time.perf_counter() - begun
    faults = getattr(player, "faults", {})
    if faults.get("illegal") or faults.get("missing"):
        raise UserError(faults_text(player))
    print(f"{player.name}: nothing is wrong; {count / seconds:,.0f} decisions a second")
    return 0
