"""Players that are programs: `cmd:COMMAND` speaks docs/protocol.md, `dui:COMMAND` DUI."""

import itertools
from collections import Counter
from typing import Any

import msgspec
import numpy as np

from ...constants import DISBAND, HOLD, NONE, phase_name
from ...errors import UserError
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...players.names import ProgramSpec, short_name
from ...rules.map import MAP_NAMES, Map, load_map
from ...rules.notation import matching_orders, read_order
from .dui import Engine
from .lines import (
    ABOUT,
    PROTOCOL,
    Answer,
    ByPower,
    Hello,
    Line,
    Position,
    answer_decoder,
    encode,
    positions_of,
)
from .process import Process

TIMEOUT = 60.0  # seconds that an answer may take
MOVETIME = 1000  # milliseconds that DUI gives for a decision


class Seed:
    """The seed of a program's random numbers, to be sent with the next request."""

    def __init__(self) -> None:
        self.value: int | None = None

    def manual_seed(self, seed: int) -> None:
        self.value = seed % 2**63

    def take(self) -> int | None:
        value, self.value = self.value, None
        return value


class Program:
    """A program that speaks docs/protocol.md."""

    def __init__(self, command: str, timeout: float, greedy: bool, seed: int):
        self.process, self.map, self.requests = Process(command, timeout), None, 0
        hello = Hello(PROTOCOL, ABOUT, list(MAP_NAMES), greedy=greedy, seed=seed)
        answer = self._ask("its first line", Line(hello=hello))
        if answer.hello is None or answer.hello.protocol != PROTOCOL:
            raise self.process.fault(f"does not speak version {PROTOCOL} of the protocol")
        self.hello = answer.hello

    def _ask(self, phase: str, *lines: Line) -> Answer:
        reply = self.process.ask(*map(encode, lines), phase=phase)
        try:
            return answer_decoder.decode(reply)
        except msgspec.MsgspecError as error:
            what = f"sent a line that cannot be read ({error})"
            raise self.process.fault(what, phase, reply) from None

    def _data_of(self, game_map: Map) -> Line:
        name = game_map.name
        bundled = name in MAP_NAMES and load_map(name).facts == game_map.facts
        maps = self.hello.maps
        if maps is not None and not (bundled and name in maps):
            raise self.process.fault(f"does not play on the map {name!r:.60}")
        self.map = game_map
        return Line(map=name, data=game_map.facts)

    def orders(
        self, games: VectorGame, decisions: Decisions, new: set[int], seed: int | None
    ) -> list[tuple[Position, ByPower]]:
        """Return each position in which decisions are pending with the orders that are given."""
        lines = [] if games.map is self.map else [self._data_of(games.map)]
        positions = positions_of(games, decisions, self.hello.wants, new)
        self.requests += 1
        line = Line(
            map=games.map.name,
            request=self.requests,
            max_years=games.max_years,
            seed=seed,
            positions=positions,
        )
        phase = positions[0].name
        answer = self._ask(phase, *lines, line)
        if answer.reply != self.requests or len(answer.orders) != len(positions):
            request = f"request {self.requests} of {len(positions)} positions"
            reply = f"reply {answer.reply} with {len(answer.orders)}"
            raise self.process.fault(f"answered {request} by {reply}", phase)
        return list(zip(positions, answer.orders))


