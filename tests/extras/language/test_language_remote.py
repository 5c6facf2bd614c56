"""A language model on a server: a real server on loopback that misbehaves in every way."""

import gzip
import json
import time

import numpy as np
import pytest
from support.language import FakeServer, completion, holds, raw, silence, status, units_of
from support.tables import read_table

from diplomacy_engine import Game, UserError, VectorGame, evaluate_player, make_bot
from diplomacy_engine.extras.language import remote
from diplomacy_engine.extras.language.questions import TalkQuestion, questions_of
from diplomacy_engine.extras.language.remote import MOST_BYTES, RemotePlayer
from diplomacy_engine.extras.language.settings import settings_of

KEY = "sk-test-0123456789"


def player_of(fake, **settings):
    found = {"model": "m", "base_url": fake.url, "retries": 0, "deadline": 20} | settings
    return RemotePlayer("llm:test", settings_of(found, "test"))


def order(player, power="FRANCE"):
    """Let a player order once, for all powers if none; return its orders, which are legal."""
    games = VectorGame("standard", 1, threads=1, auto_reset=False)
    decisions = games.decisions()
    if power is not None:
        decisions = decisions.take(decisions.power == games.map.power_index[power])
    numbers = player.act(games, decisions)
    for s, number in enumerate(numbers):
        assert number in decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]]
    counts = player.counts()
    assert (
        sum(counts[part] for part in ("legal_at_once", "repaired", "fell_back"))
        == (counts["orders"])
    )
    return [games.vocabulary.texts[number] for number in numbers], counts


def test_right_answers_are_taken(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # which nobody named
    reply = "F BRE - MAO\nA MAR - SPA\nA PAR - BUR\n"
    with FakeServer(lambda body, number: reply) as server:
        texts, counts = order(player_of(server, temperature=0.5, prompt="list"))
        (body,) = server.requests
        assert "Authorization" not in server.headers[0]
    assert texts == ["F BRE - MAO", "A MAR - SPA", "A PAR - BUR"]
    assert counts == counts | {"decisions": 1, "legal_at_once": 3, "requests": 1, "retried": 0}
    assert (counts["tokens_in"], counts["tokens_out"]) == (7, 3)
    assert body["model"] == "m" and body["temperature"] == 0.5 and body["max_tokens"] > 100
    assert "A PAR - BUR" in body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("server_kind", "constraint", "key"),
    read_table(__file__, "constraints_are_asked_for_and_not_trusted"),
)
def test_constraints_are_asked_for_and_not_trusted(server_kind, constraint, key):
    """A server that ignores them answers as ever, and is checked as ever."""
    replies = {0: "A PAR - MOS", 1: "A PAR - MOS"}

    def reply(body, number):
        assert key in body
        return replies.get(number) or holds(body)

    with FakeServer(reply) as server:
        texts, counts = order(player_of(server, server=server_kind, constraint=constraint))
        for body in server.requests:
            assert ("max_completion_tokens" in body) == (server_kind == "openai")
    assert texts == ["F BRE H", "A MAR H", "A PAR H"]
    assert counts["repaired"] >= 1 and counts["fell_back"] == 0


def test_asked_again_with_the_reason_for_the_bad_units_alone():
    replies = ["F BRE H\nA MAR - MOS\nA PAR - MOS", "A MAR - BUR\nA PAR - MOS", "A PAR - PIC"]
    with FakeServer(lambda body, number: replies[number]) as server:
        texts, counts = order(player_of(server, reasks=2))
        first, second, third = (body["messages"] for body in server.requests)
    assert texts == ["F BRE H", "A MAR - BUR", "A PAR - PIC"]
    assert (counts["legal_at_once"], counts["repaired"], counts["requests"]) == (1, 2, 3)
    assert [len(first), len(second), len(third)] == [1, 3, 5]
    assert units_of({"messages": second}) == ["A MAR", "A PAR"]
    assert units_of({"messages": third}) == ["A PAR"]
    assert "'A MAR - MOS' is not legal" in second[2]["content"]
    assert "\nA PAR: " in third[4]["content"] and "\nA MAR: " not in third[4]["content"]


@pytest.mark.parametrize("fallback", ["hold", "random", "dumbbot"])
def test_three_bad_replies_fall_back_for_that_unit_alone(fallback):
    with FakeServer(lambda body, number: "F BRE - MAO\nA MAR - MOS\nA PAR - BUR") as server:
        texts, counts = order(player_of(server, reasks=2, fallback=fallback))
        assert len(server.requests) == 3
    assert (texts[0], texts[2]) == ("F BRE - MAO", "A PAR - BUR")
    assert (counts["legal_at_once"], counts["fell_back"]) == (2, 1)
    if fallback == "hold":
        assert texts[1] == "A MAR H"


