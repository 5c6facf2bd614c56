"""The notebooks of examples/: every cell runs, and prints what stands below it; others train."""

import importlib
import importlib.metadata
import json
import re
from types import ModuleType

import pytest
from support.pages import ROOT
from support.tables import slow_but

from diplomacy_engine import UserError

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
QUICK = [path for path in NOTEBOOKS if path.stem != "own_learner"]  # which trains


@pytest.mark.parametrize("path", slow_but(QUICK, NOTEBOOKS), ids=lambda path: path.stem)
def test_it_runs_as_shown(path, monkeypatch, capsys):
    """But for digits where a network computes, which may differ between machines in the last."""
    monkeypatch.chdir(ROOT)
    space: dict = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), space)
            printed = [output["text"] for output in cell["outputs"] if "text" in output]
            shown, found = "".join(map("".join, printed)), capsys.readouterr().out
            if "torch" in space or "load_player" in space:
                shown, found = (re.sub(r"-?\d+", "0", text) for text in (shown, found))
            assert found == shown


def test_they_are_small_and_of_no_machine():
    assert len(NOTEBOOKS) == 3
    for path in NOTEBOOKS:
        text = path.read_text()
        assert len(text) < 250_000 and not re.search(r"/(home|root|tmp|Users|work)/", text)


def example_of(library: str, version: str, name: str, module: str = "") -> ModuleType:
    pytest.importorskip(module or library)
    if importlib.metadata.version(library) != version:
        pytest.skip(f"needs {library} {version}")
    return importlib.import_module(f"examples.{name}")


@pytest.mark.slow  # with a library that is not among those of the tests
def test_torchrl_trains():
    assert example_of("torchrl", "0.14.1", "torchrl_ppo").train(frames=20_000) > 0.6


@pytest.mark.slow  # the same
def test_rllib_trains():
    """The policy grows surer."""
    entropies = example_of("ray", "2.60.0", "rllib_ppo").train(iterations=3)
    assert entropies[-1] < entropies[0]


@pytest.mark.slow  # the same
def test_trl_trains(monkeypatch):
    """Centers rise within 16 steps, a prompt's copies are the trainer's generations, and the loss
    has the probabilities with which they were drawn."""
    example, apart = example_of("trl", "1.16.0", "trl_grpo"), []

    class Watched(example.LegalTrainer):
        def _get_per_token_logps_and_entropies(self, model, tokens, mask, *args, **how):
            result = super()._get_per_token_logps_and_entropies(model, tokens, mask, *args, **how)
            rows = [tuple(ids[real == 1].tolist()) for ids, real in zip(tokens, mask)]
            drawn = [sum(self.positions.replies[row].logprobs) for row in rows]
            apart.append(max(abs(result[0].sum(1).detach().numpy() - drawn)))
            return result

    monkeypatch.setattr(example, "LegalTrainer", Watched)
    centers = example.train(steps=16)
    assert sum(centers[-3:]) > sum(centers[:3]) + 0.3
    assert len(apart) == 16 and max(apart) < 1e-4


@pytest.mark.slow  # the same
def test_openenv_plays_any_seats():
    """A session goes on from step to step; what is not legal is named, and a bot plays the rest."""
    example = example_of("openenv-core", "0.3.0", "openenv_server", "openenv")
    environment = example.DiplomacyEnvironment(map="three", max_years=1)
    seats = environment.game.powers[:2]
    seeds = [environment.game.vector_game.state.seed[0] for _ in range(2) if environment.reset()]
    assert seeds[0] != seeds[1], "else every game would have the same draws"
    position = environment.reset(seed=3, seats=seats)
    assert list(position.legal_orders) == seats
    orders = {p: [texts[0] for texts in position.legal_orders[p].values()] for p in seats}
    orders[seats[0]] = [*orders[seats[0]][1:], "A XXX H"]
    orders["RUSSIA"] = ["A YYY H"]  # is the bot's
    position = environment.step(example.Orders(orders=orders))
    assert ["A YYY H" in position.refused[0], "A XXX H" in position.refused[1]] == [True, True]
    assert len(position.refused) == 2
    with pytest.raises(UserError, match="FRANCE"):
        environment.step(example.Orders(orders={"FRANCE": ["A PAR H"]}))
    with pytest.raises(UserError, match="FRANCE"):
        example.DiplomacyEnvironment(map="three").reset(seats=["FRANCE"])
    assert environment.state.step_count == 1 and position.phase != "S1901M"
    while not position.done:
        position = environment.step(example.Orders(orders={}))
    assert set(position.rewards) == set(seats) and not position.legal_orders
    environment, played = example.DiplomacyEnvironment(map="three", opponent="three-pure-1"), []
    for _ in range(2):
        environment.reset(seed=3, seats=seats)
        played.append([environment.step(example.Orders(orders={})).units for _ in range(8)])
    assert played[0] == played[1], "the seed is of a policy's draws, too"
