"""A webDiplomacy site with one game, as strict and as silent as the real one.

Facts, read in the site's public source (kestasjk/webDiplomacy, 2025 and 2026), none in our reader:

    api.php                       what is refused, dropped and answered; which order a row is for
    api/responses/game_state.php  how the history is made of what is archived
    api/responses/player_context.php, lib/gamefiles.php  which fields there are, and their types
    gamemaster/orders/*.php       orders that a phase begins with, and what of them is archived
    gamemaster/game.php           which phase comes next; draws; when fields of the board are wiped
    gamemaster/members.php        members who leave, win, are defeated
    variants/Classic/install.php  numbers, names and owners of territories

How units move, and which orders are legal, is our engine's; tests/reference checks that.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from diplomacy_engine.constants import parse_phase, phase_kind
from diplomacy_engine.errors import UserError
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.rules.notation import read_order
from diplomacy_engine.textgame.game import Game

POWERS = ("ENGLAND", "FRANCE", "ITALY", "GERMANY", "AUSTRIA", "TURKEY", "RUSSIA")  # from 1 on
NAMES = """Clyde, Edinburgh, Liverpool, Yorkshire, Wales, London, Portugal, Spain, North Africa,
Tunis, Naples, Rome, Tuscany, Piedmont, Venice, Apulia, Greece, Albania, Serbia, Bulgaria, Rumania,
Constantinople, Smyrna, Ankara, Armenia, Syria, Sevastopol, Ukraine, Warsaw, Livonia, Moscow,
St. Petersburg, Finland, Sweden, Norway, Denmark, Kiel, Berlin, Prussia, Silesia, Munich, Ruhr,
Holland, Belgium, Picardy, Brest, Paris, Burgundy, Marseilles, Gascony, Barents Sea, Norwegian Sea,
North Sea, Skagerrack, Heligoland Bight, Baltic Sea, Gulf of Bothnia, North Atlantic Ocean,
Irish Sea, English Channel, Mid-Atlantic Ocean, Western Mediterranean, Gulf of Lyons,
Tyrrhenian Sea, Ionian Sea, Adriatic Sea, Aegean Sea, Eastern Mediterranean, Black Sea, Tyrolia,
Bohemia, Vienna, Trieste, Budapest, Galicia, Spain (North Coast), Spain (South Coast),
St. Petersburg (North Coast), St. Petersburg (South Coast), Bulgaria (North Coast),
Bulgaria (South Coast)"""
CODES = """CLY EDI LVP YOR WAL LON POR SPA NAF TUN NAP ROM TUS PIE VEN APU GRE ALB SER BUL RUM CON
SMY ANK ARM SYR SEV UKR WAR LVN MOS STP FIN SWE NWY DEN KIE BER PRU SIL MUN RUH HOL BEL PIC BRE PAR
BUR MAR GAS BAR NWG NTH SKA HEL BAL BOT NAO IRI ENG MAO WES LYO TYS ION ADR AEG EAS BLA TYR BOH VIE
TRI BUD GAL SPA/NC SPA/SC STP/NC STP/SC BUL/EC BUL/SC"""
NUMBER = {code: number for number, code in enumerate(CODES.split(), 1)}
CODE = {number: code for code, number in NUMBER.items()}
_BOARD = load_map("standard").board
CENTERS = {load_map("standard").provinces[v] for v in _BOARD.center_province}
_KINDS = {"A": "Army", "F": "Fleet"}
_KEYS = {"terrID", "type", "fromTerrID", "toTerrID", "viaConvoy"}
_STATUSES = {"": [], "saved": ["Saved"], "ready": ["Saved", "Completed", "Ready"]}
_TYPES = ("Hold", "Move", "Support hold", "Support move", "Convoy", "Retreat", "Disband")
_TYPES += ("Build Army", "Build Fleet", "Wait", "Destroy")  # in the order of the archive
_RANKS = {"Diplomacy": 0, "Retreats": 1, "Builds": 2}


def parent(code: str) -> str:
    return code.split("/")[0]


def turn_and_phase(name: str) -> tuple[int, str]:
    """Return the site's words for a phase of ours."""
    year, number = parse_phase(name)
    turn = 2 * (year - 1901) + (number >= 2)
    return turn, {"movement": "Diplomacy", "retreats": "Retreats"}.get(phase_kind(name), "Builds")


