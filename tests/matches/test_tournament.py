"""Tournaments: balance of seats, cross tables by hand, order of the bots, the command."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from support.commands import SCRIPT, refusal, write_checkpoint

from diplomacy_engine.commands.cli import main, parse
from diplomacy_engine.games.game import Game
from diplomacy_engine.matches.figures import wilson_interval
from diplomacy_engine.matches.match import MatchSettings
from diplomacy_engine.matches.tables import play_tables
from diplomacy_engine.matches.tournament import balanced_seats, cross_table, play_tournament
from diplomacy_engine.players.bots import make_bot
from diplomacy_engine.scoring.outcomes import FIGURES

LADDER = ("random", "dumbbot", "dumbbot-paquette")  # not in the order of strength


def test_a_small_block_of_seats_by_hand():
    """Three players and two powers: every pair meets, and then with the powers exchanged."""
    seats = balanced_seats(3, 2, 6, np.random.default_rng(0))
    pairs = sorted(map(tuple, seats.tolist()))
    assert pairs == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


@pytest.mark.parametrize("powers", [2, 3, 7])
@pytest.mark.parametrize("players", [2, 3, 5, 9])
@pytest.mark.parametrize("num_games", [9, 63, 100])
def test_seats_are_balanced(players, powers, num_games):
    seats = balanced_seats(players, powers, num_games, np.random.default_rng(num_games))
    assert seats.shape == (num_games, powers)
    counts = (seats[:, :, None] == np.arange(players)).sum(0)  # (P, players)
    assert counts.min() >= 1 and np.ptp(counts, axis=1).max() <= 1
    if num_games % players == 0:
        assert (counts == num_games // players).all()
    at_table = (seats[:, :, None] == np.arange(players)).sum(1)  # (E, players)
    assert np.ptp(at_table, axis=1).max() <= 1
    if players >= powers:
        assert at_table.max() == 1


def test_seats_differ_by_seed_and_repeat():
    one, two, three = (balanced_seats(5, 7, 70, np.random.default_rng(s)) for s in (1, 1, 2))
    assert (one == two).all() and (one != three).any()


def test_cross_table_by_hand():
    seats = np.array([[0, 1, 1], [1, 0, 2], [2, 2, 0]])
    ranks = np.array([[2, 1, 3], [1.5, 1.5, 3], [1, 3, 2]])
    solo = np.array([[0, 1, 0], [0, 0, 0], [1, 0, 0]])
    found = cross_table(seats, ranks, solo, 4)
    assert found["games"].tolist() == [[0, 2, 2, 0], [2, 0, 1, 0], [2, 1, 0, 0], [0] * 4]
    # 0 and 1: one of two pairs of seats in game 0, a tie in game 1. 0 and 2: ahead in game 1,
    # one of two pairs in game 2. 1 and 2: ahead in game 1.
    expected = [[0, 0.5 + 0.5, 1 + 0.5, 0], [0.5 + 0.5, 0, 1, 0], [0.5, 0, 0, 0], [0] * 4]
    assert found["above"].tolist() == expected
    assert found["solos"].tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0] * 4]


def test_tables_are_played_by_those_seated():
    """Whoever plays against `hold` alone takes centers; a batch is its games one after another."""
    players = [make_bot("hold"), make_bot("dumbbot")]
    seats = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]])
    settings = MatchSettings("three", seed=3, max_years=6, threads=1)
    outcomes = play_tables(settings, players, seats).outcomes
    assert (outcomes.centers[seats == 1] > 3).all() and (outcomes.centers[3] == 1).all()


@pytest.fixture(scope="module")
def ladder() -> dict:
    players = [make_bot(name) for name in LADDER]
    return play_tournament("small", players, 90, seed=3, threads=1).result()


def test_a_tournament_orders_the_bots(ladder):
    assert list(ladder["players"]) == ["dumbbot", "dumbbot-paquette", "random"]
    ratings = [found["rating"] for found in ladder["players"].values()]
    values = [rating["value"] for rating in ratings]
    assert values == sorted(values, reverse=True)
    assert ratings[0]["low"] > ratings[-1]["high"]
    for rating in ratings:
        half = 1.96 * max(rating["sigma"], rating["bootstrap"])
        assert rating["high"] - rating["value"] == pytest.approx(half, rel=1e-3)
        assert rating["value"] - rating["low"] == pytest.approx(half, rel=1e-3)


def test_what_a_tournament_returns(ladder):
    json.dumps(ladder, allow_nan=False)
    for found in ladder["players"].values():
        assert found["seats"] == 60  # 90 games of two seats, three players
        assert list(found["by_power"]) == ["ENGLAND", "RUSSIA"]
        assert tuple(found["overall"]) == FIGURES
        means = [part["centers"]["value"] for part in found["by_power"].values()]
        assert found["overall"]["centers"]["value"] == pytest.approx(np.mean(means))
    table = ladder["cross_table"]
    for one, row in table.items():
        for other, pair in row.items():
            assert pair["games"] == table[other][one]["games"] == 30
            both = pair["above"]["value"] + table[other][one]["above"]["value"]
            assert both == pytest.approx(1)
            low, high = wilson_interval(30 * pair["above"]["value"], 30)
            assert (pair["above"]["low"], pair["above"]["high"]) == (low, high)
    assert table["dumbbot"]["random"]["solos"]["value"] > 0.9


def test_the_same_seed_gives_the_same_tournament(ladder):
    players = [make_bot(name) for name in LADDER]
    assert play_tournament("small", players, 90, seed=3, threads=2).result() == ladder
    other = play_tournament("small", players, 90, seed=4, threads=2).result()
    assert other["players"] != ladder["players"]


def test_games_and_seats_of_a_tournament():
    """Saved games name who played what; so does every row, and rows add up to the result."""
    players = [make_bot(name) for name in LADDER]
    options = {"seed": 3, "max_years": 5, "threads": 1}
    report = play_tournament("three", players, 9, samples=4, **options)
    result, saved_games = report.result(per_game=True), report.saved_games
    rows = result["per_game"]
    assert [(row["game"], row["power"]) for row in rows[:4]] == [
        (1, "ENGLAND"), (1, "ITALY"), (1, "RUSSIA"), (2, "ENGLAND")
    ]  # fmt: skip
    assert len(rows) == 27 and list(rows[0])[:3] == ["game", "power", "player"]
    for name, found in result["players"].items():
        mine = [row for row in rows if row["player"] == name]
        assert len(mine) == found["seats"]
        for figure in FIGURES:
            mean = np.mean([row[figure] for row in mine])
            assert mean == pytest.approx(found["overall"][figure]["value"])
    assert [saved["id"] for saved in saved_games] == ["3-0", "3-1", "3-2", "3-3"]
    for number, saved in enumerate(saved_games, 1):
        seated = {row["power"]: row["player"] for row in rows if row["game"] == number}
        assert saved["players"] == seated
        last = Game.from_saved_game(saved, max_years=5)
        centers = {row["power"]: row["centers"] for row in rows if row["game"] == number}
        assert {power: len(owned) for power, owned in last.centers.items()} == centers


@pytest.mark.parametrize(
    ("names", "games", "options", "message"),
    [
        (["hold"], 10, {}, "at least two players"),
        (["hold", "random", "hold"], 10, {}, "'hold' is named twice"),
        (["hold", "random", "chaos"], 2, {}, "3 players needs at least 3 games"),
        (["hold", "random"], 10, {"max_years": 0}, "at least one year"),
        (["hold", "random"], 10, {"year_limit": "never"}, "year_limit must be one of"),
    ],
)
def test_a_tournament_refuses(names, games, options, message):
    with pytest.raises(ValueError, match=message):
        play_tournament("small", [make_bot(name) for name in names], games, **options)


def test_the_command(tmp_path, capsys):
    (tmp_path / "train.py").write_text(SCRIPT)
    path = write_checkpoint(tmp_path / "run" / "checkpoint.pt", tmp_path / "train.py")
    file = tmp_path / "result.json"
    words = f"tournament --players hold {path} random --games 12 --seed 2 --max-years 8 --greedy"
    words += f" --threads 1 --script {tmp_path / 'train.py'} --json {file}"
    assert main(words.split()) == 0
    shown = capsys.readouterr().out
    assert "3 players on map small: 12 games, seed 2; at most 8 years, then a draw; greedy" in shown
    assert "1 run" in shown and "ends above" in shown and str(tmp_path) not in shown
    result = json.loads(file.read_text())
    assert (result["games"], result["greedy"], result["max_years"]) == (12, True, 8)
    assert next(iter(result["players"])) == "run"
    assert not list(tmp_path.glob(".*"))


def test_players_of_one_short_name_are_told_apart(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    for folder in ("a", "b"):
        write_checkpoint(tmp_path / folder / "run" / "checkpoint.pt", tmp_path / "train.py")
    file, games = tmp_path / "result.json", tmp_path / "games.jsonl"
    words = f"tournament --players {tmp_path}/a/run {tmp_path}/b/run --games 2 --max-years 1"
    words += f" --script {tmp_path / 'train.py'} --json {file} --save-games {games}"
    assert main(words.split()) == 0
    assert set(json.loads(file.read_text())["players"]) == {"a/run", "b/run"}
    saved = json.loads(games.read_text().splitlines()[0])
    assert set(saved["players"].values()) == {"a/run", "b/run"}


def test_bad_input_is_one_sentence(tmp_path, capsys):
    def refused(*words):
        return refusal("tournament", "--players", *words, capsys=capsys)

    assert "at least two players" in refused("dumbbot")
    assert "did you mean 'dumbbot'" in refused("hold", "dumbot")
    assert "named twice" in refused("hold", "hold")
    assert "'small-pure-1' is named twice" in refused(
        "small-pure-1", "runs/reference/small__pure__1"
    )
    assert "games" in refused("hold", "random", "--games", "0")
    assert "games" in refused("hold", "random", "--games", "-3")
    assert "at least 2 games" in refused("hold", "random", "--games", "1")
    assert "did you mean 'small'" in refused("hold", "random", "--map", "smal")
    nowhere = tmp_path / "none" / "x.json"
    assert f"no folder {nowhere.parent}" in refused("hold", "random", "--json", nowhere)
    (tmp_path / "train.py").write_text(SCRIPT)
    path = write_checkpoint(tmp_path / "a.pt", tmp_path / "train.py")
    words = ("hold", path, "--map", "three", "--script", tmp_path / "train.py")
    assert "was trained on map 'small', not on 'three'" in refused(*words)
    assert "--players" in refusal("tournament", capsys=capsys)


def test_the_page():
    page = (Path(__file__).parents[2] / "docs" / "tournament.md").read_text()
    line, *others = re.findall("^python -m diplomacy_engine (.*)$", page, re.MULTILINE)
    assert parse(shlex.split(line))[1].players[0] == "dumbbot"
    for other in others:
        parse(shlex.split(other))
