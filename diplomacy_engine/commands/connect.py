"""`connect`: a player takes a seat in games that run elsewhere."""

import argparse
import json
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from .._files import atomic_write, check_target
from .._jit import announce_compilation
from .._suggest import printable, quoted
from ..connections.connection import (
    Connection,
    ConnectionLost,
    environment_secret,
    read_address,
    read_secret,
)
from ..connections.diplomacy_server import (
    ANY,
    Account,
    DiplomacyDummies,
    DiplomacySeats,
    list_games,
)
from ..connections.diplomacy_wire import Wire
from ..connections.loop import PATIENCE, TALK, SeatLoop, check_plays
from ..connections.talk import check_voice
from ..connections.webdip import WebdipSeat
from ..connections.webdip_site import Site
from ..errors import UserError
from ..games.webdiplomacy import FIRST_YEAR
from ..players.loading import load_player
from ..players.names import VoiceSpec, parse_player
from ..rules.map import Map, load_map
from ..rules.state import LAST_YEAR
from ._arguments import add_assume, add_script, check_assume, whole_number
from ._console import make_console, print_table

_WEBDIP = ("WEBDIP_URL", "WEBDIP_API_KEY", "WEBDIP_GAME_ID", "WEBDIP_COUNTRY_ID", "WEBDIP_SEED")
_WEBDIP += ("WEBDIP_END_YEAR",)
DUMMIES = "all-dummies"  # in place of a power: those that nobody plays

_EXAMPLES = (
    "diplomacy localhost:8432 --list",
    "diplomacy localhost:8432 --game-id g1 --power FRANCE --player dumbbot",
    f"diplomacy localhost:8432 --power {DUMMIES} --player dumbbot",
    "webdip https://example.org --game-id 5 --player dumbbot",
)


def add_connect(commands) -> None:
    """Describe `connect`."""
    parser = commands.add_parser(
        "connect",
        help="seat a player in games that run elsewhere",
        description="A player takes a seat on a server: it reads the position, gives orders, "
        "checks which of them the server accepted, and waits for the next phase.",
        examples=_EXAMPLES,
    )
    servers = parser.add_subparsers(title="servers", metavar="SERVER")
    _add_diplomacy(servers)
    _add_webdip(servers)


def _of(server: str) -> list[str]:
    """Return the examples of one kind of server."""
    return [line.removeprefix(f"{server} ") for line in _EXAMPLES if line.startswith(server)]


def _add_diplomacy(servers) -> None:
    parser = servers.add_parser(
        "diplomacy",
        help="the server of the diplomacy package",
        description="Play on a server of the diplomacy package. That package need not be "
        "installed here.",
        needs="HOST:PORT",
        examples=_of("diplomacy"),
    )
    add = parser.add_argument
    add("address", metavar="HOST:PORT", help="address of the server, such as localhost:8432")
    add("--game-id", metavar="ID", help="the game")
    add(
        "--power",
        nargs="+",
        default=[],
        metavar="POWER",
        help=f"the power to play, or several; {ANY}: a free one, or whichever the server assigns; "
        f"{DUMMIES}: all that nobody plays, in all games of the server",
    )
    add("--list", action="store_true", help="list the server's games and their free powers")
    add(
        "--user",
        help="name to log in with, or the prefix of the names of several powers; a new name is "
        "registered and then needs its password (default: a new name for each power and run)",
    )
    add("--password-file", metavar="FILE", help="file with the user's password")
    add(
        "--registration-password-file",
        metavar="FILE",
        help="file with the game's password",
    )
    add("--ssl", action="store_true", help="encrypt the connection (TLS)")
    add(
        "--ca",
        metavar="FILE",
        help="with --ssl: certificates (.pem) to trust, such as the server's own if it is "
        "self-signed (default: those that the system trusts)",
    )
    _add_vote_draw(add)
    add(
        "--talk",
        type=whole_number(1, 10**5),
        metavar="SECONDS",
        help="how long a player that talks, such as nash+dumbbot, may make and answer offers in "
        f"each movement phase, at most a third of the deadline (default: {TALK:.0f})",
    )
    _add_playing(parser)
    parser.set_defaults(run=run_diplomacy)


def _add_webdip(servers) -> None:
    parser = servers.add_parser(
        "webdip",
        help="a webDiplomacy site",
        description="Play on a webDiplomacy site with the API of September 2026. Whatever is not "
        f"given is taken from the environment: {', '.join(_WEBDIP)}. The key can only come from "
        "there or from a file.",
        needs="[URL]",
        examples=_of("webdip"),
    )
    add = parser.add_argument
    add("url", nargs="?", metavar="URL", help="the site, such as https://webdiplomacy.net")
    add(
        "--game-id",
        type=whole_number(0, 2**62),
        metavar="N",
        help="the game (default: the only one that the key's user plays)",
    )
    add(
        "--country",
        type=whole_number(1, 1000),
        metavar="N",
        help="the country's number (default: the user's)",
    )
    add("--key-file", metavar="FILE", help="file with the user's key")
    add(
        "--vote-draw",
        choices=("never", "always"),
        default="never",
        help="how to vote on a draw in each phase (default: never)",
    )
    _add_playing(parser)
    parser.set_defaults(run=run_webdip)


