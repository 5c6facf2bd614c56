"""The offers of one phase of self-play: possible offers, offers made, and answers."""

import numpy as np

from diplomacy_engine.constants import NONE
from diplomacy_engine.games.decisions import Decisions
from diplomacy_engine.press.negotiators.templates import deal_offers, possible_deals
from diplomacy_engine.press.press import Press
from diplomacy_engine.press.talk_views import SLOTS, TEMPLATE_OF, OfferViews, silence


class OfferRound:
    """One round of offers in all games; all powers that are asked talk at once.

    Each power is asked once for its offer and its answers to all possible offers, so its board is
    encoded once. `able` (E, P): powers that can talk; `talk`: the talk of OfferViews of every seat,
    (E, P, ...).
    """

    def __init__(self, press: Press, decisions: Decisions, able: np.ndarray):
        self.press, self.decisions, self.able = press, decisions, able
        games, rows = press.games, np.flatnonzero(able.any(1))
        self.row = np.full(len(able), NONE)
        self.row[rows] = np.arange(len(rows))
        self.possible = possible_deals(games, decisions, rows)
        self.asked = np.zeros(able.shape, bool)
        talk = silence(OfferViews, able.size, games.num_powers).items()
        self.talk = {name: array.reshape(*able.shape, *array.shape[1:]) for name, array in talk}
        self.talk["peace"], self.talk["dealt"] = press.deals.peace, press.deals.dealt
        # By receiver and sender: offers that would be accepted, and the answers' log-probabilities.
        self.agreed = np.zeros(self.possible.able.shape, bool)
        self.answer_logprob = np.zeros(self.agreed.shape, np.float32)

    def question(self, game: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the possible offers of powers (n,) of games (n,) to each other power, with places.

        Then the templates that each other one can offer them, or NONE, and their places.
        """
        row, able, places = self.row[game], self.possible.able, self.possible.places
        self.asked[game, power] = True
        self.talk["able"][game, power] = able[row, power]
        self.talk["places"][game, power] = places[row, power]
        heard = np.where(able[row, :, power], TEMPLATE_OF, NONE)
        return able[row, power], places[row, power], heard, places[row, :, power]

    def note(
        self,
        game: np.ndarray,
        power: np.ndarray,
        choice: np.ndarray,
        logprob: np.ndarray,
        agreed: np.ndarray,
        answer_logprob: np.ndarray,
    ) -> None:
        """Keep the talk of powers (n,) of games (n,).

        `choice` (n,) is power * SLOTS + slot of what is offered, or NONE; `agreed` (n, P, SLOTS)
        what they would agree to.
        """
        self.talk["choice"][game, power] = choice
        self.talk["talk_logprob"][game, power] = logprob
        self.agreed[self.row[game], power] = agreed
        self.answer_logprob[self.row[game], power] = answer_logprob

    def settle(self) -> None:
        """Make deals of the accepted offers; powers that were not asked accept nothing."""
        talk = self.talk
        game, sender = np.nonzero(talk["choice"] != NONE)
        receiver, slot = np.divmod(talk["choice"][game, sender].astype(np.int64), SLOTS)
        row = self.row[game]
        agreed = self.agreed[row, receiver, sender, slot]
        offers = deal_offers(self.possible, row, game, sender, receiver, slot)
        self.press.settle(offers, agreed, self.decisions)
        answered = self.asked[game, receiver]
        game, row, sender, receiver, slot = (
            array[answered] for array in (game, row, sender, receiver, slot)
        )
        heard = game, receiver, sender
        talk["heard"][heard] = TEMPLATE_OF[slot]
        talk["heard_places"][heard] = self.possible.places[row, sender, receiver, slot]
        talk["answer"][heard] = agreed[answered]
        of_answers = self.answer_logprob[row, receiver, sender, slot]
        np.add.at(talk["talk_logprob"], (game, receiver), of_answers)
