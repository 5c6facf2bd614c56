"""The local page of a game: files, and the page's requests as JSON over HTTP.

Reaching the port gives no rights. Every request to /api/ carries a token in a header, which no page
of another origin can send: its preflight gets no CORS answer. A Host that could be a name bound
anew to 127.0.0.1, and an Origin or Sec-Fetch-Site of another page, are refused. Silent connections
are closed, and only so many are served at once.
"""

import contextlib
import ipaddress
import json
import os
import socket
import socketserver
import sys
import threading
import traceback
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import SplitResult, parse_qs, urlsplit

from msgspec import Meta, Struct, defstruct, to_builtins

from ..errors import UserError
from ..pictures.drawing import drawing_of
from ..pictures.page import map_facts, web_file
from ..records import convert, parse_json
from ..textgame.order_texts import order_texts
from . import view
from .file import HOST, games_in
from .session import NOT_OURS, PlaySession, Viewer
from .state import PlayError

TOKEN_HEADER = "X-Play-Token"
POWER_HEADER = "X-Play-Power"  # in a sandbox, whose orders the host gives
MAX_BODY = 100_000  # bytes
MAX_ORDERS, MAX_ORDER, MAX_TERMS = 500, 200, 20
MAX_CONNECTIONS = 200  # a browser keeps six
PAGES = {
    "/": ("index.html", "text/html"),
    "/play.js": ("play.js", "text/javascript"),
    "/orders.js": ("orders.js", "text/javascript"),
    "/talk.js": ("talk.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
# With the page of a replay.
SHARED = {"/page.css": "text/css"} | dict.fromkeys(("/page.js", "/review.js"), "text/javascript")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_STATUS = {"invalid": 400, "unknown": 401, "forbidden": 403, "stale": 409}


class Refusal(UserError):
    """A request that is answered with a status and one sentence."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


def _network_address(family: int) -> str:
    """Return the address by which the network knows this machine, or localhost if it has none.
    Nothing is sent: connecting a datagram socket only looks up the route. The addresses reach
    nobody (RFC 5737, RFC 3849)."""
    target = "2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1"
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((target, 9))
        return probe.getsockname()[0]
    return "localhost"


class PlayServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"
    request_queue_size = 64
    session: PlaySession  # which is begun once the port is taken, before it serves

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        reopen: Callable[[Path], PlaySession] | None = None,
    ):
        """`reopen` opens the game of a file once somebody comes with a link to it."""
        self.host, self._reopen = host, reopen
        self._opening = threading.Lock()
        self.shown = threading.Event()  # a board
        self._room = threading.Semaphore(MAX_CONNECTIONS)
        try:
            address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self.address_family = address[0]
            super().__init__((str(address[4][0]), port), _Handler)
        except (OSError, UnicodeError) as error:  # UnicodeError: a name that cannot be one
            why = getattr(error, "strerror", None) or error
            raise UserError(
                f"cannot listen on port {port} of {host!r:.80} ({why}); choose another --port if a "
                "game is running there, or --host: 127.0.0.1 for this machine, 0.0.0.0 for all"
            ) from None

    @property
    def address(self) -> str:
        everywhere = self.host in ("0.0.0.0", "::")
        host = _network_address(self.address_family) if everywhere else self.host
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.server_address[1]}/"

    def session_of(self, token: str) -> PlaySession | None:
        """Return the game that a token is of: an open one, or of a file beside the first's."""
        sessions = [self.session, *self.session.opened]
        session = next((one for one in sessions if one.owner(token) is not None), None)
        if session is not None or self._reopen is None:
            return session
        for file, game in games_in(self.session.file.parent).items():
            if token and token in game.play.tokens.values():
                with self._opening:
                    opened = [one for one in self.session.opened if one.file == file]
                    return opened[0] if opened else self.session.open(self._reopen(file))
        return None

    def link(self, viewer_name: str) -> str:
        """Return the link of the host, a power or a watcher; its token never leaves the browser's
        address bar, since what follows # is not sent."""
        return f"{self.address}#{self.session.tokens[viewer_name]}"

    def knows(self, host: str) -> bool:
        """Tell whether a Host header names this machine and no name that anybody could rebind."""
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]").lower()
        if name in ("localhost", self.host.lower(), socket.gethostname().lower()):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.is_loopback

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(str(self.server_address[0]).split("%")[0]).is_loopback

    def process_request(self, request, client_address) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request, client_address) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request, client_address) -> None:
        """A connection that breaks off is nothing to report; anything else is."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()


def _paste(session: PlaySession, viewer: Viewer, text: str) -> dict:
    return {"notes": session.paste(viewer, text)} | view.game_view(session, viewer)


def _link(begin: Callable) -> Callable:
    """Return what answers with the host's link to the session that `begin` returns."""
    return lambda *values: {"token": begin(*values).tokens[HOST]}


