"""`talker`: a language model that negotiates by choosing among possible deals, and says a sentence
for people, which nobody's player reads and which binds nobody."""

from collections.abc import Sequence

import numpy as np

from ..._suggest import quoted
from ...constants import NONE
from ...errors import UserError
from ...players.protocols import Player
from ...press.daide import Terms, clauses_of, offer_words
from ...press.deals import Offers, join_offers, province_bits
from ...press.negotiators.negotiation import Silent, Talk, best_of_pairs
from ...press.negotiators.templates import DealChooser, deal_offers, possible_deals
from .player import LanguagePlayer
from .prompt import sentence_text, talk_text
from .questions import Question, TalkQuestion
from .replies import sentence_of

NOTHING = "nothing"
ANSWERS = ("no", "yes")


class Talker(DealChooser, Silent):
    """A language model that offers and answers deals. It chooses among the deals that a trained
    policy chooses among, with powers with which it has none in this phase, and answers all offers.
    `said` has its words with each of the last offers or answers. If deals may be broken, its orders
    decide whether it keeps them."""

    player: LanguagePlayer
    breaks_deals = True

    def __init__(self, player: Player, name: str):
        super().__init__(player, name)
        if not isinstance(player, LanguagePlayer):
            raise UserError(
                f"{quoted(name, 100)}: only a language model can be a talker, as talker+llm:FILE"
            )
        self.said: list[str] = []

    def _offers_to(self, talk: Talk, partners: np.ndarray) -> Offers:
        rows, row = np.unique(talk.game, return_inverse=True)
        possible = possible_deals(talk.games, talk.decisions, rows)
        seats = np.arange(len(row)), talk.power
        able = possible.able[row, talk.power] & ~talk.known.dealt[seats][..., None]
        positions, questions, choices = self._positions(talk), [], []
        for s, position in enumerate(positions):
            for group in partners:
                receiver, slot = np.nonzero(able[s] & group[:, None])
                if not len(receiver):
                    continue
                seat = (np.full(len(receiver), x) for x in (row[s], talk.game[s], talk.power[s]))
                rows, games, senders = seat
                offers = deal_offers(possible, rows, games, senders, receiver, slot)
                texts = _texts(talk, offers)
                powers = (talk.games.map.powers[q] for q in receiver)
                lines = [*(f"to {power}: {t}" for power, t in zip(powers, texts)), NOTHING]
                shown, units = ["You may say one of these", *lines], ["offer"]
                question = self._question(talk, s, position, shown, "one of these", units, lines)
                questions.append(question)
                choices.append((position, offers, texts))
        offered, sentences = [], []
        for answer, (position, offers, texts) in zip(self.player.converse(questions), choices):
            (number,) = answer.numbers
            if 0 <= number < offers.count:
                offered.append(offers.take([number]))
                other = talk.games.map.powers[offers.receiver[number]]
                sentences.append((position, other, f"You offer {other}: {texts[number]}."))
        self.said = self._sentences(sentences)
        return join_offers(offered)

    def answers(self, talk: Talk, offers: Offers) -> np.ndarray:
        texts, agreed = _texts(talk, offers), np.zeros(offers.count, bool)
        names = [talk.games.map.powers[power] for power in offers.sender]
        seats, which = np.unique(np.stack([talk.game, talk.power]), axis=1, return_inverse=True)
        groups = [np.flatnonzero(which.ravel() == seat) for seat in range(seats.shape[1])]
        positions = self._positions(talk.take([group[0] for group in groups]))
        questions = []
        for position, group in zip(positions, groups):
            lines = ["Offers to you", *(f"from {names[o]}: {texts[o]}" for o in group)]
            units = [f"answer {number}" for number in range(1, 1 + len(group))]
            task = "yes or no to each offer"
            question = self._question(talk, group[0], position, lines, task, units, ANSWERS)
            questions.append(question)
        sentences = {}
        for position, group, answer in zip(positions, groups, self.player.converse(questions)):
            for o, number in zip(group.tolist(), answer.numbers):
                agreed[o] = number == ANSWERS.index("yes")
                verb = "agree to" if agreed[o] else "decline"
                what = f"You {verb} the offer of {names[o]}: {texts[o]}."
                sentences[o] = position, names[o], what
        self.said = self._sentences([sentences[o] for o in range(offers.count)])
        return agreed

    def choices(self, talk: Talk, offers: Offers) -> np.ndarray:
        """Pick one of each pair's offers: its own or one it agrees to, rather the first power's."""
        heard = np.flatnonzero(offers.sender != talk.power)
        score, sentences = np.ones(offers.count), [""] * offers.count
        score[heard] = self.answers(talk.take(heard), offers.take(heard))
        for o, text in zip(heard, self.said):
            sentences[o] = text
        self.said = sentences
        return best_of_pairs(talk, offers, score)

    def refusal(self, talk: Talk, offers: Offers) -> str:
        return ""

    def wishes(self, talk: Talk) -> np.ndarray:
        powers = np.arange(talk.games.num_powers)
        has_units = (talk.games.state.unit_power[talk.game][:, None] == powers[:, None]).any(2)
        others = has_units & (powers != talk.power[:, None])
        names, wish = talk.games.map.powers, np.zeros(others.shape, bool)
        questions, rows = [], np.flatnonzero(others.any(1)).tolist()
        positions = self._positions(talk)
        for s in rows:
            units = [f"peace with {names[q]}" for q in np.flatnonzero(others[s])]
            lines, task = ["Wishes", *units], "yes or no to each wish"
            questions.append(self._question(talk, s, positions[s], lines, task, units, ANSWERS))
        for s, answer in zip(rows, self.player.converse(questions)):
            wish[s, others[s]] = np.array(answer.numbers) == ANSWERS.index("yes")
        return wish

    def hear(self, talk: Talk) -> None:
        for s, position in enumerate(self._positions(talk)):
            self.player.learn_deals(position, _deals(talk, s))

    def _positions(self, talk: Talk) -> list[Question]:
        decisions, powers = talk.decisions, talk.games.num_powers
        keys = decisions.game.astype(np.int64) * powers + decisions.power
        rows = np.searchsorted(keys, talk.game * powers + talk.power)
        return self.player.questions(talk.games, decisions.take(rows))

    def _question(
        self,
        talk: Talk,
        s: int,
        position: Question,
        lines: Sequence[str],
        task: str,
        units: Sequence[str],
        texts: Sequence[str],
    ) -> TalkQuestion:
        """Return a question about deals for seat `s`; its prompt tells broken deals first."""
        settings = self.player.settings
        if talk.breaches is not None:
            year, names = int(talk.games.state.year[talk.game[s]]), talk.games.map.powers
            ago = zip(names, talk.breaches[s].tolist())
            broken = [f"{name} broke a deal with you in {year - n}" for name, n in ago if n != NONE]
            lines = [*broken, *lines]
        prompt = talk_text(position, settings, lines, task, len(units), talk.binding)
        return TalkQuestion.of(position, prompt, units, texts)

    def _sentences(self, subjects: Sequence[tuple[Question, str, str]]) -> list[str]:
        questions = [
            TalkQuestion.of(position, sentence_text(position, other, what), [], [])
            for position, other, what in subjects
        ]
        return [
            sentence_of(answer.exchanges[-1].reply)
            if answer.exchanges and answer.exchanges[-1].verdict == "legal"
            else ""
            for answer in self.player.converse(questions)
        ]


