"""DVAR files: what they say, and what is refused with its line."""

import copy
import itertools
import json
import random
import tomllib

import pytest

from diplomacy_engine import load_map
from diplomacy_engine.commands import cli
from diplomacy_engine.extras.imports.draft import map_file_text
from diplomacy_engine.extras.imports.dvar import read_dvar
from diplomacy_engine.rules.map import Map, MapError

STEPS = (
    ("Spring", "Movement", "Spring", "Retreat", 0),
    ("Spring", "Retreat", "Fall", "Movement", 0),
    ("Fall", "Movement", "Fall", "Retreat", 0),
    ("Fall", "Retreat", "Fall", "Adjustment", 0),
    ("Fall", "Adjustment", "Spring", "Movement", 1),
)
PASS = {(True, False): "army", (False, True): "fleet", (True, True): "both"}


def dvar(facts: dict, **others: object) -> dict:
    """Return a map's facts as a DVAR, with other keys in place of some."""
    edges: dict[tuple[str, str], list[bool]] = {}
    for number, key in enumerate(("army_borders", "fleet_borders")):
        for first, line in facts[key].items():
            for second in line.split():
                for pair in ((first, second), (second, first)):
                    edges.setdefault(pair, [False, False])[number] = True

    def adjacencies(place: str) -> list[dict]:
        return [
            {"to": there.lower(), "pass": PASS[tuple(kinds)]}
            for (here, there), kinds in edges.items()
            if here == place
        ]

    neutral = facts.get("neutral")
    nations = [
        {"id": power.lower(), "name": power.title(), "color": "#123456"}
        | ({"non_playable": True} if power == neutral else {})
        for power in [*facts["powers"], *([neutral] if neutral else [])]
    ]
    provinces, coasts, owned = [], [], []
    for code, entry in facts["provinces"].items():
        split = [f"{code}/{coast}" for coast in entry.get("coasts", [])]
        kind = "land" if split else entry["terrain"].replace("coast", "coastal")
        home = {"homeNation": entry["home_of"].lower()} if "home_of" in entry else {}
        provinces.append(
            {"id": code.lower(), "name": entry["name"], "type": kind}
            | {"supplyCenter": entry.get("supply_center", False), **home}
            | {"adjacencies": adjacencies(code)}
        )
        for place in split:
            parent = {"parentProvince": code.lower(), "adjacencies": adjacencies(place)}
            coasts.append({"id": place.lower(), "name": place} | parent)
        if home:
            owned.append({"nation": home["homeNation"], "province": code.lower()})
    units = [
        {"nation": power.lower(), "type": {"A": "Army", "F": "Fleet"}[unit[0]]}
        | {"location": unit[2:].lower()}
        for power, several in facts["start_units"].items()
        for unit in several
    ]
    owned += [
        {"nation": neutral.lower(), "province": unit["location"]}
        for unit in units
        if neutral and unit["nation"] == neutral.lower()
    ]
    year = int(facts["first_phase"][1:-1])
    found = {
        "schemaVersion": 1,
        "id": facts["name"],
        "name": facts["name"].title(),
        "description": "A map.",
        "author": "Somebody",
        "victoryConditions": [
            {
                "type": "supply-center-majority",
                "supplyCenters": facts["victory_supply_centers"],
            }
        ],
        "phaseProgression": {
            "seasons": ["Spring", "Fall"],
            "transitions": [
                {
                    "from": {"season": a, "type": b},
                    "to": {"season": c, "type": d, "yearDelta": years},
                }
                for a, b, c, d, years in STEPS
            ],
        },
        "nations": nations,
        "provinces": provinces,
        "namedCoasts": coasts,
        "initialState": {
            "phase": {"season": "Spring", "year": year, "type": "Movement"},
            "units": units,
            "supplyCenters": owned,
        },
    }
    modifiers = ["allow-builds-in-non-home-centers"] if facts.get("builds") == "any" else []
    modifiers += ["neutral-nations-auto-build"] if facts.get("neutral_rebuilds") else []
    if modifiers:
        found["adjudicationModifiers"] = modifiers
    return found | others


