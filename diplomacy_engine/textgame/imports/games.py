"""Games that were played elsewhere, made into saved games: of the `diplomacy` package, of a
webDiplomacy site (`history.json`), or blocks of order texts. The orders are replayed by our rules,
and differences are reported."""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from ..._files import open_file, read_file
from ..._suggest import quoted
from ...errors import UserError
from ...records import convert, parse_json, read_json
from ...rules.map import Map, load_map
from ..game import Game
from ..position import parse_position_line
from ..saved_game import MAX_GAME_BYTES, MOST_PHASES, Ending, read_saved_games
from . import order_blocks
from .foreign import refuse_foreign
from .replaying import Note, replayed
from .report_games import game_of_report
from .webdiplomacy import DRAWN, Phase, classic, history_phases, read_variant

_POSITION = re.compile(r"\s*\S+ (?:[SFW]\d+[MRA]|COMPLETED)\s*;")


def read_games(
    path: str | Path,
    game_map: Map | str | None = None,
    variant: str | Path | None = None,
    note: Note = lambda text: None,
) -> Iterator[dict]:
    """Yield the games of a file as saved games; UserError or OSError if it has none. `game_map` is
    that of games which do not name theirs (None: the standard map), `variant` the site's
    `variant.json` of a history on another map; `note` is told what does not agree."""
    game_map = load_map(game_map or "standard")
    with open_file(path) as file:
        begin = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    text = ""
    if begin[:1] not in (b"{", b"[", b""):
        with contextlib.suppress(OSError, UnicodeDecodeError):  # it is no text of orders
            text = read_file(path, 4 * order_blocks.MOST_LETTERS).decode("utf-8-sig")
    game = None
    for game in [text] if text else _json_games(Path(path)):
        try:
            saved = _saved(game, game_map, Path(path).stem, note, variant)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
        yield saved
    if game is None:
        raise UserError(f"{path} has no game in it")


def read_pasted(text: str, game_map: Map, note: Note = lambda text: None) -> dict:
    """Return the game of a text: what a file may have, of several the last, a JSON state, or what
    Game.to_position writes."""
    if _POSITION.match(text):
        map_name, state = parse_position_line(text)
        if map_name != game_map.name:
            raise UserError(f"this position is on map {map_name}, not on {game_map.name}")
        return Game.from_state(game_map, state).to_saved_game()
    if text.lstrip()[:1] not in ("{", "["):
        return _saved(text, game_map, "pasted", note)
    data = parse_json(text, "what was pasted")
    game = convert(dict, data[-1] if isinstance(data, list) and data else data, "the game")
    if "phases" not in game and "units" in game:
        return Game.from_state(game_map, game).to_saved_game()
    return _saved(game, game_map, "pasted", note)


def _saved(
    game: dict | str, game_map: Map, game_id: str, note: Note, variant: str | Path | None = None
) -> dict:
    """Return a text of orders, a history, a record of phases or a saved game as a saved game;
    `game_id` counts where it has none."""
    phases = None if isinstance(game, str) else game.get("phases")
    first = phases[0] if isinstance(phases, list) and phases else None
    keys = {*first} if isinstance(first, dict) else set()
    if not isinstance(game, str) and "turn" in keys and "map" not in game:
        return _of_history(game, game_map, game_id, note, variant)
    if variant is not None:
        raise UserError(f"{variant} is for a history.json, which this is not")
    if isinstance(game, str):
        refuse_foreign(game)
        return game_of_report(order_blocks.read_report(game_map, game), game_map, game_id, note)
    if "units" in keys and not keys & {"state", "turn"}:
        return _of_record(game, game_map, game_id, note)
    return game


def _of_history(
    game: dict, game_map: Map, game_id: str, note: Note, variant: str | Path | None
) -> dict:
    """Return the saved game of a site's history; `variant` is the path of its variant's rules."""
    facts = None if variant is None else read_json(dict, variant, MAX_GAME_BYTES)
    site_map = classic(game_map) if facts is None else read_variant(facts, game_map)
    number = game.get("gameID")
    game_id = str(number) if type(number) is int else game_id
    played = replayed(history_phases(site_map, game), game_map, game_id, note)
    saved = played.to_saved_game()
    if played.is_draw and game.get("gameOver") == DRAWN:
        # What the site says of votes: such a game has no other end without a solo.
        saved |= {"draw_votes": True} | Ending(True).notes()
    return saved


def _json_games(path: Path) -> Iterator[dict]:
    """Yield the dictionaries of a file: one a line, or one or a list of them that is all of it."""
    try:
        yield from read_saved_games(path)
    except UserError as error:
        try:
            data = json.loads(read_file(path, MAX_GAME_BYTES))
        except (OSError, ValueError, RecursionError):
            raise error from None
        if data == []:
            raise
        yield from convert(list[dict], data if isinstance(data, list) else [data], path)


class _RecordedPhase(Struct):
    """A phase as the data of droidippy's games have it; `units` are those before the orders."""

    name: str
    units: dict[str, list[str]]
    orders: dict[str, list[str] | None]
    centers: dict[str, list[str]] | None = None  # in springs
    dislodged: dict[str, list[str]] = {}


class _RecordedGame(Struct):
    phases: Annotated[list[_RecordedPhase], Meta(min_length=1, max_length=MOST_PHASES)]
    id: str | int = ""


def _of_record(game: dict, game_map: Map, game_id: str, note: Note) -> dict:
    recorded = convert(_RecordedGame, game, "the record")
    phases = []
    for phase in recorded.phases:
        units, centers = (
            {game_map.powers[game_map.power_number(p)]: [*own] for p, own in table.items()}
            for table in (phase.units, phase.centers or {})
        )
        for power, texts in phase.dislodged.items():
            units.setdefault(power, []).extend(f"*{text}" for text in texts)
        orders = {power: texts or [] for power, texts in phase.orders.items()}
        phases.append(Phase(phase.name, orders, units, centers))
    return replayed(phases, game_map, str(recorded.id) or game_id, note).to_saved_game()


def short_report(saved: Mapping, game_map: Map | str | None = None) -> str:
    """Return a line about a saved game: its map, phases and the centers at its end."""
    game = Game.from_saved_game(saved, game_map)
    names = [phase["name"] for phase in saved["phases"]]
    centers = sorted(((len(held), power) for power, held in game.centers.items()), reverse=True)
    held = ", ".join(f"{power} {count}" for count, power in centers if count)
    span = f"{len(names)} phases from {names[0]} to {names[-1]}" if names[1:] else names[0]
    return f"game {quoted(game.id, 60)} on map {game.map.name}: {span}; centers: {held}"
