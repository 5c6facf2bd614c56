"""Population-based training: trainings of ppo_selfplay_diplomacy.py that take over from each other.

    pip install ".[pbt]"
    python ppo_population_based_diplomacy.py --map small --members 8
    python ppo_population_based_diplomacy.py --resume runs/small__population__1__1700000000

Every member is a run of that script with settings of its own. After each evaluation they wait for
each other. Then the worst quarter takes over weights, optimizer, opponents and games of one of the
best quarter, with settings that are varied (Jaderberg et al. 2017). Ray Tune's scheduler decides
who, and runs the members on the cores of this machine or of a cluster (--address). What counts is
the rating among the frozen policies of a base population (docs/populations.md), not the reward,
which a setting may change. Newest copies of the others join each member's opponents.

    runs/{map}__population__{seed}__{unix time}/
      args.json                 settings of the population
      member-0.toml             the settings that each member begins with
      {map}__member-0__...      the run folder of each member, playable as any other
      newest/member-0.pt        its newest policy, which others play against
      exploits.jsonl            who took over from whom, with which settings
      ray/                      notes of Ray's own, which nothing reads
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's makers
os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # what it would print is printed here
os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")  # the run folders have the curves

import io
import json
import random
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError
from diplomacy_engine._files import atomic_write, read_file
from diplomacy_engine.players import checkpoints
from diplomacy_engine.players.population import population_folder, read_population
from diplomacy_engine.scoring.mixes import names_code
from diplomacy_engine.training import Ranks, launch
from diplomacy_engine.training.exploration import QUARTER, VARIED, explored
from diplomacy_engine._fields import Between, Natural
from diplomacy_engine.training.run_folder import RunFolder
from diplomacy_engine.training.settings import Settings, args_from_dictionary, parse_args


@dataclass(frozen=True)
class Args(ppo.Args):
    """Settings: those of ppo_selfplay_diplomacy.py, of each member, and the population's."""

    exp_name: str = "population"
    """name of this experiment, part of the folder's name"""
    threads: Annotated[int, Between(1, 1024)] = 1
    """cores of one member: Ray runs many members, but no processes of theirs"""
    league_games: Natural = 0
    """games of one evaluation that rate the learner, three copies and those bots; 0: none"""
    eval_population: Natural = 200
    """games of one evaluation that rank the learner in the map's base population; 0: none"""
    resume: str | None = None
    """folder of a population to go on with, as it is; only --address may be given with it"""
    members: Annotated[int, Between(2, 1000)] = 8
    """trainings that run side by side"""
    metric: str = "population/rating"
    """figure of an evaluation by which members are compared; more is better"""
    explore: tuple[str, ...] = ("learning_rate", "ent_coef", "gae_lambda", "reward_mix")
    """settings that are varied"""
    mates: Natural = 1
    """newest copies of other members that join a member's pool after each evaluation"""
    address: str | None = None
    """of a Ray cluster whose machines share this folder (default: RAY_ADDRESS, or this machine)"""


class MemberRun(ppo.Run):
    """The run of a member: it pauses after each evaluation, and meets copies of the others."""

    pauses = True

    def load_state_dict(self, saved: dict) -> None:
        """See Run. Copies of other members join the pool; its own newest one stays the newest."""
        super().load_state_dict(saved)
        pool, home = self.pool, RunFolder(self.args.runs_folder)
        others = sorted(home.path.glob("newest/*.pt"))
        others = [file for file in others if file.stem != self.args.exp_name]
        for place in self.rng.permutation(len(others))[: home.load_args()["mates"]]:
            model = ppo.READ(others[place])["model"]
            pool.freeze(ppo.frozen_copy(pool.members[0].player, model), self.global_step)
            pool.members[-2:] = pool.members[:-3:-1]


