"""The command `play`: a game on a local page, or in the terminal."""

import dataclasses
import os
import re
import threading
import time
from functools import partial
from pathlib import Path
from secrets import randbelow

from msgspec.structs import replace

from .._compilation import announce_compilation
from .._files import check_target
from .._suggest import quoted
from ..constants import canonical_phase
from ..errors import UserError
from ..flags import dashed
from ..play.file import (
    GUEST,
    HOST,
    PLAYER,
    WATCH,
    PlayRecord,
    Seat,
    games_in,
    read_session,
    rebuild,
)
from ..play.server import PlayServer
from ..play.session import MIXED, Choices, PlaySession, mixed_table
from ..play.terminal import TextGame
from ..players.bots import BOTS
from ..players.names import drawn_names
from ..players.trust import check_named
from ..records import changed, refuse_without_effect
from ..rules.game_rules import RuleOptions
from ..rules.map import MAP_NAMES, Map
from ..textgame.game import Game
from . import _opponents
from ._console import print_notes
from ._flags import Play
from ._matches import check_voices, map_of, rule_changes, rules_of

MAP = "standard"  # where nothing says which
FOLDER = Path("runs") / "play"


def run_play(flags: Play) -> int:
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
    with PlayServer(None, flags.host, flags.port, partial(_open_file, flags)) as server:
        server.session = session = _open(flags)
        _print_links(server)
        threading.Thread(target=_load_mixed, args=(server,), daemon=True).start()
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print(f"\nThe game is saved in {session.file}.")
    return session


def _load_mixed(server: PlayServer) -> None:
    server.shown.wait()  # the first board would wait for PyTorch
    server.session.load_mixed()


def _print_links(server: PlayServer) -> None:
    session = server.session
    print(f"Open {server.link(HOST)}")
    games = games_in(session.file.parent)
    going_on = [file for file, game in games.items() if game.goes_on and file != session.file]
    if session.now.seats is None and going_on:
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
    for power, seat in (session.now.seats or {}).items() if game.is_over else ():
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


def _open(flags: Play) -> PlaySession:
    """Return the game that flags begin or resume; it is saved from here on."""
    game, record = _resumed(flags) if flags.resume else _begun(flags)
    _refuse_without_effect(flags, record)
    file, choices = _file(flags, game.map, record), _choices(flags, record)
    load = partial(_opponents.load, flags)
    return PlaySession(game, file, load, record, choices, _opponents.drawn, _opponents.rank)


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
    everywhere = all(name in (*BOTS, *_opponents.TALKERS, MIXED) for name in _named_players(flags))
    maps = MAP_NAMES if undecided and everywhere else ()
    return Choices(_opponents.offered, _opponents.mixed, _opponents.levels, _opponents.rated, maps)


def _open_file(flags: Play, file: Path) -> PlaySession:
    """Return the game of a file as `--resume` opens it, where players play as the flags say."""
    return _open(Play(resume=str(file), greedy=flags.greedy, script=flags.script))


def _named_players(flags: Play) -> list[str]:
    return [*flags.against, *filter(None, [flags.hint])]


def _begun(flags: Play) -> tuple[Game, PlayRecord]:
    """Return a new game, of the map of the flags, or of the first policy that they name."""
    checkpoints = [name for name in _named_players(flags) if name != MIXED]
    rules = rules_of(flags, map_of(flags.map, checkpoints, MAP))
    check_voices(rules, _named_players(flags))
    game = Game(rules)
    return game, _new_record(flags, game)


def _resumed(flags: Play) -> tuple[Game, PlayRecord]:
    """Return the game of the file, or one that begins from a phase of it."""
    notes, changes = [], rule_changes(flags)
    game, saved = read_session(flags.resume, flags.map, notes.append, flags.game, **changes)
    print_notes(notes)
    _refuse_to_change(flags, changes, game, saved)
    check_voices(game.rules, _named_players(flags))
    if game.rules.press == "propose-choose":
        raise UserError(
            f"{flags.resume}: people cannot talk so; say --press offers or --press mutual"
        )
    if flags.phase:
        game, saved = _from_phase(flags, game), None
    return game, _new_record(flags, game) if saved is None else _continued(flags, game, saved)


