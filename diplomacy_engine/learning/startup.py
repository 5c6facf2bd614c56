"""Starting a run, or going on with one: its settings and policies, processes, folder and logs."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Any

import numpy as np
import torch
from torch import distributed

from .._files import file_sha256
from .._jit import announce_compilation
from .._progress import Progress, fail, say
from .._suggest import quoted
from ..errors import UserError
from ..flags import checked
from ..games.vector_game import VectorGame
from ..players.loading import check_map, load_player
from ..records import convert
from ..rules.map import Map, load_map
from . import checkpoint_state, checkpoints, frozen, ops
from .checks import RunSettings, check_args, check_memory
from .clock import Clock
from .ranks import RankLost, Ranks, TrainingError, keep_memory
from .registry import BUNDLED, Learner
from .run_folder import RunFolder, check_name
from .run_log import NoLog, RunLog, near, start_wandb
from .settings import check_changes
from .signals import Stopped, StopSignals

__all__ = ["Clock", "Ranks", "RunLog", "Setup", "Stopped", "logs", "main", "run"]
STOPPED = 130  # exit status of a run that has been stopped before its end
CHANGEABLE = ("total_timesteps", "track", "cuda")  # settings of a run that is resumed


@dataclass(frozen=True)
class Setup:
    learner: Learner
    args: RunSettings  # checked
    game_map: Map  # with their teams
    device: torch.device  # where this rank's network computes
    weights: dict | None = None  # those of --start-from
    saved: dict | None = None  # the checkpoint that is gone on with
    folder: RunFolder | None = None  # where that lies

    def policy(self, agent: torch.nn.Module, global_step: int) -> dict:
        script, options = self.learner.file, asdict(self.args)
        model = agent.state_dict()
        return checkpoints.policy_dict(script, options, self.game_map, model, global_step)

    def resume(self, run: Any, ranks: Ranks) -> bool:
        if self.saved is None:
            checkpoint_state.pack(run)
            return False
        with _closed_on_failure(self.folder):
            try:
                checkpoint_state.go_on(run, self.saved, ranks)
            except Exception as error:
                why = checkpoints.reason(error)
                raise UserError(f"{self.folder.checkpoint}: cannot be continued ({why})") from error
        return True


Train = Callable[[Setup, Ranks], bool]  # plays and learns; returns whether it came to its end


def main(learner: Learner, train: Train, args: RunSettings) -> int:
    ranks = Ranks.of_torchrun() or Ranks()
    with _reported(ranks) as status:
        args, setup = ranks.agree(checked, args), None
        if ranks.count == 1 and args.processes > 1:
            setup = _begin(learner, args, Ranks(count=args.processes))  # or others start in vain
            ranks = Ranks.start(args.processes, run, learner, train, args)
        status[0] = run(learner, train, args, ranks, setup)
    return status[0]


def run(
    learner: Learner, train: Train, args: RunSettings, ranks: Ranks, setup: Setup | None = None
) -> int:
    with _reported(ranks) as status:
        setup = ranks.agree(lambda: setup or _begin(learner, args, ranks))
        keep_memory()
        torch.set_num_threads(1)
        status[0] = 0 if train(setup, ranks) else STOPPED
    return status[0]


def _begin(learner: Learner, args: RunSettings, ranks: Ranks) -> Setup:
    return (resumed_run if args.resume else new_run)(learner, args, ranks)


@contextmanager
def _reported(ranks: Ranks) -> Iterator[list[int]]:
    status = [0]
    try:
        yield status
    except KeyboardInterrupt:  # before the games began, or a second Ctrl-C
        status[0] = STOPPED
        if ranks.rank == 0:
            fail("interrupted")
    except UserError as error:
        status[0] = 2
        if ranks.rank == 0:
            fail(error)
        elif isinstance(error, TrainingError) and not isinstance(error, RankLost):
            # Others are met by all alike.
            print(f"error on rank {ranks.rank}: {error}", file=sys.stderr)
    finally:
        ranks.close()


@contextmanager
def logs(setup: Setup, ranks: Ranks, run: Any) -> Iterator[RunLog]:
    """Yield the log of a run; where `Stopped` ends the block, the run is saved as it is then."""
    with _closed_on_failure(setup.folder):
        log = ranks.agree(_open_log if ranks.rank == 0 else NoLog, setup)
    try:
        with StopSignals(ranks.rank == 0, ranks.stop) as log.stop:
            try:
                yield log
            except Stopped:
                log.stopped = True
                checkpoint_state.save(run, ranks, log)
    except UserError as error:
        if distributed.is_torchelastic_launched():  # what is wrong is said before it ends us
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kind = RankLost if isinstance(error, RankLost) else TrainingError
        raise kind(f"{error}{log.intact()}") from error
    finally:
        log.close()


def new_run(learner: Learner, args: RunSettings, ranks: Ranks) -> Setup:
    args, game_map = _with_teams(learner, args, load_map(args.map))
    weights = _weights(learner, args, game_map) if args.start_from else None
    check_args(args, game_map, ranks.count, learner.talks)
    _check_memory(learner, args, game_map, ranks)
    if ranks.rank == 0:
        check_name(args.exp_name)
        check_policy(learner, args, game_map)
    return Setup(learner, args, game_map, ranks.choose_device(args.cuda), weights)


def _with_teams(learner: Learner, args: RunSettings, game_map: Map) -> tuple[RunSettings, Map]:
    """Return settings and map with the teams of `args`, if any: a seat for each of the largest."""
    if learner.talks:
        return replace(args, help_others=True), game_map
    if not getattr(args, "teams", "") and not getattr(args, "team_victory", 0):
        return args, game_map
    game_map = game_map.with_teams(args.teams, args.team_victory)
    seats = int(np.bincount(game_map.teams.of_power).max())
    return replace(args, teams=game_map.teams.text, learner_seats=seats, help_others=True), game_map


def _weights(learner: Learner, args: RunSettings, game_map: Map) -> dict:
    start = f"--start-from {args.start_from}"
    saved = learner.policy("start-from", args.start_from)
    check_map(saved, start, game_map)
    for name in learner.network:
        ours = getattr(args, name)
        theirs = saved["args"].get(name, ours)  # another script may have no such setting
        if theirs != ours:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{start}: {flag} is {quoted(theirs, 20)} there and {ours} here")
    model = saved["model"]
    with checkpoints.fitting(start, learner.file), torch.device("meta"):
        learner.make_agent(vars(args), game_map).load_state_dict(model, assign=True)
    return model


def _check_memory(learner: Learner, args: RunSettings, game_map: Map, ranks: Ranks) -> None:
    weights = learner.weights(vars(args), game_map).values()
    check_memory(args, game_map, sum(weight.numel() for weight in weights), ranks.count)


def check_policy(learner: Learner, args: RunSettings, game_map: Map) -> None:
    """Raise UserError unless a policy is played, frozen and scored as the learner plays it: of a
    changed script the figures would mislead. Compared on some positions, with noise and weights."""
    if learner.talks:  # their decisions begin with talk, which players hold in another way
        return
    announce_compilation()
    generator = torch.Generator().manual_seed(1)
    with torch.random.fork_rng(devices=[]):
        agent = learner.make_agent(vars(args), game_map)
    with torch.no_grad():
        for weight in agent.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=generator)
    player = learner.make_player(agent, "policy").agent
    games, random_bot = VectorGame(game_map, 4, seed=1), load_player("random")
    for _ in range(4):
        decisions, orders = games.decisions(), games.new_orders()
        obs = games.view_boards(decisions.game, decisions.power)
        noise = ops.draw_noise(decisions, generator)
        with torch.no_grad():
            drawn = agent.get_action_and_value(obs, decisions, noise=noise)
            scored = agent.get_action_and_value(obs, decisions, drawn.chosen)
            valued = agent.get_value(obs)
        played, logprob, value = player.act(obs, decisions, noise=noise)
        pairs = [
            ("a player of it chooses other orders", played, drawn.chosen),
            ("a player of it finds them less or more probable", logprob, drawn.logprob),
            ("a player of it values positions otherwise than get_value", value, valued),
            ("learning finds them less or more probable", scored.logprob, drawn.logprob),
            ("learning values positions otherwise", scored.value, drawn.value),
        ]
        if hasattr(agent, "get_action"):
            who = np.ones(decisions.count, np.int64)
            frozen_draw = frozen.act({1: agent}, who, obs, decisions, noise)
            pairs.append(("a frozen copy chooses other orders", frozen_draw, drawn.chosen))
        for what, found, own in pairs:
            if not np.allclose(found, own, atol=1e-3):
                where = "change policies in `Agent.encode` and `Agent.get_action`, which all use"
                raise UserError(f"{learner.name}: with the learner's weights {what}: {where}")
        games.write_orders(orders, decisions, random_bot.act(games, decisions))
        games.step(orders)


def resumed_run(learner: Learner, args: RunSettings, ranks: Ranks) -> Setup:
    """Return what --resume goes on with; its folder is trusted, so settings may name code."""
    folder = (RunFolder if ranks.rank > 0 else RunFolder.open)(args.resume)
    with _closed_on_failure(folder):
        source = folder.path / "args.json"
        check_changes(convert(learner.args_class, folder.load_args(), source), args, CHANGEABLE)
        saved = checkpoints.read(folder.checkpoint)
        if saved.get("run_format") != checkpoint_state.RUN_FORMAT:
            here = "cannot be continued, but --start-from can begin with it"
            raise UserError(f"{folder.path}: begun with another version of this project; {here}")
        args, game_map = _with_teams(learner, args, Map(saved["map_facts"], saved["map_name"]))
        count = len(saved["ranks"])
        if count != ranks.count:
            how = f"continue it with as many, or torchrun --nproc_per_node={count}"
            raise UserError(f"{folder.path}: of {count} processes, not {ranks.count}; {how}")
        check_args(args, game_map, ranks.count, learner.talks)
        _check_memory(learner, args, game_map, ranks)
        device = ranks.choose_device(args.cuda)
        return Setup(learner, args, game_map, device, saved=saved, folder=folder)


@contextmanager
def _closed_on_failure(folder: RunFolder | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if folder is not None:
            folder.close()
        raise


def _open_log(setup: Setup) -> RunLog:
    args, saved, script = setup.args, setup.saved, setup.learner.file
    if saved is not None:
        _cut_back(setup)
        log = _make_log(setup, setup.folder, saved["global_step"], saved["seconds"])
    else:
        name = setup.game_map.name, args.exp_name, args.seed
        folder = RunFolder.create(args.runs_folder, *name, asdict(args), script)
        try:
            log = _make_log(setup, folder)
        except UserError:  # such as W&B's refusal; nothing has been trained
            folder.remove()
            raise
        log.begin(args)
    log.announce()
    return log


def _cut_back(setup: Setup) -> None:
    folder, saved, script = setup.folder, setup.saved, setup.learner.file
    folder.keep_checkpoint(saved["global_step"])  # where a kill came before that
    folder.cut_back(saved["files"])
    # The next resume is to know it, too.
    folder.save_args(folder.load_args() | {"total_timesteps": setup.args.total_timesteps})
    if saved["script_sha256"] != file_sha256(script):
        say(f"note: {script.name} has changed since the last checkpoint of this run")
        folder.save_script(script)


def _make_log(setup: Setup, folder: RunFolder, start: int = 0, seconds: float = 0.0) -> RunLog:
    announce_compilation()
    args, learner, teams = setup.args, setup.learner, setup.game_map.teams
    wandb_id = setup.saved and setup.saved["wandb_id"]
    wandb = start_wandb(asdict(args), folder, wandb_id) if args.track else None
    flags = [f"--press {args.press}"] if learner.talks else []
    flags += [f"--teams {quote(teams.text)}"] if teams.text else []
    flags += [f"--team-victory {teams.victory_centers}"] if teams.victory_centers else []
    return RunLog(
        folder,
        Progress(args.total_timesteps, start),
        setup.game_map,
        wandb,
        wandb_id,
        seconds,
        args.pool_bots[0] if len(args.pool_bots) == 1 == args.pool_bot_prob else None,
        None if learner.name in BUNDLED else f"{near(learner.file)}:{near(folder.path)}",
        " ".join(flags),
    )
