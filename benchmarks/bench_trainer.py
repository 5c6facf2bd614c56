"""How fast the trainer learns, and where its time goes.

    python benchmarks/bench_trainer.py --map small --decisions 100000
    python benchmarks/bench_trainer.py --run runs/small__...

Trains for a while as any user would, in a temporary folder, and reads the run's metrics.jsonl. A
warm-up (compilation, first games) is left out, and so are evaluations and checkpoints, which come
as often as one asks for them. Flags that are not known here go to the trainer.
"""

import argparse
import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

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
    sys.path.insert(0, str(ROOT))
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="small", help="map to train on")
    parser.add_argument("--decisions", type=int, default=100_000, help="learner decisions to time")
    parser.add_argument("--warm-up", type=int, default=20_000, help="decisions before those")
    parser.add_argument("--run", type=Path, help="read a run made earlier instead of training")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    arguments, flags = parser.parse_known_args()
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
    print(f"over {figures['decisions']:,} decisions in {figures['seconds']:.1f} s, of which")
    for name, share in sorted(figures["share"].items(), key=lambda item: -item[1]):
        print(f"  {name:18} {share:10.1%}")
    print(f"outside network      {figures['share_outside_network']:10.1%}")
    for name, value in figures["seconds_apart"].items():
        print(f"not counted: {name} {value:.1f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
