"""The page's server: who may ask what, restarts, and requests of every malformed kind."""

import contextlib
import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.serving import serving
from support.waiting import until

from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.play import server as play_server
from diplomacy_engine.play.file import GUEST, HOST, PLAYER, Seat, read_session
from diplomacy_engine.play.server import (
    ACTIONS,
    MAX_BODY,
    PAGES,
    READS,
    TOKEN_HEADER,
    PlayServer,
)
from diplomacy_engine.play.session import PlaySession
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.press.press import PressRules

pytestmark = pytest.mark.usefixtures("compiled")
SEATS = {"ENGLAND": Seat(HOST), "RUSSIA": Seat(GUEST)}


def make_session(file, seats=SEATS) -> PlaySession:
    return PlaySession(Game("small", max_years=2), file, ["hold"], make_bot, seats)


@pytest.fixture
def server(tmp_path):
    with serving(make_session(tmp_path / "game.jsonl")) as server:
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


def refusal(answer, status: int) -> str:
    """Return the sentence of a refused request."""
    assert answer[0] == status, answer
    assert list(answer[1]) == ["error"] and "\n" not in answer[1]["error"]
    return answer[1]["error"]


# --- What works -----------------------------------------------------------------------------------


def test_pages_need_no_token_and_hold_no_secret(server):
    for path in PAGES:
        status, content = request(server, "GET", path, who=None)
        assert status == 200 and len(content) > 100
        assert not any(token.encode() in content for token in server.session.tokens.values())
    assert request(server, "HEAD", "/", who=None) == (200, b"")


def test_a_phase_over_http(server):
    status, view = request(server, "GET", "/api/game")
    assert status == 200 and view["you"] == "ENGLAND" and view["phase"] == "S1901M"
    same = request(server, "GET", f"/api/game?since={view['revision']}")
    assert same == (200, {"revision": view["revision"], "unchanged": True})
    status, draft = request(server, "POST", "/api/draft", {"orders": ["A LON - PAR"]})
    assert status == 200 and 'data-order="A LON - PAR"' in draft["overlay"]
    first = {"step": 0, "orders": ["A LON - PAR"]}
    status, view = request(server, "POST", "/api/orders", first)
    assert status == 200 and view["given"] == ["A LON - PAR"] and view["waiting"] == ["RUSSIA"]
    assert request(server, "POST", "/api/withdraw", {"step": 0})[1]["given"] is None
    assert request(server, "POST", "/api/orders", first)[0] == 200
    second = {"step": 0, "orders": []}
    status, view = request(server, "POST", "/api/orders", second, who="RUSSIA")
    assert status == 200 and view["phase"] == "F1901M" and view["phases"] == ["S1901M", "F1901M"]
    status, board = request(server, "GET", "/api/board?phase=0")
    assert (
        status == 200
        and board["title"] == "Spring 1901, movement"
        and "data-unit" in board["overlay"]
    )
    status, saved = request(server, "GET", "/api/saved", who="watch")
    assert Game.from_saved_game(saved).phase == "F1901M" and "play" not in saved
    status, view = request(server, "POST", "/api/back", {"step": 1})
    assert status == 200 and view["phase"] == "S1901M" and view["step"] == 2


def test_seats_over_http(tmp_path):
    with serving(make_session(tmp_path / "game.jsonl", None)) as server:
        assert request(server, "GET", "/api/game")[1]["started"] is False
        seats = {"ENGLAND": "hold", "RUSSIA": "me"}
        refusal(request(server, "POST", "/api/seats", {"seats": seats}, who="watch"), 403)
        status, view = request(server, "POST", "/api/seats", {"seats": seats})
        assert status == 200 and view["you"] == "RUSSIA" and view["decision"]["count"] == 1
        refusal(request(server, "POST", "/api/seats", {"seats": seats}), 409)


def test_a_restarted_server_has_the_same_links(tmp_path):
    file = tmp_path / "game.jsonl"
    with serving(make_session(file)) as server:
        port, links = server.server_address[1], [server.link(w) for w in server.session.tokens]
        sent = {"step": 0, "orders": ["A LON - HOL"]}
        assert request(server, "POST", "/api/orders", sent)[0] == 200
    game, play = read_session(file)
    session = PlaySession(game, file, play.opponents, make_bot, saved=play)
    with serving(session, port=port) as server:
        assert [server.link(w) for w in server.session.tokens] == links
        _, view = request(server, "GET", "/api/game")
        assert view["given"] == ["A LON - HOL"] and view["waiting"] == ["RUSSIA"]


