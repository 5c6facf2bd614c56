"""Measure the game review: planted blunders, its own marks, its noise and its time.

    python benchmarks/bench_review.py --map small --games 200

In games of a map's policy against itself, one decision of a power, drawn at random, is replaced by
a random joint order, if that costs at least 5 points: of 200 games played on from the others'
orders, 200 with the power's own, by their `sum_of_squares`. The policy plays on, and the review
ranks the power's decisions by their loss. Where it ranks another first, that decision is played out
just so, against the orders that the review calls better: the ranking is right if it costs more.

Of many decisions that are tried, some only seem to cost 5 points: the difference of 200 games is
uncertain by up to 4. So each is played out anew, 800 times, and those that cost as much once more
are reported by themselves.
"""

import argparse
import os
import pickle
import sys
import time
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from diplomacy_engine import VectorGame, load_player
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.games.decisions import Decisions
from diplomacy_engine.matches.figures import wilson_interval
from diplomacy_engine.play.review import avoidable, judging_policy, mark_of
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.search.judge import SUBMITTED, Verdicts, make_judge, own_places
from diplomacy_engine.scoring.outcomes import figure_values

PLAYED_OUT, ANEW, COSTLY = 200, 800, 5.0
SCREENS = 12, 40  # so many games come first: what is surely not costly is dropped after them
TIES = 1e-6
MOST = 12  # decisions of a power that are tried


class Planted(NamedTuple):
    power: int
    phase: int
    cost: float  # in points
    cost_anew: float  # of other games
    orders: np.ndarray  # (phases, V) of all powers


def self_play(policy, games: VectorGame) -> list[tuple[VectorGame, np.ndarray]]:
    """Play games to their ends; return the positions before each phase, and the orders."""
    history, rows = [], np.arange(games.num_games)
    while (games.state.end == RUNNING).any():
        before = games.spare(games.num_games)
        before.copy_from(games, rows, rows, keep_seeds=True)
        orders = orders_of(games, policy)
        history.append((before, orders))
        games.step(orders)
    return history


def own_decision(games: VectorGame, row: int, power: int) -> Decisions:
    decisions = games.decisions(np.array([row]))
    return decisions.take(decisions.power == power)


def random_orders(games: VectorGame, decision: Decisions, rng) -> np.ndarray:
    picks = [
        rng.choice(decision.order[slice(*decision.order_start[slot : slot + 2])])
        for slot in range(len(decision.slot_province))
    ]
    orders = games.new_orders()
    games.write_orders(orders, decision, np.array(picks, np.int32))
    return orders[decision.game[0]]


def cost_of(policy, games, row, power, places, ours, theirs, copies) -> tuple[float, float]:
    """Return the points by which orders `ours` end better than `theirs`, and the standard error;
    both are played on `copies` times from a row, the others' first orders the same."""
    wide = games.spare(2 * copies)
    wide.copy_from(games, np.full(2 * copies, row), np.arange(2 * copies))
    orders = orders_of(wide, policy)
    orders[copies:] = orders[:copies]
    orders[:copies, places], orders[copies:, places] = ours[places], theirs[places]
    wide.step(orders)
    while (wide.state.end == RUNNING).any():
        wide.step(orders_of(wide, policy))
    score = figure_values(wide.outcomes(), wide.board.victory_centers)["sum_of_squares"]
    apart = 100 * (score[:copies, power] - score[copies:, power])
    return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(copies))


def plant(policy, history, row: int, rng) -> Planted | None:
    """Plant a costly decision in one game, and let the policy play on; None: there is none."""
    num_powers = history[0][0].num_powers
    power = int(rng.integers(num_powers))
    going = [n for n, (before, _) in enumerate(history) if before.state.end[row] == RUNNING]
    phases = [n for n in going if own_decision(history[n][0], row, power).count]
    for number in rng.permutation(phases)[:MOST]:
        before, orders = history[number]
        decision = own_decision(before, row, power)
        (places,) = own_places(before, decision)
        planted = random_orders(before, decision, rng)
        mine = orders[row]
        if (planted[places] == mine[places]).all():
            continue
        at = before, row, power, places, mine, planted
        for copies in SCREENS:
            cost, error = cost_of(policy, *at, copies)
            if cost + 2 * error < COSTLY:
                break
        else:
            cost, _ = cost_of(policy, *at, PLAYED_OUT)
        if cost < COSTLY:
            continue
        played = before.spare(1)
        played.copy_from(before, np.array([row]), np.array([0]))
        submitted = played.new_orders()
        submitted[0] = np.where(places, planted, mine)
        sequence = [past[row] for _, past in history[:number]]
        while played.state.end[0] == RUNNING:
            sequence.append(submitted[0].copy())
            played.step(submitted)
            submitted = orders_of(played, policy)
        anew, _ = cost_of(policy, *at, ANEW)
        return Planted(power, int(number), cost, anew, np.array(sequence))
    return None


def phases_of(games: VectorGame, orders: np.ndarray) -> VectorGame:
    """Return a game's positions before each phase, a row each."""
    rows, now = games.spare(len(orders)), games.spare(1)
    for number, submitted in enumerate(orders):
        rows.copy_from(now, np.zeros(1, int), np.array([number]))
        each = now.new_orders()
        each[0] = submitted
        now.step(each)
    return rows


