"""`python -m diplomacy_engine replay`: a page, a picture, or the terminal."""

import shlex
import sys
from pathlib import Path

from .._files import atomic_write, check_target
from ..errors import UserError
from ..pictures.png import png
from ..play.review import page_facts
from ..replays.gif import gif
from ..replays.page import page
from ..replays.replay import Replay, frame_svg, load_replays
from ..replays.text import frame_text
from ._console import print_notes
from ._flags import Replay as ReplayFlags
from .review import reviewed

_SUFFIXES = (".html", ".svg", ".png", ".gif")
_CLEAR = "\x1b[2J\x1b[H"


def run_replay(arguments: ReplayFlags) -> int:
    if bool(arguments.output) == arguments.text:
        raise UserError("give either --output FILE, for a page or picture, or --text")
    target = Path(arguments.output) if arguments.output else None
    if target is not None:
        if target.suffix.lower() not in _SUFFIXES:
            raise UserError(f"{target} must end in {', '.join(_SUFFIXES)}")
        check_target(target)
    is_page = target is not None and target.suffix.lower() == ".html"
    notes: list[str] = []
    reviews: list[dict] = []

    def review(replay: Replay, saved: dict) -> None:
        if arguments.review:
            result, decisions = reviewed(saved, arguments.map, [arguments.review])
            reviews.append(page_facts(replay, result, decisions))

    replays = load_replays(arguments.file, arguments.map, notes.append, review)
    print_notes(notes)
    game = arguments.game or 1
    if game > len(replays):
        raise UserError(
            f"{arguments.file} has {len(replays)} game{'s' * (len(replays) > 1)}, no game {game}"
        )
    replay, theme = replays[game - 1], arguments.theme or "light"
    number = None if arguments.phase is None else replay.find(arguments.phase)
    if target is None:
        show(replay, number)
        return 0
    if is_page:
        title = Path(arguments.file).resolve().name
        file = "" if Path(arguments.file).is_dir() else shlex.quote(arguments.file)
        content = page(replays, title, reviews, file).encode()
    elif target.suffix.lower() == ".gif":
        content = gif(replay, theme, last=number)
    else:
        last = len(replay.frames) - 1
        svg = frame_svg(replay, last if number is None else number, theme, 1200)
        picture = target.suffix.lower() == ".png"
        content = png(svg, replay.map, theme) if picture else svg.encode()
    atomic_write(target, content)
    print(f"{target}: {len(content) / 1e6:.2f} MB")
    return 0


def show(replay: Replay, number: int | None = None) -> None:
    """Step through a game; without keyboard or screen print that phase, or all."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        for i in range(len(replay.frames)) if number is None else [number]:
            print(frame_text(replay, i), end="\n\n")
        return
    at, last = number or 0, len(replay.frames) - 1
    while True:
        print(_CLEAR + frame_text(replay, at), end="\n\n")
        print("Enter: next   p: previous   q: quit ", end="", flush=True)
        word = sys.stdin.readline().lower()
        if word.strip() == "q" or not word:
            return
        at = min(max(at + (-1 if word.strip() == "p" else 1), 0), last)
