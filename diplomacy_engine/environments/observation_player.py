"""A policy that another library trained in an environment, as a player of this engine;
docs/other_libraries.md and examples/sb3_self_play.py show it in use."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from .._suggest import player_name, quoted
from ..constants import NONE
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.draws import phase_seeds
from ..games.vector_game import VectorGame
from ..players.asking import ask_player
from ..players.bots import make_bot
from ..records import convert
from ..rules.map import Map, load_map
from ..rules.state import Salt, in_movement
from ..rules.vocabulary import vocabulary
from .agent_games import AgentBoards
from .forms import FORMS, Form, Many, One, check_form, make_form, row_of
from .settings import AgentSettings


class ObservationPlayer:
    """A player by a policy over the observations of a single-agent environment.

    The policy gets all pending decisions at once, as in `DiplomacyVectorEnv`. In the form `deepdip`
    `dumbbot-deepdip` orders retreats and adjustments, as in that environment.

    Args:
        policy: of observations and masks, returns actions. Observations are those of the vector
            environment: arrays, D rows each, in a dictionary or (deepdip) alone, or D texts; masks
            are (D, M) int8, or None for deepdip and text; actions are integers, one for each of D
            rows, or D texts.
        form: of the environment in which it was trained: `provinces`, `sequential`, `deepdip` or
            `text`.
        name: of the player.
        game_map: the map of its training; games on other maps are refused. None: any.
        single: the policy gets one decision at a time, without the first axis, as in
            `DiplomacyEnv`.
        draw_votes: it was trained with them: a mask ends with two entries, an action with a vote.
            The vote has no effect: in a match, players vote as bots do.
        flat: it was trained with `flat=True`, on vectors.
        strict: an order outside the mask is a UserError. Otherwise it counts as none.
        seed: seeds the policy's random numbers, such as `torch.manual_seed`. It is called with the
            seed of each decision, and the policy then gets this decision alone. Without it a policy
            that samples gives other orders each time.
    """

    __repr__ = player_name

    reads_history = False

    def __init__(
        self,
        policy: Callable[[One | Many, np.ndarray | None], object],
        form: str = "provinces",
        *,
        name: str = "policy",
        game_map: str | Path | Map | None = None,
        single: bool = False,
        draw_votes: bool = False,
        flat: bool = False,
        strict: bool = False,
        seed: Callable[[int], object] | None = None,
    ):
        """See the class for the arguments."""
        self.name = name
        self._policy = policy
        self._form_name = convert(AgentSettings, {"form": form}, "this player").form
        check_form(form, draw_votes, flat)
        self._map = None if game_map is None else load_map(game_map)
        self._single, self._draw_votes, self._strict = single, draw_votes, strict
        self._seed = seed
        self._helper, self._flat = None, flat
        if FORMS[form].movement_only:
            self._helper = make_bot("dumbbot-deepdip")
        self._room: tuple[AgentBoards, Form] | None = None

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """Return an order number for each slot, (S,) int32; see Player.

        UserError: another map, or the policy's actions have the wrong shape or type, or strict and
        an illegal order.
        """
        if self._helper is None:
            return self._ask(games, decisions)
        movement = in_movement(games.state, decisions.game)
        slot_moves = np.repeat(movement, np.diff(decisions.slot_start))
        numbers = np.empty(len(slot_moves), np.int32)
        if not movement.all():
            numbers[~slot_moves] = ask_player(games, decisions.take(~movement), self._helper)
        if movement.any():
            numbers[slot_moves] = self._ask(games, decisions.take(movement))
        return numbers

    def _ask(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        if self._seed is None:
            return self._numbers(games, decisions)
        seeds = phase_seeds(games, decisions.game, decisions.power, Salt.POLICY)[:, 0]
        parts = [np.zeros(0, np.int32)]
        for d, seed in enumerate(seeds.tolist()):
            self._seed(seed)
            parts.append(self._numbers(games, decisions.take(np.array([d]))))
        return np.concatenate(parts)

    def _numbers(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        slots = np.diff(decisions.slot_start)
        place = np.argsort(-slots, kind="stable")  # so that those with slots left are in front
        orders = self._play(games, decisions.take(place))[np.argsort(place)]
        # An order of winter has no slot of its own: they come one after the other, by province.
        compact = np.take_along_axis(orders, np.argsort(orders == NONE, axis=1, kind="stable"), 1)
        decision, province = decisions.slot_decision, decisions.slot_province
        nth = np.arange(len(decision)) - decisions.slot_start[decision]
        return np.where(province == NONE, compact[decision, nth], orders[decision, province])

    def _play(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        """The orders of decisions, (D, V) int32, of which those with more slots come first. Each
        decision has a board to itself, as in an environment, which its game is copied to."""
        boards, form = self._prepared(games, decisions.count)
        rows, slots = boards.every_row[: decisions.count], np.diff(decisions.slot_start)
        boards.games.copy_from(games, decisions.game, rows, keep_seeds=True)
        boards.agent[rows] = decisions.power
        boards.queued[:] = 0
        renumbered = decisions._replace(game=rows.astype(np.int32))
        decider, counts = np.zeros(decisions.count, np.int16), np.zeros(1, np.int32)
        boards.assign(rows, renumbered, decider, counts)
        form.asked(boards.every_row)
        one_by_one = form.action_space.shape == ()
        for done in range(slots.max() if one_by_one else 1):
            open_rows = rows[slots > done]
            try:
                actions = self._actions(form, open_rows)
                _, illegal = form.take(actions, False, open_rows.shape)
            except UserError as error:
                raise UserError(f"player {quoted(self.name, 60)}: {error}") from None
            if self._strict and illegal[open_rows].any():
                row = open_rows[illegal[open_rows] > 0][0]
                power = games.map.powers[decisions.power[row]]
                raise UserError(f"player {quoted(self.name, 60)}: an order of {power} is illegal")
        return boards.orders[rows]

    def _prepared(self, games: VectorGame, count: int) -> tuple[AgentBoards, Form]:
        if self._map is not None and games.vocabulary.hash != vocabulary(self._map).hash:
            ours, theirs = self._map.name, games.map.name
            raise UserError(f"player {quoted(self.name, 60)} plays on {ours!r}, not {theirs!r}")
        room = self._room
        if room is None or room[0].games.num_games < count or not room[0].games.is_like(games):
            boards = AgentBoards(games.spare(count), FORMS[self._form_name].gap)
            form = make_form(self._form_name, boards, self._draw_votes, self._flat)
            room = self._room = boards, form
        return room

    def _actions(self, form: Form, rows: np.ndarray) -> object:
        obs, masks = form.observe(rows), form.masks(rows)
        if not self._single:
            return self._policy(obs, masks)
        of_rows = [None] * len(rows) if masks is None else masks
        return list(map(self._policy, [row_of(obs, i) for i in range(len(rows))], of_rows))
