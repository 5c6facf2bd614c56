"""Measure reviews on games of people: what they mark, what they overlook, and their time.

    python benchmarks/bench_review.py human_games.jsonl.xz --what collapses --cases 20

The games are those that `diplomacy_learners.imitate` holds out, so that no judge has learned from
them (with `--tune` others, by which thresholds were chosen). `--what`:

openings    first orders that at least 5 % of people give as a set: how many have any mark
collapses   5 or more centers to 2 or fewer within three years, of a power that sent orders
            throughout: how many have a mark from the year before to two years on
planted     an own center that an enemy can enter left, a removal of the unit that holds one, a
            support given up that loses a center, in a decision of a person, where playing on (other
            samples than the review's) confirms the cost: how many are marked
strong      decisions of people who won by a solo: how many have which mark
accuracy    correlation of a power's accuracy over a whole game with its part of the squares, less
            the mean of that power
random      accuracy of random play against the map's policy on `small`
time        processor seconds of the first phases of a game for all powers
"""

import argparse
import json
import lzma
import os
import sys
import tempfile
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from diplomacy_engine import Game, VectorGame, load_map, load_player, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.matches.figures import wilson_interval
from diplomacy_engine.play.people import joint, people_of
from diplomacy_engine.play.review import MARKS, Reviewed, Reviews, accuracy, judges_of
from diplomacy_engine.players.advice import orders_by_player
from diplomacy_engine.players.search.judge import (
    IN_THE_END,
    SUBMITTED,
    SURE,
    Judges,
    _Playouts,
    held,
    make_judges,
    own_places,
)
from diplomacy_engine.rules.notation import unit_of
from diplomacy_engine.textgame.imports.games import read_games

HELD_OUT, COSTLY = 10, 0.1  # one game in so many; a share of what was left
CONFIRMING = 18, 90  # samples that show the cost, and others that show it anew
KINDS = "center left", "holder removed", "support given up"
BOARD = load_map("standard")


def games_of(file: str, tune: bool, rng: np.random.Generator) -> Iterator[dict]:
    """Yield people's games in an order drawn at random."""
    with lzma.open(file, "rt") as lines:
        every = [line for line in lines if _is_held_out(line) != tune]
    with tempfile.TemporaryDirectory() as folder:
        for number in rng.permutation(len(every)):
            path = Path(folder) / "game.jsonl"
            path.write_text(every[number])
            yield next(iter(read_games(path, BOARD)))


def _is_held_out(line: str) -> bool:
    return zlib.crc32(str(json.loads(line)["id"]).encode()) % HELD_OUT == 0