# Builds anywhere, a nation that nobody plays, a coast called River.
DELTA = tomllib.loads("""\
name = "delta"
powers = ["EAST", "NORTH_WEST"]
victory_supply_centers = 4
first_phase = "S1650M"
max_years = 30
builds = "any"
neutral = "HILLMEN"
neutral_rebuilds = true

[start_units]
EAST = ["A CAP", "F NOR"]
NORTH_WEST = ["F MOU/RIVER"]
HILLMEN = ["A HIL"]

[provinces]
CAP = { name = "Cape", terrain = "coast", supply_center = true, home_of = "EAST" }
HIL = { name = "Hills", terrain = "land", supply_center = true }
MOU = { name = "Mouth", terrain = "coast", supply_center = true, coasts = ["NC", "RIVER"] }
NOR = { name = "North Sea", terrain = "sea" }
ROC = { name = "Rocks", terrain = "coast", supply_center = true, home_of = "NORTH_WEST" }
SOU = { name = "South Sea", terrain = "sea" }

[army_borders]
CAP = "HIL MOU"
HIL = "MOU ROC"
MOU = "ROC"

[fleet_borders]
CAP = "MOU/NC NOR"
"MOU/NC" = "NOR"
"MOU/RIVER" = "ROC SOU"
ROC = "SOU"
""")
TIMED = {"type": "timed-resolution", "year": 1679, "resolution": "shared-draw"}


def delta() -> dict:
    found = json.loads(json.dumps(dvar(DELTA)).replace("north_west", "north-west"))
    found["victoryConditions"].append(dict(TIMED))
    return found


@pytest.fixture
def write(tmp_path):
    def writing(content: dict, name: str = "delta.dvar.json"):
        path = tmp_path / name
        path.write_text(json.dumps(content, indent=1))
        return path

    return writing


def same(one: dict, other: dict) -> None:
    """Check that facts say the same, whatever the order in lists."""
    assert {k: v for k, v in one.items() if not isinstance(v, dict)} == {
        k: v for k, v in other.items() if not isinstance(v, dict)
    }
    assert one["start_units"] == other["start_units"]
    plain = [
        {
            code: {key: value for key, value in entry.items() if key not in ("aliases", "position")}
            for code, entry in facts["provinces"].items()
        }
        for facts in (one, other)
    ]
    assert plain[0] == plain[1]
    for key in ("army_borders", "fleet_borders"):
        pairs = [
            {frozenset((a, b)) for a, line in facts[key].items() for b in line.split()}
            for facts in (one, other)
        ]
        assert pairs[0] == pairs[1]


def test_what_a_file_says(write):
    draft = read_dvar(write(delta()))
    same(draft.facts, DELTA)
    assert tomllib.loads(map_file_text(draft.facts, "delta.dvar.json")) == draft.facts
    assert draft.finished().board.neutral_rebuilds
    assert draft.notes == ["nobody plays hillmen: its 1 units hold, its centers are nobody's"]


def test_the_standard_map_as_a_dvar_is_the_standard_map(write):
    facts = dict(load_map("standard").facts)
    del facts["max_years"]
    draft = read_dvar(write(dvar(facts) | {"id": "classical"}))
    same(draft.facts, facts | {"name": "classical"})
    found = draft.finished().board
    for name, table in load_map("standard").board._asdict().items():
        assert (getattr(found, name) == table).all() if hasattr(table, "all") else True, name


def test_the_command(write, tmp_path, capsys):
    path, out = write(delta()), tmp_path / "delta.toml"
    assert cli.main(["import-map", str(path), "-o", str(out)]) == 0
    same(load_map(out).facts, DELTA)
    assert "  lost neutral units come back in winter\n" in capsys.readouterr().out


def test_places_of_other_codes_get_three_letters(write):
    text = json.dumps(delta()).replace('"nor"', '"north-sea-2"').replace('"cap"', '"cape"')
    draft = read_dvar(write(json.loads(text)))
    assert draft.notes[:2] == ["cape is CAP here", "north-sea-2 is NOR here"]
    assert draft.facts["provinces"]["NOR"]["aliases"] == ["north-sea-2"]
    assert draft.finished().aliases["CAPE"] == "CAP"


def test_a_single_named_coast_is_none(write):
    content = delta()
    text = json.dumps(content).replace("mou/river", "roc/wc")
    content = json.loads(text)
    content["namedCoasts"] = [
        coast | {"parentProvince": coast["id"][:3]} for coast in content["namedCoasts"]
    ]
    provinces = {entry["id"]: entry for entry in content["provinces"]}
    for place in provinces.values():  # fleets of ROC stand on its one coast
        place["adjacencies"] = [
            edge | ({"pass": "army"} if "roc" in (place["id"], edge["to"]) else {})
            for edge in place["adjacencies"]
            if not ("roc" in (place["id"], edge["to"]) and edge["pass"] == "fleet")
        ]
    provinces["roc"]["type"] = "land"
    provinces["roc"]["adjacencies"] = [
        edge for edge in provinces["roc"]["adjacencies"] if "/" not in edge["to"]
    ]
    for coast in content["namedCoasts"]:
        coast["adjacencies"] = [e for e in coast["adjacencies"] if e["to"] != "roc"]
    draft = read_dvar(write(content))
    assert draft.facts["start_units"]["NORTH_WEST"] == ["F ROC"]
    assert "coasts" not in draft.facts["provinces"]["ROC"]
    assert "ROC has only one coast, which has no name here" in draft.notes
    assert "MOU has only one coast, which has no name here" in draft.notes
    draft.finished()


