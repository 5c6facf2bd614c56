"""The notebooks of examples/: every cell runs, and prints what stands below it; others train."""

import importlib
import importlib.metadata
import json
import re

import pytest
from support.pages import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_as_shown(path, monkeypatch, capsys):
    """But for digits where a network computes, which may differ between machines in the last."""
    monkeypatch.chdir(ROOT)
    space: dict = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), space)
            printed = [output["text"] for output in cell["outputs"] if "text" in output]
            shown, found = "".join(map("".join, printed)), capsys.readouterr().out
            if "torch" in space or "load_player" in space:
                shown, found = (re.sub(r"-?\d+", "0", text) for text in (shown, found))
            assert found == shown


def test_they_are_small_and_of_no_machine():
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        text = path.read_text()
        assert len(text) < 250_000 and not re.search(r"/(home|root|tmp|Users|work)/", text)


@pytest.mark.slow  # with libraries that are not among those of the tests
@pytest.mark.parametrize(
    ("library", "version", "amount"),
    [("torchrl", "0.14.1", {"frames": 6000}), ("ray", "2.60.0", {"iterations": 3})],
)
def test_other_libraries_train(library, version, amount):
    """The policy grows surer; skipped without the library in the version of the page."""
    pytest.importorskip(library)
    if importlib.metadata.version(library) != version:
        pytest.skip(f"needs {library} {version}")
    example = importlib.import_module(f"examples.{'rllib' if library == 'ray' else library}_ppo")
    entropies = example.train("small", **amount)
    assert entropies[-1] < entropies[0]
