"""What the learner wishes or offers, and which deals are made: the curves `press/*` of a run."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..constants import NONE
from ..press.views import SLOTS, TEMPLATE_OF, TEMPLATES


class TalkCounts:
    """Adds up the wishes of movement phases.

    Args:
        powers: names of the powers.
    """

    said = "wishes"  # what the learner's part is called

    def __init__(self, powers: Sequence[str]):
        self.powers = list(powers)
        self._clear()

    def _clear(self) -> None:
        shape = len(self.powers), len(self.powers)
        # Of pairs of powers: how often the learner was asked, wished, could and did make a deal.
        self.asked, self.wished = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.met, self.peace = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.phases = 0

    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: array for name, array in vars(self).items() if isinstance(array, np.ndarray)}

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
        self._add_deals(able, peace)

    def _add_deals(self, able: np.ndarray, deals: np.ndarray) -> None:
        both = able[:, :, None] & able[:, None] & (able.sum(1) > 1)[:, None, None]
        self.met += both.sum(0)
        self.peace += (deals & both).sum(0)
        self.phases += int((able.sum(1) > 1).sum())

    def state_dict(self) -> dict:
        """Return all of it for a checkpoint."""
        arrays = {name: array.tolist() for name, array in self._arrays().items()}
        return arrays | {"phases": self.phases}

    def load_state_dict(self, saved: dict) -> None:
        """Go on from a `state_dict()`; KeyError, TypeError or ValueError if it is none."""
        own, phases = self._arrays(), saved["phases"]
        found = {name: np.array(saved[name], np.int64) for name in own}
        sound = all(found[n].shape == own[n].shape and (found[n] >= 0).all() for n in own)
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
        sums = total(self._sums())
        self._clear()
        return self._figures(sums)

    def _sums(self) -> dict[str, float]:
        sums = {"phases": self.phases}
        for i, one in enumerate(self.powers):
            for j, other in enumerate(self.powers):
                pair = f"{one}_{other}"
                sums |= {f"asked/{pair}": int(self.asked[i, j])} if i != j else {}
                sums |= {f"{self.said}/{pair}": int(self.wished[i, j])} if i != j else {}
                sums |= {f"met/{pair}": int(self.met[i, j])} if i < j else {}
                sums |= {f"deals/{pair}": int(self.peace[i, j])} if i < j else {}
        return sums

    def _figures(self, sums: dict[str, float]) -> dict[str, float]:
        phases = sums.pop("phases")
        figures = {}
        for name, chances in ((self.said, "asked"), ("deals", "met")):
            counts = {key: n for key, n in sums.items() if key.startswith(f"{name}/")}
            of = {key: sums[key.replace(name, chances, 1)] for key in counts}
            if any(of.values()):
                figures[name] = sum(counts.values()) / sum(of.values())
            figures |= {key: n / of[key] for key, n in counts.items() if of[key]}
            if name == "deals" and phases:
                figures["deals_per_phase"] = sum(counts.values()) / phases
        return figures


class OfferCounts(TalkCounts):
    """Adds up the offers and answers of movement phases.

    The figures are those of TalkCounts, with `offers/A_B` for `wishes/A_B`: how often A offers
    something when it could offer B something. `offers` is the share of the learner's chances that
    it used, `offers/TEMPLATE` with what, `accepted` the share of the offers it heard that it agreed
    to, and `accepted/TEMPLATE` of each kind. Deals are of any kind.
    """

    said = "offers"

    def _clear(self) -> None:
        super()._clear()
        count = len(TEMPLATES)
        # Of the learner by template: offered, heard, agreed to; and how often it could offer.
        self.offered, self.heard = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.agreed, self.chances = np.zeros(count, np.int64), np.zeros((), np.int64)

    def add(self, able: np.ndarray, told: Mapping[str, np.ndarray], learns: np.ndarray) -> None:
        """Count a phase of some games.

        Args:
            able, learns: as for TalkCounts.
            told: the arrays of press.views.OfferViews for all seats, (E, P, ...).
        """
        could = told["able"][learns].any(2)
        power = np.nonzero(learns)[1]
        np.add.at(self.asked, power, could)
        self.chances += could.any(1).sum()
        choice = told["choice"][learns].astype(np.int64)
        made = choice != NONE
        to, slot = np.divmod(choice[made], SLOTS)
        np.add.at(self.wished, (power[made], to), 1)
        np.add.at(self.offered, TEMPLATE_OF[slot], 1)
        heard, answer = told["heard"][learns], told["answer"][learns]
        np.add.at(self.heard, heard[heard != NONE], 1)
        np.add.at(self.agreed, heard[answer == 1], 1)
        self._add_deals(able, told["dealt"])

    def _sums(self) -> dict[str, float]:
        counts = {"offered": self.offered, "heard": self.heard, "agreed": self.agreed}
        sums = super()._sums() | {"chances": int(self.chances)}
        for name, array in counts.items():
            sums |= {f"{name}/{kind}": int(n) for kind, n in zip(TEMPLATES, array)}
        return sums

    def _figures(self, sums: dict[str, float]) -> dict[str, float]:
        chances = sums.pop("chances")
        offered, heard, agreed = (
            {kind: sums.pop(f"{name}/{kind}") for kind in TEMPLATES}
            for name in ("offered", "heard", "agreed")
        )
        figures = super()._figures(sums)
        if chances:
            figures["offers"] = sum(offered.values()) / chances
            figures |= {f"offers/{kind}": n / chances for kind, n in offered.items()}
        if any(heard.values()):
            figures["accepted"] = sum(agreed.values()) / sum(heard.values())
        return figures | {f"accepted/{kind}": agreed[kind] / n for kind, n in heard.items() if n}
