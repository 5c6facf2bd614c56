"""A webDiplomacy site that holds a game of ours, and is as strict and as silent as the real one.

Facts: the site's public api/README.md and doc/gamedata/02-spec.md, and its map's numbering.
"""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from diplomacy_engine.constants import COMPLETED, parse_phase, phase_kind
from diplomacy_engine.errors import UserError
from diplomacy_engine.games.game import Game
from diplomacy_engine.rules.notation import read_order

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
_KINDS = {"A": "Army", "F": "Fleet"}
_KEYS = {"terrID", "type", "fromTerrID", "toTerrID", "viaConvoy"}
_STATUSES = {"saved": "Saved", "ready": "Ready"}


def parent(code: str) -> str:
    return code.split("/")[0]


def turn_and_phase(name: str) -> tuple[int, str]:
    """Return the site's words for a phase of ours."""
    year, number = parse_phase(name)
    turn = 2 * (year - 1901) + (number >= 2)
    return turn, {"movement": "Diplomacy", "retreats": "Retreats"}.get(phase_kind(name), "Builds")


def variant() -> dict:
    """Return `variant.json` without the borders, which our client does not read."""
    names = " ".join(NAMES.split()).split(", ")
    rows = [
        {
            "id": number,
            "name": name,
            "coast": "Child" if "/" in CODE[number] else "No",
            "coastParentID": NUMBER[parent(CODE[number])],
        }
        for number, name in enumerate(names, 1)
    ]
    countries = [{"countryID": n, "name": power.title()} for n, power in enumerate(POWERS, 1)]
    facts = {"schema": 1, "variantID": 1, "name": "Classic", "version": "1"}
    return facts | {"countries": countries, "territories": rows}


def unit_rows(state: dict) -> list[dict]:
    """Return the units of a state as the site's files have them."""
    return [
        {
            "countryID": POWERS.index(power) + 1,
            "type": _KINDS[text.lstrip("*")[0]],
            "terrID": NUMBER[text.split()[1]],
            "retreating": text.startswith("*"),
        }
        for power, texts in state["units"].items()
        for text in texts
    ]


