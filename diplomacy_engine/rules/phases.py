"""From one phase of a game to the next: kernels that adjudicate, count centers and end the game."""

from .._jit import jit_inner, jit_merged
from ..constants import (
    FALL_MOVEMENT,
    FALL_RETREATS,
    NONE,
    SOLO,
    SPRING_MOVEMENT,
    SPRING_RETREATS,
    WINTER_ADJUSTMENTS,
    YEAR_LIMIT,
)
from .adjudicator.adjustments import adjudicate_adjustments
from .adjudicator.movement import adjudicate_movement
from .adjudicator.retreats import adjudicate_retreats
from .state import adjustments_owed, clear_dislodged, count_centers, is_movement, is_retreat


@jit_inner
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


@jit_inner
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


@jit_inner
def _has_dislodged(state, e):
    for v in range(state.dislodged_power.shape[1]):
        if state.dislodged_power[e, v] != NONE:
            return True
    return False


@jit_inner
def _next_spring(state, e):
    state.phase[e] = SPRING_MOVEMENT
    state.year[e] += 1


@jit_merged
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


@jit_merged
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
