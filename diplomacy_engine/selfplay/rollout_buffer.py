"""What the learner has seen and done since its last update, in ragged streams."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from ..constants import NONE
from ..games.decisions import Decisions, join_decisions, ragged_rows
from ..games.observation import UNIT_KIND, UNIT_OWNER, BoardViews, feature_sizes
from ..games.vector_game import VectorGame
from ..press.views import OfferViews, TalkViews


class Experience(NamedTuple):
    """Decisions of the learner, as the network saw and took them; first axis D throughout."""

    obs: BoardViews | TalkViews | OfferViews
    decisions: Decisions
    chosen: np.ndarray  # (S,) int64, position of the chosen order in each slot's list

    def take(self, rows: np.ndarray) -> "Experience":
        """Return the decisions of the given rows, in that order."""
        decisions = self.decisions.take(rows)
        slots = ragged_rows(self.decisions.slot_start[rows], decisions.slot_start)
        return Experience(self.obs.take(rows), decisions, self.chosen[slots])

    @staticmethod
    def join(parts: "list[Experience]") -> "Experience":
        """Return all rows of `parts`, one part after the other."""
        if not parts:
            none = np.zeros(0, np.int64)
            return Experience(BoardViews(*[none] * 5), join_decisions([]), none)
        obs, decisions, chosen = zip(*parts)
        return Experience(obs[0].join(obs), join_decisions(decisions), np.concatenate(chosen))


class Batch(NamedTuple):
    """Transitions to learn from; (B,) float32 arrays beside the experience."""

    experience: Experience
    logprobs: np.ndarray
    values: np.ndarray
    advantages: np.ndarray
    returns: np.ndarray
    kl_term: np.ndarray  # added to advantages that have been normalised

    def take(self, rows: np.ndarray) -> "Batch":
        """Return the transitions of the given rows, in that order."""
        return Batch(self.experience.take(rows), *(array[rows] for array in self[1:]))

    def split(
        self,
        count: int,
        rng: np.random.Generator | None = None,
        among: np.ndarray | slice = slice(None),
    ) -> list[np.ndarray]:
        """Return the rows of up to `count` parts; all decisions on one board are in one part.

        The boards are dealt out at random, or in their order without `rng`. With `among`, only
        those rows are split, and the parts are places in it.
        """
        board, row = np.unique(self.experience.obs.row[among], return_inverse=True)
        boards = len(board)
        turn = (np.arange(boards) if rng is None else rng.permutation(boards))[row]
        rows = np.argsort(turn, kind="stable")
        edges = np.arange(1, count) * boards // count
        parts = np.split(rows, np.searchsorted(turn[rows], edges))
        return [part for part in parts if len(part)]


class RolloutBuffer:
    """The learner's transitions. A stream is one learner seat of one game row.

    Column s of the (T, streams) arrays is stream s, filled up to `count[s]`. Its last transition
    may be open: orders given, but the outcome, up to the power's next decision, still to come.
    What the network saw is kept in rows in the order of collection; `row` tells whose is whose.

    Beside that it counts episodes, a seat's decisions in one game, and what they are paid.

    Args:
        num_steps: decisions of a stream at most.
        num_streams: learner seats of all games.
        parts: names of the rewards that are added up; each is counted by itself, too.
    """

    def __init__(self, num_steps: int, num_streams: int, parts: Iterable[str] = ()):
        self.num_steps, self.num_streams, self.parts = num_steps, num_streams, list(parts)
        # Of the running episode, and summed up over those that ended: decisions, return, its parts.
        self.episode = np.zeros((num_streams, 2 + len(self.parts)))
        self.episode_sums = np.zeros(2 + len(self.parts))
        self.episodes = 0
        self._clear()

    def _clear(self) -> None:
        shape = (self.num_steps, self.num_streams)
        self.rewards = np.zeros(shape, np.float32)
        self.values = np.zeros(shape, np.float32)
        self.next_values = np.zeros(shape, np.float32)
        self.logprobs = np.zeros(shape, np.float32)
        self.ends = np.zeros(shape, bool)
        self.closed = np.zeros(shape, bool)
        self.row = np.zeros(shape, np.int64)
        self.count = np.zeros(self.num_streams, np.int64)
        self.open = np.zeros(self.num_streams, bool)
        self.num_rows = 0
        self.collected: list[Experience] = []

    def add(
        self, streams: np.ndarray, experience: Experience, logprobs: np.ndarray, values: np.ndarray
    ) -> None:
        """Store one new decision for each of `streams`; it closes the stream's open one."""
        self.episode[streams, 0] += 1
        was_open = self.open[streams]
        self._close(streams[was_open], values[was_open], ends=False)
        t = self.count[streams]
        self.values[t, streams] = values
        self.logprobs[t, streams] = logprobs
        self.row[t, streams] = self.num_rows + np.arange(len(streams))
        self.count[streams] += 1
        self.open[streams] = True
        self.num_rows += len(streams)
        self.collected.append(experience)

    def reward(self, rewards: np.ndarray, parts: Mapping[str, np.ndarray] | None = None) -> None:
        """Credit `rewards` (streams,) to the open transitions.

        `parts` are the rewards that they add up, without their weights, by name.
        """
        streams = np.flatnonzero(self.open)
        self.rewards[self.count[streams] - 1, streams] += rewards[streams]
        self.episode[streams, 1] += rewards[streams]
        for column, name in enumerate(self.parts, 2):
            self.episode[streams, column] += parts[name][streams]

    def finish(
        self,
        streams: np.ndarray,
        final_values: np.ndarray | float = 0.0,
        game_over: bool = True,
    ) -> None:
        """Close the open transitions of `streams` as the last of their episodes.

        `final_values` is 0 after a terminal end, else the value (streams,) of the final positions.
        Without `game_over` training ends, not the games, and no episode is counted.
        """
        final_values = np.broadcast_to(np.asarray(final_values, np.float32), streams.shape)
        was_open = self.open[streams]
        if game_over:
            ended = streams[was_open]
            self.episodes += len(ended)
            self.episode_sums += self.episode[ended].sum(0)
            self.episode[ended] = 0
        self._close(streams[was_open], final_values[was_open], ends=True)

    def _close(self, streams: np.ndarray, next_values: np.ndarray, ends: bool) -> None:
        t = self.count[streams] - 1
        self.next_values[t, streams] = next_values
        self.ends[t, streams] = ends
        self.closed[t, streams] = True
        self.open[streams] = False

    def take_episodes(
        self, total: Callable[[dict[str, float]], dict[str, float]] = lambda sums: sums
    ) -> dict[str, float]:
        """Return means over the episodes that have ended since the last call, and forget them.

        `episodic_length` counts decisions, `episodic_return` is the sum of the trained reward,
        without discount, `episodic_return_NAME` that of a reward of a mix, without its weight.
        Nothing if no episode has ended.

        Args:
            total: adds up the sums of processes that train together.
        """
        names = ["episodic_length", "episodic_return"]
        if len(self.parts) > 1:
            names += [f"episodic_return_{part}" for part in self.parts]
        sums = total(dict(zip(names, self.episode_sums.tolist())) | {"episodes": self.episodes})
        self.episodes = 0
        self.episode_sums[:] = 0
        count = sums.pop("episodes")
        return {name: found / count for name, found in sums.items()} if count else {}

    @property
    def trajectory(self) -> tuple[np.ndarray, ...]:
        """Return rewards, values, next values, ends, closed: (T, streams) each."""
        return self.rewards, self.values, self.next_values, self.ends, self.closed

    @property
    def is_full(self) -> bool:
        """Whether a stream holds `num_steps` decisions."""
        return bool(self.count.max() >= self.num_steps)

    def take_batch(self, advantages: np.ndarray) -> Batch:
        """Return all closed transitions and forget them; open ones carry over to the next batch.

        `advantages` is (T, streams), of the closed transitions.
        """
        experience = Experience.join(self.collected)
        values, advantages = self.values[self.closed], advantages[self.closed]
        batch = Batch(
            experience.take(self.row[self.closed]),
            self.logprobs[self.closed],
            values,
            advantages,
            advantages + values,
            np.zeros_like(values),
        )
        streams = np.flatnonzero(self.open)
        t = self.count[streams] - 1
        carried = experience.take(self.row[t, streams])
        rewards, values = self.rewards[t, streams], self.values[t, streams]
        logprobs = self.logprobs[t, streams]
        self._clear()
        if len(streams):
            self.add(streams, carried, logprobs, values)
            self.episode[streams, 0] -= 1  # counted before
            self.rewards[0, streams] = rewards
        return batch

    def state_dict(self) -> dict:
        """Return all of it for a checkpoint."""
        saved = {name: value for name, value in vars(self).items() if name != "collected"}
        joined = [Experience.join(self.collected)] if self.collected else []
        return saved | {"collected": [(tuple(e.obs), tuple(e.decisions), e.chosen) for e in joined]}

    def load_state_dict(self, saved: dict, games: VectorGame) -> None:
        """Go on from a `state_dict()` of decisions in `games`.

        Raises:
            KeyError, TypeError, ValueError: it is none. A file may come from anybody, and kernels
                use what is in it as indices unchecked.
        """
        ranges = {"row": (0, None), "count": (0, self.num_steps - 1)}
        found = {
            name: checked(saved, name, array, *ranges.get(name, ()))
            for name, array in vars(self).items()
            if isinstance(array, np.ndarray)
        }
        parts = [_experience(*part, games) for part in saved["collected"]]
        (experience,) = parts or [Experience.join([])]
        count, is_open, rows = found["count"], found["open"], len(experience.obs.row)
        step = np.arange(self.num_steps)[:, None]
        sizes = saved["num_steps"], saved["num_streams"], saved["num_rows"]
        if sizes != (self.num_steps, self.num_streams, rows):
            raise ValueError("the buffer's sizes do not fit")
        episodes = saved["episodes"]
        if type(episodes) is not int or not 0 <= episodes < 2**62:
            raise ValueError("'episodes' cannot be")
        filled = step < count
        if (is_open & (count == 0)).any() or (
            found["closed"] != (filled & ~(is_open & (step == count - 1)))
        ).any():
            raise ValueError("the buffer's 'open', 'closed' and 'count' disagree")
        if (filled & (found["row"] >= rows)).any():
            raise ValueError("the buffer's 'row' names decisions that are not there")
        vars(self).update(found, num_rows=rows, episodes=episodes)
        self.collected = [experience] if rows else []


