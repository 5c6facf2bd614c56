"""Distillation: a policy learns to give the orders of a search without searching.

    python -m diplomacy_learners.distill --policy runs/reference/standard__pure__2
    python -m diplomacy_learners.distill --policy ... --against dumbbot --spread 0.05
    python -m diplomacy_engine evaluate --player runs/standard__distill__1__.../checkpoint.pt

Expert iteration (Anthony et al. 2020; docs/search.md). In each round a search plays many games. The
policy learns the orders that the search chose; a loss keeps its values unchanged.
"""

import os
import sys
import time
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from diplomacy_engine import Map, Player, UserError, VectorGame, evaluate_player, load_player
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.flags import checked
from diplomacy_engine.games.decisions import order_positions
from diplomacy_engine.learning import checkpoints, registry, settings
from diplomacy_engine.learning.experience import Experience, join_rows, rows_by_board, take_rows
from diplomacy_engine.learning.frozen import frozen_copy
from diplomacy_engine.learning.players import agent_of, policy_player
from diplomacy_engine.learning.probes import probe
from diplomacy_engine.learning.run_folder import RunFolder
from diplomacy_engine.players.asking import ask_player
from diplomacy_engine.players.loading import make_search
from diplomacy_engine.players.names import PlayerSpec, SearchSpec, parse_player
from diplomacy_engine.players.policy.player import PolicyPlayer
from diplomacy_engine.players.search.best_response import BestResponse, Search
from diplomacy_engine.rules.state import in_movement
from ppo_selfplay_diplomacy import LEARNER_SPEC, Agent, Count, Weight


@dataclass(frozen=True)
class Args:
    """Settings of a distillation."""

    policy: str = ""
    """checkpoint or run folder of the policy to train; mine.py:PATH for one of your own script"""
    search: str = "fast"
    """kind of search, with options as in "fast(profiles=28)" if there are any"""
    against: tuple[str, ...] = ()
    """players of all powers but one, one drawn for each game ("self": the policy without a search);
    default: the search plays all powers"""
    spread: Weight = 0.0
    """soft targets: where the search is sure, the policy learns all candidates with weights policy
    * exp(value / SPREAD); 0: only the orders that were played"""
    rounds: Count = 4
    """rounds of games and learning"""
    games: Count = 64
    """games of one round, all played at once"""
    max_years: tuple[Count, ...] = (20,)
    """game years after which a game ends; several: each for an equal share of the games"""
    epochs: Count = 2
    """passes over a round's decisions"""
    batch_size: Count = 1024
    """decisions of a minibatch"""
    learning_rate: Weight = 3e-4
    """step size of Adam"""
    vf_coef: Weight = 0.5
    """weight of the value loss: the squared distance from the values before the round"""
    max_grad_norm: Weight = 0.5
    """clipping norm of the gradient"""
    eval_bot: str = "dumbbot"
    """player to evaluate the policy against after each round, without a search"""
    eval_games: Annotated[int, Meta(ge=1, le=10**6)] = 200
    """games of one evaluation against one bot, all seats equally often"""
    seed: Annotated[int, Meta(ge=0, le=2**62)] = 1
    """seed of all random numbers"""
    threads: Annotated[int, Meta(ge=1, le=1024)] = 1
    """threads of the games and of the network"""
    runs_folder: str = "runs"
    """folder in which the run folder is made"""


class Lesson(NamedTuple):
    """Decisions to learn from; one for which several orders are taught has several rows."""

    experience: Experience
    share: np.ndarray  # (n,) float32, a row's weight in its decision
    value: np.ndarray  # (n,) float32, the policy's value before learning

    def take(self, rows: np.ndarray) -> "Lesson":
        return take_rows(self, rows)


