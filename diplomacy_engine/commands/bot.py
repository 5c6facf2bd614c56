"""`bot`: a player of ours for other programs, which speaks lines of text."""

import gc
import sys
from collections.abc import Iterator
from typing import IO

import msgspec
import numpy as np

from ..constants import NONE
from ..errors import UserError
from ..extras.programs import dui
from ..extras.programs.lines import (
    ABOUT,
    PROTOCOL,
    Answer,
    Hello,
    Line,
    Position,
    decisions_of,
    encode,
    line_decoder,
    load_positions,
    order_texts,
)
from ..games.vector_game import VectorGame
from ..players.asking import ask_player, begin_games
from ..players.loading import load_player
from ..players.protocols import Player, SamplingPlayer
from ..rules.map import MAP_NAMES, Map, load_map
from ._flags import Bot

MOST_GAMES = 100_000


class Host:
    """The other side of a program: positions in, orders out, of a player of ours."""

    def __init__(self, player: Player):
        self.player, self.games = player, VectorGame("standard", 1, threads=1, auto_reset=False)

    def orders(
        self, game_map: Map, positions: list[Position], max_years: int, seed: int | None = None
    ) -> list[dict[str, list[str]]]:
        """Return the orders of each position by power."""
        count = 1 + max((position.game for position in positions), default=0)
        if not 0 < count <= MOST_GAMES or any(position.game < 0 for position in positions):
            raise UserError(f"game numbers must be 0 to {MOST_GAMES - 1:,}")
        games = self.games
        if games.map is not game_map or (games.max_years, games.num_games >= count) != (
            max_years,
            1,
        ):
            count = max(count, games.num_games)
            games = VectorGame(game_map, count, 0, max_years, 1, auto_reset=False)
            self.games = games
        load_positions(games, positions)
        new = [position.game for position in positions if position.new]
        if new:
            begin_games(games, [self.player], np.array(new))
        if seed is not None:
            _seed(self.player, seed)
        decisions = decisions_of(games, positions)
        numbers = np.full(0, NONE, np.int32)
        if decisions.count:
            numbers = ask_player(games, decisions, self.player)
        return order_texts(games, positions, decisions, numbers)


def run_bot(arguments: Bot) -> int:
    player = load_player(arguments.player, greedy=arguments.greedy, seed=arguments.seed)
    gc.freeze()  # positions are many small objects and hold no cycles: looking for them is slow
    gc.set_threshold(100_000)
    speak = _speak_dui if arguments.protocol == "dui" else _speak
    speak(Host(player), sys.stdin.buffer, sys.stdout.buffer)
    return 0


def _speak(host: Host, lines: IO[bytes], out: IO[bytes]) -> None:
    maps: dict[str, Map] = {}
    for number, text in enumerate(lines, 1):
        try:
            line = line_decoder.decode(text)
            answer = _answer(host, maps, line)
        except (UserError, msgspec.MsgspecError) as error:
            raise UserError(f"line {number}: {error}") from None
        if answer is not None:
            out.write(encode(answer) + b"\n")
            out.flush()


def _answer(host: Host, maps: dict[str, Map], line: Line) -> Answer | None:
    if line.hello is not None:
        if line.hello.greedy and hasattr(host.player, "greedy"):
            host.player.greedy = True
        _seed(host.player, line.hello.seed)
        name = f"{host.player.name} ({ABOUT})"
        return Answer(hello=Hello(PROTOCOL, name, None, ["last_orders"]))
    if line.map is not None and line.data is not None:
        maps[line.map] = _map_of(line.map, line.data)
    if line.request is None:
        return None
    name = line.map or "standard"
    if name not in maps:
        if name not in MAP_NAMES:
            raise UserError(f"the map {name:.60} has to come with its data first")
        maps[name] = load_map(name)
    orders = host.orders(maps[name], line.positions, line.max_years, line.seed)
    return Answer(reply=line.request, orders=orders)


def _seed(player: Player, seed: int) -> None:
    if isinstance(player, SamplingPlayer):
        player.generator.manual_seed(seed)


def _map_of(name: str, facts: dict) -> Map:
    bundled = name in MAP_NAMES and load_map(name).facts == facts
    return load_map(name) if bundled else Map(facts, name)


def _speak_dui(host: Host, lines: IO[bytes], out: IO[bytes]) -> None:
    position, power = None, ""
    for line in _texts(lines):
        word, _, rest = line.strip().partition(" ")
        answer = ""
        match word:
            case "dui":
                about = f"id name {host.player.name}\nid author {ABOUT}"
                answer = f"{about}\nprotocol_version 1\nduiok\n"
            case "isready":
                answer = "readyok\n"
            case "position":
                position = dui.position_of(rest, load_map("standard"))
            case "setpower":
                power = rest.strip().upper()
            case "go" if position is None:
                raise UserError("`go` comes before any `position`")
            case "go":
                position.powers = [power]
                (orders,) = host.orders(load_map("standard"), [position], 0)
                texts = map(dui.their_order, orders.get(power, []))
                answer = f"bestorders {' ; '.join(texts)}".rstrip() + "\n"
            case "quit":
                return
        if answer:
            out.write(answer.encode())
            out.flush()


def _texts(lines: IO[bytes]) -> Iterator[str]:
    for line in lines:
        yield line.decode(errors="replace")
