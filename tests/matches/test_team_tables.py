"""Matches of teams: whole teams take turns, figures per team, help and attacks among allies."""

import numpy as np
import pytest

from diplomacy_engine import Game, evaluate_player, load_map, make_bot
from diplomacy_engine.matches.order_counts import OrderCounter
from diplomacy_engine.matches.tournament import play_tournament

THREE = load_map("three").with_teams("ENGLAND+ITALY", 8)


def test_a_player_has_all_powers_of_a_team():
    report = evaluate_player(THREE, make_bot("dumbbot"), make_bot("random"), 19, seed=3, samples=4)
    result, saved = report.result(per_game=True), report.saved_games
    assert result["games"] == 20 and result["teams"] == "ENGLAND+ITALY"
    assert result["team_victory"] == 8
    players = [list(game["players"].values()) for game in saved]
    assert players == [["dumbbot", "dumbbot", "random"], ["random", "random", "dumbbot"]] * 2
    assert [game["teams"] for game in saved] == ["ENGLAND+ITALY"] * 4
    assert set(result["by_team"]) == {"ENGLAND+ITALY", "RUSSIA"}
    assert set(result["by_power"]) == {"ENGLAND", "ITALY", "RUSSIA"}
    tables = [result["overall"], *result["by_team"].values(), *result["by_power"].values()]
    for table in tables:
        assert sum(table[name]["value"] for name in ("solo", "draw", "loss")) == pytest.approx(1)
    alone, team = result["by_power"], result["by_team"]
    assert team["RUSSIA"]["centers"] == alone["RUSSIA"]["centers"]
    both = alone["ENGLAND"]["centers"]["value"] + alone["ITALY"]["centers"]["value"]
    assert team["ENGLAND+ITALY"]["centers"]["value"] == pytest.approx(both)
    assert {row["team"] for row in result["per_game"]} == {"ENGLAND+ITALY", "RUSSIA"}
    assert 0 <= result["orders"]["ally_attack"] <= 1


def test_help_and_attacks_among_allies():
    position = (
        "three F1901M; ENGLAND A LON, A BER = LON BER; ITALY A PRU, A MUN = ROM; RUSSIA A BOH = MOS"
    )
    game = Game.from_position(position, THREE)
    game.submit("ENGLAND", ["A BER S A MUN", "A LON - WAL"])  # for an ally; against nobody
    game.submit("ITALY", ["A PRU - BER", "A MUN S A PRU - BER"])
    games = game.vector_game
    orders = games.new_orders()
    for v, number in game.order_numbers().items():
        orders[0, v] = number
    counters, seats = [OrderCounter(number) for number in range(2)], np.array([[0, 0, 1]])
    for counter in counters:
        counter.look(games, games.decisions(), orders, seats)
    games.step(orders)
    for counter in counters:
        counter.note(games, seats, np.array([True]))
    # ITALY moves against ENGLAND's army, which stays; its support is for a unit of its own.
    kinds = ("helps", "helps_ally", "moves_beside_ally", "moves_against_ally")
    assert [counters[0].counts[kind] for kind in kinds] == [2, 1, 2, 1]
    shares = counters[0].shares()
    assert shares["ally_support"] == shares["ally_attack"] == 0.5
    assert "ally_support" not in counters[1].shares()  # RUSSIA has no ally


def test_tournaments_seat_whole_teams():
    players = [make_bot(name) for name in ("dumbbot", "random", "hold")]
    report = play_tournament(THREE, players, 12, seed=1, samples=12)
    result, saved = report.result(per_game=True), report.saved_games
    for game in saved:
        assert game["players"]["ENGLAND"] == game["players"]["ITALY"]
    found = result["players"]["dumbbot"]
    assert found["seats"] == 8 and set(found["by_team"]) == {"ENGLAND+ITALY", "RUSSIA"}
    assert found["by_power"]["RUSSIA"]["centers"] == found["by_team"]["RUSSIA"]["centers"]
    assert len(result["per_game"]) == 24
