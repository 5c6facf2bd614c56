"""A language model limited to legal orders learns from forked games, in one file.

    python -m diplomacy_learners.language_model --seats ENGLAND   # a small random model learns
    python -m diplomacy_learners.language_model --model FOLDER --lora 16 --learning-rate 1e-5
    python -m diplomacy_learners.language_model --resume runs/small__language_model__1__...
    python -m diplomacy_engine evaluate --player runs/small__language_model__1__... --against random
    python -m diplomacy_engine evaluate --player llm:local:FOLDER --against random --games 20

Group-relative policy optimization (GRPO, Shao et al. 2024) of replies' choices, with probabilities
among the tokens that the trie allowed; see docs/language_models.md. How a model writes is in
diplomacy_engine/extras/language/model.py, since players need it, too.
"""

import importlib.util
import sys

if __name__ == "__main__" and importlib.util.find_spec("transformers") is None:
    from diplomacy_engine._suggest import install

    print(f"error: language models need more packages: {install('llm')}", file=sys.stderr)
    raise SystemExit(2)

import contextlib
import copy
import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import nn

from diplomacy_engine import UserError, VectorGame, evaluate_player, load_map, load_player
from diplomacy_engine._progress import Progress
from diplomacy_engine._suggest import quoted
from diplomacy_engine.clock import Clock
from diplomacy_engine.extras.language.local import LocalPlayer, Reply
from diplomacy_engine.extras.language.model import (
    LanguageModel,
    load_language_model,
    make_tiny_model,
)
from diplomacy_engine.extras.language.player import add_thoughts
from diplomacy_engine.extras.language.settings import TRAINED_WITH, LanguageSettings
from diplomacy_engine.flags import checked
from diplomacy_engine.learning import checkpoints, registry, settings
from diplomacy_engine.learning.run_folder import RunFolder
from diplomacy_engine.learning.run_log import RunLog, start_wandb
from diplomacy_engine.learning.signals import Stopped, StopSignals
from diplomacy_engine.matches.evaluation import Evaluation
from diplomacy_engine.matches.forks import center_share, destinations, fork, random_beginnings
from diplomacy_engine.matches.match import MatchSettings
from diplomacy_engine.players.names import parse_player
from diplomacy_engine.players.protocols import Player
from diplomacy_engine.records import OnlyIf, convert
from diplomacy_engine.rules.game_rules import GameRules
from diplomacy_engine.rules.map import Map

OF_EVALUATIONS = "eval_bots", "eval_games", "capture_games"


