"""The command `play`: a game on a local page, or in the terminal.

`_open` makes the game of the flags: a new one, one that goes on from a file, or one that begins
from a phase of a file. _play_records.py says who plays in it.
"""

import dataclasses
import os
import re
import threading
import time
from functools import partial
from pathlib import Path

from .._compilation import announce_compilation
from .._files import check_target
from .._suggest import quoted
from ..constants import canonical_phase
from ..errors import UserError
from ..flags import dashed
from ..play.file import GUEST, HOST, WATCH, PlayRecord, games_in, read_session, rebuild
from ..play.server import PlayServer
from ..play.session import MIXED, Choices, PlaySession
from ..play.terminal import TextGame
from ..players.bots import BOTS
from ..players.names import is_drawn
from ..records import changed, refuse_without_effect
from ..rules.game_rules import RuleOptions
from ..rules.map import MAP_NAMES, Map
from ..textgame.game import Game
from . import _opponents
from ._console import print_notes
from ._flags import Play, PlayerFlags
from ._matches import check_voices, map_of, rule_changes, rules_of
from ._play_records import continued_record, named_players, new_record
from ._rated_games import rank

MAP = "standard"  # where nothing says which
FOLDER = Path("runs") / "play"


def run_play(flags: Play) -> int:
    """Play until the game, or the page, is left; return the exit code."""
    announce_compilation()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one board: more threads wait for each other
    if flags.text:
        session = _open(flags)
        TextGame(session, explain=flags.explain).run()
    else:
        session = _serve(flags)
    _print_end(session)
    return 0


def _serve(flags: Play) -> PlaySession:
    """Serve the page until somebody stops it; return the game it was begun for."""
    # The port is tried before a file is written, the session before the link is shown.
    with PlayServer(flags.host, flags.port, partial(_open_file, flags)) as server:
        server.session = session = _open(flags)
        _print_links(server)
        threading.Thread(target=_load_mixed, args=(server,), daemon=True).start()
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print(f"\nThe game is saved in {session.file}.")
    return session


def _load_mixed(server: PlayServer) -> None:
    """Load the players of a mixed table while people look at the first board."""
    server.shown.wait()  # the first board would wait for PyTorch
    server.session.load_mixed()


def _print_links(server: PlayServer) -> None:
    """Print the links of all seats, and how the game is continued."""
    session = server.session
    print(f"Open {server.link(HOST)}")
    games = games_in(session.file.parent)
    going_on = [file for file, game in games.items() if game.goes_on and file != session.file]
    if not session.now.seats and going_on:
        print(f"Your last game goes on there, or with --resume {going_on[0]}")
    for power in session.now.powers_of(GUEST):
        print(f"{power}, for somebody else: {server.link(power)}")
    print(f"To watch: {server.link(WATCH)}")
    if not server.is_loopback:
        print("Other machines can reach this page; anyone with a link can play its seat.")
    print(f"The game is saved after every step in {session.file}; Ctrl-C stops, and")
    print(f"python -m diplomacy_engine play --resume {session.file} continues it.", flush=True)


def _print_end(session: PlaySession) -> None:
    """Print the names of drawn members once the game is over, and the person's rank."""
    game, seed = session.game, session.record.seed
    if not game.is_over:
        return
    for power, seat in session.now.seats.items():
        if seat.player in session.drawn:
            population, member = _opponents.member_of(seat.player, game.map, seed)
            place = 1 + population.members.index(member)
            print(
                f"{power} was {member.name}: {member.scheme}, rating {member.rating:.1f}, "
                f"{place} of {len(population.members)} members"
            )
    if session.standing():
        print(f"Your rank: {session.standing()}")


# --- What the flags begin or resume ---------------------------------------------------------------


def _open(flags: Play, by_link: bool = False) -> PlaySession:
    """Return the game that flags begin or resume; it is saved from here on. For a game that is
    opened `by_link` nobody has named them."""
    game, record = _game_of_file(flags, flags.resume) if flags.resume else _new_game(flags)
    if not by_link:
        _refuse_without_effect(flags, record)
    return PlaySession(
        game=game,
        file=_target_file(flags, game.map, record),
        load=partial(_opponents.load, flags),
        record=record,
        choices=_choices(flags, record),
        draw=_opponents.drawn,
        rank=rank,
    )


