"""The state of E games as arrays, and the kernels that set it up and read simple facts from it."""

from enum import IntEnum, unique
from typing import Annotated, NamedTuple

import numpy as np

from .._arrays import Bools, Int8s, Int16s, Int32s, Uint8s, Uint32s, Uint64s, new_arrays
from .._jit import jit
from ..constants import NONE, End, Phase
from .map import Board

LAST_YEAR = 30_000  # years are int16


Rows = np.ndarray | slice


class GameState(NamedTuple):
    """Everything that changes during play. Row e of each array is game e; kernels update in place.

    A province holds at most one standing and, in a retreat phase, one dislodged unit. Units that
    nobody plays have power P. `last_*` describe the last movement phase, by the province a unit
    stood in before it.
    """

    unit_power: Annotated[Int8s, "E, V"]  # power of the standing unit (P: neutral) or NONE
    unit_kind: Annotated[Int8s, "E, V"]  # UnitKind or NONE
    unit_location: Annotated[Int16s, "E, V"]  # its location (coast included) or NONE
    dislodged_power: Annotated[Int8s, "E, V"]  # power of the dislodged unit or NONE
    dislodged_kind: Annotated[Int8s, "E, V"]
    dislodged_location: Annotated[Int16s, "E, V"]
    retreat_options: Annotated[Uint32s, "E, V"]  # bit i: may retreat to its i-th neighbor
    center_owner: Annotated[Int8s, "E, C"]  # power or NONE
    last_order: Annotated[Int32s, "E, V"]  # order number or NONE
    last_power: Annotated[Int8s, "E, V"]  # power whose unit it was (P: neutral) or NONE
    last_result: Annotated[Uint8s, "E, V"]  # result bits of constants.py
    phase: Annotated[Int8s, "E"]  # Phase
    year: Annotated[Int16s, "E"]  # calendar year
    end: Annotated[Int8s, "E"]  # End
    winner: Annotated[Int8s, "E"]  # power that won a solo, the largest of a team that won, or NONE
    turn: Annotated[Int32s, "E"]  # env steps since the reset
    seed: Annotated[Uint64s, "E"]  # of this game; with `turn` and a power it seeds every draw
    votes: Annotated[Bools, "E, P"]  # who votes for a draw in this phase; the step takes them back
    conceded: Annotated[Bools, "E, P"]  # who has given up, and so has no orders and is not alive


def allocate_state(board: Board, num_games: int) -> GameState:
    """Not yet reset."""
    sizes = {"V": len(board.terrain), "C": len(board.center_province), "P": board.num_powers}
    return new_arrays(GameState, E=num_games, **sizes)


def has_neutral(board: Board) -> bool:
    """Whether a map has units of power P, which nobody plays; it has them from the start."""
    return bool((board.start_unit_power == board.num_powers).any())


@jit
def reset_game(board, state, e, seed):
    """Set up the opening position, in which each power owns its home centers."""
    for v in range(board.terrain.shape[0]):
        state.unit_power[e, v] = board.start_unit_power[v]
        state.unit_kind[e, v] = board.start_unit_kind[v]
        state.unit_location[e, v] = board.start_unit_location[v]
        state.last_order[e, v] = NONE
        state.last_power[e, v] = NONE
        state.last_result[e, v] = 0
    clear_dislodged(state, e)
    for c in range(board.center_province.shape[0]):
        state.center_owner[e, c] = board.home_power[board.center_province[c]]
    state.phase[e] = Phase.SPRING_MOVEMENT
    state.year[e] = board.first_year
    state.end[e] = End.RUNNING
    state.winner[e] = NONE
    state.turn[e] = 0
    state.seed[e] = seed
    for power in range(board.num_powers):
        state.votes[e, power] = False
        state.conceded[e, power] = False


@jit
def clear_dislodged(state, e):
    for v in range(state.unit_power.shape[1]):
        state.dislodged_power[e, v] = NONE
        state.dislodged_kind[e, v] = NONE
        state.dislodged_location[e, v] = NONE
        state.retreat_options[e, v] = 0


@jit
def copy_game(other, source, state, e):
    """Copy everything but the seed of game `source` of `other`, a GameState, to game e."""
    for v in range(state.unit_power.shape[1]):
        state.unit_power[e, v] = other.unit_power[source, v]
        state.unit_kind[e, v] = other.unit_kind[source, v]
        state.unit_location[e, v] = other.unit_location[source, v]
        state.dislodged_power[e, v] = other.dislodged_power[source, v]
        state.dislodged_kind[e, v] = other.dislodged_kind[source, v]
        state.dislodged_location[e, v] = other.dislodged_location[source, v]
        state.retreat_options[e, v] = other.retreat_options[source, v]
        state.last_order[e, v] = other.last_order[source, v]
        state.last_power[e, v] = other.last_power[source, v]
        state.last_result[e, v] = other.last_result[source, v]
    for c in range(state.center_owner.shape[1]):
        state.center_owner[e, c] = other.center_owner[source, c]
    state.phase[e] = other.phase[source]
    state.year[e] = other.year[source]
    state.end[e] = other.end[source]
    state.winner[e] = other.winner[source]
    state.turn[e] = other.turn[source]
    for power in range(state.votes.shape[1]):
        state.votes[e, power] = other.votes[source, power]
        state.conceded[e, power] = other.conceded[source, power]