def phase_name(turn: int, phase: str) -> str:
    """Return our word for a phase of the site's."""
    if phase == "Builds":
        return f"W{1901 + turn // 2}A"
    return f"{'SF'[turn % 2]}{1901 + turn // 2}{'M' if phase == 'Diplomacy' else 'R'}"


def turn_text(turn: int) -> str:
    return f"{'Autumn' if turn % 2 else 'Spring'}, {1901 + turn // 2}"


def variant() -> dict:
    """Return `variant.json`, as far as our client reads it."""
    rows = [
        {"id": n, "name": name} for n, name in enumerate(" ".join(NAMES.split()).split(", "), 1)
    ]
    countries = [{"countryID": n, "name": power.title()} for n, power in enumerate(POWERS, 1)]
    return {"name": "Classic", "countries": countries, "territories": rows}


def unit_rows(state: dict) -> list[dict]:
    """Return the units of a state as the site's files have them."""
    return [
        _unit(POWERS.index(power) + 1, NUMBER[unit[2:]], _KINDS[unit[0]], text[0] == "*")
        for power, texts in state["units"].items()
        for text, unit in ((text, text.lstrip("*")) for text in texts)
    ]


def row_of(game: Game, text: str) -> dict:
    """Return an order of a game as its history has it."""
    row: dict = {"terrID": None, "toTerrID": None, "fromTerrID": None, "viaConvoy": False}
    if text == "WAIVE":
        return row | {"type": "Wait"}
    words = text.split()
    kind, here, verb = _KINDS[words[0]], words[1], words[2]
    row |= {"terrID": NUMBER[here], "unitType": kind}
    if verb == "H":
        return row | {"type": "Hold"}
    if verb == "D":
        winter = game.phase.endswith("A")
        return row | {"type": "Destroy" if winter else "Disband", "toTerrID": NUMBER[parent(here)]}
    if verb == "B":
        return row | {"type": f"Build {kind}", "toTerrID": NUMBER[here]}
    if verb == "R":
        return row | {"type": "Retreat", "toTerrID": NUMBER[words[3]]}
    if verb == "-":
        return row | {"type": "Move", "toTerrID": NUMBER[words[3]], "viaConvoy": "VIA" in words}
    if len(words) == 5:
        return row | {"type": "Support hold", "toTerrID": NUMBER[parent(words[4])]}
    goal = {"fromTerrID": NUMBER[parent(words[4])], "toTerrID": NUMBER[parent(words[6])]}
    return row | goal | {"type": "Support move" if verb == "S" else "Convoy"}


# What is archived, and the history that is made of it


def _start_owners(state: dict) -> dict[int, int]:
    centers = state["centers"].items()
    return {NUMBER[code]: POWERS.index(power) + 1 for power, codes in centers for code in codes}


def _owners_after(owners: dict[int, int], turn: int, units: dict) -> dict[int, int]:
    """Return territory -> country once a phase is over; in spring no center changes hands."""
    found = dict(owners)
    for power, texts in units.items():
        for code in (parent(text.split()[1]) for text in texts if text[0] != "*"):
            if turn % 2 or code not in CENTERS:
                found[NUMBER[code]] = POWERS.index(power) + 1
            else:
                found.setdefault(NUMBER[code], 0)
    return found


