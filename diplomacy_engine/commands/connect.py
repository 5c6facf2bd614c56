"""`connect`: a player takes a seat in games that run elsewhere."""

import os
import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from .._compilation import announce_compilation
from .._files import check_target
from .._suggest import printable
from ..errors import UserError
from ..extras.connections import diplomacy_server
from ..extras.connections.connection import (
    Connection,
    ConnectionLost,
    environment_secret,
    read_address,
    read_secret,
)
from ..extras.connections.diplomacy_wire import Wire
from ..extras.connections.loop import TALK, SeatLoop, check_plays
from ..extras.connections.talk import check_voice
from ..extras.connections.webdip import WebdipSeat
from ..extras.connections.webdip_site import Site
from ..players.names import VoiceSpec, parse_player
from ..records import convert
from ..rules.game_rules import GameRules
from ..rules.map import load_map
from ..textgame.imports.webdiplomacy import FIRST_YEAR
from ._console import make_console, print_table
from ._flags import DUMMIES, Diplomacy, Webdip
from ._matches import load_players, rules_of, write_lines


def run_diplomacy(arguments: Diplomacy) -> int:
    wire = Wire(read_address(arguments.address), arguments.ssl, arguments.ca)
    if arguments.list:
        return _list(arguments, wire)
    game_id, powers = _powers(arguments)
    account = _accounts(arguments)
    registration = ""
    if arguments.registration_password_file:
        registration = read_secret(arguments.registration_password_file, "password")

    def connect(rules: GameRules) -> Connection:
        game_map, any_map = rules.map, arguments.map is not None
        if not game_id:
            return diplomacy_server.DiplomacyDummies(wire, rules, any_map=any_map, say=say)
        names = [
            p if p == diplomacy_server.ANY else game_map.powers[game_map.power_number(p)]
            for p in powers
        ]
        accounts = {name: account(name, len(names)) for name in names}
        seats = diplomacy_server.DiplomacySeats(
            wire, rules, game_id, accounts, any_map=any_map, say=say
        )
        seats.registration, seats.must_talk = registration, must_talk
        return seats

    must_talk = isinstance(parse_player(arguments.player or ""), VoiceSpec)
    return _play(arguments, connect, carries_talk=bool(game_id))


def run_webdip(arguments: Webdip) -> int:
    url = arguments.url or os.environ.get("WEBDIP_URL", "")
    if arguments.key_file:
        key = read_secret(arguments.key_file, "key")
    else:
        key = environment_secret("WEBDIP_API_KEY", "key")
    for value, flag, variable in ((url, "an address", "URL"), (key, "--key-file", "API_KEY")):
        if not value:
            raise UserError(f"give {flag}, or set WEBDIP_{variable}")
    game_id, country, seed, end_year = (
        _environment_number(name) for name in ("GAME_ID", "COUNTRY_ID", "SEED", "END_YEAR")
    )
    game_id = game_id if arguments.game_id is None else arguments.game_id
    country = arguments.country or country
    if arguments.seed is None:
        arguments.seed = seed
    if end_year is not None and arguments.max_years is None:
        arguments.max_years = end_year - FIRST_YEAR + 1
    site = Site(url, key)

    def connect(rules: GameRules) -> Connection:
        return WebdipSeat(site, game_id, country, rules, say=say)

    return _play(arguments, connect)


def _environment_number(name: str) -> int | None:
    text = os.environ.get(f"WEBDIP_{name}", "").strip()
    kind = Annotated[int, Meta(ge=FIRST_YEAR if name == "END_YEAR" else 0, lt=2**62)]
    return convert(kind, text, f"WEBDIP_{name}", strict=False) if text else None


def _list(arguments: Diplomacy, wire: Wire) -> int:
    try:
        rows = diplomacy_server.list_games(wire, _accounts(arguments)("list", 1))
    except ConnectionLost as error:
        raise UserError(f"{wire.name}: {error}") from None
    if not rows:
        print(f"{wire.name} has no game in progress")
        return 0
    print_table(make_console(), "game", diplomacy_server.LISTED, rows)
    return 0


def _powers(arguments: Diplomacy) -> tuple[str, Sequence[str]]:
    """Return the game and our powers in it; "" for dummies, which play in any."""
    names = [power.upper() for power in arguments.power]
    alone = len(names) > 1 and not {diplomacy_server.ANY, DUMMIES}.isdisjoint(arguments.power)
    if alone or len(set(names)) < len(names):
        text = " ".join(arguments.power)
        raise UserError(
            f"--power {text}: name each power once, and {diplomacy_server.ANY} or {DUMMIES} alone"
        )
    if DUMMIES in arguments.power:
        return "", []
    if not names or not arguments.game_id:
        raise UserError("give --game-id and --power; --list shows the games and their free powers")
    return arguments.game_id, arguments.power


def _accounts(arguments: Diplomacy) -> Callable[[str, int], diplomacy_server.Account]:
    user, file = arguments.user, arguments.password_file
    if bool(user) != bool(file):
        raise UserError("--user and --password-file go together")
    word = read_secret(file, "password") if file else secrets.token_urlsafe(24)
    run = secrets.token_hex(4)

    def account(power: str, count: int) -> diplomacy_server.Account:
        if user:
            return diplomacy_server.Account(user if count == 1 else f"{user}_{power}", word)
        return diplomacy_server.Account(f"diplomacy_engine_{power}_{run}", word)

    return account


def say(text: str) -> None:
    print(printable(text), flush=True)


def _play(
    arguments: Diplomacy | Webdip,
    connect: Callable[[GameRules], Connection],
    carries_talk: bool = False,
) -> int:
    if not arguments.player:
        raise UserError("give a player for the orders, such as --player dumbbot")
    spec = parse_player(arguments.player)
    check_voice(spec)
    if isinstance(spec, VoiceSpec) and not carries_talk:
        raise UserError(f"{arguments.player} talks, but nobody would hear it: leave out its +")
    check_target(arguments.save)
    if arguments.save and Path(arguments.save).exists():
        raise UserError(f"{arguments.save} exists already")
    arguments.seed = 1 if arguments.seed is None else arguments.seed
    game_map = load_map(arguments.map or "standard")
    rules = rules_of(arguments, game_map)
    if isinstance(arguments.vote_draw, int):
        rules = replace(rules, draws_after=arguments.vote_draw)
    connection = connect(rules)
    announce_compilation()
    (player,) = load_players([arguments.player], game_map, arguments, careful=True)
    check_plays(player, game_map)
    loop = SeatLoop(
        connection,
        player,
        arguments.seed,
        draws=arguments.vote_draw == "always",
        talk=getattr(arguments, "talk", None) or TALK,
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
        if loop.counts.last:
            write_lines(arguments.save, loop.saved_games())
    return 0
