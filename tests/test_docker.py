"""The Dockerfile, as far as it can be checked without Docker: what it copies is there, what it runs
is understood, its base is one version, and nothing runs as root."""

import json
import re
import shlex
from pathlib import Path

import pytest
from support.pages import ROOT

from diplomacy_engine.commands.cli import parse
from diplomacy_engine.players.loading import load_player
from diplomacy_engine.rules.map import load_map

FILE = ROOT / "docs" / "docker" / "Dockerfile"
KNOWN = {"ARG", "FROM", "ENV", "RUN", "WORKDIR", "COPY", "USER", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """Return the file's instructions and what follows each, with the defaults of its ARGs."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found, defaults = [], {}
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        for name, value in defaults.items():
            rest = rest.replace(f"${{{name}}}", value)
        if word == "ARG":
            name, _, value = rest.partition("=")
            defaults[name] = value
        found.append((word, rest))
    return found


def stages() -> dict[str, list[tuple[str, str]]]:
    """Return the instructions of each stage, first those of the stage that it goes on from."""
    found: dict[str, list[tuple[str, str]]] = {}
    for word, rest in instructions():
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = [*found.get(base, []), (word, rest)]
        elif found:
            found[name].append((word, rest))
    return found


def ignored(path: str) -> bool:
    """Tell whether Docker leaves a file out: of the patterns that match, the last one counts."""
    out = False
    for line in Path(f"{FILE}.dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!")
            parts = path.split("/")
            heads = ["/".join(parts[: n + 1]) for n in range(len(parts))]
            form = re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
            if any(re.fullmatch(form, head) for head in heads):
                out = line[0] != "!"
    return out


def test_it_is_written_as_docker_reads_it():
    found = instructions()
    assert {word for word, _ in found} <= KNOWN
    assert found[0][0] == "ARG" and list(stages()) == ["engine", "webdip"]


def test_the_base_is_one_version():
    base = next(rest for word, rest in instructions() if word == "FROM").split()[0]
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", base)


@pytest.mark.parametrize("stage", stages())
def test_nothing_runs_as_root(stage):
    words = stages()[stage]
    assert [rest for word, rest in words if word == "USER"] == ["player"]
    after = [word for word, _ in words[[word for word, _ in words].index("USER") :]]
    assert after[-1] == "CMD" and "COPY" not in after
    assert any("useradd" in rest and "player" in rest for word, rest in words if word == "RUN")


def test_what_is_copied_is_there():
    sources = [rest.split()[-2] for word, rest in instructions() if word == "COPY"]
    assert sources == ["requirements.txt", "."]
    assert all((ROOT / source).exists() for source in sources)
    kept = [line[1:] for line in Path(f"{FILE}.dockerignore").read_text().splitlines()
            if line.startswith("!")]  # fmt: skip
    assert all((ROOT / name).exists() for name in kept)
    for name in (
        *("requirements.txt", "pyproject.toml", "README.md", "setup.py", "configs/three.toml"),
        "diplomacy_engine/play/web/play.js",
        "runs/reference/standard__pure__1/policy.pt",
    ):
        assert (ROOT / name).exists() and not ignored(name), name
    for name in (".git/config", "runs/mine/model.pt", "secrets.txt", ".venv/bin/python", "wandb/x"):
        assert ignored(name), name
    assert ignored("diplomacy_engine/__pycache__/x.pyc")


def test_what_it_runs_is_understood():
    tools = "python -m diplomacy_engine "
    lines = [part for word, rest in instructions() if word == "RUN" for part in rest.split(" && ")]
    lines += [shlex.join(json.loads(rest)) for word, rest in instructions() if word == "CMD"]
    own = [line.removeprefix(tools) for line in lines if line.startswith(tools)]
    assert len(own) == 4
    for line in own:
        if line != "--help":
            arguments = parse(shlex.split(line))[1]
            load_player(arguments.player, game_map=load_map(arguments.map or "standard"))
    assert {line.split()[0] for line in lines} <= {"python", "python3", "pip", "useradd", "chown"}
