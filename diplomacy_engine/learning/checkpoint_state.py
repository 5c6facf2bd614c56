"""What a checkpoint keeps of a run beside its policy: written by `pack`, taken up by `restore`.

A class names in KEPT which of its attributes are kept. They are numbers, arrays, networks, an
optimizer, a generator, games, and dictionaries, lists and named tuples of these.

A file may come from anybody. So what is restored must have the form of what is there already (the
same type, and of arrays the same shape), its numbers must be possible ones, and what indexes
something must be in its range: RANGES, `check_experience` and `check_seats`.
"""

import copy
import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from ..constants import NONE
from ..games.decisions import Decisions
from ..games.observation import BoardViews
from ..games.vector_game import VectorGame
from ..policy.talk_views import OfferViews, TalkViews
from .checkpoints import MOST_WEIGHT, check_moments, check_weights, is_sound
from .experience import Experience, check_experience
from .ranks import Ranks, TrainingError

RUN_FORMAT = 3  # of what a checkpoint holds besides the policy; 1 is version 0.1's, 2 0.2's
LARGEST = 1e15  # of any reward or value; what is greater overflows when it is squared
MOST = 2**62  # of any count
# Attribute -> least and most of it. What is not here may be any sound number.
RANGES = {
    "count": (0, 10**6),
    "row": (0, MOST),
    "member": (0, MOST),
    "stream": (NONE, MOST),
    "warm_up": (0, 100),
    "temperature": (1e-3, 1e3),
    "win_share": (0, 1),
    "asked": (0, MOST),
    "wished": (0, MOST),
    "met": (0, MOST),
    "made": (0, MOST),
    "offered": (0, MOST),
    "heard": (0, MOST),
    "agreed": (0, MOST),
}
_TUPLES = {
    kind._fields: kind for kind in (Experience, BoardViews, TalkViews, OfferViews, Decisions)
}


