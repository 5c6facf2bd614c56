"""Games in which one power is an agent's. What is random comes from each game's own seed."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from .._suggest import quoted
from ..constants import AGREED, NONE
from ..errors import UserError
from ..games.decisions import Decisions, empty_decisions, filled
from ..games.vector_game import History, StepResult, VectorGame
from ..games.votes import bot_votes
from ..players.asking import ask_player, reads_history
from ..players.bots import RandomBot, make_bot
from ..players.loading import load_player
from ..players.protocols import Player
from ..rules.game_rules import GameRules
from ..rules.state import seed_from
from ..scoring.rewards import PAID_IN_FALL, REWARDS, reward_input
from ..scoring.teams import alive_with_team
from . import kernels
from .settings import AgentOptions, AgentSettings, Opponents


def list_opponents(opponents: Opponents) -> list[str | Path | Player]:
    """`opponents`: a bot's name, the path of a checkpoint, a Player, or a list of them."""
    if isinstance(opponents, str) or not isinstance(opponents, Sequence):
        opponents = [opponents]
    choices = list(opponents)
    if not choices or not all(
        isinstance(each, str | Path) or hasattr(each, "act") for each in choices
    ):
        raise UserError(f"opponents: expected players or their names, not {quoted(opponents)}")
    return choices


def seeds_of(numbers: Sequence[int]) -> np.ndarray:
    return np.array([seed_from(number) for number in numbers], np.uint64)


