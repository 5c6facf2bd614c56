"""From one phase of a game to the next: kernels that adjudicate, count centers and end the game."""

from .._jit import jit, jit_inner, jit_merged
from ..constants import NONE, End, Phase
from .adjudicator.adjustments import adjudicate_adjustments
from .adjudicator.movement import adjudicate_movement
from .adjudicator.retreats import adjudicate_retreats
from .state import adjustments_owed, count_centers, is_alive, is_movement, is_retreat


@jit_inner
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


@jit
def team_winner(board, state, e, counted):
    """Return the power with the most centers of the team that has won, or NONE.

    Reads   board.team, num_teams, team_victory; `counted`, whether supply centers were just counted
    Rule    a team that alone is alive has won, if there were others; so has, after a fall, one with
            team_victory centers and more than any other
    """
    living, last = 0, NONE
    best, best_count, tied = NONE, 0, False
    for team in range(board.num_teams):
        count, lives = 0, False
        for power in range(board.num_powers):
            if board.team[power] == team:
                count += count_centers(state, e, power)
                lives = lives or is_alive(state, e, power)
        if lives:
            living, last = living + 1, team
        if count > best_count:
            best, best_count, tied = team, count, False
        elif count == best_count:
            tied = True
    if living == 1 and board.num_teams > 1:
        best = last
    elif not counted or tied or board.team_victory == 0 or best_count < board.team_victory:
        return NONE
    largest, most = NONE, -1
    for power in range(board.num_powers):
        if board.team[power] == best and count_centers(state, e, power) > most:
            largest, most = power, count_centers(state, e, power)
    return largest


@jit_inner
def _has_dislodged(state, e):
    for v in range(state.dislodged_power.shape[1]):
        if state.dislodged_power[e, v] != NONE:
            return True
    return False


@jit_inner
def _next_spring(board, state, e):
    state.phase[e] = Phase.SPRING_MOVEMENT
    state.year[e] += 1
    if board.neutral_rebuilds:
        _rebuild_neutral(board, state, e)


@jit_inner
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
def advance_phase(board, state, e, max_years):
    """Move game e from the phase just adjudicated to the next one; return whether centers changed.

    Writes  state.phase, year, center_owner, end, winner; state.unit_* of neutral units
    Rule    retreats are skipped when nothing is dislodged, winter when nobody has an adjustment;
            a solo and the year limit are looked at after the fall ownership update
    """
    phase = state.phase[e]
    if phase in (Phase.SPRING_MOVEMENT, Phase.FALL_MOVEMENT) and _has_dislodged(state, e):
        state.phase[e] = phase + 1  # the retreats after it
        return False
    if phase in (Phase.SPRING_MOVEMENT, Phase.SPRING_RETREATS):
        state.phase[e] = Phase.FALL_MOVEMENT
        return False
    if phase == Phase.WINTER_ADJUSTMENTS:
        _next_spring(board, state, e)
        return False
    _capture_centers(board, state, e)
    winner = _solo_winner(board, state, e)
    if winner != NONE:
        state.winner[e] = winner
        state.end[e] = End.SOLO
    elif max_years > 0 and state.year[e] >= board.first_year + max_years - 1:
        state.end[e] = End.YEAR_LIMIT
    else:
        owed = False
        for power in range(board.num_powers):
            if adjustments_owed(board, state, e, power) != 0:
                owed = True
        if owed:
            state.phase[e] = Phase.WINTER_ADJUSTMENTS
        else:
            _next_spring(board, state, e)
    return True


@jit_merged
def adjudicate_phase(board, table, state, e, orders, scratch, max_years):
    """Play the current phase of game e and move on; return whether supply centers were counted."""
    phase = state.phase[e]
    if is_movement(phase):
        adjudicate_movement(board, table, state, e, orders, scratch)
    elif is_retreat(phase):
        adjudicate_retreats(board, table, state, e, orders)
    else:
        adjudicate_adjustments(board, table, state, e, orders)
    state.turn[e] += 1
    year = state.year[e]
    counted = advance_phase(board, state, e, max_years)
    retreats_first = state.end[e] == End.RUNNING and is_retreat(state.phase[e])
    if board.num_teams < board.num_powers and state.end[e] != End.SOLO and not retreats_first:
        winner = team_winner(board, state, e, counted)
        if winner != NONE:
            state.winner[e], state.end[e] = winner, End.TEAM
            state.phase[e], state.year[e] = phase, year  # the game ends with what was just played
    return counted
