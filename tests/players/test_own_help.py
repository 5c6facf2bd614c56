"""Policies that choose among orders without help for other powers, and mend those in vain."""

import numpy as np
import pytest
from support.self_play import make_run, play_phase
from support.tables import read_table

from diplomacy_engine import Game, VectorGame, load_map, load_player, make_bot
from diplomacy_engine.constants import ARMY, CONVOY, MOVE_VIA, NONE, SUPPORT_HOLD, SUPPORT_MOVE
from diplomacy_engine.games.observation import UNIT_OWNER
from diplomacy_engine.games.own_help import mended, own_choices
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.search.draws import PolicyDraws
from diplomacy_engine.rules.state import in_movement

HELP = (SUPPORT_HOLD, SUPPORT_MOVE, CONVOY)


def helped(games: VectorGame, power: np.ndarray, game: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return which orders help another power's unit."""
    location = games.table.other_location[order]
    whose = games.state.unit_power[game, games.board.location_province[location]]
    return np.isin(games.table.kind[order], HELP) & (whose != power)


@pytest.fixture(scope="module")
def games():
    """Return games on the standard map in the middle of much help for others."""
    games = VectorGame("standard", 20, seed=3)
    for _ in range(11):
        games.step(orders_of(games, make_bot("random")))
    return games


def test_nothing_else_is_left_out(games):
    decisions = games.decisions()
    decision = np.repeat(decisions.slot_decision, np.diff(decisions.order_start))
    strange = helped(games, decisions.power[decision], decisions.game[decision], decisions.order)
    assert 0.2 < strange.mean() < 0.8
    left = own_choices(games, decisions, False)
    np.testing.assert_array_equal(np.sort(left.slot_province), np.sort(decisions.slot_province))
    water = (CONVOY, MOVE_VIA)
    for d in range(decisions.count):
        orders, mine = ({*part.part(d, d + 1).order.tolist()} for part in (decisions, left))
        gone = np.array(list(orders - mine), int)
        at = decisions.power[[d]], decisions.game[[d]], gone
        assert mine <= orders
        assert (helped(games, *at) | np.isin(games.table.kind[gone], water)).all()
    assert (np.diff(left.order_start) > 0).all()
    assert own_choices(games, decisions, True) is decisions
    some = np.arange(decisions.count) % 2 == 0
    for helps in (True, False):
        rows = np.flatnonzero(some == helps)
        for found, same in zip(
            own_choices(games, decisions, some).take(rows),
            own_choices(games, decisions, helps).take(rows),
        ):
            np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize(
    ("units", "by_water"), read_table(__file__, "armies_go_where_own_fleets_lead_and_choose_first")
)
def test_armies_go_where_own_fleets_lead_and_choose_first(units, by_water):
    game = Game.from_position(f"standard S1902M; ENGLAND {units} =", "standard")
    decisions = game.decisions().take([0])
    left = own_choices(game.vector_game, decisions, False)
    vocabulary = game.vector_game.vocabulary
    texts = [vocabulary.texts[number] for number in left.order.tolist()]
    moves, convoys = {}, {}
    for text in texts:
        words = text.split()
        if words[-1] == "VIA":
            moves.setdefault(words[1], set()).add(words[3])
        if words[2] == "C":
            convoys.setdefault(words[4], set()).add(words[6])
    assert "; ".join(f"{v}: {', '.join(sorted(moves[v]))}" for v in sorted(moves)) == by_water
    assert convoys == moves
    kinds = game.vector_game.state.unit_kind[0, left.slot_province]
    assert (np.diff(kinds) >= 0).all() and kinds[0] == ARMY


@pytest.mark.parametrize("helps", [True, False])
def test_a_policy_is_asked_as_it_was_trained(games, helps):
    player = load_player("standard-pure-2", game_map=load_map("standard"))
    player.agent.agent.cross_support = helps
    decisions = games.decisions()
    decision = np.repeat(decisions.slot_decision, np.diff(decisions.order_start))
    at = decisions.power[decision], decisions.game[decision]
    strange = helped(games, *at, decisions.order)
    probability = player.explain(games, decisions).probability
    assert (probability[strange] > 0).any() == helps
    slots = np.repeat(np.arange(len(decisions.slot_province)), np.diff(decisions.order_start))
    np.testing.assert_allclose(np.bincount(slots, probability), 1, atol=1e-4)

    power, game = (part[decisions.slot_decision] for part in (decisions.power, decisions.game))
    draws, seeds = PolicyDraws(player, 3.0), np.arange(decisions.count, dtype=np.uint64)
    drawn, _ = draws.draw(games, decisions, np.repeat(seeds[:, None], 20, 1))
    row = np.nonzero(drawn != NONE)[0]
    given = decisions.power[row], decisions.game[row], drawn[drawn != NONE]
    assert helped(games, *given).any() == helps
    for orders in (player.act(games, decisions), draws.plain(games, decisions)):
        assert helps or not helped(games, power, game, orders).any()


@pytest.mark.parametrize("helps", [True, False])
def test_a_learner_has_the_orders_of_its_settings(helps):
    run = make_run(map="standard", num_envs=8, learner_seats=4, cross_support=helps)
    for _ in range(7):
        play_phase(run)
    board, table, found = run.games.board, run.games.table, []
    for obs, decisions, _ in run.buffer.experience:
        decision = np.repeat(decisions.slot_decision, np.diff(decisions.order_start))
        helper = np.isin(table.kind[decisions.order], HELP)
        there = board.location_province[table.other_location[decisions.order]]
        owner = obs.board[obs.row[decision], there, UNIT_OWNER] - 1  # as the first power sees it
        found.append(helper & (owner != decisions.power[decision]))
    assert np.concatenate(found).any() == helps


@pytest.mark.parametrize(("given", "played"), read_table(__file__, "orders_in_vain_are_mended"))
def test_orders_in_vain_are_mended(given, played):
    position = "standard S1902M; FRANCE A PAR, A BUR, A GAS, F MAO = PAR; GERMANY A MUN = MUN"

    def numbers(texts):
        game = Game.from_position(position, "standard")
        game.submit("FRANCE", texts.split(", "))
        found, mine = game.order_numbers(), game.decisions().take([0])
        holds = mine.order[mine.order_start[:-1]]
        orders = zip(mine.slot_province.tolist(), holds)
        return game, mine, np.array([found.get(v, hold) for v, hold in orders], np.int32)

    expected = numbers(played or given)[2]
    np.testing.assert_array_equal(mended(*_games(numbers(given))), expected)


def _games(asked: tuple) -> tuple:
    game, decisions, numbers = asked
    return game.vector_game, decisions, numbers


def test_among_people_openings_differ_and_nothing_is_in_vain():
    usual, in_vain = {}, {}
    for careful in (False, True):
        games, game_map = VectorGame("standard", 60, seed=1), load_map("standard")
        player = load_player("standard-0.3-2", game_map=game_map, careful=careful)
        decisions = games.decisions()
        turkey = player.act(games, decisions.take(decisions.power == 6)).reshape(60, -1)
        usual[careful] = np.unique(turkey, axis=0, return_counts=True)[1].max()
        player.careful = False
        for _ in range(14):
            games.step(orders_of(games, player))
        player.careful = careful
        decisions = games.decisions()
        decisions = decisions.take(in_movement(games.state, decisions.game))
        given = player.act(games, decisions)
        in_vain[careful] = (mended(games, decisions, given) != given).sum()
    assert usual[True] < 36 < usual[False]  # of 60 games
    small = VectorGame("small", 60, seed=1)  # where an opening is one order
    player = load_player("small-dumbbot-2", game_map=small.map, careful=True)
    england = orders_of(small, player)[:, small.state.unit_power[0] == 0]
    assert np.unique(england, return_counts=True)[1].max() > 36
    assert in_vain[True] == 0 < in_vain[False]
