"""The scripted players that look ahead: what a board is worth to them, and what they find."""

import numpy as np
import pytest

from diplomacy_engine import Game, VectorGame, make_bot
from diplomacy_engine.constants import RUNNING, SOLO, YEAR_LIMIT
from diplomacy_engine.players.asking import ask_player, orders_of
from diplomacy_engine.players.search.best_response import Lookahead
from diplomacy_engine.players.search.draws import PlayerDraws, VariedDraws
from diplomacy_engine.players.search.leaves import CenterClaims
from diplomacy_engine.players.search.uct import DecoupledUct, UctSettings
from diplomacy_engine.scoring.outcomes import figure_values


def small(name, units, centers, games=1, **others):
    """Return games of the small map in one position, each with a seed of its own."""
    state = {"name": name, "units": units, "centers": centers} | others
    one = Game.from_state("small", state).vector_game
    many = VectorGame("small", games, seed=4, auto_reset=False, threads=1)
    many.copy_from(one, np.zeros(games, int), np.arange(games))
    return many


def assert_finishes(player, games, phases):
    """Play all powers' movement phases and what comes between; all must end with ENGLAND's solo."""
    moves = 0
    while (games.state.end == RUNNING).any():
        moving = np.isin(games.state.phase, (0, 2)).any()
        moves += moving
        assert moves <= phases
        decisions = games.decisions()
        england = decisions.power == 0
        orders = orders_of(games, player, decisions.take(england))
        games.write_orders(
            orders,
            decisions.take(~england),
            ask_player(games, decisions.take(~england), make_bot("dumbbot")),
        )
        games.step(orders)
    assert (games.state.winner == 0).all() and moves == phases


FOUR = ["LON", "PAR", "POR", "ROM"]


@pytest.mark.parametrize("proposer", ["dumbbot", "random"])
def test_mcts_finds_a_solo_that_is_one_phase_away(proposer):
    games = small(
        "F1905M", {"ENGLAND": ["A MUN", "A LON"], "RUSSIA": ["A FIN"]}, {"ENGLAND": FOUR}, 4
    )
    settings = UctSettings(draws=64, candidates=40)
    player = DecoupledUct(PlayerDraws(make_bot(proposer)), CenterClaims(), "uct", settings)
    assert_finishes(player, games, 1)


def test_osla_takes_the_last_center_and_builds_at_once():
    units = {"ENGLAND": ["A MUN", "A LON"], "RUSSIA": ["A FIN"]}
    assert_finishes(make_bot("osla"), small("F1905M", units, {"ENGLAND": FOUR}, 4), 1)
    text = "standard W1902A; FRANCE A SPA, F POR = SPA POR BRE PAR; GERMANY = MUN"
    one = Game.from_position(text, "standard").vector_game
    games = VectorGame("standard", 12, seed=4, auto_reset=False, threads=1)
    games.copy_from(one, np.zeros(12, int), np.arange(12))
    games.step(orders_of(games, make_bot("osla")))
    france = games.map.power_index["FRANCE"]
    assert ((games.state.unit_power == france).sum(1) == 4).all()  # none waived, none twice


def test_mcts_finds_a_solo_that_is_two_phases_away():
    """Only Budapest is two moves from where the army stands."""
    centers = {"ENGLAND": FOUR, "RUSSIA": ["MOS"]}
    units = {"ENGLAND": ["A HOL"], "RUSSIA": ["A FIN"]}
    games = small("S1905M", units, centers, 4)
    assert_finishes(make_bot("mcts"), games, 2)


def play_until(games, phases):
    for _ in range(phases):
        games.step(orders_of(games, make_bot("dumbbot")))


