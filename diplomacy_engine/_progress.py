"""The status line of a long run, and the table at its end. On a terminal one line, cut to the
width, is redrawn; elsewhere a whole line is printed every so many seconds."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import IO, TextIO

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ._suggest import printable

RATE_SECONDS = 30.0  # decisions/s and time left are those of the last so many seconds
REDRAW_SECONDS = 0.25
BAR_WIDTH = 20


def forget(file: IO[str]) -> None:
    """Let what is still to be written to a closed pipe vanish, or Python complains at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


@contextmanager
def ended_by_reader() -> Iterator[None]:
    """End the program if the reader of what a block prints leaves, as `head` does."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # here, where a closed pipe can still be told
    except BrokenPipeError:
        forget(sys.stdout)
        raise SystemExit(141) from None


def say(text: str) -> None:
    """Print a line at once; if its reader has left, as `head` does, work goes on."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        forget(sys.stdout)


def fail(error: object, status: int = 2) -> int:
    print(f"error: {error}", file=sys.stderr)
    return status


class _Console(Console):
    """A console whose reader may leave, as `head` does: work goes on, where rich would end it."""

    def on_broken_pipe(self) -> None:
        forget(self.file)


class Progress:
    """A status line: how far, how fast, how long still, and the latest figures. Earlier runs made
    the `start` steps; `every` seconds there is a plain line; `keep`: a terminal's line stays."""

    def __init__(
        self,
        total: int,
        start: int = 0,
        unit: str = "decisions",
        every: float = 10.0,
        file: TextIO | None = None,
        keep: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ):
        """`total` steps of a `unit`; `clock` returns seconds; `file`: None is stdout."""
        self.total, self.unit, self.every = max(1, total), unit, every
        self._clock = clock
        self._console = _Console(
            file=file or sys.stdout, highlight=False, emoji=False, soft_wrap=True
        )
        self._live = None
        if self._console.is_terminal:
            # Redrawn by update alone: a thread of rich's would compete with the kernels.
            self._live = Live(
                Text(""), console=self._console, auto_refresh=False, transient=not keep
            )
            self._live.start()
        self._wins: Mapping[str, float] = {}
        self._figures: dict[str, object] = {}
        self._step = start
        self._marks = deque([(clock(), start)])
        self._drawn = -1e9 if self._live else clock()

    def update(
        self,
        step: int,
        wins: Mapping[str, float] | None = None,
        **figures: float | int | str | None,
    ) -> None:
        """Report the step reached, and what is new: `wins`, shares by player, the one that matters
        most last; figures, of which None takes one away. What is left out stays as it was. Names of
        figures are shown with spaces, shares (`..._share`) in percent."""
        self._step = step
        self._wins = self._wins if wins is None else wins
        for name, value in figures.items():
            if value is None:
                self._figures.pop(name, None)
            else:
                self._figures[name] = value
        now = self._clock()
        if now - self._marks[-1][0] >= RATE_SECONDS / 30:
            self._marks.append((now, step))
            while len(self._marks) > 2 and now - self._marks[1][0] >= RATE_SECONDS:
                self._marks.popleft()
        if now - self._drawn >= (REDRAW_SECONDS if self._live else self.every):
            self._drawn = now
            self._draw()

    def rate(self) -> float:
        """Return the steps a second of the last half minute; 0 before there are any."""
        begin, first = self._marks[0]
        seconds = self._clock() - begin
        return (self._step - first) / seconds if seconds > 0 else 0.0

    def line(self, width: int | None = None) -> str:
        """Return the status line; of `width` characters at most, without what matters least."""
        done = min(self._step / self.total, 1.0)
        rate = self.rate()
        remaining = max(0, self.total - self._step)  # the last update may go past it
        seconds = round(remaining and remaining / rate) if rate > 0 or not remaining else None
        duration = "?" if seconds is None else str(timedelta(seconds=seconds))
        parts: list[tuple[str, float]] = [  # text, and how soon it gives way
            (f"{done:6.1%}", 0),
            (f"{self._step:,} of {self.total:,} {self.unit}", 5),
            (f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s", 4),
            (f"{duration} left", 1),
        ]
        for number, (player, share) in enumerate(self._wins.items()):
            parts.append((f"win {player} {share:.1%}", 2 - number / 1000))
        for name, value in self._figures.items():
            rank = 3 if name == "win_pool_share" else 6
            parts.append((f"{label(name)} {show(name, value)}", rank))
        if width is not None:
            shown, room = [], width + 3
            for part in sorted(parts, key=lambda part: part[1]):
                if len(part[0]) + 3 <= room:
                    shown.append(part)
                    room -= len(part[0]) + 3
            parts = [part for part in parts if part in shown]
        return " | ".join(text for text, _ in parts)

    def _draw(self) -> None:
        if self._live is None:
            self._console.print(self.line(), markup=False)
            self._console.file.flush()
            return
        width = self._console.width - 1  # the last column may set off a new line
        line = self.line(width).strip()
        bar = Text()
        if len(line) + BAR_WIDTH < width:
            full = int(BAR_WIDTH * min(self._step / self.total, 1.0))
            bar = Text("=" * full, "green") + Text("-" * (BAR_WIDTH - full) + " ", "bright_black")
        self._live.update(bar + Text(line), refresh=True)

    def message(self, text: str) -> None:
        lines = map(printable, text.splitlines())  # parts may come from a checkpoint
        self._console.print("\n".join(lines), markup=False)
        self._console.file.flush()

    @property
    def finished(self) -> bool:
        return self._step >= self.total

    def close(self) -> None:
        if self._live is not None:
            self._draw()
            self._live.stop()
            self._live = None
        elif self._step > self._marks[0][1]:
            self._draw()

    def summarize(self, summary: Mapping[str, object], title: str = "summary") -> None:
        table = Table(title=escape(title), show_header=False)
        table.add_column()
        table.add_column(overflow="fold")  # a path must be there whole
        for name, value in summary.items():
            cells = name, show(name, value)  # names may come from a checkpoint
            table.add_row(*(escape(printable(text)) for text in cells))
        self._console.print(table)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def label(name: str) -> str:
    """Return a figure's name for people: spaces for underscores, `share` left out."""
    return name.removesuffix("_share").replace("_", " ")


def show(name: str, value: object) -> str:
    if isinstance(value, str | bool):
        return str(value)
    number = float(value)  # type: ignore[arg-type]
    if name.endswith("_share"):
        return f"{number:.1%}"
    return f"{int(number):,}" if number.is_integer() else f"{number:,.3g}"
