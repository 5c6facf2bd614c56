"""Compiled kernels: what they are kept under, when they are compiled, and records in them."""

import ast
import fcntl
import importlib
import io
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import NumbaError
from support.tables import read_text

from diplomacy_engine import _compilation, _jit, _kernel_cache, _records

PACKAGE = Path(_jit.__file__).parent
KERNELS, CALLEE, FIRST_PHASE, FULL, COUNT = (
    read_text(__file__, f"{name}.py.txt")
    for name in ("kernels", "callee", "first_phase", "full", "count")
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package in which kernels.py uses facts.py, and tables.py, which uses sub/deep.py; other.py
    uses kernels.py."""
    folder = tmp_path / "edited"
    (folder / "sub").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "sub" / "__init__.py").touch()
    (folder / "kernels.py").write_text(KERNELS)
    (folder / "facts.py").write_text("GOAL = 1\n")
    (folder / "tables.py").write_text("from .sub.deep import callee\n")
    (folder / "sub" / "deep.py").write_text(CALLEE)
    (folder / "other.py").write_text("from .kernels import kernel\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_kernel_cache, "CACHE_FOLDER", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return folder


def started() -> tuple[int, bool]:
    """Return what the kernel returns for 3 in a new process, and whether it is compiled there."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "edited"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    _kernel_cache._kernel_sources.cache_clear()
    kernel = importlib.import_module("edited.kernels").kernel
    return kernel(3), not kernel.stats.cache_hits


def test_a_kernel_is_compiled_anew_if_a_file_that_it_is_made_of_has_changed(package):
    assert started() == (7, True)
    (package / "other.py").write_text("from .kernels import kernel as other\n")
    assert started() == (7, False)
    (package / "facts.py").write_text("GOAL = 2\n")
    assert started() == (8, True)
    (package / "sub" / "deep.py").write_text(CALLEE.replace("2 *", "5 *"))
    assert started() == (17, True)
    assert started() == (17, False)
    (package / "facts.py").write_text("GOAL = 1\n")
    (package / "sub" / "deep.py").write_text(CALLEE)
    assert started() == (7, False)


@cache
def files_imported(name: str, text: bytes) -> list[str]:
    """Return the files of the package that one of its files imports by relative imports."""
    files = []
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.ImportFrom) and node.level):
            continue
        module = node.module or node.names[0].name
        assert node.module or len(node.names) == 1, f"{name}: only one module is followed"
        folder = (PACKAGE / name).parents[node.level - 1]
        target = folder.joinpath(*module.split("."))
        file = target / "__init__.py" if target.is_dir() else target.with_suffix(".py")
        files.append(str(file.relative_to(PACKAGE)))
    return files


def test_no_import_of_a_kernel_file_is_missed():
    for kernels in sorted(PACKAGE.rglob("*.py")):
        if "@jit" in kernels.read_text():
            sources = _kernel_cache._kernel_sources(kernels)
            for name, text in sources.items():
                for file in files_imported(name, text):
                    assert file in sources, f"{name} imports {file}"


LOADED = 'assert "numba.np.arrayobj" not in sys.modules'


def test_kept_kernels_load_without_what_numba_compiles_arrays_with():
    """That would take longer than all the rest of a first phase."""
    exec(FIRST_PHASE, {})  # keeps the kernels
    subprocess.run([sys.executable, "-c", FIRST_PHASE + LOADED], cwd=PACKAGE.parent, check=True)


def test_a_kernel_that_cannot_be_compiled_keeps_no_process_waiting(package):
    (package / "sub" / "deep.py").write_text(CALLEE.replace("2 *", "[None] *"))
    with pytest.raises(NumbaError):
        started()
    (lock,) = package.parent.glob("*.lock")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Inner(NamedTuple):
    small: np.ndarray  # (any,) int16
    is_big: bool
    nothing: None


class Outer(NamedTuple):
    inner: Inner
    table: np.ndarray  # (rows, columns) float64
    number: int


Inner.__module__ = Outer.__module__ = "diplomacy_engine.tests"


