"""Replays: saved games, checked and ready to be shown phase by phase."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from .._suggest import counted, did_you_mean, printable, quoted
from ..constants import canonical_phase, phase_kind
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..pictures.board import phase_title, scene_svg
from ..pictures.chart import centers_svg, values_svg
from ..pictures.drawing import Scene, drawing_of
from ..press.daide import message_words
from ..records import convert
from ..rules.map import Map
from ..rules.notation import province_of
from ..rules.order_words import in_words, order_words
from ..scoring.outcomes import figure_values
from ..textgame import position as positions
from ..textgame.causes import played_orders, result_words
from ..textgame.imports.games import Note, read_games
from ..textgame.saved_game import in_disorder, name_on, named_map, read_saved_game

VOTES, CONCEDES, BREAKS = "votes for a draw", "concedes", "breaks the deal"
MOST_SAID = 100_000  # letters that are shown of a language model's prompt or reply


class Frame(NamedTuple):
    """A phase: its position, what powers thought, said and ordered, and what came of it."""

    scene: Scene  # units without an order but with a result come last in its orders
    # Power -> `value`: result that it expects; `orders`: unit -> [(order, probability)]; `tried`:
    # [(all its orders in one text, value, probability)]; of language models also prompt and reply.
    thoughts: dict[str, dict]
    talk: list[tuple[str, str, str]]  # sender, recipient, words; last come broken deals
    declared: list[tuple[str, str, str]]  # votes for a draw and concessions: power, "", words


class Replay(NamedTuple):
    """A saved game, checked: all its phases can be drawn."""

    id: str
    map: Map
    frames: list[Frame]
    players: dict[str, str]  # power -> who played it, as far as the game says so
    winners: list[str]  # the winner and its team, or who shares a draw; none: not over
    ranks: list[float]  # of the powers at the end, or as the last phase is
    result: str  # what came of the game, in words

    @property
    def title(self) -> str:
        """The result, with a capital."""
        return self.result[0].upper() + self.result[1:]

    def was_played(self, number: int) -> bool:
        """Whether a phase was adjudicated: the last one may not be, and a vote or concession may
        have ended the game instead."""
        frame, last = self.frames[number], number == len(self.frames) - 1
        return bool(frame.scene.outcome) or not (last or frame.declared)

    def find(self, phase: str) -> int:
        """Return the number of the frame of a phase such as F1901M; UserError if there is none."""
        names = [frame.scene.phase for frame in self.frames]
        name = canonical_phase(phase.upper())
        if name not in names:
            raise UserError(
                f"game {self.id!r:.60} has no phase {quoted(phase, 40)}: "
                f"it goes from {names[0]} to {names[-1]}{did_you_mean(name, names)}"
            )
        return names.index(name)


def load_replays(
    path: str | Path,
    game_map: str | None = None,
    note: Note = lambda text: None,
    change: Callable[[dict, str | None], dict] | None = None,
) -> list[Replay]:
    """Return the games of a file, or all sample games of a run folder.

    A file may be of any kind that textgame/imports/games.py reads. The name of a sample game has
    the number of decisions after which it was played. `change` returns a saved game of the map
    `game_map` as it is to be shown.
    """
    if Path(path).is_dir():
        files = sorted(Path(path).glob("games/*.jsonl")) or sorted(Path(path).glob("*.jsonl"))
        if not files:
            raise UserError(f"the folder {path} has no saved games, in games/ or itself")
        replays = []
        for file in files:
            when = f"{int(file.stem):,} decisions" if file.stem.isdecimal() else file.stem
            games = load_replays(file, game_map, note, change)
            replays += [game._replace(id=f"{when}, {game.id}") for game in games]
        return replays
    saved_games, replays = list(read_games(path, game_map, note=note)), []
    for number, saved in enumerate(saved_games, 1):
        try:
            replays.append(make_replay(change(saved, game_map) if change else saved, game_map))
        except UserError as error:
            which = f", game {number}" if len(saved_games) > 1 else ""
            raise UserError(f"{path}{which}: {error}") from error
    return replays


def make_replay(saved: Mapping, game_map: str | Map | None = None) -> Replay:
    """Return a saved game as it is shown; UserError if it is none, or a position is impossible."""
    game_id, rules, phases, ending = read_saved_game(saved, game_map)
    played_on, games = rules.map, VectorGame(rules, 1, threads=1, auto_reset=False)
    frames: list[Frame] = []
    playing = list(ending.conceded)  # of those that concede, who has not yet
    for phase in phases:
        try:
            positions.load_state(games, phase["state"], *ending if phase is phases[-1] else ())
        except UserError as error:
            which = named_map(saved, game_map)
            raise UserError(f"phase {phase['name']:.20}: {error}{which}") from error
        conceding = [power for power in playing if in_disorder(phase["state"], power)]
        playing = [power for power in playing if power not in conceding]
        frames.append(_frame(games, phase, frames[-1].scene.passed if frames else {}, conceding))
    players = _players(saved, played_on)
    ranks = figure_values(games.outcomes(), played_on.board.victory_centers)["rank"][0].tolist()
    result = positions.result_text(games, lambda power: named(power, players))
    result = result or f"not over, in {phase_title(frames[-1].scene.phase)}"
    return Replay(game_id, played_on, frames, players, positions.winners(games), ranks, result)


def _frame(
    games: VectorGame, phase: Mapping, passed: Mapping[str, str], conceding: Sequence[str]
) -> Frame:
    """Return what is shown of a phase.

    `games` has its position. `passed` has by province the power that stood there last in earlier
    phases. `conceding` are the powers that concede in this one.
    """
    units, centers = positions.standing_units(games), positions.owned_centers(games)
    standing = {province_of(text): power for power, texts in units.items() for text in texts}
    orders = {power: phase["orders"].get(power) for power in games.map.powers}
    words, retreats = result_words(phase["results"]), positions.retreat_places(games)
    dislodged = {power: list(places) for power, places in retreats.items()}
    lines, _ = played_orders(games, orders, words)
    scene = Scene(phase["name"], units, dislodged, centers, {**passed, **standing}, lines, words)
    declared = [(power, "", VOTES) for power in phase.get("votes", ())]
    declared += [(power, "", CONCEDES) for power in conceding]
    return Frame(scene, _thoughts(games.map, phase.get("thoughts")), _talk(games, phase), declared)


def _talk(games: VectorGame, phase: Mapping) -> list[tuple[str, str, str]]:
    """Return what was said in a phase, and then who broke a deal with whom."""
    messages = [
        (_one_line(m["sender"]), _one_line(m["recipient"]), message_words(games, m))
        for m in phase["messages"]
    ]
    broken = phase.get("broken", {}).items()
    return messages + [(power, other, BREAKS) for power, others in broken for other in others]


def named(power: str, players: Mapping[str, str]) -> str:
    """Return a power's name with its player's, if that is known."""
    return power.capitalize() + (f" ({players[power]})" if power in players else "")


def _players(saved: Mapping, game_map: Map) -> dict[str, str]:
    """Return power -> its player; a table that does not fit is dropped, as bad thoughts are."""
    players = saved.get("players")
    items = players.items() if isinstance(players, Mapping) else ()
    names = {name_on(game_map, power): player for power, player in items}
    return {p: _one_line(names[p]) for p in game_map.powers if isinstance(names.get(p), str)}


def _one_line(text: str) -> str:
    return " ".join(text.split())[:80]


_Number = Annotated[float, Meta(gt=-1e9, lt=1e9)]


class _Thought(Struct):
    value: _Number | None = None
    orders: dict[str, list[tuple[str, Annotated[float, Meta(ge=0, le=1)]]]] = {}
    tried: list[tuple[list[str], _Number | None, _Number]] = []
    prompt: str | None = None
    reply: str | None = None


def _thoughts(game_map: Map, saved: object) -> dict[str, dict]:
    """Return the thoughts of a saved phase as a Frame has them."""
    thoughts = {}
    for power, thought in saved.items() if isinstance(saved, Mapping) else ():
        if power not in game_map.power_index:
            continue
        with contextlib.suppress(UserError):  # a bad one is dropped, since the game can be shown
            record = convert(_Thought, thought, power)
            texts = {"prompt": record.prompt, "reply": record.reply}
            thoughts[power] = {
                "value": record.value,
                "orders": record.orders,
                **{name: text[:MOST_SAID] for name, text in texts.items() if text is not None},
                "tried": [(", ".join(orders), *numbers) for orders, *numbers in record.tried],
            }
    return thoughts


def frame_svg(replay: Replay, number: int, theme: str = "auto", width: int | None = None) -> str:
    """Return the picture of a phase, with its orders."""
    return scene_svg(drawing_of(replay.map), replay.frames[number].scene, theme, width)


def chart_svg(replay: Replay, theme: str = "auto") -> str:
    """Return the chart of the powers' centers over the phases."""
    phases = [(frame.scene.phase, frame.scene.centers) for frame in replay.frames]
    return centers_svg(drawing_of(replay.map), phases, theme)


