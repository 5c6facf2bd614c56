"""The file of a game that people play: a saved game with the key `play` beside the format's own."""

import contextlib
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Unpack

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from ..constants import COMPLETED
from ..errors import UserError
from ..pictures.board import phase_title
from ..records import convert
from ..replays.replay import make_replay
from ..rules.game_rules import GameRules, RuleOptions
from ..rules.map import MAP_NAMES, Map
from ..textgame.game import Game
from ..textgame.imports.games import read_games, read_pasted
from ..textgame.imports.replaying import Note
from ..textgame.saved_game import in_disorder

HOST: Final = "host"
GUEST: Final = "guest"
PLAYER: Final = "player"
WATCH = "watch"
Format = Literal[1, 2]
FORMAT: Format = 2


class Seat(NamedTuple):
    # HOST: who started the game; GUEST: somebody with the power's link; PLAYER
    kind: Literal["host", "guest", "player"]
    player: str = ""  # name of the PLAYER


_Natural = Annotated[int, Meta(ge=0)]


class PlayRecord(Struct, kw_only=True):
    """The key `play` of a file: how a session was set up, and how far it is."""

    format: Format = FORMAT
    step: _Natural = 0
    seats: dict[str, Seat] | None = None  # None: the host has not chosen yet
    answered: dict[str, tuple[int, list[str]]] = {}  # power -> step and orders that it last gave
    # Power -> orders that its person has chosen and not given, or has taken back.
    drafts: dict[str, list[str]] = field(name="before", default_factory=dict)
    # HOST, WATCH and every power -> what is in its link; none yet in a session that begins.
    tokens: dict[str, Annotated[str, Meta(pattern="^[\\x00-\\x7f]{16,}$")]] = {}
    opponents: Annotated[list[str], Meta(min_length=1)]  # players of the powers without a person
    hint: str | None = None  # the player that gives hints; None: the first opponent that can
    seed: _Natural = 1  # of the players' random choices
    # Whether it goes on from a phase of a game that was over; else the file does not say.
    tried: bool | UnsetType = UNSET
    parent: str | UnsetType = UNSET  # name of the file of the game that it was begun from


class _Saved(Struct):
    play: PlayRecord


class _ListedPhase(Struct):
    name: str


class ListedGame(Struct):
    """What a list of games says of a file, as far as it is read."""

    map: str
    phases: Annotated[list[_ListedPhase], Meta(min_length=1)]
    play: PlayRecord

    @property
    def goes_on(self) -> bool:
        """Whether somebody plays on, in a game that is not over."""
        return self.play.seats is not None and self.phases[-1].name != COMPLETED

    def entry(self, file: Path) -> dict:
        play, last = self.play, self.phases[-1].name
        own = [power for power, seat in (play.seats or {}).items() if seat.kind == HOST]
        return {
            "file": file.name,
            "map": self.map,
            "phase": phase_title(last),
            "powers": own,
            "begun": play.seats is not None,
            "over": last == COMPLETED,
            "parent": play.parent or "",
            "token": play.tokens.get(HOST, ""),
            "time": int(file.stat().st_mtime),
        }


@lru_cache(maxsize=1000)
def _listed(file: Path, changed: int) -> ListedGame | None:
    """`changed` is when, since the answer is kept until then."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=ListedGame)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None  # no game that people play


def games_in(folder: Path) -> dict[Path, ListedGame]:
    """Return the games that people have played in a folder, those that changed last first."""
    changed = {}
    for file in folder.glob("*.jsonl"):
        with contextlib.suppress(OSError):
            changed[file] = file.stat().st_mtime_ns
    newest = sorted(changed, key=lambda file: changed[file], reverse=True)
    listed = {file: _listed(file, changed[file]) for file in newest}
    return {file: game for file, game in listed.items() if game is not None}


def rebuild(
    game: Game,
    phases: int,
    orders: Mapping[str, list[str]] | None = None,
    rules: GameRules | None = None,
    concessions: bool = True,
) -> Game:
    """Return a game as it stood after its first `phases` phases, with `orders` submitted, to go on
    by `rules` (None: its own).

    Without `concessions` all play on that have given up. The last movement phase, at which policies
    look, is no part of a saved state: it is played again, unless its position is impossible here.
    """
    now, rules = phases == len(game.history), rules or game.rules
    state = game.to_state() if now else game.history[phases]["state"]
    conceded = _conceded(game, phases) if concessions else ()
    built = Game.from_state(rules, state, now and game.is_agreed, conceded)
    built.id, built.history = game.id, game.history[:phases]
    for power in game.votes if now and rules.draw_votes else ():
        built.vote(power)
    with contextlib.suppress(UserError):  # of another program's rules
        built.take_up_last_movement()
    built.take_up_talk()
    for power, texts in (orders or {}).items():
        built.submit(power, texts, strict=False)
    return built


def _conceded(game: Game, phases: int) -> list[str]:
    if phases == len(game.history):
        return list(game.conceded)
    before = game.history[phases - 1]["state"] if phases else {}
    return [power for power in game.conceded if in_disorder(before, power)]


def read_session(
    file: str | Path,
    game_map: Map | str | None = None,
    note: Note = lambda text: None,
    number: int | None = None,
    **changes: Unpack[RuleOptions],
) -> tuple[Game, PlayRecord | None]:
    """Return a game in a file of ours or of another program, and its key `play`, if any.

    It is the game of this `number`, from 1 (None: the last). `changes` are fields of GameRules
    which a game without that key has in place of its own. `note` gets differences from our rules.
    """
    saved = deque(islice(read_games(file, game_map, note=note), number), maxlen=number or 1)
    if len(saved) < (number or 1):
        raise UserError(f"{file} has {f'no game {number}' if number else 'no game'} in it")
    saved, play = saved.pop(), None
    if "play" in saved:
        play, changes = replace(convert(_Saved, saved, file).play, format=FORMAT), {}
    try:
        built = _to_go_on(saved, game_map, changes)
        if play is not None:
            _check_powers(play, built.powers)
            for power, (step, texts) in play.answered.items():
                if step == play.step and not texts:  # a saved game does not tell this from none yet
                    built.submit(power, [])
        make_replay(built.to_saved_game(), built.map)  # the page shows what was played
    except UserError as error:
        raise UserError(f"{file} cannot be continued: {error}") from None
    return built, play


def _to_go_on(saved: Mapping, game_map: Map | GameRules | str | None, changes: RuleOptions) -> Game:
    game = Game.from_saved_game(saved, game_map, **changes)
    built = rebuild(game, len(game.history), game.orders)
    built.messages = game.messages
    built.take_up_talk()
    return built


def pasted_game(text: str, rules: GameRules) -> tuple[Game, list[str]]:
    notes: list[str] = []
    saved = read_pasted(text, rules.map, notes.append)
    name = saved.get("map")
    if name in MAP_NAMES and name != rules.map.name:
        raise UserError(f"this game is on map {name}, not on {rules.map.name}")
    built = _to_go_on(saved, rules, {})
    make_replay(built.to_saved_game(), built.map)  # the page shows what was played
    return built, notes


def _check_powers(play: PlayRecord, powers: list[str]) -> None:
    for key, named, wanted in (
        ("tokens", play.tokens, {HOST, WATCH, *powers}),
        ("seats", play.seats, {*powers}),
    ):
        if named is not None and set(named) != wanted:
            raise UserError(f"play.{key}: must be those of {', '.join(sorted(wanted))}")
