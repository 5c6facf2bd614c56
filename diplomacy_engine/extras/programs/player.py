"""Players that are programs: `cmd:COMMAND` speaks docs/protocol.md, `dui:COMMAND` DUI."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partialmethod

import numpy as np

from ...constants import DISBAND, HOLD, NONE, SUPPORT_MOVE, phase_name
from ...errors import UserError
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...players.names import ProgramSpec, short_name
from ...press.daide import clauses_of, is_daide
from ...press.deals import MAX_CLAUSES, Offers, make_offers
from ...press.negotiators.negotiation import Talk
from ...press.press import PEACE_ALONE
from ...rules.map import MAP_NAMES, Map
from ...rules.order_matching import matching_orders
from ...rules.reading import read_order
from ...textgame.position import settle_coasts
from . import lines
from .dui import Engine
from .lines import Answer, Arrays, ByPower, Hello, Line, Message, Position, Talking
from .process import Process
from .talk import Boards, OfferRow, deals_of

TIMEOUT = 60.0  # seconds that an answer may take
MOVETIME = 1000  # milliseconds that DUI gives for a decision


class Program:
    """A program that speaks docs/protocol.md."""

    def __init__(self, command: str, timeout: float, greedy: bool):
        self.process, self.requests = Process(command, timeout), 0
        self.map: Map | None = None
        hello = Hello(lines.PROTOCOL, lines.ABOUT, list(MAP_NAMES), greedy=greedy)
        answer = self._ask("its first line", Line(hello=hello))
        if answer.hello is None or answer.hello.protocol != lines.PROTOCOL:
            raise self.process.fault(f"does not speak version {lines.PROTOCOL} of the protocol")
        self.hello, self.wants = answer.hello, answer.hello.wants

    def _ask(self, phase: str, *sent: Line) -> Answer:
        reply = self.process.ask(*map(lines.encode, sent), phase=phase)
        try:
            return lines.answer_decoder.decode(reply)
        except lines.UNREADABLE as error:
            what = f"sent a line that cannot be read ({error})"
            raise self.process.fault(what, phase, reply) from None

    def _data_of(self, game_map: Map) -> Line:
        name = game_map.name
        maps = self.hello.maps
        if maps is not None and not (game_map.is_included and name in maps):
            raise self.process.fault(f"does not play on the map {name!r:.60}")
        self.map = game_map
        tables = lines.tables_of(game_map) if "arrays" in self.wants else None
        return Line(map=name, data=game_map.facts, tables=tables)

    def answer(self, games: VectorGame, phase: str, line: Line) -> Answer:
        """Return the reply to a request, to which this adds the map and so on."""
        map_lines = [] if games.map is self.map else [self._data_of(games.map)]
        self.requests += 1
        line.map, line.max_years, line.request = games.map.name, games.max_years, self.requests
        answer, size = self._ask(phase, *map_lines, line), len(line.positions)
        talking = line.press is not None and line.press.ask != "orders"
        parts = answer.messages if talking else answer.orders
        if answer.reply != self.requests or len(parts) != size:
            request = f"request {self.requests} of {size} positions"
            reply = f"reply {answer.reply} with {len(parts)}"
            raise self.process.fault(f"answered {request} by {reply}", phase)
        return answer

    def orders(
        self, games: VectorGame, positions: list[Position], press: Talking | None
    ) -> list[ByPower]:
        line = Line(press=press, positions=positions)
        return self.answer(games, positions[0].name, line).orders

    def array_orders(self, games: VectorGame, decisions: Decisions, arrays: Arrays) -> np.ndarray:
        """Return the orders of decisions by province, (D, V)."""
        year, phase = (int(x[decisions.game[0]]) for x in (games.state.year, games.state.phase))
        where, provinces = phase_name(year, phase), len(games.board.terrain)
        answer = self.answer(games, where, Line(arrays=arrays))
        try:
            numbers = lines.read_array(answer.arrays or {}, "orders", len(games.table.kind) - 1)
            if numbers.size != decisions.count * provinces:
                wanted = f"{decisions.count} decisions of {provinces} provinces"
                raise UserError(f"`orders` has {numbers.size} numbers, not those of {wanted}")
            numbers = numbers.reshape(decisions.count, provinces)
            at = games.board.location_province[games.table.location[numbers]]
            if ((numbers != NONE) & (at != np.arange(provinces))).any():
                raise UserError("an order is not of its province")
            return numbers
        except UserError as error:
            raise self.process.fault(f"sent arrays that cannot be read ({error})", where) from None


class ProgramPlayer:
    """A program as a player. An order that is illegal or missing counts as a hold, and in
    `faults`; of those that are illegal the first is in `example`."""

    def __init__(self, program: Program | Engine, about: tuple[ProgramSpec, bool]):
        self.program, self.about, self.name = program, about, short_name(about[0])
        self._press: Talking | None = None
        self._heard: dict[tuple[int, int], tuple] = {}
        self.faults: Counter = Counter()
        self.example = ""
        # Row -> how many phases its game had had, and the seed of the first.
        self._seen: dict[int, tuple[float, int | None]] = {}

    def __reduce__(self) -> tuple[Callable, tuple]:
        return start_program, self.about  # which starts another

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        numbers = np.full(len(decisions.slot_province), NONE, np.int32)
        if not decisions.count:
            return numbers
        seats = list(zip(decisions.game.tolist(), decisions.power.tolist()))
        names = games.vocabulary.texts
        program = self.program
        if isinstance(program, Program) and "arrays" in program.wants and self._press is None:
            arrays = lines.arrays_of(games, decisions, self._new(games, decisions.game))
            ordered = program.array_orders(games, decisions, arrays)
            plain = _take_plain(games, decisions, ordered, numbers)
            rest = np.flatnonzero(~plain).tolist()
            texts = {d: [names[n] for n in ordered[d].tolist() if n != NONE] for d in rest}
        else:
            positions = self._positions(games, decisions)
            answers = self.program.orders(games, positions, self._press)
            orders = {position.game: by_power for position, by_power in zip(positions, answers)}
            texts = [orders[game].get(games.map.powers[power], []) for game, power in seats]
            plain = np.zeros(decisions.count, bool)
        for d in np.flatnonzero(~plain).tolist():
            self._read(games, decisions, d, texts[d], numbers)
        self.faults["decisions"] += decisions.count
        return numbers

    def _positions(self, games: VectorGame, decisions: Decisions) -> list[Position]:
        new = self._new(games, decisions.game)
        return lines.positions_of(games, decisions, self.program.wants, new)

    def _new(self, games: VectorGame, rows: np.ndarray) -> set[int]:
        """Return which of `rows` hold another game than when the program was last asked."""
        new, history = set(), games.history
        if history is None:
            return set()
        for row in np.unique(rows).tolist():
            count = int(history.count[row])
            begun = int(history.games.state.seed[row]) if count else None
            before, seed = self._seen.get(row, (np.inf, None))
            if count < before or seed not in (None, begun):
                new.add(row)
            self._seen[row] = count, begun
        return new

    def _wrong(self, games: VectorGame, game: int, power: str, text: str) -> None:
        """Count an order or message that counts for nothing."""
        self.faults["illegal"] += 1
        year, phase = int(games.state.year[game]), int(games.state.phase[game])
        self.example = self.example or f"{phase_name(year, phase)}, {power:.20}: {text:.60}"

    def _read(
        self, games: VectorGame, decisions: Decisions, d: int, texts: list[str], numbers: np.ndarray
    ) -> None:
        """Write the orders that `texts` give decision `d` to those of its slots in `numbers`."""
        slots = slice(*decisions.slot_start[d : d + 2].tolist())
        starts = decisions.order_start[slots.start : slots.stop + 1].tolist()
        legal = [decisions.order[a:b].tolist() for a, b in itertools.pairwise(starts)]
        provinces = decisions.slot_province[slots].tolist()
        winter = provinces[0] == NONE
        open_slots, meanings, bound = dict(enumerate(legal)), {}, set()
        for text in texts:
            exact = games.vocabulary.number.get(text, NONE)
            for slot, orders in open_slots.items():
                meant = [exact] if exact in orders else _meant(games, text, orders, provinces)
                if meant and not (winter and _is_taken(games, numbers[slots], meant[0])):
                    numbers[slots.start + slot] = meant[0]
                    meanings[provinces[slot]] = meant
                    del open_slots[slot]
                    break
            else:
                slot = self._slot_bound(games, decisions, d, exact)
                if slot is None:
                    power = games.map.powers[decisions.power[d]]
                    self._wrong(games, decisions.game[d], power, text)
                elif slot not in bound:
                    self.faults["against_deals"] += 1
                    bound.add(slot)
        if not winter:
            settled = settle_coasts(games, meanings)
            numbers[slots] = [settled.get(province, NONE) for province in provinces]
        for slot, orders in open_slots.items():
            if not winter:
                kinds = games.table.kind[orders]
                numbers[slots.start + slot] = orders[int(np.isin(kinds, (HOLD, DISBAND)).argmax())]
            self.faults["missing"] += slot not in bound and not (
                winter and games.table.waive in orders
            )

    def _slot_bound(
        self, games: VectorGame, decisions: Decisions, d: int, number: int
    ) -> int | None:
        """Return the slot of decision `d` in which only a deal forbids an order, if it does."""
        if self._press is None or number == NONE:
            return None
        every = games.decisions(decisions.game[d : d + 1])
        every = every.take(np.flatnonzero(every.power == decisions.power[d]))
        slots = slice(*decisions.slot_start[d : d + 2].tolist())
        here = games.board.location_province[games.table.location[number]]
        (slot,) = np.flatnonzero(decisions.slot_province[slots] == here).tolist() or (None,)
        return slot if number in every.order else None


def start_program(spec: ProgramSpec, greedy: bool = False) -> ProgramPlayer:
    about, options = (spec, greedy), dict(spec.options)
    timeout = float(options.get("timeout", TIMEOUT))
    if spec.kind == "dui":
        movetime = int(options.get("movetime", MOVETIME))
        return ProgramPlayer(Engine(spec.command, timeout, movetime), about)
    program = Program(spec.command, timeout, greedy)
    return (TalkingProgram if program.hello.talks else ProgramPlayer)(program, about)


class TalkingProgram(ProgramPlayer):
    """A program that talks; `said` are its words with the offers or answers that it gave last.
    Where deals need not be kept, its orders are its choice."""

    program: Program
    breaks_deals = True

    def wishes(self, talk: Talk) -> np.ndarray:
        wish = np.zeros((len(talk.game), talk.games.num_powers), bool)
        seats = {seat: s for s, seat in enumerate(_seats(talk))}
        for speaker, _, (_, _, receiver, clauses), _ in self._ask("wishes", talk):
            wish[seats[speaker], receiver] = clauses == PEACE_ALONE
        return wish

    def hear(self, talk: Talk) -> None:
        self._press, boards = _terms("orders", talk), Boards(talk.games)
        for s, seat in enumerate(_seats(talk)):
            now = talk.games.state.seed[seat[0]], talk.games.state.turn[seat[0]]
            self._heard[seat] = now, deals_of(talk, s, boards), _broken(talk, s)

    def _positions(self, games: VectorGame, decisions: Decisions) -> list[Position]:
        positions, state = super()._positions(games, decisions), games.state
        for position in positions if self._press is not None else ():
            now = state.seed[position.game], state.turn[position.game]
            for power in position.powers:
                seat = position.game, games.map.power_index[power]
                then, deals, broken = self._heard.get(seat, (None, [], {}))
                if then == now:
                    _tell(position, power, deals, broken)
        return positions

    def _ask(
        self, ask: str, talk: Talk, offers: Offers | None = None
    ) -> Iterator[tuple[tuple[int, int], str, OfferRow, str]]:
        """Yield who speaks (game, power), its verb, the offer that it makes or answers, and what it
        says with that."""
        boards, decisions, seats = Boards(talk.games), talk.decisions, _seats(talk)
        pending = zip(decisions.game.tolist(), decisions.power.tolist())
        speakers = set(seats)
        rows = [d for d, seat in enumerate(pending) if seat in speakers]
        self._press = None  # what was heard in an earlier phase
        positions = self._positions(talk.games, decisions.take(np.array(rows)))
        at, names = {position.game: position for position in positions}, talk.games.map.powers
        for s, (row, power) in enumerate(seats):
            _tell(at[row], names[power], deals_of(talk, s, boards), _broken(talk, s))
        for row, message in boards.offers(offers) if offers is not None else ():
            if message not in at[row].messages:
                at[row].messages.append(message)
        line = Line(press=_terms(ask, talk), positions=positions)
        answer = self.program.answer(talk.games, positions[0].name, line)
        for position, messages in zip(positions, answer.messages):
            words = {
                (m.sender.upper(), m.recipient.upper()): m.message
                for m in messages
                if not is_daide(m.message)
            }
            for message in messages:
                try:
                    if is_daide(message.message):
                        (p, q), verb, offer = boards.read(position.game, message)
                        speaker = position.game, p
                        if speaker not in speakers or not 1 <= len(offer[3]) <= MAX_CLAUSES:
                            raise UserError("nobody asked for this")
                        yield speaker, verb, offer, words.get((names[p], names[q]), "")
                except UserError:
                    self._wrong(talk.games, position.game, message.sender, message.message)

    def _offers(self, ask: str, talk: Talk) -> Offers:
        offers: dict[tuple, OfferRow] = {}
        self.said = []
        for speaker, verb, offer, words in self._ask(ask, talk):
            key = speaker if ask == "offers" else (speaker, offer[2])
            if verb != "PRP" or key in offers:
                self._wrong(talk.games, speaker[0], talk.games.map.powers[speaker[1]], "an offer")
                continue
            offers[key] = offer
            self.said.append(words)
        return make_offers(list(offers.values()))

    def _agreed(self, ask: str, talk: Talk, offers: Offers) -> np.ndarray:
        answers = {
            (speaker, offer): (verb, words)
            for speaker, verb, offer, words in self._ask(ask, talk, offers)
        }
        heads = zip(*(array.tolist() for array in offers[:3]))
        rows = [(*head, clauses_of(offers, o)) for o, head in enumerate(heads)]
        pairs = [answers.get(key, ("REJ", "")) for key in zip(_seats(talk), rows)]
        self.said = [words for _, words in pairs]
        return np.array([verb != "REJ" for verb, _ in pairs], bool)

    offers, proposals = partialmethod(_offers, "offers"), partialmethod(_offers, "proposals")
    answers, choices = partialmethod(_agreed, "answers"), partialmethod(_agreed, "choices")


def _seats(talk: Talk) -> list[tuple[int, int]]:
    return list(zip(talk.game.tolist(), talk.power.tolist()))


def _terms(ask: str, talk: Talk) -> Talking:
    n = np.arange(len(talk.game))
    others = talk.known.peace.copy()
    others[n, talk.power] = others[n, :, talk.power] = False
    return Talking(ask, talk.binding, bool(others.any()))


def _broken(talk: Talk, s: int) -> dict[str, int]:
    ages = [] if talk.breaches is None else talk.breaches[s].tolist()
    return {name: age for name, age in zip(talk.games.map.powers, ages) if age != NONE}


def _tell(position: Position, power: str, deals: list[Message], broken: dict[str, int]) -> None:
    position.deals += [deal for deal in deals if deal not in position.deals]
    if broken:
        position.broken[power] = broken


def _take_plain(
    games: VectorGame, decisions: Decisions, by_province: np.ndarray, numbers: np.ndarray
) -> np.ndarray:
    """Write the orders (D, V) of decisions to `numbers` (S,) where they are all legal; return where
    they are, (D,) bool."""
    counts, first = np.diff(decisions.slot_start), decisions.slot_start[:-1]
    winter, ordered = decisions.slot_province[first] == NONE, by_province != NONE
    chosen = by_province[decisions.slot_decision, decisions.slot_province]
    chosen[winter[decisions.slot_decision]] = games.table.waive
    d, v = np.nonzero(ordered & winter[:, None])
    rank = np.arange(len(d)) - np.searchsorted(d, d)  # each build may be in any of its slots
    d, v, rank = (part[rank < counts[d]] for part in (d, v, rank))
    chosen[first[d] + rank] = by_province[d, v]
    same = decisions.order == np.repeat(chosen, np.diff(decisions.order_start))
    legal = np.logical_or.reduceat(same, decisions.order_start[:-1])
    total = ordered.sum(1)
    plain = np.logical_and.reduceat(legal, first)
    plain &= np.where(winter, total <= counts, total == counts)
    slots = plain[decisions.slot_decision]
    numbers[slots] = chosen[slots]
    return plain


def _meant(games: VectorGame, text: str, orders: list[int], own: list[int]) -> list[int]:
    """Return which of a slot's orders a text means that is not written as they are: several of a
    support that leaves out the coast of a unit in one of its `own` provinces, none of another order
    that may go to several coasts. Where others' units go is not known."""
    try:
        order = read_order(games.map, text)
    except UserError:
        return []
    meant = matching_orders(games.map, games.vocabulary, order, orders)
    settles = order.kind == SUPPORT_MOVE and order.other.place.province in own
    return meant if len(meant) == 1 or settles else []


def _is_taken(games: VectorGame, numbers: np.ndarray, number: int) -> bool:
    """Tell whether a build or removal is in a province that has one already."""
    provinces, locations = games.board.location_province, games.table.location
    ordered = [n for n in numbers.tolist() if n not in (NONE, games.table.waive)]
    here = provinces[locations[number]]
    return number != games.table.waive and bool((provinces[locations[ordered]] == here).any())
