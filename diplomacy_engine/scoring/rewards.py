"""Rewards by name: payments to each power at the end of a game, of a power or of a year.

`make_reward("sum_of_squares")` returns a function of a RewardInput; mixes.py makes weighted sums,
and teams.py pays teams. With c a power's centers, W the centers that win and P the powers, a power
is paid once, when it is eliminated or its game ends:

    name            solo winner  other powers  at a draw                 eliminated
    deepdip         c + W        c - W         c                         -W
    terminal        1            -1            0.5                       -1
    score           c / W        c / W         c / W                     0
    leader          0            (c - most)/W  (c - most)/W              -most/W
    ordinal         1            (P - rank)/(P - 1)  the same            the same
    sum_of_squares  1            0             c^2 / sum of all c^2      0
    draw_size       1            0             1 / powers alive          0
    first_place     1            0             1 / powers with most      0
    first_score     c / W        0             c / W with most, else 0   0
    weakest         fewest / W   fewest / W    fewest / W                0

Paid after every fall, to powers alive (the deltas also to those eliminated in that step):

    center_delta      change in centers / W
    lead_delta        change in the lead / W
    centers_held      c
    captures          change in centers, at least 0
    three_to_centers  3^c
    survival_time     1

In detail:

- A draw is the year limit or one that all powers alive have voted for. With `--year-limit truncate`
  the limit pays nothing, and an agreed draw all the same.
- A power is eliminated in the step in which it loses its last unit and center. One eliminated in
  the very step that ends the game is paid as eliminated.
- `most` is the largest center count of any power after the step, `fewest` the least, which is 0 as
  soon as a power is out: `weakest` pays all that live the same.
- A power's lead is its centers less those of the strongest other power, negative when it is behind.
  `lead_delta` sums to the lead when the power is paid last, less the lead at the start.
- `rank` is 1 for the best. Powers alive at the end of the game rank by centers, above all that were
  eliminated; a power eliminated earlier in the game ranks below one eliminated later. Powers with
  as many centers, or eliminated in one step, share the mean of their ranks.
- In a game of one power `ordinal` is 1.

`deepdip` is the reward of the DeepDip thesis (2019), section 4.3.1, and `centers_held`, `captures`
and `three_to_centers` are modelled on rewards that it rejected; `terminal` is PyTAG's.
"""

import importlib
import traceback
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._suggest import did_you_mean, quoted
from ..constants import AGREED, NONE, RUNNING, SOLO, TEAM, YEAR_LIMIT
from ..errors import UserError


class RewardInput(NamedTuple):
    """What one step did to each game, as far as a reward may depend on it."""

    ended: np.ndarray  # (E,) int8, End; RUNNING where no end of a game is to be paid
    winner: np.ndarray  # (E,) int8, power with a solo, or one of a team that won; NONE: nobody
    captured: np.ndarray  # (E,) bool, whether supply centers were counted (end of a fall)
    centers: np.ndarray  # (E, P) int16, centers after the step
    centers_before: np.ndarray  # (E, P) int16, centers before the step
    alive: np.ndarray  # (E, P) bool, has a unit or a center after the step
    eliminated: np.ndarray  # (E, P) bool, lost its last unit and center in this step
    victory_centers: int  # centers that win


Reward = Callable[[RewardInput], np.ndarray]  # -> (E, P) float32


def reward_input(step: object, victory_centers: int, pay_year_limit: bool = True) -> RewardInput:
    """Return the RewardInput of a VectorGame's StepResult.

    Args:
        step: anything with all fields of a RewardInput but `victory_centers`.
        victory_centers: `board.victory_centers`.
        pay_year_limit: False: games that ended at the year limit count as running, so that no
            reward pays their end.
    """
    ended, *others = (getattr(step, name) for name in RewardInput._fields[:-1])
    if not pay_year_limit:
        ended = np.where(ended == YEAR_LIMIT, RUNNING, ended).astype(np.int8)
    return RewardInput._make([ended, *others, int(victory_centers)])


