"""Everything that only watches a training run: its folder, TensorBoard, W&B and the status line."""

import importlib
import itertools
import json
import os
import re
import struct
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from shlex import join, quote
from types import SimpleNamespace
from typing import TYPE_CHECKING

import torch
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import SummaryWriter

from .._files import atomic_write
from .._progress import Progress
from .._suggest import install
from ..clock import Clock
from ..constants import SEA
from ..errors import UserError
from ..matches.evaluation import Evaluation
from ..matches.figures import share_text, sides_of
from ..players.names import PlayerSpec, short_names
from ..records import shipped_toml
from ..rules.game_rules import GameRules
from ..rules.map import Map
from .of_scripts import RunSettings
from .report import report, table
from .run_folder import RunFolder, refusing
from .sample_games import show_games
from .settings import flags_of, origins, with_file
from .signals import StopSignals

if TYPE_CHECKING:
    import wandb

DASHBOARD = shipped_toml(__package__, "dashboard.toml")  # category -> chart -> figure
# Counter -> its name in the summary of a run.
SUMMARY = {
    "global_step": "decisions",
    "env_steps": "env steps",
    "games": "games",
    "updates": "updates",
}


@dataclass
class RunLog:
    """Logs figures, sample games and the status line."""

    folder: RunFolder
    progress: Progress
    game_map: Map
    wandb: "wandb.Run | None" = None
    wandb_id: str | None = None
    seconds_before: float = 0.0  # of the run, by other processes
    exploited: str = ""  # the short name of a learner's only opponent
    player: str | None = None  # the learner's name in printed commands
    rules: GameRules | None = None  # of its games; None: the map's
    args: RunSettings | None = None  # for a report at the end
    stop: StopSignals = field(default_factory=StopSignals)

    def __post_init__(self) -> None:
        self.writer = SummaryWriter(str(self.folder.path))
        # TensorBoard's thread would print a traceback of a full disk, which its next call raises.
        threading.excepthook = _pass_over_full_disks
        self.clock = Clock(network=("inference", "learning"))
        self._begun = time.monotonic() - self.seconds_before
        # The newest ones, for the status line and the summary.
        self._counters: dict[str, float] = {}
        self._evaluations: dict[str, dict] = {}
        self.summary: dict[str, object] = {}  # more of what is printed at the end
        self.stopped = False  # perhaps in the last evaluation, with all decisions made
        if self.wandb is not None:
            self.wandb.define_metric("*", step_metric="global_step")
            self.wandb_id = self.wandb.id

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def scalars(self, figures: Mapping[str, float], global_step: int) -> None:
        self.folder.log(global_step, figures)  # first: it says at once if the disk is full
        with self._writing_events():
            for name, value in figures.items():
                self.writer.add_scalar(name, value, global_step)
        if self.wandb is not None:
            # Not by wandb's sync_tensorboard: it logs a resumed run's events again and again.
            self.wandb.log({"global_step": global_step, **figures})

    def _writing_events(self) -> AbstractContextManager[None]:
        """TensorBoard's writer fails with a bare OSError, and often a call later."""
        return refusing(f"TensorBoard events in {self.folder.path}", "written")

    def evaluations(
        self,
        reports: Mapping[PlayerSpec, Evaluation],
        global_step: int,
        eval_bots: Sequence[PlayerSpec],
        policy: Mapping,
    ) -> None:
        """Log an evaluation, with sample games. best.pt is the `policy` that has won most against
        the last of `eval_bots`, which are met each time."""
        labels = dict(zip(reports, short_names(list(reports))))
        last = sorted(reports.items(), key=lambda item: item[0] in eval_bots)  # what matters most
        evaluations = {labels[bot]: report.result() for bot, report in last}
        samples = {labels[bot]: report.saved_games for bot, report in reports.items()}
        self._evaluations = evaluations
        figures = {}
        for bot, label in labels.items():
            figures |= self._curves(f"eval/{label}", evaluations[label], bot in eval_bots)
        if eval_bots:
            name = f"eval/{labels[eval_bots[-1]]}/win"
            if figures[name] > self.folder.most(name):
                atomic_write(self.folder.path / "best.pt", partial(torch.save, dict(policy)))
        self.scalars(figures, global_step)
        games = list(itertools.chain.from_iterable(samples.values()))
        if games:
            self.folder.append(f"games/{global_step:012d}.jsonl", games)
        if evaluations:
            wins = [
                f"{result['overall']['win']['value']:.1%} {'of games ' * (not n)}against {bot}"
                for n, (bot, result) in enumerate(reversed(evaluations.items()))
            ]
            unit = self.progress.unit
            self.progress.message(f"{global_step:,} {unit}: wins {', '.join(wins)}")
            shares = {bot: one["overall"]["win"]["value"] for bot, one in evaluations.items()}
            self.progress.update(global_step, shares)
        self._pages(samples, global_step)

    def _curves(self, tag: str, result: dict, often: bool) -> dict[str, float]:
        overall = {name: figure["value"] for name, figure in result["overall"].items()}
        left_out = {"elimination", "loss", "most_centers", "rank"}
        left_out |= {"survival"} if len(self.game_map.powers) == 2 else set()
        names = overall.keys() - left_out if often else {"win", "solo", "draw", "centers"}
        figures = {f"{tag}/{name}": value for name, value in overall.items() if name in names}
        for side, figures_of_side in sides_of(result).items():
            figures[f"{tag}/win_{side}"] = figures_of_side["win"]["value"]
        if often:
            convoys = bool((self.game_map.board.terrain == SEA).any())
            orders = result["orders"].items()
            orders = ((name, share) for name, share in orders if convoys or "convoy" not in name)
            figures |= {f"{tag}/orders/{name}": share for name, share in orders}
        return figures

    def begin(self, args: RunSettings) -> None:
        defaults, lines = asdict(type(args)()), origins(args)
        for line in lines:
            self.progress.message(line)
        rows = []
        for name, value in asdict(args).items():
            default = _cell(defaults[name]) if value != defaults[name] else ""
            cells = {"setting": name, "value": _cell(value), "default, if different": default}
            rows.append(cells)
        with self._writing_events():
            self.writer.add_text("settings", "\n\n".join([*lines, "\n".join(table(rows))]))
            opponents = dict.fromkeys(short_names(args.eval_bots))
            sides = self.game_map.contested().teams.names
            self.writer.add_custom_scalars(dashboard([*opponents], sides))

    def announce(self, view: str = "#custom_scalars&regexInput={}&_smoothingWeight=0") -> None:
        """Say where the run is, and how to open a `view` of TensorBoard, {} being the run."""
        folder = near(self.folder.path)
        own = urllib.parse.quote(folder.name.rpartition("__")[-1])  # the time when it began
        self.progress.message(
            f"run folder: {folder}\ncurves: tensorboard --logdir {quote(str(folder.parent))}\n"
            f"  then open http://localhost:6006/{view.format(own)}"
        )

    def _pages(self, samples: Mapping[str, Sequence[Mapping]], global_step: int) -> None:
        if not any(samples.values()):
            return
        try:
            title = f"games at {global_step:,} {self.progress.unit}"
            page, images = show_games(samples, title, self.game_map)
        except UserError as error:
            self.progress.message(f"note: no pictures of the sample games: {error}")
            return
        atomic_write(self.folder.path / "games" / f"{global_step:012d}.html", page.encode())
        with self._writing_events():
            for name, image in images.items():
                self._add_png(name, image, global_step)
        if self.wandb is not None:
            html = importlib.import_module("wandb").Html(page, inject=False)
            self.wandb.log({"global_step": global_step, "games/replay": html})

    def _add_png(self, name: str, png: bytes, global_step: int) -> None:
        """Log a picture; SummaryWriter itself only takes arrays, which it draws anew."""
        width, height = struct.unpack(">II", png[16:24])
        image = Summary.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
        summary = Summary(value=[Summary.Value(tag=name, image=image)])
        self.writer._get_file_writer().add_summary(summary, global_step)

    def message(self, text: str) -> None:
        self.progress.message(text)

    def flush(self) -> dict[str, int]:
        """Write what is still held back; return the sizes of the growing files, in bytes."""
        with self._writing_events():
            self.writer.flush()
        return self.folder.sizes()

    def update(
        self, counters: Mapping[str, int], groups: Mapping[str, Mapping[str, float]]
    ) -> None:
        self._counters = dict(counters)
        global_step = counters["global_step"]
        speed = {"decisions_per_second": global_step / self.seconds}
        groups = {**groups, "timing": self.clock.figures()}
        counted = {name: count for name, count in counters.items() if name != "global_step"}
        groups = {**groups, "charts": {**counted, **groups["charts"], **speed}}
        figures = {
            f"{group}/{name}": value for group in groups for name, value in groups[group].items()
        }
        self.scalars(figures, global_step)
        played = groups["selfplay"]
        shown = {"win_pool_share": played.get("win"), "draw_share": played.get("draw")}
        shown |= {"entropy": groups["losses"]["entropy"], "pool": groups["pool"]["size"]}
        present = {name: value for name, value in shown.items() if value is not None}
        self.progress.update(global_step, None, **present)

    def close(self) -> None:
        with suppress(OSError):  # of a full disk, which has been reported
            self.writer.close()
        self.progress.close()
        try:
            if self.wandb is not None:  # which has much to say itself, so ours comes last
                self._keep_policy()
                self.wandb.finish()
        finally:
            self._summarize()
            self.folder.close()

    def _summarize(self) -> None:
        counts = self._counters
        summary: dict[str, object] = {"run folder": str(near(self.folder.path))} | self.summary
        summary |= {SUMMARY[name]: counts[name] for name in SUMMARY if name in counts}
        summary["minutes"] = self.seconds / 60
        for bot, result in reversed(self._evaluations.items()):
            drawn = result["overall"]["draw"]["value"] > 0  # else every win is a solo
            for name in ("win", "solo", "draw") if drawn else ("win",):
                summary[f"{name} against {bot}"] = share_text(result["overall"][name])
        exploited = self._evaluations.get(self.exploited)
        for side, figures in sides_of(exploited).items() if exploited else ():
            summary[f"win against {self.exploited} as {side}"] = share_text(figures["win"])
        self.progress.summarize(summary, title=self.folder.path.name)
        if exploited:
            self.progress.message(
                f"{self.exploited}: a copy of it would win at most "
                f"{1 / len(sides_of(exploited)):.1%} against itself; this learner's "
                "wins above that are a lower bound on its exploitability."
            )
        goes_on = self.stopped or not self.progress.finished
        steps = next_steps(self.folder, resume=goes_on, player=self.player, rules=self.rules)
        for what, command in steps.items():
            self.progress.message(f"{what}:\n  {command}")
        if self.args and self._evaluations and not goes_on:
            self._report(self.args, steps)

    def _report(self, args: RunSettings, steps: Mapping[str, str]) -> None:
        """Write report.md into the run folder."""
        title, file = self.folder.path.name, self.folder.path / "metrics.jsonl"
        # The script takes what exploit sets, which exploit itself takes as a player's name alone.
        called = program().replace("diplomacy_learners.exploit", "ppo_selfplay_diplomacy")
        from_file = with_file(type(args), args.map, args.config)
        again = f"{called} {flags_of(from_file, vars(args))}".strip()
        commands, minutes = {"train it again": again} | dict(steps), self.seconds / 60
        evaluations = dict(reversed(self._evaluations.items()))  # what matters most comes first
        text = report(title, origins(args), commands, minutes, file, evaluations)
        atomic_write(self.folder.path / "report.md", text.encode())

    def intact(self) -> str:
        return "; the last checkpoint is intact" if self.folder.checkpoint.is_file() else ""

    def _keep_policy(self) -> None:
        if self.wandb is not None and self.folder.checkpoint.is_file():
            name = f"policy-{self.wandb.id}"
            try:
                self.wandb.log_artifact(str(self.folder.checkpoint), name=name, type="model")
            except Exception as error:  # the run itself has gone well; its folder has the policy
                self.progress.message(f"W&B did not accept the policy: {error!s:.200}")


