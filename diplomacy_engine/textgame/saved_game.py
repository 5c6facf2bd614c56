"""Saved games in the format of the `diplomacy` package, one game per line of a .jsonl file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import astuple

from .._files import open_file
from ..constants import COMPLETED, canonical_phase, parse_phase, phase_kind
from ..errors import UserError
from ..records import convert, parse_json
from ..rules.game_rules import GameRules
from ..rules.map import Map
from ..rules.notation import unit_of

RULES = ["POWER_CHOICE"]  # and NO_PRESS where nobody says anything
NO_PRESS = "NO_PRESS"
# Lets the package's validator accept that the last phase led to another one than in its own game.
OWN_END = "DIFFERENT_ADJUDICATION"
EVERYONE, REFEREE = "GLOBAL", "SYSTEM"  # recipient and sender that are no powers
MAX_GAME_BYTES = 50_000_000  # of one line; far above any real game's
# Far above any game's, so that no file takes minutes: phases, orders of a power in a phase and of
# all together,
MOST_PHASES, MOST_ORDERS, MOST_IN_ALL = 10_000, 500, 250_000
MOST_SAID = 10_000_000  # and letters of all messages


_END = (10**9, 0)


def moment(name: str) -> tuple[int, int]:
    """Return the year and season number of a phase, by which phases are sorted."""
    return _END if name == COMPLETED else parse_phase(name)


class Message(Struct):
    sender: str
    recipient: str
    time_sent: int
    phase: str
    message: str


class _State(Struct):
    name: str
    units: dict[str, list[str] | None]
    influence: dict[str, list[str]] | None = None


_Record = TypeVar("_Record", bound=Mapping)


class SavedPhase(TypedDict, total=False):
    """A phase of a saved game; programs add keys of their own."""

    name: str
    state: dict
    orders: dict[str, list[str] | None]
    results: dict[str, list[str]]
    messages: list[dict]
    thoughts: dict
    votes: list[str]
    broken: dict[str, list[str]]


class _Phase(Struct):
    name: str
    state: _State
    orders: dict[str, Annotated[list[str], Meta(max_length=MOST_ORDERS)] | None]
    results: dict = {}
    messages: list[Message] = []
    votes: list[str] = []
    broken: dict[str, list[str]] = {}  # power -> those with whom it broke a deal


class _SavedGame(Struct):
    """What is read of a saved game; other programs' keys are kept, and passed over."""

    map: str
    phases: Annotated[list[_Phase], Meta(min_length=1, max_length=MOST_PHASES)]
    id: str | int = ""
    draw_agreed: bool = False
    conceded: list[str] = []


def saved_game_dictionary(
    game_id: str, rules: GameRules, phases: Sequence[SavedPhase], silent: bool, own_end: bool
) -> dict:
    """Return the saved game of some phases, the last not yet adjudicated. In a `silent` one nobody
    said anything; with `own_end` it ended as none does in the package's replay: at a year limit, by
    agreement or concession. The package has no waives, and passes over notes of ours."""
    played = [phase | {"orders": _without_waives(phase)} for phase in phases[:-1]]
    return {
        "id": game_id,
        "map": rules.map.name,
        "rules": [*([NO_PRESS] if silent else []), *RULES, *([OWN_END] if own_end else [])],
        "phases": _with_influence(rules.map.powers, [*played, phases[-1]]),
    } | rules.to_json()


def _without_waives(phase: Mapping) -> dict:
    """Return the orders without waives, and without those that waives made void: they would count
    when the game is read back."""
    results = phase["results"]
    return {
        power: [text for text in texts if results.get(unit_of(text)) == []]
        if texts and "WAIVE" in texts
        else texts
        for power, texts in phase["orders"].items()
    }


def _with_influence(powers: list[str], phases: Sequence[SavedPhase]) -> list[SavedPhase]:
    """Each province is influenced by the last power seen there; the package's page shows it."""
    influence: dict[str, str] = {}
    phases_out = []
    for phase in phases:
        state = phase["state"]
        now = state.get("influence") or {}
        influence |= {code: power for power in powers for code in now.get(power, ())}
        trail = {power: [] for power in powers}
        for code, power in sorted(influence.items()):
            trail[power].append(code)
        phases_out.append(phase | {"state": state | {"influence": trail}})
    return phases_out


class Ending(NamedTuple):
    """What a saved game says of draws and concessions, in keys of ours."""

    draw_agreed: bool = False  # whether the game ended in a draw for which all voted
    conceded: tuple[str, ...] = ()  # powers

    def notes(self) -> dict:
        notes = {"draw_agreed": self.draw_agreed, "conceded": list(self.conceded)}
        return {key: value for key, value in notes.items() if value}


def victors(game_map: Map, state: Mapping) -> list[str]:
    """Return who has won, or shares a draw, by the `note` of a state, which cuts names to three."""
    note = state.get("note")
    head, _, names = note.partition(":") if isinstance(note, str) else ("", "", "")
    named = [name.strip().upper() for name in names.split(",")]
    powers = game_map.powers
    called = [[p for p in powers if p == n] or [p for p in powers if p[:3] == n] for n in named]
    is_victory = head.strip().lower() == "victory by" and all(len(each) == 1 for each in called)
    return [power for power in powers if [power] in called] if is_victory else []


