"""The Dockerfile, as far as it can be checked without Docker: what it copies is there, what it runs
is understood, its base is one version, and nothing runs as root."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from support.pages import ROOT

from diplomacy_engine import load_map, load_player
from diplomacy_engine.commands.cli import parse

FILE = ROOT / "docs" / "docker" / "Dockerfile"


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def test_the_base_is_one_version():
    first, second = instructions()[:2]
    assert first[0] == "ARG" and re.fullmatch(r"BASE=python:3\.\d+\.\d+-slim-[a-z]+", first[1])
    assert second == ("FROM", "${BASE} AS engine")


def test_nothing_runs_as_root():
    """Nor is anything copied after the user has changed, in this stage or the one built on it."""
    words = [word for word, _ in instructions()]
    assert [rest for word, rest in instructions() if word == "USER"] == ["player"]
    after = words[words.index("USER") :]
    assert "COPY" not in after and after.count("CMD") == 2 and words[-1] == "CMD"
    assert instructions()[len(words) - after[::-1].index("FROM") - 1][1] == "engine AS webdip"


def test_what_is_copied_is_there():
    copied = [rest.split()[-2] for word, rest in instructions() if word == "COPY"]
    assert copied == ["requirements.txt", "."]
    lines = Path(f"{FILE}.dockerignore").read_text().splitlines()
    everything, *kept, compiled = [line for line in lines if not line.startswith("#")]
    assert (everything, compiled) == ("*", "**/__pycache__")
    assert all(line.startswith("!") and (ROOT / line[1:]).exists() for line in kept)
    needed = {"requirements.txt", "pyproject.toml", "setup.py", "configs", "diplomacy_engine"}
    assert needed <= {line[1:] for line in kept}


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


RUNS = [
    (before, line)
    for page in sorted((ROOT / "docs").glob("*.md"))
    for before, line in pairwise(page.read_text().splitlines())
    if line.startswith("docker run")
]


@pytest.mark.parametrize(("before", "line"), RUNS)
def test_a_container_can_do_what_a_page_prints(before, line):
    """Its program is in the image or mounted, and its user may write where it is to."""
    words = shlex.split(line)
    mounts = [b.split(":") for a, b in pairwise(words) if a in ("-v", "--volume")]
    home = "/home/player/diplomacy"
    kept = Path(f"{FILE}.dockerignore").read_text().splitlines()
    for program in (b for a, b in pairwise(words) if a == "python" and b != "-m"):
        assert f"!{program}" in kept or f"{home}/{program}" in [mount[1] for mount in mounts]
    for source, target, *mode in mounts:
        folder = source.removeprefix("$PWD/")
        opened = before == f"mkdir -m 777 {folder}"
        assert mode == ["ro"] or opened or (folder == source and target.startswith(home))
