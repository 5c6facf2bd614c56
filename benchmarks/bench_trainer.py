"""How fast the trainer learns, and where its time goes.

    python benchmarks/bench_trainer.py --map small --decisions 100000
    python benchmarks/bench_trainer.py --run runs/small__...
    python benchmarks/bench_trainer.py --map small --parts     # processor time of each stage
    python benchmarks/bench_trainer.py --map standard --count  # operations that a GPU would launch

Trains for a while as any user would, in a temporary folder, and reads the run's metrics.jsonl. A
warm-up (compilation, first games) is left out, and so are evaluations and checkpoints, which come
as often as one asks for them. Flags that are not known here go to the trainer.

`--parts` and `--count` train in one process without folder, log or evaluation. An operation counts
if PyTorch computes or copies by it: views and memory that is only allocated do not, and neither do
calls of the kernels for a processor, which are no operations of PyTorch.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parent.parent
NETWORK = ("inference", "learning")  # the stages that are forward and backward passes
APART = ("evaluation", "capture", "saving")


def read_updates(folder: Path) -> list[dict]:
    """Return the lines of metrics.jsonl that describe an update."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if "charts/env_steps" in line]


def measure(updates: list[dict], warm_up: int) -> dict:
    """Return decisions/s and the share of each stage, from the first update after the warm-up on.

    The clock of the stages begins anew when a run is resumed; the span across that is left out.
    """
    updates = [line for line in updates if line["global_step"] >= warm_up]
    stages = [name for name in updates[-1] if name.startswith("timing/")] if updates else []
    stages = [name.removeprefix("timing/") for name in stages if "share" not in name]
    seconds = dict.fromkeys(stages, 0.0)
    decisions = env_steps = order_steps = 0
    for before, after in pairwise(updates):
        spans = {
            name: after.get(f"timing/{name}", 0.0) - before.get(f"timing/{name}", 0.0)
            for name in stages
        }
        if any(spans[name] < 0 for name in NETWORK):
            continue
        seconds = {name: seconds[name] + spans[name] for name in stages}
        decisions += after["global_step"] - before["global_step"]
        env_steps += after["charts/env_steps"] - before["charts/env_steps"]
        order_steps += after["charts/order_steps"] - before["charts/order_steps"]
    apart = {name: seconds.pop(name) for name in APART if name in seconds}
    total = sum(seconds.values())
    if not total:
        raise SystemExit("error: fewer than two updates after the warm-up; ask for more decisions")
    return {
        "decisions": decisions,
        "seconds": total,
        "decisions_per_second": decisions / total,
        "env_steps_per_second": env_steps / total,
        "order_steps_per_second": order_steps / total,
        "share": {name: value / total for name, value in seconds.items()},
        "share_outside_network": 1 - sum(seconds[name] for name in NETWORK) / total,
        "seconds_apart": apart,
    }


def train(map_name: str, decisions: int, flags: list[str], runs_folder: str) -> Path:
    """Train for so many decisions; return the run's folder."""
    import ppo_selfplay_diplomacy as ppo  # here, because torch takes a while to load
    from diplomacy_engine.learning.settings import parse_args

    never = str(10 * decisions)
    words = ["--map", map_name, "--total-timesteps", str(decisions), "--runs-folder", runs_folder]
    words += ["--eval-interval", never, "--eval-games", "2"]
    words += ["--capture-games", "0", *flags]
    args = parse_args(ppo.Args, words)
    if ppo.startup.main(ppo.LEARNER_SPEC, ppo.train, args) != 0:
        raise SystemExit(2)
    (folder,) = Path(runs_folder).iterdir()
    return folder


def start(map_name: str, decisions: int, flags: list[str]):
    """Return a new run without a folder, its process, and a log that keeps processor time."""
    import ppo_selfplay_diplomacy as ppo
    from diplomacy_engine.clock import Clock
    from diplomacy_engine.errors import UserError
    from diplomacy_engine.learning.ranks import use_huge_pages
    from diplomacy_engine.learning.run_log import NoLog
    from diplomacy_engine.learning.settings import parse_args

    words = ["--map", map_name, "--total-timesteps", str(decisions), "--processes", "1", *flags]
    try:
        ranks = ppo.Ranks()
        setup = ppo.startup.new_run(ppo.LEARNER_SPEC, parse_args(ppo.Args, words), ranks)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    use_huge_pages()
    ppo.torch.set_num_threads(1)
    run, log = ppo.Run(setup, ranks), NoLog()
    run.seat(ppo.np.arange(run.games.num_games))
    log.clock, log.stop = Clock(now=time.process_time), SimpleNamespace(received=False)
    return run, ranks, log


def parts(map_name: str, decisions: int, warm_up: int, flags: list[str]) -> dict:
    """Train for so many decisions after a warm-up; return processor time and its shares."""
    import ppo_selfplay_diplomacy as ppo

    run, ranks, log = start(map_name, warm_up + decisions, flags)
    while run.step < warm_up:
        ppo.advance(run, ranks, log)
    first, updates, began = run.step, run.results.counters["updates"], time.process_time()
    log.clock.seconds.clear()
    while run.step < warm_up + decisions:
        ppo.advance(run, ranks, log)
    seconds, updates = time.process_time() - began, run.results.counters["updates"] - updates
    minibatches = updates * run.args.update_epochs * run.args.num_minibatches
    if not minibatches:
        raise SystemExit("error: no update after the warm-up; ask for more decisions")
    stages = log.clock.seconds
    stages["other"] = seconds - sum(stages.values())
    return {
        "decisions": run.step - first,
        "seconds": seconds,
        "decisions_per_second": (run.step - first) / seconds,
        "minibatch_ms": 1000 * stages["learning"] / minibatches,
        "share": {name: value / seconds for name, value in stages.items()},
    }


