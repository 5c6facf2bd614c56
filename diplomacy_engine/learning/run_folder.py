"""The folder of a training run (docs/training.md), where no kill or full disk costs what was there.
A checkpoint stores `sizes()` of the files that grow; on resume `cut_back(sizes)` takes away what
came after, so that a continued run's files equal an uninterrupted one's."""

import contextlib
import dataclasses
import filecmp
import itertools
import json
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Protocol, TypeVar

from .._files import FolderLock, atomic_write, check_writable, refusing
from ..errors import UserError
from ..players.policy.files import CHECKPOINT
from ..records import convert, read_json

MAX_ARGS_BYTES = 1_000_000
KEPT = 5  # copies in checkpoints/
_Args = TypeVar("_Args")
_GROWING = ("events.out.tfevents*", "games/*.jsonl")
_GROWING += ("metrics.jsonl", "replies.jsonl", "rollouts.jsonl")


class FolderSettings(Protocol):
    """What a dataclass of settings has for a folder."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seed(self) -> int: ...
    @property
    def runs_folder(self) -> str: ...


def check_name(exp_name: str) -> None:
    if not re.fullmatch(r"[^/\\\x00-\x1f]{1,100}", exp_name):
        raise UserError(f"--exp-name {exp_name!r:.120} must be 1 to 100 characters without slashes")


class RunFolder:
    """One run's folder, at `path`. `create` and `open` lock it for this process, until `close`."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock: FolderLock | None = None

    @classmethod
    def create(
        cls, args: FolderSettings, map_name: str, exp_name: str, script: str | Path
    ) -> "RunFolder":
        """Make a new run folder with args.json and a copy of the script; UserError if it cannot.

        The folder's name has `seed`, and its place is `runs_folder`.
        """
        check_name(exp_name)
        root = Path(args.runs_folder)
        with refusing(root, "made"):
            root.mkdir(parents=True, exist_ok=True)
            for now in itertools.count(int(time.time())):  # two may begin in the same second
                run = cls(root / f"{map_name}__{exp_name}__{args.seed}__{now}")
                with contextlib.suppress(FileExistsError):
                    run.path.mkdir()
                    break
            run._lock = FolderLock(run.path)
            (run.path / "checkpoints").mkdir()
            (run.path / "games").mkdir()
            run.save_script(script)
        run.save_args(dataclasses.asdict(args))
        return run

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Return a run folder to go on with; UserError if it has no checkpoint, or is another's."""
        run = cls(path)
        for name in ("args.json", CHECKPOINT):
            if not os.path.isfile(run.path / name):  # also if it may not be looked at
                raise UserError(f"{run.path} cannot be continued: it has no {name}")
        try:
            run._lock = FolderLock(run.path)
        except BlockingIOError:
            raise UserError(f"another process is training in {run.path}") from None
        try:
            check_writable(run.path)
            with refusing(run.path, "continued"):
                (run.path / "checkpoints").mkdir(exist_ok=True)
                (run.path / "games").mkdir(exist_ok=True)
                for place in ("", "checkpoints/", "games/"):
                    for leftover in run.path.glob(f"{place}.*.tmp"):
                        leftover.unlink(missing_ok=True)
        except UserError:
            run.close()
            raise
        return run

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def remove(self) -> None:
        self.close()
        shutil.rmtree(self.path, ignore_errors=True)

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT

    def save_script(self, script: str | Path) -> None:
        atomic_write(self.path / Path(script).name, Path(script).read_bytes())

    def save_args(self, args: Mapping) -> None:
        atomic_write(self.path / "args.json", json.dumps(dict(args), indent=2).encode())

    def load_args(self) -> dict:
        return read_json(dict, self.path / "args.json", MAX_ARGS_BYTES)

    def settings(self, args_class: type[_Args], **changes: object) -> _Args:
        """Return the settings of the run with some changes; UserError if its class has others."""
        return convert(args_class, self.load_args() | changes, self.path / "args.json")

    def log(self, step: int, figures: Mapping[str, object]) -> None:
        """Append one line to metrics.jsonl: `global_step`, then the figures; no number is null."""
        line = {"global_step": int(step)} | {name: _plain(figures[name]) for name in figures}
        self.append("metrics.jsonl", [line])

    def most(self, name: str) -> float:
        most, path = -math.inf, self.path / "metrics.jsonl"
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            for line in file:
                if json.dumps(name).encode() in line:
                    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                        most = max(most, float(json.loads(line)[name]))
        return most

    def append(self, name: str, lines: Iterable[Mapping]) -> None:
        """Append lines to a file; all of them or, as on a full disk, none."""
        path = self.path / name
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        with refusing(path, "written"), open(path, "ab", buffering=0) as file:
            before = file.tell()
            try:
                if file.write(data) != len(data):
                    raise OSError("no room for the whole line")
            except OSError:
                file.truncate(before)  # half a line would spoil the next one
                raise

    def save_checkpoint(self, step: int, content: bytes | Callable[[BinaryIO], None]) -> None:
        """Replace checkpoint.pt, and keep the newest ones in checkpoints/ as well."""
        atomic_write(self.checkpoint, content)
        self.keep_checkpoint(step)

    def keep_checkpoint(self, step: int) -> None:
        """Keep checkpoint.pt in checkpoints/ too, where a kill may have come before that."""
        folder = self.path / "checkpoints"
        copy = folder / f"{step:012d}.pt"
        temporary = folder / f".{copy.name}.{os.getpid()}.tmp"
        try:
            with refusing(copy, "written"):
                if not (copy.is_file() and filecmp.cmp(self.checkpoint, copy, False)):
                    try:
                        os.link(self.checkpoint, temporary)
                    except OSError:  # no hard links here
                        shutil.copyfile(self.checkpoint, temporary)
                    os.replace(temporary, copy)
                copies = sorted(folder.glob("[0-9]" * 12 + ".pt"))
                for old in copies[:-KEPT]:
                    old.unlink()
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _growing(self) -> list[Path]:
        return sorted(path for pattern in _GROWING for path in self.path.glob(pattern))

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each file that only grows; flush TensorBoard's writer before."""
        return {str(path.relative_to(self.path)): path.stat().st_size for path in self._growing()}

    def cut_back(self, sizes: Mapping[str, int]) -> None:
        """Shorten the growing files to `sizes`, and delete those that are not in it."""
        for path in self._growing():
            size = sizes.get(str(path.relative_to(self.path)))
            with refusing(path, "shortened"):
                if size is None:
                    path.unlink()
                    path.with_suffix(".html").unlink(missing_ok=True)  # the page of these games
                elif size < path.stat().st_size:
                    os.truncate(path, size)


def _plain(value: object) -> object:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
