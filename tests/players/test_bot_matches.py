"""Whole matches between the bots, against an independent implementation of the same text.

The rows are those of the specification's section 11: one power plays the first bot, six play the
second, standard map, cut at the end of 1920, powers rotating.
"""

import math

import pytest

from diplomacy_engine import evaluate_player, make_bot

N, P, RANDOM = "dumbbot", "dumbbot-paquette", "random"
ROWS = [  # one, six others, their games; solo, alive, mean centers, sum of squares
    (N, RANDOM, 210, 0.995, 1.0, 19.3, 0.998),
    (P, RANDOM, 105, 0.81, 1.0, 17.9, 0.923),
    (N, P, 105, 0.057, 0.933, 7.2, 0.319),
    (P, N, 105, 0.0, 0.905, 3.7, 0.083),
    (N, N, 105, 0.019, 0.914, 4.6, 0.136),
    (P, P, 49, 0.0, 0.98, 4.0, 0.153),
    (RANDOM, N, 105, 0.0, 0.695, 1.3, 0.013),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "others", "games", "solo", "alive", "centers", "squares"),
    ROWS,
    ids=[f"{one}-{others}" for one, others, *_ in ROWS],
)
def test_matches_agree_with_the_other_implementation(
    one, others, games, solo, alive, centers, squares
):
    players = make_bot(one), make_bot(others)
    result = evaluate_player("standard", *players, num_games=2100, seed=11, max_years=20).result()
    found = result["overall"]
    for name, theirs in (("solo", solo), ("survival", alive)):
        ours = found[name]["value"]
        rate = (ours * 2100 + theirs * games) / (2100 + games)
        error = math.sqrt(rate * (1 - rate) * (1 / 2100 + 1 / games))
        assert abs(ours - theirs) <= 3 * error + 1e-9, name
    # Their figures are rounded; their spread per game is taken to be ours.
    for name, theirs, rounding in (("centers", centers, 0.05), ("sum_of_squares", squares, 5e-4)):
        figure = found[name]
        error = (figure["high"] - figure["low"]) / 2 / 1.96
        error *= math.sqrt(1 + 2100 / games)
        assert abs(figure["value"] - theirs) <= 3 * error + rounding, name