def play(
    args: Args,
    player: Player,
    policy: PolicyPlayer,
    games: VectorGame,
    others: list[Player],
    rng: np.random.Generator,
) -> Lesson:
    """Play games to their end; return decisions for `policy` to learn.

    The targets are the orders of `player` among those that the policy may choose. `player` plays
    one power of each game and one of `others`, drawn by `rng`, all other powers; without others it
    plays all powers.
    """
    seat = np.arange(games.num_games) % games.num_powers
    rival = rng.integers(max(1, len(others)), size=games.num_games)
    searches: list[Search] = []
    if isinstance(player, BestResponse):
        player.note = searches.append
    parts = []
    while (games.state.end == RUNNING).any():
        decisions, orders = games.decisions(), games.new_orders()
        mine = (decisions.power == seat[decisions.game]) | (not others)
        decider = np.where(mine, 0, 1 + rival[decisions.game])
        for number, orderer in enumerate([player, *others]):
            part = decisions.take(decider == number)
            if not part.count:
                continue
            part = part if number else policy.legal_orders(games, part)
            numbers = ask_player(games, part, orderer)
            games.write_orders(orders, part, numbers)
            if number:
                continue
            obs = policy.observe(games, part.game, part.power)
            experience = Experience(obs, part, order_positions(part, numbers))
            share = np.ones(part.count, np.float32)
            lesson = Lesson(experience, share, policy.agent.values(obs))
            if args.spread and searches:
                moving = in_movement(games.state, part.game)
                lesson = spread_out(args, lesson, policy, searches, moving)
            searches.clear()
            parts.append(lesson)
        games.step(orders)
    return join_rows(parts)


def spread_out(
    args: Args, lesson: Lesson, policy: PolicyPlayer, searches: list[Search], moving: np.ndarray
) -> Lesson:
    """Teach all candidates where a search was sure that one of them is better.

    Their targets are policy * exp(value / spread): the answer that gains most when each nat of
    distance from the policy costs `spread` (piKL, Jacob et al. 2022). The searches are of the
    decisions that are `moving` (n,).
    """
    means = np.concatenate([search.values.mean(2) for search in searches])
    orders = np.concatenate([search.candidates for search in searches])
    choice = np.concatenate([search.choice for search in searches])
    d, k = np.nonzero(~np.isnan(means) & (choice > 0)[:, None])  # those that met all profiles
    rows, count = np.flatnonzero(moving)[d], len(lesson.share)
    if not len(rows):
        return lesson
    plain = np.setdiff1d(np.arange(count), rows)
    varied = lesson.take(rows)
    decisions = varied.experience.decisions
    row = decisions.slot_decision
    numbers = orders[d[row], k[row], decisions.slot_province]
    experience = varied.experience._replace(chosen=order_positions(decisions, numbers))
    with torch.no_grad():
        logprob = agent_of(policy).get_action_and_value(*experience).logprob
    weight = logprob.numpy() + means[d, k] / args.spread
    top = np.full(count, -np.inf)
    np.maximum.at(top, rows, weight)
    share = np.exp(weight - top[rows])
    share /= np.bincount(rows, share, count)[rows]
    share[share < 0.02] = 0
    share /= np.bincount(rows, share, count)[rows]
    varied = varied._replace(experience=experience, share=share.astype(np.float32))
    return join_rows([lesson.take(plain), varied.take(np.flatnonzero(share))])