def cut_off(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(json.dumps(completion("F BRE H")).encode())


def bad_after_first(bad):
    """Return a reply that is right the first time, and then misbehaves."""
    return lambda body, number: holds(body) if number == 0 else bad


@pytest.mark.parametrize(
    ("bad", "verdict"),
    [
        ("", "no legal order for F BRE, A MAR, A PAR"),
        (raw(json.dumps({"choices": [{"message": {"refusal": "no"}}]}).encode()), "no legal order"),
        (raw(b'{"choices": [{"mess'), "not a chat completion"),
        (raw(b"[" * 100_000), "not a chat completion"),
        (raw(b'{"choices": []}'), "not a chat completion"),
        (raw(b"x" * (10 * 2**20)), f"an answer of more than {MOST_BYTES:,} bytes"),
        (lambda handler: handler.connection.close(), "the connection broke off"),
        (lambda handler: handler.wfile.write(b"nonsense\r\n\r\n"), "the connection broke off"),
        (status(500, "out of memory"), "status 500: out of memory"),
        (status(429, "slow down"), "status 429: slow down"),
        (cut_off, "an answer that is cut off"),
    ],
)  # fmt: skip
def test_misbehaviour_falls_back(tmp_path, bad, verdict):
    log = tmp_path / "log.jsonl"
    with FakeServer(bad_after_first(bad)) as server:
        player = player_of(server, reasks=0, log=str(log), timeout=5)
        order(player)
        texts, counts = order(player)
    assert texts == ["F BRE H", "A MAR H", "A PAR H"]
    assert counts["legal_at_once"] == 3 and counts["fell_back"] == 3 and counts["timed_out"] == 0
    first, second = map(json.loads, log.read_text().splitlines())
    assert first["verdict"] == "legal" and verdict in second["verdict"]


def test_busy_servers_are_tried_again():
    replies = [status(429, Retry_After="0.1"), status(503, Retry_After="0"), None]
    with FakeServer(lambda body, number: replies[number] or holds(body)) as server:
        _, counts = order(player_of(server, retries=2))
        assert len(server.requests) == 3
    assert counts["seconds"] >= 0.1
    assert (counts["requests"], counts["retried"], counts["legal_at_once"]) == (1, 2, 3)


def test_no_waiting_longer_than_there_is_time(monkeypatch):
    waits = []
    with FakeServer(bad_after_first(status(429, Retry_After="120"))) as server:
        player = player_of(server, retries=2, timeout=1)
        order(player)
        monkeypatch.setattr(remote.time, "sleep", waits.append)
        _, counts = order(player)
    assert counts["timed_out"] == 1 and not waits


def drip(after):
    """Return a reply of single bytes after a beginning."""

    def reply(handler):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + after)
        for _ in range(200):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)

    return reply


def noted(reply, ends: list):
    """Return a reply that notes when it has come to its end."""
    return lambda handler: (reply(handler), ends.append(handler))


@pytest.mark.parametrize(
    "bad", [silence(20), drip(b"\r\n"), drip(b"X-Long: "), drip(b"Connection: close\r\n\r\n")]
)
@pytest.mark.parametrize("limits", [{"timeout": 0.4}, {"deadline": 0.4}])
def test_the_deadline_holds(bad, limits):
    ends = []
    with FakeServer(lambda body, number: noted(bad, ends)) as server:
        player = player_of(server, reasks=3, **limits)
        player.server.answered = True
        texts, counts = order(player)
        assert not ends, "it does not wait for the end of the reply"
    assert texts == ["F BRE H", "A MAR H", "A PAR H"]
    assert (counts["timed_out"], counts["fell_back"], counts["requests"]) == (1, 3, 1)


def test_a_server_that_was_only_late_at_first_is_asked_on():
    with FakeServer(lambda body, number: status(500) if number else silence(1)) as server:
        _, counts = order(player_of(server, timeout=0.3, reasks=0, prompt="minimal"), None)
    assert (counts["timed_out"], counts["requests"], counts["fell_back"]) == (1, 7, 22)


def test_stragglers_of_a_phase_do_not_hold_up_the_others():
    """Of seven powers two are never answered."""
    ends = []
    slow = ("AUSTRIA", "TURKEY")

    def reply(body, number):
        text = body["messages"][0]["content"]
        late = any(f"You are {name}." in text for name in slow)
        return noted(silence(20), ends) if late else holds(body)

    with FakeServer(reply) as server:
        player = player_of(server, deadline=1.5, concurrency=7)
        player.server.answered = True
        texts, counts = order(player, None)
        assert not ends
    assert len(texts) == 22
    assert (counts["timed_out"], counts["fell_back"], counts["legal_at_once"]) == (2, 6, 16)


