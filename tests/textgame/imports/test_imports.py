"""Games from elsewhere: the history of a webDiplomacy site, and blocks of order texts."""

import json

import pytest
from support.commands import refusal
from support.pages import blocks, page_text, quoted_lines
from support.tables import read_table, read_text
from support.webdip import history, variant

from diplomacy_engine import Game, UserError, load_map
from diplomacy_engine.commands.cli import main
from diplomacy_engine.play.file import read_session
from diplomacy_engine.replays.replay import load_replays
from diplomacy_engine.textgame.imports.games import read_games, read_pasted
from diplomacy_engine.textgame.imports.headings import HeadingReader
from diplomacy_engine.textgame.saved_game import read_saved_games

STANDARD = load_map("standard")
MAIL = read_text(__file__, "mail.txt")


def played(file, **options):
    """Return the only game of a file, and what was noted."""
    notes = []
    (saved,) = read_games(file, note=notes.append, **options)
    return Game.from_saved_game(saved), notes


def same_phases(one, other):
    for mine, theirs in zip(one, other, strict=True):
        for key in ("name", "results"):
            assert mine[key] == theirs[key]
        for key in ("units", "centers", "retreats", "name"):
            assert mine["state"][key] == theirs["state"][key], (mine["name"], key)


@pytest.mark.parametrize("with_variant", [False, True])
def test_a_history_is_the_game_again(tmp_path, with_variant):
    saved, content = history("long")
    game, file = Game.from_saved_game(saved), tmp_path / "history.json"
    file.write_text(json.dumps(content, indent=1))
    (tmp_path / "variant.json").write_text(json.dumps(variant()))
    more = {"variant": tmp_path / "variant.json"} if with_variant else {}
    found, notes = played(file, **more)
    assert notes == [] and found.id == "5"
    same_phases(found.history, game.history)
    ours, theirs = found.to_state(), game.to_state()
    assert all(ours[key] == theirs[key] for key in theirs if key not in ("influence",))


def test_a_history_with_another_outcome_goes_on_from_it(tmp_path):
    _, data = history("first")  # in which FRANCE has ordered A PAR - BUR
    for unit in data["phases"][-1]["units"]:
        if unit["terrID"] == 48:
            unit["terrID"] = 45  # in Picardy instead of Burgundy
    (tmp_path / "h.json").write_text(json.dumps(data))
    found, notes = played(tmp_path / "h.json")
    assert "A PIC" in found.units["FRANCE"]
    assert notes == ["F1901M differs from our rules' result; the game continues from it"]
    assert found.to_state()["last_orders"]["FRANCE"][-1] == "A PAR - BUR"


@pytest.mark.parametrize(("line", "phase"), read_table(__file__, "names_of_phases"))
def test_names_of_phases(line, phase):
    heading = HeadingReader(STANDARD).read(line)
    assert (heading.phase if heading else "") == phase


@pytest.mark.parametrize(
    ("line", "phases"), read_table(__file__, "phases_of_the_season_named_before")
)
def test_phases_of_the_season_named_before(line, phases):
    before = ("S1901M", "S1901R", "F1901M", "W1901A")
    headings = [HeadingReader(STANDARD, name).read(line) for name in before]
    assert [heading.phase if heading else "" for heading in headings] == phases


@pytest.mark.parametrize(("text", "sentence"), read_table(__file__, "bad_files"))
def test_bad_files(tmp_path, capsys, text, sentence):
    file = tmp_path / "game.txt"
    file.write_text(text)
    output = tmp_path / "out.jsonl"
    line = refusal("import-game", file, "--output", output, capsys=capsys)
    assert sentence in line and str(file) in line and "\x1b" not in line
    assert not output.exists()
    if "this is" in line:
        assert sentence in refusal("import-map", file, "--output", output, capsys=capsys)


def rows(**changes):
    unit = {"countryID": 2, "type": "Army", "terrID": 47, "retreating": False}
    order = {"countryID": 2, "terrID": 47, "unitType": "Army", "type": "Hold"}
    phase = {"turn": 0, "phase": "Diplomacy", "centers": [], "units": [unit], "orders": [order]}
    for key, value in changes.items():
        phase[key] = [phase[key][0] | value] if isinstance(value, dict) else value
    return json.dumps({"file": "history", "phases": [phase]})


@pytest.mark.parametrize(("changes", "sentence"), read_table(__file__, "bad_histories"))
def test_bad_histories(tmp_path, capsys, changes, sentence):
    file = tmp_path / "history.json"
    file.write_text(rows(**changes))
    line = refusal("import-game", file, capsys=capsys)
    assert sentence in line and str(file) in line and "\x1b" not in line


