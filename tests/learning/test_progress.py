"""The status line, on a terminal and elsewhere."""

import io
import re
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


def test_plain_lines():
    clock, file = Clock(), io.StringIO()
    line = Progress(10_000, every=10, file=file, clock=clock)
    for second in range(1, 26):
        clock.now = 100.0 + second
        new = {"wins": {"a__b_1": 0.971}, "win_b_share": 0.125} if second == 5 else {}
        line.update(second * 100, entropy=1.25, pool=3, **new)
    line.close()
    line.summarize({"games": 1_000, "win against a__b_1": 1, "file": "runs/[x]:x:/checkpoint.pt"})
    lines = file.getvalue().splitlines()
    assert lines[0] == (
        " 10.0% | 1,000 of 10,000 decisions | 100/s | 0:01:30 left | win a__b_1 97.1% | "
        "entropy 1.25 | pool 3 | win b 12.5%"
    )
    assert lines[1].startswith(" 20.0% | 2,000 of 10,000 decisions | 100/s | 0:01:20 left")
    assert lines[2].startswith(" 25.0%")
    table = "\n".join(lines[3:])
    assert "summary" in table and "runs/[x]:x:/checkpoint.pt" in table
    assert "win against a__b_1" in table and "1,000" in table  # names as they are
    assert "\x1b" not in file.getvalue() and "\r" not in file.getvalue()


@pytest.mark.parametrize("width", [60, 120])
def test_the_win_rates_come_first(width, monkeypatch):
    """On a terminal, what fits: the share done, the time left, wins; then the rest."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    clock, file = Clock(), Terminal()
    line = Progress(900_000, file=file, clock=clock)
    wins, shares = {"random": 1.0, "dumbbot": 0.695}, {"win_pool_share": 0.941, "draw_share": 0.0}
    clock.now += 200
    line.update(752_633, wins, **shares, entropy=0.0483, pool=17)
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", file.getvalue()).split("\r")[-1].strip()
    assert len(shown) < width and "…" not in shown
    assert "83.6%" in shown and "left" in shown and "win dumbbot 69.5%" in shown
    assert "win pool 94.1%" in shown and ("win random 100.0%" in shown) == (width >= 80)
    assert ("752,633 of 900,000" in shown) == (width >= 120)
    line.close()


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
    line = Progress(1_000_000, start=5_000, file=io.StringIO(), clock=clock)
    assert line.rate() == 0 and "? left" in line.line()
    step = 5_000
    for second in range(200):
        clock.now += 1
        step += 10 if second < 100 else 1_000
        line.update(step)
    assert 950 < line.rate() < 1_050
    clock.now += 10
    assert line.rate() < 800  # nothing happens any more
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


def test_on_a_terminal_the_line_is_redrawn(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    clock, file = Clock(), Terminal()
    line = Progress(100, file=file, clock=clock)
    line.update(10)
    before = len(file.getvalue())
    line.update(11)
    assert len(file.getvalue()) == before  # too soon
    clock.now += progress.REDRAW_SECONDS
    line.update(50, pool=4)
    assert "50 of 100 decisions" in file.getvalue() and "pool 4" in file.getvalue()
    line.message("saved [bold]\n\x1b[2J")
    assert "saved [bold]\n\\x1b[2J\n" in file.getvalue().replace("\r", "")
    line.update(60, pool=None)
    line.close()
    line.summarize({"games": 3})
    assert "\x1b" in file.getvalue() and "60 of 100" in file.getvalue()
    assert "pool" not in file.getvalue().rpartition("60 of 100")[2]