def values_of(replay: Replay) -> dict[str, list[float | None]]:
    """Return power -> the result that it expected in each phase, None where it thought nothing."""
    rows = {
        power: [frame.thoughts.get(power, {}).get("value") for frame in replay.frames]
        for power in replay.map.powers
    }
    return {power: row for power, row in rows.items() if any(one is not None for one in row)}


def expected_svg(replay: Replay) -> str:
    """Return the chart of the results that powers expected, or nothing if none did."""
    values, names = values_of(replay), [frame.scene.phase for frame in replay.frames]
    return values_svg(drawing_of(replay.map), names, values) if values else ""


def thought_view(game_map: Map, thought: dict) -> dict:
    """Return a thought with its orders in words, without their units."""
    orders = {
        unit: [(order_words(game_map, text)[1], share) for text, share in choices]
        for unit, choices in thought["orders"].items()
    }
    return thought | {"orders": orders}


def order_lines(replay: Replay, number: int) -> list[dict]:
    """Return the orders of a phase in words, and the units that held without one.

    Of each: `power`; `text` of the order; `unit` and `words`, the unit and its order in words;
    `result`, result words; `said`, the result as a sentence.
    """
    game_map, frame, lines = replay.map, replay.frames[number], []
    fields = ("power", "text", "unit", "words", "result", "said")
    moved = replay.was_played(number) and phase_kind(frame.scene.phase) == "movement"
    without = "hold (no order)" if moved else "no order"
    for power in game_map.powers:
        ordered = set()
        for shown in frame.scene.orders.get(power, ()):
            unit, words = order_words(game_map, shown.text)
            if shown.text == f"{shown.unit} (no order)":
                unit, words = order_words(game_map, f"{shown.unit} H")[0], without
            ordered.add(shown.unit)
            sentence = in_words(game_map, shown.said)
            lines.append((power, shown.text, unit, words, list(shown.words), sentence))
        for unit in frame.scene.units[power] if moved else ():
            if unit not in ordered:
                name, _ = order_words(game_map, f"{unit} H")
                lines.append((power, unit, name, without, [], ""))
    return [dict(zip(fields, line)) for line in lines]


