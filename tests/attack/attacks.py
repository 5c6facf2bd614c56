"""What is tried against the engine, its files, the play server and the language models' client.

An attack prepares what it needs in a folder, and yields a function: of a generator of random
numbers, it does one try and returns in a word what came of it. It raises where input is neither
taken nor refused with one sentence, or does what it must not.
"""

import contextlib
import io
import json
import math
import os
import random
import re
import socket
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from unittest import mock

import torch
from attack.mutations import JUNK, mutate_folder, mutated, mutated_bytes, mutated_text
from attack.readers import GULF, NAMES, READERS, WORDS
from attack.watching import tried, watched
from support.diplomacy_server import StandIn
from support.games import orderable, play_randomly
from support.language import FakeServer
from support.limits import within
from support.populations import write_population
from support.serving import seated, serving
from support.tables import read_table
from support.training import REPOSITORY
from support.webdip import Site, history, variant

from diplomacy_engine import Game, Map, UserError, VectorGame, load_map, load_player
from diplomacy_engine.commands.cli import main
from diplomacy_engine.constants import MOVE, RETREAT, parse_phase, phase_kind
from diplomacy_engine.extras.connections import webdip_site
from diplomacy_engine.extras.connections.diplomacy_server import DiplomacySeats, _GameData
from diplomacy_engine.extras.connections.diplomacy_wire import Wire
from diplomacy_engine.extras.connections.webdip import WebdipSeat, _Board
from diplomacy_engine.extras.language.remote import RemotePlayer
from diplomacy_engine.extras.language.settings import settings_of
from diplomacy_engine.extras.maps.draft import map_file_text
from diplomacy_engine.extras.maps.dvar import read_dvar
from diplomacy_engine.learning import registry
from diplomacy_engine.matches.population_page import population_page
from diplomacy_engine.play.file import HOST, PLAYER, read_session
from diplomacy_engine.play.server import ACTIONS, PAGES, READS, TOKEN_HEADER, WAITING
from diplomacy_engine.players.population import read_population, read_weights
from diplomacy_engine.records import convert
from diplomacy_engine.replays.page import page
from diplomacy_engine.replays.replay import load_replays
from diplomacy_engine.rules.game_rules import GameRules
from diplomacy_engine.rules.reading import read_order, read_unit
from diplomacy_engine.textgame.imports.games import read_games
from diplomacy_engine.textgame.imports.replaying import replayed
from diplomacy_engine.textgame.imports.webdiplomacy import history_phases, read_variant

Try = Callable[[random.Random], str]
SECONDS = 60  # of one try; they take milliseconds


def outcome(taken: object) -> str:
    return "taken" if taken is not None else "refused"


def changed_texts(reader: Callable[[str, Path], object]) -> Callable[[Path], Iterator[Try]]:
    """Return the attack on a reader of READERS: its sound texts with a few changes."""

    def attack(folder: Path) -> Iterator[Try]:
        texts, words = READERS[reader]
        texts = list(texts() if callable(texts) else texts)
        yield lambda rng: outcome(reader(mutated_text(rng, rng.choice(texts), words), folder))

    attack.__name__ = reader.__name__
    return attack


@cache
def positions() -> tuple[Game, ...]:
    found = []
    for name, seed in (("small", 0), ("three", 0), ("standard", 0), ("standard", 1)):
        game, rng = Game(name, max_years=9), random.Random(seed)
        for _ in range(15):
            if not game.is_over:
                found.append(game.copy())
            play_randomly(game, rng)
    assert {game.phase[-1] for game in found} == set("MRA")
    return tuple(found)


