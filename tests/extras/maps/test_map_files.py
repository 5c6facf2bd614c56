"""Maps of other programs: what `.map` files and DVARs say, and what is refused, with its place."""

import json
import tomllib
from pathlib import Path

import pytest
from support.commands import refusal
from support.diplomacy_package import package_maps
from support.tables import read_table

from diplomacy_engine import Map, UserError, load_map
from diplomacy_engine.commands import cli
from diplomacy_engine.extras.maps.dpjudge import read_dpjudge
from diplomacy_engine.extras.maps.draft import map_file_text
from diplomacy_engine.extras.maps.dvar import read_dvar

FILES = Path(__file__).parent / "files"
# Two powers and a third one that nobody plays; an island where fleets convoy, a split coast, a lake
# that nobody may enter, and borders for armies only (cap - hil) and for fleets only (Isl).
GULF = (FILES / "gulf.map").read_text()
GULF_FACTS = tomllib.loads((FILES / "gulf.toml").read_text())  # the same as a map file
DELTA = tomllib.loads((FILES / "delta.toml").read_text())


def dvar(name: str = "delta") -> dict:
    """Return the content of a DVAR, for the caller to change."""
    return json.loads((FILES / f"{name}.dvar.json").read_text())


@pytest.fixture
def gulf(tmp_path):
    path = tmp_path / "gulf.map"
    path.write_text(GULF)
    return path


@pytest.fixture
def write(tmp_path):
    def writing(content: dict):
        path = tmp_path / "delta.dvar.json"
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


def test_what_a_file_says(gulf):
    draft = read_dpjudge(gulf)
    same(draft.facts, GULF_FACTS)
    aliases = [entry.get("aliases") for entry in draft.facts["provinces"].values()]
    assert [words for words in aliases if words] == [["the cape", "headland"], ["rocks"]]
    assert tomllib.loads(map_file_text(draft.facts, "gulf.map")) == draft.facts
    assert repr(draft.finished()) == "Map('gulf', 2 powers, 7 provinces)"
    convoys, unclear, closed, nobody = draft.notes
    assert "ISL" in convoys and "isle, sea" in unclear and "LAK" in closed and "HILLMEN" in nobody


def test_what_a_dvar_says(write):
    draft = read_dvar(write(dvar()))
    same(draft.facts, DELTA)
    assert tomllib.loads(map_file_text(draft.facts, "delta.dvar.json")) == draft.facts
    assert draft.finished().board.neutral_rebuilds
    (nobody,) = draft.notes
    assert "hillmen" in nobody


def test_the_standard_map_as_a_dvar_is_the_standard_map(write):
    facts = dict(load_map("standard").facts)
    del facts["max_years"]
    draft = read_dvar(write(dvar("classical")))
    same(draft.facts, facts | {"name": "classical"})
    same_boards(draft.finished(), load_map("standard"))


def same_boards(one: Map, other: Map, *but: str) -> None:
    for name, table in other.board._asdict().items():
        if name not in but and hasattr(table, "all"):
            assert (getattr(one.board, name) == table).all(), name


def test_names_of_powers_have_2_to_31_letters(gulf, capsys):
    for name in ("EA", "E" * 31):
        gulf.write_text(GULF.replace("EAST ", f"{name} "))
        assert name in read_dpjudge(gulf).facts["powers"]
    for name in ("E", "E" * 32):
        gulf.write_text(GULF.replace("EAST ", f"{name} "))
        assert f"'{name}'" in refusal("import-map", gulf, capsys=capsys)


@pytest.mark.parametrize(
    ("old", "new", "neutral", "units"),
    [
        ("   ISL MOU", "   MOU\nFISHERS (FISHY) ISL\nDUMMY\nA ISL", "NEUTRAL", ["A HIL", "A ISL"]),
        ("HILL-MEN (HILLY)", f"{'H' * 31} (HILLY)", "H" * 31, ["A HIL"]),
    ],
)
def test_whom_nobody_plays_has_a_name_alone_and_one_that_fits(gulf, old, new, neutral, units):
    gulf.write_text(GULF.replace(old, new))
    facts = read_dpjudge(gulf).facts
    assert facts["neutral"] == neutral and facts["start_units"][neutral] == units


def test_lines_of_mail_and_pictures_are_passed_over(gulf):
    text = GULF.replace("A CAP\n", "A CAP\nFLAG ENGLAND\n")
    gulf.write_text(f"NOTIFY keeper@example.org\nFLAGS standard\nTEXTONLY\n{text}")
    same(read_dpjudge(gulf).facts, GULF_FACTS)


def test_the_command(gulf, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["import-map", "gulf.map"]) == 0
    said = capsys.readouterr().out
    assert "gulf.toml" in said and "7 provinces" in said and "LAK" in said and "builds" not in said
    same(load_map("gulf.toml").facts, GULF_FACTS)
    assert cli.main(["check-map", "gulf.toml"]) == 0
    assert cli.main(["import-map", "gulf.map"]) == 2
    assert "gulf.toml" in capsys.readouterr().err
    assert cli.main(["import-map", "gulf.map", "-o", "gulf.toml"]) == 0
    gulf.write_text(GULF.replace("F NOR", "A NOR"))
    assert cli.main(["import-map", "gulf.map", "-o", "other.toml"]) == 2
    assert "EAST 'A NOR'" in capsys.readouterr().err
    assert not (tmp_path / "other.toml").exists()


