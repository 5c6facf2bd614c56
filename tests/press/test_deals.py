"""Deals as arrays: lists bound by them, orders corrected, refusals, secrecy, batches."""

import numpy as np
import pytest

from diplomacy_engine import Game, VectorGame, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.press.deals import Clause, OfferResult, Side, make_offers
from diplomacy_engine.press.press import Press
from tests.support.press import breaks, talk_at_random


def play_random_deals(map_name: str, games_at_once: int, phases: int, seed: int) -> set[int]:
    rng = np.random.default_rng(seed)
    games = VectorGame(map_name, games_at_once, seed=seed, threads=2)
    press, bot, seen = Press(games, "offers", 2), make_bot("chaos"), set()
    for _ in range(phases):
        asked, results = talk_at_random(press, rng)
        seen |= set(results.tolist())
        full = games.decisions()
        bound = press.bound(full)
        for name in ("game", "power", "slot_start", "slot_province"):
            assert np.array_equal(getattr(full, name), getattr(bound, name))
        rows = full.slot_decision
        by_power = {}
        for one in asked:
            by_power.setdefault((one.game, one.power), []).append(one)
        for s, d in enumerate(rows):
            power, v = int(full.power[d]), int(full.slot_province[s])
            mine = by_power.get((int(full.game[d]), power), [])
            orders = full.order[full.order_start[s] : full.order_start[s + 1]].tolist()
            left = bound.order[bound.order_start[s] : bound.order_start[s + 1]].tolist()
            assert left, "a list is empty"
            assert left == [
                n for n in orders if not any(breaks(games, power, v, n, one) for one in mine)
            ]
        hostile = games.new_orders()
        hostile[:] = rng.integers(NONE, len(games.vocabulary), hostile.shape)
        orders = orders_of(games, bot, full) if rng.random() < 0.5 else hostile
        press.correct(orders, bound)
        assert not press.judge(orders, full).any()
        games.step(orders)
    return seen


@pytest.mark.parametrize(
    "map_name, at_once, phases", [("small", 6, 40), ("three", 6, 40), ("standard", 2, 12)]
)
def test_lists_are_what_a_plain_predicate_leaves(map_name, at_once, phases):
    seen = play_random_deals(map_name, at_once, phases, seed=5)
    assert {
        OfferResult.CONFIRMED,
        OfferResult.DECLINED,
        OfferResult.CONTRADICTS,
        OfferResult.OWN,
    } <= seen


POSITION = "small S1901M; ENGLAND A PAR, A LON = LON PAR; RUSSIA A ROM, A MUN = MOS"


def clause(games, kind, side=Side.BOTH, province=None, order=None):
    v = NONE if province is None else games.map.province_index[province]
    return kind, side, v, NONE if order is None else games.vocabulary.number[order]


def promise(games, text, side=Side.SENDER):
    return clause(games, Clause.ORDER, side, text[2:5], text)


def settle(press, *clauses, sender=0, receiver=1, agreed=True):
    offers = make_offers([(0, sender, receiver, list(clauses))])
    return OfferResult(int(press.settle(offers, np.array([agreed]))[0]))


def test_refusals_say_why_and_change_nothing():
    games = Game.from_position(POSITION).vector_game
    press = Press(games, "offers")
    first, other = promise(games, "A PAR - ROM"), promise(games, "A PAR H")
    wrong = (
        [clause(games, Clause.ORDER, Side.SENDER, "PAR", "A ROM H")],  # another unit's
        [promise(games, "A PAR S A SPA")],  # nobody to support
        [clause(games, Clause.ZONE, Side.SENDER, "LON")],
        [(Clause.KEEP_OUT, Side.SENDER, 999, NONE)],
        [(9, Side.SENDER, 0, NONE)],
    )
    assert settle(press, first, receiver=0) == OfferResult.OWN
    for clauses in wrong:
        assert settle(press, *clauses) == OfferResult.ILLEGAL, clauses
    leave = clause(games, Clause.LEAVE, Side.SENDER, "PAR")
    keep_out = clause(games, Clause.KEEP_OUT, Side.SENDER, "ROM")
    for clauses in ([first, keep_out], [other, leave]):
        assert settle(press, *clauses) == OfferResult.CONTRADICTS
    assert not any(array.any() for array in press.deals[1:])
    assert (press.deals.promised == NONE).all()
    assert settle(press, first) == OfferResult.CONFIRMED
    kept = [array.copy() for array in press.deals]
    assert settle(press, other, sender=1, receiver=0) == OfferResult.ILLEGAL
    assert settle(press, promise(games, "A PAR H", Side.RECEIVER), sender=1, receiver=0) == (
        OfferResult.CONTRADICTS
    )
    assert (
        settle(press, clause(games, Clause.PEACE)) == OfferResult.CONTRADICTS
    )  # A PAR goes to its unit
    assert all(map(np.array_equal, kept, press.deals))
    games.step(games.new_orders())
    assert press.talking().all() and not press.deals.dealt.any()
    winter = Game.from_position(POSITION.replace("S1901M", "W1901A")).vector_game
    press = Press(winter, "offers")
    assert settle(press, first) == OfferResult.LATE and not press.talking().any()