def _refuse_without_effect(flags: Play, record: PlayRecord) -> None:
    """Refuse --assume, --greedy and --script if they concern no player of the game.

    The conditions in _flags.py read the players from the flags `against` and `hint`. So they get a
    copy of the flags in which these name the players of the record, also those of a resumed game.
    """
    watch = record.seats is not None  # else the page asks who plays
    against = tuple(record.opponents)
    named = dataclasses.replace(flags, resume=None, watch=watch, against=against, hint=record.hint)
    refuse_without_effect(named, {"assume", "greedy", "script"} & changed(flags), dashed)


def _choices(flags: Play, record: PlayRecord) -> Choices:
    """Return what the page offers; other maps only while nothing says which one is played, and if
    the players named play on all."""
    undecided = not (flags.resume or flags.map or flags.watch or flags.text or record.seats)
    everywhere = all(name in (*BOTS, *_opponents.TALKERS, MIXED) for name in named_players(flags))
    return Choices(
        offered=_opponents.offered,
        mixed=_opponents.mixed,
        levels=_opponents.levels,
        rated=_opponents.rated,
        maps=MAP_NAMES if undecided and everywhere else (),
    )


def _open_file(flags: Play, file: Path) -> PlaySession:
    """Return the game of a file as `--resume` opens it, where players play as the flags say."""
    how = {field.name: getattr(flags, field.name) for field in dataclasses.fields(PlayerFlags)}
    return _open(Play(resume=str(file), **how), by_link=True)


def _new_game(flags: Play) -> tuple[Game, PlayRecord]:
    """Return a new game, of the map of the flags, or of the first policy that they name."""
    checkpoints = [name for name in named_players(flags) if name != MIXED]
    rules = rules_of(flags, map_of(flags.map, checkpoints, MAP))
    check_voices(rules, named_players(flags))
    game = Game(rules)
    return game, new_record(flags, game)


def _game_of_file(flags: Play, file: str) -> tuple[Game, PlayRecord]:
    """Return the game of a file, or one that begins from a phase of it."""
    notes: list[str] = []
    changes = rule_changes(flags)
    game, saved = read_session(file, flags.map, notes.append, flags.game, **changes)
    print_notes(notes)
    _refuse_to_change(flags, changes, game, saved)
    check_voices(game.rules, named_players(flags))
    if game.rules.press == "propose-choose":
        raise UserError(f"{file}: people cannot talk so; say --press offers or --press mutual")
    if flags.phase:
        game = _before_phase(game, flags.phase, file)
        return game, new_record(flags, game)
    if saved is None:  # another program's game
        return game, new_record(flags, game)
    return game, continued_record(flags, game, saved)


def _refuse_to_change(
    flags: Play, changes: RuleOptions, game: Game, saved: PlayRecord | None
) -> None:
    """Refuse flags that would change a game which goes on, and teams, which no file's game gets.
    `changes` are the rules that flags name."""
    fixed = [name for name in ("teams", "team_victory") if getattr(flags, name)]
    if saved is not None:
        fixed += [name for name, value in changes.items() if value != getattr(game.rules, name)]
        by_seed = not flags.against and any(map(is_drawn, saved.opponents))
        if by_seed and flags.seed not in (None, saved.seed):  # the seed draws the members
            fixed.append("seed")
    if fixed:
        raise UserError(
            f"{dashed(fixed[0])} cannot change the game in {flags.resume}; leave it out"
        )


def _before_phase(game: Game, phase: str, file: str) -> Game:
    """Return a game of a file as it was before a phase; who has given up plays on."""
    names = [past["name"] for past in game.history]
    name = canonical_phase(phase)
    if name not in names:
        span = f"it goes from {names[0]} to {names[-1]}" if names else "it has none"
        raise UserError(f"{file} has no phase {quoted(name, 40)} that was played: {span}")
    return rebuild(game, names.index(name), concessions=False)


def _target_file(flags: Play, game_map: Map, record: PlayRecord) -> Path:
    """Return where the game is kept: in its own file, or a new one; no other is overwritten."""
    # Without tokens it is a new game, or another program's.
    own_file = flags.resume if record.tokens else None
    if name := flags.save or own_file:
        file = Path(name)
        check_target(file)
        if file.exists() and file != Path(own_file or ""):
            raise UserError(f"{file} exists; to continue the game in it, use --resume {file}")
        return file
    FOLDER.mkdir(parents=True, exist_ok=True)
    stem = f"{re.sub(r'[^A-Za-z0-9_-]', '_', game_map.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    numbers = (f"{stem}{end}.jsonl" for end in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(FOLDER / name for name in numbers if not (FOLDER / name).exists())
