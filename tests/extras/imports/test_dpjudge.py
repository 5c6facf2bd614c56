"""`.map` files: what they say, what is refused with its line, and the package's own games."""

import random
import tomllib

import pytest
from support.diplomacy_package import PackageGame, package_maps
from support.games import nonempty, orderable

from diplomacy_engine import Game, load_map
from diplomacy_engine.commands import cli
from diplomacy_engine.constants import parse_phase
from diplomacy_engine.extras.imports.dpjudge import read_dpjudge
from diplomacy_engine.extras.imports.draft import map_file_text
from diplomacy_engine.rules.map import Map, MapError

# Two powers and a third one that nobody plays; an island where fleets convoy, a split coast, a lake
# that nobody may enter, and borders for armies only (cap - hil) and for fleets only (Isl).
GULF = """\
# A comment.
BEGIN SPRING 1650 MOVEMENT
VICTORY 4
RULE BUILD_ANY

EAST     (EASTERN:E)   CAP
A CAP
F NOR
WEST     (WESTERN)     ROC
F MOU/SC
HILL-MEN (HILLY)       HIL
DUMMY
A HIL
UNOWNED                ISL MOU

Cape         = CAP the+cape headland
Hills        = HIL hil
Island       = ISL isle?
Lake         = LAK
Mouth        = MOU
Mouth (NC)   = MOU/NC
North Sea    = NOR sea?
Rocks        = ROC rocks
South Sea    = SOU sea?

COAST CAP     ABUTS NOR MOU/NC mou hil Isl
LAND  HIL     ABUTS CAP LAK mou ROC
PORT  ISL     ABUTS NOR SOU Cap
SHUT  LAK     ABUTS HIL
COAST MOU/NC  ABUTS CAP NOR
COAST MOU/SC  ABUTS ROC SOU
COAST mou     ABUTS CAP HIL NOR ROC SOU
WATER NOR     ABUTS CAP ISL MOU/NC mou
COAST ROC     ABUTS HIL MOU/SC mou SOU
WATER SOU     ABUTS ISL MOU/SC mou ROC
"""
# The same as a map file.
GULF_FACTS = tomllib.loads("""\
name = "gulf"
powers = ["EAST", "WEST"]
victory_supply_centers = 4
first_phase = "S1650M"
builds = "any"
neutral = "HILLMEN"

[start_units]
EAST = ["A CAP", "F NOR"]
WEST = ["F MOU/SC"]
HILLMEN = ["A HIL"]

[provinces.CAP]
name = "Cape"
terrain = "coast"
supply_center = true
home_of = "EAST"
aliases = ["the cape", "headland"]
[provinces.HIL]
name = "Hills"
terrain = "land"
supply_center = true
[provinces.ISL]
name = "Island"
terrain = "coast"
convoys = true
supply_center = true
[provinces.MOU]
name = "Mouth"
terrain = "coast"
coasts = ["NC", "SC"]
supply_center = true
[provinces.NOR]
name = "North Sea"
terrain = "sea"
[provinces.ROC]
name = "Rocks"
terrain = "coast"
supply_center = true
home_of = "WEST"
aliases = ["rocks"]
[provinces.SOU]
name = "South Sea"
terrain = "sea"

[army_borders]
CAP = "HIL MOU"
HIL = "MOU ROC"
MOU = "ROC"

[fleet_borders]
CAP = "ISL MOU/NC NOR"
ISL = "NOR SOU"
"MOU/NC" = "NOR"
"MOU/SC" = "ROC SOU"
ROC = "SOU"
""")


@pytest.fixture
def gulf(tmp_path):
    path = tmp_path / "gulf.map"
    path.write_text(GULF)
    return path


def test_what_a_file_says(gulf):
    draft = read_dpjudge(gulf)
    assert draft.facts == GULF_FACTS
    assert tomllib.loads(map_file_text(draft.facts, "gulf.map")) == GULF_FACTS
    assert repr(draft.finished()) == "Map('gulf', 2 powers, 7 provinces)"
    assert draft.notes == [
        "a fleet in ISL convoys, although it is a coast",
        "left out, since they may mean several places: isle, sea",
        "left out, since nobody may enter: LAK",
        "nobody plays HILLMEN: its 1 units hold, its centers are nobody's",
    ]