def frame_text(replay: Replay, number: int) -> str:
    """Return a phase for a terminal."""
    frame = replay.frames[number]
    lines = [
        f"{replay.map.name} {frame.scene.phase}  phase {number + 1} of {len(replay.frames)}  "
        f"game {replay.id}: {replay.result}"
    ]
    lines += [
        f"  {sender} to {recipient}: {' '.join(message.split())}"
        for sender, recipient, message in frame.talk
    ]
    lines += [f"  {power} {words}" for power, _, words in frame.declared]
    for power in replay.map.powers:
        lines += _power_lines(replay, frame, power)
    # Orders and ids are as somebody wrote them; a terminal would obey what is in them.
    return "\n".join(map(printable, "\n".join(lines).split("\n")))


def _power_lines(replay: Replay, frame: Frame, power: str) -> list[str]:
    """Return a power's centers, and its orders with results, or else its units."""
    centers, units = frame.scene.centers[power], frame.scene.units[power]
    orders = frame.scene.orders.get(power, ())
    if not (centers or units or orders):
        return []
    player = f" ({replay.players[power]})" if power in replay.players else ""
    lines = [f"\n{power}{player}  {counted(len(centers), 'center')}: {' '.join(centers)}"]
    wide = max((len(shown.text) for shown in orders), default=0)
    lines += [f"  {shown.text:{wide}}  {shown.said}".rstrip() for shown in orders]
    if not orders:
        lines.append(f"  {', '.join(units)}")
    gone = frame.scene.dislodged.get(power, ())
    if gone and not orders:
        lines.append(f"  dislodged: {', '.join(gone)}")
    return lines
