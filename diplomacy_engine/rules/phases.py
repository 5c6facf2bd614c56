"""From one phase of a game to the next: kernels that adjudicate, count centers and end the game."""

from .._jit import jit, jit_merged
from ..constants import NONE, End, Phase
from .adjudicator.adjustments import adjudicate_adjustments
from .adjudicator.movement import adjudicate_movement
from .adjudicator.retreats import adjudicate_retreats
from .state import adjustments_owed, count_centers, is_alive, is_movement, is_retreat


@jit
def _capture_centers(board, state, e):
    """Give each supply center to the power occupying it after the fall retreats.

    Reads   state.unit_power, board.center_province
    Writes  state.center_owner
    Rule    rulebook, controlling supply centers; an empty center keeps its owner, and so does one
            with a neutral unit
    """
    for c in range(board.center_province.shape[0]):
        power = state.unit_power[e, board.center_province[c]]
        if power != NONE and power != board.num_powers:
            state.center_owner[e, c] = power


@jit
def _solo_winner(board, state, e):
    """Return the power that has won: the victory count, and more centers than anyone else; who has
    conceded has not."""
    best, best_count, tied = NONE, 0, False
    for power in range(board.num_powers):
        count = count_centers(state, e, power)
        if count > best_count:
            best, best_count, tied = power, count, False
        elif count == best_count:
            tied = True
    if tied or best_count < board.victory_centers or state.conceded[e, best]:
        return NONE
    return best


@jit
def _team_by_centers(board, state, e):
    """Return the power with the most centers of the team that has won by its centers, or NONE."""
    best, best_count, tied = NONE, 0, False
    for team in range(board.num_teams):
        count, lives = 0, False
        for power in range(board.num_powers):
            if board.team[power] == team:
                count += count_centers(state, e, power)
                lives = lives or is_alive(state, e, power)
        if count > best_count:
            best, best_count, tied = team if lives else NONE, count, False
        elif count == best_count:
            tied = True
    if best == NONE or tied or board.team_victory == 0 or best_count < board.team_victory:
        return NONE
    largest, most = NONE, -1
    for power in range(board.num_powers):
        if board.team[power] == best and count_centers(state, e, power) > most:
            largest, most = power, count_centers(state, e, power)
    return largest


@jit
def _last_side(board, state, e):
    """Return the power with the most centers of the only side that is alive, or NONE. A side is a
    team, or a power where there are no teams, or all are in one."""
    best, most = NONE, -1
    for power in range(board.num_powers):
        if is_alive(state, e, power):
            if best != NONE and (board.num_teams == 1 or board.team[power] != board.team[best]):
                return NONE
            if count_centers(state, e, power) > most:
                best, most = power, count_centers(state, e, power)
    return best


@jit
def end_by_victory(board, state, e, counted):
    """End game e if a power or a team has won, and return whether one has.

    Reads   whether supply centers were `counted` in this phase, state.conceded
    Writes  state.end, winner
    Rule    after a fall the victory count wins, and a team's; at any time the last side that is
            alive has won, if there are several teams or if others have conceded
    """
    winner = NONE
    if counted:
        winner = _solo_winner(board, state, e)
    if winner != NONE:
        state.winner[e], state.end[e] = winner, End.SOLO
        return True
    teams = board.num_teams < board.num_powers
    if (teams and board.num_teams > 1) or state.conceded[e].any():
        winner = _last_side(board, state, e)
    if winner == NONE and teams and counted:
        winner = _team_by_centers(board, state, e)
    if winner == NONE:
        return False
    state.winner[e] = winner
    state.end[e] = End.TEAM if teams else End.SOLO
    return True


@jit
def _has_dislodged(state, e):
    for v in range(state.dislodged_power.shape[1]):
        if state.dislodged_power[e, v] != NONE:
            return True
    return False


@jit
def _next_spring(board, state, e):
    state.phase[e] = Phase.SPRING_MOVEMENT
    state.year[e] += 1
    if board.neutral_rebuilds:
        _rebuild_neutral(board, state, e)


@jit
def _rebuild_neutral(board, state, e):
    """Put the neutral units of the start back into centers that are vacant and nobody's.

    Writes  state.unit_*
    Rule    of variants with neutral units (diplicity: neutral-nations-auto-build): those lost are
            built again in winter; no power can build in a center that is nobody's
    """
    for c in range(board.center_province.shape[0]):
        v = board.center_province[c]
        if (
            board.start_unit_power[v] == board.num_powers
            and state.center_owner[e, c] == NONE
            and state.unit_power[e, v] == NONE
        ):
            state.unit_power[e, v] = board.num_powers
            state.unit_kind[e, v] = board.start_unit_kind[v]
            state.unit_location[e, v] = board.start_unit_location[v]


@jit_merged
def _advance_phase(board, state, e, counted):
    """Move game e from the phase just adjudicated to the next one, if nobody has to retreat.

    Writes  state.phase, year; state.unit_* of neutral units
    Rule    winter is skipped when nobody has an adjustment
    """
    if counted:
        for power in range(board.num_powers):
            if adjustments_owed(board, state, e, power) != 0:
                state.phase[e] = Phase.WINTER_ADJUSTMENTS
                return
    elif state.phase[e] != Phase.WINTER_ADJUSTMENTS:
        state.phase[e] = Phase.FALL_MOVEMENT
        return
    _next_spring(board, state, e)


@jit_merged
def adjudicate_phase(board, table, state, e, orders, scratch, max_years):
    """Play the current phase of game e and move on; return whether supply centers were counted.

    Writes  state, all of it
    Rule    retreats are skipped when nothing is dislodged; victories, and then the year limit, are
            looked at once there are none, and end the game with the phase just played
    """
    phase = state.phase[e]
    if is_movement(phase):
        adjudicate_movement(board, table, state, e, orders, scratch)
    elif is_retreat(phase):
        adjudicate_retreats(board, table, state, e, orders)
    else:
        adjudicate_adjustments(board, table, state, e, orders)
    state.turn[e] += 1
    if is_movement(phase) and _has_dislodged(state, e):
        state.phase[e] = phase + 1  # the retreats after it
        return False
    counted = phase in (Phase.FALL_MOVEMENT, Phase.FALL_RETREATS)
    if counted:
        _capture_centers(board, state, e)
    may_end = counted or board.num_teams < board.num_powers
    for power in range(board.num_powers):
        may_end |= state.conceded[e, power]
    if not (may_end and end_by_victory(board, state, e, counted)):
        if counted and max_years > 0 and state.year[e] >= board.first_year + max_years - 1:
            state.end[e] = End.YEAR_LIMIT
        else:
            _advance_phase(board, state, e, counted)
    return counted
