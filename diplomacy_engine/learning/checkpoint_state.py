"""What a checkpoint keeps of a run beside its policy: written by `pack`, taken up by `restore`."""

import copy
import io
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ..errors import UserError
from ..games.decisions import Decisions
from ..games.observation import BoardViews
from ..games.vector_game import VectorGame
from ..players.policy.talk_views import OfferViews, TalkViews
from .checkpoints import MOST_WEIGHT, is_sound
from .experience import Experience
from .ranks import Ranks, TrainingError

RUN_FORMAT = 5  # of what a checkpoint holds besides the policy
_TUPLES = {
    kind._fields: kind for kind in (Experience, BoardViews, TalkViews, OfferViews, Decisions)
}


class Kept:
    """Checkpoints keep its attributes but those in REBUILT; OF_RANK differ between processes."""

    REBUILT: ClassVar[tuple[str, ...]] = ()
    OF_RANK: ClassVar[tuple[str, ...]] = ()

    def kept(self) -> list[str]:
        return [name for name in vars(self) if name not in (*self.REBUILT, *self.OF_RANK)]


def pack(value: Any, name: str = "run") -> Any:
    """Return a value as plain ones and tensors; UserError, with `name` as its place, if not."""
    if isinstance(value, Kept):
        return {part: pack(getattr(value, part), f"{name}.{part}") for part in value.kept()}
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
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: pack(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [pack(item, name) for item in value]
    if value is None or isinstance(value, bool | int | float | str | torch.Tensor):
        return value
    what = f"{name}, a {type(value).__name__}"
    raise UserError(f"a checkpoint cannot keep {what}: should its class name it in REBUILT?")


def restore(live: Any, saved: Any) -> Any:
    """Return `saved`, which `pack` made of a value such as `live`; that may change, too."""
    if isinstance(live, Kept):
        for part in live.kept():
            setattr(live, part, restore(getattr(live, part), saved[part]))
        return live
    if isinstance(live, nn.Module | torch.optim.Optimizer):
        live.load_state_dict(saved)
        return live
    if isinstance(live, np.random.Generator):
        live.bit_generator.state = _arrays(saved)
        return live
    if isinstance(live, VectorGame):
        live.restore(_arrays(saved))
        return live
    if isinstance(live, torch.Tensor):  # of a network, perhaps, which must stay its owner
        live.data.copy_(saved)
        return live
    if hasattr(live, "_asdict"):
        parts = live._asdict()
        return type(live)(*(restore(parts[part], saved[part]) for part in parts))
    if isinstance(live, dict):
        return {key: restore(_like(live, key), item) for key, item in saved.items()}
    if isinstance(live, list | tuple):
        return type(live)(restore(live[0] if live else None, item) for item in saved)
    return _arrays(saved)


def _like(live: dict, key: Any) -> Any:
    return live[key] if key in live else copy.deepcopy(next(iter(live.values()), None))


def _arrays(saved: Any) -> Any:
    """Return a value with arrays for tensors, and named tuples for dictionaries of their fields."""
    if isinstance(saved, torch.Tensor):
        return saved.numpy().copy()
    if isinstance(saved, dict):
        found = {key: _arrays(item) for key, item in saved.items()}
        return _TUPLES[tuple(found)](**found) if tuple(found) in _TUPLES else found
    if isinstance(saved, list):
        return [_arrays(item) for item in saved]
    return saved


def check_learned(
    agent: nn.Module, optimizer: torch.optim.Optimizer, losses: Mapping[str, float]
) -> None:
    if not all(map(math.isfinite, losses.values())):
        raise TrainingError(f"a loss is not finite ({dict(losses)})")
    if not is_sound(agent.parameters(), optimizer.state.values()):
        raise TrainingError(f"a weight is not finite, or beyond {MOST_WEIGHT:,.0f}")


def save(run: Any, ranks: Ranks, log: Any) -> None:
    """Write a checkpoint from which the run can go on exactly; all ranks call this."""
    with log.clock("saving"):
        files = log.flush()
        own = {name: pack(getattr(run, name), f"run.{name}") for name in run.OF_RANK}
        own["torch_generator"] = torch.get_rng_state()
        # As bytes: a tensor of unsigned numbers, such as the games' seeds, cannot be pickled.
        everywhere = ranks.gather(_saved(own))
        if ranks.rank > 0:
            return
        saved = run.setup.policy(run.average, run.step) | {
            "run_format": RUN_FORMAT,
            "run": pack(run),
            "ranks": [torch.load(io.BytesIO(part), weights_only=True) for part in everywhere],
            "wandb_id": log.wandb_id,
            "files": files,
            "seconds": log.seconds,
        }
        log.folder.save_checkpoint(run.step, _saved(saved))


def _saved(value: Any) -> bytes:
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()


def go_on(run: Any, saved: dict, ranks: Ranks) -> None:
    restore(run, saved["run"])
    own = saved["ranks"][ranks.rank]
    for name in run.OF_RANK:
        setattr(run, name, restore(getattr(run, name), own[name]))
    torch.set_rng_state(own["torch_generator"])
