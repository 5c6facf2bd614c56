"""Saved games in the format of the `diplomacy` package, one game per line of a .jsonl file."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .._files import open_file
from ..constants import COMPLETED
from ..errors import UserError
from ..rules.map import Map, load_map

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
_MESSAGE_KEYS = {"sender": str, "recipient": str, "time_sent": int, "phase": str, "message": str}
_PHASE_KEYS = {"name": str, "state": Mapping, "orders": Mapping, "results": Mapping}


def saved_game_dictionary(
    game_id: str, game_map: Map, phases: list[dict], own_end: bool = False
) -> dict:
    """Return the saved game of a list of phases, the last of them not yet adjudicated.

    With `own_end` the game ended as none does in the package's replay: at a year limit, by
    agreement or by concession. Its games have
    no waives, so those of phases that were played are left out. A game of a map file stores the
    file's path under `map`, as the package does. Teams stand under `teams` and
    `team_victory`, which are ours.
    """
    teams = game_map.teams
    silent = not any(phase["messages"] for phase in phases)
    rules = [*([NO_PRESS] if silent else []), *RULES, *([OWN_END] if own_end else [])]
    played = [phase | {"orders": _without_waives(phase["orders"])} for phase in phases[:-1]]
    saved = {
        "id": game_id,
        "map": map_reference(game_map),
        "rules": rules,
        "phases": _with_influence(game_map.powers, [*played, phases[-1]]),
    }
    if teams.text:  # a note that other programs pass over
        saved |= {"teams": teams.text, "team_victory": teams.victory_centers}
    return saved


def _without_waives(orders: Mapping) -> dict:
    return {
        power: texts and [text for text in texts if text != "WAIVE"]
        for power, texts in orders.items()
    }


def map_reference(game_map: Map) -> str:
    """Return what `load_map` finds this map by."""
    try:
        if load_map(game_map.name) is game_map:
            return game_map.name
    except UserError:
        pass
    return game_map.source if Path(game_map.source).is_file() else game_map.name


def _with_influence(powers: list[str], phases: list[dict]) -> list[dict]:
    """Return the phases with each province under the influence of the last power seen in it.

    The web interface of the package colors its map by this. Phases that were loaded may lack it.
    """
    influence: dict[str, str] = {}
    phases_out = []
    for phase in phases:
        state = phase["state"]
        influence |= _influence_of(powers, state)
        trail = {power: [] for power in powers}
        for code, power in sorted(influence.items()):
            trail[power].append(code)
        phases_out.append(phase | {"state": state | {"influence": trail}})
    return phases_out


def _influence_of(powers: list[str], state: Mapping) -> dict[str, str]:
    """Return province -> power of a state's influence, as far as it has a sound one."""
    now, found = state.get("influence"), {}
    for power in powers if isinstance(now, Mapping) else ():
        codes = now.get(power)
        for code in codes if isinstance(codes, list) else ():
            if isinstance(code, str):
                found[code] = power
    return found


def check_saved_game(saved: Mapping, game_map: Map | str | None) -> tuple[str, Map, list[dict]]:
    """Return `(id, map, phases)` of a saved game.

    Raises:
        UserError: a key is missing or of the wrong kind, or the map is unknown.
    """
    if not isinstance(saved, Mapping):
        raise UserError(f"a saved game must be a dictionary, not {type(saved).__name__}")
    for key, kind in (("map", str), ("phases", list)):
        if not isinstance(saved.get(key), kind):
            raise UserError(f"the saved game has no {key!r}, or not as {_name(kind)}")
    if not 0 < len(saved["phases"]) <= MOST_PHASES:
        count = "no phases" if not saved["phases"] else f"more than {MOST_PHASES:,} phases"
        raise UserError(f"the saved game has {count}")
    phases, in_all = [], 0
    for i, phase in enumerate(saved["phases"]):
        if not isinstance(phase, Mapping):
            raise UserError(f"phase {i} of the saved game is not a dictionary")
        for key, kind in _PHASE_KEYS.items():
            if not isinstance(phase.get(key), kind):
                raise UserError(f"phase {i} of the saved game has no {key!r} as {_name(kind)}")
        if phase["state"].get("name") != phase["name"]:
            raise UserError(f"phase {i} of the saved game and its state have different names")
        for power, orders in phase["orders"].items():
            texts = [] if orders is None else orders
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise UserError(f"phase {i}: the orders of {power!r:.40} are not a list of texts")
            if len(texts) > MOST_ORDERS:
                raise UserError(f"phase {i}: {power!r:.40} has more than {MOST_ORDERS} orders")
            in_all += len(texts)
        if i < len(saved["phases"]) - 1:  # the last one's position is read more closely
            _check_units(phase["state"], i)
        phases.append(dict(phase) | {"messages": _messages(phase, i)})
    if in_all > MOST_IN_ALL:
        raise UserError(f"the saved game has more than {MOST_IN_ALL:,} orders")
    if sum(len(m["message"]) for phase in phases for m in phase["messages"]) > MOST_SAID:
        raise UserError(f"the messages of the saved game have more than {MOST_SAID:,} characters")
    game_id = saved.get("id", "")
    if not isinstance(game_id, str | int):
        raise UserError("the 'id' of the saved game is not a text")
    found_map = load_map(game_map or saved["map"])
    if not found_map.teams.text and saved.get("teams") is not None:
        victory = saved.get("team_victory", 0)
        if not isinstance(saved["teams"], str) or type(victory) is not int:
            raise UserError(
                "the 'teams' of the saved game must be a text, and their victory a number"
            )
        found_map = found_map.with_teams(saved["teams"], victory)
    return str(game_id), found_map, phases


