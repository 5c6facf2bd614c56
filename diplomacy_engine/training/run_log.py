"""Everything that only watches a training run: its folder, TensorBoard, W&B and the status line."""

import itertools
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any, Protocol

from ..errors import UserError
from ..rules.map import Map
from .progress import Progress
from .run_folder import RunFolder
from .sample_games import show_games


class Writer(Protocol):
    """What is asked of TensorBoard's SummaryWriter."""

    def add_scalar(self, name: str, value: float, global_step: int) -> None: ...
    def add_custom_scalars(self, layout: dict) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


class RunLog:
    """Logs a run's figures, keeps its sample games, draws its status line.

    Args:
        folder: the run folder.
        writer: of TensorBoard's events, in that folder.
        summary: TensorBoard's protobuf class Summary, for pictures.
        progress: the status line.
        wandb: a W&B run that has begun, if any.
        wandb_id: of an earlier W&B run, which is remembered where none goes on now.
        wandb_html: makes of a page what W&B logs.
    """

    def __init__(
        self,
        folder: RunFolder,
        writer: Writer,
        summary: Any,
        progress: Progress,
        wandb: Any = None,
        wandb_id: str | None = None,
        wandb_html: Callable[[str], Any] | None = None,
    ):
        self.folder, self.writer, self.summary = folder, writer, summary
        self.progress, self.wandb = progress, wandb
        self.wandb_id, self.wandb_html = wandb_id, wandb_html
        if wandb is not None:
            wandb.define_metric("*", step_metric="global_step")
            self.wandb_id = wandb.id

    def scalars(self, figures: Mapping[str, float], global_step: int) -> None:
        """Log figures to TensorBoard, metrics.jsonl and, if tracked, W&B."""
        self.folder.log(global_step, figures)  # first: it says at once if the disk is full
        with self._writing_events():
            for name, value in figures.items():
                self.writer.add_scalar(name, value, global_step)
        if self.wandb is not None:
            # Not by wandb's sync_tensorboard: it logs a resumed run's events again and again.
            self.wandb.log({"global_step": global_step} | figures)

    @contextmanager
    def _writing_events(self) -> Iterator[None]:
        """TensorBoard's writer fails with a bare OSError, and often a call later."""
        try:
            yield
        except OSError as error:
            raise UserError(
                f"TensorBoard events in {self.folder.path} cannot be written: {error.strerror}"
            ) from error

    def evaluations(
        self,
        evaluations: Mapping[str, dict],
        samples: Mapping[str, Sequence[Mapping]],
        global_step: int,
        ratings: Mapping[str, float],
    ) -> None:
        """Log an evaluation, and keep the sample games.

        Args:
            evaluations: against each bot, see arena.evaluate_player.
            samples: saved games against each bot.
            global_step: learner decisions so far.
            ratings: see league.League.play.
        """
        figures = {
            f"eval/{bot}/{name}": figure["value"]
            for bot, result in evaluations.items()
            for name, figure in result["overall"].items()
        }
        figures |= {
            f"eval/{bot}/win_{power}": figure["win"]["value"]
            for bot, result in evaluations.items()
            for power, figure in result["by_power"].items()
        }
        figures |= {f"league/{name}": value for name, value in ratings.items()}
        self.scalars(figures, global_step)
        games = itertools.chain.from_iterable(samples.values())
        self.folder.save_games(f"{global_step:012d}", games)

    def write_layout(self) -> None:
        """Say how TensorBoard's custom scalars show the figures; once in a run is enough."""
        with self._writing_events():
            self.writer.add_custom_scalars(dashboard())

    def captures(
        self,
        samples: Mapping[str, Sequence[Mapping]],
        count: int,
        global_step: int,
        game_map: Map | None = None,
    ) -> None:
        """Keep a replay page of sample games by opponent; log it, final boards and charts.

        Args:
            samples: saved games against each bot, of which `count` are shown.
            game_map: that of the games; None for the one that they name.
        """
        games = {bot: list(sampled[:count]) for bot, sampled in samples.items()}
        if not any(games.values()):
            return
        shown = show_games(games, f"games at {global_step:,} decisions", game_map)
        self.folder.save_page(f"{global_step:012d}", shown.page)
        with self._writing_events():
            for name, image in shown.images.items():
                self._add_png(name, image, global_step)
        if self.wandb is not None and self.wandb_html is not None:
            html = self.wandb_html(shown.page)
            self.wandb.log({"global_step": global_step, "games/replay": html})

    def _add_png(self, name: str, png: bytes, global_step: int) -> None:
        """Log a picture; SummaryWriter itself only takes arrays, which it draws anew."""
        width, height = struct.unpack(">II", png[16:24])
        proto = self.summary
        image = proto.Image(width=width, height=height, colorspace=4, encoded_image_string=png)
        summary = proto(value=[proto.Value(tag=name, image=image)])
        self.writer._get_file_writer().add_summary(summary, global_step)

    def flush(self) -> dict[str, int]:
        """Write what is still held back; return the sizes of the growing files, in bytes."""
        with self._writing_events():
            self.writer.flush()
        return self.folder.sizes()

    def update(
        self,
        counters: Mapping[str, int],
        groups: Mapping[str, Mapping[str, float]],
        evaluations: Mapping[str, dict],
        **charts: float,
    ) -> None:
        """Log the figures of an update, and bring the status line up to date.

        Args:
            counters: `global_step` and others, which are charts too.
            groups: figures by name, by the group that stands before their names: at least `losses`,
                `selfplay` (empty before a game has ended) and `league`.
            evaluations: the last evaluation against each bot; its wins are in the status line.
            charts: more of them.
        """
        global_step = counters["global_step"]
        groups = {**groups, "charts": {**counters, **charts}}
        figures = {
            f"{group}/{name}": value for group in groups for name, value in groups[group].items()
        }
        self.scalars(figures, global_step)
        played = groups["selfplay"]
        shown = {"win_pool": played.get("win"), "draw_share": played.get("draw")}
        shown |= {"entropy": groups["losses"]["entropy"], "pool": groups["league"]["pool_size"]}
        wins = {
            f"win_{bot}": result["overall"]["win"]["value"] for bot, result in evaluations.items()
        }
        known = {name: value for name, value in shown.items() if value is not None}
        self.progress.update(global_step, **wins, **known)

    def close(
        self, counters: Mapping[str, int], seconds: float, evaluations: Mapping[str, dict]
    ) -> None:
        """End all records; print the summary of a run of so many seconds."""
        with suppress(OSError):  # of a full disk, which has been reported
            self.writer.close()
        summary: dict[str, object] = {
            "run folder": str(self.folder.path),
            "decisions": counters["global_step"],
            "env steps": counters["env_steps"],
            "games": counters["games"],
            "updates": counters["updates"],
            "minutes": seconds / 60,
        }
        for bot, result in evaluations.items():
            for name in ("win", "solo", "draw", "loss"):
                summary[f"{name} against {bot}"] = _rate(result["overall"][name])
        exploited = evaluations.get("exploited")
        for power, figures in exploited["by_power"].items() if exploited else ():
            summary[f"win against exploited as {power}"] = _rate(figures["win"])
        self.progress.close(summary, title=self.folder.path.name)
        if exploited:
            self.progress.message(
                f"{exploited['against']}: a copy of it would win at most "
                f"{1 / len(exploited['by_power']):.1%} against itself; what this learner wins "
                "beyond that is a lower bound of how far it can be exploited."
            )
        if self.wandb is not None:
            self.wandb.finish()