def judged(
    judge, games: VectorGame, orders: np.ndarray, powers
) -> tuple[VectorGame, Decisions, Verdicts]:
    rows = phases_of(games, orders)
    decisions = rows.decisions()
    decisions = decisions.take(np.isin(decisions.power, powers))
    return rows, decisions, judge.judge(rows, decisions, orders)


def interval(successes: float, count: int) -> str:
    low, high = wilson_interval(successes, count)
    return f"{successes / count:.1%} ({low:.1%} to {high:.1%}, {count})"


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("--map", default="small")
    flags.add_argument("--policy", default=None, help="who plays and judges; None: the review's")
    flags.add_argument("--games", type=int, default=200, help="planted decisions")
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--minutes", type=float, default=1e9, help="of planting at the most")
    flags.add_argument("--cases", default=None, help="file that keeps what was planted")
    flags.add_argument("--own", type=int, default=20, help="games for the judge's own marks")
    flags.add_argument("--unchecked", action="store_true", help="play nothing out for the ranking")
    args = flags.parse_args()
    games, began = VectorGame(args.map, 40, args.seed, threads=1, auto_reset=False), time.time()
    policy = load_player(
        args.policy or judging_policy(games.map), game_map=games.map, seed=args.seed
    )
    file = args.cases and Path(args.cases)
    cases, plain = pickle.loads(file.read_bytes()) if file and file.is_file() else ([], [])
    rng = np.random.default_rng([args.seed, len(cases)])
    while len(cases) < args.games and time.time() - began < 60 * args.minutes:
        games.reset()
        history = self_play(policy, games)
        for row in range(games.num_games):
            length = sum(before.state.end[row] == RUNNING for before, _ in history)
            plain.append(np.array([orders[row] for _, orders in history[:length]]))
            planted = plant(policy, history, row, rng)
            if planted is not None and len(cases) < args.games:
                cases.append(planted)
            if file:
                file.write_bytes(pickle.dumps((cases, plain)))
            if len(cases) == args.games or time.time() - began > 60 * args.minutes:
                break
    report(args, policy, games, cases, plain)


def report(args, policy, games: VectorGame, cases: list, plain: list) -> None:
    judge = make_judge(policy, games)
    print(f"{games.map.name}, {policy.name}: {len(cases)} planted decisions", flush=True)
    ranks, truly, decisions_of = [], [], 0
    for case in cases:
        rows, decisions, verdicts = judged(judge, games, case.orders, [case.power])
        pairs = zip(verdicts.loss, verdicts.edge[:, 0])
        loss = np.array([avoidable(*pair) + TIES * pair[0] for pair in pairs])  # as the page ranks
        at = int(np.flatnonzero(decisions.game == case.phase)[0])
        decisions_of += decisions.count
        higher = np.flatnonzero(loss > loss[at])
        rank = 1 + len(higher) if loss[at] > 0 else decisions.count
        ranks.append(rank)
        if rank == 1 or args.unchecked:
            truly.append(rank == 1)
            continue
        costs = []  # of the planted decision and of those that are ranked above it, both anew
        for d in [at, *higher] if loss[at] > 0 else ():
            best = verdicts.candidates[d, verdicts.best[d]]
            submitted = verdicts.candidates[d, SUBMITTED]
            places, row = verdicts.places[d], int(decisions.game[d])
            cost, _ = cost_of(policy, rows, row, case.power, places, best, submitted, PLAYED_OUT)
            costs.append(cost)
        truly.append(bool(costs) and min(costs) == costs[0])
    if cases:
        print(f"decisions of the power: {decisions_of / len(cases):.1f} a game")
    anew = np.array([case.cost_anew >= COSTLY for case in cases], bool)
    ways = {"all": np.ones_like(anew), f"at least {COSTLY:.0f} points anew": anew}
    for way, chosen in ways.items():
        of_chosen, count = np.array(ranks)[chosen], chosen.sum()
        if not count:
            continue
        print(f"{way}: ranked worst: {interval((of_chosen == 1).sum(), count)}")
        if not args.unchecked:
            share = interval(np.array(truly)[chosen].sum(), count)
            print(f"... or all ranked above it cost as much, played out: {share}")
        print(f"... among the worst three: {interval((of_chosen <= 3).sum(), count)}", flush=True)
    marks = []
    for orders in plain[: args.own]:
        _, decisions, verdicts = judged(judge, games, orders, range(games.num_powers))
        points = 100 * np.column_stack([verdicts.loss, verdicts.error, verdicts.edge])
        marks += [mark_of(*each) for each in points]
    shares = {mark: marks.count(mark) / max(1, len(marks)) for mark in ("!", "?!", "?", "??")}
    print(f"marks of the judge's own {len(marks):,} decisions: ", end="")
    print(", ".join(f"{mark} {share:.2%}" for mark, share in shares.items()))
    if marks:
        print(f"?? of its own: {interval(marks.count('??'), len(marks))}", flush=True)
    longest = max(plain, key=len)[:60]
    for powers in ([0], range(games.num_powers)):
        begun, used = time.perf_counter(), time.process_time()
        _, decisions, _ = judged(judge, games, longest, powers)
        print(
            f"{len(longest)} phases, {len(powers)} powers, {decisions.count} decisions: "
            f"{time.perf_counter() - begun:.1f} s ({time.process_time() - used:.1f} s of processor)"
        )


if __name__ == "__main__":
    main()
