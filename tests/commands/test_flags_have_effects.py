"""For every command and every flag: with another valid value the output, the files written or the
plan (who is asked, on how many threads, at which address) are others, or it is refused by name."""

import dataclasses
import io
import random
import re
import shlex
import shutil
import tomllib
import typing
import zlib
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from types import NoneType, SimpleNamespace

import pytest
from support.populations import write_population
from support.tables import read_table, read_text
from support.training import REPOSITORY, train
from tyro.conf import Positional

from diplomacy_engine import Map, VectorGame
from diplomacy_engine.commands import _flags, connect
from diplomacy_engine.commands.cli import COMMANDS, main
from diplomacy_engine.play.server import PlayServer
from diplomacy_engine.players.population import FOLDERS

pytestmark = pytest.mark.usefixtures("compiled")

TRIED = tomllib.loads(read_text(__file__, "flags.toml"))
BASES, WORDS = TRIED["bases"], TRIED["words"]
WAR = "--map three --player breaker+dumbbot --against nash+dumbbot --press offers --binding no"
WAR += " --press-rounds 2 --games 3 --max-years 4 --save-count 1"
LONG = "--map three --player dumbbot --against dumbbot --games 3 --max-years 5 --save-count 1"
COSTLY = ("run ", "--runs", "population rank", "standard-")  # for a quick test


def games_file(path: Path, *flags: str) -> None:
    words = "evaluate --player hold --against random --map small --max-years 2 --games 2 --seed 1"
    assert main([*words.split(), "--save-games", str(path), *flags]) == 0


def rated_file(path: Path) -> None:
    """Write games of `dumbbot` against a member of the population `members`."""
    saved = write_population(path.with_name("unused"))
    member = next(member["file"] for member in saved["members"] if member.get("file"))
    words = f"evaluate --player dumbbot --against {FOLDERS / 'small' / member}"
    words += f" --games 10 --seed {len(path.stem)} --save-games {path} --save-count 10"
    assert main(words.split()) == 0


def run_folder(path: Path) -> None:
    train(path.parent / f"{path.name}s", total_timesteps=60).rename(path)


MAKERS: dict[str, Callable[[Path], object]] = {
    "game.jsonl": games_file,
    "war.jsonl": lambda path: games_file(path, *WAR.split()),
    "long.jsonl": lambda path: games_file(path, *LONG.split()),
    "rated.jsonl": rated_file,
    "others.jsonl": rated_file,
    "members": write_population,
    "others": lambda path: write_population(path, range(5)),
    "run": run_folder,
    "run2": run_folder,
    "gulf.map": lambda path: shutil.copy(REPOSITORY / "tests/extras/maps/files/gulf.map", path),
    **{
        name: lambda path, text=text: path.write_text(text) for name, text in TRIED["files"].items()
    },
}


@pytest.fixture(scope="module")
def material(tmp_path_factory) -> Callable[[str], Path]:
    """Return a function that makes the files which a command line names, in a new folder."""
    made = tmp_path_factory.mktemp("material")

    def make(line: str) -> Path:
        folder = tmp_path_factory.mktemp("here")
        for name in {*re.split(r"[\s:]", line)} & MAKERS.keys():
            if not (made / name).exists():
                MAKERS[name](made / name)
            copy = shutil.copytree if (made / name).is_dir() else shutil.copy
            copy(made / name, folder / name)
        return folder

    return make


def shown(value: object) -> object:
    """Return what an argument says of itself, without addresses."""
    if isinstance(value, str | int | float | NoneType):
        return value
    if isinstance(value, list | tuple):
        return [shown(each) for each in value]
    if isinstance(value, dict):
        return [(key, shown(each)) for key, each in sorted(value.items())]
    if isinstance(value, Map):
        return value.name, value.teams.text, value.teams.victory_centers
    whole = dataclasses.is_dataclass(value)
    own = sorted(getattr(value, "__dict__", {}).items())
    plain_parts = [(k, shown(v)) for k, v in own if whole or isinstance(v, str | int | float)]
    return type(value).__name__, plain_parts


def plain(text: str) -> str:
    """Return an output without links' secrets, ports, times and speeds."""
    text = re.sub(r"[\w-]{20,}|\b[0-9a-f]{8}\b", "SECRET", text)
    return re.sub(r":\d{4,5}/|[\d,.]+ (decisions|ms|µs|s)\b", "", text)


def content(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(p.relative_to(folder)): plain(p.read_bytes().decode("latin-1")) for p in files}