def archived_rows(game_map, record: dict, after: dict) -> list[dict]:
    """Return the orders of a phase as they are archived; `after` is the state that follows."""
    state, results = record["state"], record["results"]
    turn, phase = turn_and_phase(record["name"])
    if phase == "Builds":  # only what was done, and its place is terrID
        return [
            _row(turn, phase, power, kind, None, terrID=NUMBER[place])
            for power in POWERS
            for kind, place in _adjusted(state["units"][power], after["units"][power])
        ]
    then = Game.from_state(game_map, state)
    for power, texts in record["orders"].items():
        then.submit(power, texts or [], strict=False)
    stood = then.units if phase == "Diplomacy" else then.dislodged
    rows = []
    for power, units in stood.items():
        given = {" ".join(text.split()[:2]): text for text in then.orders[power]}
        for unit in units:
            text, words = given.get(unit, f"{unit} {'HD'[phase == 'Retreats']}"), results.get(unit)
            row = row_of(then, text)
            failed = set(words or ()) - {"dislodged", "disband"}
            done = row.pop("type"), row.pop("unitType")
            rows.append(_row(turn, phase, power, *done, **row, success=not failed))
            rows[-1]["dislodged"] = "dislodged" in (words or ()) and phase == "Diplomacy"
            gone = after["retreats"].get(power, {})
            if phase == "Diplomacy" and "disband" in (words or ()) and unit not in gone:
                # Our rules disband at once; the site has a phase for it.
                where = NUMBER[unit.split()[1]]
                rows.append(_row(turn, "Retreats", power, "Disband", _KINDS[unit[0]], terrID=where))
    return rows


def _adjusted(before: list[str], after: list[str]) -> list[tuple[str, str]]:
    built = [(f"Build {_KINDS[unit[0]]}", unit[2:]) for unit in after if unit not in before]
    return built + [("Destroy", parent(unit[2:])) for unit in before if unit not in after]


def _row(turn: int, phase: str, power: str, kind: str, unit: str | None, **fields) -> dict:
    row = {"turn": turn, "phase": phase, "countryID": POWERS.index(power) + 1, "terrID": None}
    row |= {"unitType": unit, "type": kind, "toTerrID": None, "fromTerrID": None}
    return row | {"viaConvoy": False, "success": True, "dislodged": False} | fields


def phases_of(
    rows: list[dict], owners: dict[int, dict[int, int]], start: dict[int, int], now: tuple | None
) -> list[dict]:
    """Return the phases of a history; `now` are turn, phase and units of the one that is open."""
    steps: dict[tuple[int, str], dict] = {}
    for row in sorted(rows, key=lambda row: (row["turn"], _TYPES.index(row["type"]))):
        step = steps.setdefault((row["turn"], row["phase"]), {"units": [], "orders": []})
        step["orders"].append(row)
        step["units"].append((row["countryID"], row["terrID"], row["unitType"]))
    if now is not None:
        steps[now[:2]] = {"units": now[2], "orders": []}
    found, board = [], []
    for (turn, phase), step in sorted(steps.items(), key=lambda s: (s[0][0], _RANKS[s[0][1]])):
        of = turn - 1 if phase == "Diplomacy" or (turn % 2 and phase != "Builds") else turn
        held = owners.get(of) or {n: start.get(n, 0) for n in CODE}
        centers = [{"terrID": place, "countryID": n} for place, n in sorted(held.items())]
        units = step["units"]
        if now is None or (turn, phase) != now[:2]:
            board = list(step["units"]) if phase == "Diplomacy" else board
            leaving = [row for row in step["orders"] if row["type"] in ("Retreat", "Disband")]
            flees = {(row["countryID"], row["terrID"], row["unitType"]) for row in leaving}
            units = [_unit(*unit, unit in flees) for unit in board]
            board = _moved(board, step["orders"])
        orders = [
            {k: v for k, v in row.items() if k not in ("turn", "phase")} for row in step["orders"]
        ]
        found.append(_phase(turn, phase, units, centers, orders))
    if now is None and found:
        units = [_unit(*unit, False) for unit in board]
        found.append(_phase(found[-1]["turn"], "Finished", units, found[-1]["centers"], []))
    return found


def _unit(country: int, place: int, kind: str, retreating: bool) -> dict:
    return {"countryID": country, "type": kind, "terrID": place, "retreating": retreating}


