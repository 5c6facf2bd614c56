"""Which scheme a reward is, by pairs of games that differ in one power's policy.

The second game of a pair, the twin, has the seed and the players of the first but for one power:
where `dumbbot` plays FRANCE in a game, `hold` does in its twin, and `random` plays ITALY in both.
How the rewards differ then comes from this change alone.

The scheme is the first that holds of those of Song et al. 2019 (Arena, 2.3.1). Games can contradict
a scheme, never prove it.

`play_pairs` plays the games and adds up their rewards, `judge` finds the scheme of such sums, and
`check_reward` does both for each group of powers that may be rivals, and gives examples.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Unpack

import numpy as np

from ..constants import RUNNING
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..players.asking import ask_players
from ..players.protocols import Player
from ..rules.map import Map
from ..scoring.mixes import RewardMix, make_reward_mix
from ..scoring.rewards import Reward, reward_input
from .match import Match, MatchOptions, match_settings, names_apart

# What holds under each scheme in every pair of games in which one player has another policy; a
# reward has the first scheme that no pair contradicts:
#   non-learnable   that player's own reward is the same
#   isolated        the reward of every other player is the same
#   competitive     the sum of all rewards is the same
#   collaborative   nobody's reward falls while that player's rises, nor the reverse
#   social dilemma  anything
SCHEMES = ("non-learnable", "isolated", "competitive", "collaborative", "social dilemma")
TOLERANCE = 1e-5  # of the largest reward; rewards are float32, their sums over a game float64
BATCH = 512  # pairs at once


class GamePairs(NamedTuple):
    """Pairs of games: in the twin another player has `power`."""

    seed: np.ndarray  # (pairs,) uint64, of both games
    seats: np.ndarray  # (2, pairs, P), number of the player at each power
    power: np.ndarray  # (pairs,)
    rewards: dict[str, np.ndarray]  # (2, pairs, P) float64, sums over the games, by name
    any_differ: bool  # whether a game and its twin ever ended in different positions


class Verdict(NamedTuple):
    """The scheme of a reward, and what the pairs of games show of it."""

    scheme: str
    low: float  # least sum of all rewards in a game
    high: float  # greatest
    sum_change: float  # greatest absolute change of the sum within a pair
    # Shares of the pairs in which another power's reward changes, against that of the power with
    # the other policy, or with it.
    conflict: float
    common: float
    against: dict[str, int]  # scheme before the verdict -> the pair that contradicts it most


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
    settings = match_settings(match, **changes)
    num_powers = len(settings.game_map.powers)
    seeds, seats, power = _draw_pairs(settings.seed, num_pairs, num_powers, len(players))
    sums = {name: np.zeros(seats.shape) for name in rewards}
    any_differ = False
    for begin in range(0, num_pairs, BATCH):
        batch = slice(begin, begin + BATCH)
        seated = seats[:, batch].reshape(-1, num_powers)  # first the games, then their twins
        games = settings.new_games(len(seated), players)
        games.seed_games(np.arange(len(seated)), np.tile(seeds[batch], 2))
        pays_limit = settings.rules.year_limit != "truncate"
        for paid in _play(games, players, seated, rewards, pays_limit):
            for name, amounts in paid.items():
                sums[name][:, batch] += amounts.reshape(2, -1, num_powers)
            if progress is not None:
                progress(begin + np.count_nonzero(games.state.end != RUNNING) / 2)
        any_differ = any_differ or _twins_differ(games)
    return GamePairs(seeds, seats, power, sums, any_differ)


def _play(
    games: VectorGame,
    players: Sequence[Player],
    seated: np.ndarray,
    rewards: Mapping[str, Reward],
    pays_limit: bool,
) -> Iterator[dict[str, np.ndarray]]:
    """Play games to their ends, and yield after each phase what the rewards pay, (games, P) each.

    `seated` (games, P) is the number of the player at each power; `pays_limit`: a game that reaches
    the year limit is paid as a draw.
    """
    while (running := games.state.end == RUNNING).any():
        decisions = games.decisions()
        player_numbers = seated[decisions.game, decisions.power]
        result = games.step(ask_players(games, decisions, players, player_numbers))
        position = reward_input(result, games.board.victory_centers, pays_limit)
        yield {
            name: np.where(running[:, None], reward(position), 0.0)
            for name, reward in rewards.items()
        }


def _twins_differ(games: VectorGame) -> bool:
    """Tell whether a game of the first half ended in another position than its twin."""
    state = games.state
    arrays = state.center_owner, state.unit_power, state.unit_location, state.year
    halves = (np.split(array, 2) for array in arrays)
    return not all(np.array_equal(first, second) for first, second in halves)


def _draw_pairs(
    seed: int, num_pairs: int, num_powers: int, num_players: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `seed`, `seats` and `power` of GamePairs."""
    # A generator for each, so that more pairs do not change the first ones.
    tables, others, seeds = (np.random.default_rng([seed, use]) for use in range(3))
    pair = np.arange(num_pairs)
    power = pair % num_powers
    seats = np.tile(tables.integers(num_players, size=(num_pairs, num_powers)), (2, 1, 1))
    seats[1, pair, power] += 1 + others.integers(num_players - 1, size=num_pairs)
    return seeds.integers(0, 2**64, num_pairs, np.uint64), seats % num_players, power


