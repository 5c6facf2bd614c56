"""Which scheme a reward is, by pairs of games that differ in one power's policy.

It is the first that holds of those of Song et al. 2019 (Arena, 2.3.1). Games can contradict a
scheme, never prove it.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Unpack

import numpy as np

from ..constants import RUNNING
from ..errors import UserError
from ..players.asking import ask_players
from ..players.protocols import Player
from ..rules.map import Map
from ..scoring.mixes import make_reward_mix
from ..scoring.rewards import Reward, reward_input
from .match import Match, MatchOptions, match_settings, names_apart

SCHEMES = ("non-learnable", "isolated", "competitive", "collaborative", "social dilemma")
TOLERANCE = 1e-5  # of the largest reward; rewards are float32, their sums over a game float64
BATCH = 512  # pairs at once


class GamePairs(NamedTuple):
    """Pairs of games; in the twin, the second game, another player is at `power`."""

    seed: np.ndarray  # (pairs,) uint64, of both games
    seats: np.ndarray  # (2, pairs, P), number of the player at each power
    power: np.ndarray  # (pairs,)
    rewards: dict[str, np.ndarray]  # (2, pairs, P) float64, sums over the games, by name
    differ: bool  # whether a game and its twin ever ended in different positions


class Verdict(NamedTuple):
    scheme: str
    low: float  # least sum of all rewards in a game
    high: float  # greatest
    sum_change: float  # greatest absolute change of the sum within a pair
    conflict: float  # share of pairs in which another power's reward falls as that of the
    # power with the other policy rises, or the reverse
    common: float  # share in which one changes as it does
    against: dict[str, int]  # pair that contradicts most, of each scheme before the verdict


def play_pairs(
    match: Match,
    players: Sequence[Player],
    rewards: Mapping[str, Reward],
    num_pairs: int,
    progress: Callable[[float], None] | None = None,
    **changes: Unpack[MatchOptions],
) -> GamePairs:
    """Play pairs of games and add up the rewards of each.

    Each power's policy is exchanged in turn; the players' seats are drawn. Pair i does not depend
    on the number of pairs, if policies are greedy.
    """
    settings, num_players = match_settings(match, **changes), len(players)
    num_powers = len(settings.game_map.powers)
    draws = [np.random.default_rng([settings.seed, use]) for use in range(3)]
    pair = np.arange(num_pairs)
    power = pair % num_powers
    seats = np.tile(draws[0].integers(num_players, size=(num_pairs, num_powers)), (2, 1, 1))
    seats[1, pair, power] += 1 + draws[1].integers(num_players - 1, size=num_pairs)
    seats %= num_players
    seeds = draws[2].integers(0, 2**64, num_pairs, np.uint64)
    sums = {name: np.zeros(seats.shape) for name in rewards}
    pays_limit, differ = settings.rules.year_limit != "truncate", False
    for first in range(0, num_pairs, BATCH):
        some = slice(first, first + BATCH)
        seated = seats[:, some].reshape(-1, num_powers)
        games, rows = settings.new_games(len(seated), players), np.arange(len(seated))
        games.seed_games(rows, np.tile(seeds[some], 2))
        state = games.state
        while (running := state.end == RUNNING).any():
            decisions = games.decisions()
            player_numbers = seated[decisions.game, decisions.power]
            result = games.step(ask_players(games, decisions, players, player_numbers))
            position = reward_input(result, games.board.victory_centers, pays_limit)
            for name, reward in rewards.items():
                paid = np.where(running[:, None], reward(position), 0.0)
                sums[name][:, some] += paid.reshape(2, -1, num_powers)
            if progress is not None:
                progress(first + np.count_nonzero(state.end != RUNNING) / 2)
        for array in (state.center_owner, state.unit_power, state.unit_location, state.year):
            one, other = np.split(array, 2)
            differ = differ or not np.array_equal(one, other)
    return GamePairs(seeds, seats, power, sums, differ)


def judge(rewards: np.ndarray, exchanged: np.ndarray) -> Verdict:
    """Return which scheme pairs of games leave.

    `rewards` are (2, pairs, n) of n powers, or other agents, in each game and in its twin; of
    `exchanged` (pairs,) the policy differs.
    """
    tolerance = TOLERANCE * np.abs(rewards).max(initial=0.0)
    exact = rewards[1] - rewards[0]
    change, total = (np.where(np.abs(a) > tolerance, a, 0.0) for a in (exact, exact.sum(1)))
    pair = np.arange(len(change))
    own, others = change[pair, exchanged], change.copy()
    others[pair, exchanged] = 0.0
    along = others * own[:, None]
    # By how much each pair contradicts each scheme but the last, which always holds.
    sizes = np.abs(own), np.abs(others).max(1), np.abs(total), np.maximum(-along, 0.0).max(1)
    refuted = itertools.takewhile(lambda item: item[1].any(), zip(SCHEMES, sizes))
    against = {scheme: int(size.argmax()) for scheme, size in refuted}
    low, high = float(rewards.sum(2).min()), float(rewards.sum(2).max())
    conflict, common = (float(pairs.any(1).mean()) for pairs in (along < 0, along > 0))
    sum_change = float(np.abs(total).max())
    return Verdict(SCHEMES[len(against)], low, high, sum_change, conflict, common, against)


def nodes_of(game_map: Map) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the groups to compare: by name, powers (m,) and their numbers as members (m,)."""
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
    match: Match,
    reward: str,
    players: Sequence[Player],
    num_pairs: int = 400,
    progress: Callable[[float], None] | None = None,
    **changes: Unpack[MatchOptions],
) -> dict:
    """Return which scheme a reward is among the powers of a map, and among and within its teams, as
    `check-reward --json` writes it. Not discounted; changing weights are looked at at the
    beginning, middle and end of training. `against`: pairs that contradict earlier schemes."""
    settings = match_settings(match, **changes)
    game_map, names = settings.game_map, names_apart(players)
    mix = make_reward_mix(reward, game_map)
    least = len(game_map.powers)
    if len(set(names)) < 2 or num_pairs < least:
        raise UserError(f"this needs two different players or more, and at least {least} pairs")
    pairs = play_pairs(settings, players, mix.parts, num_pairs, progress)
    if not pairs.differ:
        raise UserError("all games ended as their twins did: these players are too alike to tell")
    weights = {trained: mix.weights(trained) for trained in (0.0, 0.5, 1.0)}
    if weights[0.0] == weights[0.5] == weights[1.0]:
        weights = {0.0: weights[0.0]}
    checks = []
    for trained, own in weights.items():
        paid = np.sum([weight * pairs.rewards[name] for name, weight in own.items()], axis=0)
        for among, (powers, member) in nodes_of(game_map).items():
            rows = np.flatnonzero(np.isin(pairs.power, powers))
            belongs = member[:, None] == np.arange(member.max() + 1)
            means = paid[:, rows][:, :, powers] @ (belongs / belongs.sum(0))
            verdict = judge(means, member[np.searchsorted(powers, pairs.power[rows])])
            examples = {
                scheme: _example(game_map, names, pairs, paid, int(rows[pair]))
                for scheme, pair in verdict.against.items()
            }
            summary = {"progress": trained, "among": among, "pairs": len(rows)}
            checks.append(summary | verdict._asdict() | {"against": examples})
    result = {"reward": reward, "players": list(names), "pairs": num_pairs} | settings.facts()
    return result | {"checks": checks}


def _example(
    game_map: Map, names: Sequence[str], pairs: GamePairs, paid: np.ndarray, pair: int
) -> dict:
    """Return a pair of games, with the rewards (2, pairs, P) `paid`, as a result has it."""
    power = pairs.power[pair]
    one, other = (dict(zip(game_map.powers, rewards[pair].tolist())) for rewards in paid)
    return {
        "pair": pair + 1,
        "seed": int(pairs.seed[pair]),
        "players": {p: names[n] for p, n in zip(game_map.powers, pairs.seats[0, pair])},
        "power": game_map.powers[power],
        "instead": names[pairs.seats[1, pair, power]],
        "rewards": one,
        "twin_rewards": other,
    }
