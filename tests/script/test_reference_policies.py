"""The policies in runs/reference can be played, and are what their folders say."""

import json
import tomllib
from pathlib import Path

import pytest
from support.tables import read_table, slow_but

from benchmarks import evaluate_bundled
from diplomacy_engine import evaluate_player, load_map, load_player, make_bot
from diplomacy_engine.press.negotiators.negotiation import Negotiator

REFERENCE = Path(__file__).parents[2] / "runs" / "reference"
FOLDERS = sorted(path.parent for path in REFERENCE.glob("*/policy.pt"))
OTHERS = sorted(path.parent for path in REFERENCE.glob("other/*/policy.pt"))


def quick_or_slow(folder: Path) -> object:
    """The first seed of each kind is tried each time, the others with the slow tests."""
    marks = [] if folder.name.split("__")[2:] in ([], ["1"]) else pytest.mark.slow
    return pytest.param(folder, marks=marks, id=folder.name)


@pytest.mark.parametrize("folder", [*map(quick_or_slow, FOLDERS + OTHERS)])
def test_it_beats_random_players(folder):
    game_map, kind, *seed = folder.name.split("__")
    args = json.loads((folder / "args.json").read_text())
    seed = "1" if kind == "human" else seed[0]  # of people's games one seed, in two sizes
    assert args["map"] == game_map and str(args["seed"]) == seed
    assert kind != "pure" or not args["pool_bots"]
    curve = "accuracy" if kind == "human" else "eval/dumbbot/win"
    assert folder not in FOLDERS or curve in (folder / "metrics.jsonl").read_text()
    player = load_player(folder, game_map=load_map(game_map))
    games = 14 if game_map == "standard" else 30
    options = {"num_games": games, "seed": 2, "max_years": 10}
    result = evaluate_player(game_map, player, make_bot("random"), **options).result()
    assert result["overall"]["win"]["value"] > 0.8


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_its_evaluations_are_of_a_thousand_games(folder):
    found = sorted(folder.glob("against_*.json"))
    assert {path.stem for path in found} >= {"against_random", "against_dumbbot"}
    for path in found:
        result = json.loads(path.read_text())
        slow = result["against"].startswith(("lookahead", "mcts", "standard-"))
        most = 30 if slow else 1000
        assert result["map"] == folder.name.split("__")[0] and result["games"] >= most
        assert f"against_{result['against']}" == path.stem
        file = f"runs/reference/{folder.name}/policy.pt"
        assert result["player"] in (file, folder.name.replace("__", "-"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "file"), read_table(__file__, "an_evaluation_repeats"))
def test_an_evaluation_repeats(name, file):
    (words, path), *_ = [
        (words, path)
        for _, path, words in evaluate_bundled.evaluations([name], 1.0)
        if path.stem == file
    ]
    before = json.loads(path.read_text())
    result = evaluate_bundled.evaluate(words)
    for part in ("overall", "by_power"):
        assert result[part] == before[part]


def test_the_rows_of_the_results_are_those_of_the_files():
    text = evaluate_bundled.RESULTS.read_text()
    assert evaluate_bundled.with_rows(text) == text


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_policies_have_the_settings_of_their_file(seed):
    """But for how often they were evaluated."""
    settings = tomllib.loads((REFERENCE.parents[1] / "configs/small_dumbbot.toml").read_text())
    args = json.loads((REFERENCE / f"small__dumbbot__{seed}" / "args.json").read_text())
    settings["eval_interval"] = args["eval_interval"]
    assert {name: args[name] for name in settings} == settings


@pytest.mark.parametrize("press", slow_but(["offers"], ["mutual", "offers"]))
def test_a_policy_with_a_voice(press):
    """A negotiator tries deals on what a policy would order, and the policy keeps them."""

    def played(one, games: int, years: int, **rules) -> dict:
        options = {"max_years": years, "threads": 1, "press": press, "press_rounds": 1} | rules
        return evaluate_player("three", one, player, games, **options).result()["press"]

    player = load_player("nash(profiles=8)+three-pure-1")
    assert isinstance(player, Negotiator)
    found = played(player, 6, 8)
    assert (found["broken"], found["kept"]) == (0, 1) and found["offered"] > 0
    if press == "offers":  # both sides try an offer on the same profiles, so none is declined
        assert found["agreed"] > 0 and found["declined"] == 0
    breaker = load_player("breaker(profiles=2)+three-pure-1")
    assert played(breaker, 3, 4, binding=False)["kept_by_player"][1] == 1