@jit
def count_centers(state, e, power):
    """Ownership changes after fall retreats only."""
    count = 0
    for c in range(state.center_owner.shape[1]):
        if state.center_owner[e, c] == power:
            count += 1
    return count


@jit
def count_units(state, e, power):
    """Dislodged ones included."""
    count = 0
    for v in range(state.unit_power.shape[1]):
        if state.unit_power[e, v] == power:
            count += 1
        if state.dislodged_power[e, v] == power:
            count += 1
    return count


@jit
def is_alive(state, e, power):
    """Tell whether a power has a unit or a center, and has not conceded."""
    return not state.conceded[e, power] and (
        count_centers(state, e, power) > 0 or count_units(state, e, power) > 0
    )


@jit
def can_build_in(board, state, e, power, v):
    """Tell whether a power may build in province v: a vacant center of its own, at home.

    Rule    rulebook, builds: in an unoccupied home center that the power still controls; with
            board.build_anywhere in any center that it controls
    """
    center = board.province_center[v]
    return (
        (board.home_power[v] == power or board.build_anywhere)
        and center != NONE
        and state.unit_power[e, v] == NONE
        and state.center_owner[e, center] == power
    )


@jit
def adjustments_owed(board, state, e, power):
    """Return how many builds (positive) or removals (negative) a power has in winter.

    Rule    centers minus units; builds are limited by the vacant centers to build in
    """
    owed = count_centers(state, e, power) - count_units(state, e, power)
    if owed <= 0:
        return owed
    places = 0
    for v in range(board.home_power.shape[0]):
        if can_build_in(board, state, e, power, v):
            places += 1
    return min(owed, places)


@jit
def is_movement(phase):
    return phase in (Phase.SPRING_MOVEMENT, Phase.FALL_MOVEMENT)


def in_movement(state: GameState, rows: Rows = slice(None)) -> Bools:
    """(rows,) bool, finished games included."""
    phase = state.phase[rows]
    return (phase == Phase.SPRING_MOVEMENT) | (phase == Phase.FALL_MOVEMENT)


@jit
def is_retreat(phase):
    return phase in (Phase.SPRING_RETREATS, Phase.FALL_RETREATS)


@jit
def is_winter(phase):
    return phase == Phase.WINTER_ADJUSTMENTS


def ordering_powers(board: Board, state: GameState, rows: Rows = slice(None)) -> Int8s:
    """Return (rows, V) int8, the power whose orders a province takes in this phase, or NONE: that
    of the unit there, of the dislodged one, or in winter the owner of a vacant center."""
    phase, power = state.phase[rows][:, None], state.unit_power[rows]
    vacant = (board.province_center != NONE) & (power == NONE)
    owner = state.center_owner[rows][:, board.province_center]
    power = np.where(vacant & (phase == Phase.WINTER_ADJUSTMENTS), owner, power)
    fleeing = np.isin(phase, (Phase.SPRING_RETREATS, Phase.FALL_RETREATS))
    return np.where(fleeing, state.dislodged_power[rows], power)


@jit
def next_random(state):
    """Return `(new state, 32 random bits)` of the generator SplitMix64 (Steele et al. 2014).

    Kernels never use numpy's generator: this one gives the same draws with any number of threads.
    """
    state = state + np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return state, np.int64(z >> np.uint64(32))


@jit
def random_below(state, bound):
    """Return `(new state, uniform integer in 0..bound-1)` for a bound in 1..2^31."""
    state, bits = next_random(state)
    return state, (bits * np.int64(bound)) >> np.int64(32)


def seed_from(*numbers: int) -> int:
    """Return 64 well mixed bits that these numbers give, as the seed of a game or a generator."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


@unique
class Salt(IntEnum):
    """Uses of `decision_seed`. Each has its own number, so that no two draw the same numbers."""

    RANDOM = 101  # bots
    CHAOS = 102
    DUMBBOT = 103
    PAQUETTE = 104
    BRANE = 105
    DEEPDIP = 106
    CANDIDATES = 201  # searches: orders to try
    FOLLOWING = 202  # how the phases after them are played
    CHOICE = 203
    PLAIN = 204
    WATCHING = 205  # who the others are
    PROFILES = 300  # and 300 + p, what power p expects of the others; a map has at most 20 powers
    PRESS = 401  # whose offers are taken first
    TRIALS = 402  # on which negotiators try deals
    COIN = 403
    WISHES = 404  # of policies that talk, and so are the next three
    OFFERS = 405
    ANSWERS = 406
    KEEPS = 407
    ENV_POWER = 501  # environments: the agent's power
    ENV_OPPONENT = 502
    ENV_WARM_UP = 503
    POLICY = 601  # the orders of a policy
    OPENING = 602  # its first orders among people
    OPENING_CHOICE = 603
    LANGUAGE = 701


@jit
def decision_seed(state, e, power, salt):
    """Return the generator state for one power's draws in one phase of one game.

    It depends on the game's seed, its turn, the power and `salt` (see `Salt`) only, so draws do not
    depend on the order or the number of threads in which games are visited.
    """
    mixed = state.seed[e] ^ (
        np.uint64(state.turn[e]) * np.uint64(0xD1342543DE82EF95)
        + np.uint64(power + 1) * np.uint64(0xAF251AF3B0F025B5)
        + np.uint64(salt) * np.uint64(0x2545F4914F6CDD1D)
    )
    mixed, _ = next_random(mixed)
    return mixed
