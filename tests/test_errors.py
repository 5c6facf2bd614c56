"""One class of errors is for the user; whatever else is raised is a bug, and is seen as one."""

import importlib
import inspect
import pkgutil
import sys

import pytest
from support.commands import refusal
from support.training import main as train

import diplomacy_engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import PlayerError, UserError
from diplomacy_engine._suggest import quoted
from diplomacy_engine.commands import check_map
from diplomacy_engine.commands.cli import main
from diplomacy_engine.commands.train import main as train_command
from diplomacy_engine.learning import startup


def fail(error: Exception):
    def failing(*_):
        raise error

    return failing


def error_classes() -> dict[str, type]:
    modules = [ppo]
    for found in pkgutil.walk_packages(diplomacy_engine.__path__, "diplomacy_engine."):
        if not found.name.endswith("__main__"):
            modules.append(importlib.import_module(found.name))
    return {
        name: kind
        for module in modules
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, BaseException) and kind.__module__ == module.__name__
    }


def test_every_error_of_the_project_is_a_user_error():
    classes = error_classes()
    assert {"UserError", "MapError", "PlayerError"} <= classes.keys()
    del classes["Stopped"]  # ends a training in order: nothing is wrong
    assert all(issubclass(kind, UserError) for kind in classes.values()), classes
    assert issubclass(UserError, ValueError)  # as which callers could always catch them


def test_a_command_reports_what_the_user_did_and_not_its_own_bugs(monkeypatch, capsys):
    monkeypatch.setattr(check_map, "load_map", fail(UserError("no such thing")))
    assert refusal("check-map", "small", capsys=capsys) == "no such thing"
    monkeypatch.setattr(check_map, "load_map", fail(ValueError("a bug")))
    with pytest.raises(ValueError, match="a bug"):
        main(["check-map", "small"])
    assert capsys.readouterr().err == ""


def test_without_pytorch_it_is_said_what_to_install(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("diplomacy_engine.learning")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(sys, "argv", ["diplomacy-train"])
    evaluate = "evaluate --map small --player small-pure-1 --against random"
    for command in (lambda: main(evaluate.split()), train_command):
        assert command() == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ") and "PyTorch" in said and "'.[train]'" in said


def test_so_does_the_trainer(monkeypatch, tmp_path, capsys):
    argv = ["--runs-folder", str(tmp_path), "--processes", "1"]
    monkeypatch.setattr(startup, "new_run", fail(UserError("no such thing")))
    assert train(argv) == 2
    assert capsys.readouterr().err == "error: no such thing\n"
    monkeypatch.setattr(startup, "new_run", fail(ValueError("a bug")))
    with pytest.raises(ValueError, match="a bug"):
        train(argv)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("\x1b[2J\u202e\n", r"'\x1b[2J\u202e\n'"),
        (list(range(1000)), "[0, 1, 2, 3, 4, 5, 6"),
        (10**5000, "something of type int"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_files_are_shown_shortened(value, shown):
    assert quoted(value, 20) == shown


def test_a_list_that_holds_itself_is_shown():
    value: list = []
    value.append(value)
    assert quoted(value) == "[[[...]]]"


def test_no_message_has_control_characters():
    """A terminal would obey them; a message may quote a file, and the file come from anybody."""
    for error in (UserError, PlayerError):
        assert str(error("\x1b]0;owned\x07 É 漢 \u202e\n")) == r"\x1b]0;owned\x07 É 漢 \u202e\n"
