"""Population-based training: runs of ppo_selfplay_diplomacy.py that copy weights and settings.

    pip install ".[pbt]"
    python -m diplomacy_learners.population_based --map small --members 8
    python -m diplomacy_learners.population_based --resume runs/small__population__1__1700000000

After Jaderberg et al. 2017; docs/rewards_and_teams.md describes it. Ray Tune decides which member
copies which, varies the settings with `explored`, and runs the members on the cores of this machine
or of a cluster. Members are compared by their rating in a base population, not by their reward,
since settings may change the reward. Nothing in the folder's ray/ is read later.
"""

import os

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's makers
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # this module prints instead
os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")  # the run folders have the curves

import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, get_args

import numpy as np
import torch
from msgspec import Meta
from torch.utils.tensorboard import SummaryWriter

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, load_map
from diplomacy_engine._files import read_file
from diplomacy_engine.flags import checked
from diplomacy_engine.learning import checkpoints, frozen, registry, settings, startup
from diplomacy_engine.learning.ranks import Ranks, use_huge_pages
from diplomacy_engine.learning.run_folder import RunFolder
from diplomacy_engine.matches.population import rank_player
from diplomacy_engine.players.loading import load_members
from diplomacy_engine.players.policy.files import CHECKPOINT
from diplomacy_engine.players.population import population_folder, read_population

QUARTER = 0.25  # of the members, and the probability that a setting is drawn anew
SPREAD = 3.0  # it then is between a third and three times the first value
FACTORS = (0.8, 1.2)  # by one of which others change
Share = Literal["latest_prob", "pool_bot_prob", "random_start_prob", "weak_seats"]  # at most 1
Rest = Literal["gae_lambda", "gamma"]  # its difference from 1 is varied
Varied = Literal[Share, Rest, "clip_coef", "ent_coef", "learning_rate", "reward", "update_epochs"]
MOST_LINES = 2**31  # bytes of a member's metrics.jsonl


@dataclass(frozen=True)
class Args(ppo.Args):
    """Settings: those of ppo_selfplay_diplomacy.py, of each member, and the population's."""

    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    processes: Annotated[int, Meta(ge=1, le=1024)] = 1
    """processes of a member: always one, as Ray runs members side by side"""
    resume: str | None = None
    """folder of a population to continue unchanged; only --address may be given with it"""
    members: Annotated[int, Meta(ge=2, le=1000)] = 8
    """trainings that run side by side"""
    metric: str = "population/rating"
    """metric of an evaluation by which members are compared; higher is better"""
    eval_population: Annotated[int, Meta(ge=0)] = 200
    """games after each evaluation that rank the member in the map's base population; 0: none"""
    explore: tuple[Varied, ...] = ("learning_rate", "ent_coef", "gae_lambda", "reward")
    """settings to vary"""
    mates: Annotated[int, Meta(ge=0)] = 1
    """newest copies of other members that join a member's pool after each evaluation"""
    address: str | None = None
    """address of a Ray cluster whose machines share this folder; None: RAY_ADDRESS, or this
    machine"""


def explored(settings: dict, first: Args, rng: np.random.Generator, anew: float = QUARTER) -> dict:
    """Return settings for a member that copies another: each is drawn around that of `first`, with
    probability `anew`, or multiplied by one of FACTORS."""
    varied = {}
    for name, value in settings.items():
        if rng.random() < anew:
            value, factor = getattr(first, name), lambda: SPREAD ** rng.uniform(-1, 1)
        else:
            factor = lambda: rng.choice(FACTORS)  # noqa: E731
        varied[name] = _varied(name, value, factor)
    return varied


def _varied(name: str, value: Any, factor: Callable[[], float]) -> Any:
    """Return a setting times a factor; of a reward, each weight times one of its own."""
    if name == "reward":
        parts = []
        for part in value.split(","):
            reward, _, weight = part.partition("=")
            ramp, at, until = (weight or "1").partition("@")
            drawn = factor()
            ends = (f"{float(end) * drawn:.4g}" for end in ramp.split(".."))
            parts.append(f"{reward.strip()}={'..'.join(ends)}{at}{until}")
        return ",".join(parts)
    if name == "update_epochs":
        return max(1, round(value * factor()))
    if name in get_args(Rest):
        return float(f"{1 - min(1.0, (1 - value) * factor()):.6g}")
    most = 1.0 if name in get_args(Share) else np.inf
    return float(f"{min(most, value * factor()):.4g}")