def _pay(game: RewardInput, winner, others, draw, eliminated) -> np.ndarray:
    """Return (E, P) float32, the rewards of powers whose game ends in this step, or that are
    eliminated.

    Each value is a number or broadcasts to (E, P). A team's victory without a solo is a draw.
    """
    solo = (game.ended == SOLO)[:, None] & game.alive
    won = solo & (np.arange(game.alive.shape[1]) == game.winner[:, None])
    drawn = (game.ended == YEAR_LIMIT) | (game.ended == TEAM) | (game.ended == AGREED)
    shared = drawn[:, None] & game.alive
    values = np.where(won, winner, np.where(solo, others, np.where(shared, draw, 0.0)))
    return np.where(game.eliminated, eliminated, values).astype(np.float32)


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks in each row, (E, P) float64: 1 for the largest value, the mean for ties."""
    above = (values[:, None, :] > values[:, :, None]).sum(2)
    equal = (values[:, None, :] == values[:, :, None]).sum(2)
    return above + (equal + 1) / 2


def deepdip(game: RewardInput) -> np.ndarray:
    """Centers, plus the centers that win for a solo, minus these for a loss or elimination."""
    centers, victory = game.centers.astype(np.float64), game.victory_centers
    return _pay(game, centers + victory, centers - victory, centers, -victory)


def terminal(game: RewardInput) -> np.ndarray:
    """1 for a solo, -1 for a loss or elimination, 0.5 at a draw (pays for stalling)."""
    return _pay(game, 1.0, -1.0, 0.5, -1.0)


def score(game: RewardInput) -> np.ndarray:
    """Centers at the end as a share of the victory count."""
    share = game.centers / game.victory_centers
    return _pay(game, share, share, share, 0.0)


def leader(game: RewardInput) -> np.ndarray:
    """Centers behind the leader at the end, as a share of the victory count."""
    most = game.centers.max(1, keepdims=True)
    behind = (game.centers - most) / game.victory_centers
    return _pay(game, 0.0, behind, behind, -most / game.victory_centers)


def ordinal(game: RewardInput) -> np.ndarray:
    """Rank at the end, from 1 for the best down to 0 for the worst."""
    powers = game.alive.shape[1]
    # Below powers alive rank those eliminated in this step (-1), then those before (-2).
    standing = np.where(
        game.alive, game.centers.astype(np.int64), np.where(game.eliminated, -1, -2)
    )
    value = (powers - mean_ranks(standing)) / (powers - 1) if powers > 1 else 1.0
    return _pay(game, 1.0, value, value, value)


def squared_shares(centers: np.ndarray) -> np.ndarray:
    """Return each power's share (E, P) of the sum of the squared center counts."""
    squares = centers.astype(np.float64) ** 2
    return squares / np.maximum(squares.sum(1, keepdims=True), 1)


def sum_of_squares(game: RewardInput) -> np.ndarray:
    """1 for a solo, else at a draw the share of the squared center counts."""
    return _pay(game, 1.0, 0.0, squared_shares(game.centers), 0.0)


def draw_size(game: RewardInput) -> np.ndarray:
    """1 for a solo, else at a draw 1 shared by all powers alive."""
    alive = np.maximum(game.alive.sum(1, keepdims=True), 1)
    return _pay(game, 1.0, 0.0, 1 / alive, 0.0)


def first_place(game: RewardInput) -> np.ndarray:
    """1 for a solo, else at a draw 1 shared by all powers with the most centers."""
    first = game.alive & (game.centers == game.centers.max(1, keepdims=True))
    return _pay(game, 1.0, 0.0, first / np.maximum(first.sum(1, keepdims=True), 1), 0.0)


def first_score(game: RewardInput) -> np.ndarray:
    """Centers as a share of the victory count for a solo or the most centers, else nothing."""
    share = game.centers / game.victory_centers
    first = game.centers == game.centers.max(1, keepdims=True)
    return _pay(game, share, 0.0, share * first, 0.0)


def weakest(game: RewardInput) -> np.ndarray:
    """Fewest centers of any power at the end, as a share of the victory count: alike for all."""
    fewest = game.centers.min(1, keepdims=True) / game.victory_centers
    return _pay(game, fewest, fewest, fewest, 0.0)


def _pay_fall(game: RewardInput, values: ArrayLike, last: bool = False) -> np.ndarray:
    """Return (E, P) float32: `values` of powers alive where centers were counted, and at `last` of
    those that are eliminated in this step, else 0."""
    paid = game.alive | game.eliminated if last else game.alive
    return np.where(game.captured[:, None] & paid, values, 0).astype(np.float32)


def centers_held(game: RewardInput) -> np.ndarray:
    """Centers, paid after every fall."""
    return _pay_fall(game, game.centers)


