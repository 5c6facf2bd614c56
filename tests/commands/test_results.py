"""What evaluations and tournaments print, write and show on the way."""

import shutil

import pytest

from diplomacy_engine._progress import Progress
from diplomacy_engine.commands import _matches
from diplomacy_engine.commands.cli import main
from diplomacy_engine.learning import checkpoints
from diplomacy_engine.players.policy.files import ready_policies

EVALUATE = "evaluate --map small --player dumbbot --against random --games 6 --max-years 5"
TOURNAMENT = "tournament --map three --players dumbbot random hold --games 9 --max-years 5"


THREE = "evaluate --map three --player random --against hold --games 4 --max-years 3"


@pytest.mark.parametrize(("words", "total"), [(EVALUATE, 6), (THREE, 6), (TOURNAMENT, 9)])
def test_progress(words, total, monkeypatch, capsys):
    """Of running games, too, so that it moves while the first ones are still played."""
    seen = []

    class Seen(Progress):
        def __init__(self, *args, **options):
            super().__init__(*args, **options, clock=lambda: 0.0)

        def update(self, step, **figures):
            seen.append((step, self.total, self.unit))
            super().update(step, **figures)

    monkeypatch.setattr(_matches, "Progress", Seen)
    assert main(words.split()) == 0
    steps = [step for step, _, _ in seen]
    assert steps == sorted(steps) and steps[-1] == total
    assert len(set(steps)) > 3
    assert {(of, unit) for _, of, unit in seen} == {(total, "games")}
    assert capsys.readouterr().err == ""  # before ten seconds, where there is no terminal


def test_a_command_reads_a_checkpoint_once(tmp_path, monkeypatch, capsys):
    """Though it says the map, which it has to fit, and is played."""
    read, paths = checkpoints.read, []
    monkeypatch.setattr(checkpoints, "read", lambda path: paths.append(str(path)) or read(path))
    files = [shutil.copy(ready_policies()[f"small-pure-{n}"], tmp_path / f"{n}.pt") for n in (1, 2)]
    words = f"evaluate --player greedy:{files[0]} --against {files[1]} --games 2 --max-years 1"
    assert main(words.split()) == 0, capsys.readouterr().err
    assert sorted(paths) == [str(file) for file in files]
