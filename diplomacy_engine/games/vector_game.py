"""Many games at once: `VectorGame`, arrays in, arrays out.

All work on games runs in compiled kernels on slices of rows, in threads. Every random draw is made
from a game's own seed, so results do not depend on the number of threads.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple, Self, TypeVar

import numpy as np

from .._arrays import Bools, Int8s, Int16s, new_arrays
from .._copies import copied_object
from .._cores import usable_cores
from .._jit import compiled, jit
from .._suggest import array_shapes
from ..constants import AGREED, NONE, RUNNING
from ..errors import UserError
from ..rules.adjudicator.movement import movement_scratch
from ..rules.game_rules import GameRules
from ..rules.legal_orders import legal_scratch, list_game
from ..rules.map import Board, Map
from ..rules.phases import adjudicate_phase, end_by_victory
from ..rules.state import (
    allocate_state,
    copy_game,
    count_centers,
    has_neutral,
    is_alive,
    is_movement,
    next_random,
    ordering_powers,
    reset_game,
)
from ..rules.vocabulary import OrderTable, vocabulary
from ..scoring.outcomes import Outcomes
from .decisions import Decisions, empty_decisions, filled, join_decisions
from .observation import (
    NUM_BOARD_FEATURES,
    POWER_SCALARS,
    SCALARS,
    BoardViews,
    Observation,
    observe,
)

_Result = TypeVar("_Result")
SLICE = 16  # fewer items than this per thread are not worth a thread


class StepResult(NamedTuple):
    """The result of one step in every game; of a game that ended, its final position.

    After a step of some rows only, entry i is of rows[i]. A power that has conceded is not alive
    here, and has no centers.
    """

    ended: Annotated[Int8s, "E"]  # End; RUNNING where the game goes on or had ended before
    winner: Annotated[Int8s, "E"]  # power with a solo, or one of a team that won; NONE: nobody
    captured: Annotated[Bools, "E"]  # whether supply centers were counted (end of a fall)
    centers: Annotated[Int16s, "E, P"]  # centers after the step
    centers_before: Annotated[Int16s, "E, P"]  # centers before the step
    alive: Annotated[Bools, "E, P"]  # has a unit or a center after the step
    eliminated: Annotated[Bools, "E, P"]  # lost its last unit and center in this step
    year: Annotated[Int16s, "E"]  # calendar year of the phase played

    def __repr__(self) -> str:
        return array_shapes(self)


@jit
def _step_games(
    board, table, state, orders, agreed, scratch, max_years, row_seed, rows, first, last, out
):
    """Play one phase of games rows[first:last].

    Games that concessions have decided end instead, and those that are `agreed` (E,) in a draw; it
    is empty if nobody votes. `row_seed` (E,) is empty if a finished game is not replaced by a new
    one.
    """
    ended, winner, captured, centers, centers_before, alive, eliminated, year = out
    for i in range(first, last):
        e = rows[i]
        year[i] = state.year[e]
        ended[i] = RUNNING
        winner[i] = NONE
        captured[i] = False
        some_conceded = False
        for p in range(board.num_powers):
            some_conceded |= state.conceded[e, p]
            centers_before[i, p] = 0 if state.conceded[e, p] else count_centers(state, e, p)
            alive[i, p] = is_alive(state, e, p)
            eliminated[i, p] = False
        if state.end[e] == RUNNING:
            over = some_conceded and end_by_victory(board, state, e, False)
            if not over and agreed.shape[0] > 0 and agreed[e]:
                state.end[e] = AGREED
            elif not over:
                captured[i] = adjudicate_phase(board, table, state, e, orders, scratch, max_years)
            ended[i] = state.end[e]
            winner[i] = state.winner[e]
        for p in range(board.num_powers):
            centers[i, p] = 0 if state.conceded[e, p] else count_centers(state, e, p)
            still = is_alive(state, e, p)
            eliminated[i, p] = alive[i, p] and not still
            alive[i, p] = still
        if state.end[e] != RUNNING and row_seed.shape[0] > 0:
            row_seed[e], _ = next_random(row_seed[e])
            reset_game(board, state, e, row_seed[e])


@jit
def _reset_rows(board, state, row_seed, rows):
    for e in rows:
        row_seed[e], _ = next_random(row_seed[e])
        reset_game(board, state, e, row_seed[e])


@jit
def _copy_rows(other, sources, state, row_seed, destinations, keep_seeds):
    """Copy rows `sources` (n,) of the state `other` to rows `destinations` (n,) of `state`."""
    for i in range(sources.shape[0]):
        e = destinations[i]
        copy_game(other, sources[i], state, e)
        if keep_seeds:
            state.seed[e] = other.seed[sources[i]]
        else:
            row_seed[e], _ = next_random(row_seed[e])
            state.seed[e] = row_seed[e]


@jit
def _read_outcomes(board, state, rows, out):
    """Write the arrays of an Outcomes; `years` counts the year of the phase, 1 for the first."""
    ended, winner, centers, alive, years = out
    for i in range(rows.shape[0]):
        e = rows[i]
        ended[i], winner[i] = state.end[e], state.winner[e]
        years[i] = state.year[e] - board.first_year + 1
        for p in range(board.num_powers):
            centers[i, p] = 0 if state.conceded[e, p] else count_centers(state, e, p)
            alive[i, p] = is_alive(state, e, p)


@jit
def _list_games(board, table, state, scratch, per_slot, rows, first, last, counts, buffers):
    """List the decisions of games rows[first:last].

    Return `last`, or the index of the first game for which a buffer is too small.
    """
    for i in range(first, last):
        if state.end[rows[i]] == RUNNING and not list_game(
            board, table, state, rows[i], scratch, per_slot, counts, buffers
        ):
            return i
    return last


@jit
def _write_orders(table, location_province, decisions, first, last, numbers, orders):
    """Write numbers (S,) of decisions first..last-1 to orders (E, V)."""
    for d in range(first, last):
        e = decisions.game[d]
        for s in range(decisions.slot_start[d], decisions.slot_start[d + 1]):
            number = numbers[s]
            if decisions.slot_province[s] != NONE:
                orders[e, decisions.slot_province[s]] = number
                continue
            # In winter the order names the province; an order that is not legal is left out.
            for i in range(decisions.order_start[s], decisions.order_start[s + 1]):
                if decisions.order[i] == number and number != table.waive:
                    orders[e, location_province[table.location[number]]] = number


@jit
def _add_moving(state, rows, past, count):
    for e in rows:
        if state.end[e] == RUNNING and is_movement(state.phase[e]):
            row = count[e] * count.shape[0] + e
            copy_game(state, e, past, row)
            past.seed[row] = state.seed[e]
            count[e] += 1


class History:
    """The movement phases that E games have had, each as it stood before its orders.

    Attributes:
        games: these positions; that of the i-th phase of game e is in row i * E + e.
        count: (E,) int64, how many of each game there are.
    """

    def __init__(self, games: "VectorGame"):
        self.games = games.spare(games.num_games)
        self.count = np.zeros(games.num_games, np.int64)

    def rows_of(self, game: int) -> np.ndarray:
        return np.arange(self.count[game]) * len(self.count) + game

    def add(self, games: "VectorGame", rows: np.ndarray) -> None:
        """Add the positions of those of `rows` that are in a movement phase."""
        self.games.rules = games.rules
        self._make_room(1 + self.count.max())
        rows = np.ascontiguousarray(rows, np.int64)
        games.call(_add_moving, games.state, rows, self.games.state, self.count)

    def copy_from(self, other: Self | None, rows: np.ndarray, into: np.ndarray) -> None:
        """Give games `into` (n,) what games `rows` (n,) of another history have had."""
        for row, game in zip(rows.tolist(), into.tolist()):
            past = other.rows_of(row) if other else np.arange(0)
            self._make_room(len(past))
            self.count[game] = len(past)
            self.games.copy_from((other or self).games, past, self.rows_of(game), keep_seeds=True)

    def _make_room(self, phases: int) -> None:
        if phases * len(self.count) > self.games.num_games:
            before, every = self.games, np.arange(self.games.num_games)
            self.games = before.spare(2 * phases * len(self.count))
            self.games.copy_from(before, every, every, keep_seeds=True)


class VectorGame:
    """E games of one map.

    Args:
        game_map: a map's name or file, a Map, or GameRules; VectorGame itself uses their map and
            year limit, matches and players the other rules.
        num_games: E.
        seed: seeds every game; the same seed gives the same games for the same orders.
        max_years: game years after which a game ends (None: the limit of the map or the rules; 0:
            no limit).
        threads: threads that share the games (None: one per usable processor).
        auto_reset: start a new game in a row as soon as its game has ended. Without it a finished
            game stays, has no decisions, and waits for `reset`.
        keep_history: keep what came before in each game, at which some players look.

    Attributes:
        rules: the GameRules of all games; another record of the same map can take their place.
        map, board: the Map, and its arrays for kernels.
        vocabulary, table: the OrderVocabulary of the map, and its arrays for kernels.
        state: GameState, (E, ...) arrays that kernels update in place.
        history: History, what came before in the games; None: nobody keeps it.
    """

    def __init__(
        self,
        game_map: str | Path | Map | GameRules,
        num_games: int,
        seed: int = 1,
        max_years: int | None = None,
        threads: int | None = None,
        auto_reset: bool = True,
        keep_history: bool = False,
    ):
        """See the class for the arguments."""
        if num_games < 1:
            raise UserError(f"num_games must be at least 1, not {num_games}")
        rules = GameRules.of(game_map)
        self.rules = rules if max_years is None else GameRules.of(rules, max_years=max_years)
        self.map = self.rules.map
        self.vocabulary = vocabulary(self.map)
        self.board, self.table = self.map.board, self.vocabulary.table
        self.num_games = num_games
        self.threads = max(1, threads or usable_cores())
        self.auto_reset = auto_reset
        self.state = allocate_state(self.board, num_games)
        generator = np.random.default_rng([seed, 0x6469706C])
        self.row_seed = generator.integers(0, 2**64, num_games, np.uint64)
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        self._of_map = _of_map(self.map)
        self._most_orders = 0  # of one slice of rows so far
        self._part_buffers: list[Decisions | None] = [None] * self.threads
        self._every_row, self._no_draws = np.arange(num_games), np.zeros(0, bool)
        self.history = History(self) if keep_history else None
        self.reset()

    def __deepcopy__(self, memo: dict) -> "VectorGame":
        """Copy what changes; the rest is shared."""
        constants = self.board, self.table, self._of_map, self._pool
        memo |= {id(constant): constant for constant in constants}
        return copied_object(self, memo)

    def __copy__(self) -> "VectorGame":
        return self.__deepcopy__({})

    def __reduce__(self) -> tuple:
        """Pickle the arguments, the state and the seeds; the rest is made anew."""
        arguments = self.map, self.num_games, 1, None, self.threads, self.auto_reset
        changing = "state", "row_seed", "rules", "history"
        return type(self), arguments, {name: getattr(self, name) for name in changing}

    def __repr__(self) -> str:
        return f"VectorGame({self.map.name!r}, {self.num_games} games)"

    @property
    def max_years(self) -> int:
        """Game years after which a game ends; 0: no limit."""
        return self.rules.max_years or 0

    @max_years.setter
    def max_years(self, years: int) -> None:
        self.rules = replace(self.rules, max_years=years)

    @property
    def num_powers(self) -> int:
        """P, the number of powers."""
        return self.board.num_powers

    def run(
        self, function: Callable[..., _Result], count: int, numbered: bool = False
    ) -> list[_Result]:
        """Call `function(first, last)` on slices of range(count), in threads; return the results.

        With `numbered` it also gets the slice's number, for example to choose scratch memory.
        """
        if self._pool is None or count < 2 * SLICE:
            return [function(0, count, 0) if numbered else function(0, count)]
        slices = min(self.threads, count // SLICE)
        edges = [count * i // slices for i in range(slices + 1)]
        own, *others = zip(edges, edges[1:], *([range(slices)] if numbered else []))
        futures = [self._pool.submit(function, *call) for call in others]
        return [function(*own)] + [future.result() for future in futures]

    def call(self, kernel: Callable[..., _Result], *arguments: object) -> _Result:
        """Call a kernel without Numba's dispatch (see `_jit.compiled`).

        Its arguments have the same types at every call for games of this map; arrays must be
        contiguous.
        """
        code = self._of_map.code.get(kernel)
        if code is None:
            code = self._of_map.code[kernel] = compiled(kernel, *arguments)
        return code(*arguments)

    def call_slices(self, kernel: Callable, count: int, before: tuple, after: tuple) -> None:
        """`call` a kernel on slices of range(count), in threads; its arguments are those `before`,
        the first and the last of a slice, and those `after`."""
        self.run(lambda first, last: self.call(kernel, *before, first, last, *after), count)

    def check_orders(self, orders: np.ndarray) -> None:
        """Raise a ValueError unless `orders` has the shape and type of `new_orders`."""
        _check("orders", orders, (self.num_games, len(self.board.terrain)), "int32")
        if not orders.flags.carray:
            raise ValueError("orders must be a contiguous and writable array")

    def reset(self, rows: np.ndarray | None = None) -> None:
        """Start new games in the given rows (integers or a mask; None: all)."""
        rows = self._rows(rows)
        self.call(_reset_rows, self.board, self.state, self.row_seed, rows)
        if self.history is not None:
            self.history.count[rows] = 0

    def seed_games(self, rows: np.ndarray, seeds: np.ndarray) -> None:
        """Seed the games `rows` (n,) anew with `seeds` (n,) uint64, from this phase on.

        Games after a reset depend on these seeds, too.
        """
        rows = self._rows(rows)
        self.state.seed[rows] = self.row_seed[rows] = seeds

    def spare(self, num_games: int) -> "VectorGame":
        """Return new games of the same rules and threads, without history, for example for a
        search."""
        return VectorGame(self.rules, num_games, threads=self.threads, auto_reset=False)

    def is_like(self, other: "VectorGame") -> bool:
        """Return whether a position copied from `other` would continue here as it does there."""
        return self.map == other.map and self.max_years == other.max_years

    def copy_from(
        self, other: "VectorGame", rows: np.ndarray, into: np.ndarray, keep_seeds: bool = False
    ) -> None:
        """Copy positions of `rows` (n,) of other games of the same map into rows `into` (n,) here.

        Rows are copied in order, and `other` may be these games themselves. With `keep_seeds` a
        copy has the seed of its original, otherwise its own.

        Raises:
            ValueError: another map, invalid rows, or different numbers of rows.
        """
        rows, into = other._rows(np.atleast_1d(rows)), self._rows(np.atleast_1d(into))
        if rows.shape != into.shape:
            raise ValueError(
                f"the rows copied and those written must be equally many, not {len(rows)} and "
                f"{len(into)}"
            )
        if other.map.hash != self.map.hash:
            raise ValueError(
                f"games of map {other.map.name!r} cannot be copied into games of map "
                f"{self.map.name!r}, which is another"
            )
        self.call(_copy_rows, other.state, rows, self.state, self.row_seed, into, keep_seeds)
        if self.history is not None:
            self.history.copy_from(other.history, rows, into)

    def _rows(self, rows: np.ndarray | None) -> np.ndarray:
        if rows is None:
            return self._every_row
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        rows = np.ascontiguousarray(rows, np.int64)
        if rows.size and not 0 <= rows.min() <= rows.max() < self.num_games:
            raise ValueError(f"rows must be 0..{self.num_games - 1}")
        return rows

    def decisions(self, rows: np.ndarray | None = None, reuse: bool = False) -> Decisions:
        """Return the pending decisions of all running games, or of those of the given rows.

        With `reuse` the next call overwrites the arrays, which saves allocating new ones.
        """
        rows = self._rows(rows)
        parts = self.run(
            lambda first, last, thread: self._list_slice(rows, first, last, thread, reuse),
            len(rows),
            numbered=True,
        )
        for part in parts:
            self._most_orders = max(self._most_orders, len(part.order))
        return parts[0] if len(parts) == 1 else join_decisions(parts)

    def _list_slice(
        self, rows: np.ndarray, first: int, last: int, thread: int, reuse: bool
    ) -> Decisions:
        games, provinces = last - first, len(self.board.terrain)
        max_d = games * self.num_powers + self.num_powers + 1
        max_s = (games + 2) * provinces + 1
        per_slot = self._of_map.orders_per_slot
        reserve = 2 * provinces * per_slot
        max_n = max(2 * reserve, int(self._most_orders * 1.25) + reserve)
        # Several slices are copied when they are joined, so their buffers can serve again.
        reuse = reuse or last - first < len(rows)
        buffers = self._part_buffers[thread] if reuse else None
        while True:
            if buffers is None or len(buffers.game) < max_d or len(buffers.order) < max_n:
                buffers = empty_decisions(max_d, max_s, max_n)
            counts = np.zeros(3, np.int64)
            boards = self.board, self.table, self.state, self._of_map.legal, per_slot
            end = self.call(_list_games, *boards, rows, first, last, counts, buffers)
            if end == last:
                break
            max_n *= 2
        if reuse:
            self._part_buffers[thread] = buffers
        d, s, n = counts.tolist()
        buffers.slot_start[d], buffers.order_start[s] = s, n
        return filled(buffers, d, s, n)

    def observe(self, decisions: Decisions) -> Observation:
        """Return the observations (D,) of the powers that decide."""
        return self.observe_powers(decisions.game, decisions.power)

    def observe_powers(self, games: np.ndarray, powers: np.ndarray) -> Observation:
        """Return the observations of `games` (D,) by `powers` (D,), with or without a decision."""
        count, provinces = len(games), len(self.board.terrain)
        out = Observation(
            np.empty((count, provinces, NUM_BOARD_FEATURES), np.int8),
            np.empty((count, provinces), np.int32),
            np.empty((count, len(SCALARS) + len(POWER_SCALARS) * self.num_powers), np.int16),
        )
        games = np.ascontiguousarray(games, np.int32)
        powers = np.ascontiguousarray(powers, np.int8)
        viewed = self.board, self.state, games, powers
        self.call_slices(observe, count, viewed, (self.max_years, *out))
        return out

    def view_boards(self, games: np.ndarray, powers: np.ndarray) -> BoardViews:
        """Return the views of `games` (D,) by `powers` (D,), with one board for each game."""
        viewed_games, row = np.unique(games, return_inverse=True)
        boards = self.observe_powers(viewed_games, np.zeros(len(viewed_games), np.int8))
        return BoardViews(*boards, row, np.asarray(powers, np.int8))

    def new_orders(self) -> np.ndarray:
        """Return an array (E, V) int32 for `write_orders` and `step`, all NONE."""
        return np.full((self.num_games, len(self.board.terrain)), NONE, np.int32)

    def write_orders(self, orders: np.ndarray, decisions: Decisions, numbers: np.ndarray) -> None:
        """Write an order for each slot of `decisions` into `orders` (E, V).

        `numbers` (S,) int32 are order numbers as a player's `act` returns them. Only orders of the
        deciding powers' units and centers change.
        """
        self.check_orders(orders)
        numbers = np.ascontiguousarray(numbers, np.int32)
        if len(numbers) != len(decisions.slot_province):
            raise ValueError(
                f"{len(numbers)} order numbers were given for {len(decisions.slot_province)} slots"
            )
        read = self.table, self.board.location_province, decisions
        self.call_slices(_write_orders, decisions.count, read, (numbers, orders))

    def step(
        self, orders: np.ndarray, rows: np.ndarray | None = None, out: StepResult | None = None
    ) -> StepResult:
        """Adjudicate one phase of every running game and move on to its next phase.

        A game ends without adjudication if all but one power or team have `state.conceded`, or if
        all surviving powers have `state.votes` for a draw. Write both before the step; votes count
        for one step.

        Args:
            orders: (E, V) int32, order numbers by the province of the unit (or center to build in),
                NONE for none. A number that is not an order of the unit there counts as none: a
                unit holds, a dislodged one disbands, a build is waived, a removal is left to civil
                disorder. Neutral units, and units of powers that have conceded, get no orders.
            rows: games to play, integers or a mask; None: all.
            out: the result of an earlier step of as many games, to be overwritten.
        """
        self.check_orders(orders)
        state, rows = self.state, self._rows(rows)
        agreed = self.agreed() if state.votes.any() else self._no_draws
        games = len(rows)
        out = new_arrays(StepResult, E=games, P=self.num_powers) if out is None else out
        if self._of_map.has_neutral or state.conceded.any():
            nobody = np.pad(state.conceded, ((0, 0), (0, 1)), constant_values=True)
            power = ordering_powers(self.board, state)
            orders = np.where(nobody[self._every_row[:, None], power], np.int32(NONE), orders)
        row_seed = self.row_seed if self.auto_reset else self.row_seed[:0]
        if self.history is not None:
            self.history.add(self, rows)
        boards = self.board, self.table, state, orders, agreed

        def step_slice(first: int, last: int) -> None:
            rules = self._of_map.movement, self.max_years, row_seed
            self.call(_step_games, *boards, *rules, rows, first, last, out)

        self.run(step_slice, games)
        if len(agreed):
            state.votes[rows] = False
        if self.history is not None and self.auto_reset:
            self.history.count[rows[out.ended != RUNNING]] = 0
        return out

    def agreed(self) -> np.ndarray:
        """Return (E,) bool, whether every power alive has voted for a draw in this phase."""
        alive = self.outcomes().alive
        return np.logical_and.reduce(self.state.votes | ~alive, 1) & alive.any(1)

    def centers(self) -> np.ndarray:
        """Return the center counts, (E, P) int16."""
        owners = self.state.center_owner[:, :, None]
        return (owners == np.arange(self.num_powers, dtype=np.int8)).sum(1).astype(np.int16)

    def outcomes(self, rows: np.ndarray | None = None) -> Outcomes:
        """Return the Outcomes of rows (integers or a mask; None: all), finished or not."""
        rows = self._rows(rows)
        out = new_arrays(Outcomes, E=len(rows), P=self.num_powers)
        self.call(_read_outcomes, self.board, self.state, rows, out)
        return out

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return copies of the state's arrays and of the seeds, by name."""
        arrays = self.state._asdict() | {"row_seed": self.row_seed}
        return {name: array.copy() for name, array in arrays.items()}


def _check(name: str, array: np.ndarray, shape: tuple[int, int], kind: str) -> None:
    if array.shape != shape or array.dtype != kind:
        actual = f"{array.dtype} of shape {array.shape}"
        raise ValueError(f"{name} must be {kind} of shape {shape}, not {actual}")


class _OfMap(threading.local):
    """What games of one map share: machine code, and working memory, each thread its own."""

    def __init__(self, board: Board, table: OrderTable, code: dict[Callable, Callable]):
        self.code = code
        self.movement, self.legal = movement_scratch(board), legal_scratch(board, table)
        self.has_neutral = has_neutral(board)
        # An upper bound on the legal orders of one slot.
        per_province = np.diff(table.province_first).max(initial=1)
        builds = (table.build != NONE).sum()
        self.orders_per_slot = int(max(per_province, builds, len(board.terrain))) + 1


@lru_cache(maxsize=16)
def _of_map(game_map: Map) -> _OfMap:
    return _OfMap(game_map.board, vocabulary(game_map).table, {})
