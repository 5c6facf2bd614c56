"""The tactics bot: its plans against a plain count of what is sure, and against real opponents."""

import random
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from diplomacy_engine import MAP_NAMES, Game, VectorGame, load_map, make_bot
from diplomacy_engine.constants import (
    CONVOY,
    FALL_MOVEMENT,
    MOVE,
    MOVE_VIA,
    NONE,
    SPRING_MOVEMENT,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
)
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.bots.brane import MAX_HELPERS

STAY = (
    "stay",
)  # others: ("move", to); ("support", from, to), with from == to for a unit that stays


class Position:
    """What one power can make sure of in a movement phase, counted in the plainest way."""

    def __init__(self, games, e, power):
        board, state = games.board, games.state
        self.power, self.owner = power, {}
        self.units, self.reach = {}, {}  # province -> power; province -> provinces
        for v in np.flatnonzero(state.unit_power[e] != NONE).tolist():
            self.units[v] = int(state.unit_power[e, v])
            reached = board.reach[state.unit_kind[e, v], state.unit_location[e, v]]
            self.reach[v] = set(np.flatnonzero(reached).tolist())
        for c, v in enumerate(board.center_province.tolist()):
            self.owner[v] = int(state.center_owner[e, c])
        self.own = [v for v, other in self.units.items() if other == power]
        self.fall = state.phase[e] == FALL_MOVEMENT
        self.centers = [v for v in self.owner if self.counts(v)]

    def met(self, at, supporters):
        """Return how many units of each other power stand in or reach a place, or can cut."""
        places = {at, *supporters}
        return Counter(
            other
            for u, other in self.units.items()
            if other != self.power and (u == at or self.reach[u] & places)
        )

    def opposition(self, main, goal, supporters):
        most = max(self.met(goal, supporters).values(), default=0)
        there = self.units.get(goal, self.power)
        if there != self.power and main in self.reach[goal]:
            most = max(most, self.met(main, supporters)[there])
        return most

    def counts(self, v):
        """Tell whether a center is one to make sure of: in fall all but the safe own ones."""
        if self.owner[v] != self.power or self.units.get(v, self.power) != self.power:
            return True
        return self.fall and self.opposition(v, v, ()) > 0

    def is_sure(self, v, orders):
        if v in self.own:
            if orders[v][0] == "move":
                return False
            main = v
        else:
            movers = [u for u in self.own if orders[u] == ("move", v)]
            if len(movers) != 1:
                return False
            main = movers[0]
        supporters = [u for u in self.own if orders[u] == ("support", main, v)]
        keeps = v in self.own or (self.owner[v] == self.power and v not in self.units)
        return any(
            1 + size >= self.opposition(main, v, some) + (not keeps)
            for size in range(len(supporters) + 1)
            for some in combinations(supporters, size)
        )

    def sure(self, orders):
        """Return the centers that orders, `{province: order}`, make sure of."""
        return {v for v in self.centers if self.is_sure(v, orders)}

    def most(self):
        """Return the most centers that any joint orders make sure of."""
        options = {u: [STAY] for u in self.own}
        for u, v in product(self.own, self.centers):
            if v in self.reach[u]:
                if v not in self.own:
                    options[u].append(("move", v))
                mains = [v] if v in self.own else self.own
                options[u] += [
                    ("support", main, v)
                    for main in mains
                    if main != u and (main == v or v in self.reach[main])
                ]
        return max(len(self.sure(dict(zip(options, row)))) for row in product(*options.values()))


def read_orders(games, row):
    """Return one row of orders (V,) as a Position takes them."""
    table, province = games.table, games.board.location_province
    found = {}
    for v, number in enumerate(row.tolist()):
        if number == NONE:
            continue
        kind, target = table.kind[number], int(province[table.target[number]])
        other = int(province[table.other_location[number]])
        if kind == MOVE:
            found[v] = ("move", target)
        elif kind in (SUPPORT_HOLD, SUPPORT_MOVE):
            found[v] = ("support", other, other if kind == SUPPORT_HOLD else target)
        else:
            found[v] = STAY
    return found