def _add_vote_draw(add: Callable) -> None:
    """Add --vote-draw, on servers where a vote is of one phase."""
    add(
        "--vote-draw",
        type=_vote_draw,
        metavar="never|always|YEAR",
        default="never",
        help="how to vote on a draw in each phase; YEAR: for one from that year on, unless the "
        "power is close to winning (default: never)",
    )


def _vote_draw(text: str) -> str | int:
    if text in ("never", "always"):
        return text
    try:
        return whole_number(1, LAST_YEAR)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; or never, or always") from None


def _add_playing(parser: argparse.ArgumentParser) -> None:
    """Add the options of every connection."""
    add = parser.add_argument
    add("--player", metavar="PLAYER", help="who gives the orders: a bot, checkpoint or run folder")
    add("--map", metavar="FILE", help="map of the game (default: standard)")
    add("--greedy", action="store_true", help="policies play their likeliest orders")
    add_assume(parser)
    add_script(add)
    add(
        "--seed",
        type=whole_number(0, 2**62),
        metavar="N",
        help="seed of the player's random choices (default: 1)",
    )
    add(
        "--max-years",
        type=whole_number(1, 1000),
        metavar="N",
        help="years of a game; policies see how many are left (default: the map's)",
    )
    add("--wait", action="store_true", help="wait until the server is up")
    add(
        "--patience",
        type=whole_number(0, 10**7),
        default=int(PATIENCE),
        metavar="SECONDS",
        help=f"how long to keep trying once the server is gone (default: {PATIENCE:.0f})",
    )
    add("--save", metavar="FILE", help="write the game here at the end, for `replay` (.jsonl)")


def run_diplomacy(arguments: argparse.Namespace) -> int:
    """Play until the game is over, or list games."""
    if arguments.ca and not arguments.ssl:
        raise UserError("--ca has no effect: it needs --ssl")
    wire = Wire(read_address(arguments.address), arguments.ssl, arguments.ca)
    if arguments.list:
        return _list(arguments, wire)
    powers, dummies = _powers(arguments)
    account = _accounts(arguments)
    registration = ""
    if arguments.registration_password_file:
        registration = read_secret(arguments.registration_password_file, "password")

    def connect(game_map: Map, years: int | None) -> Connection:
        options = {"any_map": arguments.map is not None, "max_years": years, "say": say}
        if dummies:
            return DiplomacyDummies(wire, game_map, **options)
        names = [p if p == ANY else game_map.powers[game_map.power_number(p)] for p in powers]
        accounts = {name: account(name, len(names)) for name in names}
        options |= {"registration": registration, "must_talk": must_talk}
        return DiplomacySeats(wire, arguments.game_id, accounts, game_map, **options)

    must_talk = isinstance(parse_player(arguments.player or ""), VoiceSpec)
    if arguments.talk is not None and dummies:
        raise UserError(f"--talk has no effect: with --power {DUMMIES} nobody talks")
    return _play(arguments, connect, carries_talk=not dummies)


def run_webdip(arguments: argparse.Namespace) -> int:
    """Play until the game is over."""
    url = arguments.url or os.environ.get("WEBDIP_URL", "")
    if not url:
        raise UserError("give the site's address, or set WEBDIP_URL")
    if arguments.key_file:
        key = read_secret(arguments.key_file, "key")
    else:
        key = environment_secret("WEBDIP_API_KEY", "key")
    if not key:
        raise UserError("set WEBDIP_API_KEY to the user's key, or give a --key-file")
    game_id, country, seed, end_year = (
        _environment_number(name) for name in ("GAME_ID", "COUNTRY_ID", "SEED", "END_YEAR")
    )
    game_id = game_id if arguments.game_id is None else arguments.game_id
    country = arguments.country or country
    if arguments.seed is None:
        arguments.seed = seed
    if end_year is not None and arguments.max_years is None:
        if end_year < FIRST_YEAR:
            raise UserError(f"WEBDIP_END_YEAR must be from {FIRST_YEAR} on, not {end_year}")
        arguments.max_years = end_year - FIRST_YEAR + 1
    site = Site(url, key)

    def connect(game_map: Map, years: int | None) -> Connection:
        return WebdipSeat(site, game_id, country, game_map, max_years=years, say=say)

    return _play(arguments, connect)