def learn(
    args: Args,
    agent: Agent,
    optimizer: torch.optim.Optimizer,
    lesson: Lesson,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Learn in epochs of minibatches; return the last epoch's mean figures.

    The loss is the cross-entropy to the orders taught, and how far values have moved since.
    """
    boards = rows_by_board(lesson.experience.obs.row)
    size = max(1, round(args.batch_size * len(boards) / len(lesson.share)))  # of a minibatch
    for _ in range(args.epochs):
        figures = []
        for picked in np.array_split(rng.permutation(len(boards)), -(-len(boards) // size)):
            part = lesson.take(np.concatenate([boards[b] for b in picked]))
            share, before = torch.from_numpy(part.share), torch.from_numpy(part.value)
            scored = agent.get_action_and_value(*part.experience)
            cross_entropy = -(share * scored.logprob).sum() / share.sum()
            distance = (share * (scored.value - before) ** 2).sum() / share.sum()
            optimizer.zero_grad()
            (cross_entropy + args.vf_coef * 0.5 * distance).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimizer.step()
            terms = cross_entropy, distance, scored.entropy.mean()
            figures.append([part.item() for part in terms])
    names = "cross_entropy", "value_distance", "entropy"
    return dict(zip(names, np.mean(figures, 0).tolist()))


def evaluate(args: Args, agent: Agent, game_map: Map, seed: int, trained: dict) -> dict[str, float]:
    player = policy_player(agent, "distilled", settings=trained)
    bot = load_player(args.eval_bot, game_map=game_map)
    report = evaluate_player(
        game_map, player, bot, args.eval_games, seed=seed, threads=args.threads
    )
    result = report.result()
    names = "solo", "win", "sum_of_squares"
    return {f"eval/{name}": result["overall"][name]["value"] for name in names}


def run(args: Args) -> int:
    args = checked(args)
    script = args.policy.rpartition(".py:")[0]  # a network of one's own
    learner = registry.of_file(f"{script}.py") if os.path.isfile(f"{script}.py") else LEARNER_SPEC
    if learner.load or learner.talks:
        raise UserError(f"--policy {args.policy}: {learner.name} cannot be distilled")
    start = learner.checkpoint_of_flag("policy", args.policy)
    game_map, agent, trained = start.map, learner.agent(start), start["args"]
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    def players(teacher: Agent) -> tuple[PolicyPlayer, Player, list[Player]]:
        policy = policy_player(teacher, "policy", settings=trained)

        def load(spec: PlayerSpec) -> Player:
            if spec.text in ("self", "policy"):
                return policy
            return load_player(spec, game_map=game_map)

        others = [load(parse_player(name)) for name in args.against]
        search = parse_player(f"{args.search}:policy")
        if not isinstance(search, SearchSpec):
            raise UserError(f"--search {args.search!r:.60} is not a search, such as fast")
        return policy, make_search(search, load), others

    players(agent)  # errors appear before a folder is made
    load_player(args.eval_bot, game_map=game_map)
    folder = RunFolder.create(args, game_map.name, "distill", __file__)
    print(f"run folder: {folder.path}", flush=True)
    log, decisions, begun = SummaryWriter(str(folder.path)), 0, time.monotonic()
    for number in range(1, args.rounds + 1):
        seed = int(rng.integers(2**62))
        policy, player, others = players(frozen_copy(agent))
        lessons = []
        for part, years in enumerate(args.max_years):
            count = -(-args.games // len(args.max_years))
            games = VectorGame(
                game_map,
                count,
                seed + part,
                years,
                args.threads,
                auto_reset=False,
                keep_history=True,
            )
            lessons.append(play(args, player, policy, games, others, rng))
        lesson = join_rows(lessons)
        decisions += round(float(lesson.share.sum()))
        figures = learn(args, agent, optimizer, lesson, rng)
        figures |= evaluate(args, agent, game_map, seed, trained)
        figures["minutes"] = (time.monotonic() - begun) / 60
        for name, value in figures.items():
            log.add_scalar(f"distill/{name}", value, decisions)
        step = start["global_step"] + decisions
        model = agent.state_dict()
        policy = checkpoints.policy_dict(learner.file, trained, game_map, model, step)
        policy |= {"probe": probe(learner.make_player, agent, game_map)}
        folder.save_checkpoint(step, checkpoints.to_bytes(policy))
        shown = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
        print(f"round {number}: {decisions:,} decisions, {shown}", flush=True)
    log.close()
    return 0


def main(args: Args) -> int:
    return settings.exit_status(run, args, "the policies of finished rounds are kept")


if __name__ == "__main__":
    sys.exit(main(settings.parse_args(Args)))
