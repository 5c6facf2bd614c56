"""The command `play`: a game on a local page, or in the terminal."""

import os
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace as changed
from functools import partial
from pathlib import Path
from secrets import randbelow

from msgspec.structs import replace

from .._files import check_target
from .._jit import announce_compilation
from .._suggest import quoted
from ..constants import canonical_phase
from ..errors import UserError
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
from ..players.names import any_searches, drawn_names
from ..players.trust import check_named
from ..rules.game_rules import GameRules
from ..rules.map import MAP_NAMES, Map, load_map
from ..textgame.game import Game
from ._console import print_notes
from ._flags import Play
from ._matches import check_voices, map_of, rule_changes, rules_of
from ._opponents import (
    TALKERS,
    drawn,
    is_drawn,
    levels,
    load,
    member_of,
    mixed,
    offered,
    rank,
    rated,
)

MAP = "standard"  # where nothing says which
FOLDER = Path("runs") / "play"


def run_play(arguments: Play) -> int:
    announce_compilation()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one board: more threads wait for each other
    if arguments.text:
        session = _session(arguments)
        TextGame(session, explain=arguments.explain).run()
        _tell(session)
        return 0
    # The port is tried before a file is written, the session before the link is shown.
    server = PlayServer(None, arguments.host, arguments.port, partial(_reopened, arguments))
    with server:
        server.session = _session(arguments)
        _print_links(server)
        threading.Thread(target=_load_mixed, args=(server,), daemon=True).start()
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print(f"\nThe game is saved in {server.session.file}.")
        _tell(server.session)
    return 0


def _reopened(arguments: Play, file: Path) -> PlaySession:
    """Return the session of a file, as `--resume` would open it, with the same way to play."""
    own = Play(
        resume=str(file),
        greedy=arguments.greedy,
        script=arguments.script,
    )
    return _opened(own, *_resumed(own, []))


def _load_mixed(server: PlayServer) -> None:
    server.shown.wait()  # the first board would wait for PyTorch
    server.session.load_mixed()


def _tell(session: PlaySession) -> None:
    """Print who the members of a population were, once the game is over, and one's rank."""
    for power, seat in (session.now.seats or {}).items() if session.game.is_over else ():
        if seat.player in session.drawn:
            population, member = member_of(seat.player, session.game.map, session.record.seed)
            place = 1 + population.members.index(member)
            print(
                f"{power} was {member.name}: {member.scheme}, rating {member.rating:.1f}, "
                f"{place} of {len(population.members)} members"
            )
    if session.standing():
        print(f"Your rank: {session.standing()}")


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


def _session(arguments: Play) -> PlaySession:
    hint = [arguments.hint] if arguments.hint else []
    named = [*(arguments.against or ()), *hint]
    if arguments.resume:
        game, record = _resumed(arguments, named)
        return _opened(arguments, game, record)
    checkpoints = [name for name in named if name != MIXED]
    rules = rules_of(arguments, map_of(arguments.map, checkpoints, MAP))
    usual = arguments.against or _usual_opponents(arguments, rules)
    check_voices(rules, [*usual, *hint])
    game = Game(rules)
    record = _new_record(arguments, game, usual)
    free = arguments.map is None and record.seats is None
    free = free and all(name in (*BOTS, *TALKERS, MIXED) for name in named)
    maps = MAP_NAMES if free and not (arguments.watch or arguments.text) else ()
    return _opened(arguments, game, record, maps)


def _new_record(arguments: Play, game: Game, opponents: Sequence[str]) -> PlayRecord:
    talk = game.table is not None
    opponents = drawn_names(opponents, len(game.powers))
    seed = randbelow(10**6) if arguments.seed is None else arguments.seed
    if MIXED in opponents and not mixed(game.map.name, talk):
        raise UserError(f"--against {MIXED}: there are no bundled policies of map {game.map.name}")
    return PlayRecord(
        opponents=opponents,
        seats=_seats(arguments, game.map, opponents, seed, talk),
        hint=arguments.hint,
        seed=seed,
    )


def _usual_opponents(arguments: Play, rules: GameRules) -> list[str]:
    """Return who plays where nobody was named: on the page a mixed table of the map's policies."""
    talk = rules.press is not None
    if arguments.text or arguments.watch or arguments.resume:
        return ["nash+dumbbot" if talk else "dumbbot"]
    return list(offered(rules.map.name, talk))[:1]


