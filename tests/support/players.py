"""Players for tests."""

from diplomacy_engine import make_bot
from diplomacy_engine.players.protocols import Explanation


class Thinker:
    """Holds, and thinks the first order of every list as likely as all others together."""

    name = "thinker"

    def act(self, games, decisions):
        return make_bot("hold").act(games, decisions)

    def explain(self, games, decisions):
        import numpy as np

        counts = np.diff(decisions.order_start)
        share = np.repeat(0.5 / np.maximum(counts - 1, 1), counts)
        share[decisions.order_start[:-1]] = 0.5
        return Explanation(share.astype(np.float32), np.full(decisions.count, 2.25, np.float32))
