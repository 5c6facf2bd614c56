"""Base populations: frozen policies and bots with ratings.

`population.json` has map, games, ratings and members, with the sha256 of each `{member}.npz`: plain
arrays, so nothing runs code.
"""

import dataclasses
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from .._files import atomic_write, read_file
from .._suggest import quoted
from ..errors import UserError
from ..games.observation import OBSERVATION_VERSION
from ..records import convert, read_json
from ..rules.game_rules import GameRules
from ..rules.map import Map, MapError
from ..rules.vocabulary import vocabulary
from .bots import BOTS
from .policy.files import REFERENCE

POPULATION = "population.json"
MEMBER = ".npz"  # ends the name of a member's file
FORMAT = 1
FOLDERS = REFERENCE.parent / "population"  # of the bundled populations, one a map
MOST_LIST = 20_000_000  # bytes of population.json
MOST_FILE = 20_000_000  # bytes of a member's file
MOST_WEIGHTS = 200_000_000  # bytes of its arrays
MOST_MEMBERS = 10_000


@dataclasses.dataclass(frozen=True)
class PopulationMember:
    name: Annotated[str, Meta(pattern=r"\A[\w.-]{1,100}\Z")]
    rating: Annotated[float, Meta(gt=-1e6, lt=1e6)] = 0.0  # openskill's scale, see ratings.py
    sigma: Annotated[float, Meta(ge=0, lt=1e6)] = 0.0  # its standard error
    scheme: str = "a bot"  # how it was trained, in words
    command: str = ""  # that trained it
    seed: int = 0  # of its training
    decisions: int = 0  # that it had learned from
    file: str = ""  # its weights; empty for a bot
    sha256: str = ""  # of that file
    # Of its training: what its network is made of, and what its values mean.
    settings: dict = dataclasses.field(default_factory=dict)
    # What it says of fixed positions, see learning/probes.py; empty for a bot.
    probe: list[float] = dataclasses.field(default_factory=list)


_Count = Annotated[int, Meta(ge=1, lt=2**62)]
_Table = list[list[Annotated[float, Meta(ge=0, lt=2**53)]]]


class _Saved(Struct):
    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT)]
    vocabulary_hash: str
    observation_version: Annotated[int, Meta(ge=OBSERVATION_VERSION, le=OBSERVATION_VERSION)]
    games: _Count
    seed: _Count
    members: Annotated[list[PopulationMember], Meta(min_length=2, max_length=MOST_MEMBERS)]
    met: _Table
    above: _Table


@dataclasses.dataclass(frozen=True)
class Population:
    folder: Path
    rules: GameRules  # of all games
    members: tuple[PopulationMember, ...]
    games: int  # of the tournament that gave the ratings
    seed: int  # of its seats and games
    # Of each pair of members: the games that both played in, and the sum of the shares of these in
    # which the first ended above the second, (members, members) each.
    met: np.ndarray
    above: np.ndarray

    @property
    def map(self) -> Map:
        return self.rules.map

    @property
    def title(self) -> str:
        return "the base population" if self.folder.parent == FOLDERS else str(self.folder)

    @property
    def shown_folder(self) -> str:
        own = self.folder.parent == FOLDERS
        return f"runs/population/{self.folder.name}" if own else str(self.folder)

    @property
    def ratings(self) -> np.ndarray:
        return np.array([member.rating for member in self.members])

    def member(self, name: str) -> PopulationMember:
        name = name.removesuffix(MEMBER)
        for member in self.members:
            if member.name == name:
                return member
        raise UserError(f"{self.folder}: the population has no member {quoted(name)}")


def population_folder(where: str | Path | None, game_map: Map) -> Path:
    if where is not None:
        return Path(where)
    folder = FOLDERS / game_map.name
    if not (folder / POPULATION).is_file():
        where = FOLDERS if FOLDERS.is_dir() else "runs/population"  # which no wheel has
        name = f"name one with --population, as the repository's in {where}"
        raise UserError(f"there is no base population of map {game_map.name}: {name}")
    return folder


