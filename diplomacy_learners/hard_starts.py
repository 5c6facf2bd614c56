"""Self-play near an anchor, where many games begin shortly before a power loses a home center.

    python -m diplomacy_learners.hard_starts --map standard --anchor POLICY --start-from POLICY

First the anchor plays each of `--hard-powers` against bots. A home center that it loses marks the
positions of one to three movement phases before, from which the learner then plays that power. Such
starts are those of Backplay (Resnick et al. 2018), at the positions that lose instead of those that
win. The learner is that of anchored.py, whose flags follow.
"""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import diplomacy_engine as engine
import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, VectorGame
from diplomacy_engine.constants import NONE
from diplomacy_engine.learning import registry, startup
from diplomacy_engine.players.asking import ask_players
from diplomacy_engine.players.protocols import Player
from diplomacy_engine.rules.state import in_movement
from diplomacy_learners import anchored

GAMES, MOVEMENTS = 210, 14  # recorded with each power, and movement phases of each, seven years
BEFORE = 1, 2, 3  # movement phases before a loss, at which games begin
SEED = 77  # of the recorded games, which are the same for every run


@dataclass(frozen=True)
class Args(anchored.Args):
    """Settings: those of anchored.py, and those of the positions at which games begin."""

    exp_name: str = Path(__file__).stem
    """name of this experiment, part of the run folder's name"""
    hard_start_prob: ppo.Share = 0.5
    """probability that a game begins at such a position"""
    hard_powers: tuple[str, ...] = ()
    """powers that lose home centers there, equally often; none: all"""
    hard_bot: str = "dumbbot"
    """the other players of the games from which the positions are"""


def positions_before_losses(
    player: Player, bot: Player, games: VectorGame, power: int
) -> VectorGame | None:
    """Play `games` from their start with `player` as `power` and `bot` as the others; return their
    positions shortly before it lost its first home center, None if it lost none."""
    board, every = games.board, np.arange(games.num_games)
    home = board.home_power[board.center_province] == power
    past: list[VectorGame] = []  # all games at each movement phase
    lost_at = np.full(len(every), NONE)  # movement phase in which a home center was gone
    for number in range(MOVEMENTS):
        gone = (games.state.center_owner[:, home] != power).any(1)
        lost_at[gone & (lost_at == NONE)] = number
        past.append(games.spare(len(every)))
        past[-1].copy_from(games, every, every, keep_seeds=True)
        playing = every
        for _ in range(3):  # a movement phase, retreats, builds
            decisions = games.decisions(playing)
            orders = ask_players(games, decisions, [player, bot], 1 * (decisions.power != power))
            games.step(orders, playing)
            playing = np.flatnonzero(~in_movement(games.state))
    starts = [(n - before, e) for e, n in enumerate(lost_at.tolist()) for before in BEFORE]
    starts = [(number, e) for number, e in starts if number >= 0]
    if not starts:
        return None
    positions = games.spare(len(starts))
    for row, (number, e) in enumerate(starts):
        positions.copy_from(past[number], e, row, keep_seeds=True)
    return positions


class HardStartsRun(anchored.AnchoredRun):
    """A run in which many games begin where a power is about to lose a home center."""

    REBUILT = (*anchored.AnchoredRun.REBUILT, "positions")

    def __init__(self, setup: startup.Setup, ranks: startup.Ranks):
        super().__init__(setup, ranks)
        args, game_map = setup.args, setup.game_map
        bot = engine.load_player(args.hard_bot, game_map=game_map)
        names = args.hard_powers or game_map.powers
        for name in names:
            if name not in game_map.powers:
                raise UserError(f"--hard-powers {name} is not a power of {game_map.name}")
        positions = {}
        for power in map(game_map.power_index.__getitem__, names):
            games = VectorGame(game_map, GAMES, SEED + power, 0, auto_reset=False)
            positions[power] = positions_before_losses(self.anchor, bot, games, power)
        self.positions = {power: some for power, some in positions.items() if some}
        if not self.positions:
            raise UserError(f"--hard-powers {' '.join(names)}: no home center was ever lost")

    def fill_seats(
        self, rows: np.ndarray, learns: np.ndarray, seat_rank: np.ndarray, members: np.ndarray
    ) -> None:
        hard = self.rng.random(len(rows)) < self.args.hard_start_prob
        powers = self.rng.choice(list(self.positions), len(rows))
        for n in np.flatnonzero(hard):
            power, positions = int(powers[n]), self.positions[int(powers[n])]
            position = self.rng.integers(positions.num_games, size=1)
            self.games.copy_from(positions, position, rows[n : n + 1])
            if not learns[n, power]:  # the learner plays it instead of the first of its powers
                swapped = [power, int(np.argmax(learns[n]))]
                learns[n, swapped] = learns[n, swapped[::-1]]
                seat_rank[n, swapped] = seat_rank[n, swapped[::-1]]
        super().fill_seats(rows, learns, seat_rank, members)


train = partial(ppo.train, make_run=HardStartsRun)
LEARNER_SPEC = registry.register(__name__, __file__, Args, ppo.make_agent)

if __name__ == "__main__":
    sys.exit(startup.main(LEARNER_SPEC, train))
