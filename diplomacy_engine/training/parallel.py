"""Threads that share a minibatch, and processes that train together."""

import ctypes
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np

from ..errors import UserError

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt(3)


def keep_memory() -> None:
    """Keep memory that was freed with this process instead of giving it back to the system.

    Each minibatch needs the same arrays of some megabytes again, and fresh memory costs a page
    fault for every four kilobytes. Only glibc, the C library of most Linux systems, can be told.
    """
    with suppress(AttributeError, OSError, TypeError):
        allocate = ctypes.CDLL(None).mallopt
        allocate(M_MMAP_THRESHOLD, 2**25)
        allocate(M_TRIM_THRESHOLD, 2**30)


class Workers:
    """Threads that each take a part of every minibatch, forward and backward.

    The matrices here are small: two halves of a minibatch side by side use two cores 1.7 times as
    well as one, where PyTorch's own threads inside each operation gained nothing. Results come in
    the order of the parts, so they do not depend on which thread was faster. Acting stays in one
    thread: its many short operations would only wait for Python's lock.

    Args:
        count: how many.
        limit: called with 1 in each new thread, to keep a library from starting more.
    """

    def __init__(self, count: int, limit: Callable[[int], Any] = lambda _: None):
        self.count = count
        self._pool = ThreadPoolExecutor(count, initializer=limit, initargs=(1,))

    def map(self, function: Callable, items: Iterable) -> list:
        """Return the results of `function` for each item."""
        return list((self._pool.map if self.count > 1 else map)(function, items))


def add_up(
    parameters: Sequence[Any],
    results: Sequence[tuple],
    shares: Sequence[float],
    names: Sequence[str],
) -> dict[str, Any]:
    """Give parameters the weighted sum of the gradients of several parts; return the figures' sums.

    Args:
        results: of each part the gradients (None for none) and figures by name.
        shares: weight of each part.
        names: of the figures.
    """
    for parameter, *grads in zip(parameters, *(grads for grads, _ in results)):
        known = [grad * share for grad, share in zip(grads, shares) if grad is not None]
        parameter.grad = sum(known[1:], known[0]) if known else None
    return {
        name: sum(figures[name] * share for (_, figures), share in zip(results, shares))
        for name in names
    }


class TrainingError(UserError):
    """Training cannot go on. Not every rank may meet it, so each that does says so itself."""


class Ranks:
    """The processes that torchrun started to train together, or this one alone.

    All that decides how training goes on is gathered from all ranks, so that weights, pool and
    counters are the same on each of them after every step.

    Args:
        distributed: torch.distributed with a group that has been joined; None for one process.
    """

    def __init__(self, distributed: Any = None):
        self._distributed = distributed
        self.rank = self.local = 0  # among all processes, among those of this machine
        self.count = 1
        if distributed is not None:
            self.rank, self.count = distributed.get_rank(), distributed.get_world_size()
            self.local = int(os.environ["LOCAL_RANK"])

    @classmethod
    def start(cls, distributed: Any, gpus: int) -> "Ranks":
        """Join the processes that torchrun has started, if it has.

        Args:
            distributed: torch.distributed.
            gpus: how many GPUs this machine has.
        """
        if not distributed.is_torchelastic_launched():
            return cls()
        # Ranks wait for each other's evaluations, so the limit is far above those.
        backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
        distributed.init_process_group(backend, timeout=timedelta(hours=2))
        return cls(distributed)

    def choose_device(self, torch: Any, wants_gpu: bool) -> Any:
        """Return this rank's torch.device: a GPU of its own if one is wanted and there is any.

        Args:
            torch: the package.

        Raises:
            UserError: there are GPUs, but none is left for this rank.
        """
        gpus = torch.cuda.device_count() if wants_gpu else 0
        if gpus:
            device = torch.device("cuda", self.choose_gpu(gpus))
            torch.cuda.set_device(device)
            return device
        if wants_gpu and self.rank == 0:
            print("no GPU was found: training on the CPU")
        return torch.device("cpu")

    def choose_gpu(self, gpus: int) -> int:
        """Return the number of this rank's own GPU of so many; UserError if none is left."""
        if self.local >= gpus:
            raise UserError(f"--cuda: of {gpus} GPUs none is left for rank {self.rank}")
        return self.local

    def share(self, args: Any) -> Any:
        """Return the settings by which this rank plays: its part of the games, a seed of its own.

        `args` is a dataclass with `num_envs` and `seed`; the first rank keeps the seed.
        """
        first, last = (args.num_envs * rank // self.count for rank in (self.rank, self.rank + 1))
        own_seed = int(np.random.SeedSequence([args.seed, self.rank]).generate_state(1)[0])
        return replace(args, num_envs=last - first, seed=own_seed if self.rank else args.seed)

    def gather(self, value: Any) -> list:
        """Return the values of all ranks, by rank."""
        values = [value] * self.count
        if self.count > 1:
            self._together("all_gather_object", values, value)
        return values

    def share_out(self, names: Sequence[str], work: Callable[[int, str], Any]) -> dict[str, Any]:
        """Return what `work(number, name)` returns for each name, each of them done by one rank."""
        mine = list(enumerate(names))[self.rank :: self.count]
        found = [part.items() for part in self.gather({name: work(n, name) for n, name in mine})]
        done = dict(itertools.chain.from_iterable(found))
        return {name: done[name] for name in names}

    def deal(
        self, parts: Sequence[np.ndarray], values: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield each part of this rank's rows, and the `values` of that part on all ranks together.

        A rank that has fewer parts than another goes on with empty ones.
        """
        gathered = self.gather([values[rows] for rows in parts])
        nothing = np.zeros(0, np.int8)
        for rows, *everyone in itertools.zip_longest(parts, *gathered, fillvalue=nothing):
            yield rows, np.concatenate(everyone)

    def total(self, counts: dict[str, float]) -> dict[str, float]:
        """Return the sums of some numbers over all ranks, by name."""
        found = self.gather(counts)
        return {name: sum(counts[name] for counts in found) for name in counts}

    def total_gradients(self, parameters: Sequence[Any], figures: dict[str, Any]) -> dict[str, Any]:
        """Make the parameters' gradients their sums over all ranks; return the figures' sums.

        A gradient of None counts as zeros. All go in one message, which costs less than many.
        """
        if self.count == 1:
            return figures
        sizes = [parameter.numel() for parameter in parameters]
        flat = parameters[0].detach().new_zeros(sum(sizes) + len(figures))
        *parts, scalars = flat.split([*sizes, len(figures)])
        for parameter, part in zip(parameters, parts):
            if parameter.grad is not None:
                part.copy_(parameter.grad.flatten())
        for number, figure in enumerate(figures.values()):
            scalars[number] = figure
        self._together("all_reduce", flat)
        for parameter, part in zip(parameters, parts):
            parameter.grad = part.view_as(parameter)
        return dict(zip(figures, scalars))

    def agree(self, function: Callable, *arguments: Any) -> Any:
        """Return what a function returns; a UserError that any rank meets is raised on all."""
        result = failure = None
        try:
            result = function(*arguments)
        except UserError as error:
            failure = error
        for found in self.gather(failure):
            if found is not None:
                raise found
        return result

    def close(self) -> None:
        """Leave the others."""
        if self._distributed is not None:
            self._distributed.destroy_process_group()

    def _together(self, collective: str, *arguments: Any) -> None:
        try:
            getattr(self._distributed, collective)(*arguments)
        except RuntimeError as error:  # a connection was closed
            raise TrainingError("another rank has died; the last checkpoint is intact") from error
