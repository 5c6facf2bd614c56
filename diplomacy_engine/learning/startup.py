"""Starting a run, or going on with one: its settings and policies, processes, folder and logs."""

import random
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed, nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.utils.hooks import RemovableHandle

from .._compilation import announce_compilation
from .._files import file_sha256
from .._progress import Progress, fail, say
from .._suggest import quoted
from ..clock import Clock
from ..errors import UserError
from ..flags import checked
from ..games.decisions import Decisions
from ..games.observation import BoardViews
from ..games.order_lists import order_places
from ..games.vector_game import VectorGame
from ..players.asking import orders_of
from ..players.loading import check_map, load_player
from ..players.names import short_name
from ..rules.game_rules import OPTIONS, GameRules
from ..rules.map import Map, load_map
from . import checkpoint_state, checkpoints, frozen, ops, probes
from .checks import check_args, check_memory, optimizers
from .of_scripts import Run, RunSettings
from .ranks import RankLost, Ranks, TrainingError, use_huge_pages
from .registry import BUNDLED, Learner
from .run_folder import RunFolder, check_name
from .run_log import NoLog, RunLog, near, start_wandb
from .settings import check_changes, parse_args
from .signals import Stopped, StopSignals

__all__ = ["Clock", "Ranks", "RunLog", "Setup", "Stopped", "logs", "main", "run"]
COMPILED = "_orig_mod."  # names of a network's weights begin so where a run has compiled it
STOPPED = 130  # exit status of a run that has been stopped before its end
CHANGEABLE = ("total_timesteps", "track", "cuda")  # settings of a run that is resumed
UNLIKE = (*CHANGEABLE, "processes", "resume", "config", "runs_folder")  # in its checkpoint
FREE = ("cross_support",)  # settings of a network that may differ from those of --start-from


@dataclass(frozen=True)
class Setup:
    learner: Learner
    args: RunSettings  # checked
    game_map: Map  # with their teams
    device: torch.device  # where this rank's network computes
    weights: dict | None = None  # those of --start-from

    def policy(self, run: Run) -> dict:
        """Return what a checkpoint of a run has of its policy, the average.

        UserError, TrainingError: a checkpoint could not be played, or plays another policy.
        """
        script, options, agent = self.learner.file, asdict(self.args), run.average
        model = agent.state_dict()
        expected = self.learner.weight_shapes(options, self.game_map).keys()
        if model.keys().isdisjoint(expected):
            consume_prefix_in_state_dict_if_present(model, COMPILED)
        for name in model.keys() ^ expected:
            raise UserError(
                f"a checkpoint of this run could not be played, for only one has {name}: the run's "
                "network, or what make_agent makes; change networks in Agent, or in make_agent"
            )
        policy = checkpoints.policy_dict(script, options, self.game_map, model, run.step)
        with probes.kept_generators(), checkpoints.fitting("a checkpoint", script):
            fresh = self.learner.make_agent(vars(self.args), self.game_map)
            fresh.load_state_dict(model)
            computed = probes.probe(self.learner.make_player, fresh, self.game_map)
            for part in (agent, run.agent):
                newest = {name: weight.clone() for name, weight in part.state_dict().items()}
                part.load_state_dict(agent.state_dict())
                own = probes.probe(self.learner.make_player, part, self.game_map)
                part.load_state_dict(newest)
                if probes.difference(own, computed) > probes.TOLERANCE:
                    raise TrainingError(_unlike(part, fresh))
        return policy | {"probe": computed}

    def resume(self, run: Run, ranks: Ranks) -> bool:
        """Take up what a checkpoint has of a run, if there is one; return whether there is."""
        checkpoint_state.check_run(run, ranks)
        return False


@dataclass(frozen=True, kw_only=True)
class Resumed(Setup):
    saved: checkpoints.Checkpoint
    folder: RunFolder  # where that lies

    def resume(self, run: Run, ranks: Ranks) -> bool:
        super().resume(run, ranks)
        with _closed_on_failure(self.folder):
            try:
                checkpoint_state.restore(run, self.saved, ranks)
            except Exception as error:
                why = checkpoints.reason(error)
                raise UserError(f"{self.folder.checkpoint}: cannot be continued ({why})") from error
        if ranks.rank == 0:
            self._warn_of_rate(run)
        return True

    def _warn_of_rate(self, run: Run) -> None:
        """Say that more decisions than planned at first raise an annealed learning rate again."""
        if not getattr(self.args, "anneal", False) or run.step >= self.args.total_timesteps:
            return
        group = optimizers(run)[0].param_groups[0]
        last = group["lr"]
        rate = group.get("initial_lr", last) * (1 - run.step / self.args.total_timesteps)
        if rate > last:
            keep = f"--start-from {near(self.folder.path)} --no-anneal --learning-rate {last:.2g}"
            say(
                f"note: the learning rate rises again, from {last:.2g} to {rate:.2g}, since it is "
                f"annealed over all decisions; a new run with {keep} keeps it"
            )


