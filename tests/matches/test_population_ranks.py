"""Ranks in a base population: seats, ratings, and the checks of known strength."""

import json
import shutil

import numpy as np
import pytest
from support.commands import refusal
from support.populations import write_population
from support.tables import read_table

from diplomacy_engine.commands.cli import main
from diplomacy_engine.errors import UserError
from diplomacy_engine.matches.population import (
    PopulationRank,
    candidate_seats,
    rank_after_games,
    rank_player,
    read_ranks,
)
from diplomacy_engine.matches.population_page import population_page
from diplomacy_engine.matches.ratings import DEVIATION
from diplomacy_engine.players.loading import load_members
from diplomacy_engine.players.policy.files import ready_policies
from diplomacy_engine.players.population import FOLDERS, read_population


@pytest.mark.parametrize("members, powers, games", [(6, 7, 70), (11, 3, 900), (103, 2, 400)])
def test_seats_of_a_candidate(members, powers, games):
    seats = candidate_seats(members, powers, games, np.random.default_rng(1))
    assert seats.shape == (games, powers)
    # The player has one seat, each power equally often; nobody sits twice at a table.
    assert ((seats == 0).sum(1) == 1).all() and (np.diff((seats == 0).sum(0)) == 0).all()
    assert all(len(set(row)) == powers for row in seats.tolist())
    counts = np.bincount(seats.ravel(), minlength=members + 1)[1:]
    assert counts.max() - counts.min() <= powers  # whole rotations
    # In all rotations of a table everybody has each power once.
    for first in range(0, games, powers):
        table = seats[first : first + powers]
        assert all(len(set(table[table == who].tolist())) == 1 for who in set(table[0].tolist()))
        assert all(sorted(np.argwhere(table == who)[:, 1]) == [*range(powers)] for who in table[0])


def simulated(strengths, seats, rng):
    """Return ranks drawn by the model: the highest of strength and Gumbel noise comes first."""
    spread = DEVIATION / 2 * np.sqrt(seats.shape[1])
    drawn = np.asarray(strengths)[seats] / spread + rng.gumbel(size=seats.shape)
    return (-drawn).argsort(1).argsort(1) + 1.0


def test_a_standing_covers_the_truth():
    """The interval of a simulated player has its strength nearly always."""
    rng = np.random.default_rng(5)
    ratings = np.linspace(40, 10, 30)
    hits = 0
    for _ in range(20):
        seats = candidate_seats(30, 3, 150, rng)
        stands = rank_after_games(ratings, seats, simulated([28, *ratings], seats, rng), rng)
        hits += stands.low < 28 < stands.high
        assert stands.best <= stands.rank <= stands.worst and stands.of == 31
        assert 0.4 < stands.share < 0.8
    assert hits >= 16


@pytest.fixture(scope="module")
def small():
    return read_population(FOLDERS / "small")


@pytest.mark.slow
def test_members_rank_as_themselves(small):
    """The interval has their own rating; the best beats DumbBot, which beats `random`."""
    population, members = small, load_members(small, threads=1)
    names = [member.name for member in population.members]
    hits, found = 0, []
    for number in (0, names.index("dumbbot"), names.index("random")):
        stands = rank_player(population, members[number], members, 400, seed=number, threads=1)
        own = population.members[number]
        hits += stands.low - 2 * own.sigma < own.rating < stands.high + 2 * own.sigma
        assert abs(stands.value - own.rating) < 6
        assert stands.best - 4 <= 1 + number <= stands.worst + 4 and stands.games == 400
        found.append(stands)
    assert hits >= 2
    assert found[0].rank < found[1].rank < found[2].rank
    assert found[0].share > found[1].share > found[2].share
    dumbbot = members[names.index("dumbbot")]
    first, second = (
        rank_player(population, dumbbot, members, 60, seed=7, threads=threads) for threads in (1, 2)
    )
    assert first == second


@pytest.fixture
def few(tmp_path):
    """A population of some members of the base population, which take a second to load."""
    members = enumerate(read_population(FOLDERS / "small").members)
    kept = [n for n, one in members if n % 9 == 0 or one.name == "dumbbot"]
    write_population(tmp_path / "few", kept)
    return tmp_path / "few"


