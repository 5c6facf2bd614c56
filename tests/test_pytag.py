"""The curves against PyTAG's players: what is played, and that it is played once."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import pytag

POLICY = Path(__file__).parents[1] / "runs" / "reference" / "small__pure__1"


def test_goes_on_where_it_was_stopped(tmp_path, capsys, monkeypatch):
    run = tmp_path / "small__score__1__0"
    (run / "checkpoints").mkdir(parents=True)
    (run / "args.json").write_text('{"exp_name": "score", "seed": 1}')
    for step in (10, 20, 30, 40):
        shutil.copy(POLICY / "policy.pt", run / "checkpoints" / f"{step:012d}.pt")
    args = pytag.Args(
        runs=(run,),
        against=("random", "osla"),
        evaluations=(4, 2),
        games=(4,),
        last_games=(20, 6),
        out=tmp_path / "curves",
    )
    pytag.main(args)
    rows = [json.loads(line) for line in (tmp_path / "curves.jsonl").read_text().splitlines()]
    played = [(row["against"], row["step"], row["games"]) for row in rows]
    assert played == [
        *(("random", step, games) for step, games in ((10, 4), (20, 4), (30, 4), (40, 20))),
        *(("osla", step, games) for step, games in ((20, 4), (40, 6))),
    ]
    assert all(row["win"] == 1 and row["tie"] == 0 for row in rows[:4])
    assert rows[3]["lead"] == pytest.approx(5, abs=1), "a solo on small"
    assert "| `score` | `random` | 20 | 100.0 | 0.0 |" in capsys.readouterr().out
    assert (tmp_path / "curves.svg").stat().st_size
    monkeypatch.delattr(pytag, "play")
    pytag.main(args)
