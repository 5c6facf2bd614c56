"""Teams as they are written, and how their games end."""

import pytest
from support.tables import read_table

from diplomacy_engine import Game, UserError, load_map
from diplomacy_engine.constants import RUNNING, TEAM
from diplomacy_engine.rules.teams import read_teams

THREE = ["ENGLAND", "ITALY", "RUSSIA"]
STANDARD = ["AUSTRIA", "ENGLAND", "FRANCE", "GERMANY", "ITALY", "RUSSIA", "TURKEY"]


def test_powers_that_are_not_named_are_alone():
    teams = read_teams(" italy + england ", THREE)
    assert teams.names == ("ITALY+ENGLAND", "RUSSIA") and teams.text == "ITALY+ENGLAND"
    assert teams.of_power.tolist() == [0, 0, 1] and teams.levels == ("team", "power")
    several = read_teams("FRANCE+ENGLAND,AUSTRIA+GERMANY+ITALY+RUSSIA+TURKEY", STANDARD)
    assert several.of_power.tolist() == [0, 1, 1, 0, 0, 0, 0]
    assert several.names == ("AUSTRIA+GERMANY+ITALY+RUSSIA+TURKEY", "FRANCE+ENGLAND")
    assert read_teams(several.text, STANDARD).text == several.text


def test_teams_within_teams():
    teams = read_teams("(ENGLAND+FRANCE)+GERMANY,ITALY+RUSSIA", STANDARD)
    assert teams.levels == ("team", "team2", "power")
    assert [part.tolist() for part in teams.parts] == [
        [0, 0, 0, 0, 0, 0, 0],
        [0, 1, 1, 1, 2, 2, 3],
        [0, 1, 1, 2, 3, 4, 5],
        [0, 1, 2, 3, 4, 5, 6],
    ]


@pytest.mark.parametrize("text", ["ENGLAND,ITALY,RUSSIA", "ITALY", "ENGLAND,(RUSSIA)"])
def test_teams_of_one_power_are_no_teams(text):
    game_map = load_map("three")
    assert game_map.with_teams(text) is game_map


@pytest.mark.parametrize(
    ("text", "reason"), read_table(__file__, "what_is_no_partition_is_refused")
)
def test_what_is_no_partition_is_refused(text, reason):
    with pytest.raises(UserError, match=reason):
        read_teams(text, THREE)


def play_fall(position: str, teams: str, victory: int = 0, max_years: int | None = None) -> Game:
    """Return the game after the fall of a position on `three` in which every unit holds."""
    game_map = load_map("three").with_teams(teams, victory)
    game = Game.from_position(f"three F1901M; {position}", game_map, max_years=max_years)
    game.adjudicate()
    return game


def end_of(game: Game) -> int:
    return int(game.vector_game.state.end[0])


HOMES = "ENGLAND A LON = LON NWY SWE; ITALY A ROM = ROM SPA POR; RUSSIA A MOS = MOS {}"


@pytest.mark.parametrize(
    ("victory", "russia", "winners"),
    read_table(__file__, "a_team_wins_by_its_centers_after_a_fall"),
)
def test_a_team_wins_by_its_centers_after_a_fall(victory, russia, winners):
    game = play_fall(HOMES.format(russia), "ENGLAND+ITALY", victory)
    assert game.winners == winners and end_of(game) == (TEAM if winners else RUNNING)
    again = Game.from_saved_game(game.to_saved_game())
    assert again.winners == winners and not again.is_draw
    assert again.map.teams.text == "ENGLAND+ITALY"
    assert again.map.teams.victory_centers == victory


def test_all_can_be_one_team():
    teams = read_teams("(ENGLAND+ITALY)+RUSSIA", THREE)
    assert teams.names == ("(ENGLAND+ITALY)+RUSSIA",) and teams.levels == ("team", "team2", "power")
    assert [part.tolist() for part in teams.parts] == [[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 2]]


@pytest.mark.parametrize(
    ("teams", "victory", "reason"),
    [("", 5, "needs teams of several powers"), ("ENGLAND+ITALY", 99, "takes 1 to 15 centers")],
)
def test_victories_that_cannot_be(teams, victory, reason):
    with pytest.raises(UserError, match=reason):
        load_map("three").with_teams(teams, victory)