class Bench:
    def __init__(self, args: argparse.Namespace):
        self.args, self.rng = args, np.random.default_rng(args.seed)
        self.players = [load_player(name, game_map=BOARD) for name in judges_of(BOARD)]

    def review(self, saved: dict, wanted: set[tuple[str, str]]) -> list[Reviewed]:
        """Return the reviews of some (phase, power)."""
        reviews = Reviews(saved, self.players, BOARD)
        names = [phase["name"] for phase in saved["phases"]]
        reviews._wanted &= {(names.index(n), BOARD.power_index[p]) for n, p in wanted}
        return [one for part in reviews for one in part]

    def openings(self) -> Iterator[bool]:
        people = people_of(BOARD)
        for saved in games_of(self.args.games, self.args.tune, self.rng):
            first = saved["phases"][:2]
            wanted = set()
            for power, (games, sets) in people.openings.items():
                played = sets.get(joint(first[0], power), (0,))[0]
                if first[0]["orders"].get(power) and played >= 0.05 * games:
                    wanted.add((first[0]["name"], power))
            for one in self.review(saved | {"phases": first}, wanted):
                yield bool(one.mark)

    def collapses(self) -> Iterator[bool]:
        for saved in games_of(self.args.games, self.args.tune, self.rng):
            springs = {
                int(phase["name"][1:-1]): phase["state"]["centers"]
                for phase in saved["phases"]
                if phase["name"][0] == "S" and phase["name"][-1] == "M"
            }
            for power in BOARD.powers:
                centers = {year: len(own.get(power) or ()) for year, own in springs.items()}
                years = [y for y in centers if centers[y] >= 5 and _falls(centers, y)]
                if not years:
                    continue
                year = years[0]
                part = [
                    phase
                    for phase in saved["phases"][:-1]
                    if year - 1 <= int(phase["name"][1:-1]) <= year + 2
                ]
                sent = [
                    bool(phase["orders"].get(power))
                    for phase in part
                    if phase["name"][-1] == "M" and phase["state"]["units"].get(power)
                ]
                if all(sent):
                    decisions = self.review(saved, {(phase["name"], power) for phase in part})
                    self.show(decisions)
                    yield any("?" in one.mark for one in decisions)
                    break  # one of a game

    def show(self, decisions: list[Reviewed]) -> None:
        for one in decisions if self.args.verbose else ():
            better = [text for text in one.best if text not in one.orders]
            print(
                f"  {one.phase} {one.power} {one.mark or '-'} {one.loss} ± {one.uncertainty}, "
                f"hindsight {one.hindsight}, worth {one.worth} {one.best_worth}, centers "
                f"{one.centers} {one.best_centers}, {one.orders}, better {better}, {one.reasons}",
                flush=True,
            )

    def strong(self) -> Iterator[Reviewed]:
        for saved in games_of(self.args.games, self.args.tune, self.rng):
            last = saved["phases"][-1]["state"]["centers"]
            winner = next((p for p in BOARD.powers if len(last.get(p) or ()) >= 18), None)
            names = [p["name"] for p in saved["phases"][:-1] if p["orders"].get(winner)]
            if winner and names:
                chosen = self.rng.choice(names, min(4, len(names)), replace=False)
                decisions = self.review(saved, {(name, winner) for name in chosen})
                self.show(decisions)
                yield from decisions

    def planted(self) -> Iterator[tuple[str, bool]]:
        for case in self.blunders():
            decision = case["game"]["phases"][0]["name"], case["power"]
            (one,) = self.review(case["game"], {decision})
            if self.args.verbose:
                print(f" {case['kind']}, cost {case['cost']:.2f} ± {case['error']:.2f}")
                self.show([one])
            yield case["kind"], "?" in one.mark

    def blunders(self) -> Iterator[dict]:
        """Yield planted blunders whose cost is confirmed, as many of each kind as `--cases`, one of
        a game; with `--keep` from a file, which is written if there is none."""
        keep = self.args.keep and Path(self.args.keep)
        if keep and keep.exists():
            yield from map(json.loads, keep.read_text().splitlines())
            return
        judges = make_judges(
            self.players, VectorGame(BOARD, 1, max_years=0), None, people_of(BOARD).worth
        )
        counts = Counter(dict.fromkeys(KINDS, 0))
        for saved in games_of(self.args.games, self.args.tune, self.rng):
            rarest = min(KINDS, key=counts.__getitem__)
            if counts[rarest] >= self.args.cases:
                return
            phases = [phase for phase in saved["phases"][:-1] if int(phase["name"][1:-1]) > 1901]
            for number in self.rng.permutation(len(phases))[:8]:
                cases = [case for case in self.cases(phases[number]) if case[0] == rarest]
                if not cases:
                    continue
                case = self.confirmed(judges, phases[number], *cases[self.rng.integers(len(cases))])
                if case:
                    counts[rarest] += 1
                    if keep:
                        with keep.open("a") as file:
                            file.write(json.dumps(case) + "\n")
                    yield case
                    break

    def confirmed(
        self, judges: Judges, phase: dict, kind: str, power: str, texts: list[str]
    ) -> dict | None:
        for seed, samples in enumerate(CONFIRMING):
            cost, error = self.cost(judges, phase, power, texts, seed, samples)
            if cost < COSTLY:
                return None
        if cost < SURE * error:
            return None
        game = _played(phase)
        game.submit(power, texts, strict=False)
        game.adjudicate()
        saved = game.to_saved_game()
        return {"kind": kind, "power": power, "cost": cost, "error": error, "game": saved}

    def cost(
        self, judges: Judges, phase: dict, power: str, texts: list[str], seed: int, samples: int
    ) -> tuple[float, float]:
        """Return what a person's orders are ahead of others, as a share of what was left, and the
        standard error; each seed plays on differently."""
        game, other = _played(phase), _played(phase)
        other.submit(power, texts, strict=False)
        games, pair = game.vector_game, []
        for one in (other, game):
            (orders,) = games.new_orders()
            orders[list(one.order_numbers())] = list(one.order_numbers().values())
            pair.append(orders)
        games.seed_games(np.zeros(1, int), np.array([12345 + seed], np.uint64))
        decisions = games.decisions(np.zeros(1, int))
        decisions = decisions.take(decisions.power == BOARD.power_index[power])
        candidates = np.where(own_places(games, decisions)[:, None], [pair], NONE)
        expected = judges.sample(games, np.zeros(1, int), samples)
        playouts = _Playouts(judges, games, decisions, candidates, expected)
        playouts.play(np.ones((1, 2), bool), 0, samples, IN_THE_END)
        loss, error, *_ = playouts.loss(np.array([1]), SUBMITTED, 0, samples, IN_THE_END)[0]
        return float(loss), float(error)

    def cases(self, phase: dict) -> Iterator[tuple[str, str, list[str]]]:
        """Yield blunders that could be planted: kind, power, its orders."""
        game = _played(phase)
        legal = defaultdict(list)
        for power in BOARD.powers if phase["name"][-1] == "M" else ():
            for unit in game.units.get(power) or ():
                legal[power] += game.legal_orders(unit)
        for power in BOARD.powers:
            orders = {unit_of(text): text for text in phase["orders"].get(power) or ()}
            units, centers = game.units.get(power) or [], set(game.centers.get(power) or ())
            others = [other for other in BOARD.powers if other != power]
            if not orders:
                continue
            near = {
                unit
                for unit in units
                if unit[2:5] in centers
                and any(_moves(text, unit[2:5]) for other in others for text in legal[other])
            }
            if phase["name"][-1] == "A":
                removed = [unit for unit, text in orders.items() if text.endswith(" D")]
                held_by = [unit for unit in units if unit[2:5] in centers and unit not in removed]
                for unit in held_by if removed else ():
                    texts = [f"{one} D" for one in removed[1:]] + [f"{unit} D"]
                    yield KINDS[1], power, texts
                continue
            if phase["name"][-1] != "M":
                continue
            for unit in near:
                if " - " in orders.get(unit, ""):
                    continue
                for text in legal[power]:
                    place = text.split()[-1][:3]
                    if text.startswith(f"{unit} - ") and place not in _centers():
                        yield KINDS[0], power, [*_without(orders, unit), text]
            for unit, text in orders.items():
                if " S " in text and self._loses(phase, power, _without(orders, unit)):
                    yield KINDS[2], power, [*_without(orders, unit), f"{unit} H"]

    def _loses(self, phase: dict, power: str, texts: list[str]) -> bool:
        counts = []
        for given in (None, texts):
            game = _played(phase)
            if given is not None:
                game.submit(power, given, strict=False)
            game.adjudicate()
            counts.append(held(game.vector_game, np.array([BOARD.power_index[power]])).sum())
        return counts[1] < counts[0]

    def accuracies(self) -> Iterator[tuple[str, float, float]]:
        for saved in games_of(self.args.games, self.args.tune, self.rng):
            last = Game.from_state(
                BOARD, dict(saved["phases"][-1]["state"]) | {"name": "COMPLETED"}
            )
            shares, power = last.figures(), BOARD.powers[int(self.rng.integers(7))]
            names = [p["name"] for p in saved["phases"][:-1] if p["orders"].get(power)]
            chosen = self.rng.permutation(names)[: self.args.decisions]
            decisions = self.review(saved, {(name, power) for name in chosen})
            if len(decisions) > 4:
                yield power, accuracy(decisions), shares[power]["sum_of_squares"]


