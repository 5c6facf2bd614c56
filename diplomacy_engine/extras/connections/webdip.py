"""A seat in a game of a webDiplomacy site, by its API of September 2026. Files have the public part
of a game; `game/playercontext` has the player's part and the files' versions."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
from msgspec import Struct

from ...constants import ARMY, COMPLETED, CONVOY, FLEET, MOVE, SEA, SUPPORT_MOVE, phase_kind
from ...errors import UserError
from ...records import convert
from ...rules.game_rules import GameRules
from ...rules.notation import neighbors_of, province_of
from ...rules.reading import read_order
from ...textgame.game import Game
from ...textgame.imports import webdiplomacy
from ...textgame.imports.replaying import played_on, replayed
from ...textgame.saved_game import Ending
from .connection import ConnectionLost, PhaseOver, Position, Refused, Say
from .webdip_site import Gone, Site

POLL = 0.5  # seconds between two looks at the site
_MOST_LOOKS = 10  # for files that fit together
_NOT_PROCESSING = "Not-processing"
_MOST_PATHS = 20_000  # over the sea, that are looked at


class _Version(Struct):
    url: str = ""
    version: str | None = None  # none of a file that was never written


class _Game(Struct):
    phase: str
    turn: int = -1
    processStatus: str | None = None
    pressType: str | None = None
    phaseMinutes: int | None = None
    gameOver: str | None = None


class _Member(Struct):
    countryID: int
    orderStatus: list[str] | None = None


class _Context(Struct):
    game: _Game
    files: dict[str, _Version | None] = {}
    member: _Member | None = None


class _Listed(Struct):
    gameID: int


class _Games(Struct):
    games: list[_Listed]


class _Territory(Struct):
    terrID: int
    occupiedFromTerrID: int | None = None
    standoff: bool | str | None = None


class _Player(Struct):
    status: str
    countryID: int


class _Board(Struct):
    turn: int
    phase: str
    territories: list[_Territory]
    members: list[_Player] | None = None


@dataclass
class WebdipSeat:
    """A seat in one game. None: the only game of the key's user, the country that it has there.
    `say` prints a line."""

    site: Site
    game_id: int | None
    country: int | None  # the site's number of the power
    rules: GameRules
    _: KW_ONLY
    say: Say = print
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self.name = self.site.name
        self._variant: webdiplomacy.Variant  # once we know which country is ours
        self._files: dict[str, tuple[str | None, dict]] = {}  # name -> version, content
        self._game: Game | None = None  # after the phases that have been played
        self._played: list[webdiplomacy.Phase] = []
        self._last: Position | None = None
        self._seen: tuple = ()
        self._told: set[str] = set()

    def enter(self) -> None:
        try:
            if self.game_id is None:
                self.game_id = self._only_game()
            self._context()
        except Gone as error:
            if self._last is None:
                raise Refused(f"{self.name} has no game {self.game_id}: {error}") from None

    def _only_game(self) -> int:
        numbers = [row.gameID for row in self.site.get(_Games, "game/playercontext").games]
        if len(numbers) != 1:
            which = ", ".join(map(str, numbers[:20])) or "none"
            raise Refused(f"choose a game of {self.name} with --game-id: {which}")
        return numbers[0]

    def positions(self) -> list[Position]:
        try:
            for _ in range(_MOST_LOOKS):
                context = self._context()
                if context.game.phase == "Pre-game":
                    self._tell("it has not begun")
                    return []
                position = self._read(context)
                if position is not None:
                    return [position]
                self.sleep(POLL)
        except Gone as error:
            if self._last is None:
                raise Refused(f"{self.name} has lost game {self.game_id}: {error}") from None
            return [self._last._replace(over="gone from the site")]
        raise ConnectionLost("its files do not fit together")

    def _context(self) -> _Context:
        more = {} if self.country is None else {"countryID": self.country}
        return self.site.get(_Context, "game/playercontext", gameID=self.game_id, orders=1, **more)

    def _read(self, context: _Context) -> Position | None:
        """Return the position; None while the files are of another phase than the context."""
        game, (member, power) = context.game, self._seat(context)
        turn, phase = game.turn, game.phase
        files, status = context.files, set(member.orderStatus or ())
        version = turn, phase, self._version(files, "history").version
        if self._last is None or self._seen != version or self._last.over:
            now = self._now(files, turn, phase, game.gameOver or "")
            if now is None:
                return None
            self._last = Position(f"game {self.game_id}", now, [power], frozenset())
            self._seen = version
        if game.pressType not in (None, "NoPress"):
            self._tell("powers may talk in it, but the player says nothing")
        over = ""
        if phase == webdiplomacy.FINISHED:
            over = self._last.game.result or "a draw"
        self._last = self._last._replace(
            # An extended phase takes back that we are ready, and waits for us again.
            missing=frozenset() if {"Ready", "None"} & status else frozenset([power]),
            running=game.processStatus == _NOT_PROCESSING and not over,
            seconds=60.0 * (1 if game.phaseMinutes is None else game.phaseMinutes),
            over=over,
        )
        return self._last

    def _seat(self, context: _Context) -> tuple[_Member, str]:
        member = context.member
        if member is None:
            raise Refused(f"the key's user has no seat in game {self.game_id} of {self.name}")
        country = member.countryID
        if self.country not in (None, country):
            raise Refused(f"our country in game {self.game_id} is {country}, not {self.country}")
        if not hasattr(self, "_variant"):
            data = self._file(context.files, "variant")
            try:
                self._variant = webdiplomacy.read_variant(data, self.rules.map)
            except UserError as error:
                name = self.rules.map.name
                raise UserError(f"--map {name}: not the game's map: {error}") from None
        return member, self._variant.power(country)

    def _tell(self, note: str) -> None:
        if note not in self._told:
            self.say(f"game {self.game_id}: {note}")
        self._told.add(note)

    def _version(self, files: Mapping[str, _Version | None], name: str) -> _Version:
        version = files.get(name)
        if version is None:
            raise UserError(f"the answer of {self.name} names no file {name}.json")
        return version

    def _file(self, files: Mapping[str, _Version | None], name: str) -> dict:
        row = self._version(files, name)
        cached = self._files.get(name)
        if cached is None or cached[0] != row.version:
            self._files[name] = row.version, self.site.file(row.url, row.version or "")
        return self._files[name][1]

    def _now(
        self, files: Mapping[str, _Version | None], turn: int, phase: str, end: str
    ) -> Game | None:
        past, name = self._file(files, "history"), webdiplomacy.phase_of(turn, phase)
        board = _Board(turn, phase, [])
        if phase in ("Retreats", webdiplomacy.FINISHED):
            board = convert(_Board, self._file(files, "game"), f"game.json of {self.name}")
        if phase == webdiplomacy.FINISHED and past.get("phases") == []:  # nothing was played
            opening = Game(self.rules).to_state()
            ended = Game.from_state(self.rules, opening | {"name": COMPLETED})
            return self._ended(ended, board, end)
        *played, last = webdiplomacy.history_phases(self._variant, past)
        if (board.turn, board.phase, last.name) != (turn, phase, name):
            self._files.clear()
            return None
        if phase == "Retreats":
            last = last._replace(retreats=self._retreats(board, last))
        done = self._played
        try:
            if self._game is None or played[: len(done)] != done:
                opening = [(played or [last])[0]._replace(orders={})]
                self._game = replayed(opening, self.rules, str(self.game_id))
                done = []
            for one in played[len(done) :]:
                self._game = played_on(self._game, [one], self._tell)
            game = played_on(self._game.copy(), [last], self._tell)
        except UserError as error:
            self._tell(f"its history cannot be played by our rules, the position can: {error}")
            self._game = replayed([last], self.rules, str(self.game_id))
            game = self._game.copy()
        self._played = played
        if game.phase != name:  # one that our rules skip; the last orders stay known
            state = game.to_state() | replayed([last], self.rules).to_state()
            before, game = game, Game.from_state(self.rules, state)
            game.id, game.history = before.id, before.history
        return self._ended(game, board, end) if name == COMPLETED else game

    def _ended(self, game: Game, board: _Board, end: str) -> Game:
        saved = game.to_saved_game()
        if end == webdiplomacy.DRAWN:
            saved |= Ending(True).notes()
        for member in board.members or ():
            if end == "Won" and member.status == "Won":
                winner = self._variant.power(member.countryID)
                saved["phases"][-1]["state"]["note"] = f"Victory by: {winner}"
        return Game.from_saved_game(saved, self.rules)

    def _retreats(self, board: _Board, phase: webdiplomacy.Phase) -> dict[str, list[str]]:
        closed, came_from, places_of = set(), {}, {}
        for row in board.territories:
            place = province_of(self._variant.place(row.terrID))
            if row.standoff is True:
                closed.add(place)
            if origin := row.occupiedFromTerrID:
                came_from[place] = province_of(self._variant.place(origin))
        for unit in (text[1:] for own in phase.units.values() for text in own if text[0] == "*"):
            shut = {*closed, came_from.get(province_of(unit))}  # what is occupied, Game knows
            near = neighbors_of(self.rules.map, unit)
            places_of[unit] = [place for place in near if province_of(place) not in shut]
        return places_of

    def give(self, position: Position, power: str, orders: list[str]) -> list[str]:
        winter = phase_kind(position.game.phase) == "adjustments"
        rows = [
            webdiplomacy.order_row(self._variant, text, winter, convoy_path(position.game, text))
            for text in dict.fromkeys(orders)  # one Wait fills all builds
        ]
        return kept_texts(self._variant, position.game, self._orders(power, rows, "No"))

    def finish(self, position: Position, power: str) -> None:
        self._orders(power, [], "Yes")  # no orders: those that were saved stay

    def _orders(self, power: str, rows: Sequence[dict], ready: str) -> list[dict]:
        turn, phase, _ = self._seen
        body = {"gameID": self.game_id, "turn": turn, "phase": phase, "ready": ready}
        body |= {"countryID": self._variant.country(power), "orders": list(rows)}
        try:
            answer = self.site.post("game/orders", body)
        except Gone as error:
            raise PhaseOver(str(error)) from None
        return convert(list[dict], answer, f"the orders that {self.name} has kept")

    def vote_draw(self, position: Position, power: str) -> None:
        body = {"gameID": self.game_id, "countryID": self._variant.country(power)}
        try:
            self.site.post_plain("game/setvote", body | {"vote": "Draw", "voteOn": "Yes"})
        except (Gone, PhaseOver, Refused) as error:
            self.say(f"game {self.game_id}: no vote for a draw: {error}")

    def wait(self, seconds: float) -> None:
        self.sleep(min(seconds, POLL))

    def close(self) -> None:
        """Do nothing: every request has a line of its own."""


def kept_texts(variant: webdiplomacy.Variant, game: Game, rows: Sequence[Mapping]) -> list[str]:
    held, texts = game.dislodged or game.units, []
    letters = {province_of(unit): unit[0] for own in held.values() for unit in own}
    for row in rows:
        with contextlib.suppress(UserError):
            order = convert(webdiplomacy.OrderRow, row, "an order")
            texts.append(webdiplomacy.order_text(variant, order, letters))
    return texts


def convoy_path(game: Game, text: str) -> list[str]:
    """Return the provinces of an army's way by sea, its own first; none by land, or if no fleets
    can carry it. A convoy goes over the fleet that is ordered, a support not."""
    order = read_order(game.map, text)
    if order.kind not in (MOVE, SUPPORT_MOVE, CONVOY) or order.units[-1].kind != ARMY:
        return []
    names, verb = game.map.provinces, text.split()[2]
    origin, goal = order.units[-1].place.province, order.target.province
    by_land = bool(game.map.board.reach[ARMY, game.map.board.province_location[origin], goal])
    if (verb == "-" and not order.via) or (verb == "S" and by_land):
        return []
    own = order.unit.place.province
    for path in _sea_paths(game, origin, goal):
        if (verb != "C" or own in path) and (verb != "S" or own not in path):
            return [names[v] for v in path]
    return []


def _sea_paths(game: Game, origin: int, goal: int) -> Iterator[list[int]]:
    """Yield ways over fleets on the board, the shortest first, as provinces without the goal."""
    board = game.map.board
    fleets = [unit for own in game.units.values() for unit in own if unit[0] == "F"]
    seas = [game.map.province_index[province_of(unit)] for unit in fleets]
    seas = [v for v in seas if board.terrain[v] == SEA]
    near = {v: np.flatnonzero(board.reach[FLEET, board.province_location[v]]) for v in seas}
    paths = deque([origin, v] for v in seas if origin in near[v])
    for _ in range(_MOST_PATHS):
        if not paths:
            return
        path = paths.popleft()
        if goal in near[path[-1]]:
            yield path
        paths.extend([*path, v] for v in seas if v not in path and v in near[path[-1]])
