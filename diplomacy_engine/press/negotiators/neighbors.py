"""Which powers are near each other, and the negotiators `peaceful` and `coin`."""

import numpy as np

from ...constants import NONE
from ...games.draws import uniform
from ...games.vector_game import VectorGame
from ...rules.state import Salt
from ..deals import Clause, Offers, make_offers
from ..press import PEACE_ALONE
from .negotiation import Silent, Talk, best_of_pairs, partner_of

Numbers = int | np.ndarray


class PowerReach:
    """Provinces that powers of n games hold and can reach by land or sea. `reach` (n, P, V): number
    of units that can move to a province; `held` (n, P, V): by unit or center; `threat` (n, P, P):
    number of the first power's units that can move to provinces held by the second."""

    def __init__(self, games: VectorGame, rows: np.ndarray):
        board, state, powers = games.board, games.state, games.num_powers
        provinces, self._centers = len(board.terrain), board.center_province
        self.reach = np.zeros((len(rows), powers, provinces), np.int64)
        self.held = np.zeros((len(rows), powers, provinces), bool)
        owner = state.center_owner[rows]
        n, c = np.nonzero(owner != NONE)
        self.held[n, owner[n, c], board.center_province[c]] = True
        self.centers = (owner[:, None, :] == np.arange(powers)[:, None]).sum(2)
        power = state.unit_power[rows]
        n, v = np.nonzero((power != NONE) & (power != powers))  # neutral units never move
        power = power[n, v]
        can = board.reach[state.unit_kind[rows[n], v], state.unit_location[rows[n], v]]
        np.add.at(self.reach, (n, power), can)
        self.held[n, power, v] = True
        self.threat = np.zeros((len(rows), powers, powers), np.int64)
        hits = (self.held[n] & can[:, None, :]).any(2)
        np.add.at(self.threat, (n, power), hits)

    def open_to_both(self, row: Numbers, one: Numbers, other: Numbers) -> np.ndarray:
        """Return how many units of two powers can move to each center that both can reach. (...,
        C), 0 for other centers and for those that one of the two holds."""
        mine, theirs = (
            np.where(self.held[row, power], 0, self.reach[row, power])[..., self._centers]
            for power in (one, other)
        )
        return (mine + theirs) * ((mine > 0) & (theirs > 0))

    def near(self) -> np.ndarray:
        meets = np.einsum("npv,nqv->npq", self.reach > 0, self.reach > 0, dtype=np.int64) > 0
        adjacent = meets | (self.threat > 0) | (self.threat > 0).swapaxes(1, 2)
        adjacent &= ~np.eye(adjacent.shape[1], dtype=bool)
        return adjacent


def first_choice(score: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return the column (n,) with the greatest allowed score, the first of equals, or NONE."""
    best = np.where(allowed, score, -np.inf).argmax(1)
    return np.where(allowed.any(1), best, NONE)


class PeaceNegotiator:
    """A negotiator that wishes peace and no other deals, in every protocol."""

    def wishes(self, talk: Talk) -> np.ndarray:
        raise NotImplementedError

    def offers(self, talk: Talk) -> Offers:
        around, n = PowerReach(talk.games, talk.game), np.arange(len(talk.game))
        danger = around.threat[n, :, talk.power]
        wanted = self.wishes(talk) & ~talk.known.peace[n, talk.power]
        chosen = first_choice(danger, wanted & around.near()[n, talk.power])
        return make_offers(
            [(e, p, q, PEACE_ALONE) for e, p, q in zip(talk.game, talk.power, chosen) if q != NONE]
        )

    def proposals(self, talk: Talk) -> Offers:
        wanted = self.wishes(talk) & ~talk.known.peace[np.arange(len(talk.game)), talk.power]
        return make_offers(
            [(talk.game[s], talk.power[s], q, PEACE_ALONE) for s, q in np.argwhere(wanted)]
        )

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        peace = np.diff(offers.clause_start) == 1
        peace &= offers.kind[offers.clause_start[:-1]] == Clause.PEACE
        return peace & self.wishes(talk)[np.arange(offers.count), partner_of(talk, offers)]

    def refusal(self, talk: Talk, offers: Offers) -> str:
        if not self.wishes(talk)[0, offers.sender[0]]:
            return "it does not want peace with you"
        return "it agrees to peace and to nothing else"

    def choices(self, talk: Talk, offers: Offers) -> np.ndarray:
        return best_of_pairs(talk, offers, self.answers(talk, offers).astype(float))


class Peaceful(PeaceNegotiator, Silent):
    """Makes peace with all powers but the easiest target: the neighbor with the fewest centers for
    each own unit that can attack it."""

    def _target(self, talk: Talk) -> np.ndarray:
        around, n = PowerReach(talk.games, talk.game), np.arange(len(talk.game))
        attackers = around.threat[n, talk.power]
        ease = -around.centers / np.maximum(attackers, 1)
        return first_choice(ease, around.near()[n, talk.power] & (attackers > 0))

    def wishes(self, talk: Talk) -> np.ndarray:
        powers = np.arange(talk.games.num_powers)
        return (powers != self._target(talk)[:, None]) & (powers != talk.power[:, None])


class Coin(Peaceful):
    """Wishes peace with each other power with probability one half, as a control."""

    def wishes(self, talk: Talk) -> np.ndarray:
        powers = talk.games.num_powers
        wish = uniform(talk.games, talk.game, talk.power, Salt.COIN, powers) < 0.5
        return wish & (np.arange(powers) != talk.power[:, None])
