"""What deals would bring: profiles of orders, adjudicated with and without them."""

import numpy as np

from ...constants import NONE
from ...games.draws import phase_seeds
from ...games.vector_game import VectorGame
from ...players.policy.player import PolicyPlayer
from ...players.protocols import Player
from ...players.search.draws import PlayerDraws, PolicyDraws, joint_orders
from ...players.search.leaves import CenterClaims, holders
from ...rules.state import Salt
from ..deals import Deals, OfferResult, Offers, make_offers
from ..press import Press
from .negotiation import Talk

EPSILON = 1e-6  # smaller gains are rounding
ROOM = 2048  # boards tried at once


def held_centers(games: VectorGame, rows: np.ndarray) -> np.ndarray:
    """Return how many centers every power holds, (n, P) float64."""
    powers = np.arange(games.num_powers)[:, None]
    return (holders(games, rows)[:, None] == powers).sum(2).astype(np.float64)


class Trials:
    """Tries offers on K profiles: joint orders of all powers as one player draws them, the same
    with and without a deal. An order that breaks it becomes what `Press.correct` makes of it.
    `value`: `claims` (shares of centers owned and in reach) or `centers`."""

    def __init__(self, player: Player, profiles: int, value: str):
        self.player, self.profiles, self.value = player, profiles, value
        self._room: tuple[VectorGame, Press] | None = None
        self._drawn: tuple = ()

    def draw(self, games: VectorGame, rows: np.ndarray) -> np.ndarray:
        """Return profiles (rows, K, V) of games in rising order, by their seeds and turns."""
        state = games.state
        key = (games, rows.tobytes(), state.seed[rows].tobytes(), state.turn[rows].tobytes())
        if self._drawn and self._drawn[0][0] is games and self._drawn[0][1:] == key[1:]:
            return self._drawn[1]
        if isinstance(self.player, PolicyPlayer):
            profiles = self._of_policy(self.player, games, rows)
        else:
            seeds = phase_seeds(games, rows, NONE, Salt.TRIALS, self.profiles)
            act, (room, _) = PlayerDraws(self.player).plain, self._room_like(games)
            profiles = joint_orders(games, rows, seeds, room, act)
        self._drawn = key, profiles
        return profiles

    def _room_like(self, games: VectorGame) -> tuple[VectorGame, Press]:
        """Return games to try deals in, and their press."""
        if self._room is None or not self._room[0].is_like(games):
            room = games.spare(ROOM)
            self._room = room, Press(room, "offers")
        return self._room

    def _of_policy(self, player: PolicyPlayer, games: VectorGame, rows: np.ndarray) -> np.ndarray:
        """Each board is encoded once."""
        decisions = games.decisions(rows)
        seeds = phase_seeds(games, decisions.game, decisions.power, Salt.TRIALS, self.profiles)
        drawn, _ = PolicyDraws(player).draw(games, decisions, seeds)
        profiles = np.full((len(rows), *drawn.shape[1:]), NONE, np.int32)
        d, k, v = np.nonzero(drawn != NONE)
        profiles[np.searchsorted(rows, decisions.game)[d], k, v] = drawn[d, k, v]
        return profiles

    def gains(self, talk: Talk, asker: np.ndarray, offers: Offers) -> tuple[np.ndarray, np.ndarray]:
        """Return what offers would bring every power, (O, P), and whether they can be confirmed;
        `asker` (O,) is who of the n in the talk asks, and the deals it knows hold."""
        games, n = talk.games, len(talk.game)
        rows, which = np.unique(talk.game, return_inverse=True)
        profiles = self.draw(games, rows)
        # First what comes without a deal, once for each that asks, then with each.
        seats = np.concatenate([np.arange(n), asker])
        nothing = np.zeros(n, bool)
        possible = np.concatenate([~nothing, np.zeros(offers.count, bool)])
        orders = np.empty((len(seats), *profiles.shape[1:]), np.int32)
        for first in range(0, len(seats), ROOM):
            part = np.arange(first, min(first + ROOM, len(seats)))
            mine = part[part >= n]
            profile = profiles[which[seats[part]]]
            possible[mine] = self._bind(talk, seats[part], offers.take(mine - n), profile)
            orders[part] = profile
        values = self._values(games, np.repeat(talk.game[seats], self.profiles), orders)
        return values[n:] - values[:n][asker], possible[n:]

    def respond(self, talk: Talk, own: np.ndarray, weights: np.ndarray, keeps: bool) -> np.ndarray:
        """Return the orders (n, V) that answer best to the profiles of others who keep their deals;
        `weights` (n, P): what each power's value counts. Candidates are the `own` orders (n, V) and
        those of the profiles, as the deals leave them or, unless `keeps`, also as they are."""
        games, n = talk.games, len(talk.game)
        rows, which = np.unique(talk.game, return_inverse=True)
        profiles = self.draw(games, rows)[which]
        others, keeping = profiles.copy(), own[:, None].copy()
        for first in range(0, n, ROOM):
            part = slice(first, first + ROOM)
            seats = np.arange(n)[part]
            for orders in (others[part], keeping[part]):
                self._bind(talk, seats, make_offers([]), orders)
        candidates = [keeping, others] if keeps else [keeping, own[:, None], profiles]
        candidates = np.concatenate(candidates, 1)
        mine = games.state.unit_power[talk.game] == talk.power[:, None]
        joint = np.where(mine[:, None, None], candidates[:, :, None], others[:, None])
        count = candidates.shape[1]
        flat = joint.reshape(n * count, self.profiles, -1)
        values = self._values(games, np.repeat(talk.game, count * self.profiles), flat)
        values = (values.reshape(n, count, -1) * weights[:, None]).sum(2)
        best = (values > values.max(1, keepdims=True) - EPSILON).argmax(1)  # the first of equals
        return np.where(mine, candidates[np.arange(n), best], NONE).astype(np.int32)

    def _bind(
        self, talk: Talk, seats: np.ndarray, offers: Offers, orders: np.ndarray
    ) -> np.ndarray:
        """Let orders (m, any, V) keep what each seat knows and its offer; tell who can (O,) bool.
        The offers are of the last of the seats."""
        games, m = talk.games, len(seats)
        (room, press), at = self._room_like(games), np.arange(m)
        room.copy_from(games, talk.game[seats], at)
        deals = Deals(*(array[seats] for array in talk.known))
        press.take_up(Deals(*(_padded(array, ROOM) for array in deals)))
        if not offers.count and not deals.dealt.any():
            return np.zeros(0, bool)
        full = room.decisions(at)
        moved = offers._replace(game=np.arange(m - offers.count, m, dtype=np.int32))
        results = press.settle(moved, np.ones(offers.count, bool), full)
        bound = press.bound(full)
        padded = room.new_orders()
        for k in range(orders.shape[1]):
            padded[:m] = orders[:, k]
            press.correct(padded, bound)
            orders[:, k] = padded[:m]
        return results == OfferResult.CONFIRMED

    def _values(self, games: VectorGame, rows: np.ndarray, orders: np.ndarray) -> np.ndarray:
        m, k, provinces = orders.shape
        keyed = np.column_stack([rows.astype(np.int32), orders.reshape(m * k, provinces)])
        row_keys = np.ascontiguousarray(keyed).view(f"V{keyed.shape[1] * 4}").ravel()
        _, first, which = np.unique(row_keys, return_index=True, return_inverse=True)
        values = np.empty((len(first), games.num_powers))
        room, _ = self._room_like(games)
        value = CenterClaims().shares if self.value == "claims" else held_centers
        new_orders = room.new_orders()
        for start in range(0, len(first), ROOM):
            some = first[start : start + ROOM]
            at = np.arange(len(some))
            room.copy_from(games, rows[some], at)
            new_orders[: len(some)] = keyed[some, 1:]
            room.step(new_orders, at)
            values[start : start + len(some)] = value(room, at)
        return values[which.ravel()].reshape(m, k, -1).mean(1)


def _padded(array: np.ndarray, length: int) -> np.ndarray:
    widths = [(0, length - len(array)), *[(0, 0)] * (array.ndim - 1)]
    return np.pad(array, widths, constant_values=NONE if array.dtype.kind == "i" else 0)