def orders(folder: Path) -> Iterator[Try]:
    def one(rng: random.Random) -> str:
        game = rng.choice(positions()).copy()
        power, places = rng.choice(sorted(orderable(game).items()))
        texts = [rng.choice(game.legal_orders(place)) for place in places]
        for _ in range(rng.randint(1, 3)):
            i = rng.randrange(len(texts))
            texts[i : i + 1] = rng.choice(
                ([mutated_text(rng, texts[i], WORDS)], [texts[i]] * rng.choice((2, 50)), texts[:2])
            ) or ["A PAR"]
        given = (
            rng.choice((texts, texts, mutated(rng, texts), *JUNK)) if rng.random() < 0.1 else texts
        )
        own = {text for place in places for text in game.legal_orders(place)}
        taken = tried(lambda: game.submit(power, given), TypeError)
        if isinstance(given, list) and all(isinstance(text, str) for text in given):
            for text in given[:4]:
                if tried(lambda text=text: game.submit(power, [text])):
                    (order,) = game.orders[power]
                    assert order in own | {listed.rpartition("/")[0] for listed in own}
                    assert meaning(game, order) == meaning(game, text)
            game.submit(power, given, strict=False)
        game.adjudicate()
        assert Game.from_state(game.map, game.to_state()).to_state() == game.to_state()
        return outcome(taken)

    yield one


def meaning(game: Game, text: str) -> tuple:
    order = read_order(game.map, text, game.unit_kinds)
    if phase_kind(game.phase) == "retreats" and order.kind == MOVE:
        order = order._replace(kind=RETREAT)  # a move says it, too
    units = [(unit.kind, unit.place.province) for unit in order.units]
    return order.kind, units, [place.province for place in order.targets]


# What may stand in a state, where it does not belong.
PARTS = (*read_table(__file__, "parts_of_states"), *JUNK)


def states(folder: Path) -> Iterator[Try]:
    def one(rng: random.Random) -> str:
        game = rng.choice(positions())
        state = mutated(rng, game.to_state(), PARTS)
        found = tried(lambda: Game.from_state(game.map, state, max_years=9))
        if found is not None:
            check_board(found, state)
            assert Game.from_state(found.map, found.to_state()).to_state() == found.to_state()
        if found is not None and not found.is_over:
            play_randomly(found, rng, 2)
        return outcome(found)

    yield one


def units_of(game: Game, texts: set[str]) -> set[tuple]:
    read = (read_unit(game.map, text) for text in texts)
    return {(unit.kind, unit.place.province, starred) for unit, starred in read}


def check_board(game: Game, given: dict) -> None:
    """Check that a loaded board is what the state says; marks around a name are passed over."""
    if not game.is_over:
        assert parse_phase(game.phase) == parse_phase(given["name"])
    dislodged: dict[str, set[str]] = {}
    for power, units in (given.get("retreats") or {}).items():
        dislodged.setdefault(power.upper(), set()).update(f"*{unit.lstrip('*')}" for unit in units)
    for key, found in (("units", game.to_state()["units"]), ("centers", game.centers)):
        wanted: dict[str, set[str]] = {}
        for power, texts in (given.get(key) or {}).items():
            wanted.setdefault(power.upper(), set()).update(texts)
        for power, texts in found.items():
            asked = wanted.pop(power, set())
            if key == "centers":
                assert {re.sub(r"[^A-Z]", "", text.upper()) for text in asked} == set(texts)
                continue
            assert all(re.fullmatch(r"\*?[AF] [A-Z]{3}(/[NESW]C)?", text) for text in texts)
            asked |= dislodged.get(power, set())
            assert units_of(game, set(texts)) == units_of(game, asked)
        assert not any(wanted.values())


