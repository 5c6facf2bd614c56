"""`bot`: a player of ours for other programs, which speaks lines of text."""

import gc
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import IO, TypeVar

import numpy as np

from ..constants import NONE
from ..errors import UserError
from ..extras.programs import dui, lines
from ..extras.programs.lines import Answer, Arrays, Hello, Line, Message, Position, Talking
from ..extras.programs.talk import Boards, press_of
from ..games.decisions import Decisions
from ..games.vector_game import History, VectorGame
from ..players.advice import ordering
from ..players.asking import ask_player
from ..players.loading import load_player
from ..players.protocols import Player
from ..press.deals import make_offers
from ..press.negotiators import negotiation
from ..press.press import PEACE_ALONE, Press
from ..rules.map import MAP_NAMES, Map, load_map
from ._flags import Bot

_Loaded = TypeVar("_Loaded")
MOST_GAMES = 100_000


class Host:
    """The other side of a program: positions in, orders and offers out, of a player of ours."""

    def __init__(self, player: Player, seed: int):
        self.player, self.seed = player, seed
        self.games = VectorGame("standard", 1, 0, 1, 1)
        self.history = self.games.history = History(self.games)

    def make_games(self, game_map: Map, rows: list[int], max_years: int) -> VectorGame:
        count = 1 + max(rows, default=0)
        if min(rows, default=0) < 0 or count > MOST_GAMES:
            raise UserError(f"game numbers must be 0 to {MOST_GAMES - 1:,}")
        if len(set(rows)) < len(rows):
            raise UserError("a game comes twice")
        games = self.games
        if (games.map, games.max_years) != (game_map, max_years) or games.num_games < count:
            self.games = VectorGame(game_map, count, 0, max_years, threads=1, auto_reset=False)
            self.history = self.games.history = History(self.games)
        return self.games

    def load(
        self, load: Callable[..., _Loaded], *loaded: object, rows: np.ndarray, new: np.ndarray
    ) -> _Loaded:
        """Return `load(games, *loaded)`, which sets up later positions in `rows`. What stood there
        becomes history, unless it is of another game than these, a `new` one (bool)."""
        games, history = self.games, self.history
        before, turn = history.count[rows], games.state.turn[rows]
        history.add(games, rows)
        after, result = history.count[rows], load(games, *loaded)
        later = games.state.turn[rows] > turn
        history.count[rows] = np.where(new, 0, np.where(later, after, before))
        return result

    def set_up(self, game_map: Map, positions: list[Position], max_years: int) -> Decisions:
        """Set up positions, and return the decisions of all powers there."""
        rows = [position.game for position in positions]
        games = self.make_games(game_map, rows, max_years)
        new = np.array([position.new for position in positions], bool)
        self.load(lines.load_positions, positions, self.seed, rows=np.array(rows, int), new=new)
        return games.decisions(np.array(sorted(rows), int))

    def array_orders(self, game_map: Map, arrays: Arrays, line: Line) -> Arrays:
        rows = lines.read_array(arrays, "game", MOST_GAMES - 1, 0)
        games = self.make_games(game_map, rows.tolist(), line.max_years)
        new = np.resize(lines.read_array(arrays, "new", 1, 0) == 1, len(rows))
        decisions = self.load(lines.load_arrays, arrays, rows=rows, new=new)
        numbers = ask_player(games, decisions, self.player)
        return lines.order_array(games, decisions, numbers, arrays)

    def orders(
        self, positions: list[Position], decisions: Decisions, terms: Talking | None = None
    ) -> list[dict[str, list[str]]]:
        """Return the orders of each position by power."""
        games, own = self.games, lines.asked_of(self.games, positions, decisions)
        if not own.count:
            return lines.order_texts(games, positions, own, np.zeros(0, np.int32))
        if terms is None:
            return lines.order_texts(games, positions, own, ask_player(games, own, self.player))
        press = press_of(games, decisions, positions, Boards(games), terms)
        moving = np.flatnonzero(press.talking()[own.game])
        if isinstance(self.player, negotiation.Listener) and len(moving):
            game, power = own.game[moving], own.power[moving]
            self.player.hear(self._talk(press, decisions, positions, game, power))
        honest = negotiation.honest_seats(
            [self.player], np.zeros((games.num_games, games.num_powers), int)
        )
        bound, orders = press.bound(own, honest), games.new_orders()
        numbers = ask_player(games, bound, self.player)
        games.write_orders(orders, bound, numbers)
        press.correct(orders, bound, honest)
        slots = np.flatnonzero(press.talking()[own.game[own.slot_decision]])
        numbers[slots] = orders[own.game[own.slot_decision[slots]], own.slot_province[slots]]
        return lines.order_texts(games, positions, own, numbers)

    def messages(
        self, positions: list[Position], decisions: Decisions, terms: Talking
    ) -> list[list[Message]]:
        """Return the messages of the powers of each position."""
        games, boards, player = self.games, Boards(self.games), self.player
        own, power_number = lines.asked_of(games, positions, decisions), games.map.power_number
        if not isinstance(player, negotiation.Negotiator) or not own.count:
            return [[] for _ in positions]
        press = press_of(games, decisions, positions, boards, terms)
        replies: dict[int, list[Message]] = {position.game: [] for position in positions}
        talk = partial(self._talk, press, decisions, positions)

        def say(row: int, message: Message, words: str = "") -> None:
            replies[row].append(message)
            if words:
                replies[row].append(Message(message.sender, message.recipient, words))

        if terms.ask == "wishes":
            wish = player.wishes(talk(own.game, own.power))
            for d, q in np.argwhere(wish).tolist():
                row, p = int(own.game[d]), int(own.power[d])
                if p != q:
                    say(row, boards.write(row, p, q, PEACE_ALONE))
        elif terms.ask in ("offers", "proposals"):
            offers = getattr(player, terms.ask)(talk(own.game, own.power))
            words = negotiation.spoken(player, offers.count)
            for (row, message), text in zip(boards.offers(offers), words):
                say(row, message, text)
        elif terms.ask in ("answers", "choices"):
            rows = []
            for position in positions:
                powers = {power_number(name) for name in position.powers}
                for offer in boards.read_offers(position.game, position.messages):
                    sides = offer[1:3] if terms.ask == "choices" else offer[2:3]
                    rows += [(power, offer) for power in sides if power in powers]
            if rows:
                seats, offers = zip(*rows)
                agreed = getattr(player, terms.ask)(
                    talk([offer[0] for offer in offers], seats), make_offers(offers)
                )
                words = negotiation.spoken(player, len(rows))
                for (power, offer), yes, text in zip(rows, agreed, words):
                    message, names = boards.write(*offer), games.map.powers
                    if power == offer[2]:
                        verb = "YES" if yes else "REJ"
                        text_of = f"{verb} ( {message.message} )"
                        message = Message(names[power], names[offer[1]], text_of)
                    if yes or power == offer[2]:
                        say(offer[0], message, text)
        else:
            raise UserError(f"unknown talk: {terms.ask:.40}")
        return list(replies.values())

    def _talk(
        self,
        press: Press,
        decisions: Decisions,
        positions: list[Position],
        game: Sequence[int] | np.ndarray,
        power: Sequence[int] | np.ndarray,
    ) -> negotiation.Talk:
        game, power = np.asarray(game, int), np.asarray(power, int)
        index = self.games.map.power_number
        ages = {
            (position.game, index(name), index(other)): age
            for position in positions
            for name, broken in position.broken.items()
            for other, age in broken.items()
        }
        seats = list(zip(game.tolist(), power.tolist()))
        powers = range(self.games.num_powers)
        breaches = [[ages.get((*seat, other), NONE) for other in powers] for seat in seats]
        talk = negotiation.talk_of(press, decisions, game, power)
        return talk._replace(breaches=np.array(breaches, np.int32).reshape(-1, len(powers)))