def changed(change: str) -> dict:
    """Return DELTA as a DVAR after a statement about it, `d`, and its provinces by id, `p`."""
    d = delta()
    exec(change, {"d": d, "p": {entry["id"]: entry for entry in d["provinces"]}})
    return d


REFUSED = [
    ("d['schemaVersion'] = 2", "schemaVersion 2 is not 1"),
    ("d['surprise'] = 1", "the key 'surprise' is not one that can be read here"),
    ("del d['nations']", "'nations' is missing"),
    ("d['provinces'] = {}", "provinces should be a list, not {}"),
    (
        "d['adjudicationModifiers'] = ['fog-of-war']",
        "the modifier 'fog-of-war' is not one that can",
    ),
    ("d['victoryConditions'] = []", "there is no victory by a number of supply centers"),
    (
        "d['victoryConditions'] = [{'type': 'province-control', 'provinces': ['cap']}]",
        "the victory 'province-control' is not one that can be played here",
    ),
    (
        "d['victoryConditions'][1]['resolution'] = 'most-supply-centers'",
        "the victory 'timed-resolution' is not one that can be played here",
    ),
    (
        "d['phaseProgression']['transitions'][4]['to']['yearDelta'] = 5",
        "a year is one spring, one fall and one winter here",
    ),
    (
        "d['phaseProgression']['transitions'][3]['condition'] = {'yearMod': 10, 'yearModValue': 0}",
        "phases that come in some years only cannot be played here",
    ),
    (
        "d['phaseProgression']['transitions'].pop()",
        "a year has two movements with retreats and then the adjustments",
    ),
    (
        "d['initialState']['phase']['season'] = 'Fall'",
        "a year is one spring, one fall and one wint",
    ),
    ("d['initialState']['phase']['type'] = 'Adjustment'", "games begin here with a movement"),
    ("d['initialState']['phase']['year'] = 0", "the first year is 0; here it is 1 to 9999"),
    ("d['nations'][0]['id'] = '7'", "'7' is not a valid name of a power"),
    ("d['nations'][1]['id'] = 'east'", "there are two nations 'east'"),
    ("p['cap']['type'] = 'swamp'", "the type 'swamp' is not land, coastal or sea"),
    ("p['cap']['id'] = 'roc'", "there are two provinces 'roc'"),
    ("p['cap']['homeNation'] = 'gaul'", "homeNation 'gaul' is not a nation"),
    ("p['cap']['adjacencies'][0]['to'] = 'xxx'", "'cap' borders 'xxx' by"),
    ("p['cap']['adjacencies'].append(p['cap']['adjacencies'][0])", "cap lists hil twice"),
    ("p['cap']['adjacencies'].pop(0)", "and that from cap to hil is not; one-way borders"),
    ("p['cap']['adjacencies'][0]['pass'] = 'both'", "one-way borders cannot be played"),
    ("p['hil']['type'] = 'sea'", "no army can go from cap to hil"),
    ("p['roc']['type'] = 'land'", ": one of them is inland"),
    ("d['namedCoasts'][0]['id'] = 'mou/n1'", "'n1' is not a valid name of a coast"),
    ("d['namedCoasts'][0]['parentProvince'] = 'roc'", "'mou/nc' is not a coast of a province"),
    ("d['initialState']['units'][0]['nation'] = 'gaul'", "'gaul' is not a nation"),
    ("d['initialState']['units'][0]['location'] = 'xxx'", "no 'Army' can stand in 'xxx'"),
    (
        "d['initialState']['units'][0]['location'] = 'nor'",
        "start_units: EAST 'A NOR': NOR is a sea",
    ),
    ("d['initialState']['supplyCenters'][0]['province'] = 'nor'", "'nor' is not a supply center"),
    (
        "d['initialState']['supplyCenters'][2]['province'] = 'mou'",
        "hillmen, which nobody plays, does not have",
    ),
    ("d['initialState']['supplyCenters'].pop(0)", "power EAST has no home center"),
    ("d['nations'] = []; p['cap'].pop('homeNation')", "'nations' has none that is played"),
    (
        "d['adjudicationModifiers'] = []; d['initialState']['supplyCenters'].pop(0)",
        "cap is a home center of east, and nobody owns it at the start",
    ),
    (
        "d['dominanceRules'] = [{'province': 'cap', 'nation': 'east', 'dependencies': []}]",
        "the dominance rule about the center CAP cannot be played",
    ),
]