def test_dead_powers_make_no_deals():
    games = Game.from_position("three S1901M; ENGLAND A LON = LON; ITALY A ROM = ROM").vector_game
    press = Press(games, "offers")
    dead = games.map.power_index["RUSSIA"]
    assert settle(press, clause(games, Clause.PEACE), receiver=dead) == OfferResult.DEAD_POWER
    mutual = Press(games, "mutual")
    assert mutual.propose(np.ones((1, 3, 3), bool)).tolist() == [1]


def test_others_do_not_see_a_deal():
    games = VectorGame("three", 2, seed=3, auto_reset=False)
    silent, talked = Press(games, "offers"), Press(games, "offers")
    assert settle(talked, clause(games, Clause.PEACE)) == OfferResult.CONFIRMED
    assert settle(talked, promise(games, "A LON H")) == OfferResult.CONFIRMED
    game, power = np.zeros(3, np.int64), np.arange(3)
    promised = talked.known(game, power).promised[:, games.map.province_index["LON"]]
    assert (promised != NONE).tolist() == [True, True, False]
    for without, with_deal in zip(silent.known(game, power), talked.known(game, power)):
        assert np.array_equal(without[2], with_deal[2])
    for without, with_deal in zip(silent.observe(game, power), talked.observe(game, power)):
        assert np.array_equal(without[2], with_deal[2])
    assert talked.observe(game, power).peace[0].tolist() == [False, True, False]
    open_press = Press(games, "offers", open_press=True)
    assert settle(open_press, clause(games, Clause.PEACE)) == OfferResult.CONFIRMED
    assert open_press.observe(game, power).peace[2].tolist() == [False] * 3
    assert open_press.known(game, power).peace[2, 0, 1]


def test_who_is_confirmed_first_rotates():
    games = VectorGame("small", 400, seed=1, auto_reset=False)
    position = Game.from_position(POSITION).vector_game
    games.copy_from(position, np.zeros(400, np.int64), np.arange(400))
    press = Press(games, "offers")
    rows = []
    for e in range(400):
        rows.append((e, 0, 1, [promise(games, "A PAR H")]))
        rows.append((e, 1, 0, [promise(games, "A PAR - ROM", Side.RECEIVER)]))
    results = press.settle(make_offers(rows), np.ones(800, bool)).reshape(400, 2)
    assert (np.sort(results, 1) == (OfferResult.CONFIRMED, OfferResult.CONTRADICTS)).all()
    assert 150 < (results[:, 0] == OfferResult.CONFIRMED).sum() < 250
    again = Press(games, "offers")
    assert np.array_equal(
        results, again.settle(make_offers(rows), np.ones(800, bool)).reshape(400, 2)
    )


def test_only_who_keeps_its_word_is_bound():
    rng, broken = np.random.default_rng(11), 0
    games = VectorGame("three", 12, seed=11, threads=2)
    free, binding = Press(games, "offers", binding=False), Press(games, "offers")
    for _ in range(25):
        talk_at_random(binding, rng)
        free.take_up(binding.deals)
        honest = rng.random((12, 3)) < 0.5
        full = games.decisions()
        found, bound = free.bound(full, honest), binding.bound(full)
        kept = honest[full.game, full.power]
        for rows, same in ((kept, bound), (~kept, full)):
            for one, other in zip(found.take(rows), same.take(rows)):
                assert np.array_equal(one, other)
        orders = games.new_orders()
        orders[:] = rng.integers(NONE, len(games.vocabulary), orders.shape)
        corrected = orders.copy()
        binding.correct(corrected, bound)
        free.correct(orders, found, honest)
        owner = games.state.unit_power
        mine = (owner != NONE) & honest[np.arange(12)[:, None], owner]
        assert np.array_equal(orders[mine], corrected[mine])
        count = free.judge(orders, full)
        assert not count[honest].any()
        broken += int(count.sum())
        games.step(orders)
    assert broken > 0
    assert (free.tally.words_kept <= free.tally.words).all() and free.tally.words_kept.sum() > 0
    mask = free.tally.broken_year != NONE
    assert np.array_equal(mask, free.tally.broken > 0)
