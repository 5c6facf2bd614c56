"""The cache of compiled kernels is keyed by all that a kernel is made of."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from support.tables import read_table, read_text

from diplomacy_engine import _jit
from diplomacy_engine.games import vector_game

EDITED = read_text(__file__, "edited.py.txt")
EDITS = read_table(__file__, "edits_of_a_kernel")  # text, another, the kernel's value then


@pytest.fixture
def result(tmp_path, monkeypatch):
    """Return a function that gives what the kernel of a source text returns for 1, and whether it
    was compiled."""
    monkeypatch.setattr(_jit, "CACHE_FOLDER", str(tmp_path))

    def get(source):
        module = ModuleType("edited")
        monkeypatch.setitem(sys.modules, "edited", module)
        exec(source, vars(module))
        return module.kernel(1), not module.kernel.stats.cache_hits

    return get


@pytest.mark.parametrize(("text", "another", "value"), EDITS)
def test_a_kernel_is_compiled_anew_if_what_it_is_made_of_has_changed(text, another, value, result):
    assert EDITED.count(text) == 1
    assert result(EDITED) == (10, True)
    assert result(EDITED.replace(text, another)) == (value, value != 10)
    assert result(EDITED) == (10, False)


NAMES = """
import hashlib
from importlib import import_module
from diplomacy_engine import _jit
for file in sorted(_jit._PACKAGE.rglob("*.py")):
    if "_jit import" in file.read_text():
        parts = file.relative_to(_jit._PACKAGE.parent).with_suffix("").parts
        module = import_module(".".join(parts))
        for name, kernel in vars(module).items():
            if isinstance(kernel, _jit.CPUDispatcher):
                text = " ".join(_jit._description(kernel, set(), {}))
                assert " at 0x" not in text, (name, text)
                print(name, hashlib.sha256(text.encode()).hexdigest())
"""


def test_kernels_have_the_same_names_in_every_process():
    command = [sys.executable, "-c", NAMES]
    first, second = (
        subprocess.run(
            command,
            cwd=_jit._PACKAGE.parent,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    )
    assert first == second and first.count("\n") > 100


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
    assert not list(tmp_path.rglob("*.kernel*"))


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
