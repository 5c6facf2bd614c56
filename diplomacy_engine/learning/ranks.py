"""Processes that train together: those started for --processes, or torchrun's. All that decides how
training goes on is a sum over them. Those of one machine talk over pipes, in a tenth of gloo's
time; torch.distributed carries what crosses machines or GPUs."""

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cache
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from types import SimpleNamespace
from typing import TypeVar

import numpy as np
import torch
from torch import distributed

from .._cores import usable_cores
from ..errors import UserError
from .of_scripts import RunSettings
from .signals import Stopped

Sums = dict[str, float | np.ndarray]  # by names that are the same on all ranks
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # of glibc's mallopt(3)
MADV_HUGEPAGE, MADV_COLLAPSE, HUGE_PAGE = 14, 25, 2**21  # of Linux's madvise(2)
_Value = TypeVar("_Value")
PR_SET_PDEATHSIG = 1  # of Linux's prctl(2)
PATIENCE = 5.0  # seconds in which processes that were started must end once their work is over


class TrainingError(UserError):
    """Training cannot go on. Not every rank may meet it, so each that does says so itself."""


class OutOfStep(TrainingError):
    """What another rank has sent is not what comes next here."""

    def __init__(self):
        super().__init__(
            "the processes are not at the same place of the program: a condition, such as that of "
            "a `break`, is not the same in all of them; make it of `ranks.sum`"
        )


class RankLost(TrainingError):
    """Another rank has died; what was wrong with it, it has said itself, if it could."""


def keep_memory() -> None:
    """Keep freed memory in this process: each minibatch needs the same megabytes, and fresh ones
    cost a page fault every four kilobytes. Only glibc can be told."""
    with suppress(AttributeError, OSError, TypeError):
        allocate = ctypes.CDLL(None).mallopt
        allocate(M_MMAP_THRESHOLD, 2**25)
        allocate(M_TRIM_THRESHOLD, 2**30)


@cache
def use_huge_pages() -> None:
    """Keep freed memory, and hold all in pages of two megabytes, where Linux has them: a minibatch
    and the objects it goes through are in more small ones than a processor knows the places of.
    For processes that train; takes some 0.4 s, once a process."""
    keep_memory()
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(M_TOP_PAD, 2**27)  # by which the heap then grows at once
        libc.malloc.restype = ctypes.c_void_p
        libc.free(ctypes.c_void_p(libc.malloc(ctypes.c_size_t(2**24))))
        with open("/proc/self/maps") as maps:
            areas = [line.split() for line in maps]
        for addresses, access, _, _, inode, *name in areas:
            if access != "rw-p" or inode != "0" or name not in ([], ["[heap]"]):
                continue
            begin, end = (int(address, 16) for address in addresses.split("-"))
            begin += -begin % HUGE_PAGE
            if begin < end:
                area = ctypes.c_void_p(begin), ctypes.c_size_t(end - begin)
                libc.madvise(*area, MADV_HUGEPAGE)  # of pages that are still to come
                libc.madvise(*area, MADV_COLLAPSE)  # of those there are, since Linux 6.1


def end_with_parent() -> None:
    """Ask Linux to stop this process, as SIGTERM does, once the one that has started it is gone."""
    if sys.platform == "linux":
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _try_gpu(device: torch.device) -> str:
    """Compute on a GPU, and from then on there; return its name, or raise UserError."""
    try:
        torch.cuda.set_device(device)
        torch.ones(1, device=device).sum().item()
        return torch.cuda.get_device_name(device)
    except (AssertionError, RuntimeError) as error:  # an old driver, a full or a foreign device
        why = str(error).partition("\n")[0]
        raise UserError(f"--cuda: {device} cannot compute: {why}; leave out --cuda") from None