def judge(rewards: np.ndarray, exchanged: np.ndarray) -> Verdict:
    """Return which scheme pairs of games leave.

    `rewards` are (2, pairs, n) of n agents (powers, or teams) in each game and in its twin;
    `exchanged` (pairs,) is the agent whose policy differs.
    """
    tolerance = TOLERANCE * np.abs(rewards).max(initial=0.0)

    def beyond_tolerance(changes: np.ndarray) -> np.ndarray:
        return np.where(np.abs(changes) > tolerance, changes, 0.0)

    exact = rewards[1] - rewards[0]  # (pairs, n)
    change = beyond_tolerance(exact)
    sum_change = np.abs(beyond_tolerance(exact.sum(1)))  # (pairs,)
    pair = np.arange(len(change))
    own = change[pair, exchanged]  # (pairs,)
    others = change.copy()
    others[pair, exchanged] = 0.0
    along = others * own[:, None]  # (pairs, n), positive where both rise or both fall
    contradiction = {  # by how much each pair contradicts a scheme, (pairs,)
        "non-learnable": np.abs(own),
        "isolated": np.abs(others).max(1),
        "competitive": sum_change,
        "collaborative": np.maximum(-along, 0.0).max(1),
    }
    refuted = itertools.takewhile(lambda scheme: contradiction[scheme].any(), contradiction)
    against = {scheme: int(contradiction[scheme].argmax()) for scheme in refuted}
    sums = rewards.sum(2)  # (2, pairs)
    conflict = float((along < 0).any(1).mean())
    common = float((along > 0).any(1).mean())
    low, high = float(sums.min()), float(sums.max())
    largest = float(sum_change.max())
    scheme = next(s for s in SCHEMES if s not in against)  # none contradicts the last one
    return Verdict(scheme, low, high, largest, conflict, common, against)


class Group(NamedTuple):
    """Agents to compare: teams, or the powers of one team."""

    powers: np.ndarray  # (m,) all of them, in order
    agent: np.ndarray  # (m,) number of the agent that has each power


def groups_of(game_map: Map) -> dict[str, Group]:
    """Return the groups of two agents or more, by name.

    With the team ENGLAND+ITALY on a map with RUSSIA as its third power, they are `between teams`,
    of powers 0, 1, 2 and agents 0, 0, 1, and `within ENGLAND+ITALY`, of powers 0, 1 and agents
    0, 1. Without teams, all powers are agents of one group.
    """
    groups = {}
    # At each level, each power has the number of its group and, within this, of its agent.
    for depth, (group_numbers, agent_numbers) in enumerate(
        itertools.pairwise(game_map.teams.parts)
    ):
        for number in range(int(group_numbers.max()) + 1):
            powers = np.flatnonzero(group_numbers == number)
            agents, agent = np.unique(agent_numbers[powers], return_inverse=True)
            if len(agents) > 1:
                groups[_group_name(game_map, depth, powers)] = Group(powers, agent)
    return groups


