"""Players for tests."""

import numpy as np

from diplomacy_engine import Explanation, make_bot
from diplomacy_engine.environments.observation_player import ObservationPlayer
from diplomacy_engine.players.bots import dumbbot_values
from diplomacy_engine.players.bots.dumbbot_rules import NORMAN


class Thinker:
    """Holds, and thinks the first order of every list as likely as all others together."""

    name = "thinker"

    def act(self, games, decisions):
        return make_bot("hold").act(games, decisions)

    def explain(self, games, decisions):
        counts = np.diff(decisions.order_start)
        share = np.repeat(0.5 / np.maximum(counts - 1, 1), counts)
        share[decisions.order_start[:-1]] = 0.5
        return Explanation(share.astype(np.float32), np.full(decisions.count, 2.25, np.float32))


RNG = [np.random.default_rng(0)]  # such as a library has one of


def look(seen, mask):
    return RNG[0].choice(np.flatnonzero(mask))


def seed(number):
    RNG[:] = [np.random.default_rng(number)]


def looking() -> ObservationPlayer:
    return ObservationPlayer(look, "sequential", name="looking", single=True, seed=seed)


def power_values(game_map, state, e, power, rules=NORMAN):
    """Return the graph of a map's nodes, and what they are worth to a power in game e."""
    graph = dumbbot_values.node_graph(game_map, rules)
    values = dumbbot_values.new_values(game_map.board, graph)
    dumbbot_values.survey_game(game_map.board, state, e, rules, values)
    dumbbot_values.compute_values(game_map.board, graph, state, e, power, rules, values)
    return graph, values
