"""`check-player`: whether a player keeps the rules that matches rely on, and its speed."""

import time

import numpy as np

from ..errors import UserError
from ..games.vector_game import VectorGame
from ..matches.tables import play_games
from ..players.asking import ask_player
from ..players.bots import make_bot
from ..players.checking import check_player
from ..players.loading import load_player
from ..players.protocols import CheckedPlayer
from ..press.deals import Offers
from ..press.negotiators.negotiation import Negotiator, Talk
from ..press.negotiators.neighbors import Peaceful
from ..press.press import Press
from ..rules.game_rules import PROTOCOLS
from ..rules.map import Map, load_map
from ._flags import CheckPlayer
from ._matches import faults_text

GAMES = 64  # of the measurement, in all of which all powers are asked
SECONDS = 2.0


def run_check_player(arguments: CheckPlayer) -> int:
    game_map = load_map(arguments.map)
    player = load_player(arguments.player, game_map=game_map)
    check_player(player, game_map)
    if isinstance(player, Negotiator):
        _talk(player, game_map)
    games = VectorGame(game_map, GAMES, 1, threads=1, keep_history=True)
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < SECONDS:
        decisions, orders = games.decisions(), games.new_orders()
        games.write_orders(orders, decisions, ask_player(games, decisions, player))
        games.step(orders)
        count += decisions.count
    seconds = time.perf_counter() - begun
    if isinstance(player, CheckedPlayer) and (player.faults["illegal"] or player.faults["missing"]):
        raise UserError(faults_text(player))
    print(f"{player.name}: nothing is wrong; {count / seconds:,.0f} decisions a second")
    return 0


class _Offering(Peaceful):
    """Offers peace to somebody in each phase."""

    def offers(self, talk: Talk) -> Offers:
        offers = self.proposals(talk)
        seats = np.stack([offers.game, offers.sender])
        return offers.take(np.unique(seats, axis=1, return_index=True)[1])


def _talk(player: Negotiator, game_map: Map) -> None:
    """Ask a player that talks all that matches ask, beside one that makes it offers."""
    partner = _Offering(make_bot("hold"), "offering")
    for protocol in PROTOCOLS:
        games = VectorGame(game_map, 2, 1, max_years=1, threads=1, auto_reset=False)
        seats = np.add.outer(np.arange(2), np.arange(games.num_powers)) % 2
        play_games(games, seats, [player, partner], press=Press(games, protocol))