class Pipes:
    """How processes of one machine talk: the first with each of the others, all in one order."""

    def __init__(self, pipes: Sequence[Connection], first: bool):
        self.pipes, self.first = list(pipes), first
        self._inbox = np.zeros(0, np.uint8)

    def gather(self, value: _Value) -> list[_Value]:
        if not self.first:
            self.pipes[0].send(value)
            return _receive(self.pipes[0])
        values = [value, *map(_receive, self.pipes)]
        for pipe in self.pipes:
            pipe.send(values)
        return values

    def add(self, tensor: torch.Tensor) -> None:
        own = tensor.cpu().numpy()
        if not self.first:
            self.pipes[0].send_bytes(own.data)
            _receive_into(self.pipes[0], own)
        else:
            self._add_others(own)
        if tensor.device.type != "cpu":
            tensor.copy_(torch.from_numpy(own))

    def _add_others(self, own: np.ndarray) -> None:
        if len(self._inbox) < own.nbytes:
            self._inbox = np.zeros(own.nbytes, np.uint8)
        theirs = self._inbox[: own.nbytes].view(own.dtype).reshape(own.shape)
        for pipe in self.pipes:
            _receive_into(pipe, theirs)
            own += theirs
        for pipe in self.pipes:
            pipe.send_bytes(own.data)


def _receive(pipe: Connection):
    content = pipe.recv_bytes()
    try:
        return ForkingPickler.loads(content)
    except Exception:  # of numbers, which `add` has sent, pickle says nearly anything
        raise OutOfStep from None


def _receive_into(pipe: Connection, array: np.ndarray) -> None:
    try:
        if pipe.recv_bytes_into(array) == array.nbytes:
            return
    except multiprocessing.BufferTooShort:
        pass
    raise OutOfStep


class Distributed:
    def gather(self, value: _Value) -> list[_Value]:
        values = [value] * distributed.get_world_size()
        distributed.all_gather_object(values, value)
        return values

    def add(self, tensor: torch.Tensor) -> None:
        # Only sums of dense tensors: gloo adds memory as it lies, whatever strides and shapes say,
        # loses a maximum beside a NaN, spoils others' numbers in `reduce`, and raises on an average
        # of whole numbers after it has summed.
        if not tensor.is_contiguous():
            raise ValueError("ranks add dense tensors only; `tensor.contiguous()` is one")
        distributed.all_reduce(tensor)