def _refuse_to_change(
    flags: Play, changes: RuleOptions, game: Game, saved: PlayRecord | None
) -> None:
    """Refuse flags that would change a game which goes on, and teams, which no file's game gets.
    `changes` are the rules that flags name."""
    fixed = [name for name in ("teams", "team_victory") if getattr(flags, name)]
    if saved is not None:
        fixed += [name for name, value in changes.items() if value != getattr(game.rules, name)]
        by_seed = not flags.against and any(map(_opponents.is_drawn, saved.opponents))
        if by_seed and flags.seed not in (None, saved.seed):  # the seed draws the members
            fixed.append("seed")
    if fixed:
        raise UserError(
            f"{dashed(fixed[0])} cannot change the game in {flags.resume}; leave it out"
        )


def _from_phase(flags: Play, game: Game) -> Game:
    """Return a game as it was before `--phase`; who has given up plays on."""
    names, phase = [past["name"] for past in game.history], canonical_phase(flags.phase)
    if phase not in names:
        span = f"it goes from {names[0]} to {names[-1]}" if names else "it has none"
        raise UserError(f"{flags.resume} has no phase {quoted(phase, 40)} that was played: {span}")
    return rebuild(game, names.index(phase), concessions=False)


def _new_record(flags: Play, game: Game) -> PlayRecord:
    """Return the record of a game that begins; without --against, a page has the player that it
    offers first, and a terminal a bot."""
    talk = game.table is not None
    against = flags.against or ["nash+dumbbot" if talk else "dumbbot"]
    if not (flags.against or flags.text or flags.watch or flags.resume):
        against = list(_opponents.offered(game.map.name, talk))[:1]
    opponents = drawn_names(against, len(game.powers))
    if MIXED in opponents and not _opponents.mixed(game.map.name, talk):
        raise UserError(f"--against {MIXED}: there are no bundled policies of map {game.map.name}")
    seed = randbelow(10**6) if flags.seed is None else flags.seed
    record = PlayRecord(opponents=opponents, hint=flags.hint, seed=seed)
    return replace(record, seats=_seats(flags, game, record))


def _continued(flags: Play, game: Game, saved: PlayRecord) -> PlayRecord:
    """Return the record of a file with the changes of flags: players, seats, hints, the seed."""
    opponents, seed = saved.opponents, saved.seed if flags.seed is None else flags.seed
    if flags.against:
        opponents = drawn_names(flags.against, len(game.powers))
    record = replace(saved, opponents=opponents, hint=flags.hint or saved.hint, seed=seed)
    # Without such a change all players stay where they sit.
    changes = opponents != saved.opponents or flags.power or flags.guest or flags.watch
    if saved.seats and changes:
        record = replace(record, seats=_seats(flags, game, record) or saved.seats)
    seated = [seat.player for seat in (record.seats or {}).values() if seat.kind == PLAYER]
    check_named([*record.opponents, *seated], flags.against, flags.resume)
    if saved.hint and not flags.hint:
        check_named([saved.hint], _named_players(flags), flags.resume, "--hint")
    return record


def _seats(flags: Play, game: Game, record: PlayRecord) -> dict[str, Seat] | None:
    """Return each power's seat; None if the host chooses on the page.

    People have the powers that flags name, or if they name none and do not say --watch, those that
    people have in the record. The record's opponents have the other powers, in turn.
    """
    guests = [game.powers[game.map.power_number(name)] for name in flags.guest]
    people = dict.fromkeys(guests, Seat(GUEST))
    if flags.power:
        own = game.powers[game.map.power_number(flags.power)]
        if own in people:
            raise UserError(f"{own} is both yours and a guest's")
        people[own] = Seat(HOST)
    if not people and not flags.watch:
        seats = (record.seats or {}).items()
        people = {power: seat for power, seat in seats if seat.kind != PLAYER}
        if not people:
            return None
    opponents, empty = record.opponents, [power for power in game.powers if power not in people]
    named = {power: opponents[n % len(opponents)] for n, power in enumerate(empty)}
    pool = _opponents.mixed(game.map.name, game.table is not None)
    players = mixed_table(named, pool, record.seed)
    return people | {power: Seat(PLAYER, name) for power, name in players.items()}


def _file(flags: Play, game_map: Map, record: PlayRecord) -> Path:
    """Return where the game is kept: in its own file, or a new one; no other is overwritten."""
    own = flags.resume if record.tokens else None  # no tokens: a new game, or another program's
    if name := flags.save or own:
        file = Path(name)
        check_target(file)
        if file.exists() and file != Path(own or ""):
            raise UserError(f"{file} exists; to continue the game in it, use --resume {file}")
        return file
    FOLDER.mkdir(parents=True, exist_ok=True)
    stem = f"{re.sub(r'[^A-Za-z0-9_-]', '_', game_map.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    numbers = (f"{stem}{end}.jsonl" for end in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(FOLDER / name for name in numbers if not (FOLDER / name).exists())