def test_the_commands(few, tmp_path, capsys):
    out = tmp_path / "rank.json"
    words = ["population", "rank", "--population", str(few), "--player", "dumbbot", "random"]
    words += ["--games", "40", "--json"]
    assert main([*words, str(out)]) == 0
    shown = capsys.readouterr().out
    assert "mean rank of these 2" in shown and "population share" in shown
    found = json.loads(out.read_text())["players"]
    assert found["dumbbot"]["rank"] < found["random"]["rank"] <= found["random"]["of"]
    assert json.loads(out.read_text())["population"] == str(few)
    page = tmp_path / "page.html"
    words = ["population", "show", "--population", few, "--output", page, "--ranks", out]
    assert main([*map(str, words)]) == 0
    assert f"13 members of {few}, and 2 other players" in capsys.readouterr().out
    text = page.read_text()
    assert text.count("<svg") == 1 and text.count("<tr class=") == 15
    # Ratings in one population say nothing in another; who moves a population keeps its ranks.
    words = ["population", "show", "--population", tmp_path, "--output", page]
    shutil.copy(FOLDERS / "small" / "population.json", tmp_path)
    (tmp_path / "of").mkdir()
    shutil.move(out, tmp_path / "of")
    ranks = tmp_path / "of" / "rank.json"
    assert f"not in '{tmp_path}'" in refusal(*words, "--ranks", ranks, capsys=capsys)
    shutil.copy(ranks, tmp_path / "ranks.json")
    assert main([*map(str, words)]) == 0


@pytest.mark.slow
def test_ranks_of_a_team(capsys, tmp_path):
    """A seat is a team's; with all powers in one team there is nobody to rank against."""
    out = tmp_path / "rank.json"
    words = "population rank --map three --player dumbbot --games 20 --teams ENGLAND+ITALY"
    assert main([*words.split(), "--json", str(out)]) == 0
    assert "teams ENGLAND+ITALY" in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert found["teams"] == "ENGLAND+ITALY" and found["players"]["dumbbot"]["games"] == 20
    alone = "population rank --map three --player dumbbot --games 21"
    assert main([*alone.split(), "--json", str(out)]) == 0  # whole rotations of three
    assert json.loads(out.read_text())["players"]["dumbbot"]["games"] == 21
    capsys.readouterr()
    assert "--teams" in refusal(*words.split(), "--teams", "ENGLAND+ITALY+RUSSIA", capsys=capsys)


def test_a_page_runs_no_code_but_its_own(small, tmp_path):
    import dataclasses

    population = small
    *members, last = (member for member in population.members if member.file)
    evil = dataclasses.replace(last, scheme="<script>x</script>", command="<b>")
    changed = dataclasses.replace(population, members=(*members, evil))
    text = population_page(changed)
    assert text.count("<script") == 1 and "<b>" not in text and "&lt;script&gt;" in text
    assert "default-src 'none'" in text and "://" not in text.replace("http://www.w3.org", "")
    ranks = tmp_path / "ranks.json"
    sound = dict.fromkeys(PopulationRank.__struct_fields__, 1)
    own = {"map": "small", "population": "runs/population/small"}
    for bad, name in (
        ([], "object"),
        ({"players": {"x": {}}}, "players[...].value"),
        ({"map": "three", "players": {"x": sound}}, "'three', not of map 'small'"),
        ({"teams": "ENGLAND+ITALY", "players": {"x": sound}}, "teams ENGLAND+ITALY"),
        ({"population": "mine", "players": {"x": sound}}, "'mine', not in 'runs/population/small'"),
        ({"players": {"": sound}}, "players: key"),
        ({"players": {"x": sound | {"value": "<b>"}}}, "value"),
        ({"players": {"x": sound | {"low": float("nan")}}}, "low"),
    ):
        ranks.write_text(json.dumps(own | bad if isinstance(bad, dict) else bad))
        with pytest.raises(UserError) as error:
            read_ranks(ranks, population)
        assert name in str(error.value) and "ranks.json" in str(error.value)
    ranks.write_text(json.dumps(own | {"players": {"<b>": sound, "dumbbot-paquette": sound}}))
    text = population_page(population, read_ranks(ranks, population))
    # What a run's short name, or a person's, would be as a player is not known.
    assert "<b>" not in text and text.count("As a player:") == len(population.members) + 1


