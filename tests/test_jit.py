"""The cache of compiled kernels is keyed by every file that a kernel is compiled from."""

import ast
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.tables import read_text

from diplomacy_engine import _jit
from diplomacy_engine.games import vector_game
from diplomacy_engine.rules.legal_orders import list_game
from diplomacy_engine.rules.state import next_random


@pytest.fixture
def package(tmp_path):
    """A package in which kernels.py uses facts.py, and tables.py, which uses sub/deep.py; other.py
    has none."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "_jit.py").write_text("jit = None\n")
    (tmp_path / "kernels.py").write_text(
        "from . import facts as known\nfrom ._jit import jit\nfrom .tables import ONE\n\n\n"
        "@jit\ndef kernel():\n    pass\n"
    )
    (tmp_path / "facts.py").write_text("GOAL = 1\n")
    (tmp_path / "tables.py").write_text("from .sub.deep import (\n    ONE,\n)\n")
    (tmp_path / "sub" / "__init__.py").write_text("")
    (tmp_path / "sub" / "deep.py").write_text("from ..base import ONE\n")
    (tmp_path / "base.py").write_text("ONE = 1\n")
    (tmp_path / "other.py").write_text("from .kernels import kernel\n")
    return tmp_path


def test_only_what_kernels_use_is_hashed(package):
    used = {"_jit.py", "base.py", "facts.py", "kernels.py", "sub/deep.py", "tables.py"}
    assert set(_jit._kernel_sources(package)) == used


def test_a_change_of_what_a_kernel_uses_changes_the_hash(package, monkeypatch):
    monkeypatch.setattr(_jit, "_PACKAGE", package)
    before = _jit._sources_hash()
    (package / "other.py").write_text("from .kernels import kernel as other\n")
    assert _jit._sources_hash() == before
    (package / "base.py").write_text("ONE = 2\n")
    assert _jit._sources_hash() != before


def test_no_import_of_a_kernel_file_is_missed():
    sources = _jit._kernel_sources(_jit._PACKAGE)
    for name, text in sources.items():
        folder = (_jit._PACKAGE / name).parent
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.ImportFrom) and node.level):
                continue
            module = node.module or node.names[0].name
            assert node.module or len(node.names) == 1, f"{name}: only one module is followed"
            target = folder.joinpath(*[".."] * (node.level - 1), *module.split(".")).resolve()
            file = target / "__init__.py" if target.is_dir() else target.with_suffix(".py")
            assert str(file.relative_to(_jit._PACKAGE)) in sources, f"{name} imports {file}"


@pytest.mark.parametrize("kernel", [next_random, list_game])
def test_a_kernel_for_other_kernels_cannot_be_called_from_python(kernel):
    name = kernel.py_func.__name__
    for call in (kernel, lambda number: _jit.compiled(kernel, number)):
        with pytest.raises(TypeError, match=f"{name} can only be called by another kernel"):
            call(3)


COUNT = read_text(__file__, "count.py.txt")


def started_in(folder: Path, cache: Path) -> tuple[int, str]:
    own = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", COUNT],
        cwd=folder,
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout), done.stderr


@pytest.mark.slow
def test_clones_of_the_same_sources_share_their_kernels(tmp_path):
    clone = tmp_path / "clone"
    shutil.copytree(_jit._PACKAGE, clone / "diplomacy_engine")
    cache = tmp_path / "cache"
    compiled, said = started_in(_jit._PACKAGE.parent, cache)
    assert compiled > 0 and said.startswith("compiling the game kernels for this machine, once: ")
    assert not list(cache.rglob("second-*"))  # of the second process, which ended with the first
    assert started_in(clone, cache) == (0, "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_still_missing_is_announced_and_counted(monkeypatch):
    """Some kernels are there, others are compiled: said once that takes long enough to notice."""
    clock, screen = iter([0.0, 0.5, 10.0, 11.0, 12.5]), Terminal()
    monkeypatch.setattr(_jit.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "__stderr__", screen)
    compilation, shown = _jit._Compilation(), []
    for event in ("start", "end", "start", "start", "end", "end"):  # a kernel, one in another
        getattr(compilation, f"on_{event}")(None)
        shown.append(screen.getvalue())
    assert not any(shown[:-1])
    said, _, counted = shown[-1].partition("\n")
    assert said == "compiling the game kernels for this machine, once: some are still missing"
    assert counted == "\r\x1b[K"  # done: the line is free for what comes next
    compilation.depth = 1
    compilation.show(f"{compilation.kernels} kernels compiled")
    assert screen.getvalue().endswith("\r\x1b[K3 kernels compiled")


def test_kernels_of_the_second_process_are_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(_jit, "CACHE_FOLDER", str(tmp_path / "kernels-1"))
    compilation = _jit._Compilation()
    compilation.folder = tmp_path / "kernels-1" / "second-1"
    own, other = tmp_path / "kernels-1" / "rules", compilation.folder / "kernels-1" / "rules"
    for folder, name in ((own, "a"), (other, "a"), (other, "b")):
        folder.mkdir(parents=True, exist_ok=True)
        for ending in ("nbi", "1.nbc", "2.nbc"):
            (folder / f"{name}.py311.{ending}").write_text(f"{name} of {folder.parent.parent.name}")
    compilation.adopt()
    assert {path.name for path in own.iterdir()} == {
        f"{name}.py311.{ending}" for name in "ab" for ending in ("nbi", "1.nbc", "2.nbc")
    }
    assert (own / "a.py311.1.nbc").read_text() == f"a of {tmp_path.name}"
    assert (own / "b.py311.2.nbc").read_text() == "b of second-1"


def test_what_the_second_process_runs():
    """It is a text, as kernels import _jit; the kernel that it compiles is the awaited one."""
    exec(_jit._Compilation.HELPER, {})
    assert vector_game._step_games.py_func.__name__ == _jit._Compilation.HELPED


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from diplomacy_engine import load_map
from diplomacy_engine.rules.state import allocate_state, count_units, is_alive
state = allocate_state(load_map("small").board, 1)
print(is_alive(state, 0, 0), count_units(state, 0, 0))
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["a folder", "nothing"])
def test_without_room_for_kernels_they_are_compiled_and_not_kept(place, tmp_path):
    """No file can be written, as on a full disk; or there is not even a folder to write into."""
    (tmp_path / "file").touch()
    cache = tmp_path / "cache" if place == "a folder" else tmp_path / "file"
    own = dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR"), str(cache))
    done = subprocess.run(
        [sys.executable, "-c", FULL],
        cwd=_jit._PACKAGE.parent,
        env=os.environ | own,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "True 38\n"), done.stderr
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"compiled kernels cannot be saved in {cache}")
    assert not list(tmp_path.rglob("*.nb?"))


def test_a_user_without_a_home_keeps_kernels_in_a_temporary_folder(tmp_path, monkeypatch):
    """Nor a name, by which Python would find one."""
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_jit.os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(_jit.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert Path(_jit._cache_folder()).parent == tmp_path / "temporary"
    assert not list((tmp_path / "here").iterdir())
