"""DUI, a line protocol of other Diplomacy engines: one power of one position at a time, on the
standard map. docs/protocol.md lists its differences from our protocol."""

import re

from ...errors import UserError
from ...games.vector_game import VectorGame
from ...rules.map import Map
from ...rules.notation import neighbors_of, province_of
from .lines import ByPower, Position
from .process import Process

_NAMES = {"LYO": "gol", "NWG": "nrg"}  # provinces that have other names there
_OURS = {name: ours for ours, name in _NAMES.items()}
_PHASES = {"SM": "sm", "SR": "sr", "FM": "fm", "FR": "fr", "WA": "fb"}
_PHASES_BACK = {theirs: ours for ours, theirs in _PHASES.items()}
_POWERS = {name[0]: name for name in ("AUSTRIA", "ENGLAND", "FRANCE", "GERMANY", "ITALY")}
_POWERS |= {"R": "RUSSIA", "T": "TURKEY", "N": "NEUTRAL"}
_UNIT = re.compile(r"([A-Z])([af])([a-z]{3})(?:\.([a-z]c))?(?:<([a-z]{3}))?")
MOST_LINES = 10_000  # of an answer


def their_place(place: str, mark: str = "/") -> str:
    province, _, coast = place.partition("/")
    name = _NAMES.get(province, province.lower())
    return f"{name}{mark}{coast.lower()}" if coast else name


def our_place(place: str) -> str:
    province, _, coast = place.replace(".", "/").partition("/")
    name = _OURS.get(province, province.upper())
    return f"{name}/{coast.upper()}" if coast else name


def their_order(text: str) -> str:
    """Return an order as DUI writes it, such as `A tyr S A vie H`."""
    if text == "WAIVE":
        return "W"
    words = text.removesuffix(" VIA").split()
    if "S" in words and "-" not in words:
        words.append("H")
    return " ".join(their_place(w) if len(w) > 2 else w for w in words)


def our_order(text: str) -> str:
    """Return an order of DUI as the `diplomacy` package writes it."""
    if text.strip() == "W":
        return "WAIVE"
    words = [our_place(w) if len(w) > 2 else w for w in text.split()]
    return " ".join(words[:-1] if "S" in words and words[-1] == "H" else words)


def dfen(position: Position) -> str:
    """Return a position as a line of DUI."""
    units, gone = [], []
    for power, texts in position.units.items():
        for text in texts:
            kind, place = text.lstrip("*").split()
            unit = f"{power[0]}{kind.lower()}{their_place(place, '.')}"
            if text.startswith("*"):  # where the attack came from is not told
                gone.append(f"{unit}<{their_place(place.partition('/')[0])}")
            else:
                units.append(unit)
    owned = [
        f"{power[0]}{their_place(code)}"
        for power, codes in position.centers.items()
        for code in sorted(codes)
    ]
    phase = f"{position.name[1:-1]}{_PHASES[position.name[0] + position.name[-1]]}"
    return "/".join([phase, *(",".join(part) or "-" for part in (units, owned, gone))])


def position_of(line: str, game_map: Map) -> Position:
    """Return the position of a line of DUI; UserError says what cannot be read.

    Where a bounce forbids a retreat is not told: a dislodged unit may go to any free neighbor but
    that from which it was attacked.
    """
    parts = line.split("/")
    match = re.fullmatch(r"(\d{4})(sm|sr|fm|fr|fb)", parts[0])
    if len(parts) != 4 or match is None:
        raise UserError(f"not a position: {line:.60}")
    season, kind = _PHASES_BACK[match[2]]
    units: ByPower = {name: [] for name in _POWERS.values() if name != "NEUTRAL"}
    centers: ByPower = {name: [] for name in units}
    gone = []
    position = Position(0, f"{season}{match[1]}{kind}", units, centers, [], new=True)
    for field, star in ((parts[1], ""), (parts[3], "*")):
        for text in field.split(",") if field != "-" else ():
            unit = _UNIT.fullmatch(text)
            if unit is None or _POWERS.get(unit[1]) not in units:
                raise UserError(f"not a unit: {text:.40}")
            place = our_place(f"{unit[3]}/{unit[4]}" if unit[4] else unit[3])
            text = f"{unit[2].upper()} {place}"
            units[_POWERS[unit[1]]].append(star + text)
            if star:
                gone.append((_POWERS[unit[1]], text, our_place(unit[5] or "")))
    for text in parts[2].split(",") if parts[2] != "-" else ():
        if text[:1] not in _POWERS:
            raise UserError(f"not a center: {text:.40}")
        if text[0] != "N":
            centers[_POWERS[text[0]]].append(our_place(text[1:]))
    taken = {province_of(t[2:]) for texts in units.values() for t in texts if t[0] != "*"}
    for power, text, attacker in gone:
        places = neighbors_of(game_map, text)
        free = [place for place in places if province_of(place) not in taken | {attacker}]
        position.retreats.setdefault(power, {})[text] = free
    return position


class Engine:
    """A program that speaks DUI."""

    wants = ()

    def __init__(self, command: str, timeout: float, movetime: int):
        self.process, self.movetime = Process(command, timeout), movetime
        self._until("dui", "duiok", "its first lines")
        self._until("isready", "readyok", "its first lines")

    def _until(self, lines: str, word: str, phase: str) -> str:
        """Send lines, and return what follows `word` in the answer's last one."""
        answer = self.process.ask(lines.encode(), phase=phase)
        for _ in range(MOST_LINES):
            first, _, rest = answer.decode(errors="replace").strip().partition(" ")
            if first == word:
                return rest
            answer = self.process.ask(phase=phase)
        raise self.process.fault(f"did not say {word}", phase)

    def orders(self, games: VectorGame, positions: list[Position], *_: object) -> list[ByPower]:
        """Return the orders that are given in each position."""
        if games.map.name != "standard":
            raise self.process.fault(f"does not play on the map {games.map.name!r:.60}")
        answers = []
        for position in positions:
            lines = "newgame\n" * position.new + f"position {dfen(position)}\n"
            orders = {}
            for power in position.powers:
                lines += f"setpower {power.lower()}\ngo movetime {self.movetime}"
                answer = self._until(lines, "bestorders", f"{position.name}, {power}")
                lines = ""
                orders[power] = [our_order(text) for text in answer.split(";") if text.strip()]
            answers.append(orders)
        return answers
