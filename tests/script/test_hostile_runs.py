"""Run folders from somebody else: whatever is in them, resuming ends in one sentence, or goes on.

No code runs that the command line does not name, nothing outside the folder changes, no kernel
reads beyond its arrays, nothing takes forever.
"""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from support.training import REPOSITORY, files, load, refused, resume, stop_in_step, train

from diplomacy_engine.errors import UserError
from diplomacy_engine.learning import startup
from diplomacy_engine.learning.ranks import Ranks

SECONDS = 60  # for one resume, which takes less than one

CHANGES = {
    "total_timesteps": 300,
    "pool_bots": ["dumbbot"],
    "warm_up_share": 0.3,
    "eval_bots": ["hold"],
    "eval_interval": 150,
    "eval_games": 2,
    "league_games": 2,
    "average": 1.0,
    "opponent_temperature": 2.0,
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that was stopped with everything under way; read only."""
    with pytest.MonkeyPatch.context() as patch:
        stop_in_step(patch, 27)
        run = train(tmp_path_factory.mktemp("hostile") / "runs", **CHANGES)
    saved = load(run)
    kept, (own,) = saved["run"], saved["ranks"]
    assert (
        kept["league"]["ratings"]
        and own["buffer"]["open"].any()
        and any(kept["pool"]["games"].values())
    )
    assert kept["sums"]["games"] and len(kept["pool"]["agents"]) > 1 and own["buffer"]["seen"]
    assert saved["global_step"] < 300
    return run


@pytest.fixture
def run(stopped, tmp_path):
    return Path(shutil.copytree(stopped, tmp_path / "run"))


# --- What the checkpoint holds --------------------------------------------------------------------

MUTATE = """
import json, math, os, random, shutil, signal, sys, io, contextlib
from pathlib import Path
import torch
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.learning import startup
from diplomacy_engine.learning.ranks import Ranks

source, target = map(Path, sys.argv[1:3])
first, step = map(int, sys.argv[3:])
saved = torch.load(source / "checkpoint.pt", weights_only=True)
signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process


def shared(depth):
    found = [1]
    for _ in range(depth):
        found = [found, found]
    return found


def others(value):
    if isinstance(value, torch.Tensor):
        if value.numel():
            if value.dtype == torch.bool:
                yield "inverted", ~value
            elif value.is_floating_point():
                yield "nan", value * math.nan
                yield "infinite", torch.full_like(value, math.inf)
                yield "huge", torch.full_like(value, 1e30)
            elif value.dtype in (torch.uint64, torch.uint32, torch.uint16):
                yield "most", (~torch.zeros(value.shape, dtype=torch.int64)).to(value.dtype)
            else:
                for name in ("max", "min"):
                    yield name, torch.full_like(value, getattr(torch.iinfo(value.dtype), name))
                last = value.clone()
                last.view(-1)[-1] = 100
                yield "last", last
                yield "negative", torch.full_like(value, -2)
                yield "one", torch.ones_like(value)
            yield "shorter", value.flatten()[:-1]
        yield "float64", torch.zeros(value.shape, dtype=torch.float64)
        yield "wide", torch.zeros(1).expand(10**9)
        yield "number", 3
    elif isinstance(value, bool) or value is None:
        yield "number", 5
        yield "list", [[]]
    elif isinstance(value, int):
        yield from (("-1", -1), ("-2^70", -2**70), ("2^62", 2**62), ("5000 digits", 10**5000))
        yield from (("text", "1"), ("none", None), ("nan", math.nan))
    elif isinstance(value, float):
        yield from (("nan", math.nan), ("-1.0", -1.0), ("1e300", 1e300), ("text", "1"))
    elif isinstance(value, str):
        yield from (("number", 5), ("empty", ""), ("escape", "\\x1b[2J\\n"), ("long", "a" * 10**6))
    yield "shared", shared(60)
    yield "none", None


def mutations(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        here = (*path, key)
        of_network = path[-1:] in (("model",), ("agent",), ("average",)) or "agents" in path[-2:-1]
        if of_network and key != "score.weight":
            continue
        if path[-2:] == ("optimizer", "state") and key:
            continue
        if path == ("args",) and key not in ppo.NETWORK + ("map",):
            continue
        if here == ("map_facts",):
            yield here, "empty", {}
            yield here, "shared", {"name": shared(60)}
            continue
        for name, other in others(item):
            yield here, name, other
        if isinstance(item, (dict, list, tuple)):
            yield here, "empty", type(item)() if not isinstance(item, dict) else {}
            yield from mutations(item, here)


def changed(value, path, other):
    if not path:
        return other
    if isinstance(value, dict):
        return {k: changed(v, path[1:], other) if k == path[0] else v for k, v in value.items()}
    parts = [changed(v, path[1:], other) if k == path[0] else v for k, v in enumerate(value)]
    return type(value)(parts)


for number, (path, name, other) in enumerate(mutations(saved)):
    if number % step != first:
        continue
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    torch.save(changed(saved, path, other), target / "checkpoint.pt")
    print(json.dumps(["/".join(map(str, path)), name]), flush=True)
    signal.alarm(SECONDS)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = startup.main(ppo.LEARNER_HERE, ppo.train, ["--resume", str(target)])
    signal.alarm(0)
    print(json.dumps([status, err.getvalue()]), flush=True)
"""


@pytest.mark.parametrize(
    ("first", "step"),
    [(3, 83), *(pytest.param(n, 4, marks=pytest.mark.slow) for n in range(4))],
)
def test_a_changed_checkpoint_is_refused_or_goes_on(stopped, tmp_path, first, step):
    """Every value of it in turn is another one: in another process, since kernels could end it."""
    code = MUTATE.replace("SECONDS", str(SECONDS))
    words = [str(stopped), str(tmp_path / "run"), str(first), str(step)]
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        done = subprocess.run(
            [sys.executable, "-c", code, *words], cwd=REPOSITORY, stdout=out, stderr=err
        )
    lines = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert done.returncode == 0, (lines[-1], (tmp_path / "err").read_text()[-2000:])
    results = list(zip(lines[::2], lines[1::2]))
    assert len(results) > 20
    bad = []
    for (path, name), (status, said) in results:
        sentence = said.startswith("error: ") and said.count("\n") == 1 and len(said) < 600
        if not (status == 0 or (status == 2 and sentence and said.strip().isprintable())):
            bad.append((path, name, status, said))
    assert bad == []
    assert sum(status == 2 for _, (status, _) in results) > len(results) / 2


@pytest.mark.parametrize("name", ["run_format", "wandb_id", "seconds", "files"])
def test_a_tensor_of_several_numbers(run, name, capsys):
    """It is neither true nor false; and there may be nothing in its place."""
    saved, message = load(run), "cannot be continued|only that can continue it|is a run of"
    torch.save(saved | {name: torch.ones(2)}, run / "checkpoint.pt")
    refused(["--resume", str(run)], message, capsys)
    del saved[name]
    torch.save(saved, run / "checkpoint.pt")
    refused(["--resume", str(run)], message, capsys)


@pytest.mark.parametrize("name", ["sums", "counters"])
def test_a_figure_that_nobody_counts(run, name, capsys):
    saved = load(run)
    saved["run"][name]["x"] = saved["run"][name]["games"]
    torch.save(saved, run / "checkpoint.pt")
    refused(["--resume", str(run)], f"cannot be continued.*'{name}' has impossible values", capsys)


@pytest.mark.parametrize(("name", "wrong"), [("games", -2.0), ("score", 1e6)])
def test_counts_of_a_pool_that_do_not_fit(run, name, wrong, capsys):
    """Each copy's are looked up; its wins are a share of its games, and two games more."""
    saved = load(run)
    kept = saved["run"]
    for other in ({}, dict.fromkeys(kept["pool"][name], wrong)):
        changed = kept | {"pool": kept["pool"] | {name: other}}
        torch.save(saved | {"run": changed}, run / "checkpoint.pt")
        refused(["--resume", str(run)], "cannot be continued .* has impossible values", capsys)


@pytest.mark.parametrize("others", [None, 3, "text"])
def test_ranks_that_are_no_list(others):
    with pytest.raises(UserError, match=r"^runs/x: its checkpoint cannot be continued"):
        startup._check_ranks(Path("runs/x"), {"ranks": others}, 1)


# --- args.json ------------------------------------------------------------------------------------


def write_args(run: Path, **changes) -> None:
    args = json.loads((run / "args.json").read_text())
    (run / "args.json").write_text(json.dumps(args | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"save_interval": 0}, r"args\.json: 'save_interval' must be a whole number from 1"),
        ({"eval_interval": -5}, r"args\.json: 'eval_interval' must be"),
        ({"num_envs": 10**9}, r"args\.json: 'num_envs' must be"),
        ({"seed": 2**80}, r"args\.json: 'seed' must be"),
        ({"gamma": 1e400}, r"args\.json: 'gamma' must be"),
        ({"learner_seats": 20}, r"args\.json: --learner-seats must be from 1 to 2"),
        ({"learner_seats": 2}, "cannot be continued"),
        ({"eval_bots": ["nobody"]}, r"args\.json: there is no player 'nobody'"),
        ({"pool_bots": []}, "cannot be continued"),
        ({"map": "three"}, r"made with map 'small', .*says 'three'"),
        ({"map": "a\0b"}, r"args\.json: 'map' must be a text"),
        ({"hidden": 4096}, "made with hidden 16, .*says 4096"),
        ({"num_layers": 1024}, "made with num_layers 1, .*says 1024"),
        ({"runs_folder": [[[[]]]]}, r"args\.json: 'runs_folder' must be"),
        ({"x" * 100_000: 1}, r"args\.json: unknown setting 'xxx"),
        ({"\x1b[2J": 1}, r"args\.json: unknown setting '\\x1b\[2J'"),
    ],
    ids=str,
)
def test_changed_settings(run, changes, message, capsys):
    write_args(run, **changes)
    before = files(run)
    refused(["--resume", str(run)], message, capsys)
    assert files(run) == before