@dataclass(frozen=True)
class MemberSetup(startup.Resumed):
    """How a member goes on: after `mates`, checkpoints of others, have joined its pool."""

    mates: Sequence[dict] = ()

    def resume(self, run: ppo.Run, ranks: Ranks) -> bool:
        resumed, pool = super().resume(run, ranks), run.pool
        with checkpoints.fitting(self.folder.checkpoint, self.learner.file):
            for saved in self.mates:
                mate = frozen.frozen_copy(run.average, saved["model"])
                pool.freeze(mate, saved["global_step"], newest=False)
        if "rates" in self.saved:  # it has taken over; it draws otherwise than the other does
            rate, new_rate = self.saved["rates"]
            for group in run.optimizer.param_groups:
                for part in group.keys() & {"lr", "initial_lr"}:  # in proportion, if they differ
                    group[part] = new_rate if group[part] == rate else group[part] * new_rate / rate
            run.rng = np.random.default_rng([self.args.seed, run.step])
            startup.seed_generators(int(run.rng.integers(2**62)))
            rows = np.arange(run.games.num_games)
            run.games.seed_games(rows, run.rng.integers(0, 2**64, len(rows), np.uint64))
        return resumed


class Member:
    """A training of a population.

    `settings` are those that are varied, as this member has them; None: as its run folder says, or
    around those of the population, which the first member begins with.
    """

    def __init__(self, home: Path, number: int, args: Args, settings: dict | None = None):
        self.home, self.number, self.args, self.name = home, number, args, f"member-{number}"
        if settings is None:
            member_args = self._kept_args() if self.folders else args
            settings = {name: getattr(member_args, name) for name in args.explore}
            if number and not self.folders:
                rng = np.random.default_rng([args.seed, number])
                settings = explored(settings, args, rng, anew=1.0)
        self.settings = settings

    @property
    def folders(self) -> list[Path]:
        """Its run folder, once it has begun."""
        return [path.parent for path in sorted(self.home.glob(f"*__{self.name}__*/{CHECKPOINT}"))]

    @property
    def folder(self) -> Path:
        return self.folders[-1]

    def _kept_args(self) -> ppo.Args:
        return RunFolder(self.folder).settings(ppo.Args, resume=str(self.folder))

    def own_args(self) -> ppo.Args:
        args = self.args
        own = {field.name: getattr(args, field.name) for field in fields(ppo.Args)} | self.settings
        own |= {"runs_folder": str(self.home), "exp_name": self.name, "config": None}
        own |= {"seed": args.seed + self.number, "resume": None}
        return ppo.Args(**own)

    def train(self, target: int) -> dict:
        if self.stand()["evaluations"] < target:
            shown = self.home / f"{self.name}.log"
            with open(shown, "a") as log, redirect_stdout(log), redirect_stderr(log):
                ppo.train(self.begin(), Ranks(), stop_after=0)
        stand = self.stand()
        if stand["evaluations"] < target:
            raise RuntimeError(f"{self.name} was stopped")
        if not stand["judged"]:
            self.judge()
        stand = self.stand(self.checkpoint(target))
        if stand["score"] is None:
            raise UserError(f"--metric {self.args.metric}: no evaluation has such a figure")
        return stand

    def begin(self) -> startup.Setup:
        """Return the state with which the training begins or continues, with copies of others in
        the pool."""
        learner = ppo.LEARNER_SPEC
        if not self.folders:
            return startup.new_run(learner, self.own_args(), Ranks())
        setup = startup.resumed_run(learner, self._kept_args(), Ranks())
        others = self.home.glob(f"*__member-*__*/{CHECKPOINT}")
        others = sorted(path for path in others if path.parent != self.folder)
        rng = np.random.default_rng([self.args.seed, self.number, setup.saved["global_step"]])
        places = rng.permutation(len(others))[: self.args.mates]
        return MemberSetup(**vars(setup), mates=[checkpoints.read(others[n]) for n in places])

    def judge(self) -> None:
        figures = self.rank() if self.args.eval_population else {}
        with self.editing() as (run, saved):
            run.cut_back(saved["files"])  # where a kill came between the logs and the checkpoint
            if figures:
                run.log(saved["global_step"], figures)
                with SummaryWriter(str(run.path)) as events:
                    for name, value in figures.items():
                        events.add_scalar(name, value, saved["global_step"])
            lines = read_file(run.path / "metrics.jsonl", MOST_LINES).splitlines()
            scores = [line[m] for line in map(json.loads, lines) if (m := self.args.metric) in line]
            saved |= {"score": scores[-1] if scores else None, "files": run.sizes()}

    def rank(self) -> dict[str, float]:
        """Return where the newest policy stands in the map's base population.

        Seats and draws are the same each time; only the policy differs.
        """
        args, game_map = self.args, load_map(self.args.map)
        population = read_population(population_folder(None, game_map), game_map)
        player = registry.policy_of_checkpoint(checkpoints.read(self.folder / CHECKPOINT))
        members = load_members(population, threads=1)
        games = args.eval_population
        stands = rank_player(population, player, members, games, seed=args.seed, threads=1)
        names = ("rank", "best", "worst", "share")
        figures = {f"population/{name}": float(getattr(stands, name)) for name in names}
        return figures | {"population/rating": stands.value}

    def take_over(self, path: Path) -> None:
        theirs = checkpoints.read(path)
        name, step = theirs["args"]["exp_name"], theirs["global_step"]
        newer = self.stand()["evaluations"] > self.stand(path)["evaluations"]
        if name == self.name or newer:  # Ray has only moved it; or it did so before a kill
            return
        with self.editing() as (run, saved):
            before, own = run.load_args(), saved["global_step"]
            rate = theirs["args"]["learning_rate"]
            saved["rates"] = rate, self.settings.get("learning_rate", rate)  # for `MemberSetup`
            saved["args"] |= self.settings
            saved.pop("probe", None)  # it is of the policy that is replaced
            parts = ("model", "probe", "global_step", "run", "ranks")
            saved |= {part: theirs[part] for part in parts if part in theirs}
            run.save_args(before | self.settings)
        if (own, before) == (step, before | self.settings):
            return  # this, too, is the second time
        note = {"global_step": step, "member": self.number, "from": int(name.split("-")[1])}
        note |= {"score": saved["score"], "score_from": theirs["score"]}
        note |= {"before": {name: before[name] for name in self.settings}}
        with open(self.home / "exploits.jsonl", "a") as file:
            file.write(json.dumps(note | {"settings": self.settings}) + "\n")

    @contextmanager
    def editing(self) -> Iterator[tuple[RunFolder, dict]]:
        """Yield its folder and the checkpoint there, which is written as the block leaves it."""
        run = RunFolder.open(self.folder)
        try:
            with checkpoints.fitting(run.checkpoint, ppo.LEARNER_SPEC.file):
                saved = checkpoints.read(run.checkpoint)
                yield run, saved
                run.save_checkpoint(saved["global_step"], checkpoints.to_bytes(dict(saved)))
        finally:
            run.close()

    def checkpoint(self, evaluations: int) -> Path:
        """Return the checkpoint of so many evaluations; the newest has at most one more."""
        for path in sorted(self.folder.glob("checkpoints/*.pt")):
            if self.stand(path)["evaluations"] == evaluations:
                return path
        return self.folder / CHECKPOINT

    def stand(self, path: Path | None = None) -> dict:
        if not self.folders:
            return {"evaluations": 0}
        path, args = path or self.folder / CHECKPOINT, self.args
        saved = checkpoints.read(path)
        with checkpoints.fitting(path, ppo.LEARNER_SPEC.file):
            step, evaluations = saved["global_step"], saved["evaluations"]
            finished = saved["evaluated_at"] >= args.total_timesteps
        stand = {"evaluations": evaluations, "global_step": step, "done": finished}
        return stand | {"judged": "score" in saved, "score": saved.get("score")}