@pytest.mark.parametrize(("change", "reason"), REFUSED)
def test_refusals(write, capsys, change, reason):
    path = write(changed(change))
    assert cli.main(["import-map", str(path)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert reason in said and said.startswith(f"error: map {path}: ")


def test_the_path_is_that_of_the_entry(write):
    path = write(changed("p['roc']['type'] = 'swamp'"))
    number = [province["id"] for province in delta()["provinces"]].index("roc")
    with pytest.raises(MapError, match=rf"provinces\[{number}\]: the type 'swamp'"):
        read_dvar(path)
    path = write(changed("p['cap']['adjacencies'].append(p['cap']['adjacencies'][0])"))
    with pytest.raises(MapError, match=r"provinces\[\d+\]\.adjacencies\[\d+\]: cap lists"):
        read_dvar(path)


def test_colors_of_provinces_are_passed_over(write):
    rule = {"province": "nor", "nation": "east", "dependencies": []}
    same(read_dvar(write(delta() | {"dominanceRules": [rule]})).facts, DELTA)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "powers: expected"),
        (b"{}", "'id' is missing"),
        (b"[]", "line 1: a DVAR is {...}"),
        (b'{\n"id": 3,}', "line 2: it is not JSON"),
        (b"[" * 100_000, "line 1: it is not JSON: RecursionError"),
        (b'{"id":' * 100_000, "line 1: it is not JSON: RecursionError"),
        (b'{"schemaVersion": ' + b"1" * 5000 + b"}", "line 1: it is not JSON: ValueError"),
        (b'{"id": "a\x00"}', "line 1: there is a control character in it"),
        (b" " * 100_000_000, "cannot be read: it is longer than 1,000,000 bytes"),
    ],
)
def test_files_that_are_none(tmp_path, capsys, content, reason):
    path = tmp_path / "none.json"
    path.write_bytes(content)
    assert cli.main(["import-map", str(path)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: map {path}: {reason}") and len(said) < 400


def test_damaged_files_are_refused_or_played(write):
    """Anything may stand anywhere: what is read can be played."""
    rng, sound = random.Random(1), delta()
    junk = [None, True, 0, -1, 1.5, "", "cap", "nor", "mou/nc", "east", "Army", [], {}, [[]], "é"]
    for _ in range(400):
        content = copy.deepcopy(sound)
        for _ in range(rng.randint(1, 3)):
            place = content
            while True:
                keys = list(range(len(place))) if isinstance(place, list) else list(place)
                key = rng.choice(keys)
                if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.8:
                    place = place[key]
                    continue
                if rng.random() < 0.3 and len(keys) > 1:
                    del place[key]
                else:
                    place[key] = copy.deepcopy(rng.choice(junk))
                break
        path = write(content)
        try:
            game_map = read_dvar(path).finished()
        except MapError as error:
            assert str(error).startswith(f"map {path}: ") and "\n" not in str(error)
            continue
        assert Map(tomllib.loads(map_file_text(game_map.facts, "delta"))).board is not None


JUNK = (None, True, 0, -1, 1.5, "", "cap", "mou/nc", "east", "Army", [], {}, "\u00e9" * 50)


def single_changes(content: dict):
    """Yield a map with one field left out or replaced, for every field and every kind of junk."""
    pending = [content]
    while pending:
        place = pending.pop()
        for key in list(place) if isinstance(place, dict) else range(len(place)):
            value = place[key]
            for junk in JUNK:
                place[key] = copy.deepcopy(junk)
                yield content
            if isinstance(place, dict):
                del place[key]
                yield content
            place[key] = value
            if isinstance(value, dict | list):
                pending.append(value)


@pytest.mark.parametrize("every", [37, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["delta", "small"])
def test_every_change_of_one_field_is_imported_or_refused(write, name, every):
    content = delta() if name == "delta" else dvar(load_map("small").facts)
    content.pop("max_years", None)
    ends: dict[str, int] = {}
    for changed_map in itertools.islice(single_changes(content), 0, None, every):
        path = write(changed_map)
        try:
            read_dvar(path).finished()
            how = "imported"
        except MapError as error:
            how = "refused"
            assert str(error).startswith(f"map {path}: ") and "\n" not in str(error)
        ends[how] = ends.get(how, 0) + 1
    assert len(ends) == 2, ends


def test_the_content_decides_not_the_suffix(tmp_path, capsys):
    path = tmp_path / "delta.dvar"
    path.write_text("\n" + json.dumps(delta()))
    assert cli.main(["import-map", str(path), "-o", str(tmp_path / "delta.toml")]) == 0
    same(load_map(tmp_path / "delta.toml").facts, DELTA)
    path.rename(tmp_path / "delta.map")
    assert cli.main(["import-map", str(tmp_path / "delta.map"), "-o", str(path)]) == 0