def _unlike(agent: nn.Module, fresh: nn.Module) -> str:
    """Say that an agent is another than one made anew of its weights, and by which attributes."""
    own, new = frozen.settings_of(agent), frozen.settings_of(fresh)
    changed = [f"agent.{name}" for name in own if name and own[name] != new.get(name)]
    return (
        "a checkpoint of this run would play another policy: training has changed "
        f"{' or '.join(changed) or 'an attribute of the agent'}, which is neither a weight nor a "
        "buffer; `register_buffer` it"
    )


Train = Callable[[Setup, Ranks], bool]  # plays and learns; returns whether it came to its end


def main(learner: Learner, train: Train, args: RunSettings | None = None) -> int:
    """Train with some settings, by default those of the command line; return the exit status."""
    args = args or parse_args(learner.args_class)
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
        use_huge_pages()
        torch.set_num_threads(1)
        RemovableHandle.next_id = max(ranks.gather(RemovableHandle.next_id))  # a hook's number
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
    except torch.OutOfMemoryError as error:
        status[0] = 2
        fail(f"rank {ranks.rank}: the GPU's memory is full ({error!s:.60}...): {LESS}")
    finally:
        ranks.close()


LESS = "fewer --num-envs or more --num-minibatches need less; the last checkpoint is whole"


@contextmanager
def logs(setup: Setup, ranks: Ranks, run: Run) -> Iterator[RunLog]:
    """Yield the log of a run; where `Stopped` ends the block, the run is saved as it is then."""
    with _closed_on_failure(setup.folder if isinstance(setup, Resumed) else None):
        log = ranks.agree(_open_log if ranks.rank == 0 else NoLog, setup)
    try:
        with StopSignals(ranks.rank == 0, ranks.stop) as log.stop:
            try:
                yield log
            except Stopped as stopped:
                log.stopped = True
                checkpoint_state.save(run, ranks, log)
                if isinstance(stopped.__cause__, UserError):  # a bot that has failed
                    raise stopped.__cause__ from None
    except UserError as error:
        if distributed.is_torchelastic_launched():  # what is wrong is said before it ends us
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kind = RankLost if isinstance(error, RankLost) else TrainingError
        raise kind(f"{error}{log.intact()}") from error
    finally:
        log.close()


def evaluate_and_save(run: Run, ranks: Ranks, log: RunLog, last: bool = False) -> None:
    with log.clock("evaluation"):
        run.evaluate(ranks, log, last)
    run.evaluations, run.evaluated_at = run.evaluations + 1, run.step
    checkpoint_state.save(run, ranks, log)


def new_run(learner: Learner, args: RunSettings, ranks: Ranks) -> Setup:
    args, game_map = _with_teams(learner, args, load_map(args.map))
    weights = _weights(learner, args, args.start_from, game_map) if args.start_from else None
    _check(learner, args, game_map, ranks)
    if ranks.rank == 0:
        check_name(args.exp_name)
        check_policy(learner, args, game_map)
    return Setup(learner, args, game_map, ranks.choose_device(args.cuda), weights)


def _with_teams(learner: Learner, args: RunSettings, game_map: Map) -> tuple[RunSettings, Map]:
    """Return settings and map with the teams of `args`, if any: a seat for each of the largest."""
    if learner.talks:
        args = replace(args, cross_support=True)
    teams, victory = getattr(args, "teams", ""), getattr(args, "team_victory", 0)
    if not teams and not victory:
        return args, game_map
    game_map = game_map.with_teams(teams, victory)
    seats = int(np.bincount(game_map.teams.of_power).max())
    of_teams: dict[str, Any] = {"teams": game_map.teams.text, "learner_seats": seats}
    return replace(args, cross_support=True, **of_teams), game_map


def _weights(learner: Learner, args: RunSettings, name: str, game_map: Map) -> dict:
    start = f"--start-from {name}"
    saved = learner.checkpoint_of_flag("start-from", name)
    check_map(saved, start, game_map)
    for name in (name for name in learner.network_setting_names if name not in FREE):
        ours = getattr(args, name)
        theirs = saved["args"].get(name, ours)  # another script may have no such setting
        if theirs != ours:
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{start}: {flag} is {quoted(theirs, 20)} there and {ours} here")
    model = saved["model"]
    with checkpoints.fitting(start, learner.file), torch.device("meta"):
        learner.make_agent(vars(args), game_map).load_state_dict(model, assign=True)
    return model


def _check(learner: Learner, args: RunSettings, game_map: Map, ranks: Ranks) -> None:
    check_args(args, game_map, ranks.count, learner.talks)
    weights = learner.weight_shapes(vars(args), game_map).values()
    check_memory(args, game_map, sum(weight.numel() for weight in weights), ranks.count)
    if ranks.rank == 0:
        announce_compilation()