def trainable(tune: ModuleType, home: Path, args: Args, first: int) -> type:
    """Return a member as Ray Tune knows it, whose steps go from evaluation `first` on."""
    here = os.getcwd()  # Ray would change it, and settings may name files

    base: Any = tune.Trainable

    class Trial(base):
        def setup(self, config: dict) -> None:
            use_huge_pages()
            torch.set_num_threads(1)
            self.reset_config(config)

        def reset_config(self, new_config: dict) -> bool:
            os.chdir(here)
            number = int(self.trial_name.rpartition("-")[2])
            self.member = Member(home, number, args, new_config["member"]["settings"])
            return True

        def step(self) -> dict:
            return self.member.train(first + self.iteration + 1)

        def save_checkpoint(self, checkpoint_dir: str) -> None:
            path = self.member.checkpoint(first + self.iteration)
            shutil.copy(path, Path(checkpoint_dir) / CHECKPOINT)

        def load_checkpoint(self, checkpoint: str) -> None:
            self.member.take_over(Path(checkpoint) / CHECKPOINT)

    return Trial


def check(args: Args) -> None:
    if args.metric.startswith("population/") and not args.eval_population:
        raise UserError(f"--metric {args.metric} needs --eval-population, or name another figure")
    for name in args.explore:
        value = getattr(args, name)
        if all(_varied(name, value, partial(float, f)) == value for f in (1 / SPREAD, SPREAD)):
            raise UserError(f"--explore {name}: no factor changes {value}, so leave it out")
    if args.track or args.cuda or args.processes > 1:
        raise UserError("members have one core each: no --track, --cuda, --processes")


