"""Reads DVAR files (JSON), in which diplicity describes variants; its schema is version 1.

What the schema has and this engine does not is refused: other victories than a number of centers
(but a last year with a shared draw is our year limit), other seasons than two movements and a
winter, centers that are owned and not at home, borders that go one way.
"""

import json
import re
from pathlib import Path
from typing import NoReturn

from ..._suggest import quoted
from ...rules.map import MapError
from .draft import Draft, border_lines, map_name, read_text, refuse

_BUILD_ANYWHERE, _REBUILD = "allow-builds-in-non-home-centers", "neutral-nations-auto-build"
_TEXTS = {"id": str, "name": str, "description": str, "author": str}
_TOP = _TEXTS | {
    "schemaVersion": int,
    "victoryConditions": list,
    "phaseProgression": dict,
    "nations": list,
    "provinces": list,
    "namedCoasts": list,
    "initialState": dict,
}
_TOP_OPTIONAL = {"rules": str, "adjudicationModifiers": list, "dominanceRules": list}
_NATION = {"id": str, "name": str, "color": str}
_PROVINCE = {"id": str, "name": str, "type": str, "supplyCenter": bool, "adjacencies": list}
_COAST = {"id": str, "name": str, "parentProvince": str, "adjacencies": list}
_TERRAIN = {"land": "land", "coastal": "coast", "sea": "sea"}
_FORMS = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "{...}",
}
_CYCLE = ("Movement", "Retreat", "Movement", "Retreat", "Adjustment")


def read_dvar(path: Path) -> Draft:
    return _Reader(path).draft()


