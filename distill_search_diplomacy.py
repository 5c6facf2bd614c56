"""Search teaches: a policy learns to give by itself the orders that a search with it finds.

    python distill_search_diplomacy.py --policy runs/reference/standard__pure__2
    python -m diplomacy_engine evaluate --player runs/standard__distill__1__.../checkpoint.pt

Expert iteration (Anthony et al. 2020). In each round every power of many games is played by a
search on the present policy (docs/search.md), and the policy then learns to give the orders that
were chosen; its values learn to stay as they were. The result is a policy of
ppo_selfplay_diplomacy.py, which plays it. Nothing of the trainer changes.

The loop is `main`: play with search, learn, evaluate, save.
"""

import io
import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # spinning threads starve the game kernels

import sys
import time
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, VectorGame, evaluate_player, load_player
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.games import order_positions
from diplomacy_engine.players import PolicyPlayer, checkpoints
from diplomacy_engine.players.asking import begin_games
from diplomacy_engine.players.search.naming import make_search, spelled
from diplomacy_engine.rules.map import Map
from diplomacy_engine.selfplay import Experience
from diplomacy_engine.training.ranges import Between, NonNegative, Positive
from diplomacy_engine.training.run_folder import RunFolder
from diplomacy_engine.training.settings import parse_args


@dataclass(frozen=True)
class Args:
    """Settings of a distillation."""

    policy: str = ""
    """checkpoint or run folder of the policy that shall learn"""
    search: str = "fast"
    """kind of search with its options, such as "fast(profiles=28)" """
    rounds: Positive = 4
    """times that the search plays and the policy learns"""
    games: Positive = 64
    """games of one round, all played at once, every power by the search"""
    max_years: Positive = 20
    """game years after which such a game ends"""
    epochs: Positive = 2
    """passes over a round's decisions"""
    batch_size: Positive = 1024
    """decisions of a minibatch"""
    learning_rate: NonNegative = 3e-4
    """step size of Adam"""
    vf_coef: NonNegative = 0.5
    """weight of the squared distance from the values before the round"""
    max_grad_norm: NonNegative = 0.5
    """clipping norm of the gradient"""
    eval_bot: str = "dumbbot"
    """player to evaluate the policy against after each round, without a search"""
    eval_games: Positive = 70
    """games of such an evaluation"""
    seed: Annotated[int, Between(0, 2**62)] = 1
    """seed of everything random"""
    threads: Annotated[int, Between(1, 1024)] = 1
    """threads of the games and of the network"""
    runs_folder: str = "runs"
    """folder in which the run folder is made"""


def play(player, policy: PolicyPlayer, games: VectorGame) -> tuple[Experience, np.ndarray]:
    """Let a search play all powers of games to their end.

    Returns:
        Every decision (D,) as the policy would have seen and taken it, and its values (D,).
    """
    parts, values = [], []
    begin_games(games, [player], np.arange(games.num_games))
    while (games.state.end == RUNNING).any():
        decisions, orders = games.decisions(), games.new_orders()
        obs = policy.observe(games, decisions.game, decisions.power)
        numbers = player.act(games, decisions)
        parts.append(Experience(obs, decisions, order_positions(decisions, numbers)))
        values.append(policy.agent.values(obs))
        games.write_orders(orders, decisions, numbers)
        games.step(orders)
    return Experience.join(parts), np.concatenate(values)


