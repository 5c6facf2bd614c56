"""How players are written, read once as a `PlayerSpec`; docs/tournament.md lists the forms. Specs
are equal if the players are, however they are written; names are made for print alone."""

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from .._suggest import did_you_mean, quoted
from ..errors import UserError
from ..records import convert
from .bots import BOTS
from .policy.files import CHECKPOINT, POLICY, policy_file, ready_policies
from .population import MEMBER

_Key = TypeVar("_Key", bound=Hashable)
LANGUAGE = "llm:"
GREEDY = "greedy"
DRAWN = "population"
MOST = 1000  # letters of the longest name; bounds nesting
SEARCH = "fast"
# Option of a search -> what its value may be.
SEARCHING: dict = {
    "candidates": Annotated[int, Meta(ge=1, le=1000)],
    "draws": Annotated[int, Meta(ge=1, le=10_000)],
    "temperature": Annotated[float, Meta(ge=0.01, le=100)],
    "varied": Annotated[float, Meta(ge=0, le=1)],
    "profiles": Annotated[int, Meta(ge=1, le=1000)],
    "sure": Annotated[float, Meta(ge=0, le=100)],
    "ahead": Annotated[int, Meta(ge=0, le=10)],
    "assume": str,
}
_TRYING = {"profiles": SEARCHING["profiles"]}
_MINDING = _TRYING | {"years": Annotated[int, Meta(ge=1, le=100)]}
VOICES: dict[str, dict] = {
    **{kind: {} for kind in ("silent", "peaceful", "coin", "talker")},
    **{kind: _TRYING for kind in ("dealer", "nash", "breaker")},
    **{kind: _MINDING for kind in ("grudge", "sanction")},
}
UNBOUND = ("breaker", "grudge", "sanction")  # have an effect only where deals may be broken
_ANSWERING = {"timeout": Annotated[float, Meta(ge=0.01, le=86_400)]}
PROGRAMS: dict[str, dict] = {
    "cmd": _ANSWERING,
    "dui": _ANSWERING | {"movetime": Annotated[int, Meta(ge=1, le=86_400_000)]},
}
_OPTIONS = r"(?:\(([^()]*)\))?"
_VOICE = re.compile(rf"([a-z]+){_OPTIONS}\+(.+)", re.DOTALL)
_SEARCH = re.compile(rf"{SEARCH}{_OPTIONS}:(.+)", re.DOTALL)
_PROGRAM = re.compile(rf"(cmd|dui){_OPTIONS}:(.*)", re.DOTALL)
_SCRIPT = re.compile(r"(.+?\.py):(.+)", re.DOTALL)
# A name of one letter is a drive's.
_OWN = re.compile(r"([^\W\d]\w+(?:\.[^\W\d]\w*)*):([^\W\d]\w*)(?::(.+))?", re.DOTALL)
_DRAWN = re.compile(rf"{DRAWN}(?::(.*?))?(?:#([0-9]+))?", re.DOTALL)


Options = tuple[tuple[str, int | float], ...]  # by name


def _path(**how: Any) -> Any:
    return field(compare=False, metadata={"path": True}, **how)


@dataclass(frozen=True)
class PlayerSpec:
    text: str = field(compare=False)  # as it is written
    files: tuple[str | None, ...] = field(init=False)  # what its paths mean

    def __post_init__(self) -> None:
        paths = [getattr(self, one.name) for one in fields(self) if one.metadata]
        files = tuple(path and os.path.abspath(policy_file(path)) for path in paths)
        object.__setattr__(self, "files", files)


@dataclass(frozen=True)
class BotSpec(PlayerSpec):
    name: str


@dataclass(frozen=True)
class PolicySpec(PlayerSpec):
    path: str = _path()  # of the file, its run folder, or the name of a bundled policy
    script: str | None = _path(default=None)  # that plays it; None: the one that is found for it
    greedy: bool = False  # it gives its likeliest orders, whatever else is said


@dataclass(frozen=True)
class MemberSpec(PlayerSpec):
    path: str = _path()
    greedy: bool = False

    @property
    def name(self) -> str:
        return Path(self.path).name.removesuffix(MEMBER)


@dataclass(frozen=True)
class DrawnSpec(PlayerSpec):
    number: int | None  # tells those of one game apart
    folder: str | None = _path()  # of the population; None: that of the map


@dataclass(frozen=True)
class LanguageSpec(PlayerSpec):
    """A language model: of a settings file, or by its name or folder alone."""

    file: str = _path(default="")  # of settings; empty: there is none
    folder: str = _path(default="")  # of a model that runs here
    model: str = ""  # of a server
    url: str = ""


@dataclass(frozen=True)
class OwnSpec(PlayerSpec):
    module: str
    name: str  # of the class or function
    argument: str | None  # that it is called with; None: with nothing