def _falls(centers: dict[int, int], year: int) -> bool:
    return centers.get(year + 1, 5) < 5 and any(centers.get(year + n, 9) <= 2 for n in (1, 2, 3))


def _played(phase: dict) -> Game:
    """Return a phase with the orders of all powers submitted."""
    game = Game.from_state(BOARD, phase["state"])
    for power, texts in phase["orders"].items():
        game.submit(power, texts or [], strict=False)
    return game


def _moves(text: str, place: str) -> bool:
    return (
        " - " in text and " S " not in text and " C " not in text and text.split()[3][:3] == place
    )


def _without(orders: dict[str, str], unit: str) -> list[str]:
    return [text for one, text in orders.items() if one != unit]


def _centers() -> set[str]:
    return {BOARD.provinces[v] for v in BOARD.board.center_province}


def random_play(count: int) -> list[float]:
    """Return accuracies of random play on `small` against the map's best policy."""
    small = load_map("small")
    policy, result = load_player(judges_of(small)[0], game_map=small), []
    for number in range(count):
        game, power = Game("small", max_years=6), ("ENGLAND", "RUSSIA")[number % 2]
        while not game.is_over:
            for player in (policy, make_bot("random")):
                seat = [p for p in game.powers if (p == power) == (player is not policy)]
                for p, texts in orders_by_player(game, player, seat, number).items():
                    game.submit(p, texts)
            game.adjudicate()
        reviews = Reviews(game.to_saved_game(), [policy], small, [power])
        result.append(accuracy([one for part in reviews for one in part]))
    return result


