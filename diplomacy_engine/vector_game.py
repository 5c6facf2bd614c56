"""Many games at once: `VectorGame`, arrays in, arrays out.

All work on games runs in compiled kernels on slices of rows, in threads. Every random draw is made
from a game's own seed, so results do not depend on the number of threads.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._jit import jit
from .adjudicator.adjustments import adjudicate_adjustments
from .adjudicator.movement import adjudicate_movement, movement_scratch
from .adjudicator.retreats import adjudicate_retreats
from .constants import (
    FALL_MOVEMENT,
    FALL_RETREATS,
    NONE,
    RUNNING,
    SOLO,
    SPRING_MOVEMENT,
    SPRING_RETREATS,
    WINTER_ADJUSTMENTS,
    YEAR_LIMIT,
)
from .decisions import Decisions, empty_decisions, join_decisions
from .legal_orders import legal_scratch, list_game
from .map import Map, load_map
from .observation import (
    NUM_BOARD_FEATURES,
    POWER_SCALARS,
    SCALARS,
    BoardViews,
    Observation,
    observe,
)
from .orders import vocabulary
from .state import (
    adjustments_owed,
    allocate_state,
    clear_dislodged,
    copy_game,
    count_centers,
    count_units,
    is_movement,
    is_retreat,
    next_random,
    reset_game,
)

SLICE = 16  # fewer items than this per thread are not worth a thread


class StepResult(NamedTuple):
    """What one step did to every game; describes the finished position of games that ended."""

    ended: np.ndarray  # (E,) int8, End; RUNNING where the game goes on or had ended before
    winner: np.ndarray  # (E,) int8, power that won a solo in this step, or NONE
    captured: np.ndarray  # (E,) bool, whether supply centers were counted (end of a fall)
    centers: np.ndarray  # (E, P) int16, centers after the step
    centers_before: np.ndarray  # (E, P) int16, centers before the step
    alive: np.ndarray  # (E, P) bool, has a unit or a center after the step
    eliminated: np.ndarray  # (E, P) bool, lost the last of them in this step
    year: np.ndarray  # (E,) int16, calendar year of the phase played


@jit
def _capture_centers(board, state, e):
    """Give each supply center to the power occupying it after the fall retreats.

    Reads   state.unit_power, board.center_province
    Writes  state.center_owner
    Rule    rulebook, controlling supply centers; an empty center keeps its owner
    """
    for c in range(board.center_province.shape[0]):
        power = state.unit_power[e, board.center_province[c]]
        if power != NONE:
            state.center_owner[e, c] = power


@jit
def _solo_winner(board, state, e):
    """Return the power that has won: the victory count, and more centers than anyone else."""
    best, best_count, tied = NONE, 0, False
    for power in range(board.num_powers):
        count = count_centers(state, e, power)
        if count > best_count:
            best, best_count, tied = power, count, False
        elif count == best_count:
            tied = True
    return NONE if tied or best_count < board.victory_centers else best


@jit
def _has_dislodged(state, e):
    for v in range(state.dislodged_power.shape[1]):
        if state.dislodged_power[e, v] != NONE:
            return True
    return False


@jit
def _next_spring(state, e):
    state.phase[e] = SPRING_MOVEMENT
    state.year[e] += 1


@jit
def advance_phase(board, state, e, max_years):
    """Move game e from the phase just adjudicated to the next one; return whether centers changed.

    Writes  state.phase, year, center_owner, end, winner
    Rule    retreats are skipped when nothing is dislodged, winter when nobody has an adjustment;
            a solo and the year limit are looked at after the fall ownership update
    """
    phase = state.phase[e]
    if phase in (SPRING_MOVEMENT, FALL_MOVEMENT) and _has_dislodged(state, e):
        state.phase[e] = SPRING_RETREATS if phase == SPRING_MOVEMENT else FALL_RETREATS
        return False
    if phase in (SPRING_MOVEMENT, SPRING_RETREATS):
        state.phase[e] = FALL_MOVEMENT
        return False
    if phase == WINTER_ADJUSTMENTS:
        _next_spring(state, e)
        return False
    _capture_centers(board, state, e)
    winner = _solo_winner(board, state, e)
    if winner != NONE:
        state.winner[e] = winner
        state.end[e] = SOLO
    elif max_years > 0 and state.year[e] >= board.first_year + max_years - 1:
        state.end[e] = YEAR_LIMIT
    else:
        owed = False
        for power in range(board.num_powers):
            if adjustments_owed(board, state, e, power) != 0:
                owed = True
        if owed:
            state.phase[e] = WINTER_ADJUSTMENTS
        else:
            _next_spring(state, e)
    return True


@jit
def adjudicate_phase(board, table, state, e, orders, scratch, max_years):
    """Adjudicate the current phase of game e with `orders` (E, V) and move on to the next phase.

    Returns whether supply centers were counted.
    """
    phase = state.phase[e]
    if is_movement(phase):
        adjudicate_movement(board, table, state, e, orders, scratch)
    elif is_retreat(phase):
        adjudicate_retreats(board, table, state, e, orders)
        clear_dislodged(state, e)
    else:
        adjudicate_adjustments(board, table, state, e, orders)
    state.turn[e] += 1
    return advance_phase(board, state, e, max_years)


@jit
def _step_games(board, table, state, orders, scratch, max_years, row_seed, first, last, out):
    """Play one phase of games first..last-1; row_seed has no rows if finished games stay."""
    ended, winner, captured, centers, centers_before, alive, eliminated, year = out
    for e in range(first, last):
        year[e] = state.year[e]
        ended[e] = RUNNING
        winner[e] = NONE
        captured[e] = False
        for p in range(board.num_powers):
            centers_before[e, p] = count_centers(state, e, p)
            alive[e, p] = centers_before[e, p] > 0 or count_units(state, e, p) > 0
            eliminated[e, p] = False
        if state.end[e] == RUNNING:
            captured[e] = adjudicate_phase(board, table, state, e, orders, scratch, max_years)
            ended[e] = state.end[e]
            winner[e] = state.winner[e]
        for p in range(board.num_powers):
            centers[e, p] = count_centers(state, e, p)
            still = centers[e, p] > 0 or count_units(state, e, p) > 0
            eliminated[e, p] = alive[e, p] and not still
            alive[e, p] = still
        if state.end[e] != RUNNING and row_seed.shape[0] > 0:
            row_seed[e], _ = next_random(row_seed[e])
            reset_game(board, state, e, row_seed[e])


@jit
def _reset_rows(board, state, row_seed, rows):
    for e in rows:
        row_seed[e], _ = next_random(row_seed[e])
        reset_game(board, state, e, row_seed[e])


@jit
def _copy_rows(state, row_seed, sources, destinations):
    for i in range(sources.shape[0]):
        e = destinations[i]
        if sources[i] != e:
            copy_game(state, sources[i], e)
        row_seed[e], _ = next_random(row_seed[e])
        state.seed[e] = row_seed[e]


@jit
def _list_games(board, table, state, scratch, rows, first, last, counts, buffers):
    """List games first..last-1; return the game at which a buffer was full, else `last`."""
    for e in range(first, last):
        if state.end[e] == RUNNING and not list_game(
            board, table, state, e, scratch, rows, counts, buffers
        ):
            return e
    return last


@jit
def _write_orders(table, location_province, decisions, chosen, orders):
    game, _, slot_start, slot_province, _, _ = decisions
    for d in range(game.shape[0]):
        for s in range(slot_start[d], slot_start[d + 1]):
            number = chosen[s]
            if slot_province[s] != NONE:
                orders[game[d], slot_province[s]] = number
            elif number != table.waive:
                orders[game[d], location_province[table.location[number]]] = number


class VectorGame:
    """E games of one map.

    Args:
        game_map: a map's name or file, or a Map.
        num_games: E.
        seed: seeds every game; the same seed gives the same games for the same orders.
        max_years: game years after which a game ends (None: the map's own; 0: no limit).
        threads: threads that share the games (None: as many as there are processors).
        auto_reset: start a new game in a row as soon as its game has ended. Without it a finished
            game stays, has no decisions, and waits for `reset`.

    Attributes:
        map, vocabulary, board, table: the map and its order vocabulary.
        state: GameState, (E, ...) arrays that kernels update in place.
    """

    def __init__(
        self,
        game_map: str | Path | Map,
        num_games: int,
        seed: int = 1,
        max_years: int | None = None,
        threads: int | None = None,
        auto_reset: bool = True,
    ):
        if num_games < 1:
            raise ValueError(f"num_games must be at least 1, not {num_games}")
        if max_years is not None and max_years < 0:
            raise ValueError(f"max_years must be 0 (no limit) or more, not {max_years}")
        self.map = load_map(game_map)
        self.vocabulary = vocabulary(self.map)
        self.board, self.table = self.map.board, self.vocabulary.table
        self.num_games = num_games
        self.max_years = self.map.max_years if max_years is None else max_years
        self.threads = max(1, threads or os.cpu_count() or 1)
        self.auto_reset = auto_reset
        self.state = allocate_state(self.board, num_games)
        generator = np.random.default_rng([seed, 0x6469706C])
        self.row_seed = generator.integers(0, 2**64, num_games, np.uint64)
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        self._movement = [movement_scratch(self.board) for _ in range(self.threads)]
        self._legal = [legal_scratch(self.board, self.table) for _ in range(self.threads)]
        self._orders_per_slot = _orders_per_slot(self)
        self._order_room = 0
        self._part_buffers = [None] * self.threads
        self.reset()

    @property
    def num_powers(self) -> int:
        """P, the number of powers."""
        return self.board.num_powers

    def run(self, function: Callable[..., None], count: int, numbered: bool = False) -> list:
        """Call `function(first, last)` on slices of range(count), in threads; return the results.

        With `numbered` the slice's number comes as a third argument, to choose a scratch by.
        """
        slices = max(1, min(self.threads, count // SLICE))
        edges = [count * i // slices for i in range(slices + 1)]
        calls = [
            (edges[i], edges[i + 1], i) if numbered else (edges[i], edges[i + 1])
            for i in range(slices)
        ]
        if slices == 1 or self._pool is None:
            return [function(*call) for call in calls]
        futures = [self._pool.submit(function, *call) for call in calls[1:]]
        return [function(*calls[0])] + [future.result() for future in futures]

    def reset(self, rows: np.ndarray | None = None) -> None:
        """Start new games in the given rows (integers or a mask; None: all)."""
        _reset_rows(self.board, self.state, self.row_seed, self._rows(rows))

    def copy_games(self, source: np.ndarray, destination: np.ndarray) -> None:
        """Copy the positions of rows `source` to rows `destination`, each with a fresh seed.

        Rows are read and written in order; a row may be its own destination (it gets a new seed).
        """
        source, destination = np.atleast_1d(source), np.atleast_1d(destination)
        if source.shape != destination.shape:
            raise ValueError(
                f"source and destination must be of one length, not {source.shape} and "
                f"{destination.shape}"
            )
        _copy_rows(self.state, self.row_seed, self._rows(source), self._rows(destination))

    def _rows(self, rows: np.ndarray | None) -> np.ndarray:
        if rows is None:
            return np.arange(self.num_games)
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        rows = rows.astype(np.int64)
        if rows.size and not 0 <= rows.min() <= rows.max() < self.num_games:
            raise ValueError(f"rows must be 0..{self.num_games - 1}")
        return rows

    def decisions(self) -> Decisions:
        """Return the pending decisions of all running games."""
        parts = self.run(self._list_slice, self.num_games, numbered=True)
        self._order_room = max(self._order_room, *(len(part.order) for part in parts))
        return parts[0] if len(parts) == 1 else join_decisions(parts)

    def _list_slice(self, first: int, last: int, thread: int = 0) -> Decisions:
        games, provinces = last - first, len(self.board.terrain)
        decisions = games * self.num_powers + self.num_powers + 1
        slots = (games + 2) * provinces + 1
        reserve = 2 * provinces * self._orders_per_slot
        orders = max(2 * reserve, int(self._order_room * 1.25) + reserve)
        # A part is copied when it is joined, so its arrays serve again; fresh memory costs time.
        is_part = last - first < self.num_games
        buffers = self._part_buffers[thread] if is_part else None
        while True:
            if buffers is None or len(buffers.order) < orders:
                buffers = empty_decisions(decisions, slots, orders)
            counts = np.zeros(3, np.int64)
            scratch, rows, arrays = self._legal[thread], self._orders_per_slot, tuple(buffers)
            end = _list_games(
                self.board, self.table, self.state, scratch, rows, first, last, counts, arrays
            )
            if end == last:
                break
            orders *= 2
        if is_part:
            self._part_buffers[thread] = buffers
        d, s, n = counts
        game, power, slot_start, slot_province, order_start, order = buffers
        slot_start[d], order_start[s] = s, n
        return Decisions(
            game[:d],
            power[:d],
            slot_start[: d + 1],
            slot_province[:s],
            order_start[: s + 1],
            order[:n],
        )

    def observe(self, decisions: Decisions) -> Observation:
        """Return the observations of the deciding powers."""
        return self.observe_powers(decisions.game, decisions.power)

    def observe_powers(self, games: np.ndarray, powers: np.ndarray) -> Observation:
        """Return what `powers` (D,) see of `games` (D,), whether they have a decision or not."""
        count, provinces = len(games), len(self.board.terrain)
        out = Observation(
            np.empty((count, provinces, NUM_BOARD_FEATURES), np.int8),
            np.empty((count, provinces), np.int32),
            np.empty((count, len(SCALARS) + len(POWER_SCALARS) * self.num_powers), np.int16),
        )
        games, powers = np.asarray(games, np.int32), np.asarray(powers, np.int8)
        self.run(
            lambda first, last: observe(
                self.board, self.state, games, powers, first, last, self.max_years, *out
            ),
            count,
        )
        return out

    def view_boards(self, games: np.ndarray, powers: np.ndarray) -> BoardViews:
        """Return what `powers` (D,) see of `games` (D,), each game's board only once."""
        kept, row = np.unique(games, return_inverse=True)
        boards = self.observe_powers(kept, np.zeros(len(kept), np.int8))
        return BoardViews(*boards, row, np.asarray(powers, np.int8))

    def new_orders(self) -> np.ndarray:
        """Return an orders array, (E, V) int32, with no order for anyone."""
        return np.full((self.num_games, len(self.board.terrain)), NONE, np.int32)

    def write_orders(self, orders: np.ndarray, decisions: Decisions, chosen: np.ndarray) -> None:
        """Write the orders `chosen` (S,) int32, one for each slot of `decisions`, into `orders`."""
        chosen = np.ascontiguousarray(chosen, np.int32)
        _write_orders(self.table, self.board.location_province, tuple(decisions), chosen, orders)

    def step(self, orders: np.ndarray) -> StepResult:
        """Adjudicate one phase of every running game and move on to its next phase.

        Args:
            orders: (E, V) int32, order numbers by the province of the unit (or home center), NONE
                for none. A number that is not an order of the unit there counts as none: a unit
                holds, a dislodged one disbands, a build is waived, a removal is left to civil
                disorder.
        """
        if orders.shape != (self.num_games, len(self.board.terrain)) or orders.dtype != np.int32:
            raise ValueError(
                f"orders must be int32 of shape ({self.num_games}, {len(self.board.terrain)}), "
                f"not {orders.dtype} of shape {orders.shape}"
            )
        games, powers = self.num_games, self.num_powers
        out = StepResult(
            np.empty(games, np.int8),
            np.empty(games, np.int8),
            np.empty(games, bool),
            np.empty((games, powers), np.int16),
            np.empty((games, powers), np.int16),
            np.empty((games, powers), bool),
            np.empty((games, powers), bool),
            np.empty(games, np.int16),
        )
        row_seed = self.row_seed if self.auto_reset else self.row_seed[:0]
        self.run(
            lambda first, last, thread: _step_games(
                self.board,
                self.table,
                self.state,
                orders,
                self._movement[thread],
                self.max_years,
                row_seed,
                first,
                last,
                tuple(out),
            ),
            games,
            numbered=True,
        )
        return out

    def centers(self) -> np.ndarray:
        """Return the center counts, (E, P) int16."""
        owners = self.state.center_owner[:, :, None]
        return (owners == np.arange(self.num_powers, dtype=np.int8)).sum(1).astype(np.int16)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return copies of all arrays that decide how the games go on."""
        return {name: array.copy() for name, array in self.state._asdict().items()} | {
            "row_seed": self.row_seed.copy()
        }

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Continue from a `snapshot()` of games of the same map and number.

        Raises:
            ValueError: an array is missing or of another shape; nothing has been changed then.
        """
        arrays = self.state._asdict() | {"row_seed": self.row_seed}
        for name, array in arrays.items():
            saved = snapshot.get(name)
            if saved is None or saved.shape != array.shape or saved.dtype != array.dtype:
                raise ValueError(f"the snapshot's {name!r} does not fit these games")
        for name, array in arrays.items():
            array[:] = snapshot[name]


def _orders_per_slot(games: VectorGame) -> int:
    """Return a bound on the legal orders of one slot."""
    per_province = np.diff(games.table.province_first).max(initial=1)
    builds = (games.table.build != NONE).sum()
    return int(max(per_province, builds, len(games.board.terrain))) + 1