class Ranks:
    """The processes that train together: this is `rank` of `count`, `local` of its machine."""

    def __init__(
        self,
        link: Pipes | Distributed | None = None,
        rank: int = 0,
        count: int = 1,
        local: int = 0,
        stop: ctypes.c_bool | None = None,
    ):
        self.rank, self.count, self.local = rank, count, local
        # Whether a signal has asked one of this machine's processes to stop; torchrun tells each.
        self.stop = ctypes.c_bool() if stop is None else stop
        self._link, self._children = link, []
        # Of gradients, by the first weight: their last sums, and hooks that see if more is `added`.
        self._last: dict[int, SimpleNamespace] = {}

    @classmethod
    def of_torchrun(cls) -> "Ranks | None":
        """Join the processes that torchrun has started; None if it has not."""
        if not distributed.is_torchelastic_launched():
            return None
        end_with_parent()
        # Ranks wait for each other's evaluations, so the limit is far above those.
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.device_count() else "gloo"
        distributed.init_process_group(backend, timeout=timedelta(hours=2))
        rank, count = distributed.get_rank(), distributed.get_world_size()
        return cls(Distributed(), rank, count, int(os.environ["LOCAL_RANK"]))

    @classmethod
    def start(cls, count: int, run: Callable[..., int], *arguments: object) -> "Ranks":
        """Start more that call `run(*arguments, ranks)`; not by forking, which copies locks."""
        context = multiprocessing.get_context("spawn")
        pipes, children, stop = [], [], context.RawValue(ctypes.c_bool)
        for rank in range(1, count):
            here, there = context.Pipe()
            about = run, arguments, there, rank, count, stop
            child = context.Process(target=_work, args=about, daemon=True)
            child.start()
            there.close()
            pipes.append(here)
            children.append(child)
        ranks = cls(Pipes(pipes, first=True) if pipes else None, 0, count, stop=stop)
        ranks._children = children
        return ranks

    def choose_device(self, wants_gpu: bool) -> torch.device:
        """Return where this rank computes: GPUs in turn if wanted; torchrun's have one each."""
        gpus = torch.cuda.device_count() if wants_gpu else 0
        if gpus:
            if self.local >= gpus and isinstance(self._link, Distributed):
                raise UserError(f"--cuda: none of the {gpus} GPUs is left for rank {self.rank}")
            device = torch.device("cuda", self.local % gpus)
            print(
                f"rank {self.rank} on {device} ({_try_gpu(device)}): network, "
                f"draws of orders and learning; games on {self.game_threads(device)} processor "
                "threads"
            )
            return device
        if wants_gpu and self.rank == 0:
            print("no GPU was found: training on the CPU")
        return torch.device("cpu")

    def game_threads(self, device: torch.device) -> int:
        """Return on how many threads games run: beside a GPU its share of all cores, else one."""
        return 1 if device.type == "cpu" else max(1, usable_cores() // self.count)

    def share(self, args: RunSettings) -> RunSettings:
        first, last = (args.num_envs * rank // self.count for rank in (self.rank, self.rank + 1))
        own_seed = int(np.random.SeedSequence([args.seed, self.rank]).generate_state(1)[0])
        return replace(args, num_envs=last - first, seed=own_seed if self.rank else args.seed)

    def gather(self, value: _Value) -> list[_Value]:
        """Return the values of all ranks, by rank. It is slow: what is a number goes by `sum`."""
        if self._link is None:
            return [value]
        return self._together(self._link.gather, value)

    def union(self, numbers: np.ndarray) -> set[int]:
        return set().union(*self.gather(np.unique(numbers).tolist()))

    def sum(self, sums: Sums) -> dict[str, np.ndarray]:
        """Return the sums of some numbers and arrays, the same ones everywhere, over all ranks, as
        float64 arrays."""
        parts = {name: np.asarray(value, np.float64) for name, value in sums.items()}
        if self._link is None:
            return parts
        flat = torch.from_numpy(np.concatenate([part.ravel() for part in parts.values()]))
        self._together(self._link.add, flat)
        totals = np.split(flat.numpy(), np.cumsum([part.size for part in parts.values()])[:-1])
        return {n: total.reshape(parts[n].shape) for n, total in zip(parts, totals)}

    def minibatches(
        self, advantages: np.ndarray, epochs: Sequence[Sequence[np.ndarray]]
    ) -> Iterator[tuple[np.ndarray, float, np.float32, np.float32]]:
        """Yield of each minibatch that has rows on any rank: this rank's rows of `advantages` (B,),
        the share that they are of all ranks', and mean and deviation (or 1) of all."""
        wide = advantages.astype(np.float64)
        own = [[(len(r), wide[r].sum(), (wide[r] ** 2).sum()) for r in parts] for parts in epochs]
        count, total, squares = np.moveaxis(self.sum({"own": np.array(own)})["own"], 2, 0)
        mean = total / np.maximum(count, 1)
        variance = (squares - count * mean**2) / np.maximum(count - 1, 1)
        deviation = np.where(count > 1, np.sqrt(np.maximum(variance, 0)), 1)
        moments = np.stack([mean, deviation], 2).astype(np.float32)
        for e, parts in enumerate(epochs):
            for m, rows in enumerate(parts):
                if count[e, m]:
                    yield rows, len(rows) / count[e, m], *moments[e, m]

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Make gradients their sums over all ranks, once a step; one that is None counts as 0.

        Raises:
            TrainingError: a gradient holds a sum already, which would be summed again.
        """
        learned = [weight for weight in parameters if weight.requires_grad]
        for weight in learned:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
        if self._link is None or not learned:
            return
        last = self._last.get(id(learned[0]))
        if last is not None and not any(weight.grad._base is last.sums for weight in learned):
            while last.hooks:  # cleared by zero_grad(): nothing to watch
                last.hooks.pop().remove()
        elif last is not None and (last.added or not last.hooks):
            raise TrainingError(
                "`ranks.sum_gradients` has summed these gradients before: call it once before each "
                "step, after the last backward(), and zero_grad() before the first"
            )
        sums = torch.cat([weight.grad.flatten() for weight in learned])
        self._together(self._link.add, sums)
        parts = sums.split([weight.numel() for weight in learned])
        for weight, part in zip(learned, parts, strict=True):
            weight.grad = part.view_as(weight).to(weight.dtype)
        if last is None:
            last = self._last[id(learned[0])] = SimpleNamespace(added=False)
            last.hooks = [weight.register_hook(_watch(weight, last)) for weight in learned]
        last.sums, last.touched = sums, set()

    def mean_metrics(
        self, parts: Sequence[tuple[float, Mapping[str, torch.Tensor]]]
    ) -> dict[str, float]:
        """Return the means of metrics over minibatches; of each, this rank gives the share that it
        has of the minibatch, and the metrics of that. A rank that has nothing has none of them."""
        own = {}
        for share, metrics in parts:
            for name, value in metrics.items():
                own[name] = own.get(name, 0.0) + share * value.item()
        everywhere = self.gather(own)
        names = dict.fromkeys(name for totals in everywhere for name in totals)
        return {
            name: sum(totals.get(name, 0.0) for totals in everywhere) / len(parts) for name in names
        }

    def average_buffers(self, agent: torch.nn.Module) -> None:
        """Make buffers of an agent that checkpoints keep the same on all ranks: means of numbers
        with fractions, such as running statistics, and rank 0's of all others."""
        weights = {name for name, _ in agent.named_parameters()}
        own = {name: part for name, part in agent.state_dict().items() if name not in weights}
        if self._link is None or not own:
            return
        everywhere = self.gather({name: part.cpu().numpy() for name, part in own.items()})
        for name, part in own.items():
            values = torch.from_numpy(np.stack([buffers[name] for buffers in everywhere]))
            part.copy_(values.mean(0) if values.is_floating_point() else values[0])

    def agree(self, function: Callable[..., _Value], *arguments: object) -> _Value:
        results, failure = [], None
        try:
            results.append(function(*arguments))
        except UserError as error:
            failure = error
        for error in self.gather(failure):
            if error is not None:
                raise error
        return results[0]

    def all_or_stop(self, function: Callable[[], _Value]) -> list[_Value]:
        """Return a function's results on all ranks. If it fails on one, all raise Stopped, with its
        error as the cause."""
        own, failure = [], None
        try:
            own.append(function())
        except (Stopped, UserError) as error:
            failure = error
        results = self.gather((own, failure))
        for _, error in results:
            if error is not None:
                raise Stopped from error
        return [result for (result,), _ in results]

    def close(self) -> None:
        """Leave the others, and wait for those that this one has started; once is enough."""
        link, self._link = self._link, None
        if isinstance(link, Distributed):
            distributed.destroy_process_group()
        elif link is not None:
            for pipe in link.pipes:
                pipe.close()
        for child in self._children:
            child.join(PATIENCE)
            child.kill()
            child.join()

    def _together(self, call: Callable[..., _Value], value: object) -> _Value:
        try:
            return call(value)
        except (EOFError, OSError, RuntimeError) as error:  # a connection was closed
            raise RankLost(f"another rank has died{self._signal()}") from error

    def _signal(self) -> str:
        """Return which signal has killed a rank of ours, if one has."""
        if self._children:
            ended = wait([child.sentinel for child in self._children], timeout=PATIENCE)
            for child in self._children:
                if child.sentinel in ended:  # its pipes close a moment before it has an exit code
                    child.join(PATIENCE)
        numbers = [-child.exitcode for child in self._children if (child.exitcode or 0) < 0]
        memory = ", perhaps for lack of memory" * (signal.SIGKILL in numbers)
        return f", killed by {signal.Signals(numbers[0]).name}{memory}" if numbers else ""


def _watch(weight: torch.nn.Parameter, last: SimpleNamespace) -> Callable[[torch.Tensor], None]:
    """Return a hook that sees whether a gradient is added to a sum that has not been cleared."""

    def hook(_: torch.Tensor) -> None:
        held = weight.grad is not None and weight.grad._base is last.sums
        if held and id(weight) not in last.touched:  # the first backward() since they were summed
            last.added |= bool(weight.grad.any())
        last.touched.add(id(weight))

    return hook


def _work(
    run: Callable[..., int],
    arguments: tuple,
    pipe: Connection,
    rank: int,
    count: int,
    stop: ctypes.c_bool,
):
    """Be rank `rank` of `count`, which talks to the first over `pipe` and shares `stop`."""
    end_with_parent()
    sys.exit(run(*arguments, Ranks(Pipes([pipe], first=False), rank, count, rank, stop)))
