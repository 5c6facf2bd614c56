"""Rewards of teams: at every level of the tree of teams its nodes are treated as powers.

A power's reward is the weighted sum over the levels, as in the social tree of Song et al. 2019
(Arena, section 2.3.2): `team` compares the teams, `team2` within each team the teams in it (then
team3, and so on), `power` within each innermost team its powers. What a member earns is paid in
full to every power in it; who has no team of several at a level is alone with itself there. A team
by name pays its members alone.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..constants import NONE, SOLO, TEAM
from .rewards import RewardInput


class TeamLevels(Protocol):
    """What a mix reads of the teams of a map; see rules/teams.py."""

    @property
    def levels(self) -> tuple[str, ...]: ...

    @property
    def parts(self) -> tuple[np.ndarray, ...]: ...

    @property
    def victory_centers(self) -> int: ...


class TeamMap(Protocol):
    """What a mix reads of a map."""

    @property
    def powers(self) -> Sequence[str]: ...

    @property
    def teams(self) -> TeamLevels: ...


class Level(NamedTuple):
    """Groups of powers that are compared, (P,) integers from 0 on."""

    node: np.ndarray  # powers of one number are compared, those of NONE paid nothing,
    member: np.ndarray  # those of one number here as one
    victory_centers: int = 0  # that win; 0: the map's

    @property
    def is_flat(self) -> bool:
        """Whether every power is compared with every other, by itself."""
        alone = np.array_equal(self.member, np.arange(len(self.member)))
        return alone and not self.node.any()


def levels_of(powers: Sequence[str], teams: TeamLevels) -> dict[str, Level]:
    """The levels of a tree by name, the first of them the teams', and its teams by `team_name`."""
    levels = {}
    for depth, (team_of, member_of) in enumerate(itertools.pairwise(teams.parts)):
        levels[teams.levels[depth]] = Level(
            team_of, member_of, 0 if depth else teams.victory_centers
        )
        for number in set(team_of.tolist()) if depth else ():
            inside = team_of == number
            if len(set(member_of[inside].tolist())) > 1:
                name = team_name([powers[p] for p in np.flatnonzero(inside).tolist()])
                levels[name] = Level(np.where(inside, 0, NONE), member_of)
    return levels


def team_name(powers: Sequence[str]) -> str:
    return "+".join(sorted(powers))


def node_input(powers: RewardInput, members: np.ndarray, of_member: np.ndarray) -> RewardInput:
    """What a step did to the members of a node, a column for each in place of the powers.

    `members` (m,) are the powers below the node, `of_member` (m,) tells in which member each is. A
    member has the centers of all its powers, lives while one does, and has a solo when one has;
    where a team has won without, that is a solo of the team, but a draw among its members.
    """
    count = int(of_member.max()) + 1
    belongs = of_member[:, None] == np.arange(count)  # (m, members of the node)
    alive = (powers.alive[:, members, None] & belongs).any(1)
    lost_one = (powers.eliminated[:, members, None] & belongs).any(1)
    column = np.full(powers.alive.shape[1] + 1, NONE)  # the last one stands for no winner
    column[members] = of_member
    winner, by_team = column[powers.winner], powers.ended == TEAM
    if len(members) < powers.alive.shape[1]:
        inside = by_team & (winner != NONE)
        winner, by_team = np.where(inside, NONE, winner), by_team & ~inside
    return powers._replace(
        ended=np.where(by_team, SOLO, powers.ended).astype(np.int8),
        winner=winner.astype(np.int8),
        centers=(powers.centers[:, members, None] * belongs).sum(1, dtype=np.int16),
        centers_before=(powers.centers_before[:, members, None] * belongs).sum(1, dtype=np.int16),
        alive=alive,
        eliminated=lost_one & ~alive,
    )


def alive_with_team(alive: np.ndarray, team: np.ndarray) -> np.ndarray:
    """Return whether any power of each power's team is alive, (E, P) bool.

    `team` (P,) is the team of each power; without teams each power has its own.
    """
    return (alive[:, :, None] & (team[:, None] == team)).any(1)


def living_mate(alive: np.ndarray, team: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Return powers (n,), each eliminated one replaced by a living power of its team, if any.

    `alive` is (n, P) bool, `team` as for `alive_with_team`.
    """
    mates = alive & (team == team[powers][:, None])
    own = alive[np.arange(len(powers)), powers]
    return np.where(own | ~mates.any(1), powers, mates.argmax(1))


def pay_teams(
    reward: Callable[..., np.ndarray], powers: RewardInput, level: Level, *more: object
) -> np.ndarray:
    """What each power is paid at a level, (E, P) float32; `reward` takes the input and `more`."""
    if level.is_flat:
        return reward(powers, *more)
    if level.victory_centers:
        powers = powers._replace(victory_centers=level.victory_centers)
    paid = np.zeros(powers.alive.shape, np.float32)
    for node in range(int(level.node.max()) + 1):
        members = np.flatnonzero(level.node == node)
        _, of_member = np.unique(level.member[members], return_inverse=True)
        paid[:, members] = reward(node_input(powers, members, of_member), *more)[:, of_member]
    return paid
