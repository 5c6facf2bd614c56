"""Learn to play as people do, by imitation of their games.

    python -m diplomacy_learners.imitate GAMES [GAMES ...] --map standard
    python -m diplomacy_learners.imitate --resume runs/standard__imitate__1__...
    python -m diplomacy_engine evaluate --player runs/standard__imitate__1__.../best.pt

GAMES are files that `import-game` reads, such as saved games of the `diplomacy` package, one a
line. The network is that of ppo_selfplay_diplomacy.py, whose script plays the checkpoints. Its
policy learns each unit's order, given those of the power's earlier units; its value learns the
power's final share of the squares of all centers. One game in ten, by its id, is held out.
"""

import math
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from tyro.conf import Positional

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import Decisions, Game, Map, UserError, load_map
from diplomacy_engine._files import atomic_write, refusing
from diplomacy_engine.constants import COMPLETED, DISBAND, HOLD, WAIVE, WINTER_ADJUSTMENTS
from diplomacy_engine.flags import checked
from diplomacy_engine.games.decisions import ragged_rows, row_edges
from diplomacy_engine.learning import checkpoints, ops, settings
from diplomacy_engine.learning.experience import Experience, join_rows, rows_by_board, take_rows
from diplomacy_engine.learning.probes import probe
from diplomacy_engine.learning.run_folder import RunFolder
from diplomacy_engine.learning.signals import StopSignals
from diplomacy_engine.players.policy.player import Temperature
from diplomacy_engine.rules.game_rules import GameRules
from diplomacy_engine.textgame.imports.games import read_games
from diplomacy_engine.textgame.saved_game import Ending, read_saved_game

HELD_OUT = 10  # one game in so many is held out
MEASURED = 4_000  # most held-out decisions of one evaluation
STOPPED = 130  # exit status


@dataclass(frozen=True)
class Args:
    """Settings of an imitation."""

    games: Positional[tuple[str, ...]] = ()
    """files of games to learn from"""
    map: str = "standard"
    """map of the games"""
    resume: str | None = None
    """run folder to continue; only --threads may be given with it"""
    epochs: ppo.Count = 8
    """passes over all decisions"""
    batch_size: ppo.Count = 256
    """positions of a minibatch, each with the decisions of all powers"""
    learning_rate: ppo.Weight = 1e-3
    """step size of Adam, which falls to 0 along a cosine"""
    vf_coef: ppo.Weight = 0.5
    """weight of the value loss"""
    max_grad_norm: ppo.Weight = 1.0
    """clipping norm of the gradient"""
    hidden: ppo.Size = 96
    """width of the network's layers"""
    num_layers: Annotated[int, Meta(ge=0, le=1024)] = 4
    """layers of message passing between neighboring provinces"""
    eval_interval: ppo.Count = 500
    """minibatches between evaluations on held-out games, each with a checkpoint"""
    patience: ppo.Count = 8
    """evaluations without a lower held-out loss after which training stops"""
    temperature: Temperature = 0.5
    """temperature at which the policy plays; at 1 it plays much worse"""
    seed: Annotated[int, Meta(ge=0, le=2**62)] = 1
    """seed of all random numbers"""
    threads: Annotated[int, Meta(ge=1, le=1024)] = 1
    """threads of the network"""
    runs_folder: str = "runs"
    """folder in which the run folder is made"""


class Examples(NamedTuple):
    """n decisions of people; a slot whose order is not known has one order to choose from."""

    experience: Experience
    share: np.ndarray  # (n,) float32, the power's `sum_of_squares` at the end of the game
    moving: np.ndarray  # (n,) bool, whether it is a movement phase

    def take(self, rows: np.ndarray) -> "Examples":
        return take_rows(self, rows)


def only(decisions: Decisions, chosen: np.ndarray, free: np.ndarray) -> Decisions:
    """Return decisions in which slots that are not `free` (S,) have their `chosen` (S,) order."""
    first, lengths = decisions.order_start[:-1], np.diff(decisions.order_start)
    order_start = row_edges(np.where(free, lengths, 1))
    rows = ragged_rows(np.where(free, first, first + chosen).astype(np.int32), order_start)
    return decisions._replace(order_start=order_start, order=decisions.order[rows])