@dataclass(frozen=True)
class ProgramSpec(PlayerSpec):
    kind: str  # one of PROGRAMS
    options: Options
    command: str


@dataclass(frozen=True)
class SelfSpec(PlayerSpec):
    """The searching policy itself, as a model of the other players."""


@dataclass(frozen=True)
class Assumed:
    """Whom a search takes the others for."""

    text: str = field(compare=False)
    kind: str  # `infer`: it learns which of several; `pool`: any checkpoint of a run; or nothing
    players: tuple[PlayerSpec, ...]  # of a pool the newest policy


@dataclass(frozen=True)
class SearchSpec(PlayerSpec):
    options: Options
    assume: Assumed | None  # None: nobody said
    policy: PlayerSpec


@dataclass(frozen=True)
class VoiceSpec(PlayerSpec):
    kind: str  # one of VOICES
    options: Options
    player: PlayerSpec  # who gives the orders


def parse_player(name: str | Path | PlayerSpec) -> PlayerSpec:
    if isinstance(name, PlayerSpec):
        return name
    text = str(name)
    if len(text) > MOST:
        raise UserError(f"{quoted(text, 60)}... has more than {MOST:,} letters, and is no player")
    if text in BOTS:
        return BotSpec(text, text)
    if text.startswith(LANGUAGE):
        return _language(text)
    if match := _PROGRAM.fullmatch(text):
        kind, written, command = match.groups()
        return ProgramSpec(text, kind, _read_options(text, written, PROGRAMS[kind]), command)
    if match := _DRAWN.fullmatch(text):
        folder, number = match.groups()
        return DrawnSpec(text, None if number is None else int(number), folder or None)
    match = _VOICE.fullmatch(text)
    if match and match[1] in VOICES:  # else a file may be named so
        kind, written, player = match.groups()
        options = _read_options(text, written, VOICES[kind])
        return VoiceSpec(text, kind, options, parse_player(player))
    if match := _SEARCH.fullmatch(text):
        options = dict(_read_options(text, match[1], SEARCHING))
        assume = options.pop("assume", None)
        assumed = None if assume is None else assumption(str(assume))
        return SearchSpec(text, tuple(options.items()), assumed, parse_player(match[2]))
    before, _, rest = text.partition(":")
    if before == GREEDY and rest:
        policy = parse_player(rest)
        if not isinstance(policy, PolicySpec | MemberSpec):
            what = quoted(rest.partition("@")[0], 60)  # behind that there may be a key
            raise UserError(f"{GREEDY}: must stand right before a policy, and {what} is not one")
        return replace(policy, text=text, greedy=True)
    if Path(text).suffix == MEMBER:
        return MemberSpec(text, text)
    script, own = _SCRIPT.fullmatch(text), _OWN.fullmatch(text)
    if script:
        return PolicySpec(text, script[2], script[1])
    if own and not os.path.exists(text):
        return OwnSpec(text, *own.groups())
    return PolicySpec(text, text)


def _language(text: str) -> LanguageSpec:
    rest = text.removeprefix(LANGUAGE)
    if rest.endswith(".toml"):
        return LanguageSpec(text, file=rest)
    if rest.startswith("local:"):
        return LanguageSpec(text, folder=rest.removeprefix("local:"))
    model, at, url = rest.rpartition("@")
    if not at or not re.match(r"https?://", url):
        raise UserError(
            f"{quoted(rest.partition('@')[0], 60)} is not a language model: write llm:FILE.toml, "
            "llm:local:FOLDER or llm:MODEL@http://127.0.0.1:8000/v1"
        )
    return LanguageSpec(text, model=model, url=url)


def _read_options(text: str, written: str | None, types: Mapping[str, Any]) -> Options:
    options = {}
    for part in (written or "").split():
        option, _, value = part.partition("=")
        where = f"{quoted(text, 100)}: {option[:60]}"
        if option not in types:
            names = ", ".join(types) or "there are none"
            near = did_you_mean(option, types)
            raise UserError(f"{where}: unknown option ({names}){near}")
        if option in options:
            raise UserError(f"{where}: is set twice")
        options[option] = convert(types[option], value, where, strict=False)
    return tuple(sorted(options.items()))


def parts(player: str | PlayerSpec) -> Iterator[PlayerSpec]:
    """Yield a player, those that it is made of and those that it takes others for."""
    spec = parse_player(player)
    yield spec
    match spec:
        case VoiceSpec():
            yield from parts(spec.player)
        case SearchSpec():
            yield from parts(spec.policy)
            if spec.assume is not None and spec.assume.kind != "pool":
                for assumed in spec.assume.players:
                    yield from () if isinstance(assumed, SelfSpec) else parts(assumed)