class Member:
    """A training of a population.

    Args:
        home: folder of the population.
        number: of the member.
        args: settings of the population.
    """

    def __init__(self, home: Path, number: int, args: Args):
        self.home, self.number, self.args, self.name = home, number, args, f"member-{number}"

    @property
    def folder(self) -> Path | None:
        """The run folder, once it has a checkpoint."""
        found = sorted(self.home.glob(f"*__{self.name}__*/{checkpoints.CHECKPOINT}"))
        return found[-1].parent if found else None

    def settings(self) -> ppo.Args:
        """Return what it begins with: the first as given, others with settings drawn around it."""
        args = self.args
        own = {field.name: getattr(args, field.name) for field in fields(ppo.Args)}
        own |= {"runs_folder": str(self.home), "exp_name": self.name, "config": None}
        own |= {"seed": args.seed + self.number, "save_interval": args.eval_interval}
        if self.number:
            rng = np.random.default_rng([args.seed, self.number])
            own |= explored({name: own[name] for name in args.explore}, args, rng, anew=1.0)
        return ppo.Args(**own)

    def train(self, target: int) -> dict[str, Any]:
        """Train until `target` evaluations are made; return where it stands then."""
        folder = self.folder
        if folder is None or self.stand()["evaluations"] < target:
            flags = ["--resume", str(folder)] if folder else ["--config", self.write_settings()]
            shown = self.home / f"{self.name}.log"  # what a terminal would show
            with open(shown, "a") as log, redirect_stdout(log), redirect_stderr(log):
                ppo.run_training(MemberRun, flags, Ranks())
        newest = checkpoints.policy_part(ppo.READ(self.folder / checkpoints.CHECKPOINT))
        write(self.home / "newest" / f"{self.name}.pt", newest)
        return self.stand()

    def write_settings(self) -> str:
        """Write the settings that it begins with as a settings file; return its path."""
        path = self.home / f"{self.name}.toml"
        given = asdict(self.settings()).items()
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in given if value is not None)
        atomic_write(path, "".join(lines).encode())
        return str(path)

    def stand(self) -> dict[str, Any]:
        """Return what the newest checkpoint is, and what its evaluation found."""
        folder, args = self.folder, self.args
        if folder is None:
            return {"evaluations": 0}
        saved = ppo.READ(folder / checkpoints.CHECKPOINT)
        step, metric = saved["global_step"], args.metric
        lines = map(json.loads, read_file(folder / "metrics.jsonl", 2**31).splitlines())
        found = [line for line in lines if line["global_step"] <= step and metric in line]
        finished = step >= args.total_timesteps
        return {
            "member": self.number,
            "evaluations": saved["next"][0] // args.eval_interval - 1 + finished,
            "score": found[-1][metric] if found else None,
            "global_step": step,
            "done": finished,
            "settings": {name: RunFolder(folder).load_args()[name] for name in args.explore},
            "checkpoint": str(folder / "checkpoints" / f"{step:012d}.pt"),  # five are kept
        }

    def take_over(self, other: dict[str, Any]) -> None:
        """Go on from where another member stands, with varied settings."""
        before = self.stand()
        rng = np.random.default_rng([self.args.seed, self.number, other["evaluations"]])
        settings = explored(other["settings"], self.args, rng)
        run = RunFolder.open(self.folder)
        try:
            own, saved = ppo.READ(run.checkpoint), ppo.READ(Path(other["checkpoint"]))
            # Its own draws and curves go on, so that two members do not play the same games.
            names = ("numpy_generator", "torch_generator", "files", "wandb_id")
            saved |= {name: own[name] for name in names}
            for group in saved["optimizer"]["param_groups"]:
                group["lr"] = settings.get("learning_rate", group["lr"])
            run.save_args(run.load_args() | settings)
            write(run.checkpoint, saved)
            run.keep_checkpoint(saved["global_step"])
        finally:
            run.close()
        note = {"global_step": saved["global_step"], "member": self.number, "from": other["member"]}
        note |= {"score": before["score"], "score_from": other["score"]}
        note |= {"before": before["settings"], "of_other": other["settings"], "settings": settings}
        with open(self.home / "exploits.jsonl", "a") as file:
            file.write(json.dumps(note) + "\n")


def write(path: Path, saved: dict) -> None:
    """Write a checkpoint; whoever reads it finds the old one or the new one."""
    path.parent.mkdir(exist_ok=True)
    content = io.BytesIO()
    torch.save(saved, content)
    atomic_write(path, content.getvalue())


def trainable(tune: Any, home: Path, args: Args, first: int) -> type:
    """Return a member as Ray Tune knows it, whose steps go from evaluation `first` on."""
    here = os.getcwd()  # Ray would change it, and settings may name files

    class Trial(tune.Trainable):
        """A member; what Ray calls its checkpoint names one in the run folder."""

        def setup(self, config: dict) -> None:
            os.chdir(here)
            self.member = Member(home, int(self.trial_name.rpartition("-")[2]), args)

        def reset_config(self, new_config: dict) -> bool:
            self.setup(new_config)
            return True

        def step(self) -> dict:
            stand = self.member.train(first + self.iteration + 1)
            if stand["score"] is None:
                raise UserError(f"--metric {args.metric}: no evaluation has such a figure")
            return stand

        def save_checkpoint(self, checkpoint_dir: str) -> dict:
            return self.member.stand()

        def load_checkpoint(self, checkpoint: dict) -> None:
            if checkpoint["member"] != self.member.number:
                self.member.take_over(checkpoint)

    return Trial