def read_examples(args: Args, game_map: Map) -> tuple[Examples, Examples, Counter]:
    """Return the decisions to learn from, the held-out decisions, and counts of games and
    orders."""
    parts: tuple[list, list] = [], []
    counts: Counter = Counter()
    for path in args.games:
        with refusing(path, "read"):
            for saved in read_games(path, game_map):
                examples = examples_of(saved, game_map, counts)
                if examples is not None:
                    number = zlib.crc32(str(saved.get("id", counts["games"])).encode())
                    parts[number % HELD_OUT == 0].append(examples)
                    counts["games"] += 1
    for part, name in zip(parts, ("learn from", "hold out")):
        if not part:
            raise UserError(f"{', '.join(args.games)}: of {counts['games']} games none to {name}")
    return join_rows(parts[False]), join_rows(parts[True]), counts


def examples_of(saved: Mapping, game_map: Map, counts: Counter) -> Examples | None:
    """Return the decisions of one saved game; powers that sent no orders in a phase have none."""
    _, _, phases, ending = read_saved_game(saved, game_map)
    game = Game.from_state(GameRules.of(game_map), phases[0]["state"])
    parts, seats = [], []
    for phase in phases:
        state = phase["state"]
        # Else a board that shows the last orders, in any order of the file's units.
        units = _unit_lists(game.to_state()["units"])
        if game.phase != phase["name"] or units != _unit_lists(state["units"]):
            game = Game.from_state(game.rules, state)
        sent = {power: orders for power, orders in phase["orders"].items() if orders}
        for power, orders in sent.items():
            counts["not_legal"] += len(game.submit(power, orders, strict=False))
        experience = experience_of(game, list(sent), counts)
        if experience is not None:
            moving = np.full(experience.decisions.count, game.phase.endswith("M"))
            parts.append((experience, moving))
            seats.append(experience.decisions.power)
        if not game.is_over and phase is not phases[-1]:
            game.adjudicate()
    if not parts:
        return None
    experience, moving = zip(*parts)
    share = final_shares(phases[-1]["state"], game_map, ending)[np.concatenate(seats)]
    return Examples(Experience.join(list(experience)), share, np.concatenate(moving))