def _resumed(arguments: Play, named: Sequence[str]) -> tuple[Game, PlayRecord]:
    file, notes = arguments.resume, []
    changes = rule_changes(arguments)
    fixed_flags = {name: changes.pop(name, None) for name in ("teams", "team_victory")}
    game, play = read_session(file, arguments.map, notes.append, arguments.game, **changes)
    print_notes(notes)
    if play is not None:
        fixed_flags |= {k: v for k, v in changes.items() if v != getattr(game.rules, k)}
        by_seed = not arguments.against and any(map(is_drawn, play.opponents))
        if by_seed and arguments.seed not in (None, play.seed):  # it draws who they are
            fixed_flags["seed"] = arguments.seed
    for name in (name for name, value in fixed_flags.items() if value is not None):
        flag = f"--{name.replace('_', '-')}"
        raise UserError(f"{flag} cannot change the game in {file}; leave it out")
    check_voices(game.rules, named)
    if game.rules.press == "propose-choose":
        raise UserError(f"{file}: people cannot talk so; say --press offers or --press mutual")
    if arguments.phase:
        names, phase = [past["name"] for past in game.history], canonical_phase(arguments.phase)
        if phase not in names:
            span = f"it goes from {names[0]} to {names[-1]}" if names else "it has none"
            raise UserError(f"{file} has no phase {quoted(phase, 40)} that was played: {span}")
        game, play = rebuild(game, names.index(phase), concessions=False), None
    if play is None:
        usual = arguments.against or _usual_opponents(arguments, game.rules)
        return game, _new_record(arguments, game, usual)
    others = arguments.against and drawn_names(arguments.against, len(game.powers))
    others = others if others != play.opponents else None  # the same players stay where they sit
    opponents, seats = others or play.opponents, play.seats
    seed = play.seed if arguments.seed is None else arguments.seed
    if seats and (others or arguments.power or arguments.guest or arguments.watch):
        people = {power: seat for power, seat in seats.items() if seat.kind != PLAYER}
        talk = game.table is not None
        seats = _seats(arguments, game.map, opponents, seed, talk, people) or seats
    sitting = [seat.player for seat in (seats or {}).values() if seat.kind == PLAYER]
    check_named([*opponents, *sitting], arguments.against or (), file)
    if play.hint and not arguments.hint:
        check_named([play.hint], named, file, "--hint")
    hint = arguments.hint or play.hint
    return game, replace(play, opponents=opponents, seats=seats, hint=hint, seed=seed)


def _opened(
    arguments: Play, game: Game, record: PlayRecord, maps: Sequence[str] = ()
) -> PlaySession:
    """Return a session, which is saved from here on. Its players are tried once loaded."""
    names = dict.fromkeys([*record.opponents, *([record.hint] if record.hint else [])])
    if arguments.assume and not any_searches(names):  # flags do not show who sits in a resumed game
        raise UserError("--assume has no effect: nobody in this game searches")
    file = _file(arguments, game.map, arguments.resume if record.tokens else None)

    def new_game(name: str) -> Game:
        game_map = load_map(name)
        years = arguments.max_years or game_map.max_years
        return Game(changed(session.game.rules, map=game_map, max_years=years))

    choices = Choices(offered, mixed, levels, rated, maps, new_game)
    session = PlaySession(game, file, partial(load, arguments), record, choices, drawn, rank)
    return session


def _seats(
    arguments: Play,
    game_map: Map,
    opponents: list[str],
    seed: int,
    talk: bool,
    people: dict[str, Seat] | None = None,
) -> dict[str, Seat] | None:
    """Return who plays what by the flags, else as `people` sit; None if the host shall choose."""
    seats = {} if arguments.watch or arguments.power or arguments.guest else dict(people or {})
    seats |= {_power(game_map, name): Seat(GUEST) for name in arguments.guest}
    if arguments.power:
        power = _power(game_map, arguments.power)
        if power in seats:
            raise UserError(f"{power} is both yours and a guest's")
        seats[power] = Seat(HOST)
    if not seats and not arguments.watch and not people:
        return None
    open_powers = [power for power in game_map.powers if power not in seats]
    named = {power: opponents[n % len(opponents)] for n, power in enumerate(open_powers)}
    drawn = mixed_table(named, mixed(game_map.name, talk), seed)
    return seats | {power: Seat(PLAYER, name) for power, name in drawn.items()}


def _power(game_map: Map, name: str) -> str:
    return game_map.powers[game_map.power_number(name)]


def _file(arguments: Play, game_map: Map, own: str | None) -> Path:
    """Return where the game is kept: in its `own` file, or a new one; no other is overwritten."""
    name = arguments.save or own
    if name:
        file = Path(name)
        check_target(file)
        if file.exists() and file != Path(own or ""):
            raise UserError(f"{file} exists; to continue the game in it, use --resume {file}")
        return file
    FOLDER.mkdir(parents=True, exist_ok=True)
    stem = f"{re.sub(r'[^A-Za-z0-9_-]', '_', game_map.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    numbers = (f"{stem}{end}.jsonl" for end in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(FOLDER / name for name in numbers if not (FOLDER / name).exists())
