"""What a webDiplomacy site answered, recorded: exchanges of tests, histories, orders.

The files in `webdip/` hold JSON lines. They were recorded at commit e1aaedbc from a site that its
tests/support/webdip.py wrote after the real one's public source (kestasjk/webDiplomacy, 2025 and
2026); there they can be recorded anew. All keys and names in them are made up.
"""

import json
import lzma
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


@cache
def _lines(name: str) -> dict:
    with lzma.open(Path(__file__).parent / "webdip" / f"{name}.jsonl.xz", "rt") as lines:
        return dict(map(json.loads, lines))


def variant() -> dict:
    """Return `variant.json`, as far as our client reads it."""
    return _lines("games")["variant"]


def history(name: str) -> tuple[dict, dict]:
    """Return a game as we save it, and the site's `history.json` of it."""
    saved, content = _lines("games")[name]
    return json.loads(json.dumps(saved)), json.loads(json.dumps(content))


def orders() -> list[tuple[dict, list]]:
    """Return states, and for each the orders in it: a text, its row, the rows the site kept."""
    return list(_lines("orders").values())


class Site:
    """Plays the site's part of a recorded exchange; anything else than its requests is an error.

    A mark in an exchange is what the site itself knew at that moment.
    """

    def __init__(self, name: str):
        self.rows = _lines("exchanges")[name]
        self._next = 0
        self.strange: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                key = self.headers.get("Authorization", "").removeprefix("Bearer ")
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = f"{self.command} {self.path} {key}".strip()
                status, content = site._answer(request, json.loads(body) if body else None)
                if status is None:
                    return  # the line is cut off
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        assert kind or (not self.strange and self._next == len(self.rows)), (
            f"{self.strange} instead of {self.rows[self._next : self._next + 1]}"
        )

    def _answer(self, request: str, body: object) -> tuple[int | None, bytes]:
        row = self.rows[self._next] if self._next < len(self.rows) else {}
        if (row.get("request"), row.get("body")) != (request, body):
            self.strange.append(f"{request} {json.dumps(body)}")
            return 403, b"no such request was recorded"
        self._next += 1
        text = row["answer"]
        return row["status"], (text if isinstance(text, str) else json.dumps(text)).encode()

    def mark(self) -> dict:
        """Return the mark that comes next, and pass it."""
        self._next += 1
        return self.rows[self._next - 1]["mark"]

    @property
    def at_mark(self) -> bool:
        return self._next < len(self.rows) and "mark" in self.rows[self._next]

    def bodies(self, route: str) -> list[dict]:
        """Return what was sent to a route."""
        sent = [
            row for row in self.rows[: self._next] if f"route={route} " in row.get("request", "")
        ]
        return [row["body"] for row in sent]