def center_rows(state: dict) -> list[dict]:
    return [
        {"terrID": NUMBER[code], "countryID": POWERS.index(power) + 1}
        for power, codes in state["centers"].items()
        for code in codes
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


def history(game: Game) -> dict:
    """Return the `history.json` of a game."""
    phases = []
    for record in game.history:
        known = game.__dict__.setdefault("rows_of_phases", {})  # each is made once
        if id(record) in known:
            phases.append(known[id(record)])
            continue
        turn, phase = turn_and_phase(record["name"])
        then = Game.from_state(game.map, record["state"])
        rows = []
        for power, texts in record["orders"].items():
            then.submit(power, texts or [], strict=False)
            for text in then.orders[power]:
                rows.append(row_of(then, text) | {"countryID": POWERS.index(power) + 1})
        phases.append(_phase(turn, phase, record["state"], rows))
        known[id(record)] = phases[-1]
    now = game.to_state()
    last = (0, "Finished") if now["name"] == COMPLETED else turn_and_phase(now["name"])
    phases.append(_phase(*last, now, []))
    return {"schema": 1, "gameID": 5, "file": "history", "phases": phases}


def _phase(turn: int, phase: str, state: dict, orders: list[dict]) -> dict:
    units, centers = unit_rows(state), center_rows(state)
    return {"turn": turn, "phase": phase, "units": units, "centers": centers, "orders": orders}


class Site:
    """The site, with one game, number 5. Each country has the key `key-N`.

    Attributes:
        game: what it holds.
        kept: country -> rows of the orders that it has.
        status: country -> "", saved or ready.
        votes: countries that have voted for a draw.
        drops: order types that it loses though nothing is wrong with them.
        behind: how often a file is served as it was before.
        trouble: route -> list of (status, whether it is done all the same), each used once.
        asked: (method, route or path, key) of each request.
    """

    def __init__(self, game: Game | None = None):
        self.game = game or Game("standard")
        self.kept: dict[int, list[dict]] = {}
        self.status: dict[int, str] = {}
        self.votes: set[int] = set()
        self.drops: set[str] = set()
        self.behind = 0
        self.trouble: dict[str, list[tuple[int, bool]]] = {}
        self.instead: dict[str, Callable[[], bytes]] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.cancelled = self.processing = self.waits = False
        self.press = "NoPress"
        self._version, self._before = 1, {}
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
            return self._file(path, fields.get("v", ""))
        if not key:
            raise _No(401, "No API key provided.")
        country = int(key.removeprefix("key-")) if key.startswith("key-") else 0
        if country not in range(1, 8):
            return b""
        if route == "game/playercontext":
            return self._context(country, fields)
        data = json.loads(body)
        if self.cancelled or data["gameID"] != 5:
            raise _No(404, "Game not found.")
        if data["countryID"] != country:
            raise _No(403, "Not your country.")
        if route == "game/setvote":
            self.votes.add(country)
            return b"Draw"
        return self._orders(country, data)

    def _now(self) -> tuple[int, str]:
        if self.waits:
            return 0, "Pre-game"
        if self.game.is_over:
            return 2 * len(self.game.history), "Finished"
        return turn_and_phase(self.game.phase)

    def _context(self, country: int, fields: dict) -> dict:
        turn, phase = self._now()
        files = {
            name: {"url": f"cache/games/0/5/{name}.json", "version": f"v{self._version}"}
            for name in ("game", "history")
        }
        files["variant"] = {"url": "variants/Classic/cache/variant.json", "version": "1"}
        processing = "Processing" if self.processing else "Not-processing"
        game = {"gameID": 5, "realGameID": 5, "variantID": 1, "turn": turn, "phase": phase}
        game |= {"gameOver": "No", "processTime": 1, "processStatus": processing}
        game |= {"pressType": self.press}
        member = {"countryID": country, "status": "Playing", "orderStatus": self._status(country)}
        if "gameID" not in fields:
            return {"schema": 1, "games": [game | member | {"files": files}]}
        if self.cancelled or fields["gameID"] != "5":
            raise _No(404, "Game not found.")
        return {"schema": 1, "game": game, "files": files, "member": member}

    def _status(self, country: int) -> list[str]:
        if POWERS[country - 1] not in self._waiting():
            return ["None"]
        found = self.status.get(country, "")
        return [_STATUSES[found]] if found else []

    def _waiting(self) -> set[str]:
        return {self.game.powers[p] for p in self.game.decisions().power.tolist()}

    def _file(self, path: str, version: str) -> dict:
        name = path.rpartition("/")[2].removesuffix(".json")
        if name == "variant":
            return variant()
        now = {"history": lambda: history(self.game), "game": self._board}[name]()
        if self.behind and name in self._before:
            self.behind -= 1
            return self._before[name]
        self._before[name] = now
        return now

    def _board(self) -> dict:
        turn, phase = self._now()
        if phase == "Finished":
            return {"turn": turn, "phase": phase, "units": [], "territories": []}
        state = self.game.to_state()
        rows = {}
        for row in center_rows(state):  # untouched neutral ones are left out
            rows[row["terrID"]] = row["countryID"]
        came_from, standoffs = self._battles()
        places = {*rows, *(NUMBER[p] for p in came_from), *(NUMBER[p] for p in standoffs)}
        territories = [
            {
                "terrID": place,
                "ownerCountryID": rows.get(place, 0),
                "unitID": None,
                "retreatingUnitID": None,
                "standoff": CODE[place] in standoffs,
                "occupiedFromTerrID": NUMBER.get(came_from.get(CODE[place], "")),
            }
            for place in sorted(places)
        ]
        units = unit_rows(state)
        return {"turn": turn, "phase": phase, "units": units, "territories": territories}

    def _battles(self) -> tuple[dict[str, str], set[str]]:
        """Return where units came from that dislodged others, and where attackers bounced."""
        if not self.game.dislodged or not self.game.history:
            return {}, set()
        record = self.game.history[-1]
        came_from, bounced = {}, set()
        for texts in record["orders"].values():
            for text in texts or []:
                words = text.split()
                if words[2:3] != ["-"]:
                    continue
                if "bounce" in record["results"].get(" ".join(words[:2]), []):
                    bounced.add(parent(words[3]))
                elif "VIA" not in words:
                    came_from[parent(words[3])] = parent(words[1])
        occupied = {parent(u.split()[1]) for own in self.game.units.values() for u in own}
        return came_from, bounced - occupied

    def _orders(self, country: int, data: dict) -> list[dict]:
        turn, phase = self._now()
        if data["turn"] != turn:
            raise _No(400, f"Invalid turn, expected {turn}, got {data['turn']}.")
        if data["phase"] != phase or phase == "Finished":
            raise _No(400, f"Invalid phase, expected {phase}.")
        for row in data["orders"]:
            if not set(row) >= _KEYS:
                raise _No(400, "Required fields for order are missing.")
            if row["terrID"] is not None and row["terrID"] not in CODE:
                raise _No(400, "Unknown territory.")
        power = POWERS[country - 1]
        kept = self.kept.setdefault(country, self._defaults(power))
        taken: set[int] = set()
        for row in data["orders"]:
            self._take(power, kept, taken, row)
        self.status[country] = "ready" if data.get("ready") == "Yes" else "saved"
        answer = [dict(row) for row in kept]
        for row in answer:
            if row["type"].startswith("Build"):
                row["terrID"] = None
        if self._waiting() <= {POWERS[c - 1] for c, now in self.status.items() if now == "ready"}:
            self.process()
        return answer

    def _defaults(self, power: str) -> list[dict]:
        nothing = {"fromTerrID": None, "toTerrID": None, "viaConvoy": "No"}
        nothing["countryID"] = POWERS.index(power) + 1
        if self.game.phase.endswith("A"):
            owed = self.game.adjustments.get(power, 0)
            kind = "Wait" if owed > 0 else "Destroy"
            return [nothing | {"terrID": None, "type": kind} for _ in range(abs(owed))]
        units = self.game.dislodged.get(power, {}) or self.game.units[power]
        kind = "Disband" if self.game.phase.endswith("R") else "Hold"
        if self.game.phase.endswith("R"):
            units = self.game.dislodged.get(power, {})
        return [
            nothing | {"terrID": NUMBER[u.split()[1]], "unitType": _KINDS[u[0]], "type": kind}
            for u in units
        ]

    def _take(self, power: str, kept: list[dict], taken: set[int], row: dict) -> None:
        """Put a row in the place of the unit's, or of the next free one in winter."""
        if row["type"] in self.drops:
            return
        winter = self.game.phase.endswith("A")
        for i, old in enumerate(kept):
            if i in taken or (not winter and old["terrID"] != row["terrID"]):
                continue
            if not self._is_legal(power, row, old.get("unitType")):
                return
            taken.add(i)
            clean = {key: row[key] for key in _KEYS}
            kept[i] = old | clean
            if row["type"] != "Wait":
                return

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
        """End the phase, by the deadline or since all are ready."""
        for number, power in enumerate(POWERS, 1):
            rows = self.kept.get(number, self._defaults(power))
            texts = [
                "WAIVE" if row["type"] == "Wait" else self.text(row, row.get("unitType"))
                for row in rows
                if row["toTerrID"] is not None or row["type"] != "Destroy"
            ]
            self.game.submit(power, texts, strict=False)
        self.game.adjudicate()
        self.kept, self.status = {}, {}
        self._version += 1


class _No(Exception):
    """An error of the site: its status and words."""
