"""Checkpoints. A policy is read as tensors and plain values (`weights_only`): no code runs."""

import io
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec
import torch

from .._files import file_sha256, open_file
from .._suggest import printable, quoted
from ..errors import UserError
from ..games.observation import OBSERVATION_VERSION
from ..records import convert
from ..rules.map import MAP_NAMES, Map, MapError, load_map
from ..rules.vocabulary import vocabulary

CHECKPOINT_FORMAT = 1  # and the only one in Header
MOST_BYTES = 8 * 2**30  # of a file
MOST_PICKLE_BYTES = 64 * 2**20  # of a checkpoint's dictionary, its tensors apart
MOST_ITEMS = 5_000_000  # in all dictionaries, lists and tuples of a checkpoint together
MOST_WEIGHT = 1e6  # a weight beyond is one that learning has blown up
MOST_ADAM_MOMENT = 1e30  # the same of Adam's running means of gradients and their squares
RENAMED = {  # settings by their names in version 0.4
    "help_others": "cross_support",
    "average_power": "average_exponent",
    "warm_up_share": "random_start_prob",
}


class Header(msgspec.Struct):
    """What each checkpoint has, beside the weights."""

    format: Literal[1]
    script_name: str
    script_sha256: str
    map_name: str
    map_facts: dict
    vocabulary_hash: str
    global_step: int
    args: dict


class Checkpoint(dict):
    """What a file holds, by name; `path` is the file, which every refusal names."""

    def __init__(self, path: str | Path, values: Mapping):
        super().__init__(values)
        self.path = Path(path)

    @cached_property
    def map(self) -> Map:
        """The map; UserError if its policy saw or ordered what this version does not."""
        name, facts = self["map_name"], self["map_facts"]
        with fitting(self.path, self["script_name"]):
            same = name in MAP_NAMES and load_map(name).facts == facts
            game_map = load_map(name) if same else Map(facts, name)
            for what, theirs, ours in (
                ("observations of version", self["observation_version"], OBSERVATION_VERSION),
                ("the order vocabulary", self["vocabulary_hash"], vocabulary(game_map).hash),
            ):
                if theirs != ours:
                    made_for = f"made for {what} {quoted(theirs, 20)}, and this has {ours}"
                    raise UserError(f"{self.path}: {made_for}")
        return game_map

    @property
    def script_copy(self) -> Path | None:
        """The copy, in the run folder, of the script that made it; None: there is none."""
        for folder in self.path.parents[:2]:  # the file lies in the run or checkpoints/
            copy = folder / Path(self["script_name"]).name
            if copy.is_file() and file_sha256(copy) == self["script_sha256"]:
                return copy
        return None


def read(path: str | Path) -> Checkpoint:
    """Return the checkpoint of a file; UserError if it is not a sound one."""
    path = Path(path)
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as parts:
            _check_sizes(file, parts)
            if parts.testzip() is not None:  # torch.load does not look at the checksums
                raise ValueError("a part has the wrong checksum")
        saved = torch.load(path, map_location="cpu", weights_only=True)
        if not _has_few_items(saved):
            raise ValueError("it has too many items")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception:  # torch.load raises nearly anything on a damaged or hostile file
        raise UserError(f"{path}: damaged, or not a checkpoint of this project") from None
    about = convert(Header, saved, path)
    named = about.map_facts.get("name") == about.map_name
    if not named or not isinstance(about.args.get("map"), str):
        raise UserError(f"{path}: the checkpoint does not name the map that it holds")
    return Checkpoint(path, saved | {"args": with_new_names(about.args)})


def to_bytes(value: object) -> bytes:
    """Return the content of a file from which `from_bytes` reads a value."""
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()


def from_bytes(content: bytes) -> dict:
    """Return tensors and plain values; an error of torch.load if there is anything else."""
    return torch.load(io.BytesIO(content), weights_only=True)


def with_new_names(args: Mapping) -> dict:
    """Return settings of a policy; those of version 0.4 by their names of today."""
    return {RENAMED.get(name, name): value for name, value in args.items()}


def _check_sizes(file: BinaryIO, parts: zipfile.ZipFile) -> None:
    """Raise ValueError if a file unpacks to more than itself, which torch.save's do not."""
    size = file.seek(0, os.SEEK_END)
    members = parts.infolist()
    if any(part.compress_type != zipfile.ZIP_STORED for part in members):
        raise ValueError("a part is compressed")
    if size > MOST_BYTES or sum(part.file_size for part in members) > size:
        raise ValueError("its parts are too large")
    pickles = (part for part in members if part.filename.endswith(".pkl"))
    if any(part.file_size > MOST_PICKLE_BYTES for part in pickles):
        raise ValueError("its dictionary is too large")


def _has_few_items(value: object) -> bool:
    """Tell whether a value has at most MOST_ITEMS. An item counts each time that a list holds it,
    so lists that hold each other many times have too many."""
    num_items, pending = 0, [value]
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list | tuple | set | frozenset):
            num_items += len(value)
            if num_items > MOST_ITEMS:
                return False
            pending += value.values() if isinstance(value, dict) else value
    return True


def check_weights(weights: object, expected: Mapping[str, torch.Tensor]) -> None:
    """Raise ValueError unless weights have the names, shapes and types expected, and are sound."""
    if not isinstance(weights, dict) or weights.keys() != expected.keys():
        raise ValueError("its weights do not match")
    for name, like in expected.items():
        weight = weights[name]
        if getattr(weight, "shape", None) != like.shape or weight.dtype != like.dtype:
            raise ValueError(f"the shape of {name} is not what its settings say")
        if not is_sound([weight], []):
            raise ValueError(f"{name} is of what are not numbers, or beyond {MOST_WEIGHT:,.0f}")


def is_sound(weights: Iterable[torch.Tensor], moments: Iterable[Mapping]) -> bool:
    """Tell whether weights, and what Adam keeps of each, are numbers that have not blown up."""
    values = (value for figures in moments for value in figures.values())
    tensors = (value for value in values if isinstance(value, torch.Tensor))
    return _all_within(weights, MOST_WEIGHT) and _all_within(tensors, MOST_ADAM_MOMENT)


def _all_within(tensors: Iterable[torch.Tensor], most: float) -> bool:
    """Tell whether all values of tensors lie from -most to most; what is no number does not."""
    return all(bool((tensor.detach().abs() <= most).all()) for tensor in tensors)


@contextmanager
def fitting(path: str | Path, script: str | Path) -> Iterator[None]:
    """Turn whatever goes wrong while a script takes a checkpoint into a UserError."""
    try:
        yield
    except Exception as error:
        if isinstance(error, UserError) and not isinstance(error, MapError):
            raise
        raise UserError(f"{path}: does not fit {Path(script).name} ({reason(error)})") from None


def reason(error: Exception) -> str:
    """Return the kind of an error and its message, on one short line."""
    message = " ".join(str(error)[:1000].split())[:120]
    return f"{type(error).__name__}: {printable(message)}"


def policy_dict(
    script: str | Path, args: dict, game_map: Map, model: dict, global_step: int
) -> dict:
    """Return what a checkpoint has of a policy: the weights `model` by name, the settings `args` of
    its run, and how many decisions it had learned from."""
    return {
        "format": CHECKPOINT_FORMAT,
        "script_name": Path(script).name,
        "script_sha256": file_sha256(script),
        "map_name": game_map.name,
        "map_facts": game_map.facts,
        "vocabulary_hash": vocabulary(game_map).hash,
        "observation_version": OBSERVATION_VERSION,
        "args": args,
        "global_step": global_step,
        "model": model,
    }
