"""Two ranks of torchrun: the same weights and pool, counters, stopping, resuming, crashes.

One start of torchrun plays through all that goes well, for each start takes seconds.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from support.training import REPOSITORY, differences, load, metrics, refused, state, write_config
from support.waiting import until

from diplomacy_engine.errors import UserError
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.training.parallel import Ranks
from diplomacy_engine.training.run_folder import RunFolder
from ppo_selfplay_diplomacy import Args

CHANGES = {
    "num_envs": 9,
    "pool_size": 20,
    "pool_sampling": "pfsp",
    "norm_adv": True,
    "target_kl": 0.05,
}

TOGETHER = """
import json, os, signal, sys
from pathlib import Path
import numpy as np
import torch
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.training.clock import Clock
from diplomacy_engine.rules.map import load_map

config, folder = sys.argv[1], Path(sys.argv[2])
ranks = ppo.Ranks.start(torch.distributed, 0)
close, ranks.close = ranks.close, lambda: None
ppo.Ranks.start = lambda *_: ranks
found = {"own_decisions": 0, "full": 0, "empty_updates": 0}
train, step, update = ppo.train, ppo.SelfPlay.step, ppo.update


def digest(agent):
    parts = [weight.detach().numpy().tobytes() for weight in agent.parameters()]
    return ppo.hashlib_of(b"".join(parts))


def spying_train(run, *rest):
    found["games"] = run.self_play.games.num_games
    finished = train(run, *rest)
    found["weights"] = digest(run.agent)
    found["pool"] = [(m.frozen_at, m.games, m.score, digest(m.player)) for m in run.pool.members]
    found["counters"] = dict(run.counters)
    found["row_seed"] = int(run.self_play.games.snapshot()["row_seed"][0])
    return finished


def spying_step(self, *rest):
    result, counts = step(self, *rest)
    found["own_decisions"] += counts["global_step"]
    return result, counts


def main(*words):
    return ppo.main([*words])


def only(folder):
    (run,) = folder.iterdir()
    return str(run)


import hashlib
ppo.hashlib_of = lambda data: hashlib.sha256(data).hexdigest()
ppo.train, ppo.SelfPlay.step = spying_train, spying_step
assert main("--config", config, "--runs-folder", str(folder / "whole")) == 0
ranks.gather(None)
whole = dict(found)

# Only the second rank is asked to stop, and does so in the middle of a step.
steps = 0
def stopping_step(self, *rest):
    global steps
    steps += 1
    if steps == 25 and ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    return step(self, *rest)
ppo.SelfPlay.step = stopping_step
assert main("--config", config, "--runs-folder", str(folder / "stopped")) == 0
ranks.gather(None)
stopped_at = found["counters"]["global_step"]
ppo.SelfPlay.step = step
assert main("--resume", only(folder / "stopped")) == 0
resumed = found["weights"]

# A batch shared unevenly, and one that a rank has no part of, against the same batch in one piece.
def learned(take, group):
    args = ppo.Args(num_minibatches=1, update_epochs=2, num_envs=6, hidden=16, num_layers=1)
    torch.manual_seed(3)
    game_map = load_map("small")
    run = ppo.Run(args, game_map, torch.device("cpu"), ppo.Ranks())
    for _ in range(12):
        result, _ = run.self_play.step(Clock())
        run.self_play.credit(result, 0.0)
        run.self_play.seating.end_phase(result)
    held = run.buffer
    trajectory = held.rewards, held.values, held.next_values, held.ends, held.closed
    batch = held.take_batch(ppo.compute_gae(*trajectory, 0.99, 0.95))
    rows = np.flatnonzero(take(np.arange(len(batch.values))))
    rng = np.random.default_rng(0)
    figures = ppo.update(
        args, run.agent, run.optimizer, batch.take(rows), 0.01, rng, Clock(), None, group
    )
    return torch.cat([weight.flatten() for weight in run.agent.parameters()]), figures