class NoLog(RunLog):
    """In place of a RunLog, on a rank that leaves logging to the first."""

    wandb_id = None

    def __init__(self):
        pass

    def evaluations(self, *_: Any) -> None:
        """Log nothing."""

    def captures(self, *_: Any) -> None:
        """Keep nothing."""

    def flush(self) -> dict[str, int]:
        """Write nothing."""
        return {}

    def update(self, *_: Any, **__: Any) -> None:
        """Log nothing."""

    def close(self, *_: Any) -> None:
        """Print nothing."""


def start_wandb(wandb: Any, args: Any, folder: RunFolder, wandb_id: str | None) -> Any:
    """Start a W&B run with the module `wandb`; UserError if it cannot."""
    try:
        return wandb.init(
            project=args.wandb_project_name,
            entity=args.wandb_entity,
            name=folder.path.name,
            id=wandb_id,
            resume="allow" if wandb_id else None,
            mode=args.wandb_mode,
            dir=str(folder.path),
            config=asdict(args),
        )
    except wandb.errors.Error as error:
        offline = "" if args.resume else ", or use --wandb-mode offline"
        raise UserError(
            f"W&B could not start ({str(error).splitlines()[0]}); log in with `wandb login`"
            f"{offline}"
        ) from None


def _rate(figure: Mapping[str, float]) -> str:
    return f"{figure['value']:.1%}  [{figure['low']:.1%}, {figure['high']:.1%}]"


# What TensorBoard's custom scalars show together: category -> chart -> patterns of names.
DASHBOARD = {
    "learning": {
        "losses": ["losses/(policy|value)_loss"],
        "entropy": ["losses/entropy"],
        "change per update": ["losses/(old_)?approx_kl", "losses/clipfrac"],
        "explained variance": ["losses/explained_variance"],
        "learning rate": ["charts/learning_rate"],
    },
    "self-play": {
        "results against the pool": ["selfplay/(win|draw|loss|solo)$"],
        "opponents' age in decisions": ["selfplay/opponent_age"],
    },
    "evaluation": {
        "wins": ["eval/[^/]+/win$"],
        "wins by power": ["eval/[^/]+/win_"],
        "centers": ["eval/[^/]+/centers$"],
        "solo, draw, loss": ["eval/[^/]+/(solo|draw|loss)$"],
    },
    "league": {
        "pool": ["league/pool_size"],
        "ratings": ["league/rating_(?!learner_deviation)"],
    },
    "timing": {
        "decisions per second": ["charts/SPS"],
        "seconds by stage": ["timing/(?!outside)"],
        "share outside the network": ["timing/outside_network_share"],
    },
}


def dashboard() -> dict[str, dict[str, list]]:
    """Return DASHBOARD as SummaryWriter.add_custom_scalars takes it."""
    return {
        category: {chart: ["Multiline", names] for chart, names in charts.items()}
        for category, charts in DASHBOARD.items()
    }