@pytest.mark.parametrize("name", ["delta.dvar", "delta.map", "delta.json"])
def test_the_content_decides_not_the_suffix(tmp_path, capsys, name):
    path = tmp_path / name
    path.write_text("\n" + json.dumps(dvar()))
    assert cli.main(["import-map", str(path), "-o", str(tmp_path / "delta.toml")]) == 0
    same(load_map(tmp_path / "delta.toml").facts, DELTA)
    assert "neutral units come back" in capsys.readouterr().out


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
    owned = {"ROC": "EAST", "ISL": "NORTH", "MOU": "NORTH"}
    assert homes == dict.fromkeys(homes) | owned


def test_owned_centers_that_are_not_at_home_are_refused_unless_builds_are_anywhere(gulf):
    text = GULF.replace("F NOR", "OWNS ISL\nF NOR")
    gulf.write_text(text)
    assert read_dpjudge(gulf).facts["provinces"]["ISL"]["home_of"] == "EAST"
    gulf.write_text(text.replace("RULE BUILD_ANY", ""))
    with pytest.raises(UserError, match=r"gulf\.map: line 8: EAST "):
        read_dpjudge(gulf)


# A text of GULF, what stands there instead -> what the error names: a line, a word of it.
REFUSED_LINES = read_table(__file__, "refused_lines")


@pytest.mark.parametrize(("old", "new", "line", "name"), REFUSED_LINES)
def test_refused_lines(gulf, capsys, old, new, line, name):
    assert GULF.count(old) == 1
    gulf.write_text(GULF.replace(old, new))
    said = refusal("import-map", gulf, capsys=capsys)
    assert said.startswith(f"map {gulf}: {line}") and name in said


# A statement about DELTA as a DVAR, `d`, and its provinces by id, `p` -> path and word of the error
REFUSED_FIELDS = read_table(__file__, "refused_fields")


@pytest.mark.parametrize(("change", "where", "name"), REFUSED_FIELDS)
def test_refused_fields(write, capsys, change, where, name):
    d = dvar()
    exec(change, {"d": d, "p": {entry["id"]: entry for entry in d["provinces"]}})
    path = write(d)
    said = refusal("import-map", path, capsys=capsys)
    assert said.startswith(f"map {path}: {where}") and name in said


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "powers: expected"),
        (b"\xff\xfe", "line 1: it is not UTF-8 text"),
        (b"# " + b"x" * 100_000_000, "cannot be read: it is longer than 1,000,000 bytes"),
        (b"A" * 900_000, "line 1: "),
        (b"{}", "schemaVersion: is missing"),
        (b'{\n"id": 3,}', "not JSON: "),
        (b'{"id":' * 100_000, "not JSON: "),
        (b'{"schemaVersion": ' + b"1" * 5000 + b"}", "not JSON: "),
        (b'{"id": "a\x00"}', "line 1: there is a control character in it"),
        (None, "cannot be read: No such file"),
    ],
)
def test_files_that_are_none(tmp_path, capsys, content, reason):
    path = tmp_path / "none.map"
    if content is not None:
        path.write_bytes(content)
    said = refusal("import-map", path, capsys=capsys)
    assert said.startswith(f"map {path}: {reason}") and len(said) < 400


def test_places_of_other_codes_get_three_letters(write):
    text = json.dumps(dvar()).replace('"nor"', '"north-sea-2"').replace('"cap"', '"cape"')
    draft = read_dvar(write(json.loads(text)))
    assert draft.notes[:2] == ["cape is CAP here", "north-sea-2 is NOR here"]
    assert draft.facts["provinces"]["NOR"]["aliases"] == ["north-sea-2"]
    assert draft.finished().aliases["CAPE"] == "CAP"


def test_a_single_named_coast_is_none(write):
    """MOU keeps its coast on the north sea; that on the river is land."""
    content = dvar()
    north, river = content["namedCoasts"]
    content["namedCoasts"] = [north]
    for place in content["provinces"]:
        near = [edge for edge in place["adjacencies"] if edge["to"] != river["id"]]
        place["adjacencies"] = near
    content["initialState"]["units"][2]["location"] = "roc"
    draft = read_dvar(write(content))
    assert "coasts" not in draft.finished().facts["provinces"]["MOU"]
    assert draft.facts["fleet_borders"] == {"CAP": "MOU NOR", "MOU": "NOR", "ROC": "SOU"}
    assert "MOU has only one coast, which has no name here" in draft.notes


def test_colors_of_provinces_are_passed_over(write):
    rule = {"province": "nor", "nation": "east", "dependencies": []}
    same(read_dvar(write(dvar() | {"dominanceRules": [rule]})).facts, DELTA)


# The package's own maps

needs_package = pytest.mark.skipif(not package_maps(), reason="diplomacy is not installed")
# powers, provinces, locations, centers, centers to win, orders, of docs/own_map.md
COUNTS = {name: tuple(sizes) for name, *sizes in read_table(__file__, "sizes_of_package_maps")}


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
    # The order of removals is by the full names, in which spellings differ.
    same_boards(package_map("standard"), load_map("standard"), "removal_rank")
