"""How many processors may be used: the number of threads and processes wherever nobody says one."""

import math
import os
from collections.abc import Iterator
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many processors this process may use, at least 1: by its affinity, and by the time
    that its cgroups allow it, as a container's limit does. A part of a processor counts as one.
    `root` is where /proc and /sys are."""
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on; knows PYTHON_CPU_COUNT, too
        cores = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count()
    return max(1, min([cores or 1, *map(math.ceil, _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """Yield the limits of this process' cgroups and all above them, in processors."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    for group in groups:
        _, _, rest = group.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        # In a container its own group is often mounted where the path should begin.
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        folder = mount / path.strip("/")
        for place in [folder, *folder.parents]:
            if place.is_relative_to(mount) and (quota := _quota(place)):
                yield quota


def _quota(folder: Path) -> float | None:
    """Return what a cgroup allows, in processors; None: no limit, or no such group."""
    for names in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):  # version 2, version 1
        try:
            texts = [(folder / name).read_text() for name in names]
            quota, period = map(int, " ".join(texts).split())
        except (OSError, ValueError):  # "max" is no number
            continue
        if quota > 0 and period > 0:
            return quota / period
    return None