one, one_figures = learned(lambda row: row >= 0, ppo.Ranks())
shares = (lambda row: (row % 3 == 0) == (ranks.rank == 0), lambda row: row >= 1000 * ranks.rank)
gaps, figure_gaps = [], []
for share in shares:
    two, two_figures = learned(share, ranks)
    gaps.append(float((one - two).detach().abs().max()))
    figure_gaps.append(max(abs(one_figures[n] - two_figures[n]) for n in one_figures))

refusals = []
refusals.append(main("--config", config, "--num-envs", "1", "--runs-folder", str(folder / "bad")))
refusals.append(main("--resume", str(folder / "one")))
result = {"whole": whole, "stopped_at": stopped_at, "resumed": resumed, "gaps": gaps}
result |= {"figure_gaps": figure_gaps, "refusals": refusals}
(folder / f"rank{ranks.rank}.json").write_text(json.dumps(result))
close()
"""


TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}


def torchrun(script: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*TORCHRUN, str(script), *words],
        cwd=REPOSITORY,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Return a folder of runs by two ranks, what each rank found, and what was printed."""
    import ppo_selfplay_diplomacy as ppo

    folder = tmp_path_factory.mktemp("ranks")
    config = write_config(folder / "tiny.toml", **CHANGES)
    few = ["--total-timesteps", "60", "--eval-games", "2"]
    assert ppo.main(["--config", config, "--runs-folder", str(folder / "alone"), *few]) == 0
    (folder / "one").symlink_to(next((folder / "alone").iterdir()))
    script = folder / "together.py"
    script.write_text(TOGETHER)
    done = torchrun(script, config, str(folder))
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in (0, 1)]
    return folder, found, done


def test_all_ranks_have_the_same_weights_and_the_same_pool(together):
    _, (first, second), _ = together
    for name in ("weights", "pool", "counters"):
        assert first["whole"][name] == second["whole"][name], name
    assert len({weights for *_, weights in first["whole"]["pool"]}) > 3
    assert sum(games for _, games, _, _ in first["whole"]["pool"]) > 0


def test_ranks_share_the_games_and_play_their_own(together):
    _, (first, second), _ = together
    assert (first["whole"]["games"], second["whole"]["games"]) == (4, 5)
    assert first["whole"]["row_seed"] != second["whole"]["row_seed"]


def test_counters_are_those_of_all_ranks(together):
    folder, found, _ = together
    (run,) = (folder / "whole").iterdir()
    own = [rank["whole"]["own_decisions"] for rank in found]
    saved = load(run)
    assert min(own) > 100 and sum(own) == saved["global_step"] >= 600
    assert saved["counters"] == found[0]["whole"]["counters"]
    lines = metrics(run)
    sizes = [line["charts/batch_size"] for line in lines if "charts/batch_size" in line]
    assert sum(sizes) == saved["global_step"]  # every decision is learned from once
    games = sum(line.get("selfplay/games", 0) for line in lines)
    assert 0 < games <= saved["counters"]["games"]
    assert {"eval/random/win", "eval/hold/win"} <= set().union(*lines)


def test_a_stop_of_one_rank_stops_all_and_resume_is_exact(together):
    folder, found, done = together
    ((whole,), (stopped,)) = ((folder / name).iterdir() for name in ("whole", "stopped"))
    assert done.stdout.count(f"--resume {stopped}") == 1
    assert found[0]["stopped_at"] == found[1]["stopped_at"] < 400
    assert found[0]["resumed"] == found[1]["resumed"] == found[0]["whole"]["weights"]
    assert differences(state(whole), state(stopped)) == []
    assert metrics(whole) == metrics(stopped)


def test_a_step_is_that_of_the_whole_minibatch(together):
    """To rounding; also if one rank has nothing to learn from."""
    for rank in together[1]:
        assert max(rank["gaps"]) < 1e-5
        assert max(rank["figure_gaps"]) < 1e-4


