"""The lines of docs/protocol.md, one JSON object each, and the positions that they hold."""

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct, json

from ...constants import (
    ARMY,
    FLEET,
    NONE,
    RUNNING,
    WINTER_ADJUSTMENTS,
    parse_phase,
    phase_name,
)
from ...errors import UserError
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...rules.map import Map
from ...rules.notation import unit_of
from ...rules.state import adjustments_owed
from ...textgame.position import STATE_KEYS, load_state, result_bits, result_words

PROTOCOL = 1
ABOUT = f"diplomacy-engine {sys.modules[__package__.partition('.')[0]].__version__}"
MOST_BYTES = 16 * 2**20  # of a line
ByPower = dict[str, list[str]]


class Hello(Struct, omit_defaults=True):
    """What each side says first."""

    protocol: int
    name: str = ""
    maps: list[str] | None = None  # that a program plays; None: any, given as data
    wants: list[str] = []  # of a program: `legal_orders`, `last_orders`
    talks: bool = False  # of a program: whether it makes and answers offers
    greedy: bool = False  # of a host: whether likeliest orders are asked for
    seed: int = 0  # of a host: of the program's random numbers


class Message(Struct):
    """What one power says to another, as saved games have it: an offer, an answer, or words."""

    sender: str
    recipient: str
    message: str


class Talking(Struct, omit_defaults=True):
    """What is talked about in a game with press."""

    ask: str = "orders"  # or wishes, offers, proposals, answers, choices
    binding: bool = True
    open: bool = False  # whether all see who has peace


class Position(Struct, omit_defaults=True):
    """A game in which some powers are to order; keys as in a state of the `diplomacy` package."""

    game: int  # stays the same from phase to phase
    name: str  # of the phase
    units: ByPower  # those with a star are dislodged
    centers: ByPower
    powers: list[str]  # whose orders are asked for
    retreats: dict[str, dict[str, list[str]]] = {}
    builds: dict[str, int] = {}  # removals are negative
    last_orders: ByPower = {}
    last_results: dict[str, list[str]] = {}
    legal_orders: dict[str, ByPower] = {}  # by power and unit
    deals: list[Message] = []  # of this phase, as offers
    messages: list[Message] = []  # the offers that are asked about
    broken: dict[str, dict[str, int]] = {}  # power -> who broke a deal with it -> years ago
    new: bool = False  # whether what came before in this game is to be forgotten
    turn: int = 0  # phases so far
    seed: str = ""  # a number, for draws of this game


class Line(Struct, omit_defaults=True):
    """What a host sends: one of `hello`, `map` and `request`."""

    hello: Hello | None = None
    map: str | None = None  # with `data`: a map; with `request`: that of its positions
    data: dict[str, Any] | None = None
    request: int | None = None  # a number, which the reply repeats
    max_years: int = 0  # 0: games have no last year
    seed: int | None = None  # of the program's own random numbers from here on
    press: Talking | None = None  # None: powers cannot talk
    positions: list[Position] = []


class Answer(Struct, omit_defaults=True):
    """What a program sends: `hello`, or for each position of a request the orders by power, or what
    is said."""

    hello: Hello | None = None
    reply: int | None = None
    orders: list[ByPower] = []
    messages: list[list[Message]] = []


encode = json.Encoder().encode
line_decoder, answer_decoder = json.Decoder(Line), json.Decoder(Answer)


class Texts:
    """Texts of a map by number, and back."""

    def __init__(self, game_map: Map):
        board, locations = game_map.board, game_map.locations
        self.powers = game_map.unit_powers
        self.power = {name: number for number, name in enumerate(self.powers)}
        self.unit = np.empty((2, len(locations)), object)
        self.place: dict[str, tuple[int, int, int]] = {}  # unit -> kind, location, province
        for kind in (ARMY, FLEET):
            for number in range(len(locations)):
                text = self.unit[kind, number] = game_map.unit_text(kind, number)
                if board.can_stand[kind, number]:
                    self.place[text] = kind, number, int(board.location_province[number])
        codes = [game_map.provinces[v] for v in board.center_province]
        self.center, self.center_number = codes, {code: c for c, code in enumerate(codes)}
        self.locations = locations
        self.near: dict[str, dict[str, int]] = {}  # unit -> place -> bit of a retreat to there
        for text, (kind, number, _) in self.place.items():
            near = board.neighbor[kind, number, : board.neighbor_count[kind, number]].tolist()
            self.near[text] = {locations[place]: 1 << i for i, place in enumerate(near)}


@lru_cache(maxsize=16)
def texts_of(game_map: Map) -> Texts:
    return Texts(game_map)


