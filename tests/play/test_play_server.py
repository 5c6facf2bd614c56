"""The page's server: its routes, who may ask, and requests of every malformed kind.

tests/attack sends it random ones.
"""

import base64
import contextlib
import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from support.serving import reopened, seated, serving, viewer
from support.tables import read_table
from support.waiting import until

from diplomacy_engine import Game, UserError, make_bot
from diplomacy_engine.commands import play
from diplomacy_engine.commands._flags import Play
from diplomacy_engine.play import server as play_server
from diplomacy_engine.play.server import (
    ACTIONS,
    MAX_BODY,
    PAGES,
    READS,
    TOKEN_HEADER,
    PlayServer,
)
from diplomacy_engine.play.session import NOT_OURS, Choices

pytestmark = pytest.mark.usefixtures("compiled")
ORDERS = {"step": 0, "orders": []}
OFFER = {"step": 0, "to": "RUSSIA", "terms": {"peace": True}}
SETTINGS = dict(last_year=1904, draws_after=1902, press="offers", binding=True, hints=True, seed=5)


def new_game(name="small"):
    return Game(name, max_years=2, press="offers", press_rounds=2, draw_votes=True)


def make_session(file, letters="hg"):
    choices = Choices(maps=["small"])
    return seated(file, letters, new_game(), choices=choices)


@pytest.fixture
def server(tmp_path):
    with serving(make_session(tmp_path / "game.jsonl")) as server:
        yield server


@pytest.fixture(scope="module")
def lasting_server(tmp_path_factory):
    """A server whose game no test changes but by requests of any kind."""
    with serving(make_session(tmp_path_factory.mktemp("play") / "game.jsonl")) as server:
        yield server


def request(server, method, path, body=None, who="host", **headers):
    """Return (status, answer): a dictionary, or the bytes of a page."""
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=20)
    given = {} if who is None else {TOKEN_HEADER: server.session.tokens.get(who, who)}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    if not isinstance(body, bytes | None):
        body = json.dumps(body).encode()
    connection.request(method, path, body, given)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    kind = answer.headers["Content-Type"]
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    return answer.status, json.loads(content) if kind == "application/json" else content