class _Scripts(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.scripts = self.running = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.scripts += tag == "script"
        self.running += tag in ("iframe", "object", "embed", "base") or any(
            name.startswith("on") for name, _ in attributes
        )


def written(rng: random.Random, file: Path, saved: dict) -> None:
    found = mutated(rng, saved)
    if rng.random() < 0.1:
        file.write_bytes(mutated_bytes(rng, json.dumps(found).encode()))
    else:
        file.write_text(json.dumps(found) + "\n")


def histories(folder: Path) -> Iterator[Try]:
    games = [history(name) for name in ("first", "short", "year")]
    sound, file = [content for _, content in games], folder / "history.json"
    for saved, _ in games:
        rows = [phase["state"] | {"orders": phase["orders"]} for phase in saved["phases"][:-1]]
        parts = ("name", "units", "centers", "orders")
        sound.append({"id": 1, "phases": [{part: row[part] for part in parts} for row in rows]})

    def one(rng: random.Random) -> str:
        written(rng, file, rng.choice(sound))
        notes: list[str] = []
        found = tried(lambda: list(read_games(file, note=notes.append)))
        game = isinstance(found, list) and tried(lambda: Game.from_saved_game(found[0]))
        if isinstance(game, Game) and not game.is_over:
            play_randomly(game, rng)
        assert all(note.isprintable() for note in notes)
        return outcome(found)

    yield one


def saved_games(folder: Path) -> Iterator[Try]:
    games = []
    for seed, game in enumerate(
        (Game("small", press="offers"), Game("three", draw_votes=True), Game("standard"))
    ):
        if game.table is not None:
            game.offer("ENGLAND", "RUSSIA", peace=True)
            game.send("RUSSIA", "GLOBAL", "<b>hello</b>")
        play_randomly(game, random.Random(seed), 3)
        if game.rules.draw_votes:
            game.concede("ITALY")
            game.vote("RUSSIA")
            games.append(game.to_saved_game())
            game.vote("ENGLAND")
            game.adjudicate()
        saved = game.to_saved_game() | {"players": dict.fromkeys(game.powers, "a/b.pt")}
        thought = {"value": 1.0, "orders": {"A": [["x", 0.5]]}, "prompt": "<i>"}
        thought["tried"] = [[["A LON H"], 1.0, 0.5]]
        saved["phases"][0]["thoughts"] = {game.powers[0]: thought}
        games.append(saved)
    file = folder / "game.jsonl"

    def one(rng: random.Random) -> str:
        written(rng, file, rng.choice(games))
        with watched(folder):
            replays = tried(lambda: load_replays(file), OSError)
            found = tried(lambda: read_session(file), OSError)
        if replays is not None:
            counted = _Scripts(page(replays, "<script>alert(1)</script>"))
            assert (counted.scripts, counted.running) == (2, 0)
        if found is not None:
            game = found[0]
            json.dumps(game.to_saved_game())
            if not game.is_over:
                game.adjudicate()
        return outcome(replays)

    yield one


HOSTILE = (*NAMES, *read_table(__file__, "hostile_names"))


def sessions(folder: Path) -> Iterator[Try]:
    """`play --resume` of a changed file: nothing is asked, run, or written elsewhere."""
    load_pytorch()
    kept, file = folder / "kept.jsonl", folder / "game.jsonl"
    seated(kept, game=Game("small", max_years=2, draws_after=1901))
    saved = json.loads(kept.read_text())
    (folder / "settings.toml").write_text(
        'model = "m"\nbase_url = "http://10.255.255.1/v1"\nlog = "log.jsonl"\n'
    )

    def one(rng: random.Random) -> str:
        found = dict(saved, play=mutated(rng, saved["play"], (*HOSTILE, *JUNK)))
        play = found["play"]
        if isinstance(play, dict) and rng.random() < 0.5:
            names = [rng.choice(HOSTILE) for _ in range(rng.randint(1, 2))]
            place = rng.choice(("opponents", "hint", "seats"))
            play["opponents"] = names if place == "opponents" else ["hold"]
            play["hint"] = names[0] if place == "hint" else None
            if place == "seats":
                play["seats"] = dict(saved["play"]["seats"], RUSSIA=[PLAYER, names[0]])
        file.write_text(json.dumps(found if rng.random() < 0.9 else mutated(rng, found)) + "\n")
        out, err = io.StringIO(), io.StringIO()
        no_input = mock.patch("sys.stdin", io.StringIO())
        silent = contextlib.chdir(folder), redirect_stdout(out), redirect_stderr(err), no_input
        with silent[0], silent[1], silent[2], silent[3], watched(folder):
            code = main(["play", "--text", "--resume", file.name])
        said = err.getvalue()
        assert (code, said) == (0, "") or (code == 2 and re.fullmatch("error: .+\n", said)), said
        assert not (folder / "log.jsonl").exists()
        return "taken" if code == 0 else "refused"

    yield one


def populations(folder: Path) -> Iterator[Try]:
    given = folder / "population"

    def one(rng: random.Random) -> str:
        saved = write_population(given)
        if rng.random() < 0.5:
            (given / "population.json").write_text(json.dumps(mutated(rng, saved)))
        else:
            mutate_folder(rng, given)
        with watched(folder):
            found = tried(lambda: read_population(given))
            if found is not None:
                population_page(found)
                for member in found.members:
                    if member.file and tried(lambda: read_weights(found, member)) is None:  # noqa: B023
                        return "refused"
        return outcome(found)

    yield one


POLICY = REPOSITORY / "runs" / "reference" / "small__pure__1" / "policy.pt"
TENSORS = (
    torch.zeros(0), torch.ones(3), torch.full((2, 2), math.nan), torch.full((), 2**62),
    torch.full((8,), -1), torch.zeros(8, dtype=torch.bool), torch.zeros(1).expand(10**9),
)  # fmt: skip


def load_pytorch() -> None:
    """Load all learners; PyTorch has programs of its own, which it starts when it is loaded."""
    for module in registry.BUNDLED.values():
        import_module(module)


def mutated_checkpoint(rng: random.Random, saved: dict, path: Path) -> None:
    key = rng.choice(list(saved))
    part = mutated(rng, {key: saved[key]}, (*JUNK, *TENSORS))
    others = {name: value for name, value in saved.items() if name != key}
    torch.save(others | part if isinstance(part, dict) else part, path)
    if rng.random() < 0.1:
        path.write_bytes(mutated_bytes(rng, path.read_bytes()))


def checkpoints(folder: Path) -> Iterator[Try]:
    load_pytorch()
    saved, file = torch.load(POLICY, weights_only=True), folder / "checkpoint.pt"
    games = VectorGame("small", 2, threads=1, auto_reset=False)
    decisions = games.decisions()

    def one(rng: random.Random) -> str:
        mutated_checkpoint(rng, saved, file)
        with watched(folder):
            player = tried(lambda: load_player(file))
            if player is None:
                return "refused"
            numbers = tried(lambda: player.act(games, decisions).tolist())
        for s, number in enumerate(() if numbers is None else numbers):
            first, last = decisions.order_start[s : s + 2]
            assert number in decisions.order[first:last]
        return "taken" if numbers is not None else "refused later"

    yield one


# --- Servers --------------------------------------------------------------------------------------

STATUSES = {200, 400, 401, 403, 404, 405, 409, 411, 413, 414, 431, 501, 505}


def requests(folder: Path) -> Iterator[Try]:
    """Requests to the play server, their bytes changed or their JSON; it answers and gives away
    nothing: no token, no order of another power, and no talk of others."""
    game = Game("three", max_years=5, press="offers", press_rounds=4)
    secret_path = folder / "a-folder-of-the-host"
    secret_path.mkdir()
    session = seated(secret_path / "g.jsonl", "hgg", game)
    host = session.viewer(session.tokens[HOST])
    with session.lock:
        session.submit(
            host, 0, [session.game.legal_orders(place)[1] for place in game.units["ENGLAND"]]
        )
        own = [text for text in session.game.orders["ENGLAND"] if not text.endswith(" H")]
        session.offer(host, 0, "ITALY", {"zone": [game.map.provinces[0]]})
    kept = session.now
    paths = (*ACTIONS, *READS, *PAGES, WAITING, "/api/x", "/../x")
    bodies = (
        {"step": 0, "orders": ["A PIE - MAR"]}, {"seats": {"ENGLAND": "me"}}, {"map": "small"},
        {"step": 0, "to": "ITALY", "terms": {"peace": True}}, {"step": 0},
        {"step": 0, "number": 1, "agreed": True},
        {"step": 0, "to": "ITALY", "terms": {"ours": ["PAR"], "we_leave": ["PAR"]}},
    )  # fmt: skip
    with serving(session) as server:

        def one(rng: random.Random) -> str:
            who = rng.choice(("watch", "RUSSIA", "RUSSIA", "nobody"))
            session.now = kept  # of what guests have done the next knows nothing
            raw = rng.random() < 0.4
            body = json.dumps(mutated(rng, rng.choice(bodies))).encode()
            path = rng.choice(paths) + rng.choice(("", "", "?phase=0", "?since=1", "?phase=x&y"))
            head = [
                f"{rng.choice(('GET', 'POST', 'POST', 'HEAD', 'PUT'))} {path} HTTP/1.1",
                f"Host: 127.0.0.1:{server.server_address[1]}",
                f"{TOKEN_HEADER}: {session.tokens.get(who, who)}",
                f"Content-Length: {len(body)}",
                "Content-Type: application/json",
                "Connection: close",
            ]
            sent = "\r\n".join(head).encode() + b"\r\n\r\n" + body
            answer = exchanged(server.server_address[:2], mutated_bytes(rng, sent) if raw else sent)
            status = "no status"  # of HTTP/0.9, which has none
            if answer.startswith(b"HTTP"):
                status = answer.split()[1].decode()
                assert int(status) in STATUSES, answer[:500]
            for whose, token in session.tokens.items():
                assert whose == who or token.encode() not in answer, whose
            assert str(secret_path).encode() not in answer and b"a-folder-of-the-host" not in answer
            if b"/api/board" not in sent:  # there stands what the viewer thinks about
                assert not any(json.dumps(text)[1:-1].encode() in answer for text in own if text)
            assert session.viewer(session.tokens[HOST]).host
            return status if answer else "closed"

        yield one


def exchanged(address: tuple[str, int], sent: bytes) -> bytes:
    with socket.create_connection(address, timeout=SECONDS / 2) as connection:
        with contextlib.suppress(OSError):  # it may have closed the connection already
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError), connection.makefile("rb") as stream:
            return stream.read()
    return b""