def test_lines_of_mail_and_pictures_are_passed_over(gulf):
    text = GULF.replace("A CAP\n", "A CAP\nFLAG ENGLAND\n")
    gulf.write_text(f"NOTIFY keeper@example.org\nFLAGS standard\nTEXTONLY\n{text}")
    assert read_dpjudge(gulf).facts == GULF_FACTS


def test_the_command(gulf, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["import-map", "gulf.map"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "wrote gulf.toml: map gulf, 2 powers, 7 provinces, 9 locations, 5 supply"
    )
    assert "\n  units may be built in any center a power owns\n" in said and "LAK" in said
    assert load_map("gulf.toml").facts == GULF_FACTS
    assert cli.main(["check-map", "gulf.toml"]) == 0
    assert cli.main(["import-map", "gulf.map"]) == 2
    assert "gulf.toml already exists; -o gulf.toml" in capsys.readouterr().err
    assert cli.main(["import-map", "gulf.map", "-o", "gulf.toml"]) == 0
    gulf.write_text(GULF.replace("F NOR", "A NOR"))
    assert cli.main(["import-map", "gulf.map", "-o", "other.toml"]) == 2
    assert capsys.readouterr().err == (
        "error: map gulf.map: start_units: EAST 'A NOR': NOR is a sea, where no army can stand\n"
    )
    assert not (tmp_path / "other.toml").exists()


def test_included_files_and_what_comes_after_them(gulf, tmp_path):
    """As the package's variants of its standard map: other powers, homes and units."""
    path = tmp_path / "two.map"
    path.write_text(
        "MAP gulf\nUNPLAYED ALL EXCEPT EAST\nUNOWNED ROC HIL\nNORTH ISL MOU\nF ISL\nA MOU\n"
        "EAST -CAP ROC\nUNITS\nA ROC\n"
    )
    facts = read_dpjudge(path).finished().facts
    assert (facts["name"], facts["powers"]) == ("two", ["EAST", "NORTH"])
    assert "neutral" not in facts and facts["first_phase"] == "S1650M"
    assert facts["start_units"] == {"EAST": ["A ROC"], "NORTH": ["F ISL", "A MOU"]}
    homes = {code: entry.get("home_of") for code, entry in facts["provinces"].items()}
    assert homes == GULF_FACTS["provinces"].fromkeys(homes) | {
        "ROC": "EAST",
        "ISL": "NORTH",
        "MOU": "NORTH",
    }


REFUSED = [
    ("VICTORY 4", "VICTORY 4 5", 3, "VICTORY takes one number here, not '4 5'"),
    ("VICTORY 4", "VICTORY 9", None, "victory_supply_centers is 9, out of reach"),
    ("SPRING 1650 MOVEMENT", "FALL 1650 MOVEMENT", 2, "begin here with SPRING"),
    ("SPRING 1650", "SPRING 0", 2, "a year from 1 on"),
    ("BUILD_ANY", "HARD_BUILD", 4, "the rule 'HARD_BUILD' is not one that can be played here"),
    ("RULE BUILD_ANY", "MAP gulf", 4, "gulf.map is included twice, or includes itself"),
    ("RULE BUILD_ANY", "MAP ../gulf", 4, "is not the name of a file in the same folder"),
    ("RULE BUILD_ANY", "MAP elsewhere", 4, "elsewhere.map is not in the same folder"),
    ("RULE BUILD_ANY", "DROP ROC", 4, "DROP is not supported"),
    ("RULE BUILD_ANY", "OLD -> NEW", 4, "renaming (->) is not supported"),
    ("RULE BUILD_ANY", "F NOR", 4, "F comes before any power"),
    ("RULE BUILD_ANY", "DUMMY", 4, "DUMMY comes before any power"),
    ("RULE BUILD_ANY", "DUMMY NOBODY", 4, "DUMMY names NOBODY, which is not a power yet"),
    ("RULE BUILD_ANY", "?", 4, "'?' is neither a keyword nor the name of a power"),
    ("A HIL\n", "A HIL ROC\n", 13, "'A HIL ROC' is not a unit such as A PAR"),
    (
        "A HIL\n",
        "A ROC\n",
        11,
        "HILLMEN, which nobody plays, does not have exactly one unit in each",
    ),
    (
        "HIL\nDUMMY",
        "HIL ROC\nDUMMY",
        11,
        "HILLMEN, which nobody plays, does not have exactly one unit",
    ),
    ("(WESTERN)     ROC", "(WESTERN)     CAP ROC", 9, "CAP is a home center of both EAST and WEST"),
    ("UNOWNED                ISL", "UNOWNED  XXX ISL", 14, "XXX is not a place of this map"),
    ("ROC rocks", "ROC rocks = x", 23, "a name line has the form"),
    ("Rocks        = ROC", "Rocks        = CAP", 23, "CAP has two names, 'Cape' and 'Rocks'"),
    (
        "Lake         = LAK",
        "Lake         = XXX",
        19,
        "XXX has a name, but no line with its terrain",
    ),
    (
        "LAND  HIL     ABUTS",
        "LAND  HIL     TOUCHES",
        27,
        "after HIL must come ABUTS, not 'TOUCHES'",
    ),
    ("LAND  HIL", "LAND  HILLS", 27, "a place needs a code of three letters"),
    ("HIL     ABUTS CAP", "HIL     ABUTS CAP CAP", 27, "HIL lists CAP twice"),
    ("HIL     ABUTS CAP", "HIL     ABUTS XXX CAP", 27, "HIL borders XXX, which is not a place"),
    ("HIL     ABUTS CAP ", "HIL     ABUTS ", 26, "an army can go from CAP to HIL, but not back"),
    ("PORT  ISL     ABUTS NOR", "PORT  ISL     ABUTS", 33, "from NOR to ISL, but not back"),
    ("COAST mou ", "COAST MOU ", 32, "MOU has coasts, so it should be in small letters"),
    ("COAST CAP ", "COAST cap ", 26, "cap is a coast that no fleet may enter"),
    ("Hills        =", "H\x00ills       =", 17, "there is a control character in it"),
]


@pytest.mark.parametrize(("old", "new", "line", "reason"), REFUSED)
def test_refusals(gulf, capsys, old, new, line, reason):
    assert GULF.count(old) == 1
    gulf.write_text(GULF.replace(old, new))
    assert cli.main(["import-map", str(gulf)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    start = f"error: map {gulf}: " + (f"line {line}: " if line else "")
    assert said.startswith(start) and reason in said


def test_owned_centers_that_are_not_at_home_are_refused_unless_builds_are_anywhere(gulf):
    text = GULF.replace("F NOR", "OWNS ISL\nF NOR")
    gulf.write_text(text)
    assert read_dpjudge(gulf).facts["provinces"]["ISL"]["home_of"] == "EAST"
    gulf.write_text(text.replace("RULE BUILD_ANY", ""))
    with pytest.raises(MapError, match=r"gulf\.map: line 8: EAST does not own exactly its home"):
        read_dpjudge(gulf)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "powers: expected"),
        (b"\xff\xfe", "line 1: it is not UTF-8 text"),
        (b"# " + b"x" * 100_000_000, "cannot be read: it is longer than 1,000,000 bytes"),
        (b"A" * 900_000, "line 1: "),
        (b"{}", "'id' is missing"),
        (None, "cannot be read: No such file"),
    ],
)
def test_files_that_are_none(tmp_path, capsys, content, reason):
    path = tmp_path / "none.map"
    if content is not None:
        path.write_bytes(content)
    assert cli.main(["import-map", str(path)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: map {path}: {reason}") and len(said) < 400


def test_damaged_files_are_refused_or_played(gulf):
    """Words left out, doubled and exchanged: what is read can be played."""
    rng, words = random.Random(1), GULF.split()
    for _ in range(300):
        lines = [line.split(" ") for line in GULF.splitlines()]
        for _ in range(rng.randint(1, 3)):
            line = rng.choice([line for line in lines if line])
            i = rng.randrange(len(line))
            line[i : i + rng.randint(0, 1)] = rng.sample(words, rng.randint(0, 2))
        gulf.write_text("\n".join(" ".join(line) for line in lines))
        try:
            game_map = read_dpjudge(gulf).finished()
        except MapError as error:
            assert str(error).startswith(f"map {gulf}: ") and "\n" not in str(error)
            continue
        assert Map(tomllib.loads(map_file_text(game_map.facts, "gulf.map"))).board is not None


# The package's own maps

needs_package = pytest.mark.skipif(not package_maps(), reason="diplomacy is not installed")
# powers, provinces, locations, centers, centers to win, orders, of docs/own_map.md
COUNTS = {
    "ancmed": (5, 79, 79, 34, 18),
    "ancmed_age_of_empires": (5, 79, 79, 34, 18),
    "colonial": (7, 119, 125, 58, 30),
    "empire": (10, 161, 177, 58, 30),
    "known_world_901": (15, 269, 281, 109, 55),
    "modern": (10, 141, 143, 64, 33),
    "pure": (7, 7, 7, 7, 4),
    "standard": (7, 75, 81, 34, 18),
    "standard_age_of_empires": (7, 75, 81, 34, 18),
    "standard_age_of_empires_2": (7, 75, 81, 34, 18),
    "standard_fleet_rome": (7, 75, 81, 34, 18),
    "standard_france_austria": (2, 75, 81, 34, 18),
    "standard_germany_italy": (2, 75, 81, 34, 18),
    "world": (17, 192, 214, 86, 44),
}


def package_map(name: str) -> Map:
    (path,) = [path for path in package_maps() if path.stem == name]
    return read_dpjudge(path).finished()


@needs_package
def test_the_packages_maps_are_read():
    found = {}
    for path in package_maps():
        game_map = read_dpjudge(path).finished()
        board = game_map.board
        found[path.stem] = (
            len(game_map.powers),
            len(game_map.provinces),
            len(game_map.locations),
            len(board.center_province),
            board.victory_centers,
        )
    assert found == COUNTS


@needs_package
def test_the_packages_standard_map_is_ours():
    theirs, ours = package_map("standard").board, load_map("standard").board
    for name, mine in ours._asdict().items():
        if name != "removal_rank":  # by the full names, in which spellings differ
            assert (getattr(theirs, name) == mine).all() if hasattr(mine, "all") else True, name


@needs_package
@pytest.mark.parametrize(
    ("name", "seed"),
    [("ancmed_age_of_empires", 1), ("modern", 2), ("known_world_901", 3), ("ancmed", 4)],
)
def test_random_games_beside_the_package(name, seed, tmp_path):
    """Units and centers are the same phase by phase, with builds anywhere and neutral units."""
    rng, theirs = random.Random(seed), PackageGame(name, tmp_path)
    ours = Game(package_map(name), max_years=3)
    while not ours.is_over:
        if parse_phase(theirs.state["name"]) != parse_phase(ours.phase):
            # There somebody plays the neutral power: it may have to retreat or to build.
            assert theirs.state["name"][-1] in "RA" and ours.map.unit_powers != ours.powers
            theirs.play({})
            continue
        standing = {
            power: sorted(unit for unit in units if unit[0] != "*")
            for power, units in theirs.state["units"].items()
        }
        assert nonempty(standing) == nonempty(ours.units)
        for power, codes in ours.centers.items():
            assert sorted(theirs.state["centers"][power]) == codes
        for power, places in orderable(ours).items():
            chosen = []
            for place in places:
                possible = {*theirs.state["possible"].get(place.split()[-1], ()), "WAIVE"}
                both = [text for text in ours.legal_orders(place) if text in possible]
                chosen.append(rng.choice(both))
            owed = abs(ours.adjustments.get(power, len(places)))
            ours.submit(power, rng.sample(chosen, owed))
        theirs.play(ours.orders)
        ours.adjudicate()
    theirs.close()