def _texts(talk: Talk, offers: Offers) -> list[str]:
    sides = zip(offers.sender.tolist(), offers.receiver.tolist())
    return [
        offer_words(talk.games.map, *pair, Terms(clauses_of(offers, o)))
        for o, pair in enumerate(sides)
    ]


def _deals(talk: Talk, s: int) -> list[str]:
    games, me, knowledge = talk.games, int(talk.power[s]), talk.known
    names, provinces = games.map.powers, games.map.provinces
    partners = np.flatnonzero(knowledge.dealt[s, me])
    deals = [f"peace with {names[q]}" for q in partners if knowledge.peace[s, me, q]]
    for v in np.flatnonzero(knowledge.promised[s] != NONE):
        owner = names[games.state.unit_power[talk.game[s], v]]
        deals.append(f"{owner} orders {games.vocabulary.texts[knowledge.promised[s, v]]}")
    for q in partners[~knowledge.peace[s, me, partners]]:
        for one, other in ((me, q), (q, me)):
            for sets, verb in ((knowledge.closed, "keeps out of"), (knowledge.vacate, "leaves")):
                bits = province_bits(sets[s, one, other], len(provinces))
                deals += [f"{names[one]} {verb} {provinces[v]}" for v in np.flatnonzero(bits)]
    return deals if talk.binding or not deals else [*deals, "Nobody is made to keep this."]