def learn(
    args: Args,
    agent: ppo.Agent,
    optimizer: torch.optim.Optimizer,
    taught: Experience,
    values: np.ndarray,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Learn from what was taught in epochs of minibatches; return the last epoch's mean figures.

    The loss is the cross-entropy to the orders chosen, and the distance from the values (D,).
    """
    boards = len(taught.obs.board)
    size = max(1, round(args.batch_size * boards / len(values)))  # boards of a minibatch
    by_board = np.argsort(taught.obs.row, kind="stable")
    first = np.searchsorted(taught.obs.row[by_board], np.arange(boards + 1))
    for _ in range(args.epochs):
        figures = []
        for picked in np.array_split(rng.permutation(boards), -(-boards // size)):
            rows = np.concatenate([by_board[first[b] : first[b + 1]] for b in picked])
            part, goal = taught.take(rows), torch.from_numpy(values[rows])
            logprob, entropy, value = agent.get_logprob_entropy_value(*part)
            cross_entropy, distance = -logprob.mean(), ((value - goal) ** 2).mean()
            optimizer.zero_grad()
            (cross_entropy + args.vf_coef * 0.5 * distance).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimizer.step()
            found = cross_entropy, distance, entropy.mean()
            figures.append([part.item() for part in found])
    names = "cross_entropy", "value_distance", "entropy"
    return dict(zip(names, np.mean(figures, 0).tolist()))


def evaluate(args: Args, agent: ppo.Agent, game_map: Map, seed: int) -> dict[str, float]:
    """Return figures of the policy alone, without a search."""
    player = ppo.policy_player(agent, "distilled", seed)
    result, _ = evaluate_player(
        game_map,
        player,
        load_player(args.eval_bot, game_map=game_map),
        args.eval_games,
        seed,
        threads=args.threads,
    )
    names = "solo", "win", "sum_of_squares"
    return {name: result["overall"][name]["value"] for name in names}


def run(argv: list[str]) -> None:
    """Distil as the command line says."""
    args = parse_args(Args, argv).args
    if not args.policy:
        raise UserError("--policy is missing: name the checkpoint or run folder that shall learn")
    start = ppo.FILES.policy("policy", args.policy)
    game_map = Map(start["map_facts"], start["map_name"])
    agent, settings = ppo.load_agent(start, args.policy), start["args"]
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)

    def searching(teacher: ppo.Agent):
        policy = ppo.policy_player(teacher, "policy", settings=settings)
        name = f"{args.search}:policy"
        parts = spelled(name)
        if parts is None:
            raise UserError(f"--search {args.search!r:.60} is no search, such as fast or full")
        return policy, make_search(name, parts, lambda other: policy if other == "policy" else
                                   load_player(other, game_map=game_map))  # fmt: skip

    searching(agent)  # says what is wrong before a folder is made
    load_player(args.eval_bot, game_map=game_map)
    folder = RunFolder.create(
        args.runs_folder, game_map.name, "distill", args.seed, asdict(args), __file__
    )
    print(f"run folder: {folder.path}", flush=True)
    log, decisions, begun = SummaryWriter(str(folder.path)), 0, time.monotonic()
    for number in range(1, args.rounds + 1):
        policy, player = searching(ppo.frozen_copy(agent))
        seed = int(rng.integers(2**62))
        games = VectorGame(game_map, args.games, seed, args.max_years, args.threads, False)
        taught, values = play(player, policy, games)
        decisions += len(values)
        figures = learn(args, agent, optimizer, taught, values, rng)
        figures |= {f"eval/{k}": v for k, v in evaluate(args, agent, game_map, seed).items()}
        figures["minutes"] = (time.monotonic() - begun) / 60
        for name, value in figures.items():
            log.add_scalar(f"distill/{name}", value, decisions)
        saved = {"model": agent.state_dict(), "args": settings, "map": game_map}
        save(folder, saved, start["global_step"] + decisions)
        shown = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
        print(f"round {number}: {decisions:,} decisions, {shown}", flush=True)
    log.close()


def save(folder: RunFolder, policy: dict, step: int) -> None:
    """Write the policy as a checkpoint that ppo_selfplay_diplomacy.py plays and starts from."""
    content = io.BytesIO()
    whole = checkpoints.policy_dict(
        ppo.__file__, policy["args"], policy["map"], policy["model"], step
    )
    torch.save(whole, content)
    folder.save_checkpoint(step, content.getvalue())


def main(argv: list[str] | None = None) -> int:
    """Distil; return the exit status."""
    try:
        run(sys.argv[1:] if argv is None else argv)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("error: interrupted; the policies of finished rounds are kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
