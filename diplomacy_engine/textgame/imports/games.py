"""Games that were played elsewhere, made into saved games: of the `diplomacy` package, of a
webDiplomacy site (`history.json`), or blocks of order texts. The orders are replayed by our rules,
and differences are reported."""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from ..._files import open_file, read_file
from ..._suggest import quoted
from ...constants import COMPLETED, OrderKind, phase_kind
from ...errors import UserError
from ...records import convert, parse_json, read_json
from ...rules import notation, reading
from ...rules.game_rules import GameRules
from ...rules.map import Map, load_map
from ..game import Game
from ..position import parse_position_line
from ..saved_game import MAX_GAME_BYTES, MOST_PHASES, Ending, moment, read_saved_games
from . import order_blocks, reports
from .foreign import refuse_foreign
from .order_lines import retreat_in_remark
from .report_positions import all_centers, by_power, read_position
from .webdiplomacy import DRAWN, Phase, classic, history_phases, read_variant

Note = Callable[[str], object]
_POSITION = re.compile(r"\s*\S+ (?:[SFW]\d+[MRA]|COMPLETED)\s*;")
_MOST_SKIPPED = 3  # phases in which nobody has anything to order


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
        return _of_report(order_blocks.read_report(game_map, game), game_map, game_id, note)
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


def _of_report(report: reports.Report, game_map: Map, game_id: str, note: Note) -> dict:
    """Return the saved game of a report of units, or of orders; those without a phase are of the
    map's first. Units without an order hold. An illegal order is kept as void, with a note."""
    state = read_position(game_map, report)
    if state is not None:
        game = Game.from_state(game_map, state)
        game.id = game_id
        return game.to_saved_game()
    phases, remarks = _phases_of(report, game_map)
    if not any(entry.kind == "order" for entry in report.entries):
        raise UserError(f"no phase with orders was found; {order_blocks.FORMS}")
    notes: list[str] = []
    if moment(phases[0].name) > moment(Game(game_map).phase) and not phases[0].units:
        phases = _begun_later(phases, game_map, notes.append)
    game = replayed(phases, game_map, game_id, notes.append)
    own, others = reports.notes_of(remarks)
    for text in (*own, *notes, *others):
        note(text)
    return game.to_saved_game()


def _phases_of(report: reports.Report, game_map: Map) -> tuple[list[Phase], list[reports.Remark]]:
    """Return the phases of a report in order, and what is to be noted. A position or a list of
    centers counts if no order is known from before it."""
    first = Game(game_map).phase
    remarks = [
        remark._replace(reason=reports.COUNTED) if remark.kind == "center" else remark
        for remark in report.remarks
    ]
    orders_of: dict[str, dict[str, list[str]]] = {}
    lines: dict[str, dict[tuple[str, str], int]] = {}
    stated: dict[str, list[reports.Entry]] = {}  # positions and centers, by phase
    idle, retreats = [], []
    for entry in report.entries:
        name = entry.phase or first
        if entry.kind == "order":
            name = _phase_of_order(game_map, name, entry.text)
        if entry.kind in ("position", "center"):
            if name in lines or (entry.kind == "center" and lines):
                reason = reports.COUNTED
                remarks.append(reports.Remark(entry.line, entry.text, reason))
            else:
                stated.setdefault(name, []).append(entry)
            continue
        texts = orders_of.setdefault(name, {}).setdefault(entry.power, [])
        moving = phase_kind(name) == "movement"
        if entry.kind == "unit" and moving:
            idle.append((name, entry))
        elif entry.kind and entry.text not in texts:
            texts.append(entry.text)
            lines.setdefault(name, {})[entry.power, entry.text] = entry.line
            remark = retreat_in_remark(game_map, entry.text) if moving else ""
            unit = reading.ordered_unit(game_map, entry.text, reading.likely_kinds(game_map))
            if remark and unit:
                retreats.append((f"{name[:-1]}R", entry.power, unit.place, remark))
    for name, entry in idle:
        texts = orders_of[name][entry.power]
        _, place = reading.read_place(game_map, entry.text)
        if place.province not in _ordered(game_map, texts):
            texts.append(f"{entry.text} H")
            remarks.append(reports.Remark(entry.line, entry.text, reports.HOLDS))
    for name, power, place, remark in retreats:
        texts = orders_of.setdefault(name, {}).setdefault(power, [])
        if place.province not in _ordered(game_map, texts):
            texts.append(f"{notation.place_text(game_map, place)} {remark}")
    phases = []
    for name in sorted({*orders_of, *stated}, key=moment):
        units = by_power(stated.get(name, ()), "position")
        centers = by_power(stated.get(name, ()), "center")
        if units and not phases:
            centers = all_centers(game_map, units, centers)
        orders, places = orders_of.get(name, {}), lines.get(name, {})
        phases.append(Phase(name, orders, units, centers, lines=places))
    return phases, remarks


