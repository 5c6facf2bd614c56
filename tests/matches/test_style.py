"""The style block of an evaluation: what a person would notice of a player's orders."""

import numpy as np
import pytest
from support.tables import read_table

from diplomacy_engine import Game, evaluate_player, load_map, make_bot
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
            counter.note(games, SEATS, moving)
    return counter.style(1)


FRANCE = (
    "standard S1902M; FRANCE A PAR, A BUR, A GAS, F MAO = PAR MAR BRE; GERMANY A MUN, F HOL = MUN"
)


@pytest.mark.parametrize(("orders", "figures"), read_table(__file__, "what_is_odd_in_a_phase"))
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


@pytest.mark.parametrize(
    ("name", "team", "draws_after"),
    [("small", [], None), ("three", ["ENGLAND", "ITALY"], None), ("small", [], 1903)],
)
def test_orders_openings_and_centers_by_result(name, team, draws_after):
    """As counted in the saved games."""
    match = load_map(name).with_teams("+".join(team)) if team else load_map(name)
    bots = make_bot("dumbbot"), make_bot("dumbbot-paquette")
    limits, seen = {"max_years": 8, "draws_after": draws_after}, {}
    report = evaluate_player(match, *bots, 60, samples=60, seed=3, **limits)
    for saved in report.saved_games:
        own = {power for power, player in saved["players"].items() if player == "dumbbot"}
        *phases, end = saved["phases"]

        def centers(phase, powers):
            return sum(len(phase["state"]["centers"][power]) for power in powers)

        sides = [{power} for power in saved["players"] if power not in team]
        sides += [set(team)] * bool(team)
        held = sorted((centers(end, side), side == own) for side in sides)
        won, drawn = held[-1][1], held[-1][0] == held[-2][0]
        winners = set(saved["winners"])  # all that survive, if the years are over
        if any(winners <= side for side in sides):
            won, drawn = winners <= own, False
        drawn |= saved.get("draw_agreed", False)
        mine = seen.setdefault("drawn" if drawn else "won" if won else "lost", [])
        years = {int(p["name"][1:5]) - 1: centers(p, own) for p in phases if p["name"][0] == "S"}
        if phases[-1]["name"][0] != "S":  # else the year's centers were not counted any more
            years[int(phases[-1]["name"][1:5])] = centers(end, own)
        del years[1900]
        moves = [
            [t for p in own for t in q["orders"][p] or ()] for q in phases if q["name"][5] == "M"
        ]
        mine.append((years, moves))
    found = report.result()["by_result"]
    assert found.keys() == seen.keys() and len(found) > 1
    for key, part in found.items():
        games = seen[key]
        assert part["games"] == len(games)
        opened = [set(moves[0]) for _, moves in games]
        for text, share in part["openings"].items():
            assert share == pytest.approx(opened.count(set(text.split(", "))) / len(games))
        assert len(part["openings"]) <= 10 and max(part["openings"].values()) > 0
        for year, value in part["centers"].items():
            each = [years[int(year)] for years, _ in games if int(year) in years]
            assert value == pytest.approx(np.mean(each))
        assert {int(year) for year in part["centers"]} == {y for years, _ in games for y in years}
        orders = [text for _, moves in games for phase in moves for text in phase]
        support = np.mean([" S " in text for text in orders])
        assert part["orders"]["support"] == pytest.approx(support)