def test_uct_keeps_its_budget_and_its_books():
    games = VectorGame("three", 3, seed=2, auto_reset=False, threads=1)
    play_until(games, 4)
    player = DecoupledUct(
        PlayerDraws(make_bot("dumbbot")), CenterClaims(), "uct", UctSettings(leaves=100)
    )
    decisions = games.decisions()
    player.choose(games, decisions)
    trees, count = player._forest.trees, decisions.count
    assert (trees.visits[:count, 0] == 100).all() and (trees.num_nodes[:count] <= 101).all()
    for t in range(count):
        assert trees.over[t, : trees.num_nodes[t]].sum() <= 100
        for n in range(trees.num_nodes[t]):
            of_power = trees.tried[t, n].sum(1)
            assert (of_power[trees.count[t, n] > 0] == trees.visits[t, n]).all()
        children = np.bincount(trees.parent[t, 1 : trees.num_nodes[t]])
        known = np.flatnonzero(children)
        assert (children[known] <= trees.visits[t, known]).all()


@pytest.mark.parametrize(("years", "ends"), [(2, YEAR_LIMIT), (6, SOLO)])
def test_finished_games_are_worth_their_results(years, ends):
    games = VectorGame("small", 200, seed=3, max_years=years, auto_reset=False, threads=1)
    running, paid = np.ones(200, bool), np.zeros((200, 2))
    while running.any():
        result = games.step(orders_of(games, make_bot("dumbbot")))
        paid += CenterClaims().paid(result, games.board.victory_centers)
        running = games.state.end == RUNNING
    assert (games.state.end == ends).any()
    exact = figure_values(games.outcomes(), games.board.victory_centers)["sum_of_squares"]
    np.testing.assert_allclose(CenterClaims().shares(games, np.arange(200)), exact, atol=1e-12)
    np.testing.assert_allclose(paid, exact, atol=1e-12)


def value(name, units, centers):
    games = small(name, units, centers)
    shares = CenterClaims().shares(games, np.array([0]))[0]
    assert shares.sum() == pytest.approx(1)
    return shares[0]


def test_centers_in_reach_and_in_danger_count():
    centers = {"ENGLAND": ["LON", "PAR"], "RUSSIA": ["MOS", "BUD"]}
    russia = {"RUSSIA": ["A FIN"]}
    far = value("F1903M", {"ENGLAND": ["A WAL"]} | russia, centers)
    near = value("F1903M", {"ENGLAND": ["A MUN"]} | russia, centers)
    there = value("F1903M", {"ENGLAND": ["A BUD"]} | russia, centers)
    assert far < near < there
    in_danger = value("F1903M", {"ENGLAND": ["A WAL"], "RUSSIA": ["A SPA"]}, centers)
    assert in_danger < far
    guarded = value("F1903M", {"ENGLAND": ["A PAR"], "RUSSIA": ["A SPA"]}, centers)
    assert in_danger < guarded


def test_varied_draws_differ_in_one_unit_and_are_legal():
    games = VectorGame("standard", 4, seed=5, threads=1)
    play_until(games, 8)
    decisions = games.decisions()
    seeds = np.random.default_rng(1).integers(0, 2**64, (decisions.count, 20), np.uint64)
    orders, _ = VariedDraws(PlayerDraws(make_bot("dumbbot"))).draw(games, decisions, seeds)
    plain, _ = PlayerDraws(make_bot("dumbbot")).draw(games, decisions, seeds[:, :10])
    assert (orders[:, :10] == plain).all()
    changed = (orders[:, 10:] != plain).sum(2)
    assert changed.max() == 1 and changed.mean() > 0.7
    for d in range(decisions.count):
        slots = range(decisions.slot_start[d], decisions.slot_start[d + 1])
        for s in slots:
            legal = decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]]
            assert np.isin(orders[d, :, decisions.slot_province[s]], legal).all()


def test_many_decisions_are_searched_in_parts(monkeypatch):
    games = VectorGame("small", 30, seed=1, threads=1)
    decisions = games.decisions()
    whole = Lookahead().act(games, decisions)
    monkeypatch.setattr("diplomacy_engine.players.search.player.MOST", 7)
    assert (Lookahead().act(games, decisions) == whole).all()
    few, (one, other) = decisions.take(np.arange(6)), (make_bot("mcts") for _ in range(2))
    one.settings = other.settings = UctSettings(leaves=40)
    trees = one.act(games, few)
    monkeypatch.setattr("diplomacy_engine.players.search.uct.MOST_TREES", 4)
    assert (other.act(games, few) == trees).all()
