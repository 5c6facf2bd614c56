"""Processes that share the work of one network, and processes that train together."""

import ctypes
import itertools
import mmap
import os
import pickle
import signal
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ..errors import UserError

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's mallopt(3)
PR_SET_PDEATHSIG = 1  # of Linux's prctl(2)


def keep_memory() -> None:
    """Keep memory that was freed with this process instead of giving it back to the system.

    Each minibatch needs the same arrays of some megabytes again, and fresh memory costs a page
    fault for every four kilobytes. Only glibc, the C library of most Linux systems, can be told.
    """
    with suppress(AttributeError, OSError, TypeError):
        allocate = ctypes.CDLL(None).mallopt
        allocate(M_MMAP_THRESHOLD, 2**25)
        allocate(M_TRIM_THRESHOLD, 2**30)


def end_with_parent() -> None:
    """Ask this process to stop, as SIGTERM does, once the one that has started it is gone.

    Only Linux can. Elsewhere the ranks of a torchrun that was killed train on, and nobody sees it.
    """
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Workers:
    """Processes that share the network's work: this one, and copies of it that wait to be asked.

    Threads would not do: PyTorch hands Python's lock over some hundred times in a minibatch, and
    two of them spent half of their time waiting for it. Results come in the order of the items, so
    they do not depend on which process was faster.

    The copies are made at once, by forking, which only Linux does safely; elsewhere this process
    does all the work itself, with the same results. They end when this one does. Libraries must
    have been told to use one thread before: their threads are not copied, and would be waited for.

    Args:
        count: how many, this process among them.
        known: what the functions that they are asked to call find by its key. Only what lies in
            shared memory by now stays the same for all of them; see `know` for the rest.
    """

    def __init__(self, count: int, known: dict):
        self.count, self.known = count, dict(known)
        self._channels: list[_Channel] = []
        while sys.platform == "linux" and len(self._channels) < count - 1:
            here, there = _Channel.pair()
            process = os.fork()
            if process == 0:
                here.close()
                _serve(there, self.known)
            there.close()
            self._channels.append(here)
            weakref.finalize(self, _dismiss, here, process, os.getpid())

    def map(
        self, function: Callable, items: Sequence[tuple], sizes: Sequence[float] | None = None
    ) -> list:
        """Return `function(known, *item)` of each item.

        Args:
            function: of a module, not of a class or another function.
            items: numbers, arrays and what holds them.
            sizes: of the items, by which they are dealt out evenly; None: all alike.

        Raises:
            TrainingError: a worker process has died.
        """
        shares: list[list[int]] = [[] for _ in range(len(self._channels) + 1)]
        loads = np.zeros(len(shares))
        sizes = np.ones(len(items)) if sizes is None else np.asarray(sizes)
        for number in np.argsort(-sizes, kind="stable").tolist():
            least = int(loads.argmin())
            shares[least].append(number)
            loads[least] += sizes[number]
        asked = [pair for pair in zip(self._channels, shares[1:]) if pair[1]]
        for channel, numbers in asked:
            channel.send((function, [items[number] for number in numbers]))
        results: list[Any] = [None] * len(items)
        try:
            for number in shares[0]:
                results[number] = function(self.known, *items[number])
        finally:
            answers = [(channel.receive(), numbers) for channel, numbers in asked]
        for (found, error), numbers in answers:
            if error is not None:
                raise error
            for number, result in zip(numbers, found):
                results[number] = result
        return results

    def know(self, things: dict) -> None:
        """Let `known` be these things in every process. Copies are sent of those that are new."""
        new = {key: thing for key, thing in things.items() if self.known.get(key) is not thing}
        gone = [key for key in self.known if key not in things]
        if new or gone:
            self.map(_learn_of, [(new, gone)] * (len(self._channels) + 1))


def _learn_of(known: dict, new: dict, gone: list) -> None:
    known |= new
    for key in gone:
        del known[key]


def _serve(channel: "_Channel", known: dict) -> None:
    """Do what the other end asks for until it is closed, in a process that does nothing else."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # the process that asks decides when to stop
            signal.signal(number, signal.SIG_IGN)
        while (question := channel.receive()) is not None:
            function, items = question
            try:
                answer = [function(known, *item) for item in items], None
            except Exception as error:
                error.add_note(f"in a worker process:\n{traceback.format_exc()}")
                answer = None, error
            channel.send(answer)
    except TrainingError:
        pass  # nobody asks any more
    finally:
        os._exit(0)


def _dismiss(channel: "_Channel", process: int, asking: int) -> None:
    """End a worker process, if it is this process that asked it."""
    if os.getpid() == asking:
        with suppress(TrainingError):
            channel.send(None)
        channel.close()
        os.waitpid(process, 0)


class _Channel:
    """One end of a connection between two processes. Arrays go through memory that both share.

    There is one message on the way at most: an answer is read before the next question is asked.
    """

    ROOM = 2**26  # bytes each way, of which the machine gives only what is used

    def __init__(self, connection: Connection, outbox: mmap.mmap, inbox: mmap.mmap):
        self._connection, self._outbox, self._inbox = connection, outbox, memoryview(inbox)

    @classmethod
    def pair(cls) -> "tuple[_Channel, _Channel]":
        """Return both ends."""
        here, there = Pipe()
        one, other = (mmap.mmap(-1, cls.ROOM) for _ in range(2))
        return cls(here, one, other), cls(there, other, one)

    def send(self, value: Any) -> None:
        """Send anything that can be pickled; TrainingError if the other process has died."""
        arrays: list[pickle.PickleBuffer] = []
        text = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        parts = [array.raw() for array in arrays]
        sizes = [part.nbytes for part in parts]
        if sum(sizes) > self.ROOM:
            text, parts, sizes = pickle.dumps(value, protocol=5), [], []
        place = 0
        for part, size in zip(parts, sizes):
            self._outbox[place : place + size] = part
            place += size
        with _or_died():
            self._connection.send((text, sizes))

    def receive(self) -> Any:
        """Return the next message; TrainingError if the other process has died."""
        with _or_died():
            text, sizes = self._connection.recv()
        ends = np.cumsum(sizes, dtype=np.int64).tolist()
        arrays = [bytearray(self._inbox[end - size : end]) for end, size in zip(ends, sizes)]
        return pickle.loads(text, buffers=arrays)

    def close(self) -> None:
        """Close this end; the other process knows when this one has closed it, or died."""
        self._connection.close()


@contextmanager
def _or_died() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError):
        raise TrainingError("a worker process has died") from None


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
        end_with_parent()
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

    def total_tensor(self, tensor: Any) -> Any:
        """Return the sum of a tensor over all ranks; the one given may be overwritten."""
        if self.count > 1:
            self._together("all_reduce", tensor)
        return tensor

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
            raise TrainingError("another rank has died") from error
