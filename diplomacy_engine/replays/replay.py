"""Replays: saved games, checked and ready to be shown phase by phase.

`load_replays` reads a file, `make_replay` a saved game: it puts each phase's position on a board,
and makes a `Frame` of it. thoughts.py reads what powers thought, text.py has a phase in words, and
page.py all of them on a page.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .._suggest import did_you_mean, quoted
from ..constants import canonical_phase
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..pictures.board import phase_title, scene_svg
from ..pictures.chart import centers_svg
from ..pictures.drawing import Scene, drawing_of
from ..press.daide import message_words
from ..rules.map import Map
from ..rules.notation import province_of
from ..scoring.outcomes import figure_values
from ..textgame import position as positions
from ..textgame.causes import played_orders, result_words
from ..textgame.imports.games import read_games
from ..textgame.imports.replaying import Note
from ..textgame.saved_game import Ending, in_disorder, name_on, named_map, read_saved_game
from .thoughts import Thought, read_thoughts

VOTES = "votes for a draw"
CONCEDES = "concedes"
BREAKS = "breaks the deal"
_MOST_LETTERS = 80  # of a player's name, or of a sender of messages


class Message(NamedTuple):
    """What a power says or declares."""

    sender: str
    recipient: str  # empty: all
    words: str


class Frame(NamedTuple):
    """A phase: its position, what powers thought, said and ordered, and what came of it."""

    scene: Scene  # units without an order but with a result come last in its orders
    thoughts: dict[str, Thought]  # by power
    talk: list[Message]  # last come broken deals
    declared: list[Message]  # votes for a draw and concessions


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
        frame = self.frames[number]
        is_last = number == len(self.frames) - 1
        return bool(frame.scene.outcome) or not (is_last or frame.declared)

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
    on_replay: Callable[[Replay, dict], object] = lambda replay, saved: None,
) -> list[Replay]:
    """Return the games of a file, or all sample games of a run folder.

    A file may be of any kind that textgame/imports/games.py reads. The name of a sample game has
    the number of decisions after which it was played. `note` is called with what does not agree in
    a game from elsewhere, `on_replay` with each replay and the saved game that it shows.
    """
    if Path(path).is_dir():
        return _load_folder(Path(path), game_map, note, on_replay)
    saved_games = list(read_games(path, game_map, note=note))
    replays = []
    for number, saved in enumerate(saved_games, 1):
        try:
            replays.append(make_replay(saved, game_map))
            on_replay(replays[-1], saved)
        except UserError as error:
            which = f", game {number}" if len(saved_games) > 1 else ""
            raise UserError(f"{path}{which}: {error}") from error
    return replays


def _load_folder(
    folder: Path,
    game_map: str | None,
    note: Note,
    on_replay: Callable[[Replay, dict], object],
) -> list[Replay]:
    """Return the sample games of a run folder, or of its games folder; see `load_replays`."""
    files = sorted(folder.glob("games/*.jsonl")) or sorted(folder.glob("*.jsonl"))
    if not files:
        raise UserError(f"the folder {folder} has no saved games, in games/ or itself")
    replays = []
    for file in files:
        when = f"{int(file.stem):,} decisions" if file.stem.isdecimal() else file.stem
        games = load_replays(file, game_map, note, on_replay)
        replays += [game._replace(id=f"{when}, {game.id}") for game in games]
    return replays


def make_replay(saved: Mapping, game_map: str | Map | None = None) -> Replay:
    """Return a saved game as it is shown; UserError if it is none, or a position is impossible."""
    game_id, rules, phases, ending = read_saved_game(saved, game_map)
    games = VectorGame(rules, 1, threads=1, auto_reset=False)
    frames: list[Frame] = []
    not_yet = list(ending.conceded)  # powers that concede in a later phase
    for phase in phases:
        # Only the last position may be over by a vote or concessions.
        phase_ending = ending if phase is phases[-1] else Ending()
        try:
            positions.load_state(games, phase["state"], *phase_ending)
        except UserError as error:
            which = named_map(saved, game_map)
            raise UserError(f"phase {phase['name']:.20}: {error}{which}") from error
        conceding = [power for power in not_yet if in_disorder(phase["state"], power)]
        not_yet = [power for power in not_yet if power not in conceding]
        frames.append(_frame(games, phase, frames[-1].scene.passed if frames else {}, conceding))
    # The board stands as the last phase does.
    ranks = figure_values(games.outcomes(), rules.map.board.victory_centers)["rank"][0].tolist()
    winners = positions.winners(games)
    players = _players(saved, rules.map)
    result = positions.result_text(games, lambda power: power_and_player(power, players))
    result = result or f"not over, in {phase_title(frames[-1].scene.phase)}"
    return Replay(game_id, rules.map, frames, players, winners, ranks, result)


def _frame(
    games: VectorGame, phase: Mapping, passed: Mapping[str, str], conceding: Sequence[str]
) -> Frame:
    """Return what is shown of a phase.

    `games` has its position. `passed` has by province the power that stood there last in earlier
    phases. `conceding` are the powers that concede in this one.
    """
    units = positions.standing_units(games)
    standing = {province_of(text): power for power, texts in units.items() for text in texts}
    orders = {power: phase["orders"].get(power) for power in games.map.powers}
    words = result_words(phase["results"])
    played, _ = played_orders(games, orders, words)
    retreats = positions.retreat_places(games)
    dislodged = {power: list(places) for power, places in retreats.items()}
    scene = Scene(
        phase=phase["name"],
        units=units,
        dislodged=dislodged,
        centers=positions.owned_centers(games),
        passed={**passed, **standing},
        orders=played,
        outcome=words,
    )
    thoughts = read_thoughts(games.map, phase.get("thoughts"))
    declared = [Message(power, "", VOTES) for power in phase.get("votes", ())]
    declared += [Message(power, "", CONCEDES) for power in conceding]
    return Frame(scene, thoughts, _talk(games, phase), declared)


def _talk(games: VectorGame, phase: Mapping) -> list[Message]:
    """Return what was said in a phase, and then who broke a deal with whom."""
    messages = [
        Message(_one_line(m["sender"]), _one_line(m["recipient"]), message_words(games, m))
        for m in phase["messages"]
    ]
    broken = phase.get("broken", {}).items()
    return messages + [
        Message(power, other, BREAKS) for power, others in broken for other in others
    ]


def power_and_player(power: str, players: Mapping[str, str]) -> str:
    """Return a power's name with its player's, if that is known."""
    return power.capitalize() + (f" ({players[power]})" if power in players else "")


def _players(saved: Mapping, game_map: Map) -> dict[str, str]:
    """Return power -> its player; what does not fit is left out, since the game can be shown."""
    players = saved.get("players")
    items = players.items() if isinstance(players, Mapping) else ()
    names = {name_on(game_map, power): player for power, player in items}
    return {p: _one_line(names[p]) for p in game_map.powers if isinstance(names.get(p), str)}


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_MOST_LETTERS]


def frame_svg(replay: Replay, number: int, theme: str = "auto", width: int | None = None) -> str:
    """Return the picture of a phase, with its orders."""
    return scene_svg(drawing_of(replay.map), replay.frames[number].scene, theme, width)


def chart_svg(replay: Replay, theme: str = "auto") -> str:
    """Return the chart of the powers' centers over the phases."""
    phases = [(frame.scene.phase, frame.scene.centers) for frame in replay.frames]
    return centers_svg(drawing_of(replay.map), phases, theme)