@pytest.mark.slow
def test_the_page_sorts_and_finds(tmp_path, open_page):
    """On a phone it is as wide as that; without a request to anybody."""
    page = tmp_path / "page.html"
    assert main(["population", "show", "--map", "small", "--output", str(page)]) == 0
    shown = open_page(page.as_uri(), viewport={"width": 390, "height": 844})
    asked = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.reload()
    assert shown.evaluate("document.documentElement.scrollWidth") == 390
    shown.set_viewport_size({"width": 1280, "height": 800})
    text = page.read_text()
    for policy in ready_policies():
        assert (f"<summary>{policy} " in text) == policy.startswith("small-")
    rows = shown.locator("tbody tr:visible")
    assert rows.count() == 116 and not shown.locator("code:visible").count()
    shown.click("th button:has-text('rating')")  # so far the best came first
    assert "hold" in rows.first.inner_text()
    shown.click("th button:has-text('decisions')")
    assert "small-pure-" in rows.first.inner_text()
    shown.fill("input", "INCLUDED equil")
    assert rows.count() == 3 and "small-equilibrium-" in rows.nth(2).inner_text()
    rows.first.locator("summary").click()
    assert "As a player: small-equilibrium-" in rows.first.inner_text()
    assert asked == [page.as_uri()]


@pytest.mark.slow
def test_a_bots_games_rated_as_a_persons(tmp_path, small, capsys):
    """Saved games of a bot, whose players are members, give about the bot's own rating."""
    population = small
    files = [member for member in population.members if member.file]
    chosen = [files[len(files) // 3], files[2 * len(files) // 3]]
    games = tmp_path / "games.jsonl"
    against = [str(FOLDERS / "small" / member.file) for member in chosen]
    words = ["tournament", "--map", "small", "--games", "45", "--players", "dumbbot", *against]
    assert main([*words, "--save-games", str(games), "--save-count", "45", "--threads", "1"]) == 0
    out = tmp_path / "rank.json"
    words = ["population", "rank", "--saved-games", str(games), "--json", str(out), "--as"]
    assert main([*words, "dumbbot"]) == 0
    assert "provisional" not in capsys.readouterr().out
    found = json.loads(out.read_text())["players"]["dumbbot"]
    own = population.member("dumbbot")
    assert found["games"] == 30
    assert abs(found["value"] - own.rating) < 2 * (found["high"] - found["value"]) + 3
    # The games in which it was ENGLAND alone.
    assert main([*words, "ENGLAND"]) == 0
    few = "\n".join(games.read_text().splitlines()[:10])
    games.write_text(few)
    assert main([*words, "dumbbot"]) == 0
    assert "provisional" in capsys.readouterr().out


def test_refusals(tmp_path, capsys):
    recipe, made = tmp_path / "runs.toml", tmp_path / "made"
    make = ("population", "make", "--map", "small", "--recipe", recipe, "--output", made)
    for text, name in read_table(__file__, "refusals_of_ranks"):
        recipe.write_text(text)
        assert f"{recipe}: {name}: " in refusal(*make, capsys=capsys)
    assert not made.exists()
    games = tmp_path / "games.jsonl"
    words = ["tournament", "--players", "hold", "random", "--games", "2", "--save-games", games]
    assert main([str(word) for word in words]) == 0
    capsys.readouterr()
    rank = ("population", "rank", "--saved-games", games, "--as", "nobody")
    assert "nobody" in refusal(*rank, capsys=capsys)
    twice = ("population", "rank", "--saved-games", games, games, "--as", "hold")
    assert "game '1-0' is there twice" in refusal(*twice, capsys=capsys)
    with pytest.raises(UserError, match="6 members"):
        candidate_seats(5, 7, 7, np.random.default_rng(1))