def check(args: Args, reward_alone: bool) -> tuple[str, Args]:
    """Return map and settings of a new population; UserError if its members could not train."""
    if reward_alone or not args.reward_mix:  # the flag wins over the settings file's mix
        args = replace(args, reward_mix=args.reward)
    for name in args.explore:
        if name not in VARIED:
            raise UserError(f"--explore {name}: these can be varied: {', '.join(VARIED)}")
    if args.metric.startswith("population/") and not args.eval_population:
        raise UserError(f"--metric {args.metric} needs --eval-population, or name another figure")
    if args.mates and (args.exploit or args.pool_schedule == "staged"):
        raise UserError("--mates needs a pool of several copies: give --mates 0")
    if args.track or args.cuda or args.threads > 1 or names_code(args.reward_mix):
        raise UserError(
            "members have rewards that come along and one core each: no --track, --cuda, --threads"
        )
    member = Settings(Member(Path(args.runs_folder), 0, args).settings(), frozenset(), None)
    found = launch.new_run(member, ppo.FILES, 1)
    if args.eval_population:
        read_population(population_folder(None, found.game_map), found.game_map)
    return found.game_map.name, args


def make_folder(args: Args, map_name: str) -> Path:
    """Make the folder of a new population and return it."""
    folder = RunFolder.create(
        args.runs_folder, map_name, args.exp_name, args.seed, asdict(args), __file__
    )
    folder.close()
    for name in ("checkpoints", "games"):  # the members have their own
        (folder.path / name).rmdir()
    print(f"population: {folder.path.resolve()}", flush=True)
    return folder.path.resolve()


def check_address(address: str) -> None:
    """Raise a UserError if nothing answers at host:port, where Ray would try for many minutes."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        return  # "auto" and ray://... are Ray's own matter
    host = host.removeprefix("[").removesuffix("]")  # [::1]:6379
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise UserError(f"no Ray cluster at {address}: {error}") from None


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Use the Ray cluster at `address`, or one of this machine's cores."""
    check_address(address or os.environ.get("RAY_ADDRESS", ""))
    import ray

    code = {"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}}
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    try:
        ray.init(address, runtime_env=code, **quiet)
    except ConnectionError as error:
        of_token = "token" in str(error).lower() or "auth" in str(error).lower()
        hint = "; RAY_AUTH_MODE must be as the cluster has it" if of_token else ""
        raise UserError(f"{error}{hint}") from None
    try:
        yield
    finally:
        ray.shutdown()


def train_population(home: Path, args: Args) -> None:
    """Train all members to their end."""
    import ray
    from ray import tune
    from ray.tune.schedulers import PopulationBasedTraining

    members = [Member(home, number, args) for number in range(args.members)]
    # A kill may have come when some were an evaluation ahead; they wait for the others.
    first = min(member.stand()["evaluations"] for member in members)

    class Lines(tune.Callback):
        """Says what each evaluation found."""

        def on_trial_result(self, iteration, trials, trial, result, **info) -> None:
            # Ray draws one of the best quarter by this, once the last result is there.
            random.seed(f"{args.seed} {result['evaluations']}")
            found = f"{result['global_step']:,} decisions, {args.metric} {result['score']:.3f}"
            print(f"{trial.custom_trial_name}: {found}", flush=True)

    cores = min(1.0, ray.cluster_resources()["CPU"] / args.members)
    scheduler = PopulationBasedTraining(
        "training_iteration",
        perturbation_interval=1,
        quantile_fraction=QUARTER,
        custom_explore_fn=lambda config: config,  # take_over varies the settings
        synch=True,  # ratings are compared at one age
    )
    found = tune.Tuner(
        tune.with_resources(trainable(tune, home, args, first), {"cpu": cores}),
        param_space={"member": tune.grid_search(list(range(args.members)))},
        tune_config=tune.TuneConfig(
            metric="score",
            mode="max",
            scheduler=scheduler,
            reuse_actors=True,
            trial_name_creator=lambda trial: f"member-{trial.config['member']}",
        ),
        run_config=tune.RunConfig(
            name="ray",
            storage_path=str(home),
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1, num_to_keep=5),
            callbacks=[Lines()],
            verbose=0,
        ),
    ).fit()
    if found.errors:
        reason = str(found.errors[0]).strip().splitlines()[-1]
        raise UserError(f"a member of {home} has failed: {reason}")
    for member in sorted(members, key=lambda member: -member.stand()["score"]):
        stand = member.stand()
        print(f"{args.metric} {stand['score']:8.3f}  {member.folder}  {stand['settings']}")


def main(argv: list[str] | None = None) -> int:
    """Train a population; return the exit status, of what the user did wrong as well."""
    try:
        args, given, _ = parse_args(Args, sys.argv[1:] if argv is None else argv, ppo.CONFIGS)
        if find_spec("ray") is None:
            raise UserError('training a population needs Ray: pip install "ray[tune]"')
        if not args.resume:
            map_name, args = check(args, "reward" in given and "reward_mix" not in given)
        else:
            home = Path(args.resume).resolve()
            if given - {"resume", "address"}:
                raise UserError("a population goes on as it is: only --address goes with --resume")
            address, kept = args.address, RunFolder(home).load_args()
            source = str(home / "args.json")
            args = replace(args_from_dictionary(Args, kept, source), address=address)
        with connected(args.address):
            if not args.resume:
                home = make_folder(args, map_name)
            train_population(home, args)
        return 0
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