class NoLog(RunLog):
    """In place of a RunLog, on a rank that leaves logging to the first."""

    wandb_id, seconds = None, 0.0
    folder = SimpleNamespace(path="")  # type: ignore[assignment]  # no file is written

    def __init__(self, *_: object):
        self.clock, self.stop, self.writer = Clock(), StopSignals(), self._Nothing()

    class _Nothing:
        def __getattr__(self, _: str) -> Callable[..., None]:
            return lambda *_, **__: None

    evaluations = flush = update = message = lambda *_: ""  # type: ignore[assignment]  # no log
    close = intact = scalars = lambda *_: ""  # type: ignore[assignment]  # the same


def near(path: Path) -> Path:
    """Return a path as one types it: relative to the current folder, if it lies below that."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def program() -> str:
    """Return how this program was called, for a command line: `python FILE.py`, for example."""
    main = sys.modules["__main__"].__spec__
    called = f"-m {main.name}" if main else quote(sys.argv[0])
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return f"torchrun --nproc_per_node={os.environ.get('LOCAL_WORLD_SIZE', 1)} {called}"
    if not main and not sys.argv[0].endswith(".py"):  # a command that an installation has
        return quote(Path(sys.argv[0]).name)
    return f"python {called}"


def next_steps(
    folder: RunFolder,
    *,
    resume: bool,
    player: str | Path | None = None,
    rules: GameRules | None = None,
) -> dict[str, str]:
    """Return commands by purpose; none before a policy is saved."""
    if not folder.checkpoint.is_file():
        return {}
    tools, player = "python -m diplomacy_engine", quote(str(player or near(folder.path)))
    flags = join(rules.flags()) if rules else ""
    at_the_table = join(rules.flags(without=["year_limit"])) if rules else ""
    steps = {
        "measure how strong it is": f"{tools} evaluate --player {player} {flags}".strip(),
        "play against it": f"{tools} play --against {player} {at_the_table}".strip(),
    }
    pages = sorted(folder.path.glob("games/*.html"))
    if rules is None or not (rules.press or rules.map.teams.text):  # exploiters have neither
        exploit = f"python -m diplomacy_learners.exploit {player} --total-timesteps 1_000_000"
        what = "measure how far it can be exploited (docs/learning.md says what to expect)"
        steps[what] = f"{exploit} {flags}".strip()
    if pages:
        page = pages[-1].resolve().as_uri()
        steps["look at its last sample games"] = f"python -m webbrowser -t {quote(page)}"
    if resume:
        steps["continue it"] = f"{program()} --resume {quote(str(near(folder.path)))}"
    return steps


def start_wandb(settings: dict, folder: RunFolder, wandb_id: str | None) -> "wandb.Run":
    try:
        wandb = importlib.import_module("wandb")
    except ModuleNotFoundError:
        raise UserError(f"--track needs W&B: {install('track')}") from None
    tags = [tag.strip() for tag in os.environ.get("WANDB_TAGS", "").split(",") if tag.strip()]
    try:
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "diplomacy-selfplay"),
            name=folder.path.name,
            tags=[Path(settings["map"]).stem, *tags],
            id=wandb_id,
            resume="allow" if wandb_id else None,
            dir=str(folder.path),
            config=settings,
            save_code=True,
            settings=wandb.Settings(init_timeout=20),  # seconds; without a network it tries on
        )
    except wandb.errors.Error as error:
        why = str(error).splitlines()[0]
        raise UserError(f"W&B: {why}; try `wandb login` or WANDB_MODE=offline") from None
    plain = json.loads(json.dumps(settings))  # with lists for tuples, as W&B has them
    other = [name for name, value in plain.items() if run.config.get(name, value) != value]
    if other and not wandb_id:
        run.finish(exit_code=2)
        raise UserError(f"W&B has other values for {', '.join(other)}: give all with ${{args}}")
    return run


def _pass_over_full_disks(about: threading.ExceptHookArgs) -> None:
    """Say what has ended a thread, unless the operating system has refused it something."""
    if not issubclass(about.exc_type, OSError):
        threading.__excepthook__(about)


def _cell(value: object) -> str:
    return f"`{value}`".replace("|", "\\|") if value not in ("", None, ()) else ""


def dashboard(opponents: Sequence[str], sides: Sequence[str]) -> dict[str, dict[str, list]]:
    """Return DASHBOARD and the evaluations, as SummaryWriter.add_custom_scalars takes them."""
    last_first = list(reversed(opponents))
    wins = {f"wins against {name}": f"eval/{name}/win" for name in last_first}
    wins |= {f"draws against {name}": f"eval/{name}/draw" for name in last_first}
    wins |= {f"centers against {name}": f"eval/{name}/centers" for name in last_first}
    by_side = {
        f"wins against {name} as {side}": f"eval/{name}/win_{side}"
        for name in last_first
        for side in sides
    }
    return {
        category: {chart: ["Multiline", [f"^{re.escape(tag)}$"]] for chart, tag in charts.items()}
        for category, charts in ({"evaluation": wins} | DASHBOARD | {"by seat": by_side}).items()
        if charts
    }
