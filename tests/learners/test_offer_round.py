"""A round of offers in training: who is asked, what is heard, and what comes of it."""

import numpy as np

from diplomacy_engine import Game
from diplomacy_engine.constants import NONE
from diplomacy_engine.press.press import Press
from diplomacy_engine.press.talk_views import SLOTS, TEMPLATE_OF, who_can_answer
from diplomacy_learners.press import OfferRound

ENGLAND, ITALY, RUSSIA = range(3)


def test_who_is_not_asked_hears_nothing_and_agrees_to_nothing():
    """So it is with bots and with seats that order at random."""
    games = Game.from_position(
        "three S1901M; ENGLAND A GRE, A GAL = LON GRE; ITALY A VIE, A ALB = ROM VIE; "
        "RUSSIA A SER, A BUD = MOS SER BUD NWY SWE"
    ).vector_game
    decisions = games.decisions()
    talk = OfferRound(Press(games, "offers"), decisions, who_can_answer(decisions, (1, 3)))
    game, power = np.zeros(2, np.int64), np.array([ENGLAND, ITALY])  # and RUSSIA is not
    able, _, heard, _ = talk.question(game, power)
    # Each offers the next one what comes first: ENGLAND to ITALY, ITALY to RUSSIA.
    slot = able[[0, 1], power + 1].argmax(1)
    assert able[[0, 1], power + 1, slot].all()
    choice, logprob = (power + 1) * SLOTS + slot, np.full(2, -1.0)
    talk.note(game, power, choice, logprob, heard != NONE, np.full(heard.shape, -0.5))
    talk.settle()
    told = {name: array[0] for name, array in talk.talk.items()}
    assert told["heard"][ITALY].tolist() == [TEMPLATE_OF[slot[0]], NONE, NONE]
    assert told["answer"][ITALY].tolist() == [1, NONE, NONE]
    assert told["talk_logprob"].tolist() == [-1, -1.5, 0]
    assert told["choice"][RUSSIA] == NONE
    assert (told["heard"][RUSSIA] == NONE).all() and (told["answer"][RUSSIA] == NONE).all()
    expected = np.zeros((3, 3), bool)
    expected[ENGLAND, ITALY] = expected[ITALY, ENGLAND] = True
    assert np.array_equal(told["dealt"], expected)