def _group_name(game_map: Map, depth: int, powers: np.ndarray) -> str:
    """Return the name of a group of powers at a level; level 0 is that of all powers."""
    if depth == 0:
        return "between teams" if game_map.teams.text else "all powers"
    return f"within {'+'.join(game_map.powers[p] for p in powers)}"


def check_reward(
    match: Match,
    reward: str,
    players: Sequence[Player],
    num_pairs: int = 400,
    progress: Callable[[float], None] | None = None,
    **changes: Unpack[MatchOptions],
) -> dict:
    """Return which scheme a reward is, as `check-reward --json` writes it.

    It is judged among the powers of a map, among its teams, and within each team. Rewards are not
    discounted. Weights that change over training are judged at its beginning, middle and end.
    `against` has pairs of games that contradict the schemes before.
    """
    settings = match_settings(match, **changes)
    game_map = settings.game_map
    names = names_apart(players)
    least = len(game_map.powers)  # each power's policy is exchanged once
    if min(least, len(set(names))) < 2 or num_pairs < least:
        raise UserError(f"this needs two powers, two different players and {least} pairs or more")
    mix = make_reward_mix(reward, game_map)
    pairs = play_pairs(settings, players, mix.parts, num_pairs, progress)
    if not pairs.any_differ:
        raise UserError("all games ended as their twins did: these players are too alike to tell")
    checks = []
    for training_share, weights in _weights_over_training(mix).items():
        paid = np.sum([weight * pairs.rewards[name] for name, weight in weights.items()], axis=0)
        for among, group in groups_of(game_map).items():
            verdict, count = _judge_group(pairs, paid, group)
            examples = {
                scheme: _example(game_map, names, pairs, paid, pair)
                for scheme, pair in verdict.against.items()
            }
            about_check = {"progress": training_share, "among": among, "pairs": count}
            checks.append(about_check | verdict._asdict() | {"against": examples})
    about = {"reward": reward, "players": list(names), "pairs": num_pairs}
    return about | settings.facts() | {"checks": checks}


def _weights_over_training(mix: RewardMix) -> dict[float, dict[str, float]]:
    """Return the weights of a mix by the share of training that is over; one if they are alike."""
    weights = {share: mix.weights(share) for share in (0.0, 0.5, 1.0)}
    alike = weights[0.0] == weights[0.5] == weights[1.0]
    return {0.0: weights[0.0]} if alike else weights


def _judge_group(pairs: GamePairs, paid: np.ndarray, group: Group) -> tuple[Verdict, int]:
    """Judge rewards (2, pairs, P) by the pairs that exchange a power of a group; return also their
    number. An agent is paid the mean of its powers."""
    rows = np.flatnonzero(np.isin(pairs.power, group.powers))
    has_power = group.agent[:, None] == np.arange(group.agent.max() + 1)  # (m, agents)
    means = paid[:, rows][:, :, group.powers] @ (has_power / has_power.sum(0))
    verdict = judge(means, group.agent[np.searchsorted(group.powers, pairs.power[rows])])
    against = {scheme: int(rows[row]) for scheme, row in verdict.against.items()}
    return verdict._replace(against=against), len(rows)


def _example(
    game_map: Map, names: Sequence[str], pairs: GamePairs, paid: np.ndarray, pair: int
) -> dict:
    """Return pair number `pair` as the result shows it, with the rewards (2, pairs, P) `paid`."""
    power = pairs.power[pair]
    rewards, twin_rewards = (dict(zip(game_map.powers, row.tolist())) for row in paid[:, pair])
    return {
        "pair": pair + 1,
        "seed": int(pairs.seed[pair]),
        "players": {p: names[n] for p, n in zip(game_map.powers, pairs.seats[0, pair])},
        "power": game_map.powers[power],
        "instead": names[pairs.seats[1, pair, power]],
        "rewards": rewards,
        "twin_rewards": twin_rewards,
    }