def run_bot(arguments: Bot) -> int:
    player = load_player(arguments.player, greedy=arguments.greedy)
    gc.freeze()  # positions are many small objects and hold no cycles: looking for them is slow
    gc.set_threshold(100_000)
    speak = _speak_dui if arguments.protocol == "dui" else _speak
    speak(Host(player, arguments.seed), sys.stdin.buffer, sys.stdout.buffer)
    return 0


def _speak(host: Host, requests: IO[bytes], out: IO[bytes]) -> None:
    maps: dict[str, Map] = {}
    for number, text in enumerate(requests, 1):
        try:
            answer = _answer(host, maps, lines.line_decoder.decode(text))
        except (UserError, *lines.UNREADABLE) as error:
            raise UserError(f"line {number}: {error}") from None
        if answer is not None:
            out.write(lines.encode(answer) + b"\n")
            out.flush()


def _answer(host: Host, maps: dict[str, Map], line: Line) -> Answer | None:
    if line.hello is not None:
        if line.hello.protocol != lines.PROTOCOL:
            theirs = line.hello.protocol
            raise UserError(f"this program speaks protocol {lines.PROTOCOL}, not {theirs}")
        player = ordering(host.player)
        if line.hello.greedy and hasattr(player, "greedy"):
            player.greedy = True
        name = f"{host.player.name} ({lines.ABOUT})"
        talks = isinstance(host.player, negotiation.Negotiator)
        return Answer(hello=Hello(lines.PROTOCOL, name, None, ["last_orders", "arrays"], talks))
    if line.map is not None and line.data is not None:
        own = line.map not in MAP_NAMES or load_map(line.map).facts != line.data
        maps[line.map] = Map(line.data, line.map) if own else load_map(line.map)
        if line.tables is not None and line.tables != lines.tables_of(maps[line.map]):
            raise UserError(f"the tables of {line.map:.60} are not this version's")
    if line.request is None:
        return None
    name = line.map or "standard"
    if name not in maps:
        if name not in MAP_NAMES:
            raise UserError(f"the map {name:.60} has to come with its data first")
        maps[name] = load_map(name)
    if line.arrays is not None:
        arrays = host.array_orders(maps[name], line.arrays, line)
        return Answer(reply=line.request, arrays=arrays)
    positions, terms = line.positions, line.press
    decisions = host.set_up(maps[name], positions, line.max_years)
    if terms is None or terms.ask == "orders":
        return Answer(reply=line.request, orders=host.orders(positions, decisions, terms))
    return Answer(reply=line.request, messages=host.messages(positions, decisions, terms))


def _speak_dui(host: Host, requests: IO[bytes], out: IO[bytes]) -> None:
    position: Position | None = None
    power = ""
    for line in requests:
        word, _, rest = line.decode(errors="replace").strip().partition(" ")
        answer = ""
        match word:
            case "dui":
                about = f"id name {host.player.name}\nid author {lines.ABOUT}"
                answer = f"{about}\nprotocol_version 1\nduiok\n"
            case "isready":
                answer = "readyok\n"
            case "position":
                position = dui.position_of(rest, load_map("standard"))
            case "newgame":
                host.seed += 1
            case "setpower":
                power = rest.strip().upper()
            case "go" if position is not None:
                position.powers = [power]
                decisions = host.set_up(load_map("standard"), [position], 0)
                (orders,) = host.orders([position], decisions)
                texts = map(dui.their_order, orders.get(power, []))
                answer = f"bestorders {' ; '.join(texts)}".rstrip() + "\n"
            case "go":
                raise UserError("`go` comes before any `position`")
            case "quit":
                return
        if answer:
            out.write(answer.encode())
            out.flush()