def positions_of(
    games: VectorGame, decisions: Decisions, wants: Sequence[str], new: Iterable[int] = ()
) -> list[Position]:
    """Return the positions in which `decisions` are pending, each game once; `new` games begin."""
    texts, state = texts_of(games.map), games.state
    rows, place = np.unique(decisions.game, return_inverse=True)
    positions = [
        Position(row, phase_name(year, phase), {}, {}, [], turn=turn, seed=str(seed))
        for row, year, phase, turn, seed in zip(
            *(column.tolist() for column in (rows, *(c[rows] for c in _columns(state))))
        )
    ]
    for position in positions:
        position.units = {name: [] for name in texts.powers}
        position.centers = {name: [] for name in texts.powers[: games.num_powers]}
    for number, power, text in _units(
        texts, rows, state.unit_power, state.unit_kind, state.unit_location
    ):
        positions[number].units[texts.powers[power]].append(text)
    number, center = np.nonzero(state.center_owner[rows] != NONE)
    owners = state.center_owner[rows[number], center].tolist()
    for n, c, owner in zip(number.tolist(), center.tolist(), owners):
        positions[n].centers[texts.powers[owner]].append(texts.center[c])
    for n, power in zip(place.tolist(), decisions.power.tolist()):
        positions[n].powers.append(texts.powers[power])
    for n in np.flatnonzero(state.phase[rows] == WINTER_ADJUSTMENTS).tolist():
        owed = (
            int(adjustments_owed(games.board, state, rows[n], p)) for p in range(games.num_powers)
        )
        positions[n].builds = {name: count for name, count in zip(texts.powers, owed) if count}
    _add_retreats(games, texts, rows, positions)
    if "last_orders" in wants:
        _add_last_orders(games, texts, rows, positions)
    if "legal_orders" in wants:
        _add_legal_orders(games, texts, decisions, place.tolist(), positions)
    fresh = set(new)
    for position in positions:
        position.new = position.game in fresh
    return positions


def _columns(state) -> tuple[np.ndarray, ...]:
    return state.year, state.phase, state.turn, state.seed


def _units(texts, rows, powers, kinds, locations) -> Iterable[tuple[int, int, str]]:
    number, province = np.nonzero(powers[rows] != NONE)
    at = rows[number], province
    unit_texts = texts.unit[kinds[at], locations[at]].tolist()
    return zip(number.tolist(), powers[at].tolist(), unit_texts)


def _add_retreats(
    games: VectorGame, texts: Texts, rows: np.ndarray, positions: Sequence[Position]
) -> None:
    state, board = games.state, games.board
    number, province = np.nonzero(state.dislodged_power[rows] != NONE)
    for n, v in zip(number.tolist(), province.tolist()):
        row, position = rows[n], positions[n]
        kind, here = state.dislodged_kind[row, v], state.dislodged_location[row, v]
        options, power = (
            int(state.retreat_options[row, v]),
            texts.powers[state.dislodged_power[row, v]],
        )
        near = board.neighbor[kind, here, : board.neighbor_count[kind, here]].tolist()
        places = [texts.locations[place] for i, place in enumerate(near) if options >> i & 1]
        position.units[power].append(f"*{texts.unit[kind, here]}")
        position.retreats.setdefault(power, {})[texts.unit[kind, here]] = places


def _add_last_orders(
    games: VectorGame, texts: Texts, rows: np.ndarray, positions: Sequence[Position]
) -> None:
    state, order_texts = games.state, games.vocabulary.texts
    number, province = np.nonzero(state.last_order[rows] != NONE)
    at = rows[number], province
    parts = (state.last_order[at], state.last_power[at], state.last_result[at])
    for n, order, power, bits in zip(number.tolist(), *(part.tolist() for part in parts)):
        text, position = order_texts[order], positions[n]
        position.last_orders.setdefault(texts.powers[power], []).append(text)
        if bits:
            unit = unit_of(text)
            position.last_results[unit] = result_words(bits)


def _add_legal_orders(
    games: VectorGame, texts: Texts, decisions: Decisions, place: list[int], positions: list
) -> None:
    order_texts = games.vocabulary.texts
    starts, orders = decisions.order_start.tolist(), decisions.order.tolist()
    slots = decisions.slot_start.tolist()
    for d, (n, power) in enumerate(zip(place, decisions.power.tolist())):
        by_unit: ByPower = {}
        for slot in range(slots[d], slots[d + 1]):
            if decisions.slot_province[slot] == NONE and slot > slots[d]:
                break  # each build may be any of them
            for order in orders[starts[slot] : starts[slot + 1]]:
                text = order_texts[order]
                by_unit.setdefault(unit_of(text), []).append(text)
        positions[n].legal_orders[texts.powers[power]] = by_unit


