"""For every command and every flag: with another valid value the output, the files written or the
plan (who is asked, on how many threads, at which address) are others, or it is refused by name."""

import dataclasses
import io
import random
import re
import shlex
import shutil
import typing
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support.populations import write_population
from support.tables import slow_but
from support.training import train
from tyro.conf import Positional

from diplomacy_engine import VectorGame
from diplomacy_engine.commands import _flags, connect
from diplomacy_engine.commands.cli import COMMANDS, main
from diplomacy_engine.play.server import PlayServer

pytestmark = pytest.mark.usefixtures("compiled")

GAMES = "--games 4 --max-years 2 --seed 3"
# Command lines; for every command one in which each of its flags has an effect, and others.
BASES = {
    "policies": [""],
    "evaluate": [
        f"--player small-pure-1 --against random {GAMES}",
        f"--map three --player nash+random --against dumbbot --press offers {GAMES}",
        f"--player fast:small-pure-1 --against hold {GAMES} --save-games a.jsonl",
    ],
    "tournament": [
        f"--players small-pure-1 random {GAMES}",
        f"--map three --players nash+random dumbbot --press offers {GAMES}",
        f"--players fast:small-pure-1 hold {GAMES} --save-games a.jsonl",
    ],
    "population rank": [
        "--population members --player small-pure-1 --games 10",
        "--population members --player fast:small-pure-1 --games 10",
        "--population members --saved-games rated.jsonl --as me",
    ],
    "population show": ["--population members"],
    "population make": ["--map small --runs run --output new"],
    "population add": ["run --population members"],
    "check-reward": ["--reward score --players random hold --pairs 20 --max-years 2"],
    "replay": [
        "game.jsonl --text",
        "game.jsonl --output a.svg",
        "game.jsonl --output a.html",
    ],
    "review": ["game.jsonl --player lookahead"],
    "import-game": ["orders.txt"],
    "import-map": ["own.map"],
    "check-map": ["small"],
    "check-player": ["hold"],
    "bot": ["random"],
    "llm-prompt": ["--map small --power ENGLAND"],
    "connect diplomacy": [
        "localhost:8432 --game-id g --power FRANCE --player dumbbot",
        "localhost:8432 --power all-dummies --player dumbbot",
        "localhost:8432 --list",
        "localhost:8432 --game-id g --power FRANCE --player nash+dumbbot --ssl",
        "localhost:8432 --game-id g --power FRANCE --player fast:standard-pure-1",
    ],
    "connect webdip": ["http://localhost:9 --key-file word --game-id 5 --player dumbbot"],
    "play": [
        "--map small --against random --seed 1 --text --save a.jsonl --power ENGLAND",
        "--map small --against random --seed 1 --save a.jsonl --power ENGLAND",
        "--map three --against nash+dumbbot --press offers --seed 1 --save a.jsonl",
        "--map small --against random --watch --seed 1 --save a.jsonl",
        "--resume game.jsonl --against random --phase F1901M --seed 1 --save a.jsonl",
    ],
}
# Other values of flags that are words or lists; of a command alone where they are of its own kind.
WORDS = {
    "map": ["three", "standard"],
    "player": ["dumbbot"],
    "players": ["hold dumbbot"],
    "against": ["dumbbot"],
    "assume": ["dumbbot"],
    "script": ["own"],
    "teams": ["ENGLAND+ITALY"],
    "power": ["RUSSIA"],
    "guest": ["RUSSIA"],
    "json": ["b.json"],
    "csv": ["b.csv"],
    "per_game": ["b.csv"],
    "save_games": ["b.jsonl"],
    "save": ["b.jsonl"],
    "output": ["b.html", "b.png", "b.toml", "b.jsonl"],
    "phase": ["F1902M", "W1901A"],
    "review": ["lookahead"],
    "reward": ["center_delta"],
    "resume": ["game.jsonl"],
    "hint": ["small-pure-1"],
    "host": ["0.0.0.0"],
    "position": ["small F1901M; ENGLAND A LON = LON; RUSSIA A MOS = MOS"],
    "variant": ["variant.json"],
    "population": ["others"],
    "ranks": ["ranks.json"],
    "person": ["you"],
    "saved_games": ["rated.jsonl"],
    "runs": ["run2"],
    "recipe": ["runs.toml"],
    "runs_folder": ["elsewhere"],
    "user": ["me --password-file word"],
    "password_file": ["word --user me"],
    "registration_password_file": ["word"],
    "key_file": ["word2"],
    "game_id": ["h"],
    "ca": ["ca.pem"],
    "llm-prompt player": ["llm:llm.toml"],
}
FILES = {
    "orders.txt": "Spring 1901 Movement\nENGLAND: A LON H\nRUSSIA: A MOS H\n",
    "word": "secret\n",
    "word2": "another\n",
    "llm.toml": 'model = "m"\nurl = "http://localhost:9/v1"\n',
}


def parts(hint) -> list:
    """Return the plain types and values that a field's type is made of, limits left out."""
    inner = [one for one in typing.get_args(hint) if not hasattr(one, "applies")]
    if typing.get_origin(hint) is typing.Annotated:
        return parts(inner[0])
    if typing.get_origin(hint) is typing.Literal:
        return inner
    return [part for one in inner for part in parts(one)] if inner else [hint]