def interval(successes: float, count: int) -> str:
    low, high = wilson_interval(successes, count)
    return f"{successes / count:.1%} ({low:.1%} to {high:.1%}, {count})"


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    flags.add_argument("games", help="human_games.jsonl.xz")
    flags.add_argument("--what", required=True)
    flags.add_argument("--cases", type=int, default=20)
    flags.add_argument("--decisions", type=int, default=12, help="of a power, for accuracy")
    flags.add_argument("--phases", type=int, default=60, help="for time")
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--tune", action="store_true")
    flags.add_argument("--keep", help="file of planted blunders, read or else written")
    flags.add_argument("--verbose", action="store_true")
    args = flags.parse_args()
    if args.what == "random":
        values = random_play(args.cases)
        print(f"random play on small: {np.mean(values):.0f}, of games {values}")
        return
    bench, begun = Bench(args), time.process_time()
    if args.what in ("openings", "collapses"):
        marked = [one for _, one in zip(range(args.cases), getattr(bench, args.what)())]
        print(f"{args.what}: marked {interval(sum(marked), len(marked))}")
    elif args.what == "strong":
        marks = Counter(one.mark for _, one in zip(range(args.cases), bench.strong()))
        for mark in MARKS:
            print(f"{mark}: {interval(marks[mark], marks.total())}")
    elif args.what == "planted":
        of_kind = defaultdict(list)
        for kind, marked in bench.planted():
            of_kind[kind].append(marked)
            print(", ".join(f"{k} {sum(m)} of {len(m)}" for k, m in of_kind.items()), flush=True)
    elif args.what == "accuracy":
        rows = [one for _, one in zip(range(args.cases), bench.accuracies())]
        means = defaultdict(list)
        for power, _, share in rows:
            means[power].append(share)
        rest = [share - np.mean(means[power]) for power, _, share in rows]
        tied = np.corrcoef([one for _, one, _ in rows], rest)[0, 1]
        low, high = np.tanh(np.arctanh(tied) + np.array([-1.96, 1.96]) / np.sqrt(len(rows) - 3))
        print(f"correlation {tied:.2f} ({low:.2f} to {high:.2f}, {len(rows)})")
    elif args.what == "time":
        saved = next(games_of(args.games, args.tune, bench.rng))
        saved["phases"] = saved["phases"][: args.phases + 1]
        begun = time.process_time()
        count = sum(len(part) for part in Reviews(saved, bench.players, BOARD))
        print(f"{count} decisions")
    print(f"{time.process_time() - begun:.0f} s of processor")


if __name__ == "__main__":
    main()