@OnlyIf("minimal prompts show none", lambda args: args.prompt != "minimal").for_all("history")
@OnlyIf("it needs --warm-up", lambda args: args.warm_up).for_all("opening_share")
@OnlyIf("it needs --kl-coef", lambda args: args.kl_coef).for_all("kl_warm_up")
@OnlyIf("with --seats all there is none", lambda args: args.seats != "all").for_all("opponent")
@OnlyIf("nothing is evaluated", lambda args: args.eval_interval).for_all(*OF_EVALUATIONS)
@dataclass(frozen=True)
class Args:
    """Settings of a training run."""

    resume: str | None = None
    """run folder to continue; only --steps and --track may be given with it"""

    # The model
    model: str = "tiny"
    """folder or .gguf file of a model; tiny: a small one with random weights"""
    lora: Annotated[int, Meta(ge=0, le=4096)] = 0
    """rank of the small matrices trained beside the weights (LoRA); 0: train all weights"""
    device: str = "cpu"
    """PyTorch's name of the device of the model"""
    prompt: Literal["minimal", "windows", "list"] = "minimal"
    """form of the prompts"""
    history: Annotated[int, Meta(ge=0, le=20)] = 0
    """past movement phases whose orders the prompts show"""
    temperature: Annotated[float, Meta(ge=0.01, le=10)] = 1.0
    """sampling temperature; training uses the probabilities at this temperature"""
    batch: Annotated[int, Meta(ge=1, le=4096)] = 128
    """decisions generated at once"""

    # The games
    map: str = "small"
    """small, three, standard, or the path of a map file of your own"""
    seats: str = "each"
    """power that the model plays; each: one power a step, in turn; all: all powers"""
    opponent: tuple[str, ...] = ("random",)
    """player of all other powers; before it or alone, players of some: FRANCE=dumbbot random"""
    groups: Annotated[int, Meta(ge=1, le=100_000)] = 8
    """positions of a step"""
    copies: Annotated[int, Meta(ge=2, le=10_000)] = 16
    """times that each position is played on"""
    years: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """springs after which a copy is scored"""
    warm_up: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """most phases of random orders before a position; their number is drawn from 0 to this"""
    opening_share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """share of the positions that are openings without random phases"""
    score: Literal["centers", "share"] = "centers"
    """score of a copy: own centers, or their share of all centers (1 for a solo)"""

    # Learning
    steps: Annotated[int, Meta(ge=1, le=10**9)] = 60
    """updates, each from new groups"""
    credit: Literal["first", "all"] = "all"
    """decisions of a copy to learn from: the first (the only one in the group's position), or
    all"""
    min_spread: Annotated[float, Meta(ge=0)] = 0.01
    """groups whose scores have a smaller standard deviation are left out"""
    epochs: Annotated[int, Meta(ge=1, le=10**6)] = 2
    """passes over a step's decisions"""
    batch_size: Annotated[int, Meta(ge=1, le=10**6)] = 64
    """decisions of a minibatch"""
    learning_rate: Annotated[float, Meta(ge=0)] = 1e-3
    """step size of Adam; a real model wants about 1e-5"""
    clip_low: Annotated[float, Meta(ge=0, le=1)] = 0.2
    """clipping range of the probability ratio below 1"""
    clip_high: Annotated[float, Meta(ge=0)] = 0.28
    """clipping range above 1"""
    kl_coef: Annotated[float, Meta(ge=0)] = 0.0
    """weight of the KL penalty to the initial model"""
    kl_warm_up: Annotated[int, Meta(ge=0)] = 20
    """steps in which the weight of the KL penalty grows from 0"""
    max_grad_norm: Annotated[float, Meta(ge=0)] = 1.0
    """clipping norm of the gradient"""

    # Evaluation, files
    eval_bots: tuple[str, ...] = ("random",)
    """fixed players to evaluate against, as every power; best.pt is the best against the last"""
    eval_games: Annotated[int, Meta(ge=1, le=10**6)] = 20
    """games of one evaluation against one bot, all seats equally often"""
    eval_interval: Annotated[int, Meta(ge=0)] = 20
    """steps between evaluations; 0: none"""
    save_interval: Annotated[int, Meta(ge=1)] = 10
    """steps between checkpoints"""
    capture_games: Annotated[int, Meta(ge=0, le=1000)] = 1
    """sample games of each evaluation against one bot, kept with a replay page and images"""
    capture_replies: Annotated[int, Meta(ge=0)] = 1
    """copies of each position whose replies are kept in replies.jsonl, and as games in
    rollouts.jsonl; 0: none"""
    track: bool = False
    """log to Weights & Biases as well"""
    seed: Annotated[int, Meta(ge=0, le=2**62)] = 1
    """seed of all random numbers"""
    threads: Annotated[int, Meta(ge=1, le=1024)] = 1
    """threads of the games and of the model"""
    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    runs_folder: str = "runs"
    """folder in which the run folder is made"""


class Sample(NamedTuple):
    reply: Reply
    advantage: float
    row: int  # of the game that it was written in


class Kept(NamedTuple):
    """What is kept of a step's copies: lines of replies.jsonl, and saved games."""

    lines: list[dict]
    games: list[dict]


class Opponents(NamedTuple):
    players: list[Player]
    seats: np.ndarray  # (P,) int64, which of them plays each power that the model does not