def captures(game: RewardInput) -> np.ndarray:
    """Change in centers in a year, but at least 0, paid after every fall."""
    return _pay_fall(game, np.maximum(game.centers - game.centers_before, 0))


def three_to_centers(game: RewardInput) -> np.ndarray:
    """3 to the power of the centers, paid after every fall."""
    return _pay_fall(game, 3.0**game.centers)


def survival_time(game: RewardInput) -> np.ndarray:
    """1 for every fall survived."""
    return _pay_fall(game, 1.0)


def center_delta(game: RewardInput) -> np.ndarray:
    """Centers won or lost in a year, as a share of the victory count, paid after every fall."""
    change = game.centers.astype(np.float32) - game.centers_before
    return _pay_fall(game, change / game.victory_centers, last=True)


def lead(centers: np.ndarray) -> np.ndarray:
    """Return (E, P) float32, each power's centers less those of the strongest other power."""
    own = centers.astype(np.float32)
    if own.shape[1] == 1:
        return own
    best = own.argmax(1)[:, None]
    second, first = np.partition(own, -2, axis=1)[:, -2:].T
    return own - np.where(np.arange(own.shape[1]) == best, second[:, None], first[:, None])


def lead_delta(game: RewardInput) -> np.ndarray:
    """Change of a power's lead in a year, as a share of the victory count, after every fall."""
    change = lead(game.centers) - lead(game.centers_before)
    return _pay_fall(game, change / game.victory_centers, last=True)


# They compare powers: the reward of a power or team without an opponent is constant.
_COMPARING = (leader, ordinal, sum_of_squares, draw_size, first_place)
_IN_FALL = (center_delta, lead_delta, centers_held, captures, three_to_centers, survival_time)
REWARDS: dict[str, Reward] = {
    reward.__name__: reward
    for reward in (deepdip, terminal, score, *_COMPARING, first_score, weakest, *_IN_FALL)
}
COMPARING = frozenset(reward.__name__ for reward in _COMPARING)
PAID_IN_FALL = frozenset(reward.__name__ for reward in _IN_FALL)


def make_reward(name: str) -> Reward:
    """Return the reward of that name, or the user's own, `module:function`, which is imported.

    The function takes a RewardInput and returns (E, P) finite numbers.

    Raises:
        UserError: there is no such reward; when it is called: its result is not that.
    """
    if name in REWARDS:
        return REWARDS[name]
    if ":" in name:
        return _own_reward(name)
    raise UserError(
        f"unknown reward {quoted(name)}: it is one of {', '.join(REWARDS)}, "
        f"or module:function{did_you_mean(name, REWARDS)}"
    )


def _own_reward(name: str) -> Reward:
    module_name, _, function_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        # A user's module can raise anything.
        raise UserError(
            f"reward {quoted(name)}: cannot import {quoted(module_name)}: {error!s:.300}"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UserError(
            f"reward {quoted(name)}: {module_name} has no function {quoted(function_name)}"
        )

    def checked(game: RewardInput) -> np.ndarray:
        try:
            paid = np.asarray(function(game), np.float32)
        except Exception as error:
            # A user's function can raise anything.
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = "" if where.filename == __file__ else f" (line {where.lineno})"
            reason = f"{type(error).__name__}: {error}{place}"
            raise UserError(f"reward {name!r} cannot be paid: {reason}") from error
        if paid.shape != game.alive.shape or not np.isfinite(paid).all():
            raise UserError(
                f"reward {name!r} must return {game.alive.shape} finite numbers, "
                f"not {'them' if paid.shape == game.alive.shape else paid.shape}"
            )
        return paid

    return checked


def try_reward(reward: Reward, powers: int, victory_centers: int) -> None:
    """Call a reward once, before a run begins; UserError if it is the user's own and fails."""
    centers = np.zeros((3, powers), np.int16)
    centers[:, 0] = victory_centers
    alive = np.broadcast_to(np.arange(powers) < max(1, powers - 1), centers.shape)
    reward(
        RewardInput(
            ended=np.array([RUNNING, SOLO, YEAR_LIMIT], np.int8),
            winner=np.array([NONE, 0, NONE], np.int8),
            captured=np.ones(3, bool),
            centers=centers,
            centers_before=centers,
            alive=alive,
            eliminated=~alive,
            victory_centers=victory_centers,
        )
    )