def _moved(board: list[tuple], orders: list[dict]) -> list[tuple]:
    """Return the units after the archived orders of a phase."""
    found = list(board)
    for row in orders:
        unit, kind = (row["countryID"], row["terrID"], row["unitType"]), row["type"]
        if kind == "Destroy":
            found = [other for other in found if other[:2] != unit[:2]]
        elif kind == "Disband" or (kind == "Retreat" and not row["success"]):
            found.remove(unit)
        elif kind in ("Move", "Retreat") and row["success"]:
            found[found.index(unit)] = (unit[0], row["toTerrID"], unit[2])
        elif kind.startswith("Build"):
            found.append((*unit[:2], kind.removeprefix("Build ")))
    return found


def _phase(turn: int, phase: str, units: list, centers: list, orders: list) -> dict:
    known = {"turn": turn, "phase": phase, "turnText": turn_text(turn), "units": units}
    return known | {"centers": centers, "orders": orders}


class _Archive:
    """What the site has archived of a game."""

    def __init__(self, game: Game):
        states = [record["state"] for record in game.history] + [game.to_state()]
        self.start = _start_owners(states[0])
        self.owners: dict[int, dict[int, int]] = {}
        self.now, self.rows = self.start, []
        known = game.__dict__.setdefault("archived_rows", {})  # each is made once
        for record, after in zip(game.history, states[1:]):
            if id(record) not in known:
                known[id(record)] = archived_rows(game.map, record, after)
            self.add(record["name"], known[id(record)], after["units"])

    def add(self, name: str, rows: list[dict], units: dict) -> None:
        """Archive a phase that is over, and the owners of territories after it."""
        turn, _ = turn_and_phase(name)
        self.rows += rows
        self.now = self.owners[turn] = _owners_after(self.now, turn, units)

    def history(self, game: Game, is_over: bool) -> dict:
        now = None
        if not is_over:
            now = (*turn_and_phase(game.phase), unit_rows(game.to_state()))
        phases = phases_of(self.rows, self.owners, self.start, now)
        header = {"schema": 1, "gameID": 5, "file": "history", "version": "1", "generated": 1}
        return header | {"phases": phases}


def history(game: Game) -> dict:
    """Return the `history.json` of a game that was played by our rules."""
    return _Archive(game).history(game, game.is_over)


