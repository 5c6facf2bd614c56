"""`connect`: a player takes a seat in games that run elsewhere."""

import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .._files import check_target
from .._jit import announce_compilation
from .._suggest import printable
from ..errors import UserError
from ..extras.connections import diplomacy_server
from ..extras.connections.connection import Connection, ConnectionLost, read_address, read_secret
from ..extras.connections.diplomacy_wire import Wire
from ..extras.connections.loop import TALK, SeatLoop, check_plays
from ..extras.connections.talk import check_voice
from ..players.names import VoiceSpec, parse_player
from ..rules.map import load_map
from ._console import make_console, print_table
from ._flags import DUMMIES, Diplomacy
from ._matches import load_players, rules_of, write_lines


def run_diplomacy(arguments: Diplomacy) -> int:
    wire = Wire(read_address(arguments.address), arguments.ssl, arguments.ca)
    if arguments.list:
        return _list(arguments, wire)
    powers, dummies = _powers(arguments)
    account = _accounts(arguments)
    registration = ""
    if arguments.registration_password_file:
        registration = read_secret(arguments.registration_password_file, "password")
    if not arguments.player:
        raise UserError("give a player for the orders, such as --player dumbbot")
    spec = parse_player(arguments.player)
    check_voice(spec)
    talks = isinstance(spec, VoiceSpec)
    if talks and dummies:
        raise UserError(f"{arguments.player} talks, but nobody would hear it: leave out its +")
    check_target(arguments.save)
    if arguments.save and Path(arguments.save).exists():
        raise UserError(f"{arguments.save} exists already")
    game_map = load_map(arguments.map or "standard")
    rules = rules_of(arguments, game_map)
    if isinstance(arguments.vote_draw, int):
        rules = replace(rules, draws_after=arguments.vote_draw)
    options = {"any_map": arguments.map is not None, "say": say}
    connection: Connection
    if dummies:
        connection = diplomacy_server.DiplomacyDummies(wire, rules, **options)
    else:
        names = [
            p if p == diplomacy_server.ANY else game_map.powers[game_map.power_number(p)]
            for p in powers
        ]
        accounts = {name: account(name, len(names)) for name in names}
        options |= {"registration": registration, "must_talk": talks}
        connection = diplomacy_server.DiplomacySeats(
            wire, rules, arguments.game_id, accounts, **options
        )
    announce_compilation()
    (player,) = load_players([arguments.player], game_map, arguments, careful=True)
    check_plays(player, game_map)
    loop = SeatLoop(
        connection,
        player,
        arguments.seed,
        draws=arguments.vote_draw == "always",
        talk=TALK if arguments.talk is None else arguments.talk,
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


def _powers(arguments: Diplomacy) -> tuple[list[str], bool]:
    names = [power.upper() for power in arguments.power]
    alone = len(names) > 1 and not {diplomacy_server.ANY, DUMMIES}.isdisjoint(arguments.power)
    if alone or len(set(names)) < len(names):
        text = " ".join(arguments.power)
        raise UserError(
            f"--power {text}: name each power once, and {diplomacy_server.ANY} or {DUMMIES} alone"
        )
    if DUMMIES in arguments.power:
        return [], True
    if not names or not arguments.game_id:
        raise UserError("give --game-id and --power; --list shows the games and their free powers")
    return arguments.power, False


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
