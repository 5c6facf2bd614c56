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
import itertools
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
from people import games_of, is_held_out, lines_of

from diplomacy_engine import Game, VectorGame, load_map, load_player, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.matches.figures import wilson_interval
from diplomacy_engine.play.people import joint, people_of
from diplomacy_engine.play.review import MARKS, Reviewed, Reviews, accuracy, judges_of
from diplomacy_engine.players.advice import orders_by_player
from diplomacy_engine.players.search import judge
from diplomacy_engine.rules.notation import unit_of

COSTLY = 0.1  # a share of what was left
CONFIRMING = 18, 90  # samples that show the cost, and others that show it anew
KINDS = "center left", "holder removed", "support given up"
BOARD = load_map("standard")
CENTERS = {BOARD.provinces[v] for v in BOARD.board.center_province}


class Bench:
    """Reviews of some decisions of people's games, which come in an order drawn at random."""

    def __init__(self, file: str, tune: bool, seed: int):
        self.rng = np.random.default_rng(seed)
        every = [line for line in lines_of(file) if is_held_out(line) != tune]
        drawn = self.rng.permutation(len(every))
        self.games = (game for n in drawn for game in games_of([every[n]], BOARD))
        self.players = [load_player(name, game_map=BOARD) for name in judges_of(BOARD)]

    def review(self, saved: dict, wanted: set[tuple[str, str]]) -> list[Reviewed]:
        """Return the reviews of some (phase, power)."""
        reviews = Reviews(saved, self.players, BOARD)
        names = [phase["name"] for phase in saved["phases"]]
        reviews._wanted &= {(names.index(n), BOARD.power_index[p]) for n, p in wanted}
        return list(itertools.chain(*reviews))

    def openings(self) -> Iterator[bool]:
        people = people_of(BOARD)
        for saved in self.games:
            first = saved["phases"][:2]
            wanted = set()
            for power, (games, sets) in people.openings.items():
                played = sets.get(joint(first[0], power), (0,))[0]
                if first[0]["orders"].get(power) and played >= 0.05 * games:
                    wanted.add((first[0]["name"], power))
            for one in self.review(saved | {"phases": first}, wanted):
                yield bool(one.mark)

    def collapses(self) -> Iterator[bool]:
        for saved in self.games:
            centers = {
                _year(phase): phase["state"]["centers"]
                for phase in saved["phases"]
                if phase["name"][0] == "S" and phase["name"][-1] == "M"
            }
            for power in BOARD.powers:
                counts = {year: len(own.get(power) or ()) for year, own in centers.items()}
                year = next((y for y in counts if counts[y] >= 5 and _falls(counts, y)), None)
                if year is None:
                    continue
                part = [p for p in saved["phases"][:-1] if year - 1 <= _year(p) <= year + 2]
                sent = [
                    bool(phase["orders"].get(power))
                    for phase in part
                    if phase["name"][-1] == "M" and phase["state"]["units"].get(power)
                ]
                if all(sent):
                    decisions = self.review(saved, {(phase["name"], power) for phase in part})
                    yield any("?" in one.mark for one in decisions)
                    break  # one of a game

    def strong(self) -> Iterator[Reviewed]:
        for saved in self.games:
            last = saved["phases"][-1]["state"]["centers"]
            winner = next((p for p in BOARD.powers if len(last.get(p) or ()) >= 18), None)
            names = [p["name"] for p in saved["phases"][:-1] if p["orders"].get(winner)]
            if winner and names:
                chosen = self.rng.choice(names, min(4, len(names)), replace=False)
                yield from self.review(saved, {(name, winner) for name in chosen})

    def planted(self, most: int) -> Iterator[tuple[str, bool]]:
        """Yield whether blunders whose cost is confirmed are marked: so many of each kind, one of
        a game."""
        counts = Counter(dict.fromkeys(KINDS, 0))
        games, worth = VectorGame(BOARD, 1, max_years=0), people_of(BOARD).worth
        judges = judge.make_judges(self.players, games, None, worth)
        for saved in self.games:
            rarest = min(KINDS, key=counts.__getitem__)
            if counts[rarest] >= most:
                return
            phases = [phase for phase in saved["phases"][:-1] if _year(phase) > 1901]
            for number in self.rng.permutation(len(phases))[:8]:
                phase = phases[number]
                cases = [case[1:] for case in blunders(phase) if case[0] == rarest]
                if not cases:
                    continue
                power, texts = cases[self.rng.integers(len(cases))]
                if is_costly(judges, phase, power, texts):
                    counts[rarest] += 1
                    game = _played(phase)
                    game.submit(power, texts, strict=False)
                    game.adjudicate()
                    (one,) = self.review(game.to_saved_game(), {(phase["name"], power)})
                    yield rarest, "?" in one.mark
                    break

    def accuracies(self, most: int) -> Iterator[tuple[str, float, float]]:
        for saved in self.games:
            state = dict(saved["phases"][-1]["state"]) | {"name": "COMPLETED"}
            shares = Game.from_state(BOARD, state).figures()
            power = BOARD.powers[int(self.rng.integers(7))]
            names = [p["name"] for p in saved["phases"][:-1] if p["orders"].get(power)]
            chosen = self.rng.permutation(names)[:most]
            decisions = self.review(saved, {(name, power) for name in chosen})
            if len(decisions) > 4:
                yield power, accuracy(decisions), shares[power]["sum_of_squares"]