class _Reader:
    def __init__(self, path: Path):
        self.path = path
        try:
            self.root = json.loads(read_text(path))
        except json.JSONDecodeError as error:
            refuse(path, error.lineno, f"it is not JSON: {error.msg}")
        except (RecursionError, ValueError) as error:
            refuse(path, 1, f"it is not JSON: {type(error).__name__}")
        if not isinstance(self.root, dict):
            refuse(path, 1, "a DVAR is {...}")
        self.where = {id(self.root): ""}  # id of a dictionary or list -> its path in the file
        pending = [self.root]
        while pending:
            holder = pending.pop()
            known, named = self.where[id(holder)], isinstance(holder, dict)
            for key, value in holder.items() if named else enumerate(holder):
                if isinstance(value, dict | list):
                    path_there = f"{known}.{key}".lstrip(".") if named else f"{known}[{key}]"
                    self.where[id(value)] = path_there
                    pending.append(value)

    def fail(self, where: dict, reason: str) -> NoReturn:
        at = self.where[id(where)]
        raise MapError(str(self.path), [f"{at}: {reason}" if at else reason])

    def check(self, value: object, owner: dict, keys: dict, optional: dict | None = None) -> dict:
        if not isinstance(value, dict):
            self.fail(owner, f"{quoted(value, 40)} should be {{...}}")
        known = keys | (optional or {})
        for key, found in value.items():
            if key not in known:
                self.fail(value, f"the key {quoted(key, 40)} is not one that can be read here")
            if type(found) is not known[key]:
                self.fail(value, f"{key} should be {_FORMS[known[key]]}, not {quoted(found, 40)}")
        for key in keys:
            if key not in value:
                self.fail(value, f"{key!r} is missing")
        return value

    def draft(self) -> Draft:
        root = self.check(self.root, self.root, _TOP, _TOP_OPTIONAL)
        if root["schemaVersion"] != 1:
            self.fail(root, f"schemaVersion {root['schemaVersion']} is not 1")
        draft = Draft(self.path)
        facts = draft.facts
        facts["name"] = map_name(root["id"], draft.notes)
        modifiers = root.get("adjudicationModifiers", [])
        for word in modifiers:
            if word not in (_BUILD_ANYWHERE, _REBUILD):
                self.fail(root, f"the modifier {quoted(word, 60)} is not one that can be played")
        powers, neutral = self.nations(draft)
        facts["powers"] = sorted(powers.values())
        self.victory(facts)
        self.seasons(draft)
        if _BUILD_ANYWHERE in modifiers:
            facts["builds"] = "any"
        places, provinces = self.provinces(draft, powers | dict.fromkeys(neutral, ""))
        army, fleet = self.borders(places, provinces)
        self.units(draft, powers, neutral, places)
        self.owners(powers, neutral, places, provinces, _BUILD_ANYWHERE in modifiers)
        self.check_neutral(neutral, places, _REBUILD in modifiers)
        if _REBUILD in modifiers and "neutral" in facts:
            facts["neutral_rebuilds"] = True
        facts["provinces"] = provinces
        facts["army_borders"], facts["fleet_borders"] = border_lines(army), border_lines(fleet)
        self.dominance(places, provinces)
        return draft

    def nations(self, draft: Draft) -> tuple[dict[str, str], list[str]]:
        """Return the powers' names by id, and the ids of nations that nobody plays."""
        powers, neutral = {}, []
        for nation in self.root["nations"]:
            nation = self.check(nation, self.root, _NATION, {"non_playable": bool})
            word = nation["id"]
            if word in powers or word in neutral:
                self.fail(nation, f"there are two nations {quoted(word, 40)}")
            if nation.get("non_playable"):
                neutral.append(word)
                continue
            name = re.sub(r"[^A-Z]+", "_", word.upper()).strip("_")
            if not 2 <= len(name) <= 31 or name in powers.values():
                self.fail(
                    nation, f"{quoted(word, 40)} is not a valid name of a power, or is used twice"
                )
            powers[word] = name
        if not powers:
            self.fail(self.root, "'nations' has none that is played")
        return powers, neutral

    def victory(self, facts: dict) -> None:
        for condition in self.root["victoryConditions"]:
            kind = condition.get("type") if isinstance(condition, dict) else None
            if kind == "supply-center-majority" and "victory_supply_centers" not in facts:
                self.check(condition, self.root, {"type": str, "supplyCenters": int})
                facts["victory_supply_centers"] = condition["supplyCenters"]
            elif kind == "timed-resolution" and condition.get("resolution") == "shared-draw":
                self.check(condition, self.root, {"type": str, "year": int, "resolution": str})
                facts["max_years"] = condition["year"] - self.first_year() + 1
            else:
                where = condition if isinstance(condition, dict) else self.root
                shown = quoted(kind or condition, 60)
                self.fail(where, f"the victory {shown} is not one that can be played here")
        if "victory_supply_centers" not in facts:
            self.fail(self.root, "there is no victory by a number of supply centers")

    def first_year(self) -> int:
        state = self.check(
            self.root["initialState"],
            self.root,
            {"phase": dict, "units": list, "supplyCenters": list},
        )
        phase = self.check(state["phase"], state, {"season": str, "year": int, "type": str})
        return phase["year"]

    def seasons(self, draft: Draft) -> None:
        year, phase = self.first_year(), self.root["initialState"]["phase"]
        root = self.check(
            self.root["phaseProgression"], self.root, {"seasons": list, "transitions": list}
        )
        follows, where = {}, {}
        for step in root["transitions"]:
            self.check(step, root, {"from": dict, "to": dict}, {"condition": dict})
            if "condition" in step:
                self.fail(step, "phases that come in some years only cannot be played here")
            before = self.check(step["from"], step, {"season": str, "type": str})
            after = self.check(step["to"], step, {"season": str, "type": str, "yearDelta": int})
            key = before["season"], before["type"]
            if key in follows:
                self.fail(step, f"two phases follow the {' '.join(key)}")
            follows[key] = ((after["season"], after["type"]), after["yearDelta"])
            where[key] = step
        at, cycle = (phase["season"], phase["type"]), []
        while len(cycle) < len(_CYCLE) and at in follows:
            (at, years), step = follows[at], where[at]
            cycle.append((at, years, step))
        wanted = (*_CYCLE[1:], _CYCLE[0])
        sound = phase["type"] == "Movement" and len(cycle) == len(follows) == len(_CYCLE)
        sound = sound and at == (phase["season"], phase["type"])
        for ((_, kind), years, step), expected in zip(cycle, wanted):
            if kind != expected:
                sound = False
            elif years != (expected == "Movement" and step is cycle[-1][2]):
                self.fail(step, "a year is one spring, one fall and one winter here")
        if not sound:
            self.fail(
                root,
                "games begin here with a movement, and a year has two movements with retreats and "
                "then the adjustments",
            )
        if not 1 <= year <= 9999:
            self.fail(phase, f"the first year is {year}; here it is 1 to 9999")
        names = [season for (season, _), _, _ in (cycle[-1], cycle[1])]
        if [name.lower() for name in names] != ["spring", "fall"]:
            draft.notes.append(f"the seasons {' and '.join(names)} are spring and fall here")
        draft.facts["first_phase"] = f"S{year}M"

    def provinces(
        self, draft: Draft, nations: dict[str, str]
    ) -> tuple[dict[str, str], dict[str, dict]]:
        """Return the location text of every id, and the provinces without their owners."""
        places: dict[str, str] = {}
        found: dict[str, dict] = {}
        entries = [
            self.check(entry, self.root, _PROVINCE, {"homeNation": str})
            for entry in self.root["provinces"]
        ]
        short = {e["id"].upper() for e in entries if re.fullmatch(r"[A-Za-z]{3}", e["id"])}
        for entry in entries:
            word = entry["id"]
            if word in places:
                self.fail(entry, f"there are two provinces {quoted(word, 40)}")
            if entry["type"] not in _TERRAIN:
                self.fail(
                    entry, f"the type {quoted(entry['type'], 40)} is not land, coastal or sea"
                )
            if "homeNation" in entry and entry["homeNation"] not in nations:
                self.fail(entry, f"homeNation {quoted(entry['homeNation'], 40)} is not a nation")
            code = word.upper()
            if code not in short:
                code = _new_code(word, short | set(found))
                draft.notes.append(f"{word} is {code} here")
            places[word] = code
            found[code] = {"name": entry["name"], "terrain": _TERRAIN[entry["type"]]}
            if word.upper() != code and word.isprintable():
                found[code]["aliases"] = [word]
            if entry["supplyCenter"]:
                found[code]["supply_center"] = True
        self.coasts(draft, places, found)
        return places, found

    def coasts(self, draft: Draft, places: dict[str, str], provinces: dict[str, dict]) -> None:
        coasts: dict[str, list[tuple[str, str, dict]]] = {}
        for entry in self.root["namedCoasts"]:
            entry = self.check(entry, self.root, _COAST)
            parent, _, coast = entry["id"].partition("/")
            if entry["parentProvince"] not in places or parent != entry["parentProvince"]:
                self.fail(entry, f"{quoted(entry['id'], 40)} is not a coast of a province")
            word = coast.upper()
            if not re.fullmatch(r"[A-Z]{1,10}", word) or entry["id"] in places:
                self.fail(
                    entry, f"{quoted(coast, 40)} is not a valid name of a coast, or is used twice"
                )
            places[entry["id"]] = f"{places[parent]}/{word}"
            coasts.setdefault(places[parent], []).append((entry["id"], word, entry))
        for code, several in coasts.items():
            if provinces[code]["terrain"] == "sea":
                self.fail(several[0][2], f"{code} is a sea, which has no coasts")
            provinces[code]["terrain"] = "coast"
            if len(several) == 1:
                places[several[0][0]] = code
                draft.notes.append(f"{code} has only one coast, which has no name here")
            else:
                provinces[code]["coasts"] = sorted(word for _, word, _ in several)

    def borders(
        self, places: dict[str, str], provinces: dict[str, dict]
    ) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
        """Return the pairs of codes for armies and of locations for fleets, both ways."""
        edges: dict[tuple[str, str], tuple[str, dict]] = {}
        for entry in [*self.root["provinces"], *self.root["namedCoasts"]]:
            for edge in entry["adjacencies"]:
                edge = self.check(edge, entry, {"to": str, "pass": str})
                if edge["to"] not in places or edge["pass"] not in ("army", "fleet", "both"):
                    self.fail(
                        edge, f"{quoted(entry['id'], 40)} borders {quoted(edge['to'], 40)} by "
                        f"{quoted(edge['pass'], 40)}; a border is by army, fleet or both, and to a "
                        "place of this map"
                    )  # fmt: skip
                if (entry["id"], edge["to"]) in edges:
                    self.fail(edge, f"{entry['id']} lists {edge['to']} twice")
                edges[entry["id"], edge["to"]] = edge["pass"], edge
        army, fleet = set(), set()
        for (here, there), (kind, edge) in edges.items():
            if edges.get((there, here), ("",))[0] != kind:
                self.fail(
                    edge,
                    f"the border from {here} to {there} is by {kind}, and that from {there} to "
                    f"{here} is not; one-way borders cannot be played",
                )
            a, b = places[here], places[there]
            one, other = provinces[a[:3]], provinces[b[:3]]
            if kind != "fleet":
                if "/" in a or "/" in b or "sea" in (one["terrain"], other["terrain"]):
                    self.fail(edge, f"no army can go from {here} to {there}")
                army.add((a, b))
            if kind != "army":
                split = ("coasts" in one and "/" not in a) or ("coasts" in other and "/" not in b)
                if split:
                    continue  # the schema allows them; a fleet goes to one of the coasts
                if "land" in (one["terrain"], other["terrain"]):
                    self.fail(
                        edge, f"no fleet can go from {here} to {there}: one of them is inland"
                    )
                fleet.add((a, b))
        return army, fleet

    def units(
        self, draft: Draft, powers: dict[str, str], neutral: list[str], places: dict[str, str]
    ) -> None:
        found: dict[str, list[str]] = {name: [] for name in sorted(powers.values())}
        nobodys, whose = [], set()
        state = self.root["initialState"]
        for entry in state["units"]:
            entry = self.check(entry, state, {"nation": str, "type": str, "location": str})
            nation, kind, where = entry["nation"], entry["type"], entry["location"]
            if nation not in (*powers, *neutral):
                self.fail(entry, f"{quoted(nation, 40)} is not a nation")
            if kind not in ("Army", "Fleet") or where not in places:
                self.fail(entry, f"no {quoted(kind, 20)} can stand in {quoted(where, 40)}")
            unit = f"{kind[0]} {places[where]}"
            if nation in powers:
                found[powers[nation]].append(unit)
            else:
                nobodys.append(unit)
                whose.add(nation)
        draft.facts["start_units"] = {power: units for power, units in found.items() if units}
        if not nobodys:
            return
        name = re.sub(r"[^A-Z]+", "_", min(whose).upper()).strip("_") if len(whose) == 1 else ""
        if not 2 <= len(name) <= 31 or name in found:
            name = "NEUTRAL"
        draft.facts["neutral"] = name
        draft.facts["start_units"][name] = nobodys
        draft.notes.append(
            f"nobody plays {' and '.join(sorted(whose))}: its {len(nobodys)} units hold, its "
            "centers are nobody's"
        )

    def owners(
        self,
        powers: dict[str, str],
        neutral: list[str],
        places: dict[str, str],
        provinces: dict[str, dict],
        build_any: bool,
    ) -> None:
        """Give the home centers their powers, which are those that own them at the start."""
        state, owner, at = self.root["initialState"], {}, {}
        for entry in state["supplyCenters"]:
            entry = self.check(entry, state, {"nation": str, "province": str})
            word, nation = entry["province"], entry["nation"]
            code = places.get(word, "")
            if not provinces.get(code, {}).get("supply_center"):
                self.fail(entry, f"{quoted(word, 40)} is not a supply center")
            if nation not in (*powers, *neutral) or code in owner:
                self.fail(entry, f"{word} has two owners, or {quoted(nation, 40)} is not a nation")
            owner[code], at[code] = nation, entry
        for entry in self.root["provinces"]:
            code, home = places[entry["id"]], entry.get("homeNation")
            owned = owner.get(code)
            if not build_any and home != owned and not {home, owned} <= {None, *neutral}:
                self.fail(
                    entry,
                    f"{entry['id']} is a home center of {home or 'nobody'}, and {owned or 'nobody'}"
                    " owns it at the start, which is not supported",
                )
            if owned in powers:
                provinces[code]["home_of"] = powers[owned]

    def check_neutral(self, neutral: list[str], places: dict[str, str], rebuilds: bool) -> None:
        """Refuse nations that nobody plays and that would have anything to adjust in winter."""
        state = self.root["initialState"]
        for nation in neutral:
            mine = [entry for entry in state["units"] if entry["nation"] == nation]
            stands = {places[entry["location"]][:3] for entry in mine}
            owned = {places[e["province"]] for e in state["supplyCenters"] if e["nation"] == nation}
            if stands != owned:
                self.fail(
                    state,
                    f"{nation}, which nobody plays, does not have exactly one unit in each of "
                    f"its centers ({min(stands ^ owned)}), so it would "
                    "have to build or remove, which is not supported",
                )
            fleets = [entry for entry in mine if entry["type"] != "Army"]
            if rebuilds and fleets:
                self.fail(fleets[0], f"a fleet of {nation} would be built again as an army")

    def dominance(self, places: dict[str, str], provinces: dict[str, dict]) -> None:
        """Refuse rules of ownership about supply centers; about other places they are colors."""
        for rule in self.root.get("dominanceRules", []):
            where = rule if isinstance(rule, dict) else self.root
            code = places.get(where.get("province", ""), "")
            if code not in provinces:
                self.fail(where, "a dominance rule is about a province of this map")
            if provinces[code].get("supply_center"):
                self.fail(where, f"the dominance rule about the center {code} cannot be played")


def _new_code(word: str, taken: set[str]) -> str:
    """Return three letters for a place, in the order of its id if they are free."""
    letters = re.sub(r"[^A-Z]", "", word.upper()) or "X"
    for i in range(1, len(letters)):
        for j in range(i + 1, len(letters)):
            if (code := letters[0] + letters[i] + letters[j]) not in taken:
                return code
    numbers = range(26 * 26)
    codes = (letters[0] + chr(65 + n // 26) + chr(65 + n % 26) for n in numbers)
    return next((code for code in codes if code not in taken), "XXX")
