"""The forms in which an environment asks for orders: spaces, observations, masks and actions."""

import json
import string

import numpy as np
from gymnasium import spaces

from .._arrays import Int8s
from ..constants import NONE, phase_name
from ..errors import UserError
from ..games.observation import feature_sizes
from ..games.vector_game import VectorGame
from ..rules.notation import unit_of
from ..rules.state import is_retreat
from ..textgame.game import Game
from ..textgame.position import STATE_KEYS
from .agent_games import AgentBoards
from .kernels import (
    deepdip_observation,
    mask_slots,
    take_deepdip_actions,
    take_province_actions,
    take_unit_actions,
)

MOST_SHOWN, MOST_ORDERED = 10**6, 10**4  # characters of a text that is observed, of an action


def observation_space(games: VectorGame) -> spaces.Dict:
    powers, provinces = games.num_powers, len(games.board.terrain)
    centers = len(games.board.center_province)
    years = games.max_years or np.iinfo(np.int16).max - games.board.first_year
    # A position in a retreat phase has up to two units in a province.
    low = [0, 0, -1, 0, *[0] * powers, *[0] * powers, *[-2 * provinces] * powers]
    high = [4, years, years, powers - 1]
    high += [*[centers] * powers, *[2 * provinces] * powers, *[centers] * powers]
    most = (np.array(feature_sizes(powers)) - 1).astype(np.int8)
    board = spaces.Box(np.int8(0), np.tile(most, (provinces, 1)), dtype=np.int8)
    scalars = spaces.Box(*np.array([low, high], np.int16), dtype=np.int16)
    return spaces.Dict({"board": board, "last_order": _orders_space(games), "scalars": scalars})


def _orders_space(games: VectorGame) -> spaces.Box:
    shape = (len(games.board.terrain),)
    return spaces.Box(NONE, len(games.vocabulary) - 1, shape, np.int32)


Mask = np.ndarray | tuple[Int8s, ...]
Taken = tuple[np.ndarray, np.ndarray]  # the rows that are ready; numbers of illegal orders (E,)
One = dict[str, np.ndarray] | np.ndarray | str  # what an agent observes
Many = dict[str, np.ndarray] | np.ndarray | tuple[str, ...]  # the same of some agents