def _read(session: PlaySession, viewer: Viewer, text: str, orders: list[str]) -> dict:
    wrong, notes = {}, []  # text -> why it is no order; what was not taken as written
    for part in order_texts(text):
        try:
            orders = session.read_orders(viewer, part, orders, notes.append)
        except PlayError:
            raise
        except UserError as error:
            wrong[part] = str(error)
    return {"orders": orders, "wrong": wrong, "notes": notes}


def _game(session: PlaySession, viewer: Viewer, query: "_Query") -> dict:
    if query.since == session.revision:
        return {"revision": session.revision, "unchanged": True}
    return view.game_view(session, viewer, query.phase)


_Number = Annotated[int, Meta(ge=0, lt=10**9)]
_Text = Annotated[str, Meta(max_length=MAX_ORDER)]


class _Query(Struct):
    phase: _Text | None = None
    since: _Number | None = None
    moving: _Number | None = None


_Orders = Annotated[list[_Text], Meta(max_length=MAX_ORDERS)]
_Compared = Annotated[list[_Orders], Meta(max_length=2)]
_Terms = Annotated[list[_Text], Meta(max_length=MAX_TERMS)]
_LISTS = ("ours", "theirs", "zone", "we_keep_out", "they_keep_out", "we_leave", "they_leave")
_Offer = defstruct(
    "_Offer",
    [("peace", bool, False), *((name, _Terms, ()) for name in _LISTS)],
    forbid_unknown_fields=True,
    omit_defaults=True,
)
_LET = {"step": int, "player": str, "powers": list[str]}
WAITING = "/api/waiting"
# What is called with the session, the viewer and the numbers in the address.
READS: dict[str, Callable] = {
    "/api/game": _game,
    "/api/hint": lambda game, viewer, _: view.hint_view(game, viewer),
    "/api/texts": lambda game, viewer, query: view.texts_view(game, viewer, query.phase),
    "/api/picture": lambda game, viewer, query: view.picture_view(
        game, viewer, query.phase, bool(query.moving)
    ),
    "/api/review": lambda game, viewer, _: view.review_view(game, viewer),
    "/api/games": lambda game, viewer, _: game.games(viewer),
    "/api/saved": lambda game, viewer, _: game.saved_game(viewer),
    "/api/past": lambda game, *_: view.past_view(game),
    "/api/map": lambda game, *_: map_facts(drawing_of(game.game.map)),
}
# What is called with the session, the viewer and the values of a request, which must have these.
ACTIONS: dict[str, tuple[Callable, dict]] = {
    "/api/map": (PlaySession.choose_map, {"map": str}),
    "/api/settings": (
        PlaySession.choose_settings,
        {
            "last_year": int | None,
            "draws_after": Annotated[int, Meta(ge=1, le=30_000)] | None,
            "press": Literal["mutual", "offers"] | None,
            "binding": bool,
            "hints": bool,
            "seed": Annotated[int, Meta(ge=0, lt=2**62)] | None,
        },
    ),
    "/api/rated": (PlaySession.choose_rated, {"rated": bool}),
    "/api/another": (PlaySession.new_game, {}),
    "/api/try": (_link(PlaySession.try_from), {"phase": int, "power": str}),
    "/api/paste": (_paste, {"text": str}),
    "/api/sandbox": (_link(PlaySession.sandbox), {"phase": Annotated[int, Meta(ge=0)] | None}),
    "/api/seats": (PlaySession.choose_seats, {"seats": dict[str, str], "begin": bool}),
    "/api/review": (PlaySession.review, {}),
    "/api/orders": (PlaySession.submit, {"step": int, "orders": _Orders}),
    "/api/read": (_read, {"text": str, "orders": _Orders}),
    "/api/let": (PlaySession.let_order, _LET),
    "/api/offer": (PlaySession.offer, {"step": int, "to": str, "terms": _Offer}),
    "/api/say": (PlaySession.say, {"step": int, "to": str, "text": _Text}),
    "/api/answer": (PlaySession.answer, {"step": int, "number": int, "agreed": bool}),
    "/api/withdraw": (PlaySession.withdraw, {"step": int}),
    "/api/vote": (PlaySession.vote, {"step": int, "draw": bool}),
    "/api/concede": (PlaySession.concede, {"step": int}),
    "/api/back": (PlaySession.take_back, {"step": int}),
    "/api/next": (PlaySession.go_on, {"step": int}),
    "/api/draft": (view.draft_view, {"step": int, "orders": _Orders}),
    "/api/outlook": (view.outlook_view, {"step": int, "orders": _Compared}),
}
_RECORDS = {path: defstruct("_Request", [*fields.items()]) for path, (_, fields) in ACTIONS.items()}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "diplomacy", ""
    disable_nagle_algorithm = True  # else content waits 40 ms until the receipt of its head comes
    timeout = 30  # seconds for the next bytes of a request, and for the whole of an answer
    server: PlayServer

    def do_GET(self) -> None:
        self._answer(self._read)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self._answer(self._act)

    def _answer(self, work: Callable[[], tuple[bytes, str]]) -> None:
        try:
            self._check_source()
            content, kind = work()
            status = 200
        except UserError as error:
            status, content, kind = self._status_of(error), self._told(error), "application/json"
        except (ConnectionError, TimeoutError):
            raise
        except Exception as error:
            traceback.print_exc()
            message = f"the server failed with {type(error).__name__}; its screen shows more"
            status, content, kind = 500, _error(message), "application/json"
        self._send(status, content, kind)

    def _status_of(self, error: UserError) -> int:
        if isinstance(error, Refusal):
            self.close_connection = True  # what came with it is not read, and is no next request
            return error.status
        return _STATUS[getattr(error, "kind", "invalid")]

    def _told(self, error: UserError) -> bytes:
        """Return the error's text, with only the name of the game's file, since guests see it,
        too."""
        session, text = self.server.session, str(error)
        for file in (session.file, *(one.file for one in session.opened)):
            for path in (os.path.realpath(file), str(file)):
                text = text.replace(path, file.name)
        return _error(text)

    def _check_source(self) -> None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not self.server.knows(hosts[0]):
            raise Refusal(403, "this address is not the game's own")
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        foreign = origin is not None and _address(origin).netloc.lower() != hosts[0].lower()
        is_page = self.path.split("?")[0] == "/"  # a link may lead to it, it holds no secrets
        if foreign or (site not in ("same-origin", "none") and not is_page):
            raise Refusal(403, "another page cannot ask for this game")

    def _read(self) -> tuple[bytes, str]:
        lengths = self.headers.get_all("Content-Length", ["0"])
        if lengths != ["0"] or "Transfer-Encoding" in self.headers:
            self.close_connection = True  # nobody reads what comes with it
        url = _address(self.path)
        if url.path in PAGES:
            name, kind = PAGES[url.path]
            return (files(__package__) / "web" / name).read_bytes(), f"{kind}; charset=utf-8"
        if url.path in SHARED:
            return web_file(url.path[1:]).encode(), f"{SHARED[url.path]}; charset=utf-8"
        if url.path == WAITING:  # answered while others hold the session, waiting for a player
            session = self._session()
            asking = {session.shown(name, Viewer(None)): p for name, p in session.asking.items()}
            return _json({"asking": asking}), "application/json"
        action = READS.get(url.path)
        if action is None:
            raise self._unknown(url.path)
        answer = _json(action(self._session(), self._viewer(), _query(url.query)))
        if url.path == "/api/game":
            self.server.shown.set()
        return answer, "application/json"

    def _act(self) -> tuple[bytes, str]:
        body = self._body()
        url = _address(self.path)
        path = url.path
        if path not in ACTIONS:
            raise self._unknown(path)
        viewer, session = self._viewer(), self._session()
        request = convert(_RECORDS[path], parse_json(body, "the request"), "the request")
        answer = ACTIONS[path][0](session, viewer, *to_builtins(request).values())
        if answer is None:
            # Choosing seats gives the host a power.
            answer = view.game_view(session, self._viewer(), _query(url.query).phase)
        return _json(answer), "application/json"

    def _body(self) -> bytes:
        """Return the body; whenever it is not read, the connection cannot go on."""
        self.close_connection = True
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or len(lengths) != 1:
            raise Refusal(411, "the request needs one Content-Length")
        if not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 12):
            raise Refusal(400, "the Content-Length is not a number")
        if int(lengths[0]) > MAX_BODY:
            raise Refusal(413, f"the request is longer than {MAX_BODY:,} bytes")
        body = self.rfile.read(int(lengths[0]))
        if len(body) < int(lengths[0]):
            raise Refusal(400, "the request is cut off")
        self.close_connection = self.headers.get("Connection", "").lower() == "close"
        return body

    def _session(self) -> PlaySession:
        session = self.server.session_of(self.headers.get(TOKEN_HEADER, ""))
        if session is None:
            raise Refusal(401, NOT_OURS)
        return session

    def _viewer(self) -> Viewer:
        token, power = self.headers.get(TOKEN_HEADER, ""), self.headers.get(POWER_HEADER)
        return self._session().viewer(token, power)

    def _unknown(self, path: str) -> Refusal:
        if path in ACTIONS or path in READS or path in PAGES or path in SHARED or path == WAITING:
            return Refusal(405, f"{self.command} is not allowed for {path}")
        return Refusal(404, "there is nothing at this address")

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer invalid HTTP requests and unknown methods."""
        self.close_connection = True
        if not hasattr(self, "command"):
            self.command = ""
        with contextlib.suppress(ValueError):
            message = message or HTTPStatus(code).phrase
        self._send(code, _error(f"the request cannot be read: {message}"), "application/json")

    def log_message(self, *arguments: object) -> None:
        """The links stand on the screen."""


def _address(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        raise Refusal(400, "the request has an invalid address") from None


def _query(query: str) -> _Query:
    try:
        pairs = parse_qs(query, keep_blank_values=True, max_num_fields=10)
    except ValueError:
        raise Refusal(400, "the address has too many parameters") from None
    last = {name: values[-1] for name, values in pairs.items()}
    return convert(_Query, last, "the address", strict=False)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _error(message: str) -> bytes:
    return _json({"error": message})