def test_wrong_use(together, capsys):
    folder, found, done = together
    assert found[0]["refusals"] == found[1]["refusals"] == [2, 2]
    assert done.stderr.count("error: --num-envs 1 is too few for 2 ranks\n") == 1
    assert done.stderr.count("is a run of 1 ranks and cannot go on with 2") == 1
    assert not (folder / "bad").exists()
    (run,) = (folder / "whole").iterdir()
    refused(["--resume", str(run)], "a run of 2 ranks.*torchrun --nproc_per_node=2", capsys)


CRASH = """
import os, signal, sys, time
import ppo_selfplay_diplomacy as ppo

steps, step, close = 0, ppo.SelfPlay.step, ppo.RunLog.close
def dying(self, *rest):
    global steps
    steps += 1
    if steps == 40 and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, *rest)
def slow(*rest):
    time.sleep(3)  # meanwhile torchrun tells the others to end
    close(*rest)
ppo.SelfPlay.step, ppo.RunLog.close = dying, slow
sys.exit(ppo.main(sys.argv[1:]))
"""


def test_a_rank_that_dies_stops_the_others(tmp_path):
    script = tmp_path / "crash.py"
    script.write_text(textwrap.dedent(CRASH))
    config = write_config(tmp_path / "tiny.toml", **CHANGES)
    before = time.monotonic()
    done = torchrun(script, "--config", config, "--runs-folder", str(tmp_path / "runs"))
    assert time.monotonic() - before < 300 and done.returncode != 0
    assert "error: another rank has died; the last checkpoint is intact" in done.stderr
    assert f"exitcode  : -{signal.SIGKILL.value}" in done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert 200 <= load(run)["global_step"] < 600
    assert not list(run.rglob("*.tmp"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process")
def test_ranks_stop_when_their_launcher_is_gone(tmp_path):
    """With a checkpoint; until then the folder is theirs, and nobody else goes on with it."""
    script, runs = REPOSITORY / "ppo_selfplay_diplomacy.py", tmp_path / "runs"
    config = write_config(tmp_path / "tiny.toml", **CHANGES | {"total_timesteps": 10**6})
    words = [str(script), "--config", config, "--runs-folder", str(runs)]
    with open(tmp_path / "out", "wb") as out:
        launcher = subprocess.Popen(
            [*TORCHRUN, *words], cwd=REPOSITORY, env=ENVIRONMENT, stdout=out, stderr=out
        )
    try:
        until(lambda: any(runs.glob("*/checkpoint.pt")), 300)
        (run,) = runs.iterdir()
        with pytest.raises(UserError, match="another process is training in"):
            RunFolder.open(run)
    finally:
        launcher.kill()
        launcher.wait()
    until(lambda: is_free(run), 120)
    step = load(run)["global_step"]
    assert f"{step:012d}.pt" in os.listdir(run / "checkpoints")
    assert "stopped; go on with --resume" in (tmp_path / "out").read_text()


def is_free(run: Path) -> bool:
    try:
        RunFolder.open(run).close()
    except UserError:
        return False
    return True


def test_shares_of_the_games():
    """Every game is played by one rank; the first keeps the seed."""
    shares = []
    for rank in range(3):
        ranks = Ranks()
        ranks.rank, ranks.count = rank, 3
        shares.append(ranks.share(Args(num_envs=8, seed=5)))
    assert sorted(share.num_envs for share in shares) == [2, 3, 3]
    assert shares[0].seed == 5 and len({share.seed for share in shares}) == 3
    assert Ranks().share(Args(seed=7)) == Args(seed=7)


def test_one_process_gathers_itself():
    ranks = Ranks()
    value = np.arange(3)
    assert ranks.gather(value)[0] is value and ranks.total({"a": 2}) == {"a": 2}
    assert ranks.total_tensor(value) is value
    with pytest.raises(UserError, match="there is no bot 'nobody'"):
        ranks.agree(make_bot, "nobody")
    with pytest.raises(ValueError, match="invalid literal"):
        ranks.agree(int, "no")