def test_settings_that_say_no_length(run):
    args = json.loads((run / "args.json").read_text())
    del args["total_timesteps"]
    (run / "args.json").write_text(json.dumps(args))
    assert resume(run, "--total-timesteps", "310") == 0
    assert json.loads((run / "args.json").read_text())["total_timesteps"] == 310


def test_a_folder_starts_no_processes_that_its_checkpoint_has_not(run, monkeypatch, capsys):
    """Nor any others that this machine has no memory for; each that is started takes a second."""

    def start(*arguments):
        raise AssertionError("processes are started")

    monkeypatch.setattr(Ranks, "start", start)
    write_args(run, processes=1000)
    refused(["--resume", str(run)], "is a run of 1 process and cannot be continued by 1000", capsys)
    saved = load(run)
    torch.save(saved | {"ranks": saved["ranks"] * 1000}, run / "checkpoint.pt")
    write_args(run, num_envs=1000)
    message = r"--(processes|num-envs) 1000 would take at least"
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20}.get)
    refused(["--resume", str(run)], message, capsys)


# --- Code -----------------------------------------------------------------------------------------


def test_code_runs_only_if_the_command_line_names_it(run, tmp_path, monkeypatch, capsys):
    marker = tmp_path / "marker"
    (tmp_path / "own_code.py").write_text(
        "import pathlib, numpy as np\n"
        f"pathlib.Path({str(marker)!r}).touch()\n"
        "def paid(game):\n    return np.zeros(game.alive.shape)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    write_args(run, reward="own_code:paid")
    flag = "--reward"
    before = files(run)
    said = refused(["--resume", str(run)], f"names code to run.*with {flag} 'own_code", capsys)
    assert str(run) in said
    refused(["--resume", str(run), flag, "own_code:other"], "cannot be changed on resume", capsys)
    refused(["--resume", str(run), flag, "score"], "cannot be changed on resume", capsys)
    assert not marker.exists() and files(run) == before
    assert resume(run, flag, "own_code:paid") == 0
    assert marker.exists()
    sys.modules.pop("own_code")


# --- Links, pipes ---------------------------------------------------------------------------------

PLACES = [
    "metrics.jsonl",
    "ppo_selfplay_diplomacy.py",
    "args.json",
    "checkpoint.pt",
    "events.out.tfevents.9",
    ".checkpoint.pt.1.tmp",
    "games",
    "games/9.jsonl",
    "checkpoints",
    "checkpoints/000000000001.pt",
    "wandb",
]


@pytest.mark.parametrize("place", PLACES)
def test_no_link_is_followed_out_of_the_folder(run, place, tmp_path, capsys):
    outside, entry = tmp_path / "outside", run / place
    if entry.is_dir() or place == "wandb":
        outside.mkdir()
        (outside / "000000000001.pt").write_text("precious")
        shutil.rmtree(entry, ignore_errors=True)
    else:
        outside.write_bytes(entry.read_bytes() if entry.exists() else b"precious\n" * 1000)
        entry.unlink(missing_ok=True)
    entry.symlink_to(outside)
    before = files(tmp_path)
    refused(["--resume", str(run)], f"{place} is a link that leads out", capsys)
    entry.unlink()
    entry.symlink_to(os.path.relpath(outside, entry.parent))
    refused(["--resume", str(run)], f"{place} is a link that leads out", capsys)
    assert files(tmp_path) == before


@pytest.mark.parametrize("place", [place for place in PLACES if place not in ("games", "wandb")])
def test_no_pipe_is_waited_for(run, place, capsys):
    entry = run / place
    shutil.rmtree(entry, ignore_errors=True)
    entry.unlink(missing_ok=True)
    os.mkfifo(entry)
    refused(["--resume", str(run)], "neither a file nor a folder|it has no", capsys)
    if place == "checkpoint.pt":
        argv = ["--start-from", str(entry), "--runs-folder", str(run / "runs"), "--map", "small"]
        refused([*argv, "--processes", "1"], "there is no such checkpoint", capsys)


def test_links_within_the_folder_are_followed(run):
    (run / "metrics.jsonl").rename(run / "elsewhere")
    (run / "metrics.jsonl").symlink_to("elsewhere")
    assert resume(run) == 0
    assert (run / "metrics.jsonl").is_symlink()


def test_the_folder_itself_may_be_a_link(run, tmp_path):
    (tmp_path / "link").symlink_to(run)
    assert resume(tmp_path / "link") == 0


# --- One process ----------------------------------------------------------------------------------


def test_a_second_process_is_refused(run, tmp_path, capsys):
    code = f"""
    import sys, time
    from diplomacy_engine.training.run_folder import RunFolder
    folder = RunFolder.open({str(run)!r})
    print("locked", flush=True)
    sys.stdin.readline()
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "locked\n"
        before = files(run)
        said = refused(["--resume", str(run)], "another process is training in", capsys)
        assert str(run) in said and files(run) == before
    finally:
        holder.kill()  # a lock does not outlive its process
        holder.wait()
    assert resume(run) == 0
    assert resume(run) == 0  # nor a run, its process


# --- A kill between the checkpoint and its copy ---------------------------------------------------


def test_a_copy_that_a_kill_prevented_is_made_on_resume(run):
    saved = load(run)
    newest = run / "checkpoints" / f"{saved['global_step']:012d}.pt"
    content = newest.read_bytes()
    newest.unlink()
    (run / "checkpoints" / f".{newest.name}.77.tmp").write_bytes(b"half")
    assert resume(run, "--total-timesteps", str(saved["global_step"] + 20)) == 0
    assert newest.read_bytes() == content
    *_, last = sorted((run / "checkpoints").iterdir())
    assert last.samefile(run / "checkpoint.pt") and not list(run.rglob("*.tmp"))