def assumption(text: str) -> Assumed:
    """Read `self`, a player, `pool:FOLDER`, or `infer:` with several players and commas between."""
    kind, _, rest = text.partition(":")
    kind, written = (kind, rest) if kind in ("pool", "infer") else ("", text)
    names = written.split(",") if kind == "infer" else [written]
    read = partial(PolicySpec, written) if kind == "pool" else _read_assumed
    specs = [read(name) for name in names if name]
    if len(set(specs)) < len(names):
        raise UserError(f"--assume {quoted(text, 60)}: names a player twice, or an empty one")
    return Assumed(text, kind, tuple(specs))


def _read_assumed(name: str) -> PlayerSpec:
    return SelfSpec(name) if name == "self" else parse_player(name)


def assuming(player: PlayerSpec, assume: str | None) -> PlayerSpec:
    """Return a player whose searches without a model of the other players have `assume`."""
    match player:
        case SearchSpec(assume=None) if assume:
            return replace(player, assume=assumption(assume))
        case VoiceSpec():
            return replace(player, player=assuming(player.player, assume))
    return player


def is_drawn(name: str) -> bool:
    """Tell whether a name is that of members drawn from a population, or of one of them."""
    return isinstance(parse_player(name), DrawnSpec)


def drawn_names(names: Sequence[str], powers: int) -> list[str]:
    """Return names with members that are drawn told apart: population#1, population#2, ...

    One that stands alone is as many as there are powers, since several take turns at these.
    """
    names = list(names) * (powers if len(names) == 1 and is_drawn(names[0]) else 1)
    return [f"{name}#{n}" if is_drawn(name) else name for n, name in enumerate(names, 1)]


def short_name(player: str | Path | PlayerSpec, folders: int = 0) -> str:
    """Return a player's name in tables, pages and saved games.

    It is a policy's own name, its run folder, or its path below this folder, else folder and file,
    with `folders` more folders before it.
    """

    def path_tail(path: str | Path, parts: int = 1) -> str:
        return "/".join(Path(os.path.abspath(path)).parts[1:][-parts - folders :])

    def assumption_name(assumed: Assumed) -> str:
        short = ",".join(
            path_tail(one.text) if assumed.kind == "pool" else short_name(one, folders)
            for one in assumed.players
        )
        return f"{assumed.kind}:" * bool(assumed.kind) + short

    spec = parse_player(player)
    match spec:
        case PolicySpec():
            name = _policy_name(spec.path, path_tail)
            if name in BOTS:  # a run folder may be called as a bot is
                return short_name(spec, folders + 1)
            name = f"{path_tail(spec.script)}:{name}" if spec.script else name
            return f"{GREEDY}:" * spec.greedy + name
        case MemberSpec():
            return f"{GREEDY}:" * spec.greedy + path_tail(Path(spec.path).with_name(spec.name))
        case OwnSpec(argument=str(argument)):
            return f"{spec.module}:{spec.name}:{path_tail(argument)}"
        case LanguageSpec() if spec.file:
            return f"{LANGUAGE}{path_tail(spec.file)}"
        case LanguageSpec() if not spec.url:
            return f"{LANGUAGE}local:{path_tail(spec.folder)}"
        case SearchSpec():
            more = [f"assume={assumption_name(spec.assume)}"] if spec.assume else []
            return f"{SEARCH}{_written(spec.options, *more)}:{short_name(spec.policy, folders)}"
        case VoiceSpec():
            return f"{spec.kind}{_written(spec.options)}+{short_name(spec.player, folders)}"
    return spec.text


def _written(options: Options, *more: str) -> str:
    texts = *(f"{name}={value!r}".removesuffix(".0") for name, value in options), *more
    return f"({' '.join(texts)})" if texts else ""


def _policy_name(path: str, path_tail: Callable[..., str]) -> str:
    file = Path(os.path.abspath(policy_file(path)))
    for name, ready in ready_policies().items():
        if os.path.abspath(ready) == str(file):
            return name
    if file.name in (CHECKPOINT, POLICY):
        return path_tail(file.parent)
    here = Path.cwd()
    return path_tail(file, len(file.relative_to(here).parts) if file.is_relative_to(here) else 2)


def short_names(players: Sequence[str | PlayerSpec]) -> list[str]:
    """Return names that are equal where the players are: others are told apart by as many folders
    as it takes, or else by numbers."""
    specs = [parse_player(player) for player in players]
    names = {spec: short_name(spec) for spec in specs}
    for folders in range(1, 40):
        counts = Counter(names.values())
        twice = [spec for spec, name in names.items() if counts[name] > 1]
        names |= {spec: short_name(spec, folders) for spec in twice}
    names = numbered(names)
    return [names[spec] for spec in specs]


def numbered(names: Mapping[_Key, str]) -> dict[_Key, str]:
    """Return the names under the same keys, the second of a name as `NAME (2)`, and so on."""
    apart: dict[_Key, str] = {}
    for key, name in names.items():
        choices = (f"{name} ({n})" if n > 1 else name for n in itertools.count(1))
        apart[key] = next(each for each in choices if each not in apart.values())
    return apart