def is_costly(judges: judge.Judges, phase: dict, power: str, texts: list[str]) -> bool:
    """Tell whether a person's orders are ahead of others, each time by playing on differently."""
    row = np.zeros(1, int)
    for seed, samples in enumerate(CONFIRMING):
        game, other = _played(phase), _played(phase)
        other.submit(power, texts, strict=False)
        games, pair = game.vector_game, []
        for one in (other, game):
            (orders,) = games.new_orders()
            orders[list(one.order_numbers())] = list(one.order_numbers().values())
            pair.append(orders)
        games.seed_games(row, np.array([12345 + seed], np.uint64))
        decisions = games.decisions(row)
        decisions = decisions.take(decisions.power == BOARD.power_index[power])
        candidates = np.where(judge.own_places(games, decisions)[:, None], [pair], NONE)
        expected = judges.sample(games, row, samples)
        playouts = judge._Playouts(judges, games, decisions, candidates, expected)
        playouts.play(np.ones((1, 2), bool), 0, samples, judge.IN_THE_END)
        compared = np.array([1]), judge.SUBMITTED, 0, samples, judge.IN_THE_END
        cost, error, *_ = playouts.loss(*compared)[0]
        if cost < COSTLY:
            return False
    return cost >= judge.SURE * error


def blunders(phase: dict) -> Iterator[tuple[str, str, list[str]]]:
    """Yield blunders that could be planted: kind, power, its orders."""
    game, kind = _played(phase), phase["name"][-1]
    legal = {
        power: [text for unit in game.units.get(power) or () for text in game.legal_orders(unit)]
        for power in (BOARD.powers if kind == "M" else ())
    }
    for power in BOARD.powers:
        orders = {unit_of(text): text for text in phase["orders"].get(power) or ()}
        centers = set(game.centers.get(power) or ())
        holders = [unit for unit in game.units.get(power) or () if unit[2:5] in centers]
        removed = [unit for unit, text in orders.items() if text.endswith(" D")]
        for unit in holders if kind == "A" and removed else ():
            if unit not in removed:
                yield KINDS[1], power, [f"{one} D" for one in [*removed[1:], unit]]
        if kind != "M" or not orders:
            continue
        enemies = [text for other in BOARD.powers if other != power for text in legal[other]]
        for unit in holders:
            near = any(_moves(text, unit[2:5]) for text in enemies)
            for text in legal[power] if near and " - " not in orders.get(unit, "") else ():
                if text.startswith(f"{unit} - ") and text.split()[-1][:3] not in CENTERS:
                    yield KINDS[0], power, [*_without(orders, unit), text]
        for unit, text in orders.items():
            if " S " in text and _loses(phase, power, _without(orders, unit)):
                yield KINDS[2], power, [*_without(orders, unit), f"{unit} H"]


def _loses(phase: dict, power: str, texts: list[str]) -> bool:
    """Tell whether a power holds fewer centers after other orders than after a person's."""
    game, other = _played(phase), _played(phase)
    other.submit(power, texts, strict=False)
    counts = []
    for one in (game, other):
        one.adjudicate()
        counts.append(judge.held(one.vector_game, np.array([BOARD.power_index[power]])).sum())
    return counts[1] < counts[0]


def _year(phase: dict) -> int:
    return int(phase["name"][1:-1])


def _falls(centers: dict[int, int], year: int) -> bool:
    return centers.get(year + 1, 5) < 5 and any(centers.get(year + n, 9) <= 2 for n in (1, 2, 3))


def _played(phase: dict) -> Game:
    """Return a phase with the orders of all powers submitted."""
    game = Game.from_state(BOARD, phase["state"])
    for power, texts in phase["orders"].items():
        game.submit(power, texts or [], strict=False)
    return game


def _moves(text: str, place: str) -> bool:
    """Tell whether an order moves its own unit to a province."""
    return text.split()[2] == "-" and text.split()[3][:3] == place


def _without(orders: dict[str, str], unit: str) -> list[str]:
    return [text for one, text in orders.items() if one != unit]


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
        result.append(accuracy(list(itertools.chain(*reviews))))
    return result


def correlation(rows: list[tuple[str, float, float]]) -> str:
    """Return that of accuracy and result, less the mean result of the power, and its interval."""
    results = defaultdict(list)
    for power, _, share in rows:
        results[power].append(share)
    rest = [share - np.mean(results[power]) for power, _, share in rows]
    tied = np.corrcoef([one for _, one, _ in rows], rest)[0, 1]
    low, high = np.tanh(np.arctanh(tied) + np.array([-1.96, 1.96]) / np.sqrt(len(rows) - 3))
    return f"correlation {tied:.2f} ({low:.2f} to {high:.2f}, {len(rows)})"


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
    args = flags.parse_args()
    bench, begun = Bench(args.games, args.tune, args.seed), time.process_time()
    match args.what:
        case "random":
            values = random_play(args.cases)
            print(f"random play on small: {np.mean(values):.0f}, of games {values}")
        case "openings" | "collapses":
            marked = [*itertools.islice(getattr(bench, args.what)(), args.cases)]
            print(f"{args.what}: marked {interval(sum(marked), len(marked))}")
        case "strong":
            marks = Counter(one.mark for one in itertools.islice(bench.strong(), args.cases))
            for mark in MARKS:
                print(f"{mark}: {interval(marks[mark], marks.total())}")
        case "planted":
            of_kind = defaultdict(list)
            for kind, marked in bench.planted(args.cases):
                of_kind[kind].append(marked)
                print(*(f"{k} {sum(m)} of {len(m)}" for k, m in of_kind.items()), flush=True)
        case "accuracy":
            rows = itertools.islice(bench.accuracies(args.decisions), args.cases)
            print(correlation([*rows]))
        case "time":
            saved = next(bench.games)
            saved["phases"] = saved["phases"][: args.phases + 1]
            print(f"{sum(map(len, Reviews(saved, bench.players, BOARD)))} decisions")
        case _:
            sys.exit(f"error: --what {args.what}: see the first lines of this file")
    print(f"{time.process_time() - begun:.0f} s of processor")


if __name__ == "__main__":
    main()
