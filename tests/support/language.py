"""Questions for language models, and a server that answers whatever a test wants."""

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from diplomacy_engine.extras.language.questions import Question, questions_of
from diplomacy_engine.textgame.game import Game


def question(position: str, power: str, max_years: int | None = None) -> Question:
    """Return what a power is asked in a position."""
    game = Game.from_position(position, max_years=max_years)
    return question_of_game(game, power)


def question_of_game(game: Game, power: str) -> Question:
    games = game.vector_game
    decisions = games.decisions()
    (power_question,) = [q for q in questions_of(games, decisions, {}) if q.power == power]
    return power_question


class FakeServer:
    """An OpenAI-compatible server whose replies a function gives.

    Args:
        reply: of the request's fields and its number, returns the text of the completion, or a
            function that writes whatever it likes to the handler.
    """

    def __init__(self, reply):
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # as in play/server.py

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer._lock:
                    number = len(outer.requests)
                    outer.requests.append(body)
                    outer.headers.append(dict(self.headers))
                answer = reply(body, number)
                if callable(answer):
                    with contextlib.suppress(OSError):
                        answer(self)
                    self.close_connection = True
                else:
                    self.send(200, completion(answer))

            def send(self, status, content, **headers):
                content = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        self._lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()


def completion(text: str) -> dict:
    message = {"role": "assistant", "content": text}
    return {
        "choices": [{"message": message}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }


def status(code: int, message: str = "no", **headers):
    """Return a reply with a status."""
    return lambda handler: handler.send(code, {"error": {"message": message}}, **headers)


def raw(content: bytes, status: int = 200, **headers):
    return lambda handler: handler.send(status, content, **headers)


def silence(seconds: float):
    """Return a reply that does not come."""
    return lambda handler: time.sleep(seconds)


def units_of(body: dict) -> list[str]:
    """Return the units that a request asks for: the last lines of its last message."""
    text = body["messages"][-1]["content"].strip().splitlines()
    first = max(
        i for i, line in enumerate(text) if line.endswith("for:") or line.endswith("order:")
    )
    return text[first + 1 :]


def holds(body: dict, number: int = 0) -> str:
    """Order all units to hold."""
    return "\n".join(f"{unit} H" for unit in units_of(body))