def _ordered(game_map: Map, texts: Sequence[str]) -> set[int]:
    """Return the provinces whose units some texts order."""
    kinds = reading.likely_kinds(game_map)
    units = (reading.ordered_unit(game_map, text, kinds) for text in texts)
    return {unit.place.province for unit in units if unit}


def _phase_of_order(game_map: Map, phase: str, text: str) -> str:
    """Return the phase of an order that may stand among those of an earlier phase of its season."""
    kind, kinds = reading.order_kind(game_map, text), phase_kind(phase)
    if kind == OrderKind.RETREAT and kinds == "movement":
        return f"{phase[:-1]}R"
    return f"W{phase[1:-1]}A" if kind == OrderKind.BUILD and phase[0] == "F" else phase


def _adjustments(game: Game, power: str, texts: Sequence[str], note: Note) -> list[str]:
    """Return the orders of a winter's list: a unit that is there is removed, another one is built.
    More units that are there than are owed are all that a power has, and no removals."""
    if phase_kind(game.phase) != "adjustments":
        return [*texts]
    standing = {(unit[0], notation.province_of(unit)) for unit in game.units.get(power, ())}
    listed = {text: reading.listed_unit(game.map, text) for text in texts}
    units = {t: (unit[0], notation.province_of(unit)) for t, unit in listed.items() if unit}
    there = [text for text in units if units[text] in standing]
    owed = max(0, -game.adjustments.get(power, 0))
    if len(there) > owed:
        note(f"{game.phase}, {power}: {', '.join(there)}: no removals, of which it owes {owed}")
        texts = [text for text in texts if text not in there]
    verbs = {text: "D" if text in there else "B" for text in units}
    return [f"{listed[text]} {verbs[text]}" if text in verbs else text for text in texts]


def _begun_later(phases: list[Phase], game_map: Map, note: Note) -> list[Phase]:
    at = next((i for i, p in enumerate(phases) if phase_kind(p.name) == "movement"), None)
    if at is None:
        return phases
    for phase in phases[:at]:
        note(f"{phase.name} is skipped: nothing says what its position was")
    kinds, taken, units = reading.likely_kinds(game_map), set(), {}
    for power, texts in phases[at].orders.items():
        for unit in (reading.ordered_unit(game_map, text, kinds) for text in texts):
            if unit is not None and unit.place.province not in taken:
                taken.add(unit.place.province)
                units.setdefault(power, []).append(notation.unit_text(game_map, unit))
    centers = all_centers(game_map, units, phases[at].centers)
    about = "its units are those that have orders, its centers the likely ones"
    note(f"it begins with {phases[at].name}: {about}")
    return [phases[at]._replace(units=units, centers=centers), *phases[at + 1 :]]


def replayed(
    phases: Sequence[Phase],
    game_map: Map | GameRules,
    game_id: str = "game",
    note: Note = lambda text: None,
) -> Game:
    """Return a game that was played elsewhere, played again by our rules. Where a phase says what
    its position was and ours is another, it goes on from the said one. The last phase may have no
    orders yet. UserError: a position is impossible, or the order of phases."""
    game = _start(phases[0], game_map)
    game.id = game_id
    return played_on(game, phases, note)


def played_on(game: Game, phases: Sequence[Phase], note: Note = lambda text: None) -> Game:
    """Return a game after more phases; see `replayed`. The game itself may be played on."""
    for phase in phases:
        game = _caught_up(game, phase, note)
        if game.phase != phase.name:
            if _says_more(game.map, phase):
                note(f"{phase.name} is skipped: by our rules this is {game.phase}")
            continue
        if phase.units and _differs(game, phase):
            if _differs(game, phase, cornered=False):
                note(f"{phase.name} differs from our rules' result; the game continues from it")
            game = _placed(game, phase)
        still_open = phase is phases[-1] and not any(phase.orders.values())
        if game.is_over or still_open:
            break
        for power, texts in phase.orders.items():
            texts = _adjustments(game, power, texts, note)
            for reason in game.submit(power, texts, strict=False):
                places = [
                    f" (line {line})"
                    for (other, text), line in phase.lines.items()
                    if other == power and reason.startswith(f"{text!r:.200}: ")
                ]
                note(f"{phase.name}, {power}: {reason}{''.join(places)}")
        game.adjudicate()
    return game


def _says_more(game_map: Map, phase: Phase) -> bool:
    """Tell whether a phase that our rules skip has orders that they have not carried out."""
    done = OrderKind.WAIVE if phase_kind(phase.name) == "adjustments" else OrderKind.DISBAND
    kinds, texts = reading.likely_kinds(game_map), itertools.chain(*phase.orders.values())
    return any(reading.read_order(game_map, text, kinds).kind != done for text in texts)


