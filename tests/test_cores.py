"""How many processors may be used: affinity and limits of cgroups, which all places ask for."""

import os
import re

import pytest
from support.pages import ROOT
from support.tables import read_table

from diplomacy_engine import VectorGame, _cores


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine of eight processors, all of which this process may use."""
    monkeypatch.setattr(os, "process_cpu_count", lambda: 8, raising=False)
    return tmp_path


@pytest.mark.parametrize(("groups", "files", "cores"), read_table(__file__, "limits_of_cgroups"))
def test_limits_of_cgroups(root, groups, files, cores):
    files = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in (files | {"proc/self/cgroup": groups}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert _cores.usable_cores(root) == cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_affinity():
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(every)])
    try:
        assert [VectorGame("small", 64, threads=n).threads for n in (None, 3)] == [1, 3]
    finally:
        os.sched_setaffinity(0, every)


def test_nobody_counts_processors_himself():
    own = re.compile(r"cpu_count|sched_getaffinity|multiprocessing\.cpu")
    files = [
        path
        for folder in ("diplomacy_engine", "diplomacy_learners", "examples", "benchmarks", "tests")
        for path in (ROOT / folder).rglob("*.py")
        if path.name not in ("_cores.py", "test_cores.py")
    ]
    files.append(ROOT / "ppo_selfplay_diplomacy.py")
    assert len(files) > 100
    assert not [path for path in files if own.search(path.read_text(errors="replace"))]