def seed_generators(seed: int) -> None:
    """Seed the generators that a process has one of; checkpoints keep their states."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def check_policy(learner: Learner, args: RunSettings, game_map: Map) -> None:
    """Raise UserError unless a policy is played, frozen and scored as the learner plays it: of a
    changed script the figures would mislead. Compared on some positions, with noise and weights,
    once buffers have moved; what plays is what a checkpoint would hold. Nobody has talked there."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        agent, twin = (learner.make_agent(vars(args), game_map).eval() for _ in range(2))
        for weight in agent.parameters():
            weight += 0.1 * torch.randn(weight.shape)
        before = frozen.settings_of(agent)
        positions = _positions(learner, agent, game_map)
        for what, other, own in _compared(learner, agent, twin, positions):
            if not (np.shape(other) == np.shape(own) and np.allclose(other, own, atol=1e-3)):
                raise UserError(f"{learner.name}: with the learner's weights {what}: {WHERE}")
        after = frozen.settings_of(agent)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                raise UserError(f"{learner.name}: {name} changes while it plays: {WHERE}")


WHERE = (
    "change policies in `Agent.observe`, `Agent.legal_orders`, `Agent.encode` and "
    "`Agent.get_action`, which learner, copies and players call; they must keep no memory, and "
    "sample only by `noise`"
)


class Position(NamedTuple):
    games: VectorGame
    full: Decisions  # with all legal orders
    decisions: Decisions  # with those that the policy chooses from
    obs: BoardViews
    noise: np.ndarray  # of draws


def _positions(learner: Learner, agent: nn.Module, game_map: Map) -> list[Position]:
    random_bot, player, positions = load_player("random"), learner.make_player(agent, "policy"), []
    for phases in range(4):
        games = VectorGame(game_map, 4, seed=1)
        for _ in range(phases):
            games.step(orders_of(games, random_bot))
        full = games.decisions()
        decisions = agent.legal_orders(games, full)
        check_orders(full, decisions, agent.legal_orders(games, decisions))
        obs = player.observe(games, full.game, full.power)
        positions.append(Position(games, full, decisions, obs, ops.sample_noise(games, decisions)))
    return positions


def check_orders(full: Decisions, own: Decisions, again: Decisions) -> None:
    """Raise UserError unless `own` has the decisions and slots of `full`, in each slot some of its
    orders, and is what comes `again` if its lists are cut once more, as those of deals are."""
    places = order_places(full, own) if all(map(np.array_equal, full[:3], own[:3])) else None
    if (
        places is None
        or len(own.slot_province) != len(full.slot_province)
        or not np.array_equal(full.order.take(places, mode="clip"), own.order)
        or (np.diff(own.order_start) <= 0).any()
        or not all(map(np.array_equal, own, again))
    ):
        raise UserError(
            "`Agent.legal_orders` must keep every decision and slot, and some legal orders of each "
            "slot; applied to its own result it must change nothing"
        )


def _compared(
    learner: Learner, agent: nn.Module, twin: nn.Module, positions: list[Position]
) -> Iterator[tuple]:
    """Yield what must be alike: what would differ, and both. `twin` is made as `agent` is."""
    weights, trained = {name for name, _ in agent.named_parameters()}, []
    for *_, decisions, obs, noise in positions:
        chosen = agent.get_action_and_value(obs, decisions, noise=noise).chosen
        before = torch.get_rng_state()
        trained.append(agent.train().get_action_and_value(obs, decisions, chosen).logprob)
        what = "learning draws at random, as dropout does, and scores another policy than played"
        yield what, torch.get_rng_state(), before
        agent.eval()
    content = checkpoints.to_bytes(agent.state_dict())
    drawn = [agent.get_action_and_value(p.obs, p.decisions, noise=p.noise) for p in positions]
    for (*_, decisions, obs, _), draw, logprob in zip(positions, drawn, trained, strict=True):
        scored = agent.get_action_and_value(obs, decisions, draw.chosen)
        yield "learning finds them less or more probable", scored.logprob, draw.logprob
        yield "learning values positions otherwise", scored.value, draw.value
        if agent.state_dict().keys() == weights:  # no running statistics make a difference
            what = "learning, in train(), finds them less or more probable, and it has no buffers"
            yield what, logprob, draw.logprob
    values = [agent.get_value(position.obs) for position in positions]
    saved = checkpoints.from_bytes(content)
    for name, part in agent.state_dict().items():
        yield f"{name} changes while it plays, and not `if self.training` alone", saved[name], part
    with checkpoints.fitting("a checkpoint", learner.file):
        checkpoints.check_weights(saved, twin.state_dict())
        twin.load_state_dict(saved)
    player, copy = learner.make_player(twin, "policy"), frozen.frozen_copy(agent)
    for weight in agent.parameters():
        weight.neg_()  # which neither sees
    for position, draw, valued in zip(positions, drawn, values, strict=True):
        games, full, decisions, obs, noise = position
        who = np.ones(full.count, np.int64)
        by_player = player.legal_orders(games, full), player.observe(games, full.game, full.power)
        by_copy = frozen.ask({1: copy}, who, games, full)
        for name, part in (decisions._asdict() | obs._asdict()).items():
            for whose, answers in (("a player of it", by_player), ("a frozen copy", by_copy)):
                for answer in answers:
                    if hasattr(answer, name):
                        yield f"{whose} is given another {name}", getattr(answer, name), part
        played, logprob, value = player.agent.act(obs, decisions, noise)
        yield "a player of it chooses other orders", played, draw.chosen
        yield "a player of it finds them less or more probable", logprob, draw.logprob
        yield "a player of it values positions otherwise than get_value", value, valued
        if hasattr(agent, "get_action"):
            with checkpoints.fitting("a frozen copy", learner.file):
                frozen_draw = frozen.act({1: copy}, who, obs, decisions, noise)
            yield "a frozen copy chooses other orders", frozen_draw, draw.chosen