def answers_of_servers(folder: Path) -> Iterator[Try]:
    """What connections read: a game of the `diplomacy` server, a site's board and its names."""
    standard = load_map("standard")
    game, rng = Game("standard"), random.Random(6)
    play_randomly(game, rng, 4)
    while not game.dislodged:
        play_randomly(game, rng)
    with StandIn(rules="POWER_CHOICE") as server:
        server.game = game
        server.game.send("ENGLAND", "FRANCE", "PRP ( PCE ( ENG FRA ) )")
        data = server.data("FRANCE")
    seats = DiplomacySeats(Wire(server.address), GameRules(standard), "g", {})
    with Site("a board") as site:
        seat = WebdipSeat(webdip_site.Site(site.url, "key-2"), 5, None, GameRules(standard))
        (position,) = seat.positions()
        board = site.mark()["board"]
    past = next(row["answer"] for row in site.rows if "/history.json" in row["request"])
    last = history_phases(seat._variant, past)[-1]
    assert position.game.dislodged

    def read_board(changed: object) -> object:
        found = convert(_Board, changed, "the board")
        seat._ended(position.game, found, "Won")
        return replayed([last._replace(retreats=seat._retreats(found, last))], standard)

    sources = (
        (data, lambda changed: seats._position("g", [convert(_GameData, changed, "the game")],
                                               ["FRANCE"])),
        (board, read_board),
        (variant(), lambda changed: read_variant(changed, standard)),
    )  # fmt: skip

    def one(rng: random.Random) -> str:
        data, read = rng.choice(sources)
        changed = mutated(rng, json.loads(json.dumps(data)), most=1)
        return outcome(tried(lambda: read(changed)))

    yield one


