"""The command `play`: a game on a local page, or in the terminal."""

import errno
import glob
import os
import re
import socket
import time
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .._files import check_target
from .._jit import announce_compilation
from .._suggest import quoted
from ..errors import UserError
from ..games.game import Game
from ..pictures.replays.replay import make_replay
from ..play.file import GUEST, HOST, PLAYER, PlayRecord, Seat, read_session
from ..play.server import PlayServer
from ..play.session import PlaySession
from ..play.talk import players_talk
from ..play.terminal import TextGame
from ..players.advice import advice, orders_by_player
from ..players.bots import BOTS
from ..players.loading import load_members, load_player
from ..players.names import DrawnSpec, VoiceSpec, drawn_names, parse_player
from ..players.policy.files import CHECKPOINT, policies_of
from ..players.population import Population, PopulationMember, drawn_member
from ..players.protocols import ExplainingPlayer, Player
from ..players.trust import check_named
from ..press.press import MOST_ROUNDS, PressRules
from ..rules.map import MAP_NAMES, Map, load_map
from ._console import print_notes
from ._flags import Play
from ._matches import check_assume, map_of, press_rules

MAP = "standard"  # where nothing says which
FOLDER = Path("runs") / "play"
_RUNS = 10  # of the user's own that the page offers
TALKERS = ("nash+dumbbot", "dealer+dumbbot", "peaceful+dumbbot")  # to choose on the page


def run_play(arguments: Play) -> int:
    if arguments.watch and (arguments.power or arguments.guest):
        raise UserError("--watch seats nobody, so it cannot be combined with --power or --guest")
    if arguments.text and arguments.guest:
        raise UserError("--guest needs the page: in the terminal one person plays")
    if arguments.explain and not arguments.text:
        raise UserError("--explain has no effect without --text: the page has a button for hints")
    session_maker = _resumed if arguments.resume else _new
    announce_compilation()
    if arguments.text:
        session = session_maker(arguments)
        TextGame(session, explain=arguments.explain).run()
        _tell(session)
        return 0
    _check_host(arguments.host)
    # The port is tried before a file is written, the session before the link is shown.
    server = PlayServer(None, arguments.host, arguments.port)
    with server:
        server.session = session_maker(arguments)
        _print_links(server)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print(f"\nThe game is saved in {server.session.file}.")
        _tell(server.session)
    return 0


def _tell(session: PlaySession) -> None:
    """Print who the members of a population were, once the game is over."""
    for power, seat in (session.now.seats or {}).items() if session.game.is_over else ():
        if seat.player in session.drawn:
            population, member = _member(seat.player, session.game.map, session.seed)
            place = 1 + population.members.index(member)
            print(
                f"{power} was {member.name}: {member.scheme}, rating {member.rating:.1f}, "
                f"{place} of {len(population.members)} members"
            )


