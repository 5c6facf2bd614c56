"""What a language model is asked: one power's orders in one phase, unit by unit."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ...constants import NONE
from ...games.decisions import Decisions
from ...games.draws import phase_seeds
from ...games.vector_game import VectorGame
from ...players.asking import Slot, slots_of
from ...rules.notation import unit_of
from ...rules.state import Salt
from ...textgame.game import Game
from ...textgame.position import last_orders


class Question(NamedTuple):
    """The orders of one power in one phase, a slot for each unit or adjustment."""

    game: Game  # the position, to be read
    row: int  # of it among the games
    power: str
    slots: list[Slot]
    waive: int  # the number of WAIVE
    winter: bool  # a province may be chosen in one slot only
    past: list[tuple[str, list[str]]]  # earlier movement phases: name, orders with their results
    seed: int = 0  # of the draws of the reply
    game_seed: int = 0  # which tells games apart
    deals: list[str] | None = None  # of this phase, in words; None: nobody negotiates

    def open_slot(self, slot: Slot, taken_orders: Collection[int]) -> Slot:
        """Return a slot with the legal orders left after the `taken_orders` of other slots. Only in
        winter do orders take each other's place: all but WAIVE do."""
        if not self.winter:
            return slot
        taken = {self.province(number) for number in taken_orders if number != self.waive}
        open_orders = [
            (number, text)
            for number, text in zip(slot.numbers, slot.texts)
            if number == self.waive or self.province(number) not in taken
        ]
        numbers, texts = map(list, zip(*open_orders)) if open_orders else ([], [])
        return Slot(slot.unit, numbers, texts)

    def written(self, numbers: Collection[int]) -> list[str]:
        texts = self.game.vector_game.vocabulary.texts
        return [texts[number] for number in numbers]

    def province(self, number: int) -> int:
        games = self.game.vector_game
        return int(games.board.location_province[games.table.location[number]])


class TalkQuestion(NamedTuple):
    """What a power is asked about deals: a line for each slot. Without slots, words of its own,
    in one line or to their end."""

    game: Game
    row: int
    power: str
    prompt: str
    seed: int
    slots: list[Slot]  # their numbers are places in `texts`
    texts: list[str]  # all lines that any slot allows
    game_seed: int = 0
    one_line: bool = True

    @classmethod
    def of(
        cls, question: Question, prompt: str, units: Sequence[str], texts: Sequence[str]
    ) -> "TalkQuestion":
        texts = list(texts)
        slots = [Slot(unit, list(range(len(texts))), texts) for unit in units]
        about = question.game, question.row, question.power, prompt, question.seed
        return cls(*about, slots, texts, question.game_seed)

    def open_slot(self, slot: Slot, taken_orders: Collection[int]) -> Slot:
        return slot

    def written(self, numbers: Collection[int]) -> list[str]:
        return [self.texts[number] for number in numbers]


def questions_of(
    games: VectorGame, decisions: Decisions, past: dict[int, list[tuple[str, list[str]]]]
) -> Iterator[Question]:
    """Yield a question for each decision; `past` has earlier movement phases by game row."""
    # Copies of a position share a Game: making one takes longer than all the rest here.
    shared = [array for name, array in games.state._asdict().items() if name != "seed"]
    copies: dict[bytes, Game] = {}
    seeds = phase_seeds(games, decisions.game, decisions.power, Salt.LANGUAGE)[:, 0].tolist()
    for d in range(decisions.count):
        row = int(decisions.game[d])
        position = b"".join(array[row].tobytes() for array in shared)
        game = copies.get(position)
        if game is None:
            game = copies[position] = Game.from_row(games, row)
        first = decisions.slot_start[d]
        yield Question(
            game,
            row,
            games.map.powers[decisions.power[d]],
            slots_of(games, decisions, d),
            int(games.table.waive),
            bool(decisions.slot_province[first] == NONE),
            past.get(row, []),
            seeds[d],
            int(games.state.seed[row]),
        )


def orders_with_results(game: Game) -> list[str]:
    """Return the last orders with their results, a line for each power that gave any."""
    last = {"last_orders": {}, "last_results": {}} | last_orders(game.vector_game)
    results = {unit: f" ({', '.join(words)})" for unit, words in last["last_results"].items()}
    orders = {
        power: ", ".join(text + results.get(unit_of(text), "") for text in texts)
        for power, texts in last["last_orders"].items()
    }
    return [f"{power}: {orders[power]}" for power in game.powers if power in orders]
