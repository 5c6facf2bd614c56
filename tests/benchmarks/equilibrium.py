"""What equilibrium play would win on a map of two powers: how much self-play alone can teach.

    python tests/benchmarks/equilibrium.py --map small --minutes 20 --against dumbbot

Value iteration with a matrix game in each position (Bakhtin et al. 2021, section 3): both powers'
candidate orders are drawn from a network, every pair of them is adjudicated, a network values what
comes of it, and regret matching (Tammelin 2014) solves the matrix. Its value is what the value
network learns, and its mixture what the proposals learn. The games are those of the two mixtures.
It knows no bot. Afterwards it plays the given players, with the same look-ahead of one phase.

It prints the first power's value of the opening, which is uncertain since candidates are drawn and
values are learned. A measurement: nothing here is part of the trainer, which looks ahead nowhere.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

sys.path.insert(0, str(Path(__file__).parents[2]))
from diplomacy_engine import UserError, VectorGame
from diplomacy_engine.constants import NONE, RUNNING
from diplomacy_engine.matches.statistics import wilson_interval
from diplomacy_engine.matches.tables import play_games
from diplomacy_engine.players.loading import load_player
from diplomacy_engine.players.protocols import Player

CANDIDATES = 30  # joint orders of a power in a position
BATCH = 64  # games at once
EXPLORE = 0.15  # share of the orders drawn at random


def features(games: VectorGame, rows: np.ndarray) -> np.ndarray:
    """Return units, dislodged units, owners and phase of `rows` as zeros and ones, float32."""
    state, powers = games.state, np.arange(games.num_powers)
    parts = [
        array[rows][:, :, None] == powers
        for array in (state.unit_power, state.dislodged_power, state.center_owner)
    ]
    early = np.minimum(state.year[rows] - games.board.first_year, 5)
    parts += [state.phase[rows][:, None] == np.arange(5), early[:, None] == np.arange(6)]
    centers = games.centers()[rows]
    parts.append(centers[:, :, None] == np.arange(8))
    return np.concatenate([part.reshape(len(rows), -1) for part in parts], 1).astype(np.float32)


def solve(payoff: np.ndarray, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both mixtures and the values of matrix games (games, n, m); NaN where is no entry.

    The rows' player wins what the columns' loses. Regret matching plus, averaged by time.
    """
    there = ~np.isnan(payoff)
    valid = [there.any(2), there.any(1)]
    gain = [np.nan_to_num(payoff), -np.nan_to_num(payoff).swapaxes(1, 2)]
    mixture = [v / v.sum(1, keepdims=True) for v in valid]
    regret, total = [np.zeros(v.shape) for v in valid], [np.zeros(v.shape) for v in valid]
    for n in range(rounds):
        for me in (0, 1):
            value = (gain[me] @ mixture[1 - me][:, :, None])[:, :, 0]
            mean = (value * mixture[me]).sum(1, keepdims=True)
            regret[me] = np.maximum(regret[me] + value - mean, 0) * valid[me]
            weight = regret[me].sum(1, keepdims=True)
            even = valid[me] / valid[me].sum(1, keepdims=True)
            mixture[me] = np.where(weight > 0, regret[me] / np.maximum(weight, 1e-12), even)
            total[me] += (n + 1) * mixture[me]
    x, y = (t / t.sum(1, keepdims=True) for t in total)
    return x, y, np.einsum("bi,bij,bj->b", x, gain[0], y)


