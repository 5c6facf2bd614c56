"""Words and numbers shared by every module: kinds, phases, result bits, and the shape legend.

Letters in shapes, such as `(E, P)`. What only one module counts has a word instead, such as
`(positions, copies)`.

    E  games of a VectorGame, or of the rows of it that a call is about
    P  powers of the map (alphabetical)
    V  provinces of the map (alphabetical)
    L  locations: provinces and their coasts (alphabetical)
    C  supply centers of the map
    A  orders in the map's vocabulary
    D  pending decisions, (game, power) pairs that have something to order
    S  order slots of all decisions (one for each unit, build or removal)
    N  legal orders of all slots
    G  boards that are observed, each counted once; a board is a position as observations show it
    F  features of one province on a board
    M  entries of an environment's action mask
    T  decisions of one learner stream
    B  decisions in a minibatch
    H  width of a network's layers
    K  rows of a table that one code is the sum of

Counters:

    env step    one phase of one game
    decision    one power's orders in one phase
    order step  one unit's order (one slot of a decision)
    game        one episode
"""

from enum import IntEnum

from ._suggest import quoted
from .errors import UserError

NONE = -1  # "no power", "no unit", "no order"; never used as an index


class UnitKind(IntEnum):
    """The two kinds of units; also the first axis of every adjacency table."""

    ARMY = 0
    FLEET = 1


class Terrain(IntEnum):
    """What a province is; armies stand on land and coast, fleets on coast and sea."""

    LAND = 0
    COAST = 1
    SEA = 2


class Phase(IntEnum):
    """The five phases of a game year, in order of play."""

    SPRING_MOVEMENT = 0
    SPRING_RETREATS = 1
    FALL_MOVEMENT = 2
    FALL_RETREATS = 3
    WINTER_ADJUSTMENTS = 4


class OrderKind(IntEnum):
    """Kinds of orders. DISBAND serves retreats and winter removals: both are written `A PAR D`."""

    HOLD = 0
    MOVE = 1
    MOVE_VIA = 2
    SUPPORT_HOLD = 3
    SUPPORT_MOVE = 4
    CONVOY = 5
    RETREAT = 6
    DISBAND = 7
    BUILD = 8
    WAIVE = 9


class End(IntEnum):
    RUNNING = 0
    SOLO = 1
    YEAR_LIMIT = 2
    TEAM = 3  # a team has won, none of its powers by itself
    AGREED = 4  # in a draw for which all powers alive have voted


# Result bits of one order; 0 means that it succeeded. RESULT_WORDS names them, lowest bit first.
BOUNCE = 1
VOID = 2
CUT = 4
NO_CONVOY = 8
DISRUPTED = 16
DISLODGED = 32
DISBANDED = 64
RESULT_WORDS = ("bounce", "void", "cut", "no convoy", "disrupted", "dislodged", "disband")

COASTS = ("", "NC", "EC", "SC", "WC")  # index 0: the province itself
UNIT_LETTERS = "AF"
COMPLETED = "COMPLETED"  # in place of a phase's name once a game is over
SEASON_LETTERS = "SSFFW"
PHASE_LETTERS = "MRMRA"
PHASE_KINDS = ("movement", "retreats", "movement", "retreats", "adjustments")
_YEAR_DIGITS = 9  # longer ones are no years, and int() refuses some

# Plain ints for the compiled kernels, which fold them into the machine code.
ARMY, FLEET = map(int, UnitKind)
LAND, COAST, SEA = map(int, Terrain)
SPRING_MOVEMENT, SPRING_RETREATS, FALL_MOVEMENT, FALL_RETREATS, WINTER_ADJUSTMENTS = map(int, Phase)
HOLD, MOVE, MOVE_VIA, SUPPORT_HOLD, SUPPORT_MOVE = map(int, list(OrderKind)[:5])
CONVOY, RETREAT, DISBAND, BUILD, WAIVE = map(int, list(OrderKind)[5:])
RUNNING, SOLO, YEAR_LIMIT, TEAM, AGREED = map(int, End)


def phase_name(year: int, phase: int) -> str:
    """Return the name of a phase, such as `S1901M` or `W0476A`."""
    return f"{SEASON_LETTERS[phase]}{year:04}{PHASE_LETTERS[phase]}"


def parse_phase(name: str) -> tuple[int, int]:
    """Return `(year, phase)` of a name such as `S1901M`; UserError if it is none."""
    if isinstance(name, str) and 2 < len(name) <= _YEAR_DIGITS + 2:
        year = name[1:-1]
        for phase in range(5):
            letters = SEASON_LETTERS[phase], PHASE_LETTERS[phase]
            if letters == (name[0], name[-1]) and year.isascii() and year.isdigit():
                return int(year), phase
    raise UserError(f"{quoted(name)} is not a phase such as S1901M, F1901R or W1901A")


def canonical_phase(name: str) -> str:
    """Return a phase's name as `phase_name` writes it; S1M is S0001M. A text that names no phase,
    such as COMPLETED, stays as it is."""
    try:
        return phase_name(*parse_phase(name))
    except UserError:
        return name


def phase_kind(name: str) -> str:
    """Return `movement`, `retreats` or `adjustments`; an empty text for no phase, as COMPLETED."""
    try:
        return PHASE_KINDS[parse_phase(name)[1]]
    except UserError:
        return ""