def test_requests_run_at_the_same_time_but_not_more_than_allowed():
    running, most = [0], [0]

    def reply(body, number):
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.15)
        running[0] -= 1
        return holds(body)

    with FakeServer(reply) as server:
        player = player_of(server, concurrency=3, prompt="minimal")
        player.server.answered = True
        order(player, None)
    assert most[0] == 3 and len(server.requests) == 7


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (status(404, "The model `m` does not exist."), "refuses a request for model 'm' with"),
        (status(401, f"wrong key {KEY}"), "401: wrong key \\[key\\]"),
        (raw(b"x" * (10 * 2**20)), "an answer of more than"),
        (raw(b"<html>"), "not a chat completion"),
        (status(500, "no\nluck\x1b[31m"), "500: no luck"),
        (None, "the server at http://127.0.0.1:[0-9]+/v1 does not answer"),  # nobody listens
    ],
)  # fmt: skip
def test_a_server_of_no_use_ends_it_at_once(monkeypatch, bad, words):
    monkeypatch.setenv("LLM_TEST_KEY", KEY)
    with FakeServer(lambda body, number: bad) as server:
        player = player_of(server, api_key_env="LLM_TEST_KEY")
        if bad is None:
            server.server.server_close()
        with pytest.raises(UserError, match=words) as refused:
            order(player)
    assert KEY not in str(refused.value) and "\n" not in str(refused.value)


def status_line(text):
    return lambda handler: handler.wfile.write(f"{text}\r\n\r\n".encode())


@pytest.mark.parametrize(
    "bad",
    [
        status_line(KEY),
        status_line("x" * 90 + KEY),  # cut in the middle of the key
        status_line(f"HTTP/{KEY} 200 OK"),
        status_line(f"HTTP/1.1 {KEY} OK"),
        status_line(f"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: {KEY}"),
        status(429, {"key": [KEY]}),
        raw(KEY.encode(), 503),
    ],
)
def test_whatever_repeats_the_key_it_stands_nowhere(monkeypatch, tmp_path, capfd, bad):
    monkeypatch.setenv("LLM_TEST_KEY", KEY)
    log, replies = tmp_path / "log.jsonl", [f"your key is {KEY}", None, bad, bad]
    with FakeServer(lambda body, number: replies[number] or holds(body)) as server:
        player = player_of(server, api_key_env="LLM_TEST_KEY", log=str(log))
        order(player)
        order(player)
        with pytest.raises(UserError) as refused:
            order(player_of(server, api_key_env="LLM_TEST_KEY", log=str(log)))
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        assert KEY not in json.dumps(server.requests)
    said = log.read_text() + str(refused.value) + "".join(capfd.readouterr())
    said += repr(player.counts()) + repr(player.settings)
    assert len(log.read_text().splitlines()) == 3 and "your key is [key]" in said
    assert not any(KEY[:length] in said for length in (6, len(KEY)))


def test_log_and_counters_agree(tmp_path):
    log = tmp_path / "log.jsonl"
    replies = {0: "A LON - PAR", 1: "A LON - MOS"}
    with FakeServer(lambda body, number: replies.get(number) or holds(body)) as server:
        player = player_of(server, reasks=1, log=str(log), history=2)
        result = evaluate_player("small", player, make_bot("random"), 4, max_years=3).result()
        requests = len(server.requests)
    counts, lines = player.counts(), list(map(json.loads, log.read_text().splitlines()))
    assert len(lines) == counts["requests"] == requests
    assert sum(line["tokens_in"] for line in lines) == counts["tokens_in"] == 7 * requests
    assert {line["game"] for line in lines} == {0, 1, 2, 3}
    assert result["player"] == "llm:test"
    keys = {"game", "phase", "power", "messages", "reply", "verdict", "tokens_in", "tokens_out"}
    assert all(keys < set(line) for line in lines)
    with pytest.raises(UserError, match="missing"):
        player_of(server, log=str(tmp_path / "missing" / "log.jsonl"))


def test_winter_slots_of_the_fallback_do_not_collide():
    """The model removes one unit; the fallback must remove another one."""
    position = "standard W1901A; RUSSIA A MOS, F STP/NC, A WAR = MOS; GERMANY A MUN = MUN"
    for reply in ("A MOS D", "A WAR D", "F STP D", ""):
        with FakeServer(lambda body, number, reply=reply: reply) as server:
            player = player_of(server, reasks=0)
            player.server.answered = True
            games = Game.from_position(position).vector_game
            decisions = games.decisions()
            numbers = player.act(games, decisions)
        assert len(set(numbers.tolist())) == 2 and np.isin(numbers, decisions.order).all()
        assert player.counts()["legal_at_once"] == bool(reply)


ORDERS = "F BRE - MAO\nA MAR - SPA\nA PAR - BUR"
PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "A PAR H"}]},
    {"type": "reasoning", "text": "A PAR H"},
    {"type": "text", "text": ORDERS},
]