def test_two_submissions_at_once_play_one_phase(server):
    sent = {"step": 0, "orders": []}
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(
                lambda who: request(server, "POST", "/api/orders", sent, who=who),
                ["host", "RUSSIA"] * 8,
            )
        )
    assert {status for status, _ in answers} == {200}
    assert server.session.now.step == 1
    words = refusal(request(server, "POST", "/api/orders", {"step": 0, "orders": ["A LON H"]}), 409)
    assert words.startswith("this was meant for step 0")


def test_a_port_in_use_is_one_sentence(server):
    port = server.server_address[1]
    with pytest.raises(ValueError, match=rf"^port {port} of 127\.0\.0\.1 is not available.*--port"):
        PlayServer(server.session, "127.0.0.1", port)
    with pytest.raises(ValueError, match="cannot listen on address"):
        PlayServer(server.session, "no such host.invalid", 0)
    with pytest.raises(UserError, match="cannot listen on address"):
        PlayServer(server.session, "a" * 70, 0)


# --- Who may ask ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*READS, *ACTIONS])
def test_without_a_token_nothing_is_read_or_ordered(server, path):
    method, body = ("GET", None) if path in READS else ("POST", {"step": 0, "orders": []})
    for who in (None, "", "x" * 24, "é", "host"[:3], server.session.tokens["host"][:-1]):
        refusal(request(server, method, path, body, who=who), 401)
    with_cookie = {"Cookie": f"{TOKEN_HEADER}={server.session.tokens['host']}"}
    refusal(request(server, method, path, body, who=None, **with_cookie), 401)
    assert server.session.now.step == 0 and server.session.game.orders == {}