class ProgramPlayer:
    """A program as a player. An order that is illegal or missing counts as a hold, and in
    `faults`; of those that are illegal the first is in `example`."""

    def __init__(self, spec: ProgramSpec, greedy: bool = False, seed: int = 0):
        self.about, self.name = (spec, greedy, seed), short_name(spec)
        timeout = float(spec.options.get("timeout", TIMEOUT))
        if spec.kind == "dui":
            self.program = Engine(spec.command, timeout, spec.options.get("movetime", MOVETIME))
        else:
            self.program = Program(spec.command, timeout, greedy, seed)
        self.generator = Seed()
        self.faults: Counter = Counter()
        self.example = ""
        self._new: set[int] = set()

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return ProgramPlayer, self.about  # which starts another

    def begin(self, games: VectorGame, rows: np.ndarray) -> None:
        self._new.update(np.asarray(rows).tolist())

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        numbers = np.full(len(decisions.slot_province), NONE, np.int32)
        if not decisions.count:
            return numbers
        rows = set(decisions.game.tolist())
        new = self._new & rows
        answers = self.program.orders(games, decisions, new, self.generator.take())
        self._new -= rows
        orders = {position.game: by_power for position, by_power in answers}
        seats = list(zip(decisions.game.tolist(), decisions.power.tolist()))
        texts = [orders[game].get(games.map.powers[power], []) for game, power in seats]
        for d in _not_plain(games, decisions, texts, numbers).tolist():
            slots = slice(*decisions.slot_start[d : d + 2].tolist())
            self._read(games, decisions, seats[d], slots, texts[d], numbers)
        self.faults["decisions"] += decisions.count
        return numbers

    def _read(
        self,
        games: VectorGame,
        decisions: Decisions,
        seat: tuple[int, int],
        slots: slice,
        texts: list[str],
        numbers: np.ndarray,
    ) -> None:
        """Write the orders that `texts` give one decision, of a `seat` (game, power), to those of
        its `slots` in `numbers` (S,)."""
        starts = decisions.order_start[slots.start : slots.stop + 1].tolist()
        legal = [decisions.order[a:b].tolist() for a, b in itertools.pairwise(starts)]
        winter = decisions.slot_province[slots.start] == NONE
        open_slots = dict(enumerate(legal))
        for text in texts:
            exact = games.vocabulary.number.get(text)
            for slot, orders in open_slots.items():
                number = exact if exact in orders else _meant(games, text, orders)
                if number is not None and not (winter and _is_taken(games, numbers[slots], number)):
                    numbers[slots.start + slot] = number
                    del open_slots[slot]
                    break
            else:
                self.faults["illegal"] += 1
                game, power = seat
                year, phase = int(games.state.year[game]), int(games.state.phase[game])
                where = f"{phase_name(year, phase)}, {games.map.powers[power]}"
                self.example = self.example or f"{where}: {text:.60}"
        for slot, orders in open_slots.items():
            if not winter:
                kinds = games.table.kind[orders]
                numbers[slots.start + slot] = orders[int(np.isin(kinds, (HOLD, DISBAND)).argmax())]
            self.faults["missing"] += not (winter and games.table.waive in orders)


def _not_plain(
    games: VectorGame, decisions: Decisions, texts: list[list[str]], numbers: np.ndarray
) -> np.ndarray:
    """Write the orders of decisions that have one legal order for each unit, as the vocabulary
    writes it, to `numbers` (S,); return the other decisions (n,). `texts`: of each decision."""
    number_of, slot_counts = games.vocabulary.number, np.diff(decisions.slot_start)
    parts = [[number_of.get(text, NONE) for text in orders] for orders in texts]
    lengths = np.array([len(part) for part in parts])
    flat = np.array([number for part in parts for number in part], np.int64)
    row = np.repeat(np.arange(len(parts)), lengths)
    by_province = np.full((len(parts), len(games.board.terrain)), NONE, np.int64)
    provinces = games.board.location_province[games.table.location[flat]]
    by_province[row[flat != NONE], provinces[flat != NONE]] = flat[flat != NONE]
    ordered = by_province[decisions.slot_decision, decisions.slot_province]
    same = decisions.order == np.repeat(ordered, np.diff(decisions.order_start))
    legal = np.logical_or.reduceat(same, decisions.order_start[:-1])
    legal &= decisions.slot_province != NONE  # a build may be in any of its slots
    plain = np.logical_and.reduceat(legal, decisions.slot_start[:-1]) & (lengths == slot_counts)
    slots = plain[decisions.slot_decision]
    numbers[slots] = ordered[slots]
    return np.flatnonzero(~plain)


def _meant(games: VectorGame, text: str, orders: list[int]) -> int | None:
    """Return which of a slot's orders a text means that is not written as they are."""
    try:
        order = read_order(games.map, text)
    except UserError:
        return None
    return min(matching_orders(games.map, games.vocabulary, order, orders), default=None)


def _is_taken(games: VectorGame, numbers: np.ndarray, number: int) -> bool:
    """Tell whether a build or removal is in a province that has one already."""
    provinces, locations = games.board.location_province, games.table.location
    ordered = [n for n in numbers.tolist() if n not in (NONE, games.table.waive)]
    here = provinces[locations[number]]
    return number != games.table.waive and bool((provinces[locations[ordered]] == here).any())
