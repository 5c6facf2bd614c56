"""Training as a team: seats, what is paid when, resuming, and that teams of one change nothing."""

import numpy as np
import pytest
from support.self_play import CPU, make_args, make_run, play_phase
from support.training import (
    assert_same_run,
    differences,
    load,
    metrics,
    refused,
    resume,
    stop_in_step,
    train,
    write_config,
)

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine.constants import NONE
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.position import load_state
from diplomacy_engine.learning import checkpoint_state
from diplomacy_engine.learning.ranks import Ranks
from diplomacy_engine.learning.startup import Begun
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.rules.teams import Teams
from ppo_selfplay_diplomacy import Run, assign_seats

TEAM = {
    "map": "three",
    "teams": "ENGLAND+ITALY",
    "reward": "team:sum_of_squares=1,power:center_delta=0.2..0",
    "max_years": 4,
    "warm_up_share": 0.3,
    "opponent_temperature": 2.0,
    "weak_seats": 0.5,
}


def team_run(**changes) -> Run:
    return make_run(**{"map": "three", "learner_seats": 2, "teams": "ENGLAND+ITALY"} | changes)


def seated(run: Run, *learners: bool) -> Run:
    """Seat until the learner has these powers of the first game."""
    while (run.seats.stream[0] != NONE).tolist() != list(learners):
        assign_seats(run, np.zeros(1, np.int64))
    return run


def test_every_team_has_one_player():
    run = team_run(num_envs=300, pool_bots=("hold", "random"), pool_bot_prob=0.6)
    seats, learns = run.seats, run.seats.stream != NONE
    england, italy, _ = seats.member.T
    assert (england == italy).all() and len(np.unique(england)) > 2
    alone = learns[:, 2]
    assert (learns[:, 0] != alone).all() and (learns[:, 1] != alone).all()
    assert 100 < alone.sum() < 200  # each team in about half of the games
    assert (seats.stream[alone, 2] == 2 * np.flatnonzero(alone)).all()
    assert (seats.stream[~alone, 0] == 2 * np.flatnonzero(~alone)).all()
    assert (seats.stream[~alone, 1] == 2 * np.flatnonzero(~alone) + 1).all()
    assert (seats.stream[alone, :2] == NONE).all()


def test_a_dead_members_last_decision_is_paid_at_its_teams_end():
    run = team_run(
        num_envs=1,
        max_years=6,
        reward="sum_of_squares",
        pool_bots=("hold",),
        pool_bot_prob=1.0,
    )
    seated(run, True, True, False)
    games, buffer, seats = run.games, run.buffer, run.seats
    position = "three W1905A; ENGLAND A LON =; ITALY A ROM = ROM SPA; RUSSIA A MOS = MOS"
    load_state(games, Game.from_position(position).to_state())
    play_phase(run)
    assert not games.outcomes().alive[0, 0]
    assert buffer.open.tolist() == [True, False] and buffer.rewards[0, 0] == 0
    # The army of ITALY stays in Rome: 4 of 5 squares belong to the team at the end of 1906.
    for _ in range(2):
        orders = games.new_orders()
        result = games.step(orders)
        ppo.pay_learner(run, result)
    assert buffer.rewards[0, 0] == pytest.approx(4 / 5)
    assert not buffer.open.any() and buffer.ends[0, 0] and buffer.next_values[0, 0] == 0
    assert (seats.stream[0] == [0, 1, NONE]).all()


def test_teams_of_one_power_train_bit_for_bit_as_without():
    """Not only are they no teams: every line that seats and pays teams does the same with them."""
    game_map = load_map("three")
    parts = np.zeros(3, np.int64), np.arange(3)
    alone = game_map.with_teams("ENGLAND+ITALY").with_teams("")
    alone.teams = Teams("each power by itself", tuple(game_map.powers), parts)
    found = []
    for table in (game_map, alone):
        args = make_args(
            map="three",
            num_envs=24,
            num_steps=200,
            max_years=4,
            reward="sum_of_squares=1,lead_delta=0.5..0",
            warm_up_share=0.3,
            weak_seats=0.7,
            opponent_temperature=2.0,
            pool_bots=("dumbbot",),
            pool_bot_prob=0.4,
        )
        run = Run(Begun(ppo.LEARNER_HERE, args, table, CPU), Ranks())
        for _ in range(60):
            play_phase(run)
        found.append(
            [checkpoint_state.pack(part) for part in (run.buffer, run.seats, run.win_share)]
        )
    assert differences(*found) == []


def test_a_team_trains_and_goes_on(tmp_path, monkeypatch):
    whole = train(tmp_path / "whole", **TEAM)
    saved = load(whole)
    assert saved["args"]["teams"] == "ENGLAND+ITALY" and saved["args"]["learner_seats"] == 2
    shown = set().union(*(line.keys() for line in metrics(whole)))
    assert {"selfplay/win_ENGLAND+ITALY", "selfplay/win_RUSSIA"} <= shown
    with monkeypatch.context() as patched:
        stop_in_step(patched, 40)
        stopped = train(tmp_path / "stopped", **TEAM)
    assert resume(stopped) == 0
    assert_same_run(whole, stopped)


def test_all_in_one_team_learn_together_and_are_evaluated_apart(tmp_path):
    """They are all the learner's and paid alike; against the bots each is by itself."""
    together = {"teams": "ENGLAND+ITALY+RUSSIA", "reward": "power:weakest=1,team:center_delta=1"}
    run = team_run(learner_seats=3, num_envs=4, **together)
    assert (run.seats.stream != NONE).all()
    for _ in range(8):
        play_phase(run)
    paid = run.buffer.rewards.sum(0).reshape(4, 3)
    assert (paid == paid[:, :1]).all() and (paid > 0).any()
    folder = train(tmp_path / "runs", map="three", max_years=4, **together)
    shown = set().union(*(line.keys() for line in metrics(folder)))
    assert "eval/random/win_RUSSIA" in shown and "selfplay/win" not in shown
    assert resume(folder) == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--teams", "ENGLAND+ITALY,ITALY+RUSSIA"], "ITALY is named twice"),
        (
            ["--teams", "ENGLAND+ITALY+RUSSIA", "--reward", "sum_of_squares"],
            "all powers are in one: it would pay the same",
        ),
        (["--teams", "ENGLAND+ITALY", "--learner-seats", "1"], "--learner-seats has no effect"),
        (["--team-victory", "8"], "needs teams of several powers"),
        (["--reward", "team:score"], "'team:score' needs teams, but there are none here"),
    ],
)
def test_what_cannot_be(flags, message, tmp_path, capsys):
    config = write_config(tmp_path / "tiny.toml", map="three")
    refused(["--config", config, "--runs-folder", str(tmp_path / "runs"), *flags], message, capsys)
    assert not (tmp_path / "runs").exists()
