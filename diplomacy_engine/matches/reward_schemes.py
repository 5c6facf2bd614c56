"""Which scheme a reward is, by pairs of games that differ in one power's policy.

It is the first that holds of those of Song et al. 2019 (Arena, 2.3.1). Games can contradict a
scheme, never prove it.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..constants import RUNNING
from ..errors import UserError
from ..players.asking import ask_players
from ..players.protocols import Player
from ..rules.map import Map
from ..scoring.mixes import make_reward_mix
from ..scoring.rewards import Reward, reward_input
from .match import MatchSettings, match_settings, names_apart

SCHEMES = ("non-learnable", "isolated", "competitive", "collaborative", "social dilemma")
TOLERANCE = 1e-5  # of the largest reward; rewards are float32, their sums over a game float64
BATCH = 512  # pairs at once


class GamePairs(NamedTuple):
    """Pairs of games; the policy of `power` is `instead` in the second one."""

    seed: np.ndarray  # (pairs,) uint64, of both games
    seats: np.ndarray  # (pairs, P), number of the player at each power of the first game
    power: np.ndarray  # (pairs,)
    instead: np.ndarray  # (pairs,) number of a player
    rewards: dict[str, np.ndarray]  # (2, pairs, P) float64, sums over the games, by name
    differ: bool  # whether any two pairs ended in different positions


class Verdict(NamedTuple):
    scheme: str
    low: float  # least sum of all rewards in a game
    high: float  # greatest
    sum_change: float  # greatest absolute change of the sum within a pair
    conflict: float  # share of pairs in which another power's reward changes against that of x
    common: float  # share in which one changes along with it
    against: dict[str, int]  # pair that contradicts most, of each scheme before the verdict


def play_pairs(
    match: MatchSettings | Map,
    players: Sequence[Player],
    rewards: Mapping[str, Reward],
    num_pairs: int,
    progress: Callable[[float], None] | None = None,
    **settings: Any,
) -> GamePairs:
    """Play pairs of games and add up the rewards of each.

    The powers take turns in being exchanged; who plays what is drawn. Pair i is the same however
    many there are, if policies are greedy.
    """
    rules = match_settings(match, **settings)
    powers, count = len(rules.game_map.powers), len(players)
    draws = [np.random.default_rng([rules.seed, use]) for use in range(3)]
    seats = draws[0].integers(count, size=(num_pairs, powers))
    power = np.arange(num_pairs) % powers
    pair = np.arange(num_pairs)
    instead = (seats[pair, power] + 1 + draws[1].integers(count - 1, size=num_pairs)) % count
    second_seats = seats.copy()
    second_seats[pair, power] = instead
    seeds = draws[2].integers(0, 2**64, num_pairs, np.uint64)
    sums = {name: np.zeros((2, num_pairs, powers)) for name in rewards}
    pays_limit, differ = rules.year_limit != "truncate", False
    for first in range(0, num_pairs, BATCH):
        some = slice(first, first + BATCH)
        half = len(seeds[some])
        games = rules.new_games(2 * half)
        rows = np.arange(2 * half)
        games.seed_games(rows, np.tile(seeds[some], 2))
        who_plays = np.concatenate([seats[some], second_seats[some]])
        state, victory_centers = games.state, games.board.victory_centers
        while (running := state.end == RUNNING).any():
            decisions = games.decisions()
            player_numbers = who_plays[decisions.game, decisions.power]
            result = games.step(ask_players(games, decisions, players, player_numbers))
            position = reward_input(result, victory_centers, pays_limit)
            for name, reward in rewards.items():
                paid = np.where(running[:, None], reward(position), 0.0)
                sums[name][:, some] += paid.reshape(2, half, powers)
            if progress is not None:
                progress(first + half * np.count_nonzero(state.end != RUNNING) / len(rows))
        for array in (state.center_owner, state.unit_power, state.unit_location, state.year):
            one, other = array.reshape(2, half, -1)
            differ = differ or not np.array_equal(one, other)
    return GamePairs(seeds, seats, power, instead, sums, differ)


def judge(rewards: np.ndarray, exchanged: np.ndarray) -> Verdict:
    """Return which scheme pairs of games leave.

    `rewards` are (2, pairs, n) of n powers, or other agents, in each game and in its pair; of
    `exchanged` (pairs,) the policy differs.
    """
    tolerance = TOLERANCE * np.abs(rewards).max(initial=0.0)
    change = rewards[1] - rewards[0]
    change[np.abs(change) <= tolerance] = 0.0
    own = change[np.arange(len(change)), exchanged]
    others = change.copy()
    others[np.arange(len(change)), exchanged] = 0.0
    along = others * own[:, None]
    total = np.abs((rewards[1] - rewards[0]).sum(1))
    total[total <= tolerance] = 0.0
    # By how much each pair contradicts each scheme.
    contradictions = {
        "non-learnable": np.abs(own),
        "isolated": np.abs(others).max(1),
        "competitive": total,
        "collaborative": np.maximum(-along, 0.0).max(1),
    }
    against = {}
    for scheme, size in contradictions.items():
        if not size.any():
            break
        against[scheme] = int(size.argmax())
    scheme = SCHEMES[len(against)]
    sums, shares = rewards.sum(2), ((along < 0).any(1).mean(), (along > 0).any(1).mean())
    figures = map(float, (sums.min(), sums.max(), total.max(), *shares))
    return Verdict(scheme, *figures, against)


def nodes_of(game_map: Map) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return who is compared: by name, powers (m,) and their numbers as members (m,)."""
    parts, nodes = game_map.teams.parts, {}
    for depth, (team_of, member_of) in enumerate(itertools.pairwise(parts)):
        for node in range(int(team_of.max()) + 1):
            powers = np.flatnonzero(team_of == node)
            members, of_power = np.unique(member_of[powers], return_inverse=True)
            if len(members) > 1:
                name = f"within {'+'.join(game_map.powers[p] for p in powers)}"
                if depth == 0:
                    name = "between teams" if game_map.teams.text else "all powers"
                nodes[name] = powers, of_power
    return nodes