def load_positions(games: VectorGame, positions: Sequence[Position]) -> None:
    """Set up positions in the rows of their game numbers; UserError names what is impossible."""
    texts, state = texts_of(games.map), games.state
    rows = np.array([position.game for position in positions])
    for array in state[:11]:
        array[rows] = 0 if array is state.retreat_options or array is state.last_result else NONE
    state.end[rows], state.winner[rows] = RUNNING, NONE
    try:
        _load(games, texts, positions)
    except (KeyError, ValueError, OverflowError):
        _load_one_by_one(games, positions)


def _load(games: VectorGame, texts: Texts, positions: Sequence[Position]) -> None:
    """Do as `load_positions` where all texts are in their plain form, else KeyError, ValueError."""
    state, numbers, standing, dislodged = games.state, games.vocabulary.number, [], []
    owned, last = [], {}
    for position in positions:
        row = position.game
        state.year[row], state.phase[row] = parse_phase(position.name)
        state.turn[row], state.seed[row] = position.turn, np.uint64(int(position.seed or 0))
        for power, units in position.units.items():
            owner = texts.power[power]
            standing += [(row, owner, *texts.place[u]) for u in units if u[:1] != "*"]
        for power, codes in position.centers.items():
            owner = texts.power[power]
            owned += [(row, owner, texts.center_number[code]) for code in codes]
        for power, units in position.retreats.items():
            for unit, places in units.items():
                kind, location, province = texts.place[unit]
                bits = sum(texts.near[unit][place] for place in places)
                dislodged.append((row, texts.power[power], kind, location, province, bits))
        for power, orders in position.last_orders.items():
            owner = texts.power[power]
            for text in orders:
                unit = unit_of(text)
                bits = result_bits(position.last_results.get(unit, ()))
                last[row, texts.place[unit][2]] = numbers[text], owner, bits
    fields = state.unit_power, state.unit_kind, state.unit_location
    _write(fields, standing)
    _write((state.center_owner,), owned)
    fields = state.dislodged_power, state.dislodged_kind, state.dislodged_location
    _write(fields, [unit[:-1] for unit in dislodged])
    for row, _, _, _, province, bits in dislodged:
        state.retreat_options[row, province] = bits
    fields = state.last_order, state.last_power, state.last_result
    _write(fields, [(row, *order, province) for (row, province), order in last.items()])


def _write(arrays: Sequence[np.ndarray], values: Sequence[tuple[int, ...]]) -> None:
    """Write tuples of a row, a value for each of `arrays`, and a column; ValueError if two meet."""
    if not values:
        return
    row, *parts, column = np.array(values).T
    if len(set(zip(row.tolist(), column.tolist()))) < len(values):
        raise ValueError("two units are in one province")
    for array, part in zip(arrays, parts):
        array[row, column] = part


def _load_one_by_one(games: VectorGame, positions: Sequence[Position]) -> None:
    """Do as `load_positions`, slowly, for texts in any form, and say what is wrong with them."""
    one = games.spare(1)
    for position in positions:
        about = {key: getattr(position, key) for key in STATE_KEYS}
        try:
            load_state(one, {key: value for key, value in about.items() if value})
            seed = np.uint64(int(position.seed or 0))
        except (UserError, ValueError, OverflowError) as error:
            raise UserError(f"game {position.game}, {position.name:.20}: {error}") from None
        one.state.turn[0], one.state.seed[0] = position.turn, seed
        games.copy_from(one, np.array([0]), np.array([position.game]), keep_seeds=True)


def asked_of(games: VectorGame, positions: Sequence[Position], decisions: Decisions) -> Decisions:
    """Return those of the decisions of positions whose powers are asked."""
    texts = texts_of(games.map)
    pending = np.zeros((games.num_games, len(texts.powers)), bool)
    for position in positions:
        for power in position.powers:
            if power not in texts.power:
                raise UserError(f"game {position.game}: there is no power {power!r:.40}")
            pending[position.game, texts.power[power]] = True
    return decisions.take(pending[decisions.game, decisions.power])


def order_texts(
    games: VectorGame, positions: Sequence[Position], decisions: Decisions, numbers: np.ndarray
) -> list[ByPower]:
    """Return the orders of each position by power; `numbers` (S,) are those of `decisions`."""
    texts, vocabulary = texts_of(games.map), games.vocabulary.texts
    of_game = {position.game: {} for position in positions}
    starts, order = decisions.slot_start.tolist(), numbers.tolist()
    for d, (game, power) in enumerate(zip(decisions.game.tolist(), decisions.power.tolist())):
        of_game[game][texts.powers[power]] = [
            vocabulary[number] for number in order[starts[d] : starts[d + 1]] if number != NONE
        ]
    return list(of_game.values())