@pytest.fixture
def outcome(material, monkeypatch, capsys) -> Callable[[str], tuple[int, str, tuple]]:
    """Return a function of a command line: its exit status, error, and all that it has done."""
    plan: list[str] = []

    def note(owner: object, name: str, instead: Callable | None = None) -> None:
        """Note the arguments of each call of a function, in whose place may stand another."""
        usual, first = instead or getattr(owner, name), int(name == "__init__")

        def noted(*args, **kwargs):
            plan.append(plain(f"{name} {shown(args[first:])} {shown(sorted(kwargs.items()))}"))
            return usual(*args, **kwargs)

        monkeypatch.setattr(owner, name, noted)

    def stop(*_, **__):
        raise KeyboardInterrupt

    def nothing(*_, **__):
        return []

    loop = SimpleNamespace(run=nothing, counts=SimpleNamespace(phases=0, last=1))
    loop.saved_games = nothing
    for owner in (VectorGame, PlayServer, connect.Wire, connect.Site):
        note(owner, "__init__")
    note(PlayServer, "serve_forever", stop)
    for name in ("DiplomacySeats", "DiplomacyDummies"):
        note(connect.diplomacy_server, name, lambda *_, **__: SimpleNamespace())
    note(connect.diplomacy_server, "list_games", nothing)
    note(connect, "WebdipSeat", nothing)
    note(connect, "SeatLoop", lambda *_, **__: loop)

    def run(line: str) -> tuple[int, str, tuple]:
        folder = material(line)
        monkeypatch.chdir(folder)
        typed = TRIED["typed"].get(line.split()[0], "").encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed)))
        capsys.readouterr()
        plan.clear()
        before = content(folder).items()
        try:
            status = main(shlex.split(line))
        except SystemExit as error:
            status = error.code
        out, err = capsys.readouterr()
        return status, err, (plain(out), content(folder).items() - before, {*plan})

    return run


def kinds_of(hint: object) -> list:
    """Return the plain types and values that a field's type is made of, limits left out."""
    inner = [one for one in typing.get_args(hint) if not hasattr(one, "applies")]
    if typing.get_origin(hint) is typing.Literal:
        return inner
    return [part for one in inner for part in kinds_of(one)] or [hint]


def flags_of(command: str) -> dict[str, list[str]]:
    """Return for each flag of a command words that set it to other valid values."""
    record, flags = getattr(_flags, COMMANDS[command][0]), {}
    hints, written = (typing.get_type_hints(record, include_extras=more) for more in (False, True))
    for field in dataclasses.fields(record):
        if Positional in typing.get_args(written[field.name]):
            continue
        flag = "--as" if field.name == "person" else f"--{field.name.replace('_', '-')}"
        kinds = kinds_of(hints[field.name])
        values = [kind for kind in kinds if isinstance(kind, str) and kind != field.default]
        values += [1, 2, 5, 1902] if int in kinds else []
        if str in kinds:
            values += WORDS.get(f"{command} {field.name}", WORDS.get(field.name, []))
        assert values or bool in kinds, f"name another value of {flag} in WORDS"
        no = flag.replace("--", "--no-", 1)
        flags[field.name] = [f"{flag} {value}" for value in values] or [flag, no]
    return flags


def idle(line: str, flags: dict[str, list[str]], outcome: Callable) -> list[str]:
    """Return those flags that have no effect behind a command line, and are not refused."""
    status, err, (*first, first_plan) = outcome(line)
    assert status in (0, 130), err
    usual = outcome(line)[2]
    # So that a difference is one of the flag; the first run may plan what is then kept.
    assert [*usual[:2]] == first and usual[2] <= first_plan
    without = []
    for name, ways in flags.items():
        for words in ways:
            status, err, other = outcome(f"{line} {words}")
            if status == 2:
                named = shlex.split(words.replace("--no-", "").replace("--", ""))
                assert any(word in err for word in named), (words, err)
            if status == 2 or other != usual:
                break
        else:
            without.append(name)
    return without


def test_every_command_is_here():
    assert BASES.keys() == COMMANDS.keys()


CASES = [(command, base) for command, bases in BASES.items() for base in bases]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "base"), CASES)
def test_each_flag_has_an_effect_or_is_refused(command, base, outcome):
    assert not idle(f"{command} {base}", flags_of(command), outcome)


def test_some_flags_have_effects_or_are_refused(outcome):
    rng = random.Random(1)
    cheap = [case for case in CASES if not any(word in " ".join(case) for word in COSTLY)]
    for command, base in rng.sample(cheap, 4):
        flags = flags_of(command)
        some = rng.sample(sorted(flags), min(len(flags), 2))
        assert not idle(f"{command} {base}", {name: flags[name] for name in some}, outcome)


@pytest.mark.parametrize(("name", "line"), read_table(__file__, "golden"))
def test_what_a_command_prints_and_writes_is_golden(name, line, outcome, golden, monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    status, err, (out, files, _) = outcome(line)
    err = re.sub("compiling .*\n|.*% [|] .*\n", "", err)  # a slow machine's
    parts = [f"$ {line}\n{status}", out, err, *("\n".join(file) for file in sorted(files))]
    for page in sorted(Path().glob("*.html")):  # what its compressed texts are
        packed = re.findall(r"\beN[\w+/]+=*", page.read_text())
        parts[3:] = (zlib.decompress(b64decode(each)).decode() for each in packed)
    text = re.sub(
        r"\d+\.\d{7,}(e-\d+)?", lambda number: f"{float(number[0]):.6g}", "\n".join(parts)
    )
    golden(name, re.sub(r"([}\]],|>)(?=\S)", r"\1\n", text).split("\n"))
