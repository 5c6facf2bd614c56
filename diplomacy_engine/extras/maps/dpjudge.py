"""Reads `.map` files, the format of the DPjudge and of the `diplomacy` package.

A line is words; `#` begins a comment line. Read are:

    MAP file, USE file ...            lines of another file in the same folder come here
    BEGIN SPRING year MOVEMENT        the first phase
    VICTORY number                    centers to win; without it one more than half of all
    RULE BUILD_ANY                    builds in every own center
    UNOWNED center ...                nobody's at the start
    POWER (WORD:X) center ...         a power and its home centers; what follows is this power's:
    A PAR, F STP/SC                   a unit
    OWNS, CENTERS center ...          what it owns at the start
    INHABITS, HOMES center ...        its home centers
    UNITS                             forget its units
    DUMMY                             nobody plays it; also with names of powers
    UNPLAYED                          it is taken out; also with names of powers
    name = PAR alias ...              `+` is a blank; an alias with ? at its end is ambiguous
    LAND|COAST|WATER|PORT|SHUT PAR ABUTS place ...
    NOTIFY, FLAG, FLAGS, TEXTONLY     passed over

Borders. A place in small letters (`bul`) is one with coasts, where no fleet stands without naming
one; these are places of their own (`BUL/EC`). A neighbor in small letters is for armies only, one
with a capital at its beginning (`Tar`) for fleets only. PORT is a coast over which fleets convoy,
SHUT is closed to all.
"""

import re
from pathlib import Path
from typing import NamedTuple, NoReturn

from ..._suggest import quoted
from .draft import Draft, Neutral, add_neutral, border_lines, map_name, read_text, refuse

_TERRAIN = {"LAND": "land", "COAST": "coast", "PORT": "coast", "WATER": "sea", "SHUT": ""}
_PASSED_OVER = ("NOTIFY", "FLAG", "FLAGS", "TEXTONLY")  # of mail and pictures
_NOT_READ = ("DROP", "AMEND", "FLOW", "ROTATE", "NEWHOMES", "RESERVES", "MILITIA", "CONTROL")
_NOT_READ += ("LEAGUE", "TEAM", "TEAMS", "FROM", "IN", "DIRECTIVE", "DIRECTIVES")
_PLACE = r"[A-Za-z]{3}(?:/[A-Za-z]{1,10})?"


class _Place(NamedTuple):
    kind: str  # LAND, COAST, WATER, PORT or SHUT
    near: list[str]
    at: tuple[Path, int]


def read_dpjudge(path: Path) -> Draft:
    reader = _Reader(path)
    reader.read(path)
    return reader.draft()


