"""A DAIDE server with one seat, as quirky as the `diplomacy` package's."""

import contextlib
import socket
import threading

from diplomacy_engine.connections.connection import Address
from diplomacy_engine.connections.daide_words import (
    decode,
    encode,
    order_words,
    read_order_words,
    turn_words,
    unit_words,
)
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.press.daide import power_names, province_names


def frame(kind: int, body: bytes) -> bytes:
    return bytes((kind, 0)) + len(body).to_bytes(2, "big") + body


class DaideServer:
    """Plays FRANCE with whoever comes; all other units hold.

    Attributes:
        game: what it holds.
        last: phase after which it ends with a draw.
        heard: the messages that came, as words.
        drops: order texts that are not taken.
        instead: name of a message -> bytes that are sent in answer; None: hang up.
    """

    def __init__(self, game: Game | None = None, last: str = "S1902M", gives: str = "FRA"):
        self.game, self.last, self.gives = game or Game("standard"), last, gives
        self.power = next(p for p in self.game.powers if p.startswith(gives))
        self.heard: list[list] = []
        self.drops: set[str] = set()
        self.instead: dict[str, bytes | None] = {}
        self.orders: dict[str, list] = {}  # text -> words
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = Address("127.0.0.1", self._server.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> "DaideServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._server.accept()
                with line, contextlib.suppress(OSError, EOFError):
                    self._talk(line)

    def _talk(self, line: socket.socket) -> None:
        while True:
            head = self._exactly(line, 4)
            body = self._exactly(line, int.from_bytes(head[2:], "big"))
            if head[0] == 0:
                self.hello = head + body
                answer = self.instead.get("IM", frame(1, b""))
                line.sendall(answer)
                continue
            if head[0] == 3:
                return
            words = decode(body)
            self.heard.append(words)
            if words[0] in self.instead:
                answer = self.instead[words[0]]
                if answer is None:
                    return
                line.sendall(answer)
                continue
            for message in self._answers(words):
                line.sendall(frame(2, encode(message)))

    @staticmethod
    def _exactly(line: socket.socket, count: int) -> bytes:
        content = b""
        while len(content) < count:
            part = line.recv(count - len(content))
            if not part:
                raise EOFError
            content += part
        return content

    def _answers(self, words: list) -> list[list]:
        match words:
            case ["NME", *_]:
                return [["YES", words], ["MAP", ["'standard'"]]]
            case ["YES", ["MAP", *_]]:
                hello = ["HLO", [self.gives], [334], [["LVL", 0]]]
                return [hello, self._centers(), self._now(), ["TME", [0]]]
            case ["SUB", *orders]:
                return self._submit(orders)
            case ["MIS"]:
                return [["MIS", *self._missing()]]
            case ["GOF"]:
                return [["YES", ["GOF"]], *self._process()]
            case ["DRW"]:
                return [["YES", ["DRW"]]]
        return [["REJ", words]]

    def _submit(self, orders: list) -> list[list]:
        self.orders, answers, tainted = {}, [], False
        for words in orders:
            text = read_order_words(self.game.map, words)
            trial = self.game.copy()
            try:
                trial.submit(self.power, [*self.orders, text])
                tainted = tainted or text in self.drops
            except UserError:
                tainted = True
            else:
                if text not in self.drops:
                    self.orders[text] = words
            answers.append(["THX", words, ["NYU" if tainted else "MBV"]])
        return answers

    def _missing(self) -> list:
        given = {" ".join(text.split()[:2]) for text in self.orders}
        units = [u for u in self.game.units[self.power] if u not in given]
        return [unit_words(self.game, self.power, unit) for unit in units]

    def _process(self) -> list[list]:
        then = self.game.phase
        own = [[*order_words(self.game, self.power, t)] for t in self.orders]
        self.game.submit(self.power, list(self.orders), strict=False)
        self.game.adjudicate()
        self.orders = {}
        outcome = [["ORD", turn_words(then), words, ["SUC"]] for words in own]
        news = [*outcome, self._centers(), self._now(), ["TME", [0]]]
        if self.game.phase == self.last:
            news += [["DRW"], ["OFF"]]
        return news

    def _centers(self) -> list:
        names = province_names(self.game.map)
        rows = [
            [name, *(names[self.game.map.province_index[code]] for code in held)]
            for name, held in zip(power_names(self.game.map), self.game.centers.values())
        ]
        return ["SCO", *rows, ["UNO", "BEL"]]

    def _now(self) -> list:
        rows = [
            unit_words(self.game, power, unit)
            for power, units in self.game.units.items()
            for unit in units
        ]
        for power, gone in self.game.dislodged.items():
            for unit, places in gone.items():
                places = [self._place(place) for place in places]
                rows.append([*unit_words(self.game, power, unit), "MRT", places])
        return ["NOW", turn_words(self.game.phase), *rows]

    def _place(self, place: str):
        from diplomacy_engine.connections.daide_words import place_words

        return place_words(self.game.map, place)