def test_what_comes_with_a_refused_request_is_no_request(server):
    host, port = server.server_address[:2]
    inner = f"GET /icon.svg HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"
    for head in (
        f"POST /api/orders HTTP/1.1\r\nOrigin: http://evil.example\r\nContent-Length: {len(inner)}",
        f"GET /icon.svg HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: {len(inner)}",
    ):
        with socket.create_connection((host, port), timeout=5) as connection:
            connection.sendall(f"{head}\r\nHost: {host}:{port}\r\n\r\n{inner}".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.count(b"HTTP/1.1 ") == 1, answer[:300]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8000"},
        {"Host": "localhost.evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "192.0.2.1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_foreign_page_can_neither_read_nor_order(server, headers):
    """Even one that has learned a token."""
    for path in READS:
        refusal(request(server, "GET", path, **headers), 403)
    for path in ACTIONS:
        refusal(request(server, "POST", path, {"step": 0, "orders": []}, **headers), 403)
    assert server.session.game.orders == {}


def test_the_own_page_may_ask(server):
    port = server.server_address[1]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        own = {"Host": host, "Origin": f"http://{host}".lower(), "Sec-Fetch-Site": "same-origin"}
        assert request(server, "GET", "/api/game", **own)[0] == 200
    assert request(server, "GET", "/", who=None, Sec_Fetch_Site="cross-site")[0] == 200  # a link
    status, answer = request(server, "OPTIONS", "/api/orders", Origin="http://evil.example")
    assert status == 501 and list(answer) == ["error"]  # no preflight is ever granted


def test_an_open_address_takes_addresses_but_no_foreign_names(tmp_path):
    with serving(make_session(tmp_path / "game.jsonl"), "0.0.0.0") as server:
        assert request(server, "GET", "/api/game", Host="192.0.2.1:80")[0] == 200
        assert request(server, "GET", "/api/game", Host=socket.gethostname())[0] == 200
        refusal(request(server, "GET", "/api/game", Host="evil.example"), 403)
        assert not server.is_loopback


@pytest.mark.parametrize(
    ("found", "shown"), [("198.51.100.7", "198.51.100.7"), (None, "localhost")]
)
def test_links_of_an_open_address_are_those_that_others_can_open(
    tmp_path, monkeypatch, found, shown
):
    class Probe(socket.socket):
        def connect(self, address):
            if found is None:
                raise OSError("Network is unreachable")

        def getsockname(self):
            return found, 9

    with serving(make_session(tmp_path / "game.jsonl"), "0.0.0.0") as server:
        monkeypatch.setattr(socket, "socket", Probe)
        assert server.address == f"http://{shown}:{server.server_address[1]}/"


def test_this_machines_own_link_answers(tmp_path):
    with serving(make_session(tmp_path / "game.jsonl"), "0.0.0.0") as server:
        host = urlsplit(server.address).netloc
        connection = http.client.HTTPConnection(host, timeout=20)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        assert request(server, "GET", "/api/game", Host=host)[0] == 200


def test_what_is_not_ones_own_to_do_is_forbidden(server):
    sent = {"step": 0, "orders": []}
    refusal(request(server, "POST", "/api/orders", sent, who="watch"), 403)
    refusal(request(server, "POST", "/api/back", sent, who="RUSSIA"), 403)
    refusal(request(server, "POST", "/api/next", sent, who="RUSSIA"), 403)
    refusal(request(server, "GET", "/api/hint", who="watch"), 403)


# --- Malformed requests ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status, method, path, body, headers",
    [
        (404, "GET", "/nothing", None, {}),
        (404, "GET", "/../pyproject.toml", None, {}),
        (404, "GET", "/web/%2e%2e/players.py", None, {}),
        (404, "POST", "/api", b"{}", {}),
        (405, "GET", "/api/orders", None, {}),
        (405, "POST", "/api/game", b"{}", {}),
        (501, "DELETE", "/api/game", None, {}),
        (400, "GET", "/api/board?phase=99", None, {}),
        (400, "GET", "/api/board?phase=-1", None, {}),
        (400, "GET", "/api/board?phase=" + "9" * 400, None, {}),
        (400, "GET", "/api/game?" + "&".join(f"a{n}=1" for n in range(99)), None, {}),
        (400, "POST", "/api/orders", b"", {}),
        (400, "POST", "/api/orders", b"{", {}),
        (400, "POST", "/api/orders", b"\xff\xfe\x00", {}),
        (400, "POST", "/api/orders", b"[" * 50_000, {}),
        (400, "POST", "/api/orders", b"[]", {}),
        (400, "POST", "/api/orders", {}, {}),
        (400, "POST", "/api/orders", {"step": True, "orders": []}, {}),
        (400, "POST", "/api/orders", {"step": 0, "orders": "A LON H"}, {}),
        (400, "POST", "/api/orders", {"step": 0, "orders": [3]}, {}),
        (400, "POST", "/api/orders", {"step": 0, "orders": ["x" * 201]}, {}),
        (400, "POST", "/api/orders", {"step": 0, "orders": ["A LON H"] * 501}, {}),
        (400, "POST", "/api/orders", {"step": 0, "orders": ["A LON - MOS"]}, {}),
        (409, "POST", "/api/orders", {"step": 10**30, "orders": []}, {}),
        (400, "POST", "/api/seats", {"seats": []}, {}),
        (411, "POST", "/api/orders", None, {"Transfer-Encoding": "chunked"}),
        (400, "POST", "/api/orders", None, {"Content-Length": "-1"}),
        (400, "POST", "/api/orders", None, {"Content-Length": "9" * 30}),
        (413, "POST", "/api/orders", None, {"Content-Length": str(MAX_BODY + 1)}),
        (431, "GET", "/", None, {f"X-{n}": "1" for n in range(200)}),
        (431, "GET", "/", None, {"X-Long": "x" * 70_000}),
        (414, "GET", "/" + "x" * 70_000, None, {}),
        (400, "GET", "/api/game", None, {"Origin": "http://["}),
        (400, "POST", "/api/orders", b"{}", {"Origin": "http://[x]]"}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_malformed_requests_get_a_sentence(server, status, method, path, body, headers):
    words = refusal(request(server, method, path, body, **headers), status)
    assert 10 < len(words) < 300
    assert request(server, "GET", "/api/game")[0] == 200
    assert server.session.game.orders == {}


@pytest.fixture(scope="module")
def lasting_server(tmp_path_factory):
    with serving(make_session(tmp_path_factory.mktemp("play") / "game.jsonl")) as server:
        yield server


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "step": st.integers(-1, 2) | JSON,
        "orders": st.lists(st.text(max_size=15) | JSON, max_size=4) | JSON,
        "seats": st.dictionaries(st.sampled_from(["ENGLAND", "RUSSIA", "x"]), JSON) | JSON,
    },
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    path=st.sampled_from([*ACTIONS, *READS, "/", "/x"]),
    body=BODIES | JSON,
    who=st.sampled_from(["host", "RUSSIA", "watch"]),
)
def test_any_json_is_answered(lasting_server, path, body, who):
    before = lasting_server.session.now
    status, answer = request(lasting_server, "POST", path, body, who=who)
    assert status in (200, 400, 403, 404, 405, 409)
    assert status == 200 or list(answer) == ["error"]
    if status != 200:
        assert lasting_server.session.now is before
    assert request(lasting_server, "GET", "/api/game")[0] == 200


LINES = st.sampled_from(
    [
        b"GET / HTTP/1.1",
        b"GET /api/game HTTP/1.1",
        b"POST /api/orders HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Host: [",
        b"Origin: http://[",
        b"Content-Length: 3",
        b"Content-Length: x",
        b"Transfer-Encoding: chunked",
        b"Connection: keep-alive",
        b"",
        b"{}",
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(LINES | st.binary(max_size=30), min_size=1, max_size=8), st.booleans())
def test_any_bytes_leave_the_server_up(lasting_server, lines, ends):
    with socket.create_connection(lasting_server.server_address[:2], timeout=20) as connection:
        connection.sendall(b"\r\n".join(lines) + b"\r\n\r\n" * ends)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as stream:
            answer = stream.read()
    if answer.startswith(b"HTTP"):
        assert answer.split()[1] in b"200 400 401 403 404 405 411 413 414 431 501 505".split()
    assert request(lasting_server, "GET", "/api/game")[0] == 200


def test_connections_that_say_nothing_do_not_keep_others_waiting(server):
    idle = [socket.create_connection(server.server_address[:2]) for _ in range(40)]
    idle[0].sendall(b"POST /api/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{")
    assert request(server, "GET", "/api/game")[0] == 200
    for connection in idle:
        connection.close()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_address_that_is_none_is_answered(server, method):
    host, port = server.server_address[:2]
    with socket.create_connection((host, port), timeout=20) as connection:
        head = f"{method} http://[/api/game HTTP/1.1\r\nHost: {host}:{port}\r\n"
        connection.sendall(f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\nX-Slow: ",
        b"POST /api/orders HTTP/1.1\r\nContent-Length: 9\r\n",
    ],
    ids=["nothing", "line", "header", "body"],
)
def test_a_silent_connection_is_closed(server, monkeypatch, head):
    monkeypatch.setattr(play_server._Handler, "timeout", 0.5)
    with socket.create_connection(server.server_address[:2], timeout=20) as connection:
        connection.sendall(head)
        assert connection.recv(1) == b""


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


@pytest.mark.parametrize("failure", [ZeroDivisionError, ValueError])
def test_a_failure_inside_is_a_sentence_too(failure, server, monkeypatch, capsys):
    def fail(*_):
        raise failure("a bug")

    monkeypatch.setitem(ACTIONS, "/api/orders", (ACTIONS["/api/orders"][0], fail))
    answer = request(server, "POST", "/api/orders", {"step": 0, "orders": []})
    assert f"failed with {failure.__name__};" in refusal(answer, 500)
    assert f"{failure.__name__}: a bug" in capsys.readouterr().err  # not for guests
    assert request(server, "GET", "/api/game")[0] == 200


def test_guests_and_watchers_see_no_paths(tmp_path, monkeypatch):
    """Neither of players nor of the game's file; the host sees them in full."""
    names = ["/home/me/runs/small__x/checkpoint.pt", f"llm:m@http://{HIDDEN}/v1"]
    seats = {power: Seat(PLAYER, names[0]) for power in Game("three").powers}
    seats |= {"ENGLAND": Seat(HOST), "ITALY": Seat(GUEST)}
    folder = tmp_path / "secret-folder"
    folder.mkdir()
    session = PlaySession(
        Game("three", max_years=2), folder / "g.jsonl", names, lambda _: make_bot("hold"), seats
    )
    session.asking = {names[1]: ["RUSSIA"]}
    session.trouble = f"{names[0]} could not give orders: no {names[0]}"
    secrets = (HIDDEN, "/home", "secret-folder")
    with serving(session) as server:
        for who in ("watch", "ITALY"):
            for path in ("/api/game", "/api/saved", "/api/waiting", "/api/board"):
                status, answer = request(server, "GET", path, who=who)
                assert status == 200 and not any(text in json.dumps(answer) for text in secrets)
            powers = request(server, "GET", "/api/game", who=who)[1]["powers"]
            assert [p["player"] for p in powers if not p["person"]] == ["small__x"]
        assert names[0] in json.dumps(request(server, "GET", "/api/game")[1])
        (folder / "g.jsonl").write_text("by another program")
        orders = {"step": 0, "orders": []}
        said = refusal(request(server, "POST", "/api/orders", orders, "ITALY"), 400)
        assert "another program has changed g.jsonl" in said and "secret-folder" not in said


HIDDEN = "10.1.2.3:8000"


def test_who_is_waited_for(tmp_path):
    """A player that takes its time holds the game up; everybody can ask whom they wait for."""
    asked, go_on = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        def act(self, games, decisions):
            asked.set()
            assert go_on.wait(20)
            return make_bot("hold").act(games, decisions)

    seats = {"ENGLAND": Seat(HOST), "RUSSIA": Seat(PLAYER, "slow")}
    session = PlaySession(
        Game("small", max_years=2), tmp_path / "game.jsonl", ["slow"], lambda name: Slow(), seats
    )
    with serving(session) as server, ThreadPoolExecutor(1) as pool:
        assert request(server, "GET", "/api/waiting") == (200, {"asking": {}})
        assert request(server, "GET", "/api/waiting", who=None)[0] == 401
        assert request(server, "POST", "/api/waiting", {})[0] == 405
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


def test_players_alone(tmp_path):
    seats = {"ENGLAND": Seat(PLAYER, "hold"), "RUSSIA": Seat(PLAYER, "hold")}
    with serving(make_session(tmp_path / "game.jsonl", seats)) as server:
        for step in range(4):
            status, view = request(server, "POST", "/api/next", {"step": step})
            assert status == 200 and view["step"] == step + 1
        assert view["over"] and view["winners"] == ["ENGLAND", "RUSSIA"]


def test_deals_over_http(tmp_path):
    """Offers and answers of a wrong form are refused in one sentence."""
    game = Game("small", max_years=2)
    with serving(make_session(tmp_path / "silent.jsonl")) as server:
        body = {"step": 0, "to": "RUSSIA", "terms": {"peace": True}}
        assert "nobody makes deals" in refusal(request(server, "POST", "/api/offer", body), 400)
    game.take_up_talk("offers", 2)
    session = PlaySession(
        game, tmp_path / "game.jsonl", ["hold"], make_bot, SEATS, press=PressRules("offers", 2)
    )
    with serving(session) as server:
        for wrong in (
            {"to": 3},
            {"terms": []},
            {"terms": {"gold": ["A"]}},
            {"terms": {"ours": "A LON H"}},
            {"terms": {"ours": [3]}},
            {"terms": {"zone": ["X" * 300]}},
            {"terms": {"zone": ["LON"] * 21}},
            {"terms": {"peace": 1}},
            {"terms": {"we_leave": ["MOS"]}},
            {"terms": {}},
            {"step": "0"},
        ):
            refusal(request(server, "POST", "/api/offer", body | wrong), 400)
        refusal(request(server, "POST", "/api/offer", body, who="watch"), 403)
        refusal(request(server, "POST", "/api/offer", body | {"step": 4}), 409)
        status, view = request(server, "POST", "/api/offer", body)
        assert status == 200 and view["talk"]["offers"][0]["state"] == "open"
        answer = {"step": 0, "number": 1, "agreed": True}
        for wrong in ({"agreed": 1}, {"number": True}, {"number": "1"}, {"number": 2}):
            refusal(request(server, "POST", "/api/answer", answer | wrong, who="RUSSIA"), 400)
        status, view = request(server, "POST", "/api/answer", answer, who="RUSSIA")
        assert status == 200 and view["talk"]["offers"][0]["state"] == "deal"