def read_saved_game(
    saved: Mapping, game_map: str | Path | Map | GameRules | None
) -> tuple[str, GameRules, list[SavedPhase], Ending]:
    source = "the saved game"
    if isinstance(saved, Mapping) and isinstance(saved.get("phases"), list):
        saved = {**saved, "phases": [_with_lists(phase) for phase in saved["phases"]]}
    game = convert(_SavedGame, saved, source)
    phases = game.phases
    names = [(canonical_phase(p.state.name), canonical_phase(p.name)) for p in phases]
    unlike = (i for i, (of_state, name) in enumerate(names) if of_state != name)
    wrong = [f"phases[{i}].state.name: is not that of the phase" for i in unlike]
    phase_names = [name for _, name in names if name == COMPLETED or phase_kind(name)]
    pairs = ((early, late) for early, late in pairwise(phase_names) if moment(late) < moment(early))
    wrong += [f"phases: {late} comes behind {early}" for early, late in pairs]
    if sum(len(texts or ()) for phase in phases for texts in phase.orders.values()) > MOST_IN_ALL:
        wrong.append(f"phases: more than {MOST_IN_ALL:,} orders")
    if sum(len(m.message) for phase in phases for m in phase.messages) > MOST_SAID:
        wrong.append(f"phases: messages of more than {MOST_SAID:,} characters")
    if wrong:
        raise UserError(f"{source}: {wrong[0]}")
    notes = _rules_of_play(saved, source) | dict(saved)
    if isinstance(saved.get("draw_votes"), Mapping):  # in the form that the package publishes
        notes["draw_votes"] = bool(saved["draw_votes"])
    rules = GameRules.from_json(notes, game_map, source)
    played_on: list[SavedPhase] = []
    for (_, name), phase in zip(names, saved["phases"]):
        try:
            played_on.append(_by_names_of(rules.map, phase, name))
        except UserError as error:
            which = named_map(saved, game_map)
            raise UserError(f"{source}: {name}: {error}{which}") from None
    conceded = tuple(_powers(rules.map, game.conceded))
    return str(game.id), rules, played_on, Ending(game.draw_agreed, conceded)


class _Press(Struct):
    protocol: str = "mutual"
    rounds: int = 1
    binding: bool = True
    open_press: bool = False


class _Play(Struct):
    max_years: int | None = None
    draws_after: int | None = None
    press: _Press | None = None


def _rules_of_play(saved: Mapping, source: str) -> dict:
    """Return the rules of a game that people played before version 0.6, which were in its key
    `play`."""
    if not isinstance(saved.get("play"), Mapping) or saved["play"].get("format") != 1:
        return {}
    play = convert(_Play, saved["play"], source)
    rules = {"max_years": play.max_years, "draws_after": play.draws_after}
    names = "press", "press_rounds", "binding", "open_press"
    return rules if play.press is None else rules | dict(zip(names, astuple(play.press)))


def _with_lists(phase: object) -> object:
    """Return a phase with lists where published games have messages by time and votes by power."""
    if not isinstance(phase, Mapping):
        return phase
    lists: dict[str, object] = {**phase, "results": phase.get("results", {})}
    messages, votes = lists.get("messages"), lists.get("votes")
    if isinstance(messages, Mapping):
        lists["messages"] = [*messages.values()]
    if isinstance(votes, Mapping):
        lists["votes"] = [power for power, vote in votes.items() if vote in (True, "yes", "Yes")]
    return lists


def named_map(saved: Mapping, game_map: str | Path | Map | GameRules | None) -> str:
    """Return which map a saved game names, to be told where another one does not fit."""
    return "" if game_map is None else f" (the game names map {saved['map']:.60})"


def _by_names_of(game_map: Map, phase: SavedPhase, name: str) -> SavedPhase:
    """Return a phase in which powers have their names on the map, and phases theirs; UserError if
    the map has no power that has units, orders, votes or broken deals."""
    state = _by_power(game_map, phase["state"], ["units"]) | {"name": name}
    phase = _by_power(game_map, phase, ["orders", "broken"]) | {"name": name, "state": state}
    if "votes" in phase:
        phase["votes"] = _powers(game_map, phase["votes"])
    if "broken" in phase:
        phase["broken"] = {power: _powers(game_map, o) for power, o in phase["broken"].items()}
    phase["messages"] = [
        dict(one)
        | {role: name_on(game_map, one[role]) for role in ("sender", "recipient")}
        | {"phase": canonical_phase(one["phase"])}
        for one in phase.get("messages", ())
    ]
    return phase


def _by_power(game_map: Map, record: _Record, of_powers_alone: Sequence[str]) -> _Record:
    """Return a record with its tables by the powers' names on the map."""
    named: dict[str, Any] = dict(record)
    for key, table in record.items():
        if key in of_powers_alone:
            for name in table:
                game_map.power_number(name, or_neutral=True)
        if isinstance(table, Mapping):
            named[key] = {name_on(game_map, name): own for name, own in table.items()}
            if len(named[key]) < len(table):
                raise UserError(f"{key}: has a power twice")
    return named  # type: ignore[return-value]  # a copy with other names


def name_on(game_map: Map, name: str) -> str:
    upper = name.upper() if isinstance(name, str) else name
    return upper if upper in game_map.unit_power_index else name


def _powers(game_map: Map, names: Iterable[str]) -> list[str]:
    return [game_map.powers[game_map.power_number(name)] for name in names]


def in_disorder(state: Mapping, power: str) -> bool:
    disorder = state.get("civil_disorder")
    return isinstance(disorder, Mapping) and bool(disorder.get(power))


def read_saved_games(path: str | Path) -> Iterator[dict]:
    """Yield the saved games of a .jsonl file; UserError names file and line."""
    with open_file(path) as file:
        lines = iter(lambda: file.readline(MAX_GAME_BYTES + 1), b"")
        for number, line in enumerate(lines, 1):
            where = f"{path}, line {number}"
            if len(line) > MAX_GAME_BYTES:
                raise UserError(f"{where}: longer than {MAX_GAME_BYTES:,} bytes")
            if line.strip():
                yield convert(dict, parse_json(line, where), where)
