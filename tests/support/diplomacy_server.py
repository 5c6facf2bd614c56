"""The server of the `diplomacy` package as a program of its own, and an honest stand-in for it."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from ssl import SSLContext

from diplomacy_engine.extras.connections.connection import Address
from diplomacy_engine.extras.connections.diplomacy_wire import Wire
from diplomacy_engine.textgame.game import Game

from .diplomacy_package import package_python, spare_convoys
from .waiting import until

RULES = "POWER_CHOICE NO_PRESS"


def free_port() -> int:
    """Return a port that nobody uses, outside those that the server gives to games."""
    while True:
        port = random.randint(20_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Until:
    """A connection that ends its loop where a phase, or a condition of a position, is reached."""

    def __init__(self, connection, end: str | Callable):
        self.connection, self.end = connection, end

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def positions(self) -> list:
        positions = self.connection.positions()
        return [p._replace(over=p.over or "enough") if self._is_end(p) else p for p in positions]

    def close(self) -> None:
        self.is_closed = True
        self.connection.close()

    def _is_end(self, position) -> bool:
        if callable(self.end):
            return self.end(position)
        return position.game.phase == self.end


class RealServer:
    """The package's server, in a folder of its own."""

    def __init__(self, folder: Path):
        self.program, _ = package_python()
        self.home, self.work = folder / "home", folder / "work"
        self.work.mkdir()
        spare_convoys(self.home)  # it computes those of all maps at its first start
        self.address = Address("127.0.0.1", free_port())
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with open(self.work / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "-m", "diplomacy.server.run", "--port", str(self.address.port)],
                cwd=self.work,
                env={**os.environ, "HOME": str(self.home), "PYTHONPATH": ""},
                stdout=log,
                stderr=log,
            )
        until(self._listens, 60)

    def _listens(self) -> bool:
        assert self.process.poll() is None, (self.work / "log").read_text()[-2000:]
        with contextlib.suppress(OSError), socket.create_connection(self.address, 1):
            return True
        return False

    def stop(self, how: int = signal.SIGKILL) -> None:
        """End it: SIGINT saves, SIGKILL loses what came since."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    def create(self, game_id: str, rules: str = RULES, **more: object) -> None:
        """Make a game, as the server's administrator."""
        with self.administrator() as ask:
            fields = {"map_name": "standard", "rules": rules.split(), "deadline": 0} | more
            ask("create_game", game_id=game_id, **fields)

    def saved_game(self, game_id: str) -> dict:
        """Return a game as the server saves it."""
        with self.administrator() as ask:
            data = ask("join_game", game_id=game_id)
            where = {"game_role": data["role"], "phase": data["phase_abbr"]}
            return ask("save_game", game_id=game_id, **where)

    @contextlib.contextmanager
    def administrator(self) -> Iterator[Callable]:
        """Return a function that asks as the one user that the server has from the beginning."""
        wire = Wire(self.address)
        wire.open()
        token = wire.ask("sign_in", username="admin", password="password")
        try:
            yield lambda name, **fields: wire.ask(name, token=token, **fields)
        finally:
            wire.close()