def pack(value: Any) -> Any:
    """Return a value as tensors, numbers, texts, and dictionaries and lists of these."""
    kept = getattr(type(value), "KEPT", None)
    if kept is not None:
        return {name: pack(getattr(value, name)) for name in kept}
    if isinstance(value, nn.Module | torch.optim.Optimizer):
        return value.state_dict()
    if isinstance(value, np.random.Generator):
        return pack(value.bit_generator.state)
    if isinstance(value, VectorGame):
        return pack(value.snapshot())
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {key: pack(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return pack(value._asdict())
    if isinstance(value, list | tuple):
        return [pack(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a checkpoint cannot store a {type(value).__name__}")


def restore(live: Any, saved: Any, games: VectorGame, name: str = "run") -> Any:
    """Return `saved`, which `pack` made of a value such as `live`; that may change, too.

    Args:
        live: a value of a new run.
        games: of the run, which the decisions in it are of.
        name: of the value, for messages and RANGES.

    Raises:
        Exception: of any kind, as the file may have anything in any place.
    """
    kept = getattr(type(live), "KEPT", None)
    if kept is not None:
        _check(type(saved) is dict, name)
        for part in kept:
            setattr(live, part, restore(getattr(live, part), saved[part], games, part))
        return live
    if isinstance(live, nn.Module):
        check_weights(saved, live.state_dict())
        live.load_state_dict(saved)
        return live
    if isinstance(live, torch.optim.Optimizer):
        check_moments(saved, live)
        live.load_state_dict(saved)
        return live
    if isinstance(live, np.random.Generator):
        live.bit_generator.state = _arrays(saved)
        return live
    if isinstance(live, VectorGame):
        live.restore(_arrays(saved))
        return live
    if isinstance(live, np.ndarray):
        return _array(live, saved, name)
    if hasattr(live, "_asdict"):
        parts = live._asdict()
        return type(live)(*(restore(parts[n], saved[n], games, n) for n in parts))
    if isinstance(live, dict):
        return _dictionary(live, saved, games, name)
    if isinstance(live, list):
        _check(type(saved) is list, name)
        if live:
            return [restore(live[0], item, games, name) for item in saved]
        return [_loose(item, games, name) for item in saved]
    if isinstance(live, tuple):
        _check(type(saved) is list and len(saved) == len(live), name)
        return tuple(restore(a, b, games, name) for a, b in zip(live, saved))
    _check(type(saved) is type(live), name)
    return _number(saved, name)


def _dictionary(live: dict, saved: Any, games: VectorGame, name: str) -> dict:
    """Restore a dictionary: what has names is there already, what has numbers may be others."""
    _check(type(saved) is dict and _texts(saved) == _texts(live), name)
    found, like = {}, next(iter(live.values()), None)
    for key, item in saved.items():
        _check(type(key) is str or (type(key) is int and 0 <= key < MOST), name)
        example = live.get(key, like)
        if key not in live and isinstance(example, nn.Module):
            example = copy.deepcopy(example)
        known = example is not None
        found[key] = restore(example, item, games, name) if known else _loose(item, games, name)
    return found


def _texts(dictionary: dict) -> set[str]:
    return {key for key in dictionary if type(key) is str}


def _loose(saved: Any, games: VectorGame, name: str) -> Any:
    """Restore what nothing like it is there for: numbers, lists of them, and decisions."""
    if type(saved) is list:
        return tuple(_loose(item, games, name) for item in saved)
    if type(saved) is not dict:
        return _number(saved, name)
    found = _tuples(saved)
    _check(type(found) is Experience, name)
    check_experience(found, games)
    return found


def _tuples(saved: Any) -> Any:
    """Return the named tuple of arrays that a dictionary stands for."""
    if isinstance(saved, torch.Tensor):
        return saved.numpy()
    kind = _TUPLES[tuple(saved)]
    return kind(*map(_tuples, saved.values()))


def _arrays(saved: Any) -> Any:
    """Return a value with arrays in the place of tensors."""
    if isinstance(saved, torch.Tensor):
        return saved.numpy()
    if isinstance(saved, dict):
        return {key: _arrays(item) for key, item in saved.items()}
    return saved


def _array(live: np.ndarray, saved: Any, name: str) -> np.ndarray:
    array = saved.numpy()
    if array.shape != live.shape or array.dtype != live.dtype:
        raise ValueError(f"{name!r} has a different shape or type")
    low, high = RANGES.get(name, (-math.inf, math.inf))
    bad = ~np.isfinite(array) | (array < low) | (array > high)
    if array.dtype.kind == "f":
        bad |= np.abs(array) > LARGEST
    _check(not bad.any(), name)
    return array.copy()


def _number(saved: Any, name: str) -> Any:
    sound = type(saved) in (bool, int, float) and math.isfinite(saved) and abs(saved) < LARGEST
    _check(sound or (type(saved) is int and NONE <= saved < MOST), name)
    return saved


def _check(sound: bool, name: str) -> None:
    if not sound:
        raise ValueError(f"{name!r} has impossible values")


def check_seats(run: Any) -> None:
    """Raise ValueError unless seats, pool and buffer of a restored run fit each other."""
    seats, buffer, pool = run.seats, run.buffer, run.pool
    learns, streams = seats.stream != NONE, len(buffer.count)
    _check(bool((seats.stream < streams).all()), "stream")
    own = seats.stream[learns]
    _check(len(np.unique(own)) == len(own) and learns.any(1).all(), "stream")
    of_game = streams // len(seats.stream)
    _check(np.array_equal(np.nonzero(learns)[0], own // of_game), "stream")
    _check(np.array_equal(learns, seats.member == 0), "member")
    _check(set(np.unique(seats.member).tolist()) <= {0, *pool.bots, *pool.agents}, "member")
    copies = set(pool.copies)
    _check(0 < len(copies) == len(pool.copies) <= run.args.pool_size, "copies")
    _check(pool.agents.keys() == pool.frozen_at.keys() and copies <= pool.agents.keys(), "copies")
    _check(max(pool.agents) < pool.next_number, "next_number")
    _check(pool.agents.keys() == pool.games.keys() == pool.score.keys(), "games")
    _check(all(0 <= pool.score[n] <= pool.games[n] for n in pool.games), "score")
    _check(not pool.agents.keys() & {0, *pool.bots}, "agents")
    step, count = np.arange(len(buffer.closed))[:, None], buffer.count
    _check(bool((count < len(step)).all()), "count")
    filled, is_open = step < count, buffer.open & (step == count - 1)
    _check(np.array_equal(is_open.any(0), buffer.open), "open")
    _check(np.array_equal(buffer.closed, filled & ~is_open), "closed")
    rows = sum(len(part.obs.row) for part in buffer.seen)
    _check(buffer.num_rows == rows and not (filled & (buffer.row >= rows)).any(), "row")


def check_learned(
    agent: nn.Module, optimizer: torch.optim.Optimizer, losses: Mapping[str, float]
) -> None:
    """Raise TrainingError if an update has blown up weights, moments or losses."""
    if not all(map(math.isfinite, losses.values())):
        raise TrainingError(f"a loss is not finite ({dict(losses)})")
    if not is_sound(agent.parameters(), optimizer.state.values()):
        raise TrainingError(f"a weight is not finite, or beyond {MOST_WEIGHT:,.0f}")


def save(run: Any, policy: dict, ranks: Ranks, log: Any) -> None:
    """Write a checkpoint from which the run can go on exactly.

    Args:
        run: with KEPT, what all ranks have alike, and OF_RANK, what each has by itself.
        policy: what is needed to play its policy.
        ranks: all of which call this; the first one writes.
        log: of the run.
    """
    files = log.flush()
    own = {name: pack(getattr(run, name)) for name in run.OF_RANK}
    own["torch_generator"] = torch.get_rng_state()
    # As bytes: a tensor of unsigned numbers, such as the games' seeds, cannot be pickled.
    everywhere = ranks.gather(_saved(own))
    if ranks.rank > 0:
        return
    saved = policy | {
        "run_format": RUN_FORMAT,
        "run": pack(run),
        "ranks": [torch.load(io.BytesIO(part), weights_only=True) for part in everywhere],
        "wandb_id": log.wandb_id,
        "files": files,
        "seconds": log.seconds,
    }
    log.folder.save_checkpoint(policy["global_step"], _saved(saved))


def _saved(value: Any) -> bytes:
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()


def go_on(run: Any, saved: dict, ranks: Ranks) -> None:
    """Continue a new run exactly from a checkpoint of as many ranks.

    Raises:
        Exception: of any kind, if the file has anything that cannot be.
    """
    restore(run, saved["run"], run.games)
    own = saved["ranks"][ranks.rank]
    for name in run.OF_RANK:
        setattr(run, name, restore(getattr(run, name), own[name], run.games, name))
    if saved["global_step"] != run.counters["global_step"]:
        raise ValueError("'counters' and 'global_step' differ")
    check_seats(run)
    torch.set_rng_state(own["torch_generator"])