class Site:
    """The site, with one game, number 5. Each country has the key `key-N`.

    Attributes:
        game: what it holds, in a phase of the site's, which our rules may skip.
        drops: order types that it loses though nothing is wrong with them.
        behind: how often a file is served as it was before.
        trouble: route -> list of (status, whether it is done all the same), each used once.
        cancelled: status with which a game that is gone is answered; 0: it is there.
    """

    def __init__(self, game: Game | None = None):
        self._version = 1
        self.members: dict[int, str] = {}
        self.game = game or Game("standard")
        self.kept: dict[int, list[dict]] = {}
        self.status: dict[int, str] = {}
        self.votes: set[int] = set()
        self.drops: set[str] = set()
        self.behind = self.cancelled = 0
        self.trouble: dict[str, list[tuple[int, bool]]] = {}
        self.instead: dict[str, Callable[[], bytes]] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.processing = self.waits = False
        self.press = "NoPress"
        self._before: dict[str, dict] = {}
        self._trial: tuple[Game, str, Game] | None = None  # where orders are tried
        self._lock = threading.RLock()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self._answer("GET", b"")

            def do_POST(self):
                self._answer("POST", self.rfile.read(int(self.headers["Content-Length"])))

            def _answer(self, method, body):
                with site._lock:
                    key = self.headers.get("Authorization", "").removeprefix("Bearer ")
                    status, content = site.answer(method, self.path, key, body)
                if status is None:
                    return  # the line is cut off
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, key: str, body: bytes) -> tuple[int | None, bytes]:
        """Return status and content."""
        parts = urlsplit(path)
        fields = {name: values[0] for name, values in parse_qs(parts.query).items()}
        route = fields.get("route", parts.path)
        self.asked.append((method, route, key))
        if route in self.instead:
            return 200, self.instead[route]()
        status, is_done = self.trouble[route].pop(0) if self.trouble.get(route) else (200, True)
        if status != 200 and not is_done:
            return (status or None), b"something broke"
        try:
            found = self._found(parts.path, route, key, fields, body)
        except _No as error:
            code, words = error.args
            return code, words.encode()
        if status != 200:
            return (status or None), b"something broke"
        return 200, found if isinstance(found, bytes) else json.dumps(found).encode()

    def _found(self, path: str, route: str, key: str, fields: dict, body: bytes) -> object:
        if path != "/api.php":
            return self._file(path)
        if not key:
            raise _No(401, "No API key provided.")
        country = int(key.removeprefix("key-")) if key.startswith("key-") else 0
        if country not in range(1, 8):
            return b""
        if route == "game/playercontext":
            return self._context(country, fields)
        data = json.loads(body)
        if self.cancelled or data["gameID"] != 5:
            raise _No(self.cancelled or 400, "Could not fetch row, game may have been cancelled")
        if data["countryID"] != country:
            raise _No(403, "User does not have explicit permission to make this API call.")
        if route == "game/setvote":
            return self._vote(country)
        return self._orders(country, data)

    @property
    def game(self) -> Game:
        return self._game

    @game.setter
    def game(self, game: Game) -> None:
        """Hold another game, with its whole past."""
        self._game, self._archive = game, _Archive(game)
        self.over = ("Drawn" if game.is_draw else "Won") if game.is_over else ""
        self.members = dict.fromkeys(range(1, 8), "Playing")
        if self.over == "Won":
            self.members[POWERS.index(game.winners[0]) + 1] = "Won"
        self._fled: set[tuple[int, int]] = set()  # country, place of units that have retreated
        self._came, self._standoffs = self._battles(game)
        self._version += 1

    def _now(self) -> tuple[int, str]:
        if self.waits:
            return 0, "Pre-game"
        turn, phase = turn_and_phase(self.game.phase) if not self.game.is_over else (0, "")
        return (turn, "Finished") if self.over else (turn, phase)

    def _context(self, country: int, fields: dict) -> dict:
        turn, phase = self._now()
        files = {
            name: {"url": f"cache/games/0/5/{name}.json", "version": f"v{self._version}"}
            for name in ("game", "status", "history", "messages")
        }
        files["variant"] = {"url": "variants/Classic/cache/variant.json", "version": "1"}
        processing = "Processing" if self.processing else "Not-processing"
        game = {"gameID": 5, "realGameID": 5, "variantID": 1, "name": "Game", "turn": turn}
        game |= {"phase": phase, "gameOver": self.over or "No", "processTime": 1}
        game |= {"processStatus": processing, "pressType": self.press}
        status, words = self.members[country], self._status(country)
        votes = ["Draw"] if country in self.votes else []
        own = {"status": status, "orderStatus": words, "votes": votes, "newMessagesFrom": []}
        own |= {"countryID": country, "lastMessageTime": 0}
        if "gameID" not in fields:
            rows = [] if status == "Left" or self.over else [game | own | {"files": files}]
            return {"schema": 1, "games": rows}
        if self.cancelled or fields["gameID"] != "5":
            raise _No(self.cancelled or 400, "Unknown game ID.")
        orders = None
        if fields.get("orders") and phase in _RANKS:
            rows = self.kept.get(country, self._defaults(POWERS[country - 1]))
            orders = {"context": "{}", "contextKey": "", "orders": rows}
        return {"schema": 1, "game": game, "files": files, "member": own, "orders": orders}

    def _status(self, country: int) -> list[str]:
        if self.over or POWERS[country - 1] not in self._waiting():
            return ["None"]
        return _STATUSES[self.status.get(country, "")]

    def _waiting(self) -> set[str]:
        return {self.game.powers[p] for p in self.game.decisions().power.tolist()}

    def _file(self, path: str) -> dict:
        name = path.rpartition("/")[2].removesuffix(".json")
        if name == "variant":
            return variant()
        is_over = bool(self.over)
        now = self._board() if name == "game" else self._archive.history(self.game, is_over)
        if self.behind and name in self._before:
            self.behind -= 1
            return self._before[name]
        self._before[name] = now
        return now

    def _board(self) -> dict:
        turn, phase = self._now()
        state, owners = self.game.to_state(), self._archive.now
        members = [{"countryID": n, "status": status} for n, status in self.members.items()]
        found = {"turn": turn, "phase": phase, "gameOver": self.over or "No", "members": members}
        if self.over:
            return found | {"units": [], "territories": []}
        units = unit_rows(state)
        for row in units:  # a unit that has retreated is called so until the next turn
            row["retreating"] |= (row["countryID"], row["terrID"]) in self._fled
        places = {*owners, *(NUMBER[p] for p in (*self._came, *self._standoffs))}
        territories = [
            {
                "terrID": place,
                "ownerCountryID": owners.get(place, 0),
                "standoff": CODE[place] in self._standoffs,
                "occupiedFromTerrID": NUMBER.get(self._came.get(CODE[place], "")),
            }
            for place in sorted(places)
        ]
        return found | {"units": units, "territories": territories}

    def _battles(self, game: Game) -> tuple[dict[str, str], set[str]]:
        """Return where units of the last movement came from, and where there was a standoff."""
        if not game.history or not game.history[-1]["name"].endswith("M"):
            return {}, set()
        record = game.history[-1]
        came, bounced = {}, set()
        for texts in record["orders"].values():
            for text in texts or []:
                words = text.split()
                failed = record["results"].get(" ".join(words[:2]), [])
                if words[2:3] == ["-"]:
                    way = parent(words[1]), parent(words[3])
                    if "bounce" in failed:
                        bounced.add(way)
                    elif not failed and "VIA" not in words:
                        came[way[1]] = way[0]
        occupied = {parent(u.split()[1]) for own in game.units.values() for u in own}
        beaten = {(here, there) for here, there in bounced if came.get(here) == there}
        return came, {there for _, there in bounced - beaten} - occupied

    def _vote(self, country: int) -> bytes:
        self.votes.add(country)
        playing = {c for c, status in self.members.items() if status == "Playing"}
        if not self.over and playing <= self.votes:
            self._end("Drawn")
        return b"Draw"

    def _end(self, how: str, winner: int = 0) -> None:
        self.over, self._version = how, self._version + 1
        ends = {"Left": "Resigned", "Playing": "Drawn" if how == "Drawn" else "Survived"}
        for country, status in self.members.items():
            self.members[country] = "Won" if country == winner else ends.get(status, status)

    def _orders(self, country: int, data: dict) -> list[dict]:
        turn, phase = self._now()
        if phase not in _RANKS:
            raise _No(400, f"Cannot submit orders in phase `{phase}`.")
        if data["turn"] != turn:
            raise _No(400, f"Invalid turn, expected `{turn}`, got `{data['turn']}`.")
        if data["phase"] != phase:
            raise _No(400, f"Invalid phase, expected `{phase}`, got `{data['phase']}`.")
        self.members[country] = {"Left": "Playing"}.get(*[self.members[country]] * 2)
        power = POWERS[country - 1]
        kept = self.kept.get(country, self._defaults(power))
        self._take(power, kept, data["orders"])
        self.kept[country] = kept
        self.status[country] = "ready" if data.get("ready") == "Yes" else "saved"
        answer = [row | {"countryID": str(country)} for row in kept]
        playing = {POWERS[c - 1] for c, status in self.members.items() if status == "Playing"}
        ready = {POWERS[c - 1] for c, status in self.status.items() if status == "ready"}
        if self._waiting() & playing <= ready:
            self.process()
        return answer

    def _defaults(self, power: str) -> list[dict]:
        nothing = {"fromTerrID": None, "toTerrID": None, "viaConvoy": None}
        if self.game.phase.endswith("A"):
            owed = self.game.adjustments.get(power, 0)
            kind = "Build Army" if owed > 0 else "Destroy"
            nothing |= {"terrID": None, "unitType": None, "type": kind}
            return [dict(nothing) for _ in range(abs(owed))]
        units, kind = self.game.units[power], "Hold"
        if self.game.phase.endswith("R"):
            units, kind = self.game.dislodged.get(power, {}), "Retreat"
        return [
            nothing | {"terrID": NUMBER[u.split()[1]], "unitType": _KINDS[u[0]], "type": kind}
            for u in units
        ]

    def _take(self, power: str, kept: list[dict], rows: list[dict]) -> None:
        """Put each row in the place of the unit's, or of the next free one in winter."""
        place = {row["terrID"]: i for i, row in enumerate(kept) if row["terrID"] is not None}
        free = [i for i, row in enumerate(kept) if row["terrID"] is None]
        given = {}
        for row in rows:
            for key in ("terrID", "type", "fromTerrID", "toTerrID", "viaConvoy"):
                if key not in row:
                    raise _No(400, f"Missing order info: {key}")
            if row["terrID"] not in place:
                if not free:
                    raise _No(400, f"Unknown territory ID `{row['terrID']}` for country.")
                place[row["terrID"]] = free.pop(0)
            given[place[row["terrID"]]] = row
        if any(row["type"] == "Wait" for row in rows):
            given |= dict.fromkeys(free, dict.fromkeys(_KEYS) | {"type": "Wait"})
        for i, row in given.items():
            if row["type"] not in self.drops and self._is_legal(power, row, kept[i]["unitType"]):
                kept[i] |= {key: row[key] for key in _KEYS - {"terrID"}}

    def _is_legal(self, power: str, row: dict, kind: str | None) -> bool:
        if row["type"] == "Wait":
            return self.game.adjustments.get(power, 0) > 0
        text = self.text(row, kind)
        if text is None or not self._has_path(row, text):
            return False
        if self._trial is None or self._trial[:2] != (self.game, self.game.phase):
            self._trial = self.game, self.game.phase, self.game.copy()
        trial = self._trial[2]
        try:
            trial.submit(power, [text])
        except UserError:
            return False
        trial.withdraw(power)
        return True

    def _has_path(self, row: dict, text: str) -> bool:
        """Tell whether a way over fleets is given where one is needed, and a sound one."""
        order, kind = read_order(self.game.map, text), row["type"]
        by_sea = kind == "Convoy" or (kind == "Move" and row["viaConvoy"] == "Yes")
        if kind == "Support move" and order.other.kind == 0:
            other = f"A {parent(CODE[row['fromTerrID']])} - {CODE[row['toTerrID']]}"
            by_sea = other not in self.game.legal_orders(other.split(" - ")[0])
        if not by_sea:
            return True
        path = row.get("convoyPath") or []
        if len(path) < 2:
            return False
        origin = row["terrID"] if kind == "Move" else row["fromTerrID"]
        fleets = {u.split()[1] for own in self.game.units.values() for u in own if u[0] == "F"}
        stops = [CODE[number] for number in path]
        if path[0] != origin or not set(stops[1:]) <= fleets:
            return False
        for here, there in zip(stops[1:], [*stops[2:], parent(CODE[row["toTerrID"]])]):
            if not self._next_to(here, there):
                return False
        if kind == "Convoy" and row["terrID"] not in path:
            return False
        return kind != "Support move" or row["terrID"] not in path

    def _next_to(self, sea: str, there: str) -> bool:
        index, board = self.game.map.province_index, self.game.map.board
        return bool(board.reach[1, self.game.map.location_index[sea], index[there]])

    def text(self, row: dict, unit_kind: str | None) -> str | None:
        """Return a row as an order of ours; None if it breaks a rule of the form."""
        kind, goal, origin = row["type"], row["toTerrID"], row["fromTerrID"]
        letters = {parent(u.split()[1]): u[0] for own in self.game.units.values() for u in own}
        if kind.startswith("Build"):
            letter = kind.removeprefix("Build ")[0]
            is_child = "/" in CODE.get(goal, "/")
            return None if letter == "A" and is_child else f"{letter} {CODE[goal]} B"
        if kind == "Destroy":
            code = CODE.get(goal, "/")
            return None if "/" in code or code not in letters else f"{letters[code]} {code} D"
        unit = f"{(unit_kind or 'x')[0]} {CODE[row['terrID']]}"
        if kind in ("Hold", "Disband"):
            return f"{unit} {kind[0]}"
        if kind in ("Move", "Retreat"):
            target = CODE.get(goal)
            if target is None or (unit[0] == "A" and "/" in target):
                return None
            is_split = f"{target}/NC" in NUMBER or f"{target}/EC" in NUMBER
            if unit[0] == "F" and is_split:
                return None  # a fleet names its coast
            via = " VIA" if row["viaConvoy"] == "Yes" else ""
            return f"{unit} {'-' if kind == 'Move' else 'R'} {target}{via}"
        if "/" in CODE.get(goal, "/") or (origin is not None and "/" in CODE[origin]):
            return None  # others are named by their provinces
        if kind == "Support hold":
            return f"{unit} S {letters.get(CODE[goal], 'A')} {CODE[goal]}"
        letter = letters.get(CODE[origin], "A")
        verb = "S" if kind == "Support move" else "C"
        return f"{unit} {verb} {letter} {CODE[origin]} - {CODE[goal]}"

    def process(self) -> None:
        """Adjudicate the phase with the orders that are there, and go on to the next."""
        turn, phase = self._now()
        trial = self.game.copy()
        for number, power in enumerate(POWERS, 1):
            rows = self.kept.get(number, self._defaults(power))
            whole = [r for r in rows if r["type"] in ("Hold", "Disband") or r["toTerrID"]]
            trial.submit(power, [self.text(row, row["unitType"]) for row in whole], strict=False)
        trial.adjudicate()
        record, units = trial.history[-1], trial.units
        gone: dict[str, dict[str, list[str]]] = {}
        if phase == "Diplomacy":
            self._came, self._standoffs = self._battles(trial)
            for power, own in record["state"]["units"].items():
                for unit in own:
                    if "dislodged" in record["results"].get(unit, []):
                        places = trial.dislodged.get(power, {}).get(unit, [])
                        gone.setdefault(power, {})[unit] = places
        before = record["state"]["units"]
        self._fled = {
            (POWERS.index(power) + 1, NUMBER[unit[2:]])
            for power, own in units.items()
            for unit in own
            if phase == "Retreats" and unit not in before[power]
        }
        rows = archived_rows(trial.map, record, {"units": units, "retreats": gone})
        self._archive.add(record["name"], rows, units)
        owners = self._archive.now
        centers = {power: [] for power in POWERS}
        for place in sorted(owners):
            if owners[place] and CODE[place] in CENTERS:
                centers[POWERS[owners[place] - 1]].append(CODE[place])
        self.kept, self.status, self._version = {}, {}, self._version + 1
        for country, power in enumerate(POWERS, 1):
            alive = units[power] or gone.get(power) or centers[power]
            if not alive and self.members[country] in ("Playing", "Left"):
                self.members[country] = "Defeated"
        following = turn + 1, "Diplomacy"
        owed = any(len(units[power]) != len(centers[power]) for power in POWERS)
        if gone:
            following = turn, "Retreats"
        elif phase != "Builds" and turn % 2 and owed:
            following = turn, "Builds"
        known = {key: text for key, text in trial.to_state().items() if key.startswith("last_")}
        state = {"name": phase_name(*following), "units": units, "retreats": gone}
        playing = [c for c, status in self.members.items() if status == "Playing"]
        target = [c for c in playing if len(centers[POWERS[c - 1]]) >= 18 and not gone]
        self._game = Game.from_state(trial.map, state | {"centers": centers} | known)
        self._game.history = trial.history
        if len(playing) == 1 or target:
            self._end("Won", (target or playing)[0])


class _No(Exception):
    """An error of the site: its status and words."""
