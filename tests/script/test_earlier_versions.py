"""What version 0.1 wrote is still played, evaluated, begun with, read and replayed."""

import json
import shutil
from pathlib import Path

import pytest
from support.training import REPOSITORY, files, load, refused, train

from diplomacy_engine import Game, VectorGame, load_player
from diplomacy_engine.commands.cli import main
from diplomacy_engine.games.saved_game import read_saved_games
from diplomacy_engine.learning import registry

PLAIN = "ppo_selfplay_diplomacy.py"
EARLIER = Path(__file__).parent / "version_0_1"


def test_a_checkpoint_plays_as_it_did(tmp_path, capsys):
    """The same draws, bit for bit, as of version 0.2; and figures such as version 0.1 measured."""
    player, games = load_player(EARLIER / "run", seed=3), VectorGame("small", 5, seed=1, threads=1)
    drawn = []
    for _ in range(12):
        decisions = games.decisions()
        numbers = player.act(games, decisions)
        drawn.append(int(numbers.sum()))
        orders = games.new_orders()
        games.write_orders(orders, decisions, numbers)
        games.step(orders)
    assert drawn == [1894, 2921, 1734, 1817, 2293, 2062, 2681, 2099, 1760, 3040, 3295, 1807]
    words = f"evaluate --map small --player {EARLIER / 'run'} --against random --games 20 --seed 5"
    assert main([*words.split(), "--threads", "1", "--json", str(tmp_path / "result.json")]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    expected = json.loads((EARLIER / "evaluate.json").read_text())
    for name in ("games", "seed", "max_years", "year_limit", "greedy"):
        assert result[name] == expected[name]
    for name in ("solo", "win"):
        before = expected["overall"][name]
        assert before["low"] <= result["overall"][name]["value"] <= before["high"]


def test_its_script_is_known():
    assert registry.header(EARLIER / "run" / "checkpoint.pt")["script_name"] == PLAIN


def test_a_run_goes_on_with_its_own_version_only(tmp_path, capsys):
    """Seats and streams are stored otherwise now; the sentence says what can be done instead."""
    run = Path(shutil.copytree(EARLIER / "run", tmp_path / "run"))
    before = files(run)
    message = (
        r"version 0\.1 .*its format is 1, this version's is 3\).*--start-from can begin with it"
    )
    refused(["--resume", str(run)], message, capsys)
    assert {name: before[name] for name in before} == {n: files(run)[n] for n in before}


def test_a_run_begins_with_its_policy(tmp_path):
    changes = {"hidden": 8, "num_layers": 1, "total_timesteps": 60, "eval_games": 2}
    new = train(tmp_path / "runs", "--start-from", str(EARLIER / "run"), **changes)
    model, before = load(new)["model"], load(EARLIER / "run")["model"]
    assert model.keys() == before.keys()
    assert max(float((model[name] - before[name]).abs().max()) for name in model) < 0.1


def known(phases):
    """Return phases without what is written in another way since: the hash of the position."""
    phases = json.loads(json.dumps(phases))
    for phase in phases:
        del phase["state"]["zobrist_hash"]
    return phases


def test_a_saved_game_is_played_on_and_replayed(tmp_path, capsys):
    (saved,) = read_saved_games(EARLIER / "games.jsonl")
    game = Game.from_saved_game(saved)
    assert known(game.to_saved_game()["phases"]) == known(saved["phases"])
    again = Game("three")
    for phase in saved["phases"][:-1]:
        assert again.phase == phase["name"]
        for power, orders in phase["orders"].items():
            again.submit(power, orders or [], strict=False)
        assert again.adjudicate() == phase["results"]
    page = tmp_path / "page.html"
    assert main(["replay", str(EARLIER / "games.jsonl"), "--output", str(page)]) == 0
    assert page.stat().st_size > 10_000


@pytest.mark.parametrize("name", ["small__pure__1", "three__pure__2", "standard__pure__3"])
def test_the_reference_policies_are_its_as_well(name):
    """They were trained by version 0.1, too."""
    folder = REPOSITORY / "runs" / "reference" / name
    assert registry.header(folder / "policy.pt")["script_name"] == PLAIN
    assert load_player(folder).agent.vocabulary_hash