def _check_host(host: str) -> None:
    """Raise UserError if an address is not one of this machine's."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except (OSError, UnicodeError) as error:  # of a name that is none, the server says more
        if getattr(error, "errno", None) == errno.EADDRNOTAVAIL:
            raise UserError(
                f"--host {host} is not an address of this machine; use 127.0.0.1 for this "
                "machine only, 0.0.0.0 to let in others on its network"
            ) from None


def _print_links(server: PlayServer) -> None:
    session = server.session
    print(f"Open {server.link(HOST)}")
    for power in session.people():
        if session.now.seats[power].kind == GUEST:
            print(f"{power}, for somebody else: {server.link(power)}")
    print(f"To watch: {server.link('watch')}")
    if not server.is_loopback:
        print("Other machines can reach this page; anyone with a link can play its seat.")
    print(f"The game is saved after every step in {session.file}; Ctrl-C stops, and")
    print(f"python -m diplomacy_engine play --resume {session.file} continues it.", flush=True)


def _new(arguments: Any) -> PlaySession:
    talk, hint = arguments.press is not None, [arguments.hint] if arguments.hint else []
    named = [*(arguments.against or ()), *hint]
    game_map = map_of(arguments.map, named, arguments.script, MAP)
    opponents = arguments.against or _usual_opponents(arguments, game_map, talk)
    press = press_rules(arguments, [*opponents, *hint], MOST_ROUNDS)
    opponents = drawn_names(opponents, len(game_map.powers))
    game_map = game_map.with_teams(arguments.teams, arguments.team_victory)
    years = arguments.max_years or game_map.max_years
    seed = time.time_ns() % 2**62 if arguments.seed is None else arguments.seed
    seats = _seats(arguments, game_map, opponents)
    free = arguments.map is None and seats is None and all(n in (*BOTS, *TALKERS) for n in named)
    maps = MAP_NAMES if free and not (arguments.watch or arguments.text) else ()
    game = _new_game(game_map, years, press, arguments.draws_after)
    return _session(arguments, game, opponents, seats, seed, maps=maps, press=press)


def _usual_opponents(arguments: Any, game_map: Map, talk: bool) -> list[str]:
    """Return who plays where nobody was named: on the page the best policy of the map."""
    plain = arguments.text or arguments.watch or arguments.resume
    return [("nash+dumbbot" if talk else "dumbbot") if plain else offered(game_map.name, talk)[0]]


def offered(map_name: str, talk: bool) -> list[str]:
    """Return who may be chosen on the page: policies, best first, searches with the best, bots.

    After the policies that come along, the newest of the user's own runs of the map.
    """
    policies = policies_of(map_name) if find_spec("torch") else []
    own = Path("runs").glob(f"{glob.escape(map_name)}__*/{CHECKPOINT}") if policies else ()
    runs = [str(file.parent) for file in sorted(own, key=os.path.getmtime, reverse=True)[:_RUNS]]
    searches = [f"fast:{name}" for name in policies[:1]]
    if talk:
        voices = [f"nash+{name}" for name in policies[:1]]
        return [*voices, *TALKERS, *policies, *runs, *searches, *BOTS]
    return [*policies, *runs, *searches, *BOTS] if policies else ["dumbbot", *BOTS]


def _new_game(
    game_map: Map, max_years: int | None, press: PressRules | None, draws_after: int | None
) -> Game:
    rules = {} if press is None else {"press": press.protocol, "press_rounds": press.rounds}
    return Game(game_map, max_years=max_years, draw_votes=draws_after is not None, **rules)


def _resumed(arguments: Any) -> PlaySession:
    if arguments.teams or arguments.team_victory:
        raise UserError("--resume keeps the teams of the saved game; leave --teams out")
    names = [*(arguments.against or []), *([arguments.hint] if arguments.hint else [])]
    asked = press_rules(arguments, names if arguments.press else [], MOST_ROUNDS)
    notes: list[str] = []
    game, play = read_session(
        arguments.resume, arguments.map, arguments.max_years, asked, notes.append
    )
    print_notes(notes)
    press = asked if play is None else play.rules
    if asked not in (None, press):
        raise UserError(
            f"the game in {arguments.resume} has a different press, which cannot change"
        )
    for name in names:
        if press is None and isinstance(parse_player(name), VoiceSpec):
            raise UserError(f"{name} talks, but nobody does in the game in {arguments.resume}")
    try:
        make_replay(game.to_saved_game(), game.map)  # what was played is to be looked at
    except UserError as error:
        raise UserError(f"{arguments.resume} cannot be continued: {error}") from None
    if play is None:
        opponents = arguments.against or _usual_opponents(arguments, game.map, press is not None)
        opponents = drawn_names(opponents, len(game.map.powers))
        seats = _seats(arguments, game.map, opponents)
        seed = time.time_ns() % 2**62 if arguments.seed is None else arguments.seed
        game.draw_votes |= arguments.draws_after is not None
        return _session(arguments, game, opponents, seats, seed, press=press)
    if arguments.draws_after not in (None, play.draws_after):
        raise UserError(
            f"the game in {arguments.resume} has different votes for draws, which cannot change"
        )
    if arguments.max_years not in (None, play.max_years):
        raise UserError(f"the game in {arguments.resume} ends after {play.max_years} years")
    seed = play.seed if arguments.seed is None else arguments.seed
    opponents, seats = play.opponents, play.seats
    others = arguments.against and drawn_names(arguments.against, len(game.map.powers))
    others = others if others != opponents else None  # the same players stay where they sit
    if others:
        opponents = others
    elif not arguments.against and seed != play.seed and any(map(_is_drawn, opponents)):
        raise UserError(
            "--seed would draw different members of the population from those in this game"
        )
    if others or arguments.power or arguments.guest or arguments.watch:
        people = {power: seat for power, seat in (seats or {}).items() if seat.kind != PLAYER}
        given = _seats(arguments, game.map, opponents, people)
        seats = seats and (given or seats)
    sitting = [seat.player for seat in (seats or {}).values() if seat.kind == PLAYER]
    check_named([*opponents, *sitting], arguments.against or (), arguments.resume)
    if play.hint and not arguments.hint:
        check_named([play.hint], names, arguments.resume, "--hint")
    arguments.save = arguments.save or arguments.resume
    return _session(arguments, game, opponents, seats, seed, play, press=press)


def _session(
    arguments: Any,
    game: Game,
    opponents: list[str],
    seats: dict[str, Seat] | None,
    seed: int,
    play: PlayRecord | None = None,
    maps: Sequence[str] = (),
    press: PressRules | None = None,
) -> PlaySession:
    def new_game(name: str) -> Game:
        nonlocal game_map
        chosen = game_map = load_map(name)
        years = arguments.max_years or chosen.max_years
        return _new_game(chosen, years, press, arguments.draws_after)

    def load(name: str) -> Player:
        if name in drawn:
            population, member = drawn[name]
            given = {"greedy": arguments.greedy, "seed": seed, "threads": 1}
            return load_members(population, [member], **given)[0]
        return load_player(
            name,
            game_map=game_map,
            script=arguments.script,
            greedy=arguments.greedy,
            seed=seed,
            assume=arguments.assume,
        )

    game_map = game.map
    hint = arguments.hint or (play and play.hint)
    names = list(dict.fromkeys([*opponents, *([hint] if hint else [])]))
    drawn = {name: _member(name, game.map, seed) for name in names if _is_drawn(name)}
    check_assume(arguments, names)
    for name in names:
        _rehearse(game, name, load(name))
    file = _file(arguments, game.map, play)
    return PlaySession(
        game,
        file,
        opponents,
        load,
        seats=seats,
        hint=hint,
        seed=seed,
        saved=play,
        offered=partial(offered, talk=press is not None),
        maps=maps,
        new_game=new_game if maps else None,
        press=press,
        drawn={name: member.name for name, (_, member) in drawn.items()},
        draws_after=arguments.draws_after if play is None else play.draws_after,
    )


def _is_drawn(name: str) -> bool:
    return isinstance(parse_player(name), DrawnSpec)


def _member(name: str, game_map: Map, seed: int) -> tuple[Population, PopulationMember]:
    spec = parse_player(name)
    if spec.number is None:
        raise UserError(f"{quoted(name)} is not one of the members drawn")
    return drawn_member(spec.folder, spec.number, game_map, seed)


def _rehearse(game: Game, name: str, player: Player) -> None:
    """Let a player order and explain once, on a copy: what fails does so before the game begins,
    and what must be compiled is."""
    trial = game.copy()
    try:
        if trial.press is not None and not trial.is_over:
            players_talk(trial, dict.fromkeys(trial.powers, player), 0)
        given = orders_by_player(trial, player, trial.powers, 0)
        if given and isinstance(player, ExplainingPlayer):
            advice(trial, player, next(iter(given)))
    except UserError:
        raise
    except Exception as error:  # a checkpoint's script is the user's own
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"{name} cannot give orders or hints: {reason}") from error
    if not trial.is_over:
        trial.adjudicate()


def _seats(
    arguments: Any,
    game_map: Map,
    opponents: list[str],
    people: dict[str, Seat] | None = None,
) -> dict[str, Seat] | None:
    """Return who plays what by the flags, else as `people` sit; None if the host shall choose."""
    seats = {} if arguments.watch or arguments.power or arguments.guest else dict(people or {})
    for name in arguments.guest:
        _check_power(game_map, name)
        seats[game_map.powers[game_map.power_number(name)]] = Seat(GUEST)
    if arguments.power:
        _check_power(game_map, arguments.power)
        power = game_map.powers[game_map.power_number(arguments.power)]
        if power in seats and seats[power].kind == GUEST:
            raise UserError(f"{power} is both yours and a guest's")
        seats[power] = Seat(HOST)
    if not seats and not arguments.watch and not people:
        return None
    left = [power for power in game_map.powers if power not in seats]
    seats |= {p: Seat(PLAYER, opponents[n % len(opponents)]) for n, p in enumerate(left)}
    return seats


def _check_power(game_map: Map, name: str) -> None:
    """Raise UserError, naming the map to choose, for a power that only other maps have."""
    maps = [other for other in MAP_NAMES if name.upper() in load_map(other).powers]
    if name.upper() not in game_map.powers and maps:
        raise UserError(
            f"{name!r} is not a power of map {game_map.name} ({', '.join(game_map.powers)}); "
            f"--map {' or --map '.join(maps)} has it"
        )


def _file(arguments: Any, game_map: Map, play: PlayRecord | None) -> Path:
    """Return where the game is kept; a file of another game is never overwritten."""
    if arguments.save:
        file = Path(arguments.save)
        own = play is not None and arguments.resume and file == Path(arguments.resume)
        check_target(file)
        if file.exists() and not own:
            raise UserError(f"{file} exists; to continue the game in it, use --resume {file}")
        return file
    FOLDER.mkdir(parents=True, exist_ok=True)
    stem = f"{re.sub(r'[^A-Za-z0-9_-]', '_', game_map.name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    numbers = (f"{stem}{end}.jsonl" for end in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(FOLDER / name for name in numbers if not (FOLDER / name).exists())
