"""How fast the trainer learns, and where its time goes.

    python benchmarks/bench_trainer.py --map small --decisions 100000
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
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parent.parent
NETWORK = ("inference", "learning")  # the stages that are forward and backward passes
APART = ("evaluation", "capture", "saving")


def measure(map_name: str, decisions: int, warm_up: int, flags: list[str]) -> dict:
    """Train as users do; return decisions/s and the share of each stage, from the first update
    after the warm-up on."""
    import ppo_selfplay_diplomacy as ppo  # here, because torch takes a while to load
    from diplomacy_engine.learning.settings import parse_args

    total = warm_up + decisions
    with tempfile.TemporaryDirectory() as folder:
        words = f"--map {map_name} --total-timesteps {total} --runs-folder {folder}"
        words += f" --eval-interval {10 * total} --eval-games 2 --capture-games 0"
        args = parse_args(ppo.Args, [*words.split(), *flags])
        if ppo.startup.main(ppo.LEARNER_SPEC, ppo.train, args) != 0:
            raise SystemExit(2)
        (path,) = Path(folder).glob("*/metrics.jsonl")
        lines = list(map(json.loads, path.read_text().splitlines()))
    updates = [line for line in lines if "charts/env_steps" in line]
    updates = [line for line in updates if line["global_step"] >= warm_up]
    if len(updates) < 2:
        raise SystemExit("error: fewer than two updates after the warm-up; ask for more decisions")
    first, last = updates[0], updates[-1]

    def since(name: str) -> float:
        return last[name] - first.get(name, 0.0)

    stages = [name.removeprefix("timing/") for name in last if name.startswith("timing/")]
    spent = {name: since(f"timing/{name}") for name in stages if "share" not in name}
    seconds = {name: spent[name] for name in spent if name not in APART}
    whole = sum(seconds.values())
    return {
        "decisions": since("global_step"),
        "seconds": whole,
        "decisions_per_second": since("global_step") / whole,
        "env_steps_per_second": since("charts/env_steps") / whole,
        "order_steps_per_second": since("charts/order_steps") / whole,
        "share": {name: value / whole for name, value in seconds.items()},
        "share_outside_network": 1 - sum(seconds[name] for name in NETWORK) / whole,
        "seconds_apart": {name: spent[name] for name in APART if name in spent},
    }


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
    parser.add_argument("--parts", action="store_true", help="processor time of each stage")
    parser.add_argument("--count", action="store_true", help="operations of a phase, a minibatch")
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
        figures = measure(arguments.map, arguments.decisions, arguments.warm_up, flags)
        print(f"learner decisions/s  {figures['decisions_per_second']:10,.0f}")
        print(f"env steps/s          {figures['env_steps_per_second']:10,.0f}")
        print(f"order steps/s        {figures['order_steps_per_second']:10,.0f}")
        show_shares(figures)
        print(f"outside network      {figures['share_outside_network']:10.1%}")
        for name, value in figures["seconds_apart"].items():
            print(f"not counted: {name} {value:.1f} s")


if __name__ == "__main__":
    main()
