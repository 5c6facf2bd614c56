"""Edits of how the script learns: each works with one and two processes, in commands and when a run
goes on, or is refused before it trains, or stops in its first update."""

import itertools

import pytest
import torch
from support.edits import assert_refused, assert_usable, named, read_edits, train_edited, write
from support.tables import slow_but
from support.training import load, metrics

EDITS = read_edits("learning")
CHECKS = ("metric", "weight", "rates", "kept")  # of what an edit does, in `check_effect`
# A loss, a network whose state could be one of each process; test_resume.py has more.
ALWAYS = [("a second value head", 1), ("BatchNorm", 2)]
WORKS = slow_but(ALWAYS, itertools.product(named(EDITS, "works"), (1, 2)))


def check_effect(run, settings: dict) -> None:
    saved, lines = load(run), metrics(run)
    if "metric" in settings:
        assert any(f"losses/{settings['metric']}" in line for line in lines)
    if "weight" in settings:
        first, weight = (
            policy[settings["weight"]]
            for policy in (saved["run"]["pool"]["agents"][1], saved["model"])
        )
        assert torch.isfinite(weight).all() and not torch.equal(first, weight)
    if "rates" in settings:
        first, second = saved["run"]["optimizer"]["param_groups"]
        assert (
            first["lr"] == pytest.approx(settings["rates"] * second["lr"]) and second["lr"] < 1e-3
        )
    if "kept" in settings:
        assert any(settings["kept"] in part for part in (saved["run"], *saved["ranks"]))


@pytest.mark.parametrize("name", ["agent", "learning"])
def test_each_edit_s_lines_stand_in_the_script(name, tmp_path):
    """Most edits are tried by slow tests alone."""
    for title, edit in read_edits(name).items():
        write(tmp_path / f"{title}.py", *edit.edits)


@pytest.mark.slow
def test_a_compiled_layer_works(imported, tmp_path):
    edits = EDITS["a compiled layer"].edits
    assert_usable(*train_edited(edits, imported, tmp_path, 2))


@pytest.mark.slow
@pytest.mark.parametrize("edit", named(EDITS, "slow refused"))
def test_a_compiled_method_is_refused(edit, imported, tmp_path, capsys):
    """PyTorch fails on its arrays where nothing is learned."""
    torch.compiler.reset()  # what other tests have compiled does not matter
    edit = EDITS[edit]
    assert_refused(edit.edits, imported, tmp_path, *edit.names, capsys=capsys)


@pytest.mark.parametrize(("edit", "processes"), WORKS)
def test_an_edit_works(edit, processes, imported, tmp_path):
    settings = EDITS[edit].settings
    changes = {name: value for name, value in settings.items() if name not in CHECKS}
    script, run = train_edited(EDITS[edit].edits, imported, tmp_path, processes, **changes)
    check_effect(run, settings)
    assert_usable(script, run)


@pytest.mark.parametrize("edit", named(EDITS, "refused", "stopped"))
def test_an_edit_is_refused_before_it_trains_or_stops_it(edit, imported, tmp_path, capsys):
    kind, edits, names, changes = EDITS[edit]
    begins = kind == "stopped"
    assert_refused(edits, imported, tmp_path, *names, capsys=capsys, begins=begins, **changes)


@pytest.mark.slow
def test_lines_by_heart_learn_with_one_process(imported, tmp_path):
    assert_usable(*train_edited(EDITS["lines by heart"].edits, imported, tmp_path))
