"""How often the learner wishes peace, and with whom it is made: the curves `press/*` of a run."""

from collections.abc import Callable, Sequence

import numpy as np

from ..constants import NONE

_ARRAYS = ("asked", "wished", "met", "peace")


class TalkCounts:
    """Adds up the talk of movement phases.

    Args:
        powers: names of the powers.
    """

    def __init__(self, powers: Sequence[str]):
        self.powers = list(powers)
        self._clear()

    def _clear(self) -> None:
        shape = len(self.powers), len(self.powers)
        # Of pairs of powers: how often the learner was asked, wished, could and did make peace.
        self.asked, self.wished = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.met, self.peace = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.phases = 0

    def add(
        self, able: np.ndarray, wish: np.ndarray, learns: np.ndarray, peace: np.ndarray
    ) -> None:
        """Count a phase of some games.

        Args:
            able: (E, P) bool, who can talk; nobody in games that are in no movement phase.
            wish: (E, P, P) int8, as in press.views.TalkViews.
            learns: (E, P) bool, the learner's seats.
            peace: (E, P, P) bool.
        """
        mine = wish[learns]
        power = np.nonzero(learns)[1]
        np.add.at(self.asked, power, mine != NONE)
        np.add.at(self.wished, power, mine == 1)
        both = able[:, :, None] & able[:, None] & (able.sum(1) > 1)[:, None, None]
        self.met += both.sum(0)
        self.peace += (peace & both).sum(0)
        self.phases += int((able.sum(1) > 1).sum())

    def state_dict(self) -> dict:
        """Return all of it for a checkpoint."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return arrays | {"phases": self.phases}

    def load_state_dict(self, saved: dict) -> None:
        """Go on from a `state_dict()`; KeyError, TypeError or ValueError if it is none."""
        shape, phases = (len(self.powers),) * 2, saved["phases"]
        found = {name: np.array(saved[name], np.int64) for name in _ARRAYS}
        sound = all(array.shape == shape and (array >= 0).all() for array in found.values())
        if not sound or type(phases) is not int or not 0 <= phases < 2**62:
            raise ValueError("'talk' has numbers that cannot be")
        vars(self).update(found, phases=phases)

    def take(
        self, total: Callable[[dict[str, float]], dict[str, float]] = lambda sums: sums
    ) -> dict[str, float]:
        """Return the figures since the last call, and forget them.

        `wishes`, the share of other powers with whom the learner wished peace; `deals`, the share
        of pairs of powers that made it; `deals_per_phase`, how many did; and of each pair
        `wishes/A_B`, of A's wishes, and `deals/A_B`. Those of which nothing is known are left out.

        Args:
            total: adds up the sums of processes that train together.
        """
        sums = {"phases": self.phases}
        for i, one in enumerate(self.powers):
            for j, other in enumerate(self.powers):
                pair = f"{one}_{other}"
                sums |= {f"asked/{pair}": int(self.asked[i, j])} if i != j else {}
                sums |= {f"wishes/{pair}": int(self.wished[i, j])} if i != j else {}
                sums |= {f"met/{pair}": int(self.met[i, j])} if i < j else {}
                sums |= {f"deals/{pair}": int(self.peace[i, j])} if i < j else {}
        self._clear()
        sums = total(sums)
        phases = sums.pop("phases")
        figures = {}
        for name, chances in (("wishes", "asked"), ("deals", "met")):
            counts = {key: n for key, n in sums.items() if key.startswith(f"{name}/")}
            of = {key: sums[key.replace(name, chances, 1)] for key in counts}
            if any(of.values()):
                figures[name] = sum(counts.values()) / sum(of.values())
            figures |= {key: n / of[key] for key, n in counts.items() if of[key]}
            if name == "deals" and phases:
                figures["deals_per_phase"] = sum(counts.values()) / phases
        return figures