def read_population(folder: str | Path, game_map: Map | None = None) -> Population:
    """Members' files are read when they are loaded. Refused: one of another map than `game_map`."""
    folder = Path(folder)
    path = folder / POPULATION
    notes = read_json(dict, path, MOST_LIST)
    saved = convert(_Saved, notes, path)
    try:
        rules = GameRules.from_json(notes, None, str(path))
        wrong = _wrong(saved, rules.map)
    except MapError as error:
        wrong = f"map: {str(error)[:200]}"
    if game_map is not None and vocabulary(game_map).hash != saved.vocabulary_hash:
        wrong = wrong or f"map: {rules.map.name}, not {game_map.name}"
    if wrong:
        raise UserError(f"{path}: {wrong}")
    tables = np.array(saved.met), np.array(saved.above)
    return Population(folder, rules, tuple(saved.members), saved.games, saved.seed, *tables)


def _wrong(saved: _Saved, game_map: Map) -> str:
    if saved.vocabulary_hash != vocabulary(game_map).hash:
        return f"vocabulary_hash: of other orders of {game_map.name}"
    names, size = set(), len(saved.members)
    for i, member in enumerate(saved.members):
        file = "" if member.name in BOTS else f"{member.name}{MEMBER}"
        if member.name in names:
            return f"members[{i}].name: there are two of {member.name}"
        if member.file not in (file, f"{member.name}{MEMBER}"):
            return f"members[{i}].file: must be {file!r}"
        names.add(member.name)
    for name in ("met", "above"):
        if [len(row) for row in getattr(saved, name)] != [size] * size:
            return f"{name}: must have {size} rows of {size}"
    met, above = np.array(saved.met), np.array(saved.above)
    if (met != np.round(met)).any():
        return "met: must count games"
    if (above > met + 0.01 * (met > 0)).any():  # they are rounded
        return "above: must count some of the games of 'met'"
    return ""


def write_population(population: Population) -> None:
    best = sorted(range(len(population.members)), key=lambda i: -population.members[i].rating)
    saved = {
        "format": FORMAT,
        **population.rules.to_json(),
        "vocabulary_hash": vocabulary(population.map).hash,
        "observation_version": OBSERVATION_VERSION,
        "games": population.games,
        "seed": population.seed,
        "members": [dataclasses.asdict(population.members[i]) for i in best],
    }
    head = json.dumps(saved, indent=1).removesuffix("\n}")
    tables = {"met": population.met, "above": np.round(population.above, 2)}
    for name, table in tables.items():  # a line for each member
        rows = (json.dumps([int(x) if x == int(x) else x for x in table[i, best]]) for i in best)
        head += f',\n "{name}": [\n  ' + ",\n  ".join(rows) + "\n ]"
    atomic_write(population.folder / POPULATION, (head + "\n}\n").encode())


def pack_weights(weights: Mapping[str, np.ndarray]) -> bytes:
    """Return weights as a member's file, in float16; UserError if one is too large for that."""
    packed = {}
    for name, weight in weights.items():
        with np.errstate(over="ignore"):
            packed[name] = weight.astype(np.float16)
        if not np.isfinite(packed[name]).all():
            raise UserError(f"weights beyond {np.finfo(np.float16).max:,.0f} cannot be kept")
    content = io.BytesIO()
    np.savez_compressed(content, **packed)  # type: ignore[arg-type]  # no name is a flag of it
    return content.getvalue()


def read_weights(population: Population, member: PopulationMember) -> dict[str, np.ndarray]:
    """Return a member's weights, float32; UserError, which names it, if its file changed."""
    path = population.folder / member.file
    try:
        content = read_file(path, MOST_FILE)
        if hashlib.sha256(content).hexdigest() != member.sha256:
            raise ValueError(f"has changed: it does not have the sha256 of {POPULATION}")
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            if sum(part.file_size for part in parts.infolist()) > MOST_WEIGHTS:
                raise ValueError("has arrays that are too large")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name].astype(np.float32) for name in arrays.files}
    except Exception as error:  # a damaged or hostile file may fail in any way
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise UserError(f"{path}, member {member.name}: {reason}") from None


def drawn_member(
    folder: str | None, number: int, game_map: Map, seed: int
) -> tuple[Population, PopulationMember]:
    """Draw the member for a number; different numbers of one game stand for different members."""
    population = read_population(population_folder(folder, game_map), game_map)
    order = np.random.default_rng(seed).permutation(len(population.members))
    return population, population.members[order[number % len(order)]]