class Equilibrium:
    """The networks, the games in which positions are tried, and the player that comes of it."""

    name = "equilibrium"

    def __init__(self, map_name: str, seed: int):
        self.tried = VectorGame(map_name, BATCH * CANDIDATES**2, auto_reset=False, seed=seed)
        if self.tried.num_powers != 2:
            raise UserError(f"{map_name} has {self.tried.num_powers} powers, not two")
        self.orders = self.tried.new_orders()
        table = self.tried.table
        provinces = self.tried.board.location_province
        self.province = np.where(table.location >= 0, provinces[table.location], NONE)
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        width = features(self.tried, np.zeros(1, int)).shape[1]
        self.value = nn.Sequential(
            nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)
        )
        self.proposals = nn.Sequential(
            nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, len(table.location))
        )

    def outcome(self, games: VectorGame, rows: np.ndarray) -> np.ndarray:
        """Return the first power's result of finished games, 0 to 1."""
        centers, winner = games.centers()[rows], games.state.winner[rows]
        more = np.sign(centers[:, 0] - centers[:, 1]) * 0.5 + 0.5
        return np.where(winner == NONE, more, winner == 0)

    @torch.no_grad()
    def values(self, games: VectorGame, rows: np.ndarray) -> np.ndarray:
        """Return the first power's win probability in each game."""
        value = torch.sigmoid(self.value(torch.from_numpy(features(games, rows))))[:, 0].numpy()
        over = games.state.end[rows] != RUNNING
        return np.where(over, self.outcome(games, rows), value.astype(float))

    def candidates(self, wanted: np.ndarray, lists: list[np.ndarray]) -> np.ndarray:
        """Return at most CANDIDATES joint orders (joint, slots) from each slot's legal orders."""
        sizes = [len(options) for options in lists]
        if np.prod(sizes, dtype=float) <= CANDIDATES:
            grid = np.indices(sizes).reshape(len(sizes), -1)
            return np.stack([options[column] for options, column in zip(lists, grid)], 1)
        drawn, weight = np.empty((4 * CANDIDATES, len(lists)), np.int32), 0.0
        for s, options in enumerate(lists):
            share = wanted[options] / wanted[options].sum()
            column = self.rng.choice(len(options), len(drawn), p=0.75 * share + 0.25 / len(share))
            drawn[:, s] = options[column]
            weight = weight + np.log(share[column])
        drawn, first = np.unique(drawn, axis=0, return_index=True)
        order = np.argsort(-weight[first])
        best, rest = np.split(order, [2 * CANDIDATES // 3])
        return drawn[np.concatenate([best, self.rng.permutation(rest)])[:CANDIDATES]]

    def stage(self, games: VectorGame, rows: np.ndarray, rounds: int) -> tuple:
        """Solve the matrix games of at most BATCH rows.

        Returns:
            Per row and power: its slots' legal orders, its candidates, and its mixture; these
            are None, None and (1, 0, ...) where it has nothing to decide. Then the values (rows,).
        """
        with torch.no_grad():
            wanted = torch.sigmoid(self.proposals(torch.from_numpy(features(games, rows))))
        wanted = wanted.double().numpy() + 1e-6
        place = {row: i for i, row in enumerate(rows.tolist())}
        lists, options = np.full((2, len(rows), 2), None)
        asked = games.decisions(rows)
        for d in range(asked.count):
            slots = range(asked.slot_start[d], asked.slot_start[d + 1])
            i, power = place[int(asked.game[d])], asked.power[d]
            lists[i, power] = [
                asked.order[asked.order_start[s] : asked.order_start[s + 1]] for s in slots
            ]
            options[i, power] = self.candidates(wanted[i], lists[i, power])
        count = np.array([[1 if c is None else len(c) for c in pair] for pair in options])
        tried, begin = np.repeat(rows, count.prod(1)), 0
        self.tried.copy_from(games, tried, np.arange(len(tried)))
        self.orders[: len(tried)] = NONE
        for i, (n, m) in enumerate(count):
            pair = np.arange(n * m)
            for power, which in ((0, pair // m), (1, pair % m)):
                if options[i, power] is not None:
                    self.write(self.orders, begin + pair, options[i, power][which])
            begin += n * m
        self.tried.step(self.orders, np.arange(len(tried)))
        found = self.values(self.tried, np.arange(len(tried)))
        payoff = np.full((len(rows), *count.max(0)), np.nan)
        for i, part in enumerate(np.split(found, np.cumsum(count.prod(1))[:-1])):
            payoff[i, : count[i, 0], : count[i, 1]] = part.reshape(count[i])
        *mixtures, value = solve(payoff, rounds)
        return lists, options, mixtures, value

    def write(self, orders: np.ndarray, rows: np.ndarray, chosen: np.ndarray) -> None:
        """Write joint orders (rows, slots) into the orders of rows; a waive is no order."""
        for column in chosen.T:
            place = self.province[column]
            given = place != NONE
            orders[rows[given], place[given]] = column[given]

    def act(self, games: VectorGame, decisions) -> np.ndarray:
        """Draw the orders of the deciding powers from their mixtures, of 2 % and more."""
        powers = dict(zip(decisions.game.tolist(), decisions.power.tolist()))
        first = dict(zip(decisions.game.tolist(), decisions.slot_start.tolist()))
        numbers = np.full(len(decisions.slot_province), NONE, np.int32)
        for rows in np.array_split(np.array(list(powers)), len(powers) // BATCH + 1):
            _, options, mixtures, _ = self.stage(games, rows, 300)
            for i, row in enumerate(rows):
                power = powers[int(row)]
                mixture = mixtures[power][i, : len(options[i, power])]
                mixture = np.where(mixture < 0.02, 0, mixture)
                choice = self.rng.choice(len(mixture), p=mixture / mixture.sum())
                chosen = options[i, power][choice]
                numbers[first[int(row)] :][: len(chosen)] = chosen
        return numbers


class Memory:
    """The last positions with what was learned of them."""

    def __init__(self, room: int, *widths: int):
        self.arrays = [np.zeros((room, width), np.float32) for width in widths]
        self.room, self.count = room, 0

    def add(self, *values: np.ndarray | float) -> None:
        """Keep one position's values, instead of the oldest one's if need be."""
        for array, value in zip(self.arrays, values):
            array[self.count % self.room] = value
        self.count += 1

    def draw(self, rng: np.random.Generator, number: int) -> list[torch.Tensor]:
        """Return the values of positions drawn at random."""
        drawn = rng.integers(min(self.count, self.room), size=number)
        return [torch.from_numpy(array[drawn]) for array in self.arrays]


def train(player: Equilibrium, minutes: float, seed: int) -> None:
    """Let it play itself for so long; a line every minute."""
    games = VectorGame(player.tried.map, BATCH, auto_reset=False, seed=seed)
    rows, rng = np.arange(BATCH), player.rng
    width, vocabulary = features(games, rows).shape[1], len(player.province)
    values, proposals = Memory(150_000, width, 1), Memory(50_000, width, vocabulary, vocabulary)
    networks = nn.ModuleList([player.value, player.proposals])
    optimizer = torch.optim.Adam(networks.parameters(), 1e-3)
    past, start, told, positions, opening = [[] for _ in rows], time.perf_counter(), 0, 0, np.nan
    while (share := (time.perf_counter() - start) / 60 / minutes) < 1:
        optimizer.param_groups[0]["lr"] = 1e-3 * (1 - share) + 3e-5
        results = max(0.0, 0.5 - 1.25 * share)  # outcomes speed up the beginning
        lists, options, mixtures, found = player.stage(games, rows, 150)
        seen, orders = features(games, rows), games.new_orders()
        if (games.state.turn == 0).any():
            opening = found[games.state.turn == 0].mean()
        for i in rows:
            past[i].append((seen[i], found[i]))
            for power in (0, 1):
                choices = options[i, power]
                if choices is None:
                    continue
                mixture = mixtures[power][i, : len(choices)]
                target, legal = np.zeros((2, vocabulary), np.float32)
                legal[np.concatenate(lists[i, power])] = 1
                for column in choices.T:
                    np.add.at(target, column, mixture)
                proposals.add(seen[i], target.clip(0, 1), legal)
                explore = rng.random() < EXPLORE
                choice = rng.choice(len(choices), p=None if explore else mixture)
                player.write(orders, rows[[i]], choices[[choice]])
        games.step(orders)
        positions += BATCH
        done = np.flatnonzero(games.state.end != RUNNING)
        for i, result in zip(done, player.outcome(games, done)):
            for position, value in past[i]:
                values.add(position, (1 - results) * value + results * result)
            past[i] = []
        games.reset(done)
        if values.count > 5000:
            for _ in range(2):
                position, value = values.draw(rng, 512)
                loss = binary_cross_entropy_with_logits(player.value(position), value)
                position, target, legal = proposals.draw(rng, 512)
                guess = player.proposals(position)
                loss = loss + (
                    binary_cross_entropy_with_logits(guess, target, legal, reduction="sum") / 512
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        if time.perf_counter() - start > 60 * (told + 1):
            told += 1
            print(f"{told} min, {positions:,} positions, opening {opening:.3f}", flush=True)
    first = games.map.powers[0]
    print(f"{positions:,} positions in {minutes:g} min: {first} wins {opening:.1%} of the openings")


def play(player: Equilibrium, other: Player, seat: int, count: int) -> np.ndarray:
    """Return the results (count,) of a seat of the equilibrium's, 0 to 1."""
    games = VectorGame(player.tried.map, count, auto_reset=False, seed=1000)
    seats = np.broadcast_to(np.arange(2) != seat, (count, 2)).astype(int)
    play_games(games, seats, [player, other])
    result = player.outcome(games, np.arange(count))
    return 1 - result if seat else result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--map", default="small")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--against", nargs="+", default=["dumbbot"], help="bots or checkpoints")
    parser.add_argument("--games", type=int, default=500, help="for each seat and opponent")
    parser.add_argument("--greedy", action="store_true", help="also against their likeliest orders")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if not arguments.minutes > 0 or arguments.games < 1:
        parser.error("--minutes must be above 0 and --games at least 1")
    try:
        player = Equilibrium(arguments.map, arguments.seed)
        game_map = player.tried.map
        opponents = [
            (name, greedy, load_player(name, greedy=greedy, seed=1000, game_map=game_map))
            for name in arguments.against
            for greedy in ([False, True] if arguments.greedy else [False])
        ]
    except UserError as error:
        parser.error(str(error))
    train(player, arguments.minutes, arguments.seed)
    for name, greedy, other in opponents:
        for seat, power in enumerate(player.tried.map.powers):
            result = play(player, other, seat, arguments.games)
            low, high = wilson_interval(result.sum(), len(result))
            who = f"{name}, greedy" if greedy else name
            print(f"as {power} against {who}: {result.mean():.1%} ({low:.1%} - {high:.1%})")


if __name__ == "__main__":
    main()