class MaskedActions(spaces.MultiDiscrete):
    """A MultiDiscrete whose `sample` takes masks as `info` has them: all parts in one array."""

    def sample(self, mask: Mask | None = None, probability: Mask | None = None) -> np.ndarray:
        """See gymnasium.spaces.MultiDiscrete.sample; a mask may also be (sum of nvec,) int8."""
        parts = (self.split(m) if isinstance(m, np.ndarray) else m for m in (mask, probability))
        return super().sample(*parts)

    def split(self, mask: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the parts of a mask, one array for each entry, as any MultiDiscrete takes them."""
        return tuple(np.split(mask, np.cumsum(self.nvec)[:-1]))


def province_space(games: VectorGame) -> MaskedActions:
    return MaskedActions(np.diff(games.table.province_first) + 1)


def flat_scale(space: spaces.Space) -> np.ndarray:
    """Return the most that each number of a flat observation can be, (numbers,) at least 1."""
    if isinstance(space, spaces.Dict):
        return np.concatenate([flat_scale(space[name]) for name in sorted(space)])
    if isinstance(space, spaces.Box):
        most = np.maximum(np.abs(space.low.astype(float)), np.abs(space.high.astype(float)))
    elif isinstance(space, spaces.MultiDiscrete):
        most = space.nvec - 1
    elif isinstance(space, spaces.Discrete):
        most = np.array(space.n - 1)
    else:
        most = np.ones(spaces.flatdim(space))  # MultiBinary
    return np.maximum(most, 1).ravel()


def flat_space(scale: np.ndarray) -> spaces.Box:
    return spaces.Box(-1, 1, scale.shape, np.float32)


def flattened(obs: One | Many, rows: int, scale: np.ndarray) -> np.ndarray:
    """Return observations of `rows` agents as (rows, numbers) float32 from -1 to 1, each divided by
    its `flat_scale`, parts by their names."""
    parts = [obs[name] for name in sorted(obs)] if isinstance(obs, dict) else [obs]
    flat = np.concatenate([np.reshape(part, (rows, -1)) for part in parts], 1)
    return (flat / scale).astype(np.float32)


def province_action(games: VectorGame, action: int, v: int) -> str:
    first, last = games.table.province_first[v : v + 2]
    if action == 0:
        return "action 0 (no order)"
    if not 0 < action <= last - first:
        return f"action {action}, not in 0..{last - first},"
    return f"action {action} ({games.vocabulary.texts[first + action - 1]!r})"


def row_of(obs: Many, row: int) -> One:
    return {k: array[row] for k, array in obs.items()} if isinstance(obs, dict) else obs[row]


def unit_text(games: VectorGame, row: int, v: int) -> str:
    state = games.state
    kind, location = state.unit_kind[row, v], state.unit_location[row, v]
    if is_retreat(state.phase[row]):
        kind, location = state.dislodged_kind[row, v], state.dislodged_location[row, v]
    if kind == NONE:
        return games.map.provinces[v]
    return games.map.unit_text(int(kind), int(location))


def illegal_order(games: VectorGame, row: int, unit: str, order: str) -> UserError:
    phase = phase_name(int(games.state.year[row]), int(games.state.phase[row]))
    where = f" of game {row}" if games.num_games > 1 else ""
    return UserError(f"{unit}: {order} is not legal in {phase}{where}")


class ProvinceForm:
    """An action has one entry for each province: 0 for no order, else the order's place, from 1.

    A province's orders stand in the order of the map's vocabulary. Masks have the entries of all
    provinces one after the other.
    """

    gap, movement_only = 1, False  # arguments of AgentGames
    observation_space: spaces.Space
    action_space: spaces.Space

    def __init__(self, agents: AgentBoards):
        self._agents, self._games = agents, agents.games
        games = self._games
        self.observation_space = observation_space(games)
        self.action_space = province_space(games)
        self._illegal = np.zeros(games.num_games, np.int64)

    def asked(self, rows: np.ndarray) -> None:
        """Note that `rows` have reached a decision of the agent, or their end."""

    def observe(self, rows: np.ndarray) -> Many:
        return self._games.observe_powers(rows, self._agents.agent[rows])._asdict()

    def masks(self, rows: np.ndarray) -> np.ndarray | None:
        """(rows, M) int8; None: the form has none."""
        return self._agents.mask.take(rows, 0)

    def take(self, action: object, strict: bool, many: tuple[int, ...] = ()) -> Taken:
        """Write the orders of an action, or of `many` (E,); UserError if it is no action.

        Returns the rows that are ready, and the numbers of illegal orders (E,). If `strict`, an
        illegal order raises UserError instead.
        """
        actions = _integers(self.action_space, action, many)
        games, bad = self._games, self._write(actions, strict)
        if strict and bad != NONE:
            row, v = divmod(bad, actions.shape[1])
            order = self._in_words(int(actions[row, v]), v)
            raise illegal_order(games, row, unit_text(games, row, v), order)
        return self._agents.every_row, self._illegal

    def _write(self, actions: np.ndarray, strict: bool) -> int:
        agents, first = self._agents, self._games.table.province_first
        return self._games.call(
            take_province_actions, actions, agents.mask, first, strict, agents.orders, self._illegal
        )

    def _in_words(self, action: int, v: int) -> str:
        return province_action(self._games, action, v)


def _integers(space: spaces.Space, action: object, many: tuple[int, ...]) -> np.ndarray:
    """Return an action, or `many`, as (E, ...) int64."""
    array, shape = np.asarray(action), (*many, *(space.shape or ()))
    if array.shape != shape or array.dtype.kind not in "iu":
        actual = f"{array.dtype} of shape {array.shape}"
        raise UserError(f"an action must be integers of shape {shape}, not {actual}")
    return np.asarray(array, np.int64, order="C").reshape(-1, *shape[len(many) :])


class SequentialForm(ProvinceForm):
    """An action is the number of one order, for one unit after the other.

    `province` is whose unit is to be ordered (V for an adjustment), `given` the orders already
    given in this phase.
    """

    gap = 0

    def __init__(self, agents: AgentBoards):
        super().__init__(agents)
        games = self._games
        provinces = len(games.board.terrain)
        self.observation_space = spaces.Dict(
            {
                **observation_space(games),
                "given": _orders_space(games),
                "province": spaces.Discrete(provinces + 1),
            }
        )
        self.action_space = spaces.Discrete(len(games.vocabulary))
        self._at = np.zeros(games.num_games, np.int64)
        self._phase_orders = games.new_orders()

    def asked(self, rows: np.ndarray) -> None:
        self._at[rows] = 0
        self._phase_orders[rows] = NONE

    def observe(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        agents = self._agents
        at = np.minimum(self._at[rows], agents.queue.shape[1] - 1)
        province = agents.queue[rows, at].astype(np.int64)
        nothing = (province == NONE) | (agents.queued[rows] == 0)
        province[nothing] = agents.queue.shape[1]
        shared = self._games.observe_powers(rows, agents.agent[rows])._asdict()
        return shared | {"given": self._phase_orders[rows], "province": province}

    def masks(self, rows: np.ndarray) -> np.ndarray | None:
        agents, games = self._agents, self._games
        out = np.zeros_like(agents.mask)
        read = agents.mask, agents.queue, agents.queued, self._at
        games.call(mask_slots, games.table, *read, out)
        return out if rows is agents.every_row else out.take(rows, 0)

    def take(self, action: object, strict: bool, many: tuple[int, ...] = ()) -> Taken:
        agents, games = self._agents, self._games
        actions = _integers(self.action_space, action, many)
        written = agents.orders, self._phase_orders, self._illegal
        read = games.board, games.table, actions, agents.queue, self._at, strict, agents.mask
        bad = games.call(take_unit_actions, *read, *written)
        if strict and bad != NONE:
            v, texts = int(agents.queue[bad, self._at[bad]]), games.vocabulary.texts
            unit = "adjustment" if v == NONE else unit_text(games, bad, v)
            number = int(actions[bad])
            text = (
                repr(texts[number]) if 0 <= number < len(texts) else f"not in 0..{len(texts) - 1}"
            )
            raise illegal_order(games, bad, unit, f"action {number} ({text})")
        return np.flatnonzero(self._at == agents.queued), self._illegal


class DeepDipForm(ProvinceForm):
    """The DeepDip thesis' formulation of the game (Cruz 2019).

    docs/other_libraries.md says what its numbers mean. There is no mask; invalid orders hold, and
    are ignored where the agent has no unit. Retreats and adjustments are `dumbbot-deepdip`'s.
    """

    gap, movement_only = 0, True

    def __init__(self, agents: AgentBoards):
        super().__init__(agents)
        powers, provinces = self._games.num_powers, len(self._games.board.terrain)
        units = len(self._games.map.unit_powers) + 1
        self.observation_space = spaces.MultiDiscrete([2, powers + 1, units] * provinces)
        self.action_space = spaces.MultiDiscrete([1 + 2 * provinces] * provinces)

    def observe(self, rows: np.ndarray) -> np.ndarray:
        """(rows, 3 V) int64."""
        games = self._games
        out = np.empty((len(rows), 3 * len(games.board.terrain)), np.int64)
        games.call(deepdip_observation, games.board, games.state, rows, self._agents.agent, out)
        return out

    def masks(self, rows: np.ndarray) -> None:
        pass

    def _write(self, actions: np.ndarray, strict: bool) -> int:
        agents, games = self._agents, self._games
        written = agents.mask, agents.queue, agents.queued, agents.orders, self._illegal
        return games.call(take_deepdip_actions, games.board, games.table, actions, *written)

    def _in_words(self, action: int, v: int) -> str:
        return f"action {action}"


class TextForm(ProvinceForm):
    """Positions as JSON and orders as texts, one on each line, as language models want them.

    A position has `power`, the keys of a saved game's states and `legal_orders` by unit. Orders are
    read as `Game.submit` reads them. There is no mask.
    """

    gap = 0

    def __init__(self, agents: AgentBoards):
        super().__init__(agents)
        self.observation_space = spaces.Text(MOST_SHOWN, charset=string.printable)
        self.action_space = spaces.Text(MOST_ORDERED, min_length=0, charset=string.printable)
        self._shown: dict[int, Game] = {}  # by row, the position in which orders are due

    def asked(self, rows: np.ndarray) -> None:
        self._shown |= {row: Game.from_row(self._games, row) for row in rows.tolist()}

    def observe(self, rows: np.ndarray) -> tuple[str, ...]:
        return tuple(map(self._position, rows.tolist()))

    def _position(self, row: int) -> str:
        legal_orders: dict[str, list[str]] = {}
        for number in np.flatnonzero(self._agents.mask[row]).tolist():
            order = self._games.vocabulary.texts[number]
            legal_orders.setdefault(unit_of(order), []).append(order)
        state = self._shown[row].to_state()
        shown = {key: state[key] for key in (*STATE_KEYS, "builds") if key in state}
        return json.dumps({"power": self._power(row), **shown, "legal_orders": legal_orders})

    def _power(self, row: int) -> str:
        return self._games.map.powers[self._agents.agent[row]]

    def masks(self, rows: np.ndarray) -> None:
        pass

    def take(self, action: object, strict: bool, many: tuple[int, ...] = ()) -> Taken:
        texts = action if many else [action]
        texts = list(texts) if isinstance(texts, (list, tuple, np.ndarray)) else []
        count = many[0] if many else 1
        if len(texts) != count or not all(isinstance(text, str) for text in texts):
            raise UserError(
                f"an action must be {f'{count} texts' if many else 'a text'} of orders, one on a "
                f"line, not {action!r:.80}"
            )
        agents = self._agents
        for row, text in enumerate(texts):
            orders = [line for line in text.splitlines() if line.strip()]
            self._illegal[row] = len(self._shown[row].submit(self._power(row), orders, strict))
        for row in range(count):
            for province, order in self._shown[row].order_numbers().items():
                agents.orders[row, province] = order
        return agents.every_row, self._illegal


FORMS: dict[str, type[ProvinceForm]] = {
    "provinces": ProvinceForm,
    "sequential": SequentialForm,
    "deepdip": DeepDipForm,
    "text": TextForm,
}


class VoteForm:
    """Another form, a MultiDiscrete one, whose actions end with a vote for a draw.

    1 votes for one, 0 does not; another number is illegal, and no vote. A mask has two more entries
    for it.
    """

    def __init__(self, form: ProvinceForm, agents: AgentBoards):
        self._form, self._agents = form, agents
        self.asked, self.observe = form.asked, form.observe
        self.observation_space = form.observation_space
        self.action_space = with_vote(form.action_space)

    def masks(self, rows: np.ndarray) -> np.ndarray | None:
        masks = self._form.masks(rows)
        return None if masks is None else with_vote_open(masks)

    def take(self, action: object, strict: bool, many: tuple[int, ...] = ()) -> Taken:
        actions = _integers(self.action_space, action, many)
        votes = actions[:, -1]
        wrong = (votes != 0) & (votes != 1)
        if strict and wrong.any():
            row = int(wrong.argmax())
            raise illegal_order(self._agents.games, row, "the vote", str(votes[row]))
        ready, illegal = self._form.take(actions[:, :-1], strict, (len(votes),))
        self._agents.votes[: len(votes)] = votes == 1
        return ready, illegal[: len(votes)] + wrong


class FlatForm:
    """Another form whose observations are vectors: all parts one after the other."""

    def __init__(self, form: ProvinceForm | VoteForm):
        self._form, self.action_space = form, form.action_space
        self.asked, self.masks, self.take = form.asked, form.masks, form.take
        self._scale = flat_scale(form.observation_space)
        self.observation_space = flat_space(self._scale)

    def observe(self, rows: np.ndarray) -> np.ndarray:
        return flattened(self._form.observe(rows), len(rows), self._scale)


Form = ProvinceForm | VoteForm | FlatForm


def make_form(name: str, agents: AgentBoards, draw_votes: bool, flat: bool) -> Form:
    plain = FORMS[name](agents)
    form = VoteForm(plain, agents) if draw_votes else plain
    return FlatForm(form) if flat else form


def check_form(form: str, draw_votes: bool, flat: bool) -> None:
    """Raise UserError if a form cannot have votes or flat observations."""
    if draw_votes and form not in ("provinces", "deepdip"):
        raise UserError(f"draw_votes: needs the form provinces or deepdip, not {form}")
    if flat and form == "text":
        raise UserError("flat: needs a form whose observations are numbers, not text")


def with_vote(space: spaces.Space) -> MaskedActions:
    assert isinstance(space, spaces.MultiDiscrete)  # see check_form
    return MaskedActions(np.append(space.nvec, 2))


def with_vote_open(masks: np.ndarray) -> np.ndarray:
    return np.concatenate([masks, np.ones((len(masks), 2), masks.dtype)], 1)