def is_positional(command: str, field: dataclasses.Field) -> bool:
    hint = getattr(_flags, COMMANDS[command][0]).__dataclass_fields__[field.name].type
    return "Positional" in str(hint) or hint is Positional


def other_values(command: str, field: dataclasses.Field) -> list[str]:
    """Return words for a command line that set a field to other valid values."""
    hint = typing.get_type_hints(getattr(_flags, COMMANDS[command][0]))[field.name]
    flag, kinds = f"--{field.name.replace('_', '-')}", parts(hint)
    flag = "--as" if field.name == "person" else flag
    if bool in kinds:
        return [flag if not field.default else flag.replace("--", "--no-", 1)]
    values = [kind for kind in kinds if isinstance(kind, str) and kind != field.default]
    if int in kinds:
        values += [1, 2, 5, 1902]
    if str in kinds:
        values += WORDS.get(f"{command} {field.name}", WORDS.get(field.name, []))
    assert values, f"name another value of {flag} in WORDS"
    return [f"{flag} {value}" for value in values]


@pytest.fixture(scope="module")
def material(tmp_path_factory) -> Path:
    """Return a folder with all files that the command lines name."""
    folder = tmp_path_factory.mktemp("material")
    games = "evaluate --player hold --against random --map small --max-years 2 --games 2 --seed 1"
    assert main([*games.split(), "--save-games", str(folder / "game.jsonl")]) == 0
    for count, name in ((6, "members"), (5, "others")):
        write_population(folder / name, count)
    for name in ("run", "run2"):
        train(folder / "runs", total_timesteps=60).rename(folder / name)
    shutil.rmtree(folder / "runs")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def plain(text: str) -> str:
    """Return an output without links' secrets, ports, times and speeds."""
    text = re.sub(r"[\w-]{20,}|\b[0-9a-f]{8}\b", "SECRET", text)
    return re.sub(r":\d{4,5}/|[\d,.]+ (decisions|ms|µs|s)\b", "", text)


def recorder(plan: list, name: str, original: Callable | None = None) -> Callable:
    """Return a method that notes its arguments, and then does the same or ends the command."""

    def record(*args, **kwargs):
        plan.append(plain(f"{name} {args[1:]} {sorted(kwargs.items())}"))
        if original is None:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    return record


@pytest.fixture
def outcome(material, tmp_path, monkeypatch, capsys) -> Callable:
    """Return a function of a command line: its exit status, error, and all that it has done."""
    plan: list[str] = []
    monkeypatch.setattr(VectorGame, "__init__", recorder(plan, "games", VectorGame.__init__))
    monkeypatch.setattr(PlayServer, "__init__", recorder(plan, "page", PlayServer.__init__))
    monkeypatch.setattr(PlayServer, "serve_forever", recorder(plan, "serve"))
    for name in ("Wire", "Site"):
        kind = getattr(connect, name)
        monkeypatch.setattr(kind, "__init__", recorder(plan, name, kind.__init__))
    for name in ("DiplomacySeats", "DiplomacyDummies", "list_games"):
        monkeypatch.setattr(connect.diplomacy_server, name, partial(noted, plan, name))
    monkeypatch.setattr(connect, "WebdipSeat", partial(noted, plan, "WebdipSeat"))
    monkeypatch.setattr(connect.SeatLoop, "__init__", recorder(plan, "seat"))
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def run(line: str) -> tuple[int, str, tuple]:
        folder = tmp_path / "here"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(material, folder)
        monkeypatch.chdir(folder)
        plan.clear()
        try:
            status = main(shlex.split(line))
        except SystemExit as error:
            status = error.code
        out, err = capsys.readouterr()
        files = {
            str(path.relative_to(folder)): plain(path.read_bytes().decode("latin-1"))
            for path in folder.rglob("*")
            if path.is_file()
        }
        return status, err, (plain(out), files, {*plan})

    return run


def noted(plan: list, name: str, *args, **kwargs) -> list:
    plan.append(plain(f"{name} {args} {sorted(kwargs.items())}"))
    return []


def test_every_command_is_here():
    assert BASES.keys() == COMMANDS.keys()


CASES = [(command, base) for command, bases in BASES.items() for base in bases]
QUICK = random.Random(1).sample(CASES, 4)


@pytest.mark.parametrize(("command", "base"), slow_but(QUICK, CASES))
def test_each_flag_has_an_effect_or_is_refused(command, base, outcome):
    line = f"{command} {base}"
    status, err, usual = outcome(line)
    assert status in (0, 130), err
    assert outcome(line)[2] == usual  # so that a difference is one of the flag
    idle = []
    for field in dataclasses.fields(getattr(_flags, COMMANDS[command][0])):
        for words in () if is_positional(command, field) else other_values(command, field):
            status, err, other = outcome(f"{line} {words}")
            if status == 2:
                flag, *values = shlex.split(words)
                assert any(word in err for word in (flag, *values)), (words, err)
            if status == 2 or other != usual:
                break
        else:
            idle += [] if is_positional(command, field) else [field.name]
    assert not idle