def dvars(folder: Path) -> Iterator[Try]:
    """Maps as DVARs: what is read can be played."""
    sound, file = json.loads(GULF.with_name("delta.dvar.json").read_text()), folder / "x.json"
    words = (*GULF.read_text().split(), *(entry["id"].upper() for entry in sound["provinces"]))

    def one(rng: random.Random) -> str:
        file.write_text(json.dumps(mutated(rng, sound, words, most=2), indent=1))
        found = tried(lambda: read_dvar(file).finished())
        if found is not None:
            assert Map(tomllib.loads(map_file_text(found.facts, "file"))).board is not None
        return outcome(found)

    yield one


KEY = "sk-attack-0123456789abcdef"


def language_servers(folder: Path) -> Iterator[Try]:
    """A language model's server answers with changed bytes: each unit has a legal order in time,
    and the key stands nowhere."""
    reply: list[bytes] = [b""]
    server = FakeServer(lambda body, number: lambda handler: handler.wfile.write(reply[0]))
    log = folder / "log.jsonl"
    given = {"model": "m", "base_url": server.url, "api_key_env": "ATTACK_KEY", "log": str(log)}
    given |= {"prompt": "list", "timeout": 5.0, "deadline": 2.0, "retries": 0, "reasks": 0}
    given |= {"fallback": "hold", "constraint": "none"}
    games = VectorGame("small", 1, threads=1, auto_reset=False)
    decisions = games.decisions()

    def one(rng: random.Random) -> str:
        text = f"A LON H\n{KEY}"
        message = {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": {}}
        if rng.random() < 0.5:
            message = mutated(rng, message)
        body = json.dumps(message).encode()
        status = rng.choice((200, 200, 200, 400, 429, 503))
        head = f"HTTP/1.1 {status} {KEY}\r\nContent-Length: {len(body)}\r\nX-Key: {KEY}\r\n\r\n"
        whole = head.encode() + body
        reply[0] = mutated_bytes(rng, whole) if rng.random() < 0.7 else whole
        player = RemotePlayer("llm:attack", chosen)
        player.server.answered = True
        log.unlink(missing_ok=True)
        log.touch()
        numbers, said = None, []

        def act() -> None:
            nonlocal numbers
            try:
                numbers = player.act(games, decisions)
            except UserError as error:
                said.append(str(error))
                raise

        tried(act)
        for s, number in enumerate(() if numbers is None else numbers):
            first, last = decisions.order_start[s : s + 2]
            assert number in decisions.order[first:last]
        assert KEY not in "".join(said) + log.read_text()
        return (
            "refused" if said else "answered" if player.counts()["legal_at_once"] else "fell back"
        )

    with server, mock.patch.dict(os.environ, ATTACK_KEY=KEY):
        chosen = settings_of(given, "attack")  # it looks for the key
        yield one


# Attack -> tries of the short piece.
ATTACKS: dict[Callable, int] = {
    orders: 40,
    states: 40,
    histories: 25,
    saved_games: 30,
    sessions: 40,
    populations: 25,
    checkpoints: 25,
    requests: 65,
    language_servers: 40,
    answers_of_servers: 50,
    dvars: 50,
}


def attacked(attack: Callable, folder: Path, seed: int, number: int, one: Try) -> str:
    """Do one try of an attack; what fails says how it is done again."""
    try:
        with within(SECONDS):
            return one(random.Random(f"{seed} {attack.__name__} {number}"))
    except BaseException as error:
        error.add_note(f"try {number} of {attack.__name__}, --attack-seed {seed}")
        raise
