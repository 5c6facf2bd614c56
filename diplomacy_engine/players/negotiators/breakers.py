"""For deals that may be broken: `breaker`, which does, and `grudge` and `sanction`, which mind.

The three kinds are those of Kramar et al. (2022): a deviator that answers best to others who keep
their word, negotiators that stop dealing with who broke a deal, and such as also want its loss.
"""

import numpy as np

from ...constants import NONE
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...press.deals import Offers
from ...rules.state import in_movement
from ..negotiation import Talk, partner_of
from ..protocols import Player
from .neighbors import Surroundings
from .planners import Nash

GRUDGE_YEARS = 3


class Responder(Nash):
    """A `nash` that sometimes gives the orders that answer best, if partners keep their deals.

    They are chosen among its player's own and those of the profiles on which it tries deals.
    """

    breaks_deals = False
    _talk: Talk | None = None

    def hear(self, talk: Talk) -> None:
        """Learn the deals of this phase, before it orders."""
        state = talk.games.state
        self._talk = talk
        self._heard = state.seed[talk.game].copy(), state.turn[talk.game].copy()

    def weights(self, talk: Talk) -> tuple[np.ndarray, np.ndarray]:
        """Return who looks for an answer (n,) bool, and how it weighs all powers' shares (n, P)."""
        raise NotImplementedError

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return an order number for each slot, (S,) int32."""
        numbers = super().act(games, decisions)
        talk, state = self._talk, games.state
        if talk is None or talk.games is not games:
            return numbers
        present = (state.seed[talk.game] == self._heard[0]) & (
            state.turn[talk.game] == self._heard[1]
        )
        wanted, weights = self.weights(talk)
        seat_of = np.full((games.num_games, games.num_powers), NONE, np.int64)
        looking = np.flatnonzero(present & wanted)
        seat_of[talk.game[looking], talk.power[looking]] = looking
        seats = seat_of[decisions.game, decisions.power]
        rows = np.flatnonzero(in_movement(state, decisions.game) & (seats != NONE))
        if not len(rows):
            return numbers
        provinces = len(games.board.terrain)
        own, seats = decisions.by_province(numbers, provinces)[rows], seats[rows]
        best = self.trials.respond(talk.take(seats), own, weights[seats], not self.breaks_deals)
        orders = np.full((decisions.count, provinces), NONE, np.int32)
        orders[rows] = best
        row = decisions.slot_decision
        asked = np.isin(row, rows)
        numbers = numbers.copy()
        numbers[asked] = orders[row[asked], decisions.slot_province[asked]]
        return numbers


class Breaker(Responder):
    """Deals as `nash` does, and then orders what is best for it if the others keep the deals."""

    breaks_deals = True

    def weights(self, talk: Talk) -> tuple[np.ndarray, np.ndarray]:
        """Return that it looks for an answer where it has a deal, for its own sake."""
        dealt = talk.known.dealt[self._seats(talk)].any(1)
        return dealt, (np.arange(talk.games.num_powers) == talk.power[:, None]).astype(float)


class Grudge(Nash):
    """As `nash`, but makes no deals for some years with who broke one with it.

    Args:
        player, name, profiles: as for planners.Planner.
        years: that pass before it deals with a breaker again.
    """

    def __init__(self, player: Player, name: str, profiles: int = 8, years: int = GRUDGE_YEARS):
        super().__init__(player, name, profiles)
        self.years = years

    def distrusts(self, talk: Talk) -> np.ndarray:
        """Return which powers broke a deal with each of those asked of late, (n, P) bool."""
        if talk.breaches is None:
            return np.zeros((len(talk.game), talk.games.num_powers), bool)
        return (talk.breaches != NONE) & (talk.breaches < self.years)

    def partners(self, talk: Talk, around: Surroundings) -> np.ndarray:
        """Return with whom each power would deal at all, (n, P) bool."""
        return super().partners(talk, around) & ~self.distrusts(talk)

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Return whether each offer is agreed to, (n,) bool."""
        n = np.arange(len(talk.game))
        return super().answers(talk, offers) & ~self.distrusts(talk)[n, offers.sender]

    def refusal(self, talk: Talk, offers: Offers) -> str:
        """Return why the first offer is declined, in a sentence's part."""
        if self.distrusts(talk)[0, offers.sender[0]]:
            return "it has not forgotten that you broke a deal"
        return super().refusal(talk, offers)

    def choices(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Return which offers are picked, (n,) bool."""
        n = np.arange(len(talk.game))
        distrusted = self.distrusts(talk)[n, partner_of(talk, offers)]
        return super().choices(talk, offers) & ~distrusted


class Sanction(Grudge, Responder):
    """As `grudge`, and what a breaker loses is as much worth to it as what it gains itself."""

    def weights(self, talk: Talk) -> tuple[np.ndarray, np.ndarray]:
        """Return that it looks for an answer to breakers, whose loss counts as its own gain."""
        distrusts = self.distrusts(talk)
        own = np.arange(talk.games.num_powers) == talk.power[:, None]
        return distrusts.any(1), own.astype(float) - distrusts

    def worth(self, talk: Talk, gains: np.ndarray) -> np.ndarray:
        """Return what gains (n, P) of all powers are to those asked, (n,)."""
        return (gains * self.weights(talk)[1]).sum(1)