def test_content_is_sent_before_the_receipt_of_its_head_comes(server, monkeypatch):
    """Nagle's algorithm is off; with it each request of a page takes 40 ms more."""
    options, send = [], server.RequestHandlerClass._send

    def noted(self, *answer):
        options.append(self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        send(self, *answer)

    monkeypatch.setattr(server.RequestHandlerClass, "_send", noted)
    assert request(server, "GET", "/api/game")[0] == 200
    assert len(options) == 1 and options[0] != 0


def refusal(answer, status: int) -> str:
    """Return the sentence of a refused request."""
    assert answer[0] == status, answer
    assert list(answer[1]) == ["error"] and "\n" not in answer[1]["error"]
    return answer[1]["error"]


def test_a_link_that_is_lost_meanwhile_is_refused(server, monkeypatch):
    monkeypatch.setattr(server, "session_of", lambda token: server.session)
    assert refusal(request(server, "GET", "/api/game", who="lost"), 401) == NOT_OURS


# --- What works -----------------------------------------------------------------------------------


def test_links_of_all_seats_are_printed(server, capsys):
    play._print_links(server)
    printed = [line.split()[-1] for line in capsys.readouterr().out.splitlines() if "http" in line]
    guest = server.session.game.powers[1]
    assert printed == [server.link(name) for name in ("host", guest, "watch")]


def test_pages_need_no_token_and_hold_no_secret(lasting_server):
    for path in PAGES:
        status, content = request(lasting_server, "GET", path, who=None)
        assert status == 200 and len(content) > 100
        assert not any(
            token.encode() in content for token in lasting_server.session.tokens.values()
        )
    assert request(lasting_server, "HEAD", "/", who=None) == (200, b"")


def part_of(answer: dict, place: str) -> object:
    for key in place.split("."):
        answer = answer[int(key) if key.isdecimal() else key]
    return answer


def test_every_route(tmp_path):
    """Each is answered with what the page needs; those that change something, with the game."""
    with serving(make_session(tmp_path / "game.jsonl", None)) as server:
        asked = set()

        def ask(path, body=None, who="host"):
            method = "GET" if body is None else "POST"
            status, answer = request(server, method, path, body, who)
            assert status == 200, (path, answer)
            asked.add((method, path.partition("?")[0]))
            return answer

        saved = new_game().to_saved_game()
        assert ask("/api/paste", {"text": json.dumps(saved)})["notes"] == []
        for who, path, body, parts in read_table(__file__, "every_route"):
            answer = ask(path, body, who)
            for place, expected in parts.items():
                found = part_of(answer, place)
                is_part = isinstance(expected, str) and "…" in expected
                assert (expected.strip("…") in found) if is_part else found == expected, path
        revision = ask("/api/game")["revision"]
        same = {"revision": revision, "unchanged": True}
        assert ask(f"/api/game?since={revision}") == same and len(ask("/api/past")) == 1
        assert b"PNG" in base64.b64decode(ask("/api/picture?phase=S1901M")["data"])[:8]
        assert base64.b64decode(ask("/api/picture?moving=1")["data"])[:3] == b"GIF"
        found = ask("/api/saved", who="watch")
        assert Game.from_saved_game(found).phase == "F1901M" and "play" not in found
        token = ask("/api/sandbox", {"phase": 0})["token"]
        assert server.session_of(token).now.is_sandbox
        view = ask("/api/back", {"step": 2})
        assert view["phases"] == ["S1901M"] and view["step"] == 3
        assert ask("/api/vote", {"step": 3, "draw": True})["votes"]["mine"] is True
        assert ask("/api/concede", {"step": 3})["can_concede"] is False
        routes = {("GET", path) for path in READS} | {("POST", path) for path in ACTIONS}
        left = {("POST", f"/api/{name}") for name in ("let", "next", "another", "try", "rated")}
        left |= {("GET", f"/api/{name}") for name in ("hint", "games", "review")}
        left |= {("POST", f"/api/{name}") for name in ("outlook", "review")}
        assert routes - asked == left


def test_the_link_of_another_game_of_the_folder_leads_to_it(tmp_path):
    """Be it an old one; the host's list has it, and nobody else has the list."""
    old = seated(tmp_path / "old.jsonl", "hg")
    old.submit(viewer(old), 0, ["A LON - PAR"])
    with serving(seated(tmp_path / "new.jsonl", "hg"), reopen=reopened) as server:
        entries = {one["file"]: one for one in request(server, "GET", "/api/games")[1]}
        assert entries["old.jsonl"]["token"] == old.tokens["host"]
        assert entries["old.jsonl"]["powers"] == ["ENGLAND"] and len(entries) == 2
        for who, power in (("host", "ENGLAND"), ("RUSSIA", "RUSSIA"), ("watch", None)):
            status, shown = request(server, "GET", "/api/game", who=old.tokens[who])
            assert status == 200 and shown["you"] == power and shown["phases"] == ["S1901M"]
        assert shown["waiting"] == ["RUSSIA"] and len(server.session.opened) == 1
        assert refusal(request(server, "GET", "/api/games", who="RUSSIA"), 403)
        assert request(server, "GET", "/api/game", who="x" * 24)[0] == 401


def test_a_game_opened_by_its_link_is_played_as_the_flags_say(tmp_path):
    """As far as these concern its players."""
    searching, assuming = "fast:small-pure-1", "fast(assume=dumbbot):small-pure-1"
    for against, name in (("dumbbot", "dumbbot"), (searching, assuming)):
        file = tmp_path / f"{len(name)}.jsonl"
        play._open(Play(map="small", against=(against,), power="ENGLAND", save=str(file)))
        opened = play._open_file(Play(against=(searching,), assume="dumbbot"), file)
        assert opened._players[against].name == name


def test_an_address_that_cannot_be_had_is_one_sentence(lasting_server):
    taken = lasting_server.server_address[1]
    for host, port, reason in (
        ("127.0.0.1", taken, rf"port {taken} of '127\.0\.0\.1' .*--port"),
        ("192.0.2.1", 0, r"192\.0\.2\.1.*--host"),
        ("no such host.invalid", 0, "no such host"),
        ("a" * 70, 0, "aaaa"),
    ):
        with pytest.raises(UserError, match=reason):
            PlayServer(host, port)


# --- Who may ask ----------------------------------------------------------------------------------


def test_without_a_token_nothing_is_read_or_ordered(lasting_server):
    server, before = lasting_server, lasting_server.session.now
    for path in (*READS, *ACTIONS):
        method, body = ("GET", None) if path in READS else ("POST", ORDERS)
        for who in (None, "x" * 24):
            refusal(request(server, method, path, body, who=who), 401)
    token = server.session.tokens["host"]
    for who in ("", "é", "hos", token[:-1]):
        refusal(request(server, "GET", "/api/game", who=who), 401)
    refusal(request(server, "GET", "/api/game", who=None, Cookie=f"{TOKEN_HEADER}={token}"), 401)
    refusal(request(server, "GET", "/api/waiting", who=None), 401)
    assert server.session.now is before


def test_what_comes_with_a_refused_request_is_no_request(lasting_server):
    host, port = lasting_server.server_address[:2]
    inner = f"GET /icon.svg HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
    length = f"Content-Length: {len(inner)}"
    for status, head in (
        (403, f"POST /api/orders HTTP/1.1\r\nOrigin: http://evil.example\r\n{length}"),
        (200, f"GET /icon.svg HTTP/1.1\r\nContent-Length: 0\r\n{length}"),
        (400, f"GET http://[/api/game HTTP/1.1\r\n{length}"),
        (400, f"POST http://[/api/game HTTP/1.1\r\n{length}"),
    ):
        with socket.create_connection((host, port), timeout=5) as connection:
            connection.sendall(f"{head}\r\nHost: {host}:{port}\r\n\r\n{inner}".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 %d" % status), answer[:300]
        assert answer.count(b"HTTP/1.1 ") == 1, answer[:300]


@pytest.mark.parametrize(
    "headers", read_table(__file__, "a_foreign_page_can_neither_read_nor_order"), ids=str
)
def test_a_foreign_page_can_neither_read_nor_order(lasting_server, headers):
    """Even one that has learned a token."""
    before = lasting_server.session.now
    refusal(request(lasting_server, "GET", "/api/game", **headers), 403)
    refusal(request(lasting_server, "POST", "/api/orders", ORDERS, **headers), 403)
    assert lasting_server.session.now is before


def test_the_own_page_may_ask(lasting_server):
    server, port = lasting_server, lasting_server.server_address[1]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        own = {"Host": host, "Origin": f"http://{host}".lower(), "Sec-Fetch-Site": "same-origin"}
        assert request(server, "GET", "/api/game", **own)[0] == 200
    assert request(server, "GET", "/", who=None, Sec_Fetch_Site="cross-site")[0] == 200  # a link
    status, answer = request(server, "OPTIONS", "/api/orders", Origin="http://evil.example")
    assert status == 501 and list(answer) == ["error"]  # no preflight is ever granted


def test_an_open_address_takes_addresses_but_no_foreign_names(tmp_path, monkeypatch):
    """Its links are those that other machines can open."""

    class Probe(socket.socket):
        found = None

        def connect(self, address):
            if self.found is None:
                raise OSError("Network is unreachable")

        def getsockname(self):
            return self.found, 9

    with serving(make_session(tmp_path / "game.jsonl"), "0.0.0.0") as server:
        own = urlsplit(server.address).netloc
        for host in ("192.0.2.1:80", socket.gethostname(), own):
            assert request(server, "GET", "/api/game", Host=host)[0] == 200
        refusal(request(server, "GET", "/api/game", Host="evil.example"), 403)
        assert not server.is_loopback
        connection = http.client.HTTPConnection(own, timeout=20)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        with monkeypatch.context() as patch:
            patch.setattr(socket, "socket", Probe)
            for Probe.found, shown in (("198.51.100.7", "198.51.100.7"), (None, "localhost")):
                assert server.address == f"http://{shown}:{server.server_address[1]}/"


def test_what_is_not_ones_own_to_do_is_forbidden_and_what_is_late_refused(lasting_server):
    for path, body, who in (
        ("/api/orders", ORDERS, "watch"),
        ("/api/offer", OFFER, "watch"),
        ("/api/back", ORDERS, "RUSSIA"),
        ("/api/seats", {"seats": {}, "begin": True}, "RUSSIA"),
    ):
        refusal(request(lasting_server, "POST", path, body, who=who), 403)
    words = refusal(request(lasting_server, "POST", "/api/vote", {"step": 3, "draw": True}), 409)
    assert words.startswith("this was meant for step 3")


def test_guests_and_watchers_see_no_paths(tmp_path):
    """Neither of players nor of the game's file; the host sees them in full."""
    hidden = "10.1.2.3:8000"
    names = ["/home/me/runs/small__x/checkpoint.pt", f"llm:m@http://{hidden}/v1"]
    folder = tmp_path / "secret-folder"
    folder.mkdir()
    game = Game("three", max_years=2)
    session = seated(folder / "g.jsonl", "hgp", game, names[0], lambda _: make_bot("hold"))
    session.asking = {names[1]: ["RUSSIA"]}
    session.trouble = f"{names[0]} could not give orders: no {names[0]}"
    with serving(session) as server:
        for who in ("watch", "ITALY"):
            for path in ("/api/game", "/api/saved", "/api/waiting"):
                status, answer = request(server, "GET", path, who=who)
                text = json.dumps(answer)
                assert status == 200
                assert not any(part in text for part in (hidden, "/home", "secret-folder"))
            powers = request(server, "GET", "/api/game", who=who)[1]["powers"]
            assert [p["player"] for p in powers if not p["person"]] == ["small__x"]
        assert names[0] in json.dumps(request(server, "GET", "/api/game")[1])
        (folder / "g.jsonl").write_text("by another program")
        said = refusal(request(server, "POST", "/api/orders", ORDERS, "ITALY"), 400)
        assert "another program has changed g.jsonl" in said and "secret-folder" not in said


# --- Malformed requests ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status, method, path, body, headers",
    [
        *read_table(__file__, "malformed_requests"),
        (400, "GET", "/api/game?since=" + "9" * 400, None, {}),
        (400, "GET", "/api/game?" + "&".join(f"a{n}=1" for n in range(99)), None, {}),
        (400, "POST", "/api/orders", b"", {}),
        (400, "POST", "/api/orders", b"[" * 50_000, {}),
        (400, "POST", "/api/orders", {"step": 0, "orders": ["x" * 201]}, {}),
        (400, "POST", "/api/orders", {"step": 0, "orders": ["A LON H"] * 501}, {}),
        (409, "POST", "/api/orders", {"step": 10**30, "orders": []}, {}),
        (400, "POST", "/api/offer", OFFER | {"terms": {"zone": ["X" * 300]}}, {}),
        (400, "POST", "/api/offer", OFFER | {"terms": {"zone": ["LON"] * 21}}, {}),
        (400, "POST", "/api/orders", None, {"Content-Length": "9" * 30}),
        (413, "POST", "/api/orders", None, {"Content-Length": str(MAX_BODY + 1)}),
        (431, "GET", "/", None, {f"X-{n}": "1" for n in range(200)}),
        (431, "GET", "/", None, {"X-Long": "x" * 70_000}),
        (414, "GET", "/" + "x" * 70_000, None, {}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_malformed_requests_get_a_sentence(lasting_server, status, method, path, body, headers):
    before = lasting_server.session.now
    words = refusal(request(lasting_server, method, path, body, **headers), status)
    assert 10 < len(words) < 300
    assert request(lasting_server, "GET", "/api/game")[0] == 200
    assert lasting_server.session.now is before


# --- Limits ---------------------------------------------------------------------------------------


def test_connections_that_say_nothing_keep_nobody_waiting_and_are_closed(server, monkeypatch):
    monkeypatch.setattr(play_server._Handler, "timeout", 0.5)
    address, heads = server.server_address[:2], [b"", b"G", b"GET / HTTP/1.1\r\nX-Slow: "]
    heads += [b"POST /api/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{"]
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(address, 20)) for _ in range(40)]
        for connection, head in zip(idle, heads):
            connection.sendall(head)
        assert request(server, "GET", "/api/game")[0] == 200
        assert {connection.recv(1) for connection in idle[:4]} == {b""}


def test_an_answer_that_nobody_takes_is_given_up(server, monkeypatch):
    monkeypatch.setattr(play_server._Handler, "timeout", 0.5)
    asked = f"GET /play.js HTTP/1.1\r\nHost: 127.0.0.1:{server.server_address[1]}\r\n\r\n".encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(server.server_address[:2])
        connection.settimeout(20)
        connection.sendall(asked * 500)
        time.sleep(1.5)
        received = 0
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(65536):
                received += len(part)
    assert received < 200 * len(request(server, "GET", "/play.js")[1])


def test_one_connection_too_many_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(play_server, "MAX_CONNECTIONS", 2)
    with serving(make_session(tmp_path / "game.jsonl")) as server, contextlib.ExitStack() as open_:
        address = server.server_address[:2]
        kept = [open_.enter_context(socket.create_connection(address, 20)) for _ in range(2)]
        kept[0].sendall(b"POST /api/orders HTTP/1.1\r\n")
        assert open_.enter_context(socket.create_connection(address, 20)).recv(1) == b""
        kept[1].close()
        until(lambda: server._room._value)
        assert request(server, "GET", "/api/game")[0] == 200


def test_a_failure_inside_is_a_sentence_too(lasting_server, monkeypatch, capsys):
    def fail(*_):
        raise ValueError("a bug")

    monkeypatch.setitem(ACTIONS, "/api/orders", (fail, ACTIONS["/api/orders"][1]))
    answer = request(lasting_server, "POST", "/api/orders", ORDERS)
    assert "failed with ValueError;" in refusal(answer, 500)
    assert "ValueError: a bug" in capsys.readouterr().err  # not for guests
    assert request(lasting_server, "GET", "/api/game")[0] == 200


def test_who_is_waited_for(tmp_path):
    """A player that takes its time holds the game up; everybody can ask whom they wait for."""
    asked, go_on = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        def act(self, games, decisions):
            asked.set()
            assert go_on.wait(20)
            return make_bot("hold").act(games, decisions)

    session = seated(tmp_path / "game.jsonl", player="slow", load=lambda name: Slow())
    with serving(session) as server, ThreadPoolExecutor(1) as pool:
        body = {"step": 0, "orders": ["A LON H"]}
        played = pool.submit(request, server, "POST", "/api/orders", body)
        try:
            assert asked.wait(20)
            found = request(server, "GET", "/api/waiting", who="watch")
            assert found == (200, {"asking": {"slow": ["RUSSIA"]}})
        finally:
            go_on.set()
        assert played.result(20)[0] == 200
        assert request(server, "GET", "/api/waiting") == (200, {"asking": {}})