LARGEST = 1e15  # of any reward or value; what is greater overflows when it is squared


def explained_variance(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    """Return by its name how much of the returns' variance the values explain; 1 is all of it.

    `parts` are returns and values, (B,) each, of every process that trains.
    """
    returns, values = map(np.concatenate, zip(*parts))
    variance, unexplained = np.var(returns), np.var(returns - values)
    return {"explained_variance": float(1 - unexplained / variance) if variance > 0 else 0.0}


def checked(
    saved: dict, name: str, like: np.ndarray, low: float | None = None, high: float | None = None
) -> np.ndarray:
    """Return a copy of the array `name` of a checkpoint.

    Raises:
        ValueError: it has another shape or type than `like`, or a number that is not finite or not
            from `low` to `high`.
    """
    array = saved[name]
    if not isinstance(array, np.ndarray) or array.shape != like.shape or array.dtype != like.dtype:
        raise ValueError(f"{name!r} has another shape or type")
    bad = ~np.isfinite(array)
    if array.dtype.kind == "f":
        bad |= np.abs(array) > LARGEST
    if low is not None:
        bad |= array < low
    if high is not None:
        bad |= array > high
    if bad.any():
        raise ValueError(f"{name!r} has numbers that cannot be")
    return array.copy()


def _experience(obs: tuple, decisions: tuple, chosen: np.ndarray, games: VectorGame) -> Experience:
    """Return decisions of a checkpoint; ValueError if they cannot be of `games`' map."""
    no_rows = np.zeros(0, np.int64)
    views = games.view_boards(no_rows, no_rows.astype(np.int8))
    kinds = Experience(views, games.decisions(no_rows), no_rows)
    for kind in (TalkViews, OfferViews):
        if len(obs) == len(kind._fields):
            kinds = kinds._replace(obs=kind.of(views, num_powers=games.num_powers))
    found = Experience(type(kinds.obs)(*obs), Decisions(*decisions), chosen)
    arrays = [*zip(found.obs, kinds.obs), *zip(found.decisions, kinds.decisions), (chosen, no_rows)]
    for array, like in arrays:
        same = isinstance(array, np.ndarray) and array.dtype == like.dtype
        # One that is not contiguous may be far larger than the file that it comes from.
        if not same or array.shape[1:] != like.shape[1:] or not array.flags.c_contiguous:
            raise ValueError("a decision has another shape or type")
    board, last_order, scalars, row, power, *talk = found.obs
    game, decider, slot_start, slot_province, order_start, order = found.decisions
    slots, orders = np.diff(slot_start), np.diff(order_start)
    last = len(games.vocabulary) - 1
    sound = (
        len(board) == len(last_order) == len(scalars)
        and len(row) == len(power) == len(game) == len(decider) == len(slots)
        and len(chosen) == len(slot_province) == len(orders)
        and _within(board, 0, np.array(feature_sizes(games.num_powers)) - 1)
        and ((board[..., UNIT_KIND] != 0) | (board[..., UNIT_OWNER] == 0)).all()
        and _within(last_order, NONE, last)
        and _within(row, 0, len(board) - 1)
        and _within(power, 0, games.num_powers - 1)
        and _within(game, 0, games.num_games - 1)
        and _within(slots, 1, len(games.board.terrain))
        and (int(slot_start[0]), int(slot_start[-1])) == (0, len(orders))
        and _within(slot_province, NONE, len(games.board.terrain) - 1)
        and _within(orders, 1, last + 1)
        and (int(order_start[0]), int(order_start[-1])) == (0, len(order))
        and _within(order, 0, last)
        and _within(chosen, 0, orders - 1)
        and all(len(array) == len(row) for array in talk)
        and (not talk or found.obs.talk_is_sound(len(games.board.terrain)))
    )
    if not sound:
        raise ValueError("a decision has numbers that cannot be")
    return found


def _within(array: np.ndarray, low: int, high: int | np.ndarray) -> bool:
    return bool(((array >= low) & (array <= high)).all())
