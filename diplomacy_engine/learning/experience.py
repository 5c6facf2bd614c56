"""Decisions of a learner as its network saw and took them, and batches of them to learn from."""

from typing import NamedTuple

import numpy as np
import torch

from ..constants import NONE
from ..games.decisions import Decisions, join_decisions, ragged_rows
from ..games.observation import UNIT_KIND, UNIT_OWNER, BoardViews, feature_sizes
from ..games.vector_game import VectorGame
from ..policy.talk_views import OfferViews, TalkViews
from .boards import on_device


class Experience(NamedTuple):
    """Decisions of the learner, as the network saw and took them; first axis D throughout."""

    obs: BoardViews | TalkViews | OfferViews
    decisions: Decisions
    chosen: np.ndarray  # (S,) int64, position of the chosen order in each slot's list

    def take(self, rows: np.ndarray) -> "Experience":
        """Return the decisions of the given rows, in that order."""
        decisions = self.decisions.take(rows)
        slots = ragged_rows(self.decisions.slot_start[rows], decisions.slot_start)
        return Experience(self.obs.take(rows), decisions, self.chosen[slots])

    @staticmethod
    def join(parts: "list[Experience]") -> "Experience":
        """Return all rows of `parts`, one part after the other."""
        if not parts:
            none = np.zeros(0, np.int64)
            return Experience(BoardViews(*[none] * 5), join_decisions([]), none)
        obs, decisions, chosen = zip(*parts)
        return Experience(obs[0].join(obs), join_decisions(decisions), np.concatenate(chosen))


class Batch(NamedTuple):
    """Transitions to learn from; (B,) float32 arrays beside the experience."""

    experience: Experience
    logprobs: np.ndarray
    values: np.ndarray
    advantages: np.ndarray
    returns: np.ndarray

    def take(self, rows: np.ndarray) -> "Batch":
        """Return the transitions of the given rows, in that order."""
        return Batch(self.experience.take(rows), *(array[rows] for array in self[1:]))

    def tensors(self, device: torch.device) -> dict[str, torch.Tensor]:
        """Return the arrays by name as tensors on a device, (B,) each."""
        arrays = zip(self._fields[1:], self[1:])
        return {name: on_device(array, device) for name, array in arrays}

    def split(self, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the rows of `count` parts; all decisions on one board are in one part.

        The boards are dealt out at random; within a part they keep their order. A part is empty
        where there are fewer boards.
        """
        board, row = np.unique(self.experience.obs.row, return_inverse=True)
        edges = np.arange(1, count) * len(board) // count
        part = np.searchsorted(edges, rng.permutation(len(board)), side="right")[row]
        rows = np.lexsort((row, part))
        return np.split(rows, np.searchsorted(part[rows], np.arange(1, count)))


def check_experience(experience: Experience, games: VectorGame) -> None:
    """Raise ValueError unless decisions that a file gives can be of the map of `games`.

    Kernels use what is in them as indices, unchecked.
    """
    no_rows = np.zeros(0, np.int64)
    views = games.view_boards(no_rows, no_rows.astype(np.int8))
    kind = type(experience.obs)
    if kind is not BoardViews:
        views = kind.of(views, num_powers=games.num_powers)
    like = Experience(views, games.decisions(no_rows), no_rows)
    arrays = [*zip(experience.obs, like.obs), *zip(experience.decisions, like.decisions)]
    for array, known in [*arrays, (experience.chosen, no_rows)]:
        same = isinstance(array, np.ndarray) and array.dtype == known.dtype
        # One that is not contiguous may be far larger than the file that it comes from.
        if not same or array.shape[1:] != known.shape[1:] or not array.flags.c_contiguous:
            raise ValueError("a decision has a different shape or type")
    board, last_order, scalars, row, power, *talk = experience.obs
    game, decider, slot_start, slot_province, order_start, order = experience.decisions
    chosen, slots, orders = experience.chosen, np.diff(slot_start), np.diff(order_start)
    last = len(games.vocabulary) - 1
    sound = (
        len(board) == len(last_order) == len(scalars)
        and len(row) == len(power) == len(game) == len(decider) == len(slots)
        and len(chosen) == len(slot_province) == len(orders)
        and _within(board, 0, np.array(feature_sizes(games.num_powers)) - 1)
        and ((board[..., UNIT_KIND] != 0) | (board[..., UNIT_OWNER] == 0)).all()
        and _within(last_order, NONE, last)
        and _within(row, 0, len(board) - 1)
        and _within(power, 0, games.num_powers - 1)
        and _within(game, 0, games.num_games - 1)
        and _within(slots, 1, len(games.board.terrain))
        and (int(slot_start[0]), int(slot_start[-1])) == (0, len(orders))
        and _within(slot_province, NONE, len(games.board.terrain) - 1)
        and _within(orders, 1, last + 1)
        and (int(order_start[0]), int(order_start[-1])) == (0, len(order))
        and _within(order, 0, last)
        and _within(chosen, 0, orders - 1)
        and all(len(array) == len(row) for array in talk)
        and (not talk or experience.obs.talk_is_sound(len(games.board.terrain)))
    )
    if not sound:
        raise ValueError("a decision has impossible numbers")


def _within(array: np.ndarray, low: int, high: int | np.ndarray) -> bool:
    return bool(((array >= low) & (array <= high)).all())
