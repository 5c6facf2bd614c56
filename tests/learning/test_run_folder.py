"""Run folders: atomic writes, growing files cut back on resume, rotation, bad disks."""

import dataclasses
import errno
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from diplomacy_engine._files import atomic_write
from diplomacy_engine.errors import UserError
from diplomacy_engine.learning.run_folder import KEPT, RunFolder
from diplomacy_engine.players.policy.files import policy_file


@dataclasses.dataclass
class Args:
    runs_folder: str
    seed: int = 1


@pytest.fixture
def run(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print('hello')\n")
    made = RunFolder.create(Args(str(tmp_path / "runs")), "small", "test", script)
    made.close()  # for other processes
    return made


def test_create(run, tmp_path):
    begin = run.path.name.split("__")
    assert begin[:3] == ["small", "test", "1"] and abs(int(begin[3]) - time.time()) < 60
    args = {"runs_folder": str(tmp_path / "runs"), "seed": 1}
    assert json.loads((run.path / "args.json").read_text()) == args == run.load_args()
    assert (run.path / "train.py").read_text() == "print('hello')\n"
    again = RunFolder.create(Args(str(tmp_path / "runs")), "small", "test", tmp_path / "train.py")
    assert again.path != run.path


def test_atomic_write_replaces_no_link_and_no_device(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    atomic_write(tmp_path / "link", b"one")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"one"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    atomic_write(tmp_path / "pipe", b"two")
    assert os.read(reader, 10) == b"two" and (tmp_path / "pipe").is_fifo()
    atomic_write(f"/dev/fd/{os.open(tmp_path / 'pipe', os.O_RDWR)}", b"three")
    assert os.read(reader, 10) == b"three"
    with pytest.raises(UserError, match="Is a directory"):
        atomic_write(tmp_path, b"three")


@pytest.mark.parametrize(
    ("failure", "raised", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), UserError, "No space left"),
        (RuntimeError("writer failed"), RuntimeError, "writer failed"),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
)
def test_a_failed_write_leaves_the_earlier_file(tmp_path, failure, raised, message):
    path = tmp_path / "file"
    atomic_write(path, b"earlier")

    def fail(file):
        file.write(b"half")
        raise failure

    with pytest.raises(raised, match=message):
        atomic_write(path, fail)
    assert path.read_bytes() == b"earlier" and os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_full_disk_leaves_whole_lines(run):
    """A limit on the size of files stands for it."""
    import resource

    run.log(1, {"loss": 0.5})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(UserError, match=r"metrics\.jsonl"):
            run.log(2, {"text": "x" * 10_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (run.path / "metrics.jsonl").read_text() == '{"global_step": 1, "loss": 0.5}\n'


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_read_only_run_folder(run):
    """Not in pytest's own folder, which each pytest that starts closes to other users."""
    run.save_checkpoint(1, b"earlier")
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        run = RunFolder(shutil.copytree(run.path, Path(folder) / "run"))
        os.chmod(run.path, 0o555)
        os.seteuid(user or 65534)  # a superuser may write anywhere
        try:
            for call, where in (
                (lambda: RunFolder.open(run.path), run.path),
                (lambda: run.save_checkpoint(2, b"later"), run.checkpoint),
                (lambda: run.log(2, {}), run.path / "metrics.jsonl"),
            ):
                with pytest.raises(UserError, match=rf"{where}.*: Permission denied"):
                    call()
        finally:
            os.seteuid(user)
            os.chmod(run.path, 0o755)
        assert run.checkpoint.read_bytes() == b"earlier"


def test_rotation(run):
    steps = (5, 10, 900, 1_000, 20_000, 30_000)
    for step in steps:
        run.save_checkpoint(step, str(step).encode())
    kept = sorted((run.path / "checkpoints").iterdir())
    assert [path.read_bytes() for path in kept] == [str(step).encode() for step in steps[-KEPT:]]
    assert run.checkpoint.read_bytes() == b"30000"
    run.save_checkpoint(30_000, b"again")
    assert kept[-1].read_bytes() == run.checkpoint.read_bytes() == b"again"
    assert not list(run.path.rglob(".*"))


def test_policy_file(tmp_path):
    assert policy_file(tmp_path / "gone.pt") == tmp_path / "gone.pt"
    assert policy_file(tmp_path).name == "checkpoint.pt"
    (tmp_path / "policy.pt").touch()
    assert policy_file(tmp_path) == tmp_path / "policy.pt"
    (tmp_path / "checkpoint.pt").touch()  # the newer of the two, in a run that goes on
    assert policy_file(str(tmp_path)) == tmp_path / "checkpoint.pt"


def test_metrics(run):
    run.log(10, {"losses/entropy": np.float32(0.5), "charts/SPS": 100, "bad": float("nan")})
    run.log(np.int64(20), {})
    lines = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert lines == [
        {"global_step": 10, "losses/entropy": 0.5, "charts/SPS": 100, "bad": None},
        {"global_step": 20},
    ]
    run.log(30, {"eval/d'après/win": 0.5})
    assert run.most("eval/d'après/win") == 0.5


def test_cut_back(run):
    run.log(1, {"x": 1})
    run.append("games/first.jsonl", [{"id": "a"}, {"id": "b"}])
    sizes = json.loads(json.dumps(run.sizes()))  # as a checkpoint would store it
    before = {name: (run.path / name).read_bytes() for name in sizes}
    run.log(2, {"x": 2})
    run.append("games/first.jsonl", [{"id": "c"}])
    run.append("games/second.jsonl", [{"id": "d"}])
    (run.path / "events.out.tfevents.9").write_bytes(b"later")
    run.cut_back(sizes)
    assert {name: (run.path / name).read_bytes() for name in run.sizes()} == before
    run.cut_back({"args.json": 0, "../train.py": 0})
    assert run.load_args() == dataclasses.asdict(Args(str(run.path.parent))) and not run.sizes()
    assert (run.path.parent.parent / "train.py").stat().st_size > 0


def test_a_cut_back_that_is_refused(run):
    (run.path / "metrics.jsonl").mkdir()
    with pytest.raises(UserError, match=r"metrics\.jsonl cannot be shortened"):
        run.cut_back({"metrics.jsonl": 0})


def test_what_a_kill_left_of_a_page_is_removed(run):
    run.save_checkpoint(1, b"x")
    run.close()
    left = run.path / "games" / ".000000001.html.77.tmp"
    left.write_bytes(b"half")
    RunFolder.open(run.path)
    assert not left.exists()


def test_a_run_is_removed_whole_and_once_more(run):
    """A run that was refused is removed; nothing that stands in the way hides why."""
    run.save_checkpoint(1, b"x")
    run.remove()
    assert not run.path.exists()
    run.remove()
