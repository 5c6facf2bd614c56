"""How many processors may be used: affinity and limits of cgroups, which all places ask for."""

import os
import re
import subprocess
import sys

import pytest
from support.pages import ROOT

from diplomacy_engine import _cores


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine of eight processors, all of which this process may use."""
    monkeypatch.setattr(os, "process_cpu_count", lambda: 8, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("groups", "files", "cores"),
    [
        ("", {}, 8),
        ("0::/", {"cpu.max": "max 100000"}, 8),
        ("0::/", {"cpu.max": "200000 100000"}, 2),  # in a container, which sees itself as the root
        ("0::/", {"cpu.max": "150000 100000"}, 2),
        ("0::/", {"cpu.max": "10000 100000"}, 1),
        ("0::/", {"cpu.max": "3200000 100000"}, 8),  # more than there are
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, 3),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "100000 100000"}, 1),
        ("0::/a/b", {"other/cpu.max": "100000 100000"}, 8),
        ("0::/../../c", {"cpu.max": "400000 100000"}, 4),
        ("0::/", {"cpu.max": ""}, 8),
        ("0::/", {"cpu.max": "0 0"}, 8),
        (
            "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/",
            {"cpu/docker/1/cpu.cfs_quota_us": "250000", "cpu/docker/1/cpu.cfs_period_us": "50000"},
            5,
        ),
        (  # its own group is mounted where the path should begin
            "5:cpuacct,cpu:/docker/1",
            {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"},
            2,
        ),
        ("5:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ("5:cpuset:/", {"cpu.max": "100000 100000"}, 8),  # of a controller that is not the CPU's
        ("nonsense", {"cpu.max": "100000 100000"}, 1),
    ],
)
def test_limits_of_cgroups(root, groups, files, cores):
    files = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    for name, text in (files | {"proc/self/cgroup": groups}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert _cores.usable_cores(root) == cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_affinity():
    code = """
import os
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
from diplomacy_engine import VectorGame
print(VectorGame("small", 64).threads, VectorGame("small", 64, threads=3).threads)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 3\n"


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