@_jit.jit
def _fill(record, factor):
    """Write to the record's arrays and return a number, both by all that it holds."""
    inner, table, number = record
    for i in range(table.shape[0]):
        for j in range(record.table.shape[1]):
            table[i, j] += number * record.inner.small[j % inner.small.shape[0]] + factor
        record.inner.small[i % inner.small.shape[0]] += i
    return record.number + record[1][0, 0] + (1 if inner.is_big else 0)


@_jit.jit
def _fill_both(pair, third):
    total = 0.0
    for record in pair:
        total += _fill(record, 1)
    return total + _fill(third, np.int8(2)) + _fill(third, third.inner.small[0])


@_jit.jit_allocating
def _joined(record):
    return np.concatenate((record.inner.small, record.inner.small)) + record.number


@st.composite
def records(draw: Any) -> Outer:
    small = np.arange(draw(st.integers(1, 5)), dtype=np.int16)
    inner = Inner(small, draw(st.booleans()), None)
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    return Outer(inner, np.ones(shape), draw(st.integers(-9, 9)))


def copied(record: Outer) -> Outer:
    inner = record.inner._replace(small=record.inner.small.copy())
    return record._replace(inner=inner, table=record.table.copy())


@given(records(), records(), records())
def test_a_record_in_a_kernel_is_what_it_is_in_python(first, second, third):
    other = [copied(record) for record in (first, second, third)]
    assert isinstance(_jit.numba.typeof(first), _records.Record)
    value = _fill_both((first, second), third)
    assert value == _fill_both.py_func(tuple(other[:2]), other[2])
    for record, plain in zip((first, second, third), other, strict=True):
        np.testing.assert_array_equal(_joined(record), _joined.py_func(plain))
        np.testing.assert_array_equal(record.table, plain.table)
        np.testing.assert_array_equal(record.inner.small, plain.inner.small)


@_jit.jit
def _power_of(width):
    return 2**width


@_jit.jit
def _powers(widths, other):
    return _power_of(widths[0]) + _power_of(other) + _power_of(len(widths)) + _power_of(3)


def test_a_kernel_in_others_is_compiled_once_for_all_widths_of_integers(tmp_path, monkeypatch):
    monkeypatch.setattr(_kernel_cache, "CACHE_FOLDER", str(tmp_path))
    assert _powers(np.array([40], np.int8), np.int16(5)) == 2**40 + 2**5 + 2 + 8
    assert len(_power_of.inner.signatures) == 1


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
    shutil.copytree(PACKAGE, clone / "diplomacy_engine")
    cache = tmp_path / "cache"
    compiled, said = started_in(PACKAGE.parent, cache)
    assert compiled > 0 and said.startswith("compiling the game kernels for this machine, once: ")
    assert started_in(clone, cache) == (0, "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_still_missing_is_announced_and_counted(monkeypatch):
    """Some kernels are there, others are compiled: said once that takes long enough to notice."""
    clock, screen = iter([0.0, 0.5, 10.0, 11.0, 12.5]), Terminal()
    monkeypatch.setattr(_compilation.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "__stderr__", screen)
    compilation, shown = _compilation._Compilation(), []
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


@pytest.mark.slow
@pytest.mark.parametrize("place", ["a folder", "nothing"])
def test_without_room_for_kernels_they_are_compiled_and_not_kept(place, tmp_path):
    """No file can be written, as on a full disk; or there is not even a folder to write into."""
    (tmp_path / "file").touch()
    cache = tmp_path / "cache" if place == "a folder" else tmp_path / "file"
    own = dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR"), str(cache))
    done = subprocess.run(
        [sys.executable, "-c", FULL],
        cwd=PACKAGE.parent,
        env=os.environ | own,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "True 38\n"), done.stderr
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"compiled kernels cannot be saved in {cache}")
    assert not list(tmp_path.rglob("*.kernel*"))


def test_a_user_without_a_home_keeps_kernels_in_a_temporary_folder(tmp_path, monkeypatch):
    """Nor a name, by which Python would find one."""
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_kernel_cache.os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(_kernel_cache.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert Path(_kernel_cache._cache_folder()).parent == tmp_path / "temporary"
    assert not list((tmp_path / "here").iterdir())
