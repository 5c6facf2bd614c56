"""Files that hold a policy: where they lie in a folder, and what they say of themselves.

A checkpoint is what `torch.save` writes of a dictionary. It is read without PyTorch's help as far
as the name of the script that plays it goes, and otherwise with a function that is handed in, so
that the engine needs no PyTorch.
"""

import pickletools
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._files import file_sha256
from .._suggest import quoted
from ..errors import UserError
from ..games.observation import OBSERVATION_VERSION
from ..rules.map import Map, MapError
from ..rules.vocabulary import vocabulary

CHECKPOINT = "checkpoint.pt"
POLICY = "policy.pt"  # a kept policy alone, as in runs/reference: no optimizer, no pool
CHECKPOINT_FORMAT = 1
MOST_NAMED = 64 * 2**20  # bytes of a checkpoint's dictionary, its tensors apart


def policy_file(path: str | Path) -> Path:
    """Return the file that holds a policy: of a folder its checkpoint.pt, else its policy.pt.

    Any other path is returned as it is. The file need not exist.
    """
    path = Path(path)
    if not path.is_dir():
        return path
    checkpoint, policy = path / CHECKPOINT, path / POLICY
    return checkpoint if checkpoint.is_file() or not policy.is_file() else policy


def script_name(path: str | Path) -> str | None:
    """Return the name of the script that trained a checkpoint; None if the file does not say.

    Nothing of the file is run or built: its pickle is only looked through for the two texts.
    """
    try:
        with zipfile.ZipFile(path) as parts:
            (name,) = (part for part in parts.namelist() if re.fullmatch(r"[^/]+/data\.pkl", part))
            if parts.getinfo(name).file_size > MOST_NAMED:
                return None
            pickled = parts.read(name)
        texts = (text for _, text, _ in pickletools.genops(pickled) if isinstance(text, str))
        return next((next(texts, None) for text in texts if text == "script_name"), None)
    except Exception:  # a damaged or hostile file, which is refused when it is loaded
        return None


def read_checkpoint(path: str | Path, load: Callable[[Path], Any]) -> dict:
    """Return a checkpoint's dictionary.

    Args:
        load: reads the file, tensors and plain values only, so that a checkpoint cannot run code.

    Raises:
        UserError: the file is not a sound checkpoint.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as parts:  # torch.load does not look at the checksums
            if parts.testzip() is not None:
                raise ValueError("a part does not have its checksum")
        saved = load(path)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such checkpoint") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except Exception:  # torch.load raises nearly anything on a damaged or hostile file
        raise UserError(f"{path}: damaged, or not a checkpoint of this project") from None
    if not isinstance(saved, dict) or saved.get("format") != CHECKPOINT_FORMAT:
        raise UserError(f"{path}: not a checkpoint of this project (format {CHECKPOINT_FORMAT})")
    return saved


@contextmanager
def fitting(path: str | Path, script: str) -> Iterator[None]:
    """Turn what goes wrong while a script takes a checkpoint into a UserError of one sentence."""
    try:
        yield
    except (MapError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path}: does not fit {Path(script).name} ({type(error).__name__}: {reason:.80})"
        ) from None


def map_of(saved: dict, path: str | Path) -> Map:
    """Return the map of a checkpoint; UserError if it saw or ordered what this version does not."""
    if saved["observation_version"] != OBSERVATION_VERSION:
        raise UserError(
            f"{path}: made for observations of version {quoted(saved['observation_version'], 20)}, "
            f"this is version {OBSERVATION_VERSION}"
        )
    game_map = Map(saved["map_facts"], saved["map_name"])
    if vocabulary(game_map).hash != saved["vocabulary_hash"]:
        raise UserError(f"{path}: made for another order vocabulary of {game_map.name}")
    return game_map


def policy_dict(
    script: str, args: dict, game_map: Map, model: dict, global_step: int
) -> dict[str, Any]:
    """Return what is needed to play a policy.

    Args:
        script: the file that trains it.
        args: its settings.
        model: its weights.
        global_step: the decisions it has learned from.
    """
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


def policy_part(saved: dict) -> dict:
    """Return what is needed to play the policy of a checkpoint, which may hold a whole run."""
    names = "map_name map_facts vocabulary_hash observation_version global_step model args"
    return {name: saved[name] for name in names.split()}


def header(saved: dict) -> dict:
    """Return what a checkpoint says of itself, without its weights."""
    names = ("script_name", "script_sha256", "map_name", "map_facts", "vocabulary_hash")
    return {name: saved[name] for name in (*names, "global_step", "args")}