def _unit_lists(units: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the sorted units of each power that has any."""
    return {power: sorted(own) for power, own in units.items() if own}


def final_shares(state: Mapping, game_map: Map, ending: Ending) -> np.ndarray:
    """Return each power's `sum_of_squares` (P,) in the last position; a game that was broken off
    there has ended in a draw, if nobody has the centers that win."""
    over = dict(state) | {"name": COMPLETED}
    figures = Game.from_state(game_map, over, *ending).figures()
    return np.array([figures[power]["sum_of_squares"] for power in game_map.powers], np.float32)


def experience_of(game: Game, senders: Iterable[str], counts: Counter) -> Experience | None:
    """Return the decisions of `senders` with the orders submitted to a game, if any is known.

    A unit without a legal order, and a build that is not used, has no other order to choose from;
    a decision of which nothing is known is left out.
    """
    games, table = game.vector_game, game.vector_game.table
    powers = [game.map.power_index[power] for power in senders]
    decisions = games.decisions()
    decisions = decisions.take(np.isin(decisions.power, powers))
    winter = games.state.phase[0] == WINTER_ADJUSTMENTS
    decision, slot = decisions.slot_decision, decisions.order_slot  # (S,), (N,)
    first, slots = decisions.order_start[:-1], len(decision)
    submitted = np.isin(decisions.order, list(game.order_numbers().values()))
    if winter:  # a power's builds or removals one after the other, as they are numbered
        before = np.cumsum(submitted) - submitted
        place = np.arange(slots) - decisions.slot_start[decision]
        submitted &= before - before[first][slot] == place[slot]
    free = np.zeros(slots, bool)
    free[slot[submitted]] = True
    default = np.isin(table.kind[decisions.order], (WAIVE,) if winter else (HOLD, DISBAND))
    picked = np.flatnonzero(np.where(free[slot], submitted, default))
    chosen, settled = np.zeros(slots, np.int64), np.zeros(slots, bool)
    chosen[slot[picked]], settled[slot[picked]] = picked - first[slot[picked]], True
    free &= ~np.isin(decision, decision[~settled])  # removals count if all are known
    counts["orders"] += int(free.sum())
    counts["not_given"] += int(slots - free.sum())
    rows = np.unique(decision[free])
    if not len(rows):
        return None
    obs = games.view_boards(np.zeros(decisions.count, np.int64), decisions.power)
    narrowed = only(decisions, chosen, free)
    return Experience(obs, narrowed, np.where(free, chosen, 0)).take(rows)


@torch.no_grad()
def measure(agent: ppo.Agent, examples: Examples) -> dict[str, float]:
    """Return how well an agent foretells decisions.

    `loss`: nats an order. `accuracy`: of movement orders that were its likeliest given the orders
    of the power's earlier units; `accuracy_alone`, `accuracy_sets`: of orders, and of decisions
    with all orders, that were so without being told those.
    """
    experience = examples.experience
    scored = agent.get_action_and_value(*experience)
    orders = int((np.diff(experience.decisions.order_start) > 1).sum())
    gap = scored.value.numpy() - examples.share
    figures = {"loss": -float(scored.logprob.sum()) / max(1, orders)}
    figures["value_error"] = float(np.sqrt((gap**2).mean()))
    moves = examples.take(np.flatnonzero(examples.moving)).experience
    num_units = np.diff(moves.decisions.slot_start)
    right = []
    for unit in range(num_units.max(initial=0)):
        part = moves.take(np.flatnonzero(num_units > unit))
        place = np.zeros(len(part.chosen), bool)
        place[part.decisions.slot_start[:-1] + unit] = True
        right.append(_foretold(agent, part, place)[place & _is_open(part)])
    alone = _foretold(agent, moves, _is_open(moves))
    complete = np.logical_and.reduceat(alone, moves.decisions.slot_start[:-1])
    figures["accuracy"] = float(np.concatenate(right).mean())
    figures["accuracy_alone"] = float(alone[_is_open(moves)].mean())
    figures["accuracy_sets"] = float(complete.mean())
    return figures


def _is_open(experience: Experience) -> np.ndarray:
    """Tell which slots (S,) have several orders to choose from."""
    return np.diff(experience.decisions.order_start) > 1


def _foretold(agent: ppo.Agent, experience: Experience, free: np.ndarray) -> np.ndarray:
    """Tell of which slots (S,) the agent's likeliest order is the person's, where it is `free` to
    choose and told the person's order of all other slots."""
    obs, decisions, chosen = experience
    orders = agent.get_action_and_value(obs, only(decisions, chosen, free), noise=ops.LIKELIEST)
    return ~free | (orders.chosen == chosen)


class Imitation:
    """A training of an agent on examples, which a checkpoint continues from the same minibatch."""

    def __init__(self, args: Args, game_map: Map):
        torch.set_num_threads(args.threads)
        torch.manual_seed(args.seed)
        self.args, self.game_map = args, game_map
        self.agent = ppo.Agent(game_map, args.hidden, args.num_layers)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), args.learning_rate, eps=1e-5)
        self.step, self.best, self.waited = 0, math.inf, 0
        self.begun = time.monotonic()

    def learn(self, part: Examples, frac: float) -> None:
        """Take one step on a minibatch at `frac` (0..1) of the learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.args.learning_rate * frac
        scored = self.agent.get_action_and_value(*part.experience)
        orders = int((np.diff(part.experience.decisions.order_start) > 1).sum())
        cross_entropy = -scored.logprob.sum() / max(1, orders)
        value_loss = 0.5 * ((scored.value - torch.from_numpy(part.share)) ** 2).mean()
        self.optimizer.zero_grad()
        (cross_entropy + self.args.vf_coef * value_loss).backward()
        nn.utils.clip_grad_norm_(self.agent.parameters(), self.args.max_grad_norm)
        self.optimizer.step()

    def state(self) -> dict:
        about = {"step": self.step, "best": self.best, "waited": self.waited}
        about["seconds"] = time.monotonic() - self.begun
        return about | {"optimizer": self.optimizer.state_dict()}

    def load(self, saved: dict) -> None:
        self.agent.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["imitation"]["optimizer"])
        for name in ("step", "best", "waited"):
            setattr(self, name, saved["imitation"][name])
        self.begun -= saved["imitation"].get("seconds", 0.0)  # 0.4 did not keep them

    def content(self) -> bytes:
        """Return a checkpoint that the plain script plays."""
        args, learner = self.args, ppo.LEARNER_SPEC
        plain = ppo.Args(
            map=args.map,
            reward="sum_of_squares=1",
            gamma=1.0,
            hidden=args.hidden,
            num_layers=args.num_layers,
            cross_support=True,
        )
        model = self.agent.state_dict()
        settings = asdict(plain) | {"temperature": args.temperature}
        policy = checkpoints.policy_dict(learner.file, settings, self.game_map, model, self.step)
        policy["probe"] = probe(learner.make_player, self.agent, self.game_map)
        return checkpoints.to_bytes(policy | {"imitation": self.state()})


def minibatches(examples: Examples, args: Args, first: int) -> Iterator[tuple[np.ndarray, float]]:
    """Yield the rows of minibatches from number `first` on, each with its learning rate's share."""
    boards = rows_by_board(examples.experience.obs.row)
    of_epoch = -(-len(boards) // args.batch_size)
    total = of_epoch * args.epochs
    for number in range(first, total):
        epoch, place = divmod(number, of_epoch)
        if place == 0 or number == first:
            order = np.random.default_rng([args.seed, epoch]).permutation(len(boards))
        picked = order[place * args.batch_size : (place + 1) * args.batch_size]
        rows = np.concatenate([boards[b] for b in picked])
        yield rows, 0.5 * (1 + math.cos(math.pi * number / total))


def resumed(args: Args) -> tuple[RunFolder, dict]:
    """Return the folder of a run, and the checkpoint from which it goes on."""
    folder = RunFolder.open(str(args.resume))
    saved = checkpoints.read(folder.checkpoint)
    if "imitation" not in saved:
        raise UserError(f"--resume {args.resume} is not a run of this learner")
    settings.check_changes(folder.settings(Args), args, ("threads",))
    return folder, saved


def run(args: Args) -> int:
    args = checked(args)
    folder, saved = resumed(args) if args.resume else (None, None)
    if not args.games:
        raise UserError("name the files of games to learn from, or --resume")
    game_map = load_map(args.map)
    examples, held_out, counts = read_examples(args, game_map)
    described = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items())
    print(f"{described}; {len(examples.share):,} decisions, {len(held_out.share):,} held out")
    training = Imitation(args, game_map)
    if saved is not None:
        training.load(saved)
    folder = folder or RunFolder.create(args, game_map.name, "imitate", __file__)
    print(f"run folder: {folder.path}", flush=True)
    few = np.random.default_rng(args.seed).permutation(len(held_out.share))[:MEASURED]
    held_out = held_out.take(np.sort(few))
    log = SummaryWriter(str(folder.path))

    def evaluate_and_save() -> None:
        figures = measure(training.agent.eval(), held_out)
        training.agent.train()
        improved = figures["loss"] < training.best
        training.best = min(training.best, figures["loss"])
        due = training.step % args.eval_interval == 0  # else it is because a signal has come
        training.waited = 0 if improved else training.waited + due
        figures["minutes"] = (time.monotonic() - training.begun) / 60
        for name, value in figures.items():
            log.add_scalar(f"imitate/{name}", value, training.step)
        folder.log(training.step, figures)
        content = training.content()
        if improved:  # first: a run resumed from the checkpoint below does not repeat it
            atomic_write(folder.path / "best.pt", content)
        folder.save_checkpoint(training.step, content)
        shown = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
        print(f"minibatch {training.step:,}: {shown}", flush=True)

    with StopSignals() as stop:
        first = training.step
        ended = training.waited >= args.patience  # in a run that is resumed
        for rows, frac in () if ended else minibatches(examples, args, first):
            training.learn(examples.take(rows), frac)
            training.step += 1
            if training.step % args.eval_interval == 0 or stop.received:
                evaluate_and_save()
                if stop.received or training.waited >= args.patience:
                    break
        else:
            if training.step > first and training.step % args.eval_interval:
                evaluate_and_save()
    log.close()
    folder.close()
    return STOPPED if stop.received else 0


def main(args: Args) -> int:
    return settings.exit_status(run, args, "the last evaluated policy is kept")


if __name__ == "__main__":
    sys.exit(main(settings.parse_args(Args)))
