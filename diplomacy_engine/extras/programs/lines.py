"""The lines of docs/protocol.md, one JSON object each, and the positions that they hold."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta, MsgspecError, Struct, json

from ..._version import VERSION
from ...constants import FLEET, NONE, RESULT_WORDS, RUNNING, Phase
from ...errors import UserError
from ...games.decisions import Decisions
from ...games.vector_game import VectorGame
from ...players.asking import slots_of
from ...rules.map import Map
from ...rules.notation import unit_of
from ...rules.state import LAST_YEAR, GameState, seed_from
from ...rules.vocabulary import vocabulary
from ...textgame import position as saved_state

PROTOCOL = 1
ABOUT = f"diplomacy-engine {VERSION}"
MOST_BYTES = 16 * 2**20  # of a line
ByPower = dict[str, list[str]]
Arrays = dict[str, bytes]  # of little-endian int32 each; of seeds uint64
_Count = Annotated[int, Meta(ge=0, lt=2**31)]


HEADS = ("phase", "year", "turn")
ARRAYS = (*(name for name in GameState._fields[:11] if name != "retreat_options"), *HEADS)


class Hello(Struct, omit_defaults=True):
    """What each side says first."""

    protocol: int
    name: str = ""
    maps: list[str] | None = None  # that a program plays; None: any, given as data
    wants: list[str] = []  # of a program: `legal_orders`, `last_orders`, `arrays`
    talks: bool = False  # of a program: whether it makes and answers offers
    greedy: bool = False  # of a host: whether likeliest orders are asked for


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
    broken: dict[str, dict[str, _Count]] = {}  # power -> who broke a deal with it -> years ago
    new: bool = False  # whether what came before in this game is to be forgotten
    turn: _Count = 0  # phases so far
    seed: str = ""  # a number, for draws of this game


class Line(Struct, omit_defaults=True):
    """What a host sends: one of `hello`, `map` and `request`."""

    hello: Hello | None = None
    map: str | None = None  # with `data`: a map; with `request`: that of its positions
    data: dict | None = None
    tables: dict[str, list[str]] | None = None  # of a map, for `arrays`
    request: int | None = None  # a number, which the reply repeats
    max_years: int = 0  # 0: games have no last year
    press: Talking | None = None  # None: powers cannot talk
    positions: list[Position] = []
    arrays: Arrays | None = None  # in place of positions


class Answer(Struct, omit_defaults=True):
    """A program's message: `hello`, or for each position of a request the orders by power, or the
    messages."""

    hello: Hello | None = None
    reply: int | None = None
    orders: list[ByPower] = []
    messages: list[list[Message]] = []
    arrays: Arrays | None = None


UNREADABLE = (MsgspecError, UnicodeError, RecursionError)  # what decoders raise
encode = json.Encoder().encode
line_decoder, answer_decoder = json.Decoder(Line), json.Decoder(Answer)


def positions_of(
    games: VectorGame, decisions: Decisions, wants: Sequence[str], new: Iterable[int] = ()
) -> list[Position]:
    """Return the positions in which `decisions` are pending, each game once; `new` games begin."""
    rows, place = np.unique(decisions.game, return_inverse=True)
    one, fresh = games.spare(1), set(new)
    positions = []
    for n, row in enumerate(rows.tolist()):
        one.copy_from(games, np.array([row]), np.zeros(1, int), keep_seeds=True)
        units, retreats = saved_state.standing_units(one), saved_state.retreat_places(one)
        for power, dislodged in retreats.items():
            units[power] += [f"*{unit}" for unit in dislodged]
        position = Position(
            row,
            saved_state.current_phase(one),
            units,
            saved_state.owned_centers(one),
            [games.map.powers[power] for power in decisions.power[place == n]],
            retreats,
            saved_state.owed_adjustments(one),
            new=row in fresh,
            turn=int(one.state.turn[0]),
            seed=str(one.state.seed[0]),
        )
        if last := "last_orders" in wants and saved_state.last_orders(one):
            position.last_orders, position.last_results = last.values()
        positions.append(position)
    if "legal_orders" in wants:
        _add_legal_orders(games, decisions, place.tolist(), positions)
    return positions


def _add_legal_orders(
    games: VectorGame, decisions: Decisions, place: list[int], positions: list[Position]
) -> None:
    for d, (n, power) in enumerate(zip(place, decisions.power.tolist())):
        by_unit: ByPower = {}
        for slot in slots_of(games, decisions, d):
            for text in slot.texts:
                by_unit.setdefault(unit_of(text), []).append(text)
            if positions[n].name[-1] == "A":
                break  # each build may be any of them
        positions[n].legal_orders[games.map.powers[power]] = by_unit


def tables_of(game_map: Map) -> dict[str, list[str]]:
    """Return what the numbers of arrays stand for."""
    names = game_map.provinces, game_map.locations, vocabulary(game_map).texts, RESULT_WORDS
    return dict(zip(("provinces", "locations", "orders", "results"), map(list, names)))


def arrays_of(games: VectorGame, decisions: Decisions, new: Iterable[int]) -> Arrays:
    """Return the positions in which `decisions` are pending as arrays; `new` games begin."""
    rows, place = np.unique(decisions.game, return_inverse=True)
    arrays = {name: getattr(games.state, name)[rows] for name in ARRAYS}
    arrays |= {"game": rows, "new": np.isin(rows, list(new)), "position": place}
    arrays["power"] = decisions.power
    number, province = np.nonzero(arrays["dislodged_power"] != NONE)
    options = games.state.retreat_options[rows][number, province]
    units = (arrays[name][number, province] for name in ("dislodged_kind", "dislodged_location"))
    near = games.board.neighbor[tuple(units)]
    unit, bit = np.nonzero(options[:, None] >> np.arange(near.shape[1], dtype=np.uint32) & 1)
    arrays["retreats"] = np.stack([number[unit], province[unit], near[unit, bit]])
    packed = {name: array.astype("<i4").tobytes() for name, array in arrays.items()}
    return packed | {"seed": games.state.seed[rows].astype("<u8").tobytes()}


def read_array(arrays: Arrays, name: str, most: int, least: int = NONE) -> np.ndarray:
    """Return an array of numbers from `least` to `most`; UserError if it is none."""
    try:
        array = np.frombuffer(arrays[name], "<i4")
    except (KeyError, ValueError):
        raise UserError(f"there is no array {name!r:.40}") from None
    if array.size and not least <= array.min() <= array.max() <= most:
        raise UserError(f"array {name!r:.40} has numbers that are not {least} to {most}")
    return array


def load_arrays(games: VectorGame, arrays: Arrays) -> Decisions:
    """Set up the positions of arrays, and return their decisions."""
    state, board, powers = games.state, games.board, games.num_powers
    rows = read_array(arrays, "game", games.num_games - 1, 0)
    order, kind, location = len(games.table.kind) - 1, FLEET, len(games.map.locations) - 1
    mosts = *(powers, kind, location) * 2, powers, order, powers, 255, 4, LAST_YEAR, 2**31 - 1
    seeds = arrays.get("seed", b"")
    _clear(games, rows)
    for name, most in zip(ARRAYS, mosts):
        array, values = getattr(state, name), read_array(arrays, name, most)
        if (len(values), len(seeds)) != (array[rows].size, 8 * len(rows)):
            raise UserError(f"array {name!r} or 'seed' is not of {len(rows)} positions")
        array[rows] = values.reshape(-1, *array.shape[1:])
    state.seed[rows] = np.frombuffer(seeds, "<u8")
    for power, kind, location in (state[:3], state[3:6]):
        row, province = np.nonzero(power[rows] != NONE)
        kind, location = kind[rows[row], province], location[rows[row], province]
        stands = board.can_stand[kind, location] & (board.location_province[location] == province)
        if not (stands & (kind != NONE) & (location != NONE)).all():
            raise UserError("arrays have a unit where it cannot stand")
    retreats = read_array(arrays, "retreats", len(games.map.locations) - 1)
    if len(retreats) % 3:
        raise UserError("array 'retreats' has no three equally long parts")
    row, province, location = retreats.reshape(3, -1)
    if row.size and not (row.max() < len(rows) and province.max() < len(board.terrain)):
        raise UserError("array 'retreats' is of other positions")
    at = rows[row], province
    options = board.neighbor[state.dislodged_kind[at], state.dislodged_location[at]]
    unit, bit = np.nonzero(options == location[:, None])
    bits = np.uint32(1) << bit.astype(np.uint32)
    np.bitwise_or.at(state.retreat_options, (at[0][unit], province[unit]), bits)
    pending = np.zeros((games.num_games, powers + 1), bool)
    position = read_array(arrays, "position", len(rows) - 1, 0)
    power = read_array(arrays, "power", powers - 1, 0)
    if len(position) != len(power):
        raise UserError("arrays 'position' and 'power' must be equally long")
    pending[rows[position], power] = True
    decisions = games.decisions(np.sort(rows))
    return decisions.take(pending[decisions.game, decisions.power])


def order_array(
    games: VectorGame, decisions: Decisions, numbers: np.ndarray, arrays: Arrays
) -> Arrays:
    """Return the orders of each seat of `arrays`, by province."""
    rows, position, power = (
        np.frombuffer(arrays[name], "<i4") for name in ("game", "position", "power")
    )
    seat = np.zeros((games.num_games, games.num_powers), int)
    seat[rows[position], power] = np.arange(len(power))
    ordered = np.flatnonzero((numbers != NONE) & (numbers != games.table.waive))
    d, number = decisions.slot_decision[ordered], numbers[ordered]
    orders = np.full((len(power), len(games.board.terrain)), NONE, "<i4")
    province = games.board.location_province[games.table.location[number]]
    orders[seat[decisions.game[d], decisions.power[d]], province] = number
    return {"orders": orders.tobytes()}


def _clear(games: VectorGame, rows: np.ndarray) -> None:
    state = games.state
    for array in state[:11]:
        array[rows] = 0 if array is state.retreat_options or array is state.last_result else NONE
    state.end[rows], state.winner[rows] = RUNNING, NONE


def load_positions(games: VectorGame, positions: Sequence[Position], seed: int) -> None:
    """Set up positions in the rows of their game numbers; UserError names what is impossible. A
    position that says no seed or turn has those of `seed` and its phase."""
    one = games.spare(1)
    for position in positions:
        about = {key: getattr(position, key) for key in saved_state.STATE_KEYS}
        try:
            saved_state.load_state(one, {key: value for key, value in about.items() if value})
            own = np.uint64(int(position.seed or seed_from(seed, position.game)))
        except (UserError, ValueError, OverflowError) as error:
            raise UserError(f"game {position.game}, {position.name:.20}: {error}") from None
        state = one.state
        phases = len(Phase) * (int(state.year[0]) - one.board.first_year) + int(state.phase[0])
        state.turn[0], state.seed[0] = position.turn or max(0, phases), own
        games.copy_from(one, np.array([0]), np.array([position.game]), keep_seeds=True)


def asked_of(games: VectorGame, positions: Sequence[Position], decisions: Decisions) -> Decisions:
    """Return the decisions of the positions' requested powers."""
    pending = np.zeros((games.num_games, games.num_powers), bool)
    for position in positions:
        for power in position.powers:
            if power not in games.map.power_index:
                raise UserError(f"game {position.game}: there is no power {power!r:.40}")
            pending[position.game, games.map.power_index[power]] = True
    return decisions.take(pending[decisions.game, decisions.power])


def order_texts(
    games: VectorGame, positions: Sequence[Position], decisions: Decisions, numbers: np.ndarray
) -> list[ByPower]:
    """Return the orders of each position by power; `numbers` (S,) are those of `decisions`."""
    powers, vocabulary = games.map.powers, games.vocabulary.texts
    of_game = {position.game: {} for position in positions}
    starts, order = decisions.slot_start.tolist(), numbers.tolist()
    for d, (game, power) in enumerate(zip(decisions.game.tolist(), decisions.power.tolist())):
        of_game[game][powers[power]] = [
            vocabulary[number] for number in order[starts[d] : starts[d + 1]] if number != NONE
        ]
    return list(of_game.values())
