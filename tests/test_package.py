"""The package as pip installs it: what a wheel holds, and what needs no PyTorch and what does."""

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.pages import ROOT, code_spans, page_text
from support.tables import read_text

import diplomacy_engine
from diplomacy_engine import _suggest
from diplomacy_engine.players.policy.files import ready_policies

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = dict(
    line.split("==")
    for line in (ROOT / "requirements.txt").read_text().splitlines()
    if not line.startswith("#")
)
SOURCES = (
    *("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"),
    *("ppo_selfplay_diplomacy.py", "diplomacy_engine", "diplomacy_learners"),
    *("configs", "runs/reference"),
)
# What only the archive of sources has, and the first of what it leaves out.
ONLY_SOURCES = (
    *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "mkdocs.yml", "requirements.txt"),
    *("benchmarks", "docs", "examples", "findings"),
)
LEFT_OUT = ("tests", "runs/population", "runs/reference/other")
PLAYS_AND_DRAWS = read_text(__file__, "plays_and_draws.py.txt")
EVALUATE = "diplomacy-engine evaluate --map small"
NEEDS_PYTORCH = (
    f"{EVALUATE} --player small-pure-1 --against random",
    "diplomacy-train --map small",
    "python -m diplomacy_learners.press",
)


# Only what is installed is found, and nothing is compiled.
ELSEWHERE = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
ELSEWHERE |= {"NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}


def pip(*arguments: object, python: Path | None = None) -> None:
    """Run pip, for another environment than this one if its Python is given."""
    other = [] if python is None else ["--python", python]
    command = [sys.executable, "-m", "pip", *other, *arguments, "--quiet"]
    command.append("--disable-pip-version-check")
    subprocess.run([*map(str, command)], env=ELSEWHERE, check=True)


def copy_sources(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, folder / name)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Return the wheel of these sources, built beside them: no older build lies there."""
    folder = tmp_path_factory.mktemp("wheel")
    copy_sources(folder / "source", SOURCES)
    pip("wheel", "--no-deps", "--wheel-dir", folder, folder / "source")
    (file,) = folder.glob("*.whl")
    return file


def test_ranges_and_pins():
    """What the package asks for is what was tested, or near it; nothing is pinned in two places."""
    extras = PROJECT["optional-dependencies"]
    needs = [*PROJECT["dependencies"], *extras["train"], *extras["track"]]
    found = {need.name: need.specifier for need in map(Requirement, needs)}
    assert found.keys() == PINS.keys()
    own, *others = extras["dev"]
    assert own.startswith("diplomacy-selfplay[")  # its own extras, which requirements.txt pins
    for pin in others + extras["docs"]:
        assert re.fullmatch(r"[a-z0-9-]+(\[[a-z]+\])?==[\d.]+", pin), pin
    for name, versions in found.items():
        assert versions.contains(PINS[name]) and not str(versions).startswith("=="), name


def test_what_comes_along_is_listed():
    names = {name for name in code_spans(page_text("docs/training.md")) if name in ready_policies()}
    families = [{re.sub(r"-\d+$", "", name) for name in each} for each in (ready_policies(), names)]
    assert families[0] == families[1]


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {diplomacy_engine.__version__}\n" in citation
    assert f"\n  - name: {PROJECT['authors'][0]['name']}\n" in citation


@pytest.mark.slow
def test_what_a_wheel_holds(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        (about,) = [name for name in names if name.endswith("/METADATA")]
        facts = email.message_from_bytes(file.read(about))
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"diplomacy_engine", "diplomacy_learners", "ppo_selfplay_diplomacy.py"}
    for folder in ("diplomacy_engine", "diplomacy_learners"):
        assert f"{folder}/py.typed" in names
        for path in (ROOT / folder).rglob("*.*"):
            if path.is_file() and path.suffix != ".pyc":
                assert str(path.relative_to(ROOT)) in names
    assert len(ready_policies()) == sum(name.endswith("/policy.pt") for name in names) > 0
    for name in ("configs/population/runs.toml", "reference/small__pure__2/against_dumbbot.json"):
        assert {f"diplomacy_engine/{name}", "diplomacy_engine/configs/three.toml"} < names
    assert (facts["License-Expression"], facts["Author"]) == ("MIT", PROJECT["authors"][0]["name"])


@pytest.mark.slow
def test_what_the_archive_of_sources_holds(tmp_path):
    """All that README names, and all tests or none: none, as they need the population's 51 MB."""
    source = tmp_path / "source"
    others = [name for name in ONLY_SOURCES if (ROOT / name).exists()]
    copy_sources(source, (*SOURCES, *others))
    (source / "tests").mkdir()
    (source / "tests" / "test_one.py").write_text("")  # of which setuptools takes some by itself
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    build = [sys.executable, "-c", code, str(tmp_path)]
    subprocess.run(build, cwd=source, env=ELSEWHERE, capture_output=True, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {member.name.partition("/")[2] for member in file if member.isfile()}
    assert not [name for name in names if name.startswith(LEFT_OUT)]
    for name in (*SOURCES, *others):
        files = [path for path in (ROOT / name).rglob("*.*") if path.is_file()]
        for path in files if (ROOT / name).is_dir() else [ROOT / name]:
            relative = str(path.relative_to(ROOT))
            if name != "runs/reference" and path.suffix != ".pyc":
                assert relative in names, relative
    assert {str(p.relative_to(ROOT)) for p in (ROOT / "configs").rglob("*.*")} <= names
    assert sum(name.endswith("/policy.pt") for name in names) == len(ready_policies())


@pytest.mark.slow  # installs all that the engine needs
def test_the_engine_alone(wheel, tmp_path):
    """Without PyTorch it plays, draws and makes environments; what learns says what to install."""
    venv.create(tmp_path / "bare")
    programs = tmp_path / "bare" / ("Scripts" if os.name == "nt" else "bin")
    pip("install", "--constraint", ROOT / "requirements.txt", wheel, python=programs / "python")

    def run(line: str, *words: str) -> subprocess.CompletedProcess:
        program, *others = [*line.split(), *words]
        command = [str(programs / program), *others]
        return subprocess.run(command, cwd=tmp_path, env=ELSEWHERE, capture_output=True, text=True)

    assert "No module named 'torch'" in run("python -c", "import torch").stderr
    found = run(f"{EVALUATE} --player random --against dumbbot --games 2 --max-years 2")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith("random against dumbbot on map small: 2 games")
    found = run("python -c", PLAYS_AND_DRAWS)
    assert (found.stdout, found.stderr) == ("S1901M 200\nTrue\n", "")
    for line in NEEDS_PYTORCH:
        found = run(line)
        assert found.returncode == 2 and found.stdout == ""
        assert re.fullmatch(r"error: this needs PyTorch .*\n", found.stderr)
        assert f"pip install '{PROJECT['name']}[train]'" in found.stderr


def test_public_names_are_public_for_type_checkers():
    """`mypy --strict` takes a name for public that is imported as itself."""
    tree = ast.parse(Path(diplomacy_engine.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {a.asname for node in imports for a in node.names} == set(diplomacy_engine.__all__)


@pytest.mark.parametrize(("clone", "where"), [(True, "."), (False, PROJECT["name"])])
def test_whoever_installed_a_wheel_is_not_sent_to_a_clone(monkeypatch, tmp_path, clone, where):
    monkeypatch.setattr(_suggest, "__file__", str(tmp_path / "diplomacy_engine" / "_suggest.py"))
    if clone:
        (tmp_path / "pyproject.toml").touch()
    assert _suggest.install("llm") == f"pip install '{where}[llm]'"
