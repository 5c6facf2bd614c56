"""Probes: code that computes another policy than the one that was trained is refused, wherever it
was edited and whichever way the policy comes in."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from support.commands import refusal
from support.edits import assert_refused, write
from support.training import load, refused, resume, write_config

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import UserError, VectorGame, load_map, load_player
from diplomacy_engine.constants import Phase
from diplomacy_engine.learning import checkpoints, probes
from diplomacy_engine.learning.boards import BoardInputs
from diplomacy_engine.players.loading import load_members
from diplomacy_engine.players.policy.files import policy_file, ready_policies
from diplomacy_engine.players.population import FOLDERS, read_population

POLICY = "small-pure-1"
SCRIPT = Path(ppo.__file__).name


def louder_in_winter(boards):
    winter = boards.globals[:, [Phase.WINTER_ADJUSTMENTS]]
    return boards._replace(globals=boards.globals + winter)


# What is edited: a class, its method, and what becomes of the value that it returns.
EDITS = {
    "network": (ppo.Agent, "encode", lambda codes: codes._replace(view=codes.view * 1.1)),
    "into nothing": (ppo.Agent, "encode", lambda codes: codes._replace(view=codes.view * np.nan)),
    "boards": (BoardInputs, "__call__", lambda boards: boards._replace(globals=boards.globals + 1)),
    "winter": (BoardInputs, "__call__", louder_in_winter),
    "observation": (
        VectorGame,
        "view_boards",
        lambda views: views._replace(board=np.flip(views.board, 1).copy()),
    ),
    "legal orders": (
        ppo.Agent,
        "legal_orders",
        lambda legal: legal._replace(order=legal.order[::-1].copy()),
    ),
}


def edit_code(patch, edit: str) -> None:
    owner, name, change = EDITS[edit]
    method = getattr(owner, name)
    patch.setattr(owner, name, lambda *args: change(method(*args)))


@pytest.mark.parametrize("edit", EDITS)
def test_a_bundled_policy_is_not_played_by_other_code(edit, monkeypatch, tmp_path, capsys):
    load_player(POLICY)
    edit_code(monkeypatch, edit)
    for name in (POLICY, f"fast(candidates=2 draws=2 profiles=2):{POLICY}"):
        with pytest.raises(UserError, match=SCRIPT):
            load_player(name)
    words = ("evaluate", "--games", "2", "--player", POLICY, "--against", "hold")
    assert SCRIPT in refusal(*words, capsys=capsys)
    argv = ["--config", write_config(tmp_path / "tiny.toml"), "--runs-folder", str(tmp_path / "r")]
    refused([*argv, "--start-from", POLICY], SCRIPT, capsys=capsys)
    assert not (tmp_path / "r").exists()


def test_a_copy_of_the_same_name_is_another_script(imported, tmp_path):
    edits = [
        ("codes.view).squeeze(-1)\n        orders", "codes.view * 2).squeeze(-1)\n        orders")
    ]
    path = write(tmp_path / SCRIPT, *edits)
    assert imported(path)
    with pytest.raises(UserError, match=str(path)):
        load_player(f"{path}:{policy_file(POLICY)}")
    unedited = write(tmp_path / "same" / SCRIPT)
    assert imported(unedited)
    assert load_player(f"{unedited}:{policy_file(POLICY)}").name


def test_its_script_is_named_only_if_that_is_another(trained, monkeypatch):
    """An edit of the package would play it otherwise by any script."""
    run = trained()
    edit_code(monkeypatch, "boards")
    with pytest.raises(UserError, match="diplomacy_engine") as refusal_of_package:
        load_player(run)
    assert "--script" not in str(refusal_of_package.value)


def test_members_of_a_population(monkeypatch):
    population = read_population(FOLDERS / "small")
    members = [member for member in population.members if member.file][:3]
    assert all(member.probe for member in population.members if member.file)
    load_members(population, members, threads=1)
    edit_code(monkeypatch, "network")
    for member in members:
        with pytest.raises(UserError, match=member.name):
            load_members(population, [member], threads=1)


def test_every_bundled_policy_has_a_probe(capsys):
    for name, path in ready_policies().items():
        assert "probe" in checkpoints.read(path), name
        load_player(name)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "stored",
    [
        torch.zeros(3),
        torch.full((24,), torch.nan),
        torch.zeros(24, dtype=torch.int64),
        torch.zeros(24, device="meta"),
        torch.zeros(24).to_sparse(),
        ["x"] * 24,
        "x",
        {},
        None,
    ],
    ids=lambda value: f"{value!s:.30}",
)
def test_a_damaged_probe(stored, tmp_path):
    path = tmp_path / "policy.pt"
    torch.save(checkpoints.read(policy_file(POLICY)) | {"probe": stored}, path)
    with pytest.raises(UserError, match="probe"):
        load_player(path)


def test_a_policy_without_a_probe_is_noted_once(tmp_path, capsys):
    path = tmp_path / "policy.pt"
    saved = dict(checkpoints.read(policy_file(POLICY)))
    del saved["probe"]
    torch.save(saved, path)
    for shown in (True, False):
        load_player(path)
        err = capsys.readouterr().err
        assert (str(path) in err) == bool(err) == shown


@pytest.mark.parametrize("name", ["small", "three", "standard"])
def test_positions_are_of_every_kind_of_phase_and_choices_are_legal(name):
    games, decisions = probes.probe_positions(load_map(name))
    phases = games.state.phase.tolist()
    assert phases[:3] == [Phase.SPRING_MOVEMENT, Phase.FALL_MOVEMENT, Phase.SPRING_MOVEMENT]
    assert phases[3] in (Phase.SPRING_RETREATS, Phase.FALL_RETREATS)
    assert phases[4] == Phase.WINTER_ADJUSTMENTS
    assert set(decisions.game.tolist()) == set(range(5))
    choices = probes.fixed_choices(decisions)
    assert (choices < np.diff(decisions.order_start)).all() and (choices >= 0).all()


def test_an_impossible_order_and_large_values_are_no_difference():
    """Two builds in one province, or an order that a policy masks, have no finite logarithm."""
    stored = torch.tensor([-1.0, 4e4])
    assert probes.difference(stored, torch.tensor([-1.0005, 4e4 + 0.1])) <= probes.TOLERANCE
    assert probes.difference(stored, torch.tensor([-1.005, 4e4])) > probes.TOLERANCE
    stored = checkpoints.read(policy_file("standard-pure-2"))["probe"]
    assert stored.min() == probes.LEAST_LOGPROB
    assert load_player("standard-pure-2").name


@pytest.mark.parametrize("attribute", ["run.agent.scale", "run.average.scale"])
def test_an_attribute_that_training_changes_is_found_when_it_saves(
    attribute, imported, tmp_path, capsys
):
    """It is no weight and no buffer, so a checkpoint would play another policy."""
    value = "value = self.critic(codes.view).squeeze(-1)"
    updated = "    checks.check_learned(run, losses, before, ranks)\n"
    edits = [
        (value, f"{value} * getattr(self, 'scale', 1.0)"),
        (updated, f"{updated}    {attribute} = 0.5\n"),
    ]
    assert_refused(edits, imported, tmp_path, "agent.scale", capsys=capsys, begins=True)


def test_a_run_of_another_version_and_a_damaged_checkpoint(copied, trained, tmp_path, capsys):
    run, newest = copied, copied / "checkpoint.pt"
    steps = load(run)["global_step"]
    other = shutil.copytree(trained(), tmp_path / "other")
    (other / "args.json").write_text('{"wandb_project_name": "x"}')
    torch.save(load(other) | {"run_format": 1}, other / "checkpoint.pt")
    refused(["--resume", str(other)], "another version", capsys=capsys)
    newest.unlink()  # it is the same file as the newest of checkpoints/
    newest.write_bytes(b"damaged")
    copies = sorted((run / "checkpoints").glob("*.pt"))
    copies[-1].unlink()
    message = refused(["--resume", str(run)], str(newest), copies[-2].name, capsys=capsys)
    assert f"cp checkpoints/{copies[-2].name} checkpoint.pt" in message
    shutil.copy(copies[-2], newest)
    assert resume(run) == 0
    assert load(run)["global_step"] == steps


def test_its_own_run_is_not_continued_by_other_code(copied, monkeypatch, capsys):
    edit_code(monkeypatch, "network")
    probes._note.cache_clear()
    refused(["--resume", str(copied), "--total-timesteps", "700"], SCRIPT, capsys=capsys)
