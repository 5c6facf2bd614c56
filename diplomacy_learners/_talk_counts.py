"""Counts of the learner's wishes or offers, and of deals: the curves `press/*` of a run."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from diplomacy_engine.constants import NONE
from diplomacy_engine.learning.ranks import Sums
from diplomacy_engine.learning.statistics import Episodes
from diplomacy_engine.press.talk_views import SLOTS, TEMPLATE_OF, TEMPLATES


class WishCounts:
    label = "wishes"  # name of the learner's curve

    def __init__(self, powers: Sequence[str]):
        self.powers = list(powers)
        self._clear()

    def _clear(self) -> None:
        shape = len(self.powers), len(self.powers)
        # Of pairs of powers: how often the learner was asked, wished, could and did make a deal.
        self.asked, self.wished, self.met, self.made = np.zeros((4, *shape), np.int64)
        self.phases = 0
        self.words = self.words_kept = 0  # the learner's: one in each of its deals

    def add_words(self, dealt: np.ndarray, broken: np.ndarray) -> None:
        self.words += int(dealt.sum())
        self.words_kept += int((dealt & ~broken).sum())

    def add(self, able: np.ndarray, talk: Mapping[str, np.ndarray], learns: np.ndarray) -> None:
        mine = talk["wish"][learns]
        power = np.nonzero(learns)[1]
        np.add.at(self.asked, power, mine != NONE)
        np.add.at(self.wished, power, mine == 1)
        self._add_deals(able, talk["peace"])

    def _add_deals(self, able: np.ndarray, deals: np.ndarray) -> None:
        both = able[:, :, None] & able[:, None] & (able.sum(1) > 1)[:, None, None]
        self.met += both.sum(0)
        self.made += (deals & both).sum(0)
        self.phases += int((able.sum(1) > 1).sum())

    def take(self) -> Sums:
        sums = {name: sum_ for name, sum_ in vars(self).items() if name != "powers"}
        self._clear()
        return sums

    def figures(self, sums: Mapping[str, np.ndarray]) -> dict[str, float]:
        met, dealt = np.triu(sums["met"], 1), np.triu(sums["made"], 1)  # each pair once
        figures = {}
        for name, counts, chances in (
            (self.label, sums["wished"], sums["asked"]),
            ("deals", dealt, met),
        ):
            if chances.any():
                figures[name] = float(counts.sum() / chances.sum())
            for i, j in np.argwhere(chances):
                pair = f"{self.powers[i]}_{self.powers[j]}"
                figures[f"{name}/{pair}"] = float(counts[i, j] / chances[i, j])
        if sums["phases"]:
            figures["deals_per_phase"] = float(dealt.sum() / sums["phases"])
        if sums["words"]:
            figures["kept"] = float(sums["words_kept"] / sums["words"])
        return figures


class OfferCounts(WishCounts):
    """Adds up the offers and answers of movement phases, in all and by template."""

    label = "offers"

    def _clear(self) -> None:
        super()._clear()
        # Of the learner by template: offered, heard, agreed to; and how often it could offer.
        self.offered, self.heard, self.agreed = np.zeros((3, len(TEMPLATES)), np.int64)
        self.chances = 0

    def add(self, able: np.ndarray, talk: Mapping[str, np.ndarray], learns: np.ndarray) -> None:
        could = talk["able"][learns].any(2)
        power = np.nonzero(learns)[1]
        np.add.at(self.asked, power, could)
        self.chances += int(could.any(1).sum())
        choice = talk["choice"][learns].astype(np.int64)
        offering = choice != NONE
        to, slot = np.divmod(choice[offering], SLOTS)
        np.add.at(self.wished, (power[offering], to), 1)
        np.add.at(self.offered, TEMPLATE_OF[slot], 1)
        heard, answer = talk["heard"][learns], talk["answer"][learns]
        np.add.at(self.heard, heard[heard != NONE], 1)
        np.add.at(self.agreed, heard[answer == 1], 1)
        self._add_deals(able, talk["dealt"])

    def figures(self, sums: Mapping[str, np.ndarray]) -> dict[str, float]:
        figures = super().figures(sums)
        chances, heard = sums["chances"], sums["heard"].sum()
        if chances:
            figures["offers"] = float(sums["offered"].sum() / chances)
            figures |= {
                f"offers/{kind}": float(n / chances) for kind, n in zip(TEMPLATES, sums["offered"])
            }
        if heard:
            figures["accepted"] = float(sums["agreed"].sum() / heard)
        for kind, agreed, n in zip(TEMPLATES, sums["agreed"], sums["heard"]):
            figures |= {f"accepted/{kind}": float(agreed / n)} if n else {}
        return figures


class TalkEpisodes(Episodes):
    """Episodes of powers that talk: the group `press` has the figures of `counts`."""

    def __init__(self, num_streams: int, parts: Collection[str], counts: WishCounts):
        super().__init__(num_streams, parts)
        self.counts = counts

    def take(self) -> Sums:
        return super().take() | self.counts.take()

    def figures(self, sums: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
        return super().figures(sums) | {"press": self.counts.figures(sums)}