class Ending(NamedTuple):
    """What a saved game says of draws and concessions, in keys of ours."""

    draw_votes: bool = False  # whether powers may vote for a draw
    draw_agreed: bool = False  # whether the game ended in one
    conceded: tuple[str, ...] = ()  # powers

    def notes(self) -> dict:
        """Return the keys; none in a game without votes and concessions."""
        notes = {"draw_votes": self.draw_votes, "draw_agreed": self.draw_agreed}
        notes |= {"conceded": list(self.conceded)}
        return {key: value for key, value in notes.items() if value}


def victors(game_map: Map, state: Mapping) -> list[str]:
    """Return the powers by which a state says that the game was won, or which share a draw.

    Nobody if its `note` does not say so. The `diplomacy` package cuts their names to three letters.
    """
    note = state.get("note")
    head, _, names = note.partition(":") if isinstance(note, str) else ("", "", "")
    named = [name.strip().upper() for name in names.split(",")]
    found = [[power for power in game_map.powers if name in (power, power[:3])] for name in named]
    known = head.strip().lower() == "victory by" and all(len(powers) == 1 for powers in found)
    return [power for power in game_map.powers if [power] in found] if known else []


def read_ending(saved: Mapping, game_map: Map) -> Ending:
    """Return what a saved game says of draws and concessions; UserError for a broken form."""
    for key in ("draw_votes", "draw_agreed"):
        if type(saved.get(key, False)) is not bool:
            raise UserError(f"{key!r} of the saved game must be true or false")
    conceded = saved.get("conceded", [])
    if not isinstance(conceded, list):
        raise UserError("'conceded' of the saved game is not a list of powers")
    found = tuple(game_map.powers[game_map.power_number(power)] for power in conceded)
    state = saved["phases"][-1]["state"]
    shared = victors(game_map, state)
    if len(shared) > 1 and not game_map.teams.text and state.get("name") == COMPLETED:
        # Whoever is left out of a draw has no share of it, as if it had conceded.
        held = [state.get(key) for key in ("units", "centers")]
        held = [table for table in held if isinstance(table, Mapping)]
        alive = [power for power in game_map.powers if any(table.get(power) for table in held)]
        found += tuple(power for power in alive if power not in (*shared, *found))
    return Ending(saved.get("draw_votes", False), saved.get("draw_agreed", False), found)


def read_votes(phase: Mapping, game_map: Map) -> tuple[str, ...]:
    """Return who voted for a draw in a phase; UserError for a broken form."""
    votes = phase.get("votes", [])
    if not isinstance(votes, list):
        raise UserError(f"the 'votes' of phase {phase['name']:.20} are not a list of powers")
    return tuple(game_map.powers[game_map.power_number(power)] for power in votes)


def in_disorder(state: Mapping, power: str) -> bool:
    """Tell whether a state says that a power is in civil disorder."""
    found = state.get("civil_disorder")
    return isinstance(found, Mapping) and bool(found.get(power))


def _check_units(state: Mapping, i: int) -> None:
    units = state.get("units")
    if not isinstance(units, Mapping):
        raise UserError(f"phase {i} of the saved game has no 'units' as {_name(Mapping)}")
    for power, found in units.items():
        texts = [] if found is None else found
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise UserError(f"phase {i}: the units of {power!r:.40} are not a list of texts")


def _messages(phase: Mapping, i: int) -> list[dict]:
    messages = phase.get("messages", [])
    if not isinstance(messages, list):
        raise UserError(f"the messages of phase {i} of the saved game are not a list")
    for number, message in enumerate(messages):
        for key, kind in _MESSAGE_KEYS.items():
            if not isinstance(message, Mapping) or type(message.get(key)) is not kind:
                raise UserError(
                    f"message {number} of phase {i} of the saved game has no {key!r} as "
                    f"{_name(kind)}"
                )
    return [dict(message) for message in messages]


def _name(kind: type) -> str:
    names = {str: "a text", int: "a whole number", list: "a list", Mapping: "a dictionary"}
    return names[kind]


def read_saved_games(path: str | Path) -> Iterator[dict]:
    """Yield the saved games of a .jsonl file.

    Raises:
        UserError: a line is not a JSON dictionary; the message names file and line.
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        lines = iter(lambda: file.readline(MAX_GAME_BYTES + 1), b"")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_GAME_BYTES:
                raise UserError(f"{path}, line {number} is longer than {MAX_GAME_BYTES:,} bytes")
            if not line.strip():
                continue
            try:
                saved = json.loads(line)
            except UnicodeDecodeError:
                raise UserError(f"{path}, line {number} is not text") from None
            except (ValueError, RecursionError) as error:
                raise UserError(f"{path}, line {number} is not JSON: {error}") from None
            if not isinstance(saved, dict):
                raise UserError(f"{path}, line {number} is not a saved game")
            yield saved
