"""Decisions of a learner as its network saw and took them, and batches of them to learn from."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from ..games.decisions import Decisions, join_decisions, ragged_rows
from ..games.observation import BoardViews
from .boards import on_device
from .ranks import Sums

_Part = TypeVar("_Part", bound=tuple)


class Experience(NamedTuple):
    """Decisions of the learner, as the network saw and took them; first axis D throughout."""

    obs: BoardViews
    decisions: Decisions
    chosen: np.ndarray  # (S,) int64, position of the chosen order in each slot's list

    def take(self, rows: np.ndarray) -> "Experience":
        decisions = self.decisions.take(rows)
        slots = ragged_rows(self.decisions.slot_start[rows], decisions.slot_start)
        return Experience(self.obs.take(rows), decisions, self.chosen[slots])

    @staticmethod
    def join(parts: "list[Experience]") -> "Experience":
        if not parts:
            none = np.zeros(0, np.int64)
            return Experience(BoardViews(*[none] * 5), join_decisions([]), none)
        obs, decisions, chosen = zip(*parts)
        return Experience(obs[0].join(obs), join_decisions(decisions), np.concatenate(chosen))


def rows_by_board(row: np.ndarray) -> list[np.ndarray]:
    """Return of each board the views, ascending; view n looks at board row[n]."""
    return np.split(np.argsort(row, kind="stable"), np.bincount(row).cumsum()[:-1])


def take_rows(part: _Part, rows: np.ndarray) -> _Part:
    """Return a named tuple of an Experience and arrays (n,) with these rows alone."""
    return type(part)(part[0].take(rows), *(array[rows] for array in part[1:]))


def join_rows(parts: Sequence[_Part]) -> _Part:
    experience, *arrays = zip(*parts)
    return type(parts[0])(Experience.join(list(experience)), *map(np.concatenate, arrays))


class Batch(NamedTuple):
    """Transitions to learn from; (B,) float32 arrays beside the experience."""

    experience: Experience
    logprobs: np.ndarray
    values: np.ndarray
    advantages: np.ndarray
    returns: np.ndarray

    def take(self, rows: np.ndarray) -> "Batch":
        return take_rows(self, rows)

    def sums(self) -> Sums:
        """Return `batch`: its size, and the sums that `statistics.explained_variance` needs."""
        returns = self.returns.astype(np.float64)
        residuals = (self.returns - self.values).astype(np.float64)
        sums = [array.sum() for array in (returns, returns**2, residuals, residuals**2)]
        return {"batch": np.array([len(returns), *sums])}

    def tensors(self, device: torch.device) -> dict[str, torch.Tensor]:
        arrays = zip(self._fields[1:], self[1:])
        return {name: on_device(array, device) for name, array in arrays}

    def split(self, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the rows of `count` parts: boards at random, with all decisions on each."""
        board, row = np.unique(self.experience.obs.row, return_inverse=True)
        edges = np.arange(1, count) * len(board) // count
        part = np.searchsorted(edges, rng.permutation(len(board)), side="right")[row]
        rows = np.lexsort((row, part))
        return np.split(rows, np.searchsorted(part[rows], np.arange(1, count)))