def _start(phase: Phase, game_map: Map | GameRules) -> Game:
    game = Game(game_map)
    if not phase.units:
        if moment(phase.name) < moment(game.phase):
            raise UserError(f"{phase.name} is before {game.phase}, the first phase of the map")
        return game
    if phase.name == game.phase and not _differs(game, phase):
        return game
    return Game.from_state(game.rules, _state(phase, {}))


def _caught_up(game: Game, phase: Phase, note: Note) -> Game:
    """Play the phases before one in which nobody gave an order that is known."""
    if game.is_over != (phase.name == COMPLETED) and phase.units:
        return _placed(game, phase)
    skipped = 0
    while not game.is_over and moment(game.phase) < moment(phase.name):
        skipped += 1
        if phase_kind(game.phase) == "movement" or skipped > _MOST_SKIPPED:
            if not phase.units:
                raise UserError(f"{phase.name} comes where {game.phase} should")
            note(f"there is no record of {game.phase}: the game continues from {phase.name}")
            return _placed(game, phase)
        note(f"there is no record of {game.phase}: it is played without orders")
        for removal in _likely_removals(game, phase):
            note(f"{game.phase}: {removal}, since the others have orders in {phase.name}")
        game.adjudicate()
    return game


def _likely_removals(game: Game, phase: Phase) -> list[str]:
    """Order the removals of a winter of which there is no record so that the units with orders in
    the next phase stay, where the rule for missing removals would take them."""
    removals = []
    trial = game.copy()
    trial.adjudicate()
    for power, owed in game.adjustments.items():
        texts = phase.orders.get(power, ())
        units = [reading.ordered_unit(game.map, text, game.unit_kinds) for text in texts]
        ordered = {game.map.provinces[unit.place.province] for unit in units if unit}
        gone = [unit for unit in game.units[power] if unit not in trial.units[power]]
        spare = [unit for unit in game.units[power] if notation.province_of(unit) not in ordered]
        spare.sort(key=lambda unit: unit not in gone)
        if len(spare) >= -owed > 0 and any(unit not in spare for unit in gone):
            game.submit(power, [f"{unit} D" for unit in spare[:-owed]])
            removals.append(f"{power} removes {', '.join(spare[:-owed])}")
    return removals


def _differs(game: Game, phase: Phase, cornered: bool = True) -> bool:
    """Tell whether a phase has other units, if not `cornered` none but what we disband at once, or
    a spring other centers; of other phases sites tell these late."""
    units, dislodged, centers = game.units, game.dislodged, phase.centers
    says_centers = any(centers.values()) and phase.name[0] + phase.name[-1] == "SM"
    for power in game.powers:
        if says_centers and {*centers.get(power, ())} != {*game.centers[power]}:
            return True
        ours = {*units[power], *(f"*{unit}" for unit in dislodged.get(power, {}))}
        theirs = set(phase.units.get(power, ()))
        more = theirs - ours
        if ours - theirs or (more if cornered else {unit for unit in more if unit[0] != "*"}):
            return True
    return False


def _placed(game: Game, phase: Phase) -> Game:
    retreats = game.dislodged if game.phase == phase.name else {}
    last_orders = {key: text for key, text in game.to_state().items() if key.startswith("last_")}
    phase = phase if phase.centers else phase._replace(centers=game.centers)
    placed = Game.from_state(game.rules, _state(phase, retreats) | last_orders)
    placed.id, placed.history = game.id, game.history
    return placed


def _state(phase: Phase, retreats_before: Mapping[str, Mapping[str, list[str]]]) -> dict:
    """A dislodged unit of which nothing is said may go where it went."""
    retreats: dict[str, dict[str, list[str]]] = {}
    for power, texts in phase.units.items():
        for unit in (text[1:] for text in texts if text.startswith("*")):
            goals = [t.split(" R ")[1] for t in phase.orders.get(power, []) if _leaves(t, unit)]
            places = retreats_before.get(power, {}).get(unit, goals)
            retreats.setdefault(power, {})[unit] = phase.retreats.get(unit, places)
    over = phase.name == COMPLETED
    units = {p: [t for t in texts if not t.startswith("*")] for p, texts in phase.units.items()}
    state = {"name": phase.name, "units": units, "centers": phase.centers}
    return state if over else state | {"retreats": retreats}


def _leaves(text: str, unit: str) -> bool:
    place = notation.province_of(" ".join(text.split()[:2]))
    return " R " in text and place == notation.province_of(unit)


def short_report(saved: Mapping, game_map: Map | str | None = None) -> str:
    """Return a line about a saved game: its map, phases and the centers at its end."""
    game = Game.from_saved_game(saved, game_map)
    names = [phase["name"] for phase in saved["phases"]]
    centers = sorted(((len(held), power) for power, held in game.centers.items()), reverse=True)
    held = ", ".join(f"{power} {count}" for count, power in centers if count)
    span = f"{len(names)} phases from {names[0]} to {names[-1]}" if names[1:] else names[0]
    return f"game {quoted(game.id, 60)} on map {game.map.name}: {span}; centers: {held}"