def operations(act) -> Counter:
    """Call a function; return the operations of PyTorch that computed something, by name."""
    from torch.utils._python_dispatch import TorchDispatchMode

    names = Counter()

    class Counted(TorchDispatchMode):
        def __torch_dispatch__(self, operation, kinds, arguments=(), options=None):
            about, name = operation._schema, operation._schema.name.removeprefix("aten::")
            alias = about.returns and about.returns[0].alias_info
            if not ((alias and not alias.is_write) or name.startswith(NO_LAUNCH)):
                names[name] += 1
            return operation(*arguments, **(options or {}))

    with Counted():
        act()
    return names


NO_LAUNCH = "empty", "new_empty", "_local_scalar", "_pin_memory", "_unsafe_view", "profiler::"


def seat_copies(run, copies: int) -> None:
    """Seat that many copies of the learner at the tables, each about as often."""
    import numpy as np

    while len(run.pool.agents) < copies:
        run.pool.freeze(run.agent, 0)
    theirs = run.seats.stream < 0
    run.seats.member[theirs] = np.resize([*run.pool.agents], theirs.sum())


def count(map_name: str, flags: list[str], copies: int = 10, units: int = 12) -> dict:
    """Return how many operations a phase and a minibatch have, by what was computed."""
    import ppo_selfplay_diplomacy as ppo
    from diplomacy_engine.learning import ops
    from diplomacy_engine.players.asking import orders_of

    def phase() -> int:
        seat_copies(run, copies)
        decisions = run.games.decisions()
        return operations(lambda: run.ask_for_orders(decisions, log.clock)).total()

    def minibatch() -> float:
        size = run.args.update_epochs * run.args.num_minibatches
        update, counted = ppo.update, []

        def counting(*arguments) -> dict:
            losses = {}
            names = operations(lambda: losses.update(update(*arguments)))
            counted.append(names.total() / size)
            return losses

        ppo.update = counting
        while not counted:
            ppo.advance(run, ranks, log)
        ppo.update = update
        return counted[0]

    run, ranks, log = start(map_name, 10**9, flags)
    devices, counts = ops.KERNEL_DEVICES, {}
    ways = (
        {"plain": ()} if run.setup.device.type not in devices else {"plain": (), "kernels": devices}
    )
    for way, ops.KERNEL_DEVICES in ways.items():
        counts[f"opening phase, {copies} copies, {way}"] = phase()
    for way, ops.KERNEL_DEVICES in ways.items():
        counts[f"minibatch, {way}"] = minibatch()
    bot = ppo.engine.load_player("dumbbot")
    for _ in range(400):
        decisions = run.games.decisions()
        moves = decisions.slot_province[decisions.slot_start[:-1]] >= 0
        if (moves & (decisions.slot_start[1:] - decisions.slot_start[:-1] >= units)).any():
            break
        result = run.games.step(orders_of(run.games, bot))
        run.games.reset((result.ended != ppo.RUNNING).nonzero()[0])
    else:
        return counts
    for way, ops.KERNEL_DEVICES in ways.items():
        counts[f"phase where somebody has {units} units, {way}"] = phase()
    return counts


def show_shares(figures: dict) -> None:
    """Print how long it took, and the shares of the stages."""
    print(f"over {figures['decisions']:,} decisions in {figures['seconds']:.1f} s, of which")
    for name, share in sorted(figures["share"].items(), key=lambda item: -item[1]):
        print(f"  {name:18} {share:10.1%}")


def main() -> None:
    """Measure and print."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="small", help="map to train on")
    parser.add_argument("--decisions", type=int, default=100_000, help="learner decisions to time")
    parser.add_argument("--warm-up", type=int, default=20_000, help="decisions before those")
    parser.add_argument("--run", type=Path, help="read a run made earlier instead of training")
    parser.add_argument("--parts", action="store_true", help="processor time of each stage")
    parser.add_argument("--count", action="store_true", help="operations of a phase, a minibatch")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    arguments, flags = parser.parse_known_args()
    if arguments.count:
        figures = count(arguments.map, flags)
        for what, operations in figures.items():
            print(f"{operations:8,.0f}  {what}")
    elif arguments.parts:
        figures = parts(arguments.map, arguments.decisions, arguments.warm_up, flags)
        print(f"learner decisions/s  {figures['decisions_per_second']:10,.0f}")
        print(f"ms a minibatch       {figures['minibatch_ms']:10.2f}")
        show_shares(figures)
    else:
        if arguments.run:
            updates = read_updates(arguments.run)
        else:
            with tempfile.TemporaryDirectory() as folder:
                steps = arguments.warm_up + arguments.decisions
                updates = read_updates(train(arguments.map, steps, flags, folder))
        figures = measure(updates, arguments.warm_up)
        print(f"learner decisions/s  {figures['decisions_per_second']:10,.0f}")
        print(f"env steps/s          {figures['env_steps_per_second']:10,.0f}")
        print(f"order steps/s        {figures['order_steps_per_second']:10,.0f}")
        show_shares(figures)
        print(f"outside network      {figures['share_outside_network']:10.1%}")
        for name, value in figures["seconds_apart"].items():
            print(f"not counted: {name} {value:.1f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