class AgentBoards:
    """E positions with an agent in each: what the forms read and write; see `assign_decisions`.
    `votes` (E,) says which agents vote for a draw in the coming step.

    A `gap` of 1 puts an entry for "no order" before each province's orders.
    """

    def __init__(self, games: VectorGame, gap: int):
        self.games, self._gap = games, gap
        num_games, provinces = games.num_games, len(games.board.terrain)
        self.mask_size = len(games.vocabulary) + (provinces - 1 if gap else 0)
        self.agent = np.zeros(num_games, np.int8)
        self.orders = games.new_orders()
        self.mask = np.zeros((num_games, self.mask_size), np.int8)
        self.queue = np.zeros((num_games, provinces), np.int16)
        self.queued = np.zeros(num_games, np.int16)
        self.every_row = np.arange(num_games)
        self.votes = np.zeros(num_games, bool)
        self._idle = np.zeros(num_games, np.int64)
        self._seats = kernels.AgentSeats(  # the agents', and nobody else's
            self.agent,
            np.zeros((num_games, games.num_powers), np.int16),
            np.zeros(num_games, np.int32),
            np.zeros(num_games, bool),
            NONE,
            NONE,
        )

    def assign(
        self, rows: np.ndarray, decisions: Decisions, decider: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """Assign the decisions of `rows` to agents or opponents, and write masks
        (`assign_decisions` explains `decider` and `counts`); return the rows without an agent's
        decision."""
        games = self.games
        boards = games.board, games.table, games.state, rows, decisions, self._seats, self._gap
        entries = self.orders, self.mask, self.queue, self.queued
        written = decider, counts, self._idle
        idle = games.call(kernels.assign_decisions, *boards, entries, *written)
        return rows if idle == len(rows) else self._idle[:idle].copy()


class AgentGames(AgentBoards):
    """E games with an agent in each; a finished one stays until `start`.

    `reward` (E,) is since the agent's last decision. With `movement_only` retreats and adjustments
    are `dumbbot-deepdip`'s.
    """

    def __init__(
        self,
        rules: GameRules,
        settings: AgentSettings,
        options: AgentOptions,
        gap: int,
        movement_only: bool = False,
    ):
        num_games = settings.num_envs
        games = VectorGame(rules, num_games, threads=settings.threads, auto_reset=False)
        super().__init__(games, gap)
        powers, provinces = games.num_powers, len(games.board.terrain)
        self._power = NONE if settings.power is None else games.map.power_number(settings.power)
        for index in range(powers) if self._power == NONE else [self._power]:
            if index not in games.board.start_unit_power and index not in games.board.home_power:
                raise UserError(f"{games.map.powers[index]} begins without a unit or a center")
        self._settings, self._script = settings, options.get("script")
        self._reward, self._teams = settings.reward_of(games.map), games.map.teams
        names = self._reward.parts.keys()
        self._pays = kernels.AT_END if names.isdisjoint(PAID_IN_FALL) else kernels.AFTER_CAPTURES
        if not names <= REWARDS.keys() or self._teams.text:
            self._pays = kernels.EVERY_STEP
        self._own = [RandomBot(), *([make_bot("dumbbot-deepdip")] if movement_only else [])]
        self.players: list[Player] = []
        self.set_opponents(options.get("opponents", "random"))
        self._decider = np.zeros(num_games * powers, np.int16)
        self.nothing = np.zeros(self.mask_size, np.int8)
        if gap:
            self.nothing[games.table.province_first[:-1] + np.arange(provinces)] = 1
        self.reward = np.zeros(num_games)
        self.terminated = np.zeros(num_games, bool)
        self.truncated = np.zeros(num_games, bool)
        self._row_buffers = [np.zeros(num_games, np.int64) for _ in range(4)]
        self._result: StepResult | None = None
        self._picked_buffers: Decisions | None = None
        self._counts = np.zeros(3, np.int64)
        self._on_over: Callable[[np.ndarray], None] | None = None

    def set_opponents(self, opponents: Opponents) -> None:
        new_players = [
            load_player(one, game_map=self.games.map, script=self._script)
            if isinstance(one, str | Path)
            else one
            for one in list_opponents(opponents)
        ]
        if self.games.history is None and reads_history(*new_players):
            self.games.history = History(self.games)
        players, seat = [*new_players, *self._own], self._seats.seat
        if self.players:  # those of games that are not over keep their seats, under new numbers
            used, place = np.unique(seat, return_inverse=True)
            seat[:] = (len(players) + place).reshape(seat.shape)
            players += [self.players[number] for number in used]
        self.players, self._num_opponents = players, len(new_players)
        helper = len(new_players) + 1 if len(self._own) > 1 else NONE
        self._seats = self._seats._replace(warm_up_player=len(new_players), helper=helper)
        self._player_counts = np.zeros(len(players), np.int32)

    def start(self, rows: np.ndarray, seeds: np.ndarray | None = None) -> None:
        """Start new games in `rows`, ascending integers, and play each to the agent's decision.

        `seeds`, uint64, are the new seeds of these rows; None: they keep theirs.
        """
        games = self.games
        if seeds is not None:
            games.seed_games(rows, seeds)
        self._set_up(rows)
        self._ask_and_play(rows)

    def _set_up(self, rows: np.ndarray) -> None:
        games = self.games
        games.reset(rows)
        choices = self._power, self._num_opponents, self._settings.most_warm_up_phases
        games.call(kernels.sample_seats, games.state, rows, *choices, self._seats)

    def play(self, rows: np.ndarray, on_over: Callable[[np.ndarray], None] | None = None) -> None:
        """Adjudicate `rows` and play on to the agent's decision or the game's end; `reward`,
        `terminated` and `truncated` (E,) are of this call.

        `on_over` is called with finished rows before new games start in them; without it these
        stay.
        """
        self._on_over = on_over
        self.reward.fill(0)
        self.terminated.fill(False)
        self.truncated.fill(False)
        if len(rows):
            self._ask_and_play(self._step(rows))
        self._on_over = None  # it is the caller's, and neither copied nor pickled

    def outcome(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return by name how finished games stand for their agents, a value for each of `rows`."""
        outcomes, game = self.games.outcomes(rows), np.arange(len(rows))
        mine, side = (game, self.agent[rows]), (game, self._teams.of_power[self.agent[rows]])
        by_side = outcomes.of_teams(self._teams.of_power) if self._teams.text else outcomes
        result = {
            "win": by_side.win()[side],
            "solo": by_side.solo()[side],
            "centers": outcomes.centers[mine].astype(np.int64),
            "years": outcomes.years.astype(np.int64),
        }
        if self.games.rules.draw_votes:
            result["agreed"] = outcomes.ended == AGREED
        return result | ({"eliminated": ~outcomes.alive[mine]} if self._teams.text else {})

    def _ask_and_play(self, rows: np.ndarray) -> None:
        while len(rows):
            rows = self._ask(rows)
            if len(rows):
                rows = self._step(rows)

    def _or_all(self, rows: np.ndarray) -> np.ndarray | None:
        return None if len(rows) == self.games.num_games else rows

    def _step(self, rows: np.ndarray) -> np.ndarray:
        games = self.games
        out = self._result  # usually of as many games
        out = None if out is None or len(out.ended) != len(rows) else out
        if games.rules.draw_votes:
            games.state.votes[:] = bot_votes(games, games.rules.draws_after or 0)
            games.state.votes[self.every_row, self.agent] = self.votes
            self.votes[rows] = False
        self._result = result = games.step(self.orders, self._or_all(rows), out)
        alive = result.alive  # with teams, an agent's game goes on while its team lives
        if self._teams.text:
            alive = alive_with_team(alive, self._teams.of_power)
        ends = result.ended, result.captured, alive
        written = self.terminated, self.truncated, *self._row_buffers
        goes_on, may_pay, are_over, starts_again = games.call(
            kernels.settle, rows, *ends, self._seats, self._pays, *written
        )
        on, paying, over, again = self._row_buffers
        if may_pay:
            self._pay(rows, result, paying[:may_pay])
        if goes_on == len(rows):
            return rows
        anew = again[:starts_again].copy()
        if are_over:
            finished = over[:are_over].copy()
            self.mask[finished] = self.nothing
            self.queued[finished] = 0
            if self._on_over is not None:
                self._on_over(finished)
                anew = np.concatenate([anew, finished])
        if len(anew):
            self._set_up(anew)
            return np.sort(np.concatenate([on[:goes_on], anew]))
        return on[:goes_on].copy()

    def _pay(self, rows: np.ndarray, result: StepResult, some: np.ndarray) -> None:
        part = StepResult(*(array[some] for array in result))
        victory_centers = self.games.board.victory_centers
        pays_limit = self.games.rules.year_limit == "draw"
        paid = self._reward(reward_input(part, victory_centers, pays_limit))
        mine = rows[some]
        self.reward[mine] += paid[np.arange(len(some)), self.agent[mine]]

    def _ask(self, rows: np.ndarray) -> np.ndarray:
        games = self.games
        decisions = games.decisions(self._or_all(rows), reuse=True)
        decider, counts = self._decider[: decisions.count], self._player_counts
        counts.fill(0)
        rows = self.assign(rows, decisions, decider, counts)
        for number, count in enumerate(counts.tolist()):
            if count:
                mine = decisions
                if count < len(decider):
                    mine = self._picked(decisions, decider, number)
                games.write_orders(self.orders, mine, ask_player(games, mine, self.players[number]))
        return rows

    def _picked(self, decisions: Decisions, decider: np.ndarray, player: int) -> Decisions:
        """The decisions that a player makes, in arrays that the next call overwrites."""
        buffers, slots = self._picked_buffers, len(decisions.slot_province)
        if (
            buffers is None
            or len(buffers.order) < len(decisions.order)
            or len(buffers.slot_province) < slots
        ):
            # There are at least as many slots as decisions.
            buffers = empty_decisions(2 * slots, 2 * slots, 2 * len(decisions.order))
            self._picked_buffers = buffers
        self.games.call(kernels.pick_decisions, decisions, decider, player, buffers, self._counts)
        return filled(buffers, *self._counts.tolist())
