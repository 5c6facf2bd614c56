"""The status line, on a terminal and elsewhere."""

import io
import subprocess
import sys
from contextlib import suppress

import pytest

from diplomacy_engine import _progress as progress
from diplomacy_engine._progress import Progress


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("width", [0, 60, 120])
def test_what_is_shown_of_a_run_is_golden(width, monkeypatch, golden):
    """A line every ten seconds where there is no terminal, of width 0; on one, what fits of it: the
    share that is done, the time that is left, wins, then the rest, whenever it is redrawn."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width or 80))
    for name in ("COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    clock, file = Clock(), Terminal() if width else io.StringIO()
    line = Progress(10_000, start=500, file=file, clock=clock)
    wins, shares = {"random": 1.0, "a__b_1": 0.971}, {"win_pool_share": 0.125, "draw_share": 0.0}
    line.update(500)
    for second in range(1, 90):
        clock.now += progress.REDRAW_SECONDS / 2 if second % 9 else 3
        new = {"wins": wins, **shares} if second == 15 else {}
        kept = None if second > 50 else 1000 * second
        line.update(min(10_100, 500 + second**2 * 2), entropy=second / 99, pool=kept, **new)
    line.message("saved [bold]\n\x1b[2J")
    line.close()
    line.summarize({"games": 1_000, "win against a__b_1": 1, "file": "runs/[x]:x:/checkpoint.pt"})
    golden(f"progress {width}", [ascii(part) for part in file.getvalue().splitlines()])


def test_a_reader_that_has_left_does_not_stop_the_work(tmp_path):
    """As in `| head`: the line is drawn no more, and work goes on."""
    code = (
        "from diplomacy_engine._progress import Progress\n"
        "line = Progress(10, every=0)\n"
        "for step in range(10):\n"
        "    line.update(step)\n"
        "line.message('m'); line.close(); line.summarize({'a': 1})\n"
        f"open({str(tmp_path / 'done')!r}, 'w')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0 and err == b"" and (tmp_path / "done").exists()


def test_the_rate_is_a_recent_one():
    """Steps of a language model, which take a while each, are told apart from none."""
    clock = Clock()
    few = Progress(60, unit="steps", file=io.StringIO(), clock=clock)
    assert "| 0/s |" in few.line()
    clock.now += 10
    few.update(4)
    assert "4 of 60 steps | 0.4/s" in few.line()
    few.update(62)  # past the end no time is left
    assert few.line().startswith("100.0% | 62 of 60 steps | 6.2/s | 0:00:00 left")


def test_leaving_by_an_exception_frees_the_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    with suppress(RuntimeError), Progress(100, file=file) as line:
        line.update(1)
        raise RuntimeError
    assert file.getvalue().endswith("\x1b[?25h")  # the cursor is shown again