def resumed_run(learner: Learner, args: RunSettings, ranks: Ranks) -> Resumed:
    """Return what --resume goes on with; its folder is trusted, so settings may name code."""
    folder = (RunFolder if ranks.rank > 0 else RunFolder.open)(str(args.resume))
    with _closed_on_failure(folder):
        saved = checkpoint_state.read_newest(folder)
        settings = folder.settings(learner.args_class)
        check_changes(settings, args, CHANGEABLE)
        for name, value in vars(settings).items():
            if name not in UNLIKE and saved["args"].get(name, value) != value:
                there, here = quoted(saved["args"][name], 20), quoted(value, 20)
                why = f"{name} is {there} in its checkpoint, and {here} in args.json"
                raise UserError(f"{folder.path}: cannot be continued: {why}")
        if learner.load is None:
            learner.agent(saved)  # it computes what was trained
        args, game_map = _with_teams(learner, args, Map(saved["map_facts"], saved["map_name"]))
        count = len(saved["ranks"])
        if count != ranks.count:
            how = f"continue it with as many, or torchrun --nproc_per_node={count}"
            raise UserError(f"{folder.path}: of {count} processes, not {ranks.count}; {how}")
        _check(learner, args, game_map, ranks)
        device = ranks.choose_device(args.cuda)
        return Resumed(learner, args, game_map, device, saved=saved, folder=folder)


@contextmanager
def _closed_on_failure(folder: RunFolder | None) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if folder is not None:
            folder.close()
        raise


def _open_log(setup: Setup) -> RunLog:
    args, script = setup.args, setup.learner.file
    if isinstance(setup, Resumed):
        saved, folder = setup.saved, setup.folder
        folder.keep_checkpoint(saved["global_step"])  # where a kill came before that
        folder.cut_back(saved["files"])
        # The next resume is to know it, too.
        folder.save_args(folder.load_args() | {"total_timesteps": args.total_timesteps})
        if saved["script_sha256"] != file_sha256(script):
            say(f"note: {script.name} has changed since the last checkpoint of this run")
            folder.save_script(script)
        log = _make_log(setup, folder, saved["global_step"], saved["seconds"])
    else:
        folder = RunFolder.create(args, setup.game_map.name, args.exp_name, script)
        try:
            log = _make_log(setup, folder)
        except UserError:  # such as W&B's refusal; nothing has been trained
            folder.remove()
            raise
        log.begin(args)
    log.announce()
    return log


def _make_log(setup: Setup, folder: RunFolder, start: int = 0, seconds: float = 0.0) -> RunLog:
    args, learner = setup.args, setup.learner
    wandb_id = setup.saved["wandb_id"] if isinstance(setup, Resumed) else None
    wandb = start_wandb(asdict(args), folder, wandb_id) if args.track else None
    options = {k: v for k in OPTIONS if (v := getattr(args, k, None)) is not None}
    if learner.talks:
        options |= {"press_rounds": 1, "binding": getattr(args, "binding", "no") == "yes"}
    progress, alone = Progress(args.total_timesteps, start), len(args.pool_bots) == 1
    exploited = short_name(args.pool_bots[0]) if alone and args.pool_bot_prob == 1 else ""
    player = None if learner.name in BUNDLED else f"{near(learner.file)}:{near(folder.path)}"
    about = exploited, player, GameRules.of(setup.game_map, **options), replace(args, resume=None)
    return RunLog(folder, progress, setup.game_map, wandb, wandb_id, seconds, *about)
