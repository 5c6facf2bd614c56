"""What this machine lacks for a run; other settings are refused in script/test_refusals."""

import os

import pytest

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.errors import UserError
from diplomacy_engine.learning.checks import check_memory
from diplomacy_engine.rules.map import load_map


def test_processes_take_memory(monkeypatch):
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 16 * 2**18}  # 16 GiB
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    args, small = ppo.Args(num_envs=1024, processes=1024), load_map("small")
    with pytest.raises(UserError, match=r"--processes 1024 .* 181 GiB"):
        check_memory(args, small, 10_000, 1024)
    check_memory(args, small, 10_000, 4)  # torchrun's, whatever --processes says