def make_model(args: Args, game_map: Map) -> LanguageModel:
    names = "model", "prompt", "history", "temperature", "batch"
    shared = {name: getattr(args, name) for name in names}
    settings = LanguageSettings(constraint="trie", **shared)
    if args.model == "tiny":
        network, tokenizer = make_tiny_model(game_map, args.seed)
        model = LanguageModel(network.to(args.device), tokenizer, settings)
    else:
        model = load_language_model(settings, args.device)
    if args.lora:
        if importlib.util.find_spec("peft") is None:
            raise UserError("--lora needs the package peft: pip install '.[llm]'")
        import peft

        torch.manual_seed(args.seed % 2**63)  # of the new matrices
        config = peft.LoraConfig(
            r=args.lora,
            lora_alpha=2 * args.lora,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
        model.network = peft.get_peft_model(model.network, config).eval()
    return model


def learned_weights(network: nn.Module) -> dict[str, nn.Parameter]:
    return {name: part for name, part in network.named_parameters() if part.requires_grad}


class Reference:
    """The model as it was at the start, for the distance from it."""

    def __init__(self, model: LanguageModel, lora: bool):
        self._model, self._lora = model, lora
        if not lora:
            self._model = copy.copy(model)
            self._model.network = copy.deepcopy(model.network)

    @torch.no_grad()
    def log_probabilities(self, replies: Sequence[Reply]) -> torch.Tensor:
        off = self._model.network.disable_adapter() if self._lora else contextlib.nullcontext()
        with off:
            return self._model.log_probabilities(replies).logprob


def learning_powers(args: Args, game_map: Map, step: int) -> list[int]:
    count = len(game_map.powers)
    if args.seats == "all":
        return list(range(count))
    return [step % count if args.seats == "each" else game_map.power_number(args.seats)]


def load_opponents(args: Args, game_map: Map) -> Opponents:
    parts = [text.partition("=") for text in args.opponent]
    named = {power: name for power, _, name in parts if power in game_map.powers}
    rest = ["".join(part) for part in parts if part[0] not in game_map.powers]
    if len(rest) > 1 or len(named) + len(rest) < len(parts):
        text = "each power has one player, and all that are not named have one"
        raise UserError(f"--opponent {' '.join(args.opponent)}: {text}")
    players = [named.get(power, *(rest or ["random"])) for power in game_map.powers]
    names, seats = np.unique(players, return_inverse=True)
    return Opponents([load_player(str(name), game_map=game_map) for name in names], seats)


def seeds_of(args: Args, step: int) -> list[int]:
    """Return the seeds of a step: of games, positions, minibatches and evaluation. All that is
    random in a step comes from them: a resumed run needs no generator's state."""
    return np.random.SeedSequence([args.seed, step]).generate_state(4, np.uint64).tolist()


def play_groups(
    args: Args, player: LocalPlayer, opponents: Opponents, game_map: Map, step: int
) -> tuple[list[Sample], dict[str, float], Kept]:
    """Play the groups of a step; return samples, metrics, and replies and games to save."""
    seed, seed_of_positions = seeds_of(args, step)[:2]
    rows = args.groups * (1 + args.copies)
    games = VectorGame(
        game_map, rows, seed, threads=args.threads, auto_reset=False, keep_history=True
    )
    random_beginnings(games, args.warm_up, seed_of_positions, args.opening_share)
    players = [player, *opponents.players]
    mine = learning_powers(args, game_map, step)
    seats = 1 + opponents.seats
    seats[mine] = 0
    player.trace, player.recording = [], True
    result = fork(
        games,
        np.arange(args.groups),
        args.copies,
        years=args.years,
        players=players,
        seats=seats,
        score=center_share if args.score == "share" else lambda games, rows: games.centers()[rows],
        record=min(args.capture_replies, args.copies),
    )
    player.recording = False
    wide = result.score.std(1) >= max(args.min_spread, 1e-6)  # (groups, P)
    group_of = destinations(games, args.groups, args.copies)
    first = int(group_of[0, 0])
    noted, samples, captured = set(), [], Kept([], result.saved_games)
    phases = {(g["id"], phase["name"]): phase for g in captured.games for phase in g["phases"]}
    for row, phase, name, reply in player.trace:
        power, (group, copied) = game_map.power_index[name], divmod(row - first, args.copies)
        advantage = float(result.advantage[group, copied, power])
        if copied < args.capture_replies:
            line = {"step": step + 1, "group": group, "copy": copied, "phase": phase, "power": name}
            texts = {"prompt": player.model.text_of(reply.prompt), "reply": reply.text}
            line |= texts | {
                "score": float(result.score[group, copied, power]),
                "advantage": advantage,
            }
            line |= {"prompt_ids": reply.prompt, "reply_ids": reply.tokens}
            line |= {"choices": reply.at, "logprobs": reply.logprobs}
            captured.lines.append(line)
            phases[f"{group}-{copied}", phase].setdefault("thoughts", {})[name] = texts
        is_first = (row, power) not in noted
        noted.add((row, power))
        if reply.at and wide[group, power] and (is_first or args.credit == "all"):
            samples.append(Sample(reply, advantage, row))
    replies = [entry[-1] for entry in player.trace]
    figures = {
        "charts/episodic_return": float(result.score[:, :, mine].mean()),
        "charts/groups_without_spread": float(1 - wide[:, mine].mean()),
        "charts/reply_tokens": float(np.mean([len(reply.tokens) for reply in replies] or 0)),
        "charts/choices": float(np.mean([len(reply.at) for reply in replies] or 0)),
        "charts/decisions": len(replies),
    }
    for power in mine:
        own = float(result.score[:, :, power].mean())
        figures[f"charts/return_{game_map.powers[power]}"] = own
    for game in captured.games:
        game["id"] = f"{step + 1}-{game['id']}"
    return samples, figures, captured


def learn(
    args: Args,
    model: LanguageModel,
    reference: Reference | None,
    optimizer: torch.optim.Optimizer,
    samples: Sequence[Sample],
    step: int,
) -> dict[str, float]:
    """Learn from a step's replies in epochs of minibatches; return mean figures of them. The loss
    of a minibatch is the mean over its choices, however many a reply has."""
    if not samples:
        return {}
    rng = np.random.default_rng(seeds_of(args, step)[2])
    weight = args.kl_coef * min(1.0, step / max(1, args.kl_warm_up))
    weights = list(learned_weights(model.network).values())
    figures = []
    for _ in range(args.epochs):
        order = rng.permutation(len(samples))
        for picked in np.array_split(order, -(-len(samples) // args.batch_size)):
            replies = [samples[i].reply for i in picked]
            chosen = model.log_probabilities(replies)
            before = torch.tensor([p for reply in replies for p in reply.logprobs])
            advantage = torch.tensor([samples[i].advantage for i in picked])
            advantage = advantage.to(chosen.reply.device)[chosen.reply]
            change = chosen.logprob - before.to(chosen.logprob)
            ratio = change.exp()
            clipped = ratio.clamp(1 - args.clip_low, 1 + args.clip_high)
            policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
            distance = torch.zeros_like(change)
            if reference is not None:
                apart = reference.log_probabilities(replies) - chosen.logprob
                distance = apart.exp() - 1 - apart
            optimizer.zero_grad()
            (policy_loss + weight * distance.mean()).backward()
            norm = nn.utils.clip_grad_norm_(weights, args.max_grad_norm)
            if not bool(norm.isfinite()):
                raise UserError(
                    f"the gradient of step {step + 1} is not a number; use a smaller "
                    "--learning-rate"
                )
            optimizer.step()
            with torch.no_grad():
                losses = {
                    "policy_loss": policy_loss,
                    "entropy": chosen.entropy.mean(),
                    "approx_kl": (ratio - 1 - change).mean(),
                    "clipfrac": (ratio != clipped).float().mean(),
                    "largest_ratio": ratio.max(),
                }
                if reference is not None:
                    losses["reference_kl"] = distance.mean()
                figures.append({name: value.item() for name, value in losses.items()})
    return {f"losses/{name}": float(np.mean([f[name] for f in figures])) for name in figures[0]}


class Run:
    """A running training; `kept` has the last step's replies and games to log."""

    def __init__(self, args: Args, game_map: Map):
        self.args, self.game_map = args, game_map
        torch.set_num_threads(args.threads)
        self.model = make_model(args, game_map)
        self.reference = Reference(self.model, args.lora > 0) if args.kl_coef else None
        self.player = LocalPlayer("model", self.model.settings, self.model)
        self.opponents = load_opponents(args, game_map)
        self.optimizer = torch.optim.Adam(
            list(learned_weights(self.model.network).values()), lr=args.learning_rate
        )
        self.step = self.decisions = self.evaluated_at = 0
        self.kept = Kept([], [])

    def advance(self) -> dict[str, float]:
        began, clock = time.perf_counter(), Clock()
        self.model.clock = clock
        with clock("rollout"):
            samples, figures, self.kept = play_groups(
                self.args, self.player, self.opponents, self.game_map, self.step
            )
        with clock("update"):
            figures |= learn(
                self.args, self.model, self.reference, self.optimizer, samples, self.step
            )
        self.step += 1
        self.decisions += int(figures["charts/decisions"])
        seconds = time.perf_counter() - began
        figures["charts/decisions_per_second"] = figures["charts/decisions"] / seconds
        return figures | {f"timing/{name}": x for name, x in clock.seconds.items()}

    def is_due(self) -> bool:
        """Tell whether the model is to be evaluated before the next step."""
        step, interval = self.step, self.args.eval_interval
        due = bool(interval) and (step % interval == 0 or step == self.args.steps)
        return due and self.evaluated_at < step

    def evaluate(self, bot: str, stop: StopSignals) -> Evaluation:
        args = self.args
        self.model.clock = Clock()
        seed = seeds_of(args, self.step)[3] // 2
        player = LocalPlayer("model", self.model.settings, self.model)
        rules = MatchSettings(GameRules.of(self.game_map), seed=seed, threads=args.threads)
        player.keep = set(rules.game_seeds(0, args.capture_games).tolist())
        report = evaluate_player(
            rules,
            player,
            load_player(bot, game_map=self.game_map),
            args.eval_games,
            samples=args.capture_games,
            progress=stop.check,
        )
        add_thoughts(report.saved_by_seed, [(player.name, player)])
        return report

    def policy(self) -> dict:
        weights = {n: p.detach().cpu() for n, p in learned_weights(self.model.network).items()}
        args = asdict(self.args)
        merged = checkpoints.policy_dict(__file__, args, self.game_map, weights, self.decisions)
        return merged | {"tokenizer": tokenizer_hash(self.model)}

    def save(self, log: RunLog) -> None:
        merged = self.policy() | {"step": self.step, "optimizer": self.optimizer.state_dict()}
        merged |= {"evaluated_at": self.evaluated_at}
        merged |= {"files": log.flush(), "wandb_id": log.wandb_id, "seconds": log.seconds}
        log.folder.save_checkpoint(self.step, checkpoints.to_bytes(merged))

    def load(self, saved: dict) -> None:
        take_weights(self.model, saved)
        self.optimizer.load_state_dict(saved["optimizer"])
        self.step, self.decisions = saved["step"], saved["global_step"]
        self.evaluated_at = saved["evaluated_at"]

    def export(self, folder: Path) -> None:
        network = self.model.network
        if self.args.lora:
            network = network.merge_and_unload()
        network.save_pretrained(folder)
        self.model.tokenizer.save_pretrained(folder)
        args = self.args
        lines = f'prompt = "{args.prompt}"\nhistory = {args.history}\n'
        lines += f"temperature = {args.temperature}\n"
        (folder / TRAINED_WITH).write_text(lines)


def tokenizer_hash(model: LanguageModel) -> str:
    return hashlib.sha256(model.tokenizer.backend_tokenizer.to_str().encode()).hexdigest()


def take_weights(model: LanguageModel, saved: dict) -> None:
    if saved["tokenizer"] != tokenizer_hash(model):
        raise ValueError("made with another tokenizer")
    own = learned_weights(model.network)
    checkpoints.check_weights(saved["model"], own)
    with torch.no_grad():
        for name, part in own.items():
            part.copy_(saved["model"][name])


def load_checkpoint_player(
    saved: checkpoints.Checkpoint, greedy: bool = False, device: str = "cpu"
) -> LocalPlayer:
    """Return the model of a checkpoint as a player; the run's initial model is in its old place."""
    with checkpoints.fitting(saved.path, __file__):
        args = convert(Args, saved["args"], f"{saved.path}: args")
        model = make_model(replace(args, device=device), saved.map)
        take_weights(model, saved)
    model.network.requires_grad_(False)
    return LocalPlayer(str(saved.path), model.settings, model, greedy)


def begin(args: Args, game_map: Map) -> Run:
    try:
        torch.zeros(1, device=args.device)
    except (RuntimeError, AssertionError):
        raise UserError(f"--device {quoted(args.device, 40)} cannot be used here") from None
    learning_powers(args, game_map, 0)
    for bot in args.eval_bots if args.eval_interval else ():
        load_player(bot, game_map=game_map)
    return Run(args, game_map)


def start_run(args: Args) -> tuple[Run, RunLog]:
    game_map = load_map(args.map)
    run = begin(args, game_map)
    folder = RunFolder.create(args, game_map.name, args.exp_name, __file__)
    try:
        return run, open_log(run, folder)
    except UserError:  # such as W&B's refusal; nothing has been trained
        folder.remove()
        raise


def resume_run(args: Args) -> tuple[Run, RunLog]:
    folder = RunFolder.open(str(args.resume))
    saved = checkpoints.read(folder.checkpoint)
    saved_args = folder.settings(Args)
    settings.check_changes(saved_args, args, ("steps", "track"))
    with checkpoints.fitting(folder.checkpoint, __file__):
        run = begin(args, saved.map)
        run.load(saved)
        folder.cut_back(saved["files"])
    folder.save_args(asdict(replace(saved_args, steps=args.steps)))
    return run, open_log(run, folder, saved["wandb_id"], saved["seconds"])


def open_log(
    run: Run, folder: RunFolder, wandb_id: str | None = None, seconds: float = 0.0
) -> RunLog:
    args = run.args
    wandb = start_wandb(asdict(args), folder, wandb_id) if args.track else None
    progress = Progress(args.steps, run.step, unit="steps")
    return RunLog(folder, progress, run.game_map, wandb, wandb_id, seconds)


def train(args: Args) -> int:
    args = checked(args)
    run, log = resume_run(args) if args.resume else start_run(args)
    args = run.args
    log.announce("?runFilter={}&smoothing=0#timeseries")  # it has no dashboard
    with contextlib.closing(log), StopSignals() as stop:
        while (run.is_due() or run.step < args.steps) and not stop.received:
            if run.is_due():
                with contextlib.suppress(Stopped):  # a resumed run does it anew
                    reports = {parse_player(b): run.evaluate(b, stop) for b in args.eval_bots}
                    log.evaluations(reports, run.step, [*reports], run.policy())
                    run.evaluated_at = run.step
                run.save(log)
                continue
            figures = run.advance()
            log.scalars(figures, run.step)
            if run.kept.lines:
                log.folder.append("replies.jsonl", run.kept.lines)
                log.folder.append("rollouts.jsonl", run.kept.games)
            log.progress.update(run.step, score=figures["charts/episodic_return"])
            if run.step % args.save_interval == 0 or run.step == args.steps or stop.received:
                run.save(log)
        log.summary = {"steps": run.step, "decisions": run.decisions}
        log.stopped = run.step < args.steps or run.is_due()
        if log.stopped:
            return 130
        run.export(log.folder.path / "model")
        log.summary["model"] = "in the run folder's model/"
    return 0


def main(args: Args) -> int:
    return settings.exit_status(train, args, "the last checkpoint is kept")


LEARNER_SPEC = registry.register(__name__, __file__, Args, load=load_checkpoint_player)

if __name__ == "__main__":
    sys.exit(main(settings.parse_args(Args)))