class StandIn:
    """Answers like the package's server, for one game of ours; tests may let it misbehave.

    Attributes:
        game: the game that it holds.
        drops: order texts that it loses in silence.
        answers: request name -> function (request) -> what to send instead, a text or dictionary;
            None: close the line; each is used once.
        asked: the requests that came, their names and fields.
        users, controllers: passwords by name, names by power.
    """

    def __init__(
        self,
        n_controls: int = 1,
        rules: str = "POWER_CHOICE NO_PRESS",
        deadline: int = 0,
        ssl: SSLContext | None = None,
    ):
        from websockets.sync.server import serve

        self.game, self.rules, self.deadline = Game("standard"), rules.split(), deadline
        self.n_controls, self.status, self.map_name = n_controls, "forming", "standard"
        self.drops: set[str] = set()
        self.answers: dict[str, list[Callable | None]] = {}
        self.asked: list[dict] = []
        self.users: dict[str, str] = {}
        self.controllers: dict[str, tuple[str, int]] = {}
        self.votes: set[str] = set()
        self.given: dict[str, list[str]] = {}
        self.waits: dict[str, bool] = {}
        self.given_power = ""  # instead of the one asked for
        self._clock = 1
        self._lines: list = []
        self._lock = threading.RLock()
        self._server = serve(self._line, "127.0.0.1", 0, compression=None, ssl=ssl)
        self.address = Address(*self._server.socket.getsockname()[:2])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> "StandIn":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self.hang_up()

    def hang_up(self) -> None:
        """Close all lines."""
        for line in list(self._lines):
            line.close()

    def instead(self, name: str, *answers: Callable | None) -> None:
        """Answer the next requests of a name otherwise."""
        self.answers.setdefault(name, []).extend(answers)

    def names(self) -> list[str]:
        """Return the names of the requests that came."""
        return [request["name"] for request in self.asked]

    def _line(self, line) -> None:
        self._lines.append(line)
        for text in line:
            request = json.loads(text)
            with self._lock:
                self.asked.append(request)
                special = self.answers.get(request["name"])
                if special:
                    answer = special.pop(0)
                    answer = None if answer is None else answer(request)
                    if answer is None:
                        line.close()
                        return
                else:
                    answer = self._answer(request)
            line.send(answer if isinstance(answer, str | bytes) else json.dumps(answer))

    def tell(self, name: str, **fields: object) -> None:
        """Send a notification on every line."""
        note = {"notification_id": "n", "name": name, "game_id": "g", "token": "t"} | fields
        for line in self._lines:
            with contextlib.suppress(Exception):
                line.send(json.dumps(note))

    def _answer(self, request: dict) -> dict:
        number = request["request_id"]
        try:
            data = getattr(self, f"_{request['name']}")(request)
        except _Refusal as error:
            kind, words = error.args
            return {"request_id": number, "name": "error", "error_type": kind, "message": words}
        if data is None:
            return {"request_id": number, "name": "ok"}
        return {"request_id": number, "name": "data_something", "data": data}

    def _user(self, request: dict) -> str:
        user = request["token"].removeprefix("token of ")
        if user not in self.users:
            raise _Refusal("TokenException", "Invalid token.")
        return user

    def _sign_in(self, request: dict) -> str:
        if self.users.setdefault(request["username"], request["password"]) != request["password"]:
            raise _Refusal("UserException", "Invalid user.")
        return f"token of {request['username']}"

    def _join_game(self, request: dict) -> dict:
        user, power = self._user(request), request.get("power_name")
        if request["game_id"] != "g":
            raise _Refusal("GameIdException", "Invalid game ID.")
        if power is None:
            return self.data("observer_type")
        if self.game.is_over:
            raise _Refusal("GameFinishedException", "This game is finished.")
        power = self.given_power or power
        holder = self.controllers.get(power, (user, 0))[0]
        if holder != user:
            raise _Refusal("ResponseException", "You want to control a power that is taken")
        if power not in self.controllers:
            self.controllers[power] = user, self._now()
        if len(self.controllers) >= self.n_controls and self.status == "forming":
            self.status = "active"
            self.tell("game_status_update", status="active")
        return self.data(power)

    def _now(self) -> int:
        self._clock += 1
        return self._clock

    def data(self, role: str) -> dict:
        """Return the game as one role sees it."""
        history = {phase["name"]: phase for phase in self.game.history}
        powers = {}
        for power in self.game.powers:
            user, since = self.controllers.get(power, ("dummy", 0))
            gone = self.game.dislodged.get(power, {})
            own = self.given.get(power, []) if role == power else []
            winter = self.game.phase.endswith("A")
            texts = {} if winter else {" ".join(t.split()[:2]): t.split(" ", 2)[2] for t in own}
            powers[power] = {
                "units": self.game.units[power] + [f"*{unit}" for unit in gone],
                "retreats": gone,
                "centers": self.game.centers[power],
                "orders": texts,
                "adjust": own if winter else [],
                "order_is_set": self._is_set(power),
                "wait": self.waits.get(power, True),
                "controller": {"0": "dummy", str(since): user},
            }
        return {
            "role": role,
            "status": "completed" if self.game.is_over else self.status,
            "phase_abbr": self.game.phase,
            "map_name": self.map_name,
            "rules": self.rules,
            "deadline": self.deadline,
            "powers": powers,
            "state_history": {name: phase["state"] for name, phase in history.items()},
            "order_history": {name: phase["orders"] for name, phase in history.items()},
            "result_history": {name: phase["results"] for name, phase in history.items()},
            "messages": self._heard(role, self.game.messages),
            "message_history": {n: self._heard(role, p["messages"]) for n, p in history.items()},
        }

    @staticmethod
    def _heard(role: str, messages: list[dict]) -> list[dict]:
        return [m for m in messages if {role, "GLOBAL"} & {m["sender"], m["recipient"]}]

    def _is_set(self, power: str) -> int:
        if power not in self.given:
            return 0
        return 2 if self.given[power] else 1

    def _playing(self, request: dict) -> str:
        power = request["game_role"]
        if self.controllers.get(power, ("", 0))[0] != self._user(request):
            raise _Refusal("ResponseException", f"You do not control {power}")
        if request["phase"] != self.game.phase:
            raise _Refusal("ResponseException", "Invalid order phase")
        return power

    def _set_orders(self, request: dict) -> None:
        power = self._playing(request)
        trial = self.game.copy()
        trial.submit(power, request["orders"], strict=False)
        legal = [text for text, numbers in trial._submitted[power] if numbers]
        self.given[power] = [text for text in legal if text not in self.drops]
        self._set_wait_flag(request)

    def _set_wait_flag(self, request: dict) -> None:
        self.waits[self._playing(request)] = request["wait"]
        self._process_if_ready()

    def _process_if_ready(self) -> None:
        waiting = self.game.decisions().power.tolist()
        open_ = {p for p in self.controllers if self.game.map.power_index[p] in waiting}
        if not all(p in self.given and not self.waits.get(p, True) for p in open_):
            return
        if self.status == "active":
            self.process()

    def process(self) -> None:
        """End the phase."""
        for power, texts in self.given.items():
            self.game.submit(power, texts, strict=False)
        self.game.adjudicate()
        self.given, self.waits = {}, {}
        now = {"name": self.game.phase}
        self.tell("game_processed", previous_phase_data={}, current_phase_data=now)

    def _get_dummy_waiting_powers(self, request: dict) -> dict[str, list[str]]:
        bot = self._user(request)
        free = [p for p in self.game.powers if self.controllers.get(p, (bot, 0))[0] == bot]
        return {"g": [power for power in free if power not in self.given]}

    def _join_powers(self, request: dict) -> None:
        for power in request["power_names"]:
            self.controllers[power] = self._user(request), self._now()

    def _vote(self, request: dict) -> None:
        self.votes.add(self._playing(request))

    def _send_game_message(self, request: dict) -> int:
        said = request["message"]
        if "NO_PRESS" in self.rules:
            raise _Refusal("ResponseException", "Messages not allowed for this game.")
        if said["sender"] != self._playing(request) or said["phase"] != self.game.phase:
            raise _Refusal("ResponseException", "A power can only send its own messages.")
        kept = self.game.send(said["sender"], said["recipient"], said["message"])
        self.tell("game_message_received", message=kept)
        return kept["time_sent"]

    def _leave_game(self, request: dict) -> None:
        del self.controllers[request["game_role"]]

    def _get_playable_powers(self, request: dict) -> list[str]:
        return [power for power in self.game.powers if power not in self.controllers]

    def _list_games(self, request: dict) -> list[dict]:
        info = {"phase": self.game.phase, "status": self.status, "deadline": self.deadline}
        return [info | {"game_id": "g", "map_name": "standard", "registration_password": False}]

    def kick(self, power: str, to: str = "dummy") -> None:
        """Take a seat away, as after a missed deadline."""
        self.controllers.pop(power, None)
        if to != "dummy":
            self.controllers[power] = to, self._now()
        users = {p: self.controllers.get(p, ("dummy", 0))[0] for p in self.game.powers}
        moments = dict.fromkeys(self.game.powers, self._now())
        self.tell("powers_controllers", powers=users, timestamps=moments)


class _Refusal(Exception):
    """An error of the stand-in: its type and words."""
