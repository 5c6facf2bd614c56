"""A language model on a server: a real server on loopback that misbehaves in every way."""

import gzip
import json
import time
from pathlib import Path

import pytest
from support.language import FakeServer, holds, raw, silence, status, units_of
from support.transcripts import follow, names_of

from diplomacy_engine import Game, UserError, VectorGame, evaluate_player, make_bot
from diplomacy_engine.extras.language import remote
from diplomacy_engine.extras.language.questions import TalkQuestion, questions_of
from diplomacy_engine.extras.language.remote import RemotePlayer
from diplomacy_engine.extras.language.settings import settings_of

KEY = "sk-test-0123456789"


def player_of(fake, **settings):
    found = {"model": "m", "base_url": fake.url, "retries": 0, "deadline": 20} | settings
    return RemotePlayer("llm:test", settings_of(found, "test"))


def order(player, power="FRANCE", position=None):
    """Let a player order once, for all powers if none; return its orders, which are legal."""
    game = Game.from_position(position) if position else Game("standard")
    games = game.vector_game
    decisions = games.decisions()
    if power is not None:
        decisions = decisions.take(decisions.power == games.map.power_index[power])
    numbers = player.act(games, decisions)
    for s, number in enumerate(numbers):
        assert number in decisions.order[decisions.order_start[s] : decisions.order_start[s + 1]]
    counts = player.counts()
    parts = ("legal_at_once", "repaired", "fell_back")
    assert sum(counts[part] for part in parts) == counts["orders"]
    return [games.vocabulary.texts[number] for number in numbers], counts


def written(reply):
    """Return a reply that a line of a dialogue describes."""
    content, headers = reply.get("body", ""), dict(reply.get("headers", {}))
    if "wire" in reply:
        return lambda handler: handler.wfile.write(reply["wire"].encode())
    if "error" in reply:
        content = json.dumps({"error": reply["error"]})
    elif "message" in reply:
        message = {"role": "assistant"} | reply["message"]
        ending = reply.get("ending", "stop")
        content = json.dumps({"choices": [{"message": message, "finish_reason": ending}]})
    content = content.encode() * reply.get("times", 1)
    if packed := reply.get("packed"):
        content, headers["Content-Encoding"] = gzip.compress(content), "gzip"
        content = content[: int(packed * len(content))]
    return raw(content, reply.get("status", 200), **headers)


def talk(line: str) -> str:
    """Let a player order a few times, as a line of a dialogue says: by its settings, with the
    server's replies (which lets units hold when it has no more). Return orders, counts or the
    refusal, and what the server was sent."""
    said = json.loads(line)
    replies, lines, sent = said["replies"], [], {}

    def reply(body, number):
        more = replies[-1] if said.get("again") else "holds"
        answer = replies[number] if number < len(replies) else more
        if isinstance(answer, dict):
            return written(answer)
        return holds(body) if answer == "holds" else answer

    with FakeServer(reply) as server:
        options = {"api_key_env": "LLM_TEST_KEY"} if said.get("key") else {}
        where = {"power": "RUSSIA", "position": said["position"]} if "position" in said else {}
        try:
            player = player_of(server, **{"log": "log.jsonl"} | options | said.get("settings", {}))
            for _ in range(said.get("calls", 1)):
                texts, counts = order(player, **where)
                counts = {key: count for key, count in counts.items() if count and key != "seconds"}
                lines += [", ".join(texts), json.dumps(counts)]
        except UserError as error:
            lines.append(f"error: {error}")
        for body in server.requests * ("untold" not in said):
            messages = body.pop("messages")
            new = {key: value for key, value in body.items() if sent.get(key) != value}
            again = (
                messages[-1]["content"].splitlines()
                if len(messages) > 1
                else units_of({"messages": messages})
            )
            lines += ["  sent " + json.dumps(new)[:300], *(f"    {text[:150]}" for text in again)]
            sent = body
        keys = [headers.get("Authorization") for headers in server.headers]
        assert set(keys) <= {f"Bearer {KEY}" if said.get("key") else None}
    log = Path("log.jsonl").read_text().splitlines() if Path("log.jsonl").exists() else []
    Path("log.jsonl").unlink(missing_ok=True)
    lines += [f"  {json.loads(one)['verdict']}" for one in log * ("untold" not in said)]
    shown = "\n".join(lines).replace(server.url, "URL")
    assert not any(KEY[:length] in shown + "".join(log) for length in (6, len(KEY)))
    return shown


@pytest.mark.parametrize("name", names_of(__file__, "dialogues"))
def test_a_dialogue_with_a_server(name, tmp_path, monkeypatch, capfd):
    """Whatever a server answers, orders are legal, the match goes on or ends with a sentence, and
    the key stands nowhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLM_TEST_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # which nobody named
    follow(__file__, "dialogues", name, lambda lines: map(talk, lines))
    assert KEY[:6] not in "".join(capfd.readouterr())


def bad_after_first(bad):
    """Return a reply that is right the first time, and then misbehaves."""
    return lambda body, number: holds(body) if number == 0 else bad


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
    for line in lines:  # with the two movement phases before
        season, year, kind = line["phase"][0], int(line["phase"][1:5]), line["phase"][5]
        before = 2 * (year - 1901) + "SFW".index(season) + (kind == "R")
        assert json.dumps(line["messages"]).count("Orders of ") == min(before, 2), line["phase"]
    with pytest.raises(UserError, match="missing"):
        player_of(server, log=str(tmp_path / "missing" / "log.jsonl"))


def test_nothing_is_said_of_a_reply_that_is_cut_off():
    """Without a mark: the server's word for it is enough."""
    games = VectorGame("small", 1, threads=1, auto_reset=False)
    (position, *_) = questions_of(games, games.decisions(), {})
    answer = written({"message": {"content": "FRANCE is weak. So"}, "ending": "length"})
    with FakeServer(lambda body, number: answer) as server:
        (found,) = player_of(server).converse([TalkQuestion.of(position, "Speak.", [], [])])
    assert found.exchanges[-1].verdict != "legal"
