"""The cache of compiled kernels is keyed by every file that a kernel is compiled from."""

import ast

import pytest

from diplomacy_engine import _jit
from diplomacy_engine.rules.legal_orders import list_game
from diplomacy_engine.rules.state import next_random


@pytest.fixture
def package(tmp_path):
    """A package in which kernels.py uses tables.py, which uses sub/deep.py; other.py has none."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "_jit.py").write_text("jit = None\n")
    (tmp_path / "kernels.py").write_text(
        "from ._jit import jit\nfrom .tables import ONE\n\n\n@jit\ndef kernel():\n    pass\n"
    )
    (tmp_path / "tables.py").write_text("from .sub.deep import (\n    ONE,\n)\n")
    (tmp_path / "sub" / "__init__.py").write_text("")
    (tmp_path / "sub" / "deep.py").write_text("from ..base import ONE\n")
    (tmp_path / "base.py").write_text("ONE = 1\n")
    (tmp_path / "other.py").write_text("from .kernels import kernel\n")
    return tmp_path


def test_only_what_kernels_use_is_hashed(package):
    assert set(_jit._kernel_sources(package)) == {
        "_jit.py",
        "base.py",
        "kernels.py",
        "sub/deep.py",
        "tables.py",
    }


@pytest.mark.parametrize("name", ["kernels.py", "tables.py", "sub/deep.py", "base.py", "_jit.py"])
def test_a_change_of_what_a_kernel_uses_changes_the_hash(package, monkeypatch, name):
    monkeypatch.setattr(_jit, "_PACKAGE", package)
    before = _jit._sources_hash()
    (package / "other.py").write_text("from .kernels import kernel as other\n")
    assert _jit._sources_hash() == before
    (package / name).write_text((package / name).read_text() + "TWO = 2\n")
    assert _jit._sources_hash() != before


def test_no_import_of_a_kernel_file_is_missed():
    sources = _jit._kernel_sources(_jit._PACKAGE)
    for name, text in sources.items():
        folder = (_jit._PACKAGE / name).parent
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.ImportFrom) and node.level):
                continue
            assert node.module, f"{name}: `from . import` is not followed"
            target = folder.joinpath(*[".."] * (node.level - 1), *node.module.split(".")).resolve()
            file = target / "__init__.py" if target.is_dir() else target.with_suffix(".py")
            assert str(file.relative_to(_jit._PACKAGE)) in sources, f"{name} imports {file}"


@pytest.mark.parametrize("kernel", [next_random, list_game])
def test_a_kernel_for_other_kernels_cannot_be_called_from_python(kernel):
    name = kernel.py_func.__name__
    for call in (kernel, lambda number: _jit.compiled(kernel, number)):
        with pytest.raises(TypeError, match=f"{name} can only be called by another kernel"):
            call(3)