class _Reader:
    def __init__(self, path: Path):
        self.path = path
        self.files: list[str] = []
        self.at = (path, 1)  # the line being read
        self.power: str | None = None  # the one that lines are about
        self.homes: dict[str, list[str]] = {}
        self.owned: dict[str, list[str]] = {}
        self.units: dict[str, dict[str, str]] = {}  # power -> province -> unit
        self.declared: dict[str, tuple[Path, int]] = {}  # power -> line
        self.centers: dict[str, tuple[Path, int]] = {}
        self.dummies: list[str] = []
        self.names: dict[str, str] = {}
        self.aliases: dict[str, list[str]] = {}
        self.unclear: list[str] = []
        self.terrain: dict[str, _Place] = {}  # as written: bul, BUL/EC, PAR
        self.victory: int | None = None
        self.first_phase = "S1901M"
        self.build_any = False

    def fail(self, reason: str) -> NoReturn:
        refuse(*self.at, reason)

    def read(self, path: Path) -> None:
        self.files.append(path.name)
        for number, line in enumerate(read_text(path).split("\n"), 1):
            self.at = (path, number)
            words = line.split()
            if words and not words[0].startswith("#"):
                self.line(path, line, words)

    def line(self, path: Path, line: str, words: list[str]) -> None:
        first, rest = words[0].upper(), words[1:]
        if first == "VICTORY":
            if len(rest) != 1 or not re.fullmatch(r"[0-9]{1,4}", rest[0]):
                self.fail(f"VICTORY takes one number here, not {quoted(' '.join(rest), 40)}")
            self.victory = int(rest[0])
        elif first in ("MAP", "USE", "USES"):
            for name in rest:
                self.include(path, name)
        elif first == "BEGIN":
            self.begin(rest)
        elif first in ("RULE", "RULES"):
            for word in rest:
                if word.upper() != "BUILD_ANY":
                    self.fail(f"the rule {quoted(word, 40)} is not one that can be played here")
                self.build_any = True
        elif "->" in line:
            self.fail("renaming (->) is not supported")
        elif "=" in line:
            self.name(line)
        elif first in ("OWNS", "CENTERS", "INHABITS", "HOME", "HOMES", "UNITS", "A", "F"):
            if self.power is None:
                self.fail(f"{first} comes before any power")
            self.of_power(self.power, first, rest)
        elif first in ("DUMMY", "DUMMIES"):
            self.dummies += self.listed(first, rest)
        elif first == "UNPLAYED":
            for power in self.listed(first, rest):
                for table in (self.homes, self.owned, self.units):
                    table.pop(power, None)
                self.dummies = [other for other in self.dummies if other != power]
            self.power = None
        elif first in _PASSED_OVER:
            pass
        elif first in _NOT_READ or words[-1].upper() in ("DIRECTIVE", "DIRECTIVES"):
            self.fail(f"{first} is not supported")
        elif first in _TERRAIN:
            self.place(first, rest)
        else:
            self.power_line(words)

    def include(self, path: Path, name: str) -> None:
        name = name if "." in name else f"{name}.map"
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            self.fail(f"{quoted(name, 40)} is not the name of a file in the same folder")
        if name in self.files:
            self.fail(f"{name} is included twice, or includes itself")
        if not (path.parent / name).is_file():
            self.fail(f"{name} is not in the same folder")
        number = self.at[1]
        self.read(path.parent / name)
        self.at = (path, number)

    def begin(self, words: list[str]) -> None:
        text = " ".join(words)
        spring = re.fullmatch(r"SPRING 0*([1-9][0-9]{0,3}) MOVEMENT", text.upper())
        if not spring:
            self.fail(f"games begin here as in SPRING 1901 MOVEMENT, not {quoted(text, 40)}")
        self.first_phase = f"S{spring[1]}M"

    def name(self, line: str) -> None:
        name, _, rest = line.partition("=")
        name, words = " ".join(name.split()), rest.split()
        if not name or not words or "=" in rest:
            self.fail("a name line has the form 'Paris = PAR par'")
        code = words[0].upper()
        if "/" in code:
            return  # a coast, which our notation names itself
        if self.names.setdefault(code, name) != name:
            self.fail(f"{code} has another name, {quoted(self.names[code], 40)}")
        for word in words[1:]:
            alias = word.rstrip("?").replace("+", " ").strip()
            if word.endswith("?"):
                self.unclear.append(alias)
            elif alias and "/" not in alias:
                self.aliases.setdefault(code, []).append(alias)

    def of_power(self, power: str, first: str, words: list[str]) -> None:
        if first in ("OWNS", "CENTERS"):
            if first == "CENTERS":
                self.owned[power] = []
            self.add_centers(self.owned.setdefault(power, []), words)
            self.declared.setdefault(f"{power} owns", self.at)
        elif first in ("INHABITS", "HOME", "HOMES"):
            if first != "INHABITS":
                self.homes[power] = []
            self.add_centers(self.homes.setdefault(power, []), words)
        elif first == "UNITS":
            self.units[power] = {}
        else:
            if len(words) != 1 or not re.fullmatch(_PLACE, words[0]):
                self.fail(f"{quoted(' '.join([first, *words]), 40)} is not a unit such as A PAR")
            code = words[0].upper().partition("/")[0]
            for units in self.units.values():
                units.pop(code, None)
            self.units.setdefault(power, {})[code] = f"{first} {words[0].upper()}"

    def add_centers(self, centers: list[str], words: list[str]) -> None:
        """Add centers to a list, or with a minus sign before them take them out."""
        for word in words:
            code = word.lstrip("-").upper()
            if not re.fullmatch(r"[A-Z]{3}", code):
                self.fail(f"{quoted(word, 40)} is not a three-letter code, which every center has")
            if code in centers:
                centers.remove(code)
            if not word.startswith("-"):
                centers.append(code)
            self.centers.setdefault(code, self.at)

    def power_name(self, word: str) -> str:
        name = re.sub(r"[^A-Z]", "", word.upper())
        if not 2 <= len(name) <= 31 or re.search("[0-9]", word):  # RED1 is not RED2
            self.fail(f"{quoted(word, 40)} is neither a keyword nor the name of a power")
        return name

    def listed(self, first: str, words: list[str]) -> list[str]:
        upper = [word.upper() for word in words]
        if not words:
            if self.power is None:
                self.fail(f"{first} comes before any power")
            return [self.power]
        powers = list(self.homes)
        if upper[0] != "ALL":
            powers = [self.power_name(word) for word in words]
        elif len(words) > 1:
            if upper[1] != "EXCEPT" or len(words) == 2:
                self.fail(f"after {first} ALL only EXCEPT and names of powers may come")
            spared = [self.power_name(word) for word in words[2:]]
            powers = [power for power in powers if power not in spared]
        for power in powers:
            if power not in self.homes:
                self.fail(f"{first} names {power}, which is not a power yet")
        self.power = None
        return powers

    def place(self, kind: str, words: list[str]) -> None:
        if not words or not re.fullmatch(_PLACE, words[0]):
            shown = quoted(words[0], 40) if words else "nothing"
            self.fail(f"a place needs a code of three letters, perhaps with a coast, not {shown}")
        place, near = words[0], words[2:]
        if len(words) > 1 and words[1].upper() != "ABUTS":
            self.fail(f"after {place} must come ABUTS, not {quoted(words[1], 40)}")
        if place.swapcase() in self.terrain:
            del self.terrain[place.swapcase()]
        for word in near:
            if not re.fullmatch(_PLACE, word):
                self.fail(f"{place} borders {quoted(word, 40)}, which is not a place")
        self.terrain[place] = _Place(kind, near, self.at)

    def power_line(self, words: list[str]) -> None:
        if words[0].upper() in ("UNOWNED", "NEUTRAL"):
            self.power = None
            self.add_centers([], words[1:])
            return
        self.power = self.power_name(words[0])
        self.declared.setdefault(self.power, self.at)
        centers = words[2:] if len(words) > 1 and words[1].startswith("(") else words[1:]
        self.add_centers(self.homes.setdefault(self.power, []), centers)

    # What all lines together say

    def draft(self) -> Draft:
        draft = Draft(self.path)
        provinces = self.provinces(draft)
        army, fleet = self.borders()
        playing = [power for power in self.homes if power not in self.dummies]
        facts = draft.facts
        facts["name"] = map_name(self.path.stem, draft.notes)
        facts["powers"] = playing
        facts["victory_supply_centers"] = self.victory or len(self.centers) // 2 + 1
        facts["first_phase"] = self.first_phase
        if self.build_any:
            facts["builds"] = "any"
        facts["start_units"] = {
            power: list(self.units[power].values()) for power in playing if self.units.get(power)
        }
        self.set_owners(provinces, playing)
        neutral = {}
        for power in self.dummies:
            path, line = self.declared[power]
            where = f"line {line}" if path == self.path else f"{path.name}, line {line}"
            centers = set(self.owned.get(power, self.homes[power]))
            units = self.units.get(power, {})
            neutral[power] = Neutral(power, where, centers, list(units.values()))
        add_neutral(draft, neutral)
        facts["provinces"] = provinces
        facts["army_borders"] = border_lines(army)
        facts["fleet_borders"] = border_lines(fleet)
        return draft

    def provinces(self, draft: Draft) -> dict[str, dict]:
        provinces: dict[str, dict] = {}
        closed = []
        for place, (kind, _, at) in self.terrain.items():
            if "/" in place:
                continue
            code, coasts = place.upper(), self.coasts(place)
            if kind == "SHUT":
                closed.append(code)
                continue
            if coasts and not place.islower():
                refuse(*at, f"{place} has coasts, so it should be in small letters")
            if place.islower() and not coasts:
                refuse(*at, f"{place} is a coast that no fleet may enter, which is not supported")
            if not place.islower() and not place.isupper():
                refuse(*at, f"{place} is neither in capitals nor in small letters")
            provinces[code] = {"name": self.names.get(code, code), "terrain": _TERRAIN[kind]}
            if coasts:
                provinces[code]["coasts"] = sorted(coasts)
            if kind == "PORT":
                provinces[code]["convoys"] = True
                draft.notes.append(f"a fleet in {code} convoys, although it is a coast")
        for place, (_, _, at) in self.terrain.items():
            if "/" in place and place.upper().partition("/")[0] not in provinces:
                refuse(*at, f"there is a coast {place}, but no {place[:3].lower()}")
        for code, at in self.centers.items():
            if code not in provinces:
                refuse(*at, f"{code} is not a place of this map, so it cannot be a center")
            provinces[code]["supply_center"] = True
        self.set_aliases(provinces, draft)
        if closed:
            draft.notes.append(f"left out, since nobody may enter: {', '.join(sorted(closed))}")
        return provinces

    def coasts(self, place: str) -> list[str]:
        start = f"{place.upper()}/"
        return [p.upper().partition("/")[2] for p in self.terrain if p.upper().startswith(start)]

    def set_aliases(self, provinces: dict[str, dict], draft: Draft) -> None:
        owners: dict[str, set[str]] = {}
        for code, words in self.aliases.items():
            for word in words:
                owners.setdefault(word.upper(), set()).add(code)
        unclear = set(self.unclear)
        for code in provinces:
            words = [w for w in dict.fromkeys(self.aliases.get(code, ())) if w.upper() != code]
            several = {w for w in words if len(owners[w.upper()]) > 1 or w.upper() in provinces}
            unclear |= several
            if set(words) - several:
                provinces[code]["aliases"] = [word for word in words if word not in several]
        if unclear:
            words = ", ".join(sorted(unclear))
            draft.notes.append(f"left out, since they may mean several places: {words}")

    def set_owners(self, provinces: dict[str, dict], playing: list[str]) -> None:
        for power in playing:
            homes = self.homes[power]
            if power in self.owned and sorted(self.owned[power]) != sorted(homes):
                if not self.build_any:
                    at = self.declared[f"{power} owns"]
                    refuse(*at, f"{power} must own its home centers at the start, and no others")
                homes = self.owned[power]
            for code in homes:
                other = provinces[code].get("home_of")
                if other is not None:
                    at = self.declared.get(power, (self.path, 1))
                    refuse(*at, f"{code} is a home center of both {other} and {power}")
                provinces[code]["home_of"] = power

    def borders(self) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        """Return the pairs of codes for armies and of locations for fleets, both ways."""
        kinds = {place.upper(): line.kind for place, line in self.terrain.items()}
        army: dict[tuple[str, str], tuple[Path, int]] = {}
        fleet: dict[tuple[str, str], tuple[Path, int]] = {}
        for place, (kind, near, at) in self.terrain.items():
            here = place.upper()
            for word in near:
                there, code = word.upper(), word.upper().partition("/")[0]
                if code not in kinds or there not in kinds:
                    refuse(*at, f"{place} borders {word}, which is not a place of this map")
                if "SHUT" in (kind, kinds[code]):
                    continue
                if "WATER" not in (kind, kinds[code]) and "/" not in here and word != word.title():
                    army[here, code] = at
                if "LAND" in (kind, kinds[code]) or place.islower() or word[0].islower():
                    continue
                if "/" not in there and self.coasts(there):
                    continue  # a fleet goes to one of the coasts
                fleet[here, there] = at
        for what, pairs in (("an army", army), ("a fleet", fleet)):
            for (here, there), at in pairs.items():
                if (there, here) not in pairs:
                    refuse(*at, f"{what} can go from {here} to {there}, but not back")
        return set(army), set(fleet)
