"""`python -m diplomacy_engine review`: the worst decisions of games, and better orders."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from .._files import atomic_write, check_target
from .._progress import Progress
from .._suggest import counted
from ..errors import UserError
from ..pictures.board import phase_title
from ..play.review import WORST, Reviewed, Reviews, judges_of, page_facts, summary
from ..players.loading import load_player
from ..replays.page import page
from ..replays.replay import make_replay
from ..textgame.imports.games import read_games
from ..textgame.saved_game import read_saved_game
from ._console import make_console, print_notes, print_table
from ._flags import Review
from ._matches import write_lines


def run_review(arguments: Review) -> int:
    target = arguments.output and Path(arguments.output)
    if target and target.suffix.lower() != ".html":
        raise UserError(f"{target} must end in .html")
    check_target(target)
    check_target(arguments.json)
    notes: list[str] = []
    games = list(read_games(arguments.file, arguments.map, note=notes.append))
    print_notes(notes)
    replays, facts, records = [], [], []
    for number, saved in enumerate(games, 1):
        try:
            reviews, decisions = reviewed(
                saved, arguments.map, arguments.player, arguments.power, quiet=False
            )
        except UserError as error:
            which = f", game {number}" if len(games) > 1 else ""
            raise UserError(f"{arguments.file}{which}: {error}") from error
        replays.append(make_replay(saved, arguments.map))
        facts.append(page_facts(replays[-1], reviews, decisions))
        records.append(summary(decisions, reviews.left_out))
        _show(f"game {number} of {len(games)}" * (len(games) > 1), reviews, decisions, records[-1])
    write_lines(arguments.json, records)
    if target:
        title = f"Review of {Path(arguments.file).resolve().name}"
        content = page(replays, title, facts, shlex.quote(arguments.file)).encode()
        atomic_write(target, content)
        print(f"{target}: {len(content) / 1e6:.2f} MB")
    return 0


def reviewed(
    saved: Mapping,
    game_map: str | None,
    judges: Sequence[str],
    powers: tuple[str, ...] = (),
    quiet: bool = True,
) -> tuple[Reviews, list[Reviewed]]:
    """Return the review of a saved game, finished; unless `quiet`, a line tells how far it is."""
    saved_map = read_saved_game(saved, game_map)[1].map
    names = judges or judges_of(saved_map)
    players = [load_player(name, game_map=saved_map) for name in names]
    reviews, decisions = Reviews(saved, players, saved_map, powers), []
    if quiet:
        return reviews, [one for part in reviews for one in part]
    with Progress(reviews.total, unit="decisions", keep=False) as progress:
        for part in reviews:
            decisions += part
            progress.update(reviews.done + len(part))
    return reviews, decisions


def _show(title: str, reviews: Reviews, decisions: list[Reviewed], record: dict) -> None:
    console = make_console()
    rows = []
    for power, figures in record["powers"].items():
        marks = map(str, figures["marks"].values())
        rows.append((power, [f"{figures['accuracy']:.0f}", *marks, figures["losing_since"]]))
    columns = ["accuracy", "!", "?!", "?", "??", "losing since"]
    print_table(console, "power", columns, rows, f"{title} judged by {reviews.judges.name}".strip())
    for power in record["powers"]:
        mine = [one for one in decisions if one.power == power and "?" in one.mark]
        for one in sorted(mine, key=lambda one: -one.loss)[:WORST]:
            better = ", ".join(text for text in one.best if text not in one.orders)
            console.print(
                f"{power} {phase_title(one.phase)}: {one.mark} lost {one.loss:.0f}% of its "
                f"prospects; better: {better or 'fewer orders'}; {one.reasons[0]}"
            )
    if reviews.left_out:
        console.print(f"left out: {counted(len(reviews.left_out), 'thing')}")
        for one in reviews.left_out:
            where = " ".join(filter(None, (one["phase"], one["power"])))
            console.print(f"  {where}: {one['reason']}")