def check_members(args: Args) -> str:
    first = Member(Path(args.runs_folder), 0, args, {}).own_args()
    game_map = startup.new_run(ppo.LEARNER_SPEC, first, Ranks()).game_map
    if args.eval_population:
        read_population(population_folder(None, game_map), game_map)
    return game_map.name


def make_folder(args: Args, map_name: str) -> Path:
    folder = RunFolder.create(args, map_name, args.exp_name, __file__)
    folder.close()
    for name in ("checkpoints", "games"):  # the members have their own
        (folder.path / name).rmdir()
    print(f"population: {folder.path.resolve()}", flush=True)
    return folder.path.resolve()


def resumed(args: Args, folder: str) -> Path:
    home = Path(folder).resolve()
    settings.check_changes(RunFolder(home).settings(Args), args, ("address",))
    return home


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    import ray

    folders = str(Path(__file__).parents[1]), os.getcwd()  # of this package, of the user's rewards
    code = {"env_vars": {"PYTHONPATH": os.pathsep.join(folders)}}
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init(address, runtime_env=code, **quiet)
    except ConnectionError as error:
        raise UserError(f"--address: {error}") from None
    try:
        yield
    finally:
        ray.shutdown()


def train_population(home: Path, args: Args) -> None:
    import ray
    from ray import tune
    from ray.tune.schedulers import PopulationBasedTraining

    members = [Member(home, number, args) for number in range(args.members)]
    # A kill may have come before all had taken over, or when some were an evaluation ahead. So the
    # last one that all have made is told again. Ray's own restoring unpickles, and the folder may
    # come from somebody else.
    first = max(0, min(member.stand()["evaluations"] for member in members) - 1)
    shutil.rmtree(home / "ray", ignore_errors=True)

    class Lines(tune.Callback):
        def on_trial_result(self, iteration, trials, trial, result, **info) -> None:
            standing = f"{result['global_step']:,} decisions, {args.metric} {result['score']:.3f}"
            print(f"{trial.custom_trial_name}: {standing}", flush=True)

    # Who is taken over from is drawn by Python's own generator, which Ray uses for much else. So
    # that it is the same after a kill, that is seeded anew right before each of these draws.
    draws = random.Random()

    class Scheduler(PopulationBasedTraining):
        """Ray's, with the same draws for one evaluation in every process."""

        def on_trial_result(self, tune_controller, trial, result) -> str:
            draws.seed(f"{args.seed} {result['evaluations']}")
            random.seed(draws.getrandbits(64))
            return super().on_trial_result(tune_controller, trial, result)

    def explore(config: dict) -> dict:
        member, rng = config["member"], np.random.default_rng(draws.getrandbits(64))
        random.seed(draws.getrandbits(64))
        return {"member": member | {"settings": explored(member["settings"], args, rng)}}

    cores = min(1.0, ray.cluster_resources()["CPU"] / args.members)
    configs = [{"number": member.number, "settings": member.settings} for member in members]
    results = tune.Tuner(
        tune.with_resources(trainable(tune, home, args, first), {"cpu": cores}),
        param_space={"member": tune.grid_search(configs)},
        tune_config=tune.TuneConfig(
            metric="score",
            mode="max",
            scheduler=Scheduler(
                "training_iteration",
                perturbation_interval=1,
                quantile_fraction=QUARTER,
                custom_explore_fn=explore,
                synch=True,  # ratings are compared at one age
            ),
            reuse_actors=True,
            trial_name_creator=lambda trial: f"member-{trial.config['member']['number']}",
        ),
        run_config=tune.RunConfig(
            name="ray",
            storage_path=str(home),
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1, num_to_keep=3),
            callbacks=[Lines()],
            verbose=0,
        ),
    ).fit()
    if results.errors:
        reason = str(results.errors[0]).strip().splitlines()[-1]
        raise UserError(f"a member of {home} has failed: {reason}")
    members = [Member(home, number, args) for number in range(args.members)]
    for score, member in sorted(((m.stand()["score"], m) for m in members), key=lambda x: -x[0]):
        print(f"{args.metric} {score:8.3f}  {member.folder}  {member.settings}")


def run(args: Args) -> int:
    args = checked(args)
    if find_spec("ray") is None:
        raise UserError("training a population needs Ray: pip install '.[pbt]'")
    if args.resume:
        home = resumed(args, args.resume)
    else:
        check(args)
        map_name = check_members(args)
    with connected(args.address):
        train_population(home if args.resume else make_folder(args, map_name), args)
    return 0


def main(args: Args) -> int:
    return settings.exit_status(run, args, "--resume continues from the last checkpoints")


if __name__ == "__main__":
    # Ray pickles objects of `__main__` by value, and ranges of settings cannot be pickled so.
    from diplomacy_learners import population_based

    sys.exit(population_based.main(settings.parse_args(population_based.Args)))
