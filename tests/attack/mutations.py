"""Sound input with a few changes, which gets further than noise; all of it from one generator."""

import copy
import os
import random
from collections.abc import Sequence
from pathlib import Path

import torch

JUNK = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -(10**30), 1.5, 5e-324, 1e308, float("nan"),
    float("inf"), "", "\0", "\ud800", "\x1b[2J", "x" * 300, "../../x", "/etc/passwd", "<script>",
    [], {}, [[]], [None], {"": None}, {"x": [{}]},
)  # fmt: skip
SIGNS = (
    "\0\n\r\t\x1b\x7f\u2028\u202e\ud800\ufffdé߷ -\u2013/()[]{}<>\"'`\\@#:;,.=+*%&|~0123456789AaZz"
)


def mutated(rng: random.Random, value: object, pool: Sequence = JUNK, most: int = 3) -> object:
    """Return a copy of a structure of JSON, or of a checkpoint, with one to `most` changes."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, most)):
        places = list(_places(value))
        if not places:
            return rng.choice(pool)
        holder, key = rng.choice(places)
        inner = holder[key]
        match rng.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder[key:key] = [copy.deepcopy(inner)] * rng.choice((1, 1, 30))
            case 1:
                holder[rng.choice(("x", str(rng.choice(pool))))] = copy.deepcopy(inner)
            case 2:
                other, at = rng.choice(places)
                holder[key] = copy.deepcopy(other[at])
            case 3 if isinstance(inner, str):
                holder[key] = mutated_text(rng, inner)
            case 3 if isinstance(inner, torch.Tensor) and inner.numel():
                holder[key] = inner.clone()
                place = holder[key].view(-1)[rng.randrange(inner.numel())]
                place.fill_(rng.choice((-2, -1, 0, 1, 100, place.dtype.is_floating_point * 1e30)))
            case 3 if type(inner) in (int, float):
                holder[key] = inner * rng.choice((-1, 10, 1e-300)) + rng.choice((-1, 0, 1, 2**40))
            case _:
                holder[key] = copy.deepcopy(rng.choice(pool))
    return value


def _places(value: object):
    pending = [value]
    while pending:
        holder = pending.pop()
        keys = holder if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            yield holder, key
            if isinstance(holder[key], dict | list):
                pending.append(holder[key])


def mutated_text(rng: random.Random, text: str, words: Sequence[str] = ()) -> str:
    for _ in range(rng.randint(1, 3)):
        first, last = sorted(rng.randint(0, len(text)) for _ in range(2))
        last = min(last, first + rng.choice((1, 3, 20)))
        piece = text[first:last]
        match rng.randrange(6):
            case 0:
                piece = ""
            case 1:
                piece *= 2
            case 2:
                piece *= rng.choice((3, 50, 2000))
            case 3:
                piece = rng.choice(SIGNS) * rng.choice((1, 1, 5))
            case 4 if words:
                piece = f" {rng.choice(words)} "
            case _:
                lines = text.split("\n")
                i = rng.randrange(len(lines))
                parts = lines[i].split(" ")
                rng.shuffle(parts)
                lines[i] = " ".join(parts)
                text = "\n".join(lines)
                piece = text[first:last]
        text = text[:first] + piece + text[last:]
        text = text[:200_000]
    return text


def mutated_bytes(rng: random.Random, content: bytes) -> bytes:
    found = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        first = rng.randint(0, len(found))
        last = min(len(found), first + rng.choice((1, 2, 8, 64)))
        match rng.randrange(5):
            case 0:
                del found[first:]
            case 1:
                del found[first:last]
            case 2:
                found[first:last] = found[first:last] * rng.choice((2, 100))
            case 3:
                found[first:last] = rng.randbytes(last - first)
            case 4:
                found[first:first] = rng.choice(
                    (b"\0", b"\xff", b"\r\n", b'"', b"{" * 2000, b"9" * 30)
                )
    return bytes(found)


def mutate_folder(rng: random.Random, folder: Path) -> None:
    """Change one file of a folder, or put something else in its place."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file, content = rng.choice(files), rng.choice(files).read_bytes()
    kind = rng.choice(("bytes", "bytes", "other", "gone", "link", "pipe", "folder"))
    if kind == "bytes":
        content = mutated_bytes(rng, file.read_bytes())
    file.unlink()
    if kind in ("bytes", "other"):
        file.write_bytes(content)
    elif kind == "link":
        file.symlink_to(rng.choice(("/dev/zero", "/etc/passwd", str(file), "/proc/self/mem")))
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
