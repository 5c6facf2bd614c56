"""What the terminal shows while kernels are compiled.

Nothing is said of compilations that take two seconds or less in all. Then a line says that kernels
are compiled, and on a terminal a second line counts them until the last one is ready.
"""

import sys
import time

import numba
from numba.core import event

from ._kernel_cache import kernels_are_cached


def announce_compilation() -> None:
    """Say it when kernels are compiled, from now on; if there are none yet, say so at once."""
    if numba.config.DISABLE_JIT or _Compilation.current is not None:
        return
    _Compilation.current = compilation = _Compilation()
    event.register("numba:compile", compilation)
    if not kernels_are_cached():
        compilation.announce("this takes about a minute")


class _Compilation(event.Listener):
    """Announces compilation, and counts kernels on a terminal's line."""

    current: "_Compilation | None" = None
    SILENT = 2.0  # seconds of compilation that need no words

    def __init__(self) -> None:
        self.announced = False
        self.kernels = 0  # compiled so far
        self.depth = 0  # of the compilations that go on: a kernel is compiled within another
        self.started = 0.0  # seconds, when the outermost one began
        self.seconds = 0.0  # that all earlier ones took

    def announce(self, how_long: str) -> None:
        """Say that kernels are compiled, and how long it takes."""
        self.announced = True
        note = f"compiling the game kernels for this machine, once: {how_long}"
        print(note, file=sys.stderr, flush=True)

    def on_start(self, _event: event.Event) -> None:
        if self.depth == 0:
            self.started = time.monotonic()
        self.depth += 1

    def on_end(self, _event: event.Event) -> None:
        self.depth -= 1
        self.kernels += 1
        now = time.monotonic()
        if not self.announced and self.seconds + now - self.started > self.SILENT:
            self.announce("some are still missing")
        if self.depth == 0:
            self.seconds += now - self.started
        self.show(f"{self.kernels} kernels compiled" if self.depth else "")

    def show(self, text: str) -> None:
        """Show a text on the terminal's last line in place of what stood there; "": clear it."""
        terminal = sys.__stderr__  # the trainer's status line makes lines of what sys.stderr gets
        if self.announced and terminal is not None and terminal.isatty():
            print(f"\r\x1b[K{text}", end="", file=terminal, flush=True)
