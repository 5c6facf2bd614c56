"""All that is to be measured on a GPU, in one go of at most ten minutes.

    python benchmarks/gpu.py gpu_figures          # on a machine with a GPU
    python benchmarks/gpu.py tried --tiny         # tries this program: processor, tiny numbers

Tests first whether the GPU computes what a processor does, then counts operations, measures
decisions/s and the shares of stages with few and many games and processes, and trains with
configs/standard_gpu.toml in the time that is left, evaluated as all runs are. The folder gets the
whole output of each step, and summary.txt: card, date, and of each step its command and last lines.
"""

import argparse
import datetime
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONFIG = str(ROOT / "configs" / "standard_gpu.toml")
BENCH, SCRIPT = "benchmarks/bench_trainer.py", "ppo_selfplay_diplomacy.py"
EVALUATION = 60  # seconds that are kept for the evaluation of what was trained
TINY = "--num-envs 4 --num-steps 4 --num-minibatches 2 --hidden 16 --max-years 2 --processes 1"


def trainer_flags(tiny: bool) -> list[str]:
    return ["--config", CONFIG, *(TINY.split() if tiny else ["--cuda", "--processes", "4"])]


def run_step(name: str, words: list[str], folder: Path, seconds: float) -> str:
    """Run a command for so many seconds at most, then interrupt it as Ctrl-C does; return its
    output, which is also kept."""
    summary, begin = folder / "summary.txt", time.monotonic()
    words = [sys.executable, *words]
    with (folder / f"{name}.txt").open("w") as out:
        process = subprocess.Popen(words, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        try:
            status = str(process.wait(max(1, seconds)))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                status = f"{process.wait(30)}, interrupted"
            except subprocess.TimeoutExpired:
                process.kill()
                status = f"{process.wait()}, killed"
    text = (folder / f"{name}.txt").read_text(errors="replace")
    took = time.monotonic() - begin
    with summary.open("a") as out:
        print(f"\n== {name}: {took:.0f} s, status {status}\n{' '.join(words[1:])}", file=out)
        print("\n".join(text.splitlines()[-14:]), file=out)
    print(f"{name}: {took:.0f} s, status {status}", flush=True)
    return text


def main() -> None:
    """Run all steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the output goes")
    parser.add_argument("--seconds", type=float, default=580, help="for everything")
    parser.add_argument("--tiny", action="store_true", help="on a processor, with tiny numbers")
    arguments = parser.parse_args()
    folder, tiny, begin = arguments.folder.resolve(), arguments.tiny, time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    import torch

    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    if card == "no GPU" and not tiny:
        raise SystemExit("error: there is no GPU here; --tiny tries this program without one")
    today = datetime.datetime.now().isoformat(" ", "minutes")
    (folder / "summary.txt").write_text(f"{card}, PyTorch {torch.__version__}, {today}\n")

    def left() -> float:
        return arguments.seconds - (time.monotonic() - begin)

    def step(name: str, words: list[str], most: float) -> str:
        return run_step(name, words, folder, left() if tiny else min(most, left()))

    flags = trainer_flags(tiny)
    if not tiny:
        step("test", ["-m", "pytest", "-q", "-x", "-n", "0", "tests/learning/test_gpu.py"], 150)
    step("count", [BENCH, "--count", "--map", "standard", *flags], 60)
    for games in (4, 8) if tiny else (256, 1024, 4096):
        for processes in (1, 2) if tiny else (1, 4):
            update = games * 4 * (4 if tiny else 8)
            about = ["--map", "standard", "--decisions", str(3 * update), "--warm-up", str(update)]
            about += [*flags, "--num-envs", str(games), "--processes", str(processes)]
            step(f"games_{games}_processes_{processes}", [BENCH, *about], 45)
    trained = ["--map", "standard", *flags, "--runs-folder", str(folder / "runs")]
    trained += ["--eval-games", "2", "--total-timesteps", "200" if tiny else "100_000_000"]
    step("train", [SCRIPT, *trained], max(20, left() - EVALUATION))
    for run in sorted((folder / "runs").glob("*/checkpoint.pt")):
        games = "2" if tiny else "210"
        words = ["-m", "diplomacy_engine", "evaluate", "--player", str(run.parent)]
        words += ["--against", "dumbbot", "--games", games, "--seed", "1000"]
        step("evaluate", words, max(20, left()))


if __name__ == "__main__":
    main()
