"""Learning from people's games: what is read of them, what is learned, and the command."""

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.tables import read_table
from support.training import STOPPED, load, metrics

from diplomacy_engine import Game, UserError, VectorGame, evaluate_player, load_map, load_player
from diplomacy_engine.games.decisions import order_numbers
from diplomacy_engine.games.draws import phase_seeds
from diplomacy_engine.players.policy.player import PolicyPlayer
from diplomacy_engine.players.search.draws import PolicyDraws
from diplomacy_engine.rules.state import Salt
from diplomacy_learners import imitate

SMALL, EXAMPLES = load_map("small"), dict(read_table(__file__, "people_s_orders"))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Return a file of games of `dumbbot`, whose orders are easy to foretell."""
    games = 30
    bot, path = load_player("dumbbot"), tmp_path_factory.mktemp("games") / "games.jsonl"
    report = evaluate_player("small", bot, bot, games, seed=3, samples=games, threads=1)
    lines = [json.dumps({**g, "id": str(n)}) for n, g in enumerate(report.saved_games)]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("name", ["movement", "builds", "some removals", "all removals"])
def test_what_is_learned_of_people_s_orders_is_golden(name, golden):
    """A unit without a legal order can only hold; builds come in one order, and unused ones are
    waived; removals that are not all given are left out."""
    position, sent = EXAMPLES[name]
    game, counts = Game.from_position(position), Counter()
    for power, texts in sent.items():
        game.submit(power, texts, strict=False)
    experience, lines = imitate.experience_of(game, list(sent), counts), []
    if experience is not None:
        decisions, texts = experience.decisions, game.vector_game.vocabulary.texts
        lines += [f"{game.powers[power]}" for power in decisions.power]
        chosen = order_numbers(decisions, experience.chosen)
        sizes = np.diff(decisions.order_start)
        lines += [f"{texts[order]} of {size}" for order, size in zip(chosen, sizes)]
    golden(f"people {name}", [*lines, dict(counts)])


def test_boards_show_the_last_orders_in_whatever_order_a_file_has_units(file):
    saved, count = json.loads(file.read_text().splitlines()[0]), Counter()
    examples = [imitate.examples_of(saved, SMALL, count)]
    for phase in saved["phases"]:
        units = phase["state"]["units"]
        phase["state"]["units"] = {power: own[::-1] for power, own in reversed(units.items())}
    examples.append(imitate.examples_of(saved, SMALL, count))
    one, other = (part.experience.obs.last_order for part in examples)
    assert np.array_equal(one, other) and (one != -1).any(1).mean() > 0.5


def test_games_are_held_out_by_their_ids(file):
    whole = imitate.read_examples(imitate.Args(games=(str(file),)), SMALL)
    again = imitate.read_examples(imitate.Args(games=(str(file), str(file))), SMALL)
    assert [2 * len(part.share) for part in whole[:2]] == [len(part.share) for part in again[:2]]
    assert whole[2]["games"] == 30 and len(whole[1].share) > 25


def run(file, folder, *flags, status=0):
    words = f"--map small --hidden 16 --num-layers 1 --batch-size 64 --runs-folder {folder}"
    args = imitate.settings.parse_args(imitate.Args, [str(file), *words.split(), *flags])
    assert imitate.main(args) == status
    (path,) = folder.glob("*__imitate__*")
    return path


def test_it_learns_what_a_bot_orders(file, tmp_path, golden):
    path = run(file, tmp_path, "--epochs", "24", "--eval-interval", "40", "--learning-rate", "0.01")
    golden("imitate", map(json.dumps, metrics(path)), rel=0.01)
    first, *_, last = metrics(path)
    assert last["accuracy"] > 0.6 and last["loss"] < first["loss"] < 2
    assert last["accuracy_sets"] <= last["accuracy_alone"] + 0.05
    result = evaluate_player("small", load_player(path / "best.pt"), load_player("random"), 40)
    assert result.result()["overall"]["centers"]["value"] > 3


def test_a_policy_plays_at_its_temperature(tmp_path):
    """Near 0 it mostly gives its likeliest orders, which at 1 are one in six."""
    args, path = imitate.Args(map="small", hidden=16, temperature=0.01), tmp_path / "best.pt"
    path.write_bytes(imitate.Imitation(args, SMALL).content())
    games = VectorGame(SMALL, 30, seed=1)
    decisions = games.decisions()
    cold, sure = load_player(path), load_player(f"greedy:{path}")
    likeliest, draws = sure.act(games, decisions), PolicyDraws(cold)
    seeds = phase_seeds(games, decisions.game, decisions.power, Salt.CANDIDATES, 1)
    drawn = draws.draw(games, decisions, seeds)[0][decisions.slot_decision, 0]
    of_search = drawn[np.arange(len(drawn)), decisions.slot_province]
    for orders in (cold.act(games, decisions), draws.plain(games, decisions), of_search):
        assert (orders == likeliest).mean() > 0.5
    with pytest.raises(UserError, match="policy: temperature"):
        PolicyPlayer(cold.agent, "policy", settings={"temperature": "hot"})


@pytest.fixture
def stopped_in_5(file, tmp_path, monkeypatch):
    """Return a function that begins a run, which a signal stops in its fifth minibatch."""
    learn = imitate.Imitation.learn

    def run_(*flags):
        with monkeypatch.context() as patch:

            def stopping(self, *minibatch):
                learned.append(self.step)
                if self.step == 4:
                    imitate.StopSignals._note(signals[0], 15, None)
                learn(self, *minibatch)

            class Watched(imitate.StopSignals):
                def __enter__(self):
                    signals.append(self)
                    return super().__enter__()

            signals, learned = [], []
            patch.setattr(imitate.Imitation, "learn", stopping)
            patch.setattr(imitate, "StopSignals", Watched)
            stopped = run(file, tmp_path / "stopped", *flags, status=STOPPED)
        assert learned == [*range(5)] and load(stopped)["imitation"]["step"] == 5
        return stopped, imitate.settings.parse_args(imitate.Args, ["--resume", str(stopped)])

    return run_


def test_a_stopped_run_goes_on_bit_for_bit(file, tmp_path, stopped_in_5, monkeypatch):
    flags = "--epochs", "2", "--eval-interval", "9"
    whole = run(file, tmp_path / "whole", *flags)
    stopped, resumed = stopped_in_5(*flags)
    assert imitate.main(replace(resumed, epochs=3)) == 2  # else it would be passed over
    monkeypatch.setattr(imitate, "time", SimpleNamespace(monotonic=lambda: 0.0))
    saved = load(stopped)
    saved["imitation"]["seconds"] = 600.0
    torch.save(saved, stopped / "checkpoint.pt")
    assert imitate.main(resumed) == 0
    *_, last = map(json.loads, (stopped / "metrics.jsonl").read_text().splitlines())
    assert last["minutes"] == 10
    expected, found = load(whole), load(stopped)
    assert found["imitation"]["step"] == expected["imitation"]["step"]
    for name, weight in expected["model"].items():
        assert torch.equal(weight, found["model"][name])


def test_without_lower_loss_it_stops(stopped_in_5):
    """An evaluation that a signal has brought does not count; what has ended stays as it is."""
    path, resumed = stopped_in_5("--learning-rate", "0", "--eval-interval", "2", "--patience", "3")
    for _ in range(2):
        assert imitate.main(resumed) == 0
        lines = map(json.loads, (path / "metrics.jsonl").read_text().splitlines())
        assert [line["global_step"] for line in lines] == [2, 4, 5, 6, 8]


@pytest.mark.parametrize(
    ("games", "name"), [("none.jsonl", "none.jsonl"), ("one.jsonl", "hold out"), (None, "files")]
)
def test_games_that_are_missing_are_named(file, tmp_path, capsys, games, name):
    (tmp_path / "one.jsonl").write_text(file.read_text().splitlines()[0])
    files = () if games is None else (str(tmp_path / games),)
    args = imitate.Args(games=files, map="small", runs_folder=str(tmp_path / "runs"))
    assert imitate.main(args) == 2 and name in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
