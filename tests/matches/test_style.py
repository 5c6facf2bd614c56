"""The style block of an evaluation: what a person would notice of a player's orders."""

import numpy as np
import pytest

from diplomacy_engine import Game, evaluate_player, make_bot
from diplomacy_engine.matches.order_counts import OrderCounter

SEATS = np.array([[1, 1, 0, 1, 1, 1, 1]])  # FRANCE is the player's


def counted(position: str, *phases: dict[str, list[str]]) -> dict[str, float]:
    game, counter = Game.from_position(position, "standard"), OrderCounter(0)
    for orders in phases:
        for power, texts in orders.items():
            game.submit(power, texts)
        games, given = game.vector_game, game.vector_game.new_orders()
        for v, number in game.order_numbers().items():
            given[0, v] = number
        counter.look(games, games.decisions(), given, SEATS)
        moving = np.array([game.phase.endswith("M")])
        game.adjudicate()
        if moving.any():
            counter.note(games, SEATS, moving, None)
    return counter.style(1)


FRANCE = (
    "standard S1902M; FRANCE A PAR, A BUR, A GAS, F MAO = PAR MAR BRE; GERMANY A MUN, F HOL = MUN"
)


@pytest.mark.parametrize(
    ("orders", "figures"),
    [
        (["A PAR S A BUR - PIC", "A BUR - PIC"], {}),
        (["A PAR S A BUR - PIC", "A BUR - RUH"], {"unmatched_own_supports": 1}),
        (["A PAR S A BUR", "A GAS S A BUR", "A BUR - PIC"], {"unmatched_own_supports": 1}),
        (["A PAR S A BUR", "A GAS S A BUR - MAR"], {"unmatched_own_supports": 0.5}),
        (["A BUR S A MUN - RUH"], {"unmatched_foreign_supports": 1}),
        (["A BUR S A MUN", "A PAR - BRE"], {}),
        (["A PAR - BUR"], {"moves_against_own": 1}),
        (["A PAR - BUR", "A BUR - PIC"], {}),
        (["F MAO C A GAS - NAF", "A GAS - NAF VIA"], {"convoyed_armies": 1}),
        (["A GAS - NAF VIA"], {}),
    ],
)
def test_what_is_odd_in_a_phase(orders, figures):
    expected = dict.fromkeys(counted(FRANCE), 0) | {"positions": 1} | figures
    assert counted(FRANCE, {"FRANCE": orders}) == pytest.approx(expected)


def test_moves_that_fail_again_and_again():
    bounce = {"FRANCE": ["A PAR - BUR"], "GERMANY": ["A MUN - BUR"]}
    calm = {"FRANCE": ["A PAR H"], "GERMANY": ["A MUN H"]}
    position = "standard S1902M; FRANCE A PAR = PAR; GERMANY A MUN = MUN"
    assert counted(position, bounce, bounce)["repeated_failures"] == 0
    assert counted(position, bounce, bounce, bounce)["repeated_failures"] == pytest.approx(1 / 3)
    assert counted(position, bounce, bounce, calm, bounce)["repeated_failures"] == 0


@pytest.mark.parametrize(("builds", "waived"), [(["A PAR B"], 0.5), ([], 1), (["WAIVE"], 1)])
def test_builds_that_are_waived(builds, waived):
    position = "standard W1902A; FRANCE A SPA, F POR = SPA POR BRE PAR; GERMANY = MUN"
    assert counted(position, {"FRANCE": builds})["waived_builds"] == waived


def test_positions_after_the_first_year():
    one = evaluate_player("standard", make_bot("hold"), make_bot("hold"), 14, max_years=2)
    many = evaluate_player("standard", make_bot("random"), make_bot("random"), 140, max_years=2)
    assert one.result()["style"]["positions"] == 1
    assert one.result()["style"]["position_entropy"] == 0
    found = many.result()["style"]
    assert found["positions"] == 100  # of 140, all different
    assert found["position_entropy"] == pytest.approx(np.log2(140))
    parts = [
        evaluate_player(
            "standard", make_bot("random"), make_bot("random"), 140, max_years=2, part=(k, 2)
        )
        for k in range(2)
    ]
    assert parts[0].join(parts).result()["style"] == found