def _environment_number(name: str) -> int | None:
    """Return a number that a ladder has set, None if it has not."""
    text = os.environ.get(f"WEBDIP_{name}", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise UserError(f"WEBDIP_{name} must be a whole number, not {quoted(text, 40)}")
    return int(text)


def _list(arguments: argparse.Namespace, wire: Wire) -> int:
    for flag in ("game_id", "power", "player", "save"):
        if getattr(arguments, flag):
            raise UserError(f"--{flag.replace('_', '-')} has no effect with --list")
    try:
        games = list_games(wire, _accounts(arguments)("list", 1))
    except ConnectionLost as error:
        raise UserError(f"{wire.name}: {error}") from None
    rows = [
        (
            game.id + (" (asks a password)" if game.asks_password else ""),
            [
                game.map,
                game.phase,
                game.status,
                " ".join(game.free) or "-",
                f"{game.deadline} s" if game.deadline else "none",
            ],
        )
        for game in games
    ]
    if not rows:
        print(f"{wire.name} has no game in progress")
        return 0
    columns = ["map", "phase", "status", "free powers", "deadline"]
    print_table(make_console(), "game", columns, rows)
    return 0


def _powers(arguments: argparse.Namespace) -> tuple[list[str], bool]:
    """Return the powers to play, and whether they are those that nobody plays."""
    powers = arguments.power
    if not powers:
        raise UserError("choose a power with --power, or list the games with --list")
    if DUMMIES in powers:
        for flag in ("user", "password_file", "game_id", "registration_password_file", "save"):
            if getattr(arguments, flag):
                raise UserError(f"--{flag.replace('_', '-')} has no effect with --power {DUMMIES}")
        if arguments.vote_draw != "never":
            raise UserError("--vote-draw has no effect: powers that nobody plays have no vote")
        if len(powers) > 1:
            raise UserError(f"--power {DUMMIES} cannot be combined with other powers")
        return [], True
    if not arguments.game_id:
        raise UserError("choose a game with --game-id; --list shows them")
    if ANY in powers and len(powers) > 1:
        raise UserError(f"--power {ANY} cannot be combined with other powers")
    names = [power.upper() for power in powers]
    if len(set(names)) < len(names):
        raise UserError(f"--power names a power twice: {' '.join(names)}")
    return powers, False


def _accounts(arguments: argparse.Namespace) -> Callable[[str, int], Account]:
    """Return what makes the account of a power, one of so many."""
    user, file = arguments.user, arguments.password_file
    if bool(user) != bool(file):
        raise UserError("--user and --password-file go together")
    word = read_secret(file, "password") if file else secrets.token_urlsafe(24)
    run = secrets.token_hex(4)

    def account(power: str, count: int) -> Account:
        if user:
            return Account(user if count == 1 else f"{user}_{power}", word)
        return Account(f"diplomacy_engine_{power}_{run}", word)

    return account


def say(text: str) -> None:
    """Print what happens, at once."""
    print(printable(text), flush=True)


def _play(
    arguments: argparse.Namespace,
    connect: Callable[[Map, int | None], Connection],
    carries_talk: bool = False,
) -> int:
    """Load the player, connect and play; tell and keep what came of it."""
    if not arguments.player:
        raise UserError("choose who gives the orders with --player, such as dumbbot")
    spec = parse_player(arguments.player)
    check_voice(spec)
    if isinstance(spec, VoiceSpec) and not carries_talk:
        raise UserError(
            f"{arguments.player} talks, but nobody would hear it here: give only the player "
            "after its +"
        )
    if arguments.save:
        target = Path(arguments.save)
        check_target(target)
        if target.exists():
            raise UserError(f"{target} exists already")
    check_assume(arguments, [arguments.player])
    seed = 1 if arguments.seed is None else arguments.seed
    game_map = load_map(arguments.map or "standard")
    connection = connect(game_map, arguments.max_years or game_map.max_years)
    announce_compilation()
    player = load_player(
        arguments.player,
        game_map=game_map,
        script=arguments.script,
        greedy=arguments.greedy,
        seed=seed,
        assume=arguments.assume,
    )
    check_plays(player, game_map)
    loop = SeatLoop(
        connection,
        player,
        seed,
        draws=arguments.vote_draw == "always",
        draws_after=arguments.vote_draw if isinstance(arguments.vote_draw, int) else None,
        talk=TALK if getattr(arguments, "talk", None) is None else arguments.talk,
        patience=arguments.patience,
        wait=arguments.wait,
        say=say,
    )
    try:
        loop.run()
    except KeyboardInterrupt:
        say("stopped; the seats stay taken")
    finally:
        if loop.counts.phases:
            print(loop.counts, file=sys.stderr)
        if arguments.save and loop.counts.last:
            lines = [json.dumps(saved) + "\n" for saved in loop.saved_games()]
            atomic_write(arguments.save, "".join(lines).encode())
    return 0