def test_a_variant_that_does_not_fit(tmp_path, capsys):
    file, other = tmp_path / "history.json", tmp_path / "variant.json"
    file.write_text(rows())
    assert "not the site's Classic" in refusal("import-game", file, "--map", "small", capsys=capsys)
    for text, sentence in (
        ("[", "not JSON"),
        ("[]", "variant.json"),
        ("{}", "territories"),
        (json.dumps(variant() | {"countries": []}), "AUSTRIA"),
    ):
        other.write_text(text)
        assert sentence in refusal("import-game", file, "--variant", other, capsys=capsys)
    file.write_text(MAIL)
    assert "is for a history" in refusal("import-game", file, "--variant", other, capsys=capsys)


def test_a_saved_game_is_of_the_map_that_it_names(tmp_path, capsys):
    file = tmp_path / "game.jsonl"
    file.write_text(json.dumps(Game("small").to_saved_game()))
    assert main(["import-game", str(file), "--map", "standard"]) == 0
    assert "on map small:" in capsys.readouterr().out


def test_the_command_writes_what_replay_and_play_read(tmp_path, capsys):
    mail, output = tmp_path / "mail.txt", tmp_path / "game.jsonl"
    mail.write_text(MAIL)
    assert main(["import-game", str(mail), "-o", str(output)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("game 'mail' on map standard: 4 phases from S1901M to S1902M; centers:")
    assert err.count("note: ") == 1
    (saved,) = read_saved_games(output)
    for file in (mail, output):
        (replay,) = load_replays(file)
        assert [frame.scene.phase for frame in replay.frames] == [
            p["name"] for p in saved["phases"]
        ]
        game, play = read_session(file)
        assert game.phase == "S1902M" and play is None


def test_the_published_form_of_saved_games(tmp_path):
    """Messages by time, votes by power, `draw_votes` as an object, and phases without results."""
    game = Game("standard", draw_votes=True)
    game.submit("FRANCE", ["A PAR - BUR"])
    game.send("FRANCE", "ENGLAND", "hello")
    game.vote("FRANCE")
    game.adjudicate()
    saved = game.to_saved_game()
    other = json.loads(json.dumps(saved)) | {"draw_votes": {"FRANCE": True}}
    for phase in other["phases"]:
        del phase["results"]
        phase["messages"] = {str(m["time_sent"]): m for m in phase["messages"]}
        phase["votes"] = {power: "yes" for power in phase.get("votes", ())} | {"ITALY": "no"}
    (tmp_path / "game.json").write_text(json.dumps(other, indent=1))
    again, notes = played(tmp_path / "game.json")
    assert notes == [] and again.rules.draw_votes and again.history[0]["votes"] == ["FRANCE"]
    same = [[phase | {"results": {}} for phase in one.history] for one in (again, game)]
    assert same[0] == same[1] and again.units == game.units


def test_games_of_a_file_are_read_one_by_one(tmp_path):
    game = Game("small")
    lines = [json.dumps(game.to_saved_game() | {"id": str(n)}) for n in range(3)]
    file = tmp_path / "games.jsonl"
    file.write_text("\n".join(lines))
    assert [saved["id"] for saved in read_games(file)] == ["0", "1", "2"]
    file.write_text("[" + ",\n".join(lines) + "]")
    assert [saved["id"] for saved in read_games(file)] == ["0", "1", "2"]


def test_the_example_of_the_page(tmp_path, capsys):
    page = page_text("docs/elsewhere.md")
    orders, units = blocks(page, "text")
    file = tmp_path / "orders.txt"
    file.write_text(orders)
    assert main(["import-game", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out.strip() in quoted_lines(page) and err == ""
    game = Game.from_saved_game(read_pasted(units, STANDARD))
    assert game.phase == "F1902M" and game.centers["GERMANY"] == ["HOL", "KIE", "MUN"]


def test_whatever_a_file_has_can_be_pasted(tmp_path):
    saved, content = history("short")
    game = Game.from_saved_game(saved)
    state = game.to_state()
    for text in (
        json.dumps(state, indent=1),
        json.dumps(game.to_saved_game()),
        json.dumps(content),
        json.dumps([{}, game.to_saved_game()]),
    ):
        found = Game.from_saved_game(read_pasted(text, STANDARD))
        assert found.to_state()["units"] == state["units"] and found.phase == game.phase
    for text in ("{", "[" * 5000):
        with pytest.raises(UserError, match=r"^what was pasted: not JSON: "):
            read_pasted(text, STANDARD)