def chat(content, ending="stop", **message):
    """Return a reply with a completion."""
    message = {"role": "assistant", "content": content} | message
    return raw(json.dumps({"choices": [{"message": message, "finish_reason": ending}]}).encode())


@pytest.mark.parametrize(
    "answer",
    [
        chat(PARTS),
        chat([ORDERS]),
        chat(ORDERS, reasoning_content="A PAR H", reasoning="A MAR H"),
        raw(gzip.compress(json.dumps(completion(ORDERS)).encode()), Content_Encoding="gzip"),
        f"I could A PAR H\n</think>\n{ORDERS}",
    ],
)
def test_answers_in_every_form_are_read(answer):
    with FakeServer(lambda body, number: answer) as server:
        texts, counts = order(player_of(server))
    assert texts == ORDERS.splitlines() and counts["legal_at_once"] == 3


def test_what_is_packed_is_not_unpacked_without_end():
    bomb = gzip.compress(b" " * (2 * MOST_BYTES))
    for content in (bomb, bomb[: len(bomb) // 2], b"no gzip"):
        packed = raw(content, Content_Encoding="gzip")
        with FakeServer(lambda body, number, packed=packed: packed) as server:
            player = player_of(server)
            player.server.answered = True
            assert order(player)[1]["fell_back"] == 3


def refusal(code, status=400):
    body = {"error": {"message": "Not this prompt.", "code": code}}
    return raw(json.dumps(body).encode(), status)


LONG = refusal("context_length_exceeded")
CUT_OFF = f"<think>\nA PAR H\nF BRE H\n{'But then ' * 9}"


@pytest.mark.parametrize(
    ("bad", "requests", "reason"),
    [
        ([refusal("content_filter")], 1, "filtered"),
        ([refusal("odd")], 1, "refused"),
        ([LONG] * 3, 3, "too long"),
        ([LONG], 2, ""),  # without room for thoughts
        ([raw(b"", 413)] * 2, 3, ""),  # with a short prompt
        ([chat(CUT_OFF, "length")] * 3, 2, "cut at the token limit"),
        ([chat("", "length")], 2, ""),
        ([chat("", reasoning="A PAR H")] * 3, 2, "all text is in the thoughts"),
        ([chat(PARTS[:2])] * 3, 2, "all text is in the thoughts"),
        ([chat(None, refusal="no")] * 3, 2, "the model refused"),
        ([chat("", "content_filter")] * 3, 2, "the model refused"),
        ([chat("")] * 3, 2, "an empty reply"),
        ([refusal(502, 200)], 1, "status 502"),
        (["I attack."] * 3, 3, "no legal order"),
    ],
)
def test_one_bad_answer_costs_one_decision_and_has_a_reason(bad, requests, reason):
    """The match goes on; what cannot help is not tried again, nothing three times in one way."""
    replies = dict(enumerate(bad, 1))
    with FakeServer(lambda body, number: replies.get(number) or holds(body)) as server:
        player = player_of(server)
        order(player)
        _, counts = order(player)
        assert len(server.requests) == 1 + requests
        replies.clear()
        assert order(player)[1]["legal_at_once"] >= 6
        limits = [body["max_tokens"] for body in server.requests]
    reasons = counts["fallback_reasons"]
    assert [name.startswith(reason) for name in reasons] == [True] * bool(reason)
    assert sum(reasons.values()) == counts["fell_back"] == 3 * bool(reason)
    assert limits[0] > 4000
    if reason.startswith("cut"):
        assert limits[2] > 3 * limits[1]
    if bad[0] is LONG:
        assert limits[2] < 400 and limits[-1] > 4000, "a later prompt has room for thoughts"


def test_a_key_that_is_refused_later_ends_it():
    with FakeServer(bad_after_first(status(401))) as server:
        player = player_of(server)
        order(player)
        with pytest.raises(UserError, match="401"):
            order(player)


def test_a_server_that_loads_its_model_is_waited_for():
    loading = status(503, "Loading model", Retry_After="0")
    with FakeServer(lambda body, number: loading if number < 6 else holds(body)) as server:
        assert order(player_of(server))[1]["legal_at_once"] == 3
    with FakeServer(lambda body, number: loading) as server, pytest.raises(UserError, match="503"):
        order(player_of(server, timeout=0.3))


def test_nothing_is_said_of_a_reply_that_is_cut_off():
    """Without a mark: the server's word for it is enough."""
    games = VectorGame("small", 1, threads=1, auto_reset=False)
    (position, *_) = questions_of(games, games.decisions(), {})
    answer = chat("FRANCE is weak. So", "length")
    with FakeServer(lambda body, number: answer) as server:
        (found,) = player_of(server).converse([TalkQuestion.of(position, "Speak.", [], [])])
    assert found.exchanges[-1].verdict != "legal"
