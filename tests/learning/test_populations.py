"""Policies of a population: asked together they order what each orders alone; made from runs."""

import json
import shlex
import shutil
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest
import torch
from support.training import main as train_as
from torch import nn

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, VectorGame, load_map, make_bot
from diplomacy_engine.commands.cli import main
from diplomacy_engine.learning import frozen
from diplomacy_engine.learning import populations as pop
from diplomacy_engine.learning.players import policy_player
from diplomacy_engine.learning.settings import parse_args
from diplomacy_engine.players.asking import ask_players
from diplomacy_engine.players.loading import load_members
from diplomacy_engine.players.population import FOLDERS, read_population, read_weights

SHAPES = ({}, {"hidden": 16}, {"num_layers": 1}, {"autoregressive": False})


class Attending(ppo.Agent):
    def __init__(self, game_map):
        super().__init__(game_map, 24, 0)
        self.attention = nn.MultiheadAttention(24, 2, batch_first=True)
        self.sharpness = nn.Parameter(torch.ones(1))

    def encode(self, boards):
        codes = super().encode(boards)
        x = codes.provinces
        return codes._replace(provinces=x + self.attention(self.sharpness * x, x, x)[0])


@lru_cache
def agents(map_name: str) -> list[ppo.Agent]:
    """Return untrained policies, two of each shape."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    settings, game_map = vars(ppo.Args()) | {"hidden": 24}, load_map(map_name)
    helps = ({"cross_support": n % 2 == 0} for n in range(len(SHAPES)))
    found = [ppo.make_agent(settings | s | h, game_map).eval() for s, h in zip(SHAPES, helps)]
    found.append(Attending(game_map))
    found += [frozen.frozen_copy(agent) for agent in found]
    for number, agent in enumerate(found):
        weight = agent.score.weight.detach()  # so that they prefer something, and not the same
        agent.score.weight.data = 30 * weight.roll(number, 1)
    return found


def policies(map_name: str, greedy: tuple[int, ...] = ()) -> list:
    """Return these policies as players, which belong to no group yet; some may be greedy, the third
    plays at another temperature, and the second and fourth kind help no other power."""
    players = [
        policy_player(agent, f"p{n}", n in greedy) for n, agent in enumerate(agents(map_name))
    ]
    players[2].temperature = np.float32(0.2)
    return players


@pytest.mark.parametrize(
    "map_name, greedy, threads",
    [("small", tuple(range(10)), 1), ("three", (), 3), ("small", (1, 4), 3)],
)
def test_a_group_orders_what_its_players_order_alone(map_name, greedy, threads):
    """Also where some are greedy and some draw, or have layers of their own."""
    game_map, rng = load_map(map_name), np.random.default_rng(2)
    players = [*policies(map_name, greedy), make_bot("random")]
    alone = [*policies(map_name, greedy), make_bot("random")]
    pop.PolicyGroup(players[:-1], threads)
    games = VectorGame(game_map, 40, seed=3, max_years=6, threads=1, auto_reset=False)
    seats = rng.integers(len(players), size=(40, len(game_map.powers)))
    seats[:15] = 3  # one player with many seats, also with several in one game
    for _ in range(5):
        decisions = games.decisions()
        who = seats[decisions.game, decisions.power]
        orders = ask_players(games, decisions, players, who)
        assert np.array_equal(orders, ask_players(games, decisions, alone, who))
        games.step(orders)


@pytest.fixture(scope="module")
def population(trained, tmp_path_factory):
    made = tmp_path_factory.mktemp("population") / "small"
    words = ["population", "make", "--map", "small", "--runs", str(trained())]
    words += ["--output", str(made), "--copies", "3", "--games", "24", "--threads", "1"]
    assert main(words) == 0
    return made


@pytest.mark.slow
def test_making_a_population(population):
    found = read_population(population)
    policies = [member for member in found.members if member.file]
    assert len(policies) == 3 and len(found.members) == 8 and found.games == 24
    assert {member.file for member in policies} == {p.name for p in population.glob("*.npz")}
    ages = sorted({member.decisions for member in policies})
    assert ages[0] >= 100 and 600 <= ages[-1] < 700 and len(ages) == 3
    for member in policies:
        assert member.settings["hidden"] == 16 and member.settings["reward"] == "score"
        assert "--hidden 16" in member.command and "--exp-name" not in member.command
    assert found.met.sum() == 2 * 24 and (found.met == found.met.T).all()


def test_the_command_of_a_run_trains_the_same(population):
    member = next(m for m in read_population(population).members if m.file)
    words = shlex.split(member.command)
    assert words[0] == "ppo_selfplay_diplomacy.py"
    args = parse_args(ppo.Args, words[1:])
    assert {name: getattr(args, name) for name in member.settings} == member.settings
    assert member.settings.keys() == {*ppo.LEARNER_SPEC.network_setting_names, *pop.KEPT} - {
        "temperature"
    }
    other = vars(ppo.Args()) | {"map": "small", "resume": "/x/runs/x", "scheme": "central"}
    command = pop.command_of(other, "baselines.py")
    assert command.startswith("-m diplomacy_learners.baselines --map small") and "/x" not in command
    assert "--scheme central" in command


def test_what_no_script_has_trained_has_no_command(trained, tmp_path):
    run = shutil.copytree(trained(), tmp_path / "run")
    script = run / "ppo_selfplay_diplomacy.py"
    assert pop.policies_of_run(run, 1)[0].command.startswith(script.name)
    script.rename(run / "distill.py")
    assert pop.policies_of_run(run, 1)[0].command == ""


def test_a_run_whose_pool_cannot_be(trained, tmp_path):
    run = shutil.copytree(trained(), tmp_path / "run")
    saved = torch.load(run / "checkpoint.pt", weights_only=True)
    assert len(pop.policies_of_run(run, 3)) == 3
    copies = saved["copies"]
    decisions = max(copies)
    assert decisions in [policy.decisions for policy in pop.policies_of_run(run, 1000)]
    copies[decisions] |= {"score.weight": torch.zeros(1, 3)}
    torch.save(saved, run / "checkpoint.pt")
    with pytest.raises(UserError, match=r"the shape of score\.weight"):
        pop.policies_of_run(run, 3)


def test_a_population_is_replaced_as_a_whole(population, trained, tmp_path, monkeypatch):
    made, run = tmp_path / "made", trained()
    shutil.copytree(population, made)
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    words = ["population", "make", "--map", "small", "--runs", str(run), "--output", str(made)]
    words += ["--copies", "1", "--games", "20", "--threads", "1"]
    with monkeypatch.context() as patch:
        patch.setattr("diplomacy_engine.matches.population.rate_members", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main(words)
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before
    assert main(words) == 0
    (policy,) = [member for member in read_population(made).members if member.file]
    assert {path.name for path in made.iterdir()} == {"population.json", policy.file}
    assert not list(tmp_path.glob(".made-*"))


def test_a_run_joins_a_population(population, trained, tmp_path, capsys):
    """It is rated where it stands; the others' ratings and games stay; nobody joins twice. It plays
    at its own temperature."""
    made, run = tmp_path / "made", tmp_path / "other__run"
    shutil.copytree(population, made)
    shutil.copytree(trained(), run)
    saved = torch.load(run / "checkpoint.pt", weights_only=True)
    torch.save(saved | {"args": saved["args"] | {"temperature": 0.5}}, run / "checkpoint.pt")
    before, other = read_population(made), ["--games", "40", "--threads", "1"]
    words = ["population", "add", str(run), "--population", str(made), *other]
    assert main(words) == 0
    after = read_population(made)
    (new,) = {m.name for m in after.members} - {m.name for m in before.members}
    shown = capsys.readouterr().out
    assert new.startswith("other__run-6") and new in shown and "of 9" in shown
    assert [m.rating for m in after.members if m.name != new] == [*before.ratings]
    assert (np.diff(after.ratings) <= 0).all() and after.member(new).sigma > 0
    members = load_members(after)
    temperatures = {p.name: p.temperature for p in members if hasattr(p, "temperature")}
    assert temperatures.pop(new) == 0.5 and set(temperatures.values()) == {1.0}
    place = [m.name for m in after.members].index(new)
    rest = np.delete(np.arange(9), place)
    assert (after.met[np.ix_(rest, rest)] == before.met).all()
    assert after.met[place].sum() == 40 and (after.met == after.met.T).all()
    assert np.allclose(after.above + after.above.T, after.met, atol=0.02)
    weights = read_weights(after, after.member(new))
    assert set(weights) == set(pop.policies_of_run(run, 1)[0].weights)
    assert main(words) == 2 and new in capsys.readouterr().err
    assert read_population(made).members == after.members
    words = ["population", "add", str(run), "--population", str(FOLDERS / "three"), *other]
    assert main(words) == 2 and "population.json: map: " in capsys.readouterr().err


@pytest.mark.slow
def test_a_recipe_trains_what_is_missing(tmp_path, monkeypatch):
    recipe = tmp_path / "runs.toml"
    tiny = "--num-envs 8 --num-steps 8 --hidden 16 --num-minibatches 2 --processes 1"
    tiny += " --eval-games 2 --capture-games 0 --pool-size 3"
    recipe.write_text(
        f"copies.small = 2\nflags_on.small = '{tiny}'\nflags_on.three = '--no-such-flag'\n"
        "[[runs]]\nname = 'one'\nshare = 9\nshare_on.small = 1\n"
        "flags_on.small = '--num-layers 1'\n"
        "[[runs]]\nname = 'none'\nshare_on.small = 0\n"
        "[[runs]]\nname = 'two'\nshare = 0.5\nflags = '--pool-size 1'\n"
    )
    started, run_program = [], subprocess.run

    def run(words, **settings):
        if words[0] != sys.executable:  # git, asked for the commit of a report
            return run_program(words, **settings)
        started.append(words)
        assert train_as(words[3:]) == 0

    monkeypatch.setattr("diplomacy_engine.commands.population.subprocess.run", run)
    words = ["population", "make", "--map", "small", "--recipe", str(recipe)]
    words += ["--decisions", "400", "--runs-folder", str(tmp_path / "runs")]
    words += ["--output", str(tmp_path / "made"), "--games", "12"]
    assert main(words) == 0 and len(started) == 2
    assert main(words) == 0 and len(started) == 2
    assert "--num-layers" in started[0] and "--num-layers" not in started[1]
    assert started[1][-started[1][::-1].index("--pool-size")] == "1"  # a run's own flags prevail
    names = [m.name for m in read_population(tmp_path / "made").members if m.file]
    assert {name.partition("-")[0] for name in names} == {"one", "two"}
    assert sum(name.startswith("one-") for name in names) == 2
    assert json.loads((tmp_path / "made" / "population.json").read_text())["games"] == 12
    assert FOLDERS.name == "population"