def check_reward(
    match: MatchSettings | Map,
    reward: str,
    players: Sequence[Player],
    num_pairs: int = 400,
    progress: Callable[[float], None] | None = None,
    **settings: Any,
) -> dict:
    """Return which scheme a reward is among the powers of a map, and among and within its teams, as
    `check-reward --json` writes it. Not discounted; changing weights are looked at at the
    beginning, middle and end of training. `against`: pairs that contradict earlier schemes."""
    rules = match_settings(match, **settings)
    game_map = rules.game_map
    mix = make_reward_mix(reward, game_map)
    powers = len(game_map.powers)
    names = names_apart(players)
    if len(set(names)) < 2 or num_pairs < powers:
        raise UserError(f"this needs two different players or more, and at least {powers} pairs")
    pairs = play_pairs(rules, players, mix.parts, num_pairs, progress)
    if not pairs.differ:
        raise UserError("all games ended as their twins did: these players are too alike to tell")
    at = [0.0, 0.5, 1.0]
    if mix.weights(0.0) == mix.weights(0.5) == mix.weights(1.0):
        at = [0.0]
    checks = []
    for progress in at:
        weights = mix.weights(progress)
        paid = sum(weight * pairs.rewards[name] for name, weight in weights.items())
        for name, (powers, of_power) in nodes_of(game_map).items():
            rows = np.flatnonzero(np.isin(pairs.power, powers))
            belongs = of_power[:, None] == np.arange(of_power.max() + 1)
            means = paid[:, rows][:, :, powers] @ (belongs / belongs.sum(0))
            place = np.searchsorted(powers, pairs.power[rows])
            verdict = judge(means, of_power[place])
            against = {
                scheme: _shown(game_map, names, pairs, paid, int(rows[pair]))
                for scheme, pair in verdict.against.items()
            }
            summary = {"progress": progress, "among": name, "pairs": len(rows)}
            checks.append(summary | verdict._asdict() | {"against": against})
    result = {"reward": reward, "players": list(names), "pairs": num_pairs} | rules.facts()
    return result | {"checks": checks}


def _shown(
    game_map: Map, names: Sequence[str], pairs: GamePairs, paid: np.ndarray, pair: int
) -> dict:
    one, other = (dict(zip(game_map.powers, rewards[pair].tolist())) for rewards in paid)
    return {
        "pair": pair + 1,
        "seed": int(pairs.seed[pair]),
        "players": {p: names[n] for p, n in zip(game_map.powers, pairs.seats[pair])},
        "power": game_map.powers[pairs.power[pair]],
        "instead": names[pairs.instead[pair]],
        "rewards": one,
        "twin_rewards": other,
    }