def positions(map_name, count, seed, most_units=None):
    """Yield `(games, e, power, orders of brane)` of movement phases that bots reach."""
    games = VectorGame(map_name, 32, seed=seed, max_years=15)
    bots = [make_bot(name) for name in ("brane", "dumbbot", "random")]
    rng = random.Random(seed)
    while True:
        orders = [orders_of(games, bot) for bot in bots]
        for e in np.flatnonzero(np.isin(games.state.phase, (SPRING_MOVEMENT, FALL_MOVEMENT))):
            sizes = Counter(games.state.unit_power[e].tolist())
            fitting = [p for p in sizes if p != NONE and sizes[p] <= (most_units or 99)]
            if fitting and rng.random() < 0.3:
                power = rng.choice(sorted(fitting))
                yield games, e, power, [given[e] for given in orders]
                count -= 1
                if count == 0:
                    return
        # Rows of orders of each bot in turn; a row is not always played by the same bot.
        games.step(np.choose(np.array(rng.choices(range(3), k=32))[:, None], orders))


def own_orders(games, e, power, row):
    """Return the orders of one power's units among a row of orders of all."""
    return read_orders(games, np.where(games.state.unit_power[e] == power, row, NONE))


@pytest.mark.parametrize("map_name", MAP_NAMES)
def test_no_joint_orders_are_better(map_name):
    found = Counter()
    for games, e, power, (brane, *_) in positions(map_name, 80, 1, most_units=4):
        position = Position(games, e, power)
        sure = position.sure(own_orders(games, e, power, brane))
        assert len(sure) == position.most(), Game.from_row(games, e).to_state()
        found[len(sure)] += 1
    assert len(found) >= 3


@pytest.mark.parametrize("map_name", MAP_NAMES)
def test_what_is_sure_comes_true(map_name):
    """Whatever one other power orders, convoys left out, while all the rest hold."""
    checked = 0
    for opponent, seed in (("chaos", 4), ("random", 5), ("dumbbot", 6)):
        games = VectorGame(map_name, 16, seed=seed, max_years=15)
        rng = np.random.default_rng(seed)
        bots = {name: make_bot(name) for name in ("brane", "hold", opponent)}
        for _ in range(40):
            given = {name: orders_of(games, bot) for name, bot in bots.items()}
            theirs = given[opponent]
            over_sea = np.isin(games.table.kind[theirs], (CONVOY, MOVE_VIA)) & (theirs != NONE)
            theirs[over_sea] = given["hold"][over_sea]
            powers = np.argsort(rng.random((16, games.num_powers)), axis=1)
            us, them = powers[:, :1], powers[:, 1:2]
            moving = np.isin(games.state.phase, (SPRING_MOVEMENT, FALL_MOVEMENT))
            standing = games.state.unit_power
            orders = np.where(standing == them, theirs, given["hold"])
            orders = np.where(standing == us, given["brane"], orders)
            orders = np.where(moving[:, None], orders, theirs)
            expected = []
            for e in np.flatnonzero(moving):
                position = Position(games, e, int(us[e, 0]))
                for v in position.sure(own_orders(games, e, position.power, given["brane"][e])):
                    stands_off = v not in position.units and position.owner[v] == position.power
                    allowed = (position.power, NONE) if stands_off else (position.power,)
                    expected.append((e, v, allowed))
            texts = games.vocabulary.texts
            result = games.step(orders)
            for e, v, allowed in expected:
                if not result.ended[e]:
                    assert games.state.unit_power[e, v] in allowed, [
                        games.map.provinces[v],
                        *(texts[number] for number in orders[e] if number != NONE),
                    ]
                    checked += 1
    assert checked > 200


def test_no_center_of_the_maps_is_reached_by_more_units():
    for name in MAP_NAMES:
        board = load_map(name).board
        for v in board.center_province:
            near = board.location_province[np.nonzero(board.reach[:, :, v])[1]]
            assert len(set(near.tolist())) <= MAX_HELPERS
