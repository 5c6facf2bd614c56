"""Forked rollouts: play a position on many times, and compare.

An advantage is relative to the group, in units of its spread, as in GRPO (Shao et al. 2024).
"""

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
from msgspec.json import decode, encode

from .._files import atomic_write
from .._suggest import quoted
from ..constants import RUNNING, SPRING_MOVEMENT
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.vector_game import VectorGame
from ..players.asking import ask_players, orders_of
from ..players.bots.random_bots import RandomBot
from ..players.protocols import Player
from .tables import GameRecorder

Hook = Callable[[VectorGame, Decisions, np.ndarray], None]


class Rollouts(NamedTuple):
    score: np.ndarray  # (positions, copies, P) float32
    advantage: np.ndarray  # the same shape; relative to the group, 0 where all scored the same
    ended: np.ndarray  # (positions, copies) int8, End; RUNNING where the horizon came first
    years: np.ndarray  # (positions, copies) int16, calendar year of the copy's end
    saved_games: list[dict]  # of the copies that were recorded; `id` is POSITION-COPY, from 0 on
    number: np.ndarray  # (positions,) int64, of each among all that are forked

    def save(self, path: str | Path) -> None:
        """Write a part, a shard, for `join_rollouts`."""
        arrays = self._asdict() | {"saved_games": np.frombuffer(encode(self.saved_games), np.uint8)}
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)
        atomic_write(path, content.getvalue())


def join_rollouts(paths: Sequence[str | Path]) -> Rollouts:
    """Read shards and join them by number; UserError names a missing or repeated position."""
    parts = []
    for path in paths:
        try:
            with np.load(path) as saved:
                parts.append({name: saved[name] for name in Rollouts._fields})
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise UserError(f"{quoted(path, 200)} holds no rollouts: {error}") from None
    if not parts:
        raise UserError("there are no rollouts to join")
    number = np.concatenate([part["number"] for part in parts])
    count = np.bincount(number)
    if (count != 1).any():
        wrong = int(np.flatnonzero(count != 1)[0])
        raise UserError(f"position {wrong} is in {count[wrong]} of the shards, not in one")
    games = [game for part in parts for game in decode(part.pop("saved_games").tobytes())]
    order = np.argsort(number)
    joined = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
    by_id = sorted(games, key=lambda game: [int(n) for n in game["id"].split("-")])
    return Rollouts(**joined, saved_games=by_id)


def center_share(games: VectorGame, rows: np.ndarray) -> np.ndarray:
    """Return the share of all owned supply centers, a solo counting for all: (rows, P) float32."""
    outcomes = games.outcomes(rows)
    centers, solo = outcomes.centers.astype(np.float32), outcomes.solo()
    share = centers / np.maximum(centers.sum(1, keepdims=True), 1)
    return np.where(solo.any(1, keepdims=True), solo.astype(np.float32), share)


def group_advantages(score: np.ndarray, floor: float = 1e-6) -> np.ndarray:
    """Return (score - mean) / spread over axis 1, the group; 0 where there is no spread."""
    mean, spread = score.mean(1, keepdims=True), score.std(1, keepdims=True)
    return np.where(spread > floor, (score - mean) / np.maximum(spread, floor), 0.0)


def fork(
    games: VectorGame,
    rows: Sequence[int] | np.ndarray,
    copies: int,
    *,
    years: int,
    players: Sequence[Player],
    seats: Sequence[int] | np.ndarray | None = None,
    score: Callable[[VectorGame, np.ndarray], np.ndarray] = center_share,
    note: Hook | None = None,
    record: int = 0,
    part: str = "1/1",
) -> Rollouts:
    """Copy positions, play every copy some years on, and score the powers within each group.

    `games` is made with auto_reset=False; copies of `rows` are played in its last rows,
    `destinations(games, positions, copies)`, and stay there. A rollout stops when it has been in
    `years` springs after its first phase, or with its game. `seats` (P,): the number in `players`
    of each power's player; `score`: (games, rows) -> (rows, P); `note` is called with games,
    decisions and their orders; `record` copies of each position are kept as saved games. Of `part`
    K/N only every N-th position is played, from the K-th on, as it is when all are: bots' copies
    come out alike, and `join_rollouts` joins what N machines saved.
    """
    rows = np.asarray(rows)
    number = np.arange(len(rows))[_part(part)]
    seats = np.zeros(games.num_powers, np.int64) if seats is None else np.asarray(seats)
    groups = destinations(games, len(rows), copies)
    if games.auto_reset or groups.min() <= rows.max():
        raise ValueError("fork needs auto_reset=False, and rows for its copies after the positions")
    groups, rows = groups[number], rows[number]
    played = groups.ravel()
    record = min(record, copies)
    games.copy_from(games, np.repeat(rows, copies), played)
    recorder = GameRecorder(groups[:, :record].ravel(), games)
    years_left = np.full(games.num_games, years)
    going = played[games.state.end[played] == RUNNING]
    while len(going):
        decisions = games.decisions(going)
        orders = ask_players(games, decisions, players, seats[decisions.power])
        if note is not None:
            note(games, decisions, orders)
        recorder.note(games, orders, going=going)
        games.step(orders, going)
        years_left[going[games.state.phase[going] == SPRING_MOVEMENT]] -= 1
        going = going[(games.state.end[going] == RUNNING) & (years_left[going] > 0)]
    shape = (len(rows), copies)
    player_names = {power: players[seat].name for power, seat in zip(games.map.powers, seats)}
    scores = np.asarray(score(games, played), np.float32).reshape(*shape, games.num_powers)
    saved = [
        game.to_saved_game()
        | {"id": f"{number[n // record]}-{n % record}", "players": player_names}
        for n, game in enumerate(recorder.replay(games))
    ]
    return Rollouts(
        scores,
        group_advantages(scores).astype(np.float32),
        games.state.end[played].reshape(shape),
        games.state.year[played].reshape(shape),
        saved,
        number,
    )


def _part(text: str) -> slice:
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    k, n = map(int, match.groups()) if match else (0, 0)
    if not 1 <= k <= n:
        raise UserError(f"a part is K/N, such as 2/8, not {quoted(text)}")
    return slice(k - 1, None, n)


def destinations(games: VectorGame, positions: int, copies: int) -> np.ndarray:
    """Return the rows in which `fork` plays, (positions, copies)."""
    first = games.num_games - positions * copies
    return np.arange(first, games.num_games).reshape(positions, copies)


def random_beginnings(
    games: VectorGame, most_phases: int, seed: int = 0, opening_share: float = 0.0
) -> np.ndarray:
    """Play a random number of phases of every game with random orders.

    Returns how many (E,), 0..most_phases, sampled by `seed`; the orders come from each game's own
    seed. Games that would end so, and `opening_share` of all, stay in the opening.
    """
    rng = np.random.default_rng(seed)
    phases = rng.integers(0, most_phases + 1, games.num_games)
    phases[rng.random(games.num_games) < opening_share] = 0
    games.reset()
    bot, rows = RandomBot(), np.arange(games.num_games)
    for played in range(most_phases):
        rows = rows[phases[rows] > played]
        if not len(rows):
            break
        ended = games.step(orders_of(games, bot, games.decisions(rows)), rows).ended != RUNNING
        if not games.auto_reset:
            games.reset(rows[ended])
        phases[rows[ended]] = 0
        rows = rows[~ended]
    return phases
