"""Maps of other programs: what `.map` files and DVARs say, and what is refused, with its place."""

import json
from pathlib import Path

import pytest
from support.commands import refusal
from support.diplomacy_package import package_maps
from support.tables import read_table

from diplomacy_engine import Game, Map, load_map
from diplomacy_engine.extras.maps.dpjudge import read_dpjudge
from diplomacy_engine.extras.maps.dvar import read_dvar

FILES = Path(__file__).parent / "files"
# Two powers and a third one that nobody plays; an island where fleets convoy, a split coast, a lake
# that nobody may enter, and borders for armies only (cap - hil) and for fleets only (Isl).
GULF = (FILES / "gulf.map").read_text()


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


def test_the_standard_map_as_a_dvar_is_the_standard_map(write):
    found, standard = read_dvar(write(dvar("classical"))).finished(), load_map("standard")
    same_boards(found, standard)
    for name in ("powers", "provinces", "locations", "province_names"):
        assert getattr(found, name) == getattr(standard, name)
    assert Game(found).to_state()["units"] == Game("standard").to_state()["units"]


def same_boards(one: Map, other: Map, *but: str) -> None:
    for name, table in other.board._asdict().items():
        if name not in but and hasattr(table, "all"):
            assert (getattr(one.board, name) == table).all(), name


# A text of GULF, what stands there instead -> what the error names: a line, a word of it.
REFUSED_LINES = read_table(__file__, "refused_lines")


@pytest.mark.parametrize(("old", "new", "line", "name"), REFUSED_LINES)
def test_refused_lines(gulf, capsys, old, new, line, name):
    assert GULF.count(old) == 1
    gulf.write_text(GULF.replace(old, new))
    said = refusal("import-map", gulf, capsys=capsys)
    assert said.startswith(f"map {gulf}: {line}") and name in said


# A statement about a DVAR, `d`, and its provinces by id, `p` -> path and word of the error
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
