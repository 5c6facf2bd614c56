"""How much the trainer gains on the plain way to train the same network.

    python tests/benchmarks/bench_plain.py --map standard

The plain way plays one `Game` after the other, asks the network for one decision at a time, and
learns from one at a time, as often as the trainer does. The trainer runs in turn with it, in one
process too, and the ratio of learner decisions/s is printed. Flags that are not known here go to
the trainer.
"""

import argparse
import sys
import tempfile
import time

import numpy as np
import torch
from bench_trainer import ROOT, measure, read_updates, train

sys.path.insert(0, str(ROOT))
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import Game, VectorGame, load_map, order_numbers
from diplomacy_engine.learning.experience import Experience
from diplomacy_engine.learning.players import policy_player
from diplomacy_engine.learning.startup import CONFIGS
from diplomacy_engine.players.advice import orders_by_player
from diplomacy_engine.training.settings import parse_args


def collect(args: ppo.Args, agent: ppo.Agent, decisions: int) -> float:
    """Return the seconds it takes to play, for each learner decision."""
    player, rng = policy_player(agent, "plain"), np.random.default_rng(1)
    made, start = 0, time.perf_counter()
    while made < decisions:
        game = Game(args.map, max_years=args.max_years)
        powers = game.map.powers
        learners = set(rng.permutation(powers)[: args.learner_seats])
        while not game.is_over and made < decisions:
            for power in powers:
                for who, orders in orders_by_player(game, player, [power], made).items():
                    game.submit(who, orders)
                    made += who in learners
            game.adjudicate()
    return (time.perf_counter() - start) / made


def learn(args: ppo.Args, agent: ppo.Agent, decisions: int) -> float:
    """Return the seconds it takes to learn from a decision, as often as an update does."""
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    games = VectorGame(args.map, 1, max_years=args.max_years, threads=1)
    made = seconds = 0
    while made < decisions:
        asked = games.decisions()
        obs = games.view_boards(asked.game, asked.power)
        with torch.no_grad():
            chosen, logprobs, _, values = agent.get_action_and_value(obs, asked)
        seen = Experience(obs, asked, chosen)
        for d in range(asked.count):
            one, row = seen.take(np.array([d])), slice(d, d + 1)
            old = {"logprobs": logprobs[row], "values": values[row], "returns": values[row]}
            old["advantages"] = values[row]  # any numbers will do
            start = time.perf_counter()
            _, *new = agent.get_action_and_value(*one)
            loss, _ = ppo.ppo_loss(args, args.ent_coef, *new, old, 1.0)
            loss.backward()
            seconds += time.perf_counter() - start
            made += 1
        start = time.perf_counter()
        optimizer.step()
        optimizer.zero_grad()
        seconds += (time.perf_counter() - start) / 50  # a minibatch is much more than a phase
        orders = games.new_orders()
        games.write_orders(orders, asked, order_numbers(asked, chosen))
        games.step(orders)
    return args.update_epochs * seconds / made


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="standard", help="map to train on")
    parser.add_argument("--decisions", type=int, default=40_000, help="of the trainer, to time")
    parser.add_argument("--plain", type=int, default=1_000, help="of the plain way, to time")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured")
    arguments, flags = parser.parse_known_args()
    words = ["--map", arguments.map, "--processes", "1", *flags]
    args = parse_args(ppo.Args, words, CONFIGS).args
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as folder:
            run = train(arguments.map, 15_000 + arguments.decisions, words[2:], folder)
            batched = measure(read_updates(run), 15_000)["decisions_per_second"]
        torch.set_num_threads(1)
        agent = ppo.make_agent(vars(args), load_map(args.map))
        playing, learning = (ways(args, agent, arguments.plain) for ways in (collect, learn))
        plain = 1 / (playing + learning)
        print(
            f"{arguments.map}: the trainer {batched:,.0f} decisions/s, the plain way {plain:,.1f} "
            f"({1e3 * playing:.2f} ms to play, {1e3 * learning:.2f} ms to learn), "
            f"ratio {batched / plain:.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
