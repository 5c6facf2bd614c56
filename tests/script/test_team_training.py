"""Training as a team: seats, what is paid when, resuming, and that teams of one change nothing."""

import numpy as np
import pytest
from support.self_play import CPU, make_args, play_phase
from support.training import (
    assert_same_run,
    load,
    metrics,
    refused,
    resume,
    stop_in_step,
    train,
    write_config,
)

from diplomacy_engine.constants import NONE
from diplomacy_engine.games.game import Game
from diplomacy_engine.games.position import load_state
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.rules.teams import Teams
from diplomacy_engine.selfplay import LEARNER
from ppo_selfplay_diplomacy import Run

TEAM = {
    "map": "three",
    "teams": "ENGLAND+ITALY",
    "reward_mix": "team:sum_of_squares=1,power:center_delta=0.2..0",
    "max_years": 4,
    "warm_up_share": 0.3,
    "warm_up_phases": 2,
    "opponent_temperature": 2.0,
    "weak_seats": 0.5,
}


def team_run(**changes) -> Run:
    args = make_args(**{"map": "three", "learner_seats": 2} | changes)
    return Run(args, load_map("three").with_teams("ENGLAND+ITALY"), CPU)


def test_every_team_has_one_player():
    run = team_run(num_envs=300, pool_bots=("hold", "random"), pool_bot_prob=0.6)
    seats = run.self_play.seating.seats
    england, italy, _ = seats.member.T
    assert (england == italy).all() and len(np.unique(england)) > 2
    alone = seats.learns[:, 2]
    assert (seats.learns[:, 0] != alone).all() and (seats.learns[:, 1] != alone).all()
    assert 100 < alone.sum() < 200  # each team in about half of the games
    assert (seats.stream[alone, 2] == 2 * np.flatnonzero(alone)).all()
    assert (seats.stream[~alone, 0] == 2 * np.flatnonzero(~alone)).all()
    assert (seats.stream[~alone, 1] == 2 * np.flatnonzero(~alone) + 1).all()
    assert (seats.stream[alone, :2] == NONE).all()


def test_the_learner_can_have_one_team_in_every_game():
    run = team_run(num_envs=50, learner_powers=("ITALY", "ENGLAND"))
    assert run.self_play.seating.seats.learns.tolist() == [[True, True, False]] * 50


def test_a_dead_members_last_decision_is_paid_at_its_teams_end():
    run = team_run(
        num_envs=1,
        max_years=6,
        reward="sum_of_squares",
        learner_powers=("ENGLAND", "ITALY"),
        pool_bots=("hold",),
        pool_bot_prob=1.0,
    )
    games, buffer, seats = run.self_play.games, run.buffer, run.self_play.seating.seats
    position = "three W1905A; ENGLAND A LON =; ITALY A ROM = ROM SPA; RUSSIA A MOS = MOS"
    load_state(games, Game.from_position(position).to_state())
    play_phase(run)
    assert not games.outcomes().alive[0, 0]
    assert buffer.open.tolist() == [True, False] and buffer.rewards[0, 0] == 0
    # The army of ITALY stays in Rome: 4 of 5 squares belong to the team at the end of 1906.
    for _ in range(2):
        orders = games.new_orders()
        result = games.step(orders)
        run.self_play.credit(result, 0.0)
    assert buffer.rewards[0, 0] == pytest.approx(4 / 5)
    assert not buffer.open.any() and buffer.ends[0, 0] and buffer.next_values[0, 0] == 0
    assert (seats.stream[0] == [0, 1, NONE]).all()


MIXED = {"partners": "pool", "learner_seats": 1}


def test_partners_of_the_pool():
    run = team_run(num_envs=400, pool_bots=("hold", "random"), pool_bot_prob=0.6, **MIXED)
    seating = run.self_play.seating
    learns, member = seating.seats.learns, seating.seats.member
    assert (learns.sum(1) == 1).all()  # one power of each game
    assert (np.abs(learns.mean(0) - (0.25, 0.25, 0.5)) < 0.08).all()  # teams in turn, then powers
    england = learns[:, 0]
    # The partner is a copy or a bot, drawn apart from the opponent.
    assert (member[england, 1] != LEARNER).all()
    assert (member[england, 1] != member[england, 2]).mean() > 0.3
    assert (seating.seats.stream[learns] == np.arange(400)).all()
    mine = team_run(num_envs=50, learner_powers=("ITALY",), **MIXED).self_play.seating.seats
    assert mine.learns.tolist() == [[False, True, False]] * 50


def test_a_partners_game_is_the_learners():
    """A learner that is out is paid what its partner still brings; the partner is no opponent."""
    run = team_run(
        num_envs=1,
        max_years=6,
        reward="sum_of_squares",
        learner_powers=("ENGLAND",),
        pool_bots=("hold",),
        pool_bot_prob=1.0,
        **MIXED,
    )
    games, buffer, seating = run.self_play.games, run.buffer, run.self_play.seating
    (hold,) = run.pool.bots
    position = "three W1905A; ENGLAND A LON =; ITALY A ROM = ROM SPA; RUSSIA A MOS = MOS"
    load_state(games, Game.from_position(position).to_state())
    assert play_phase(run)["games"] == 0 and buffer.open.tolist() == [True]
    assert play_phase(run)["games"] == 0 and hold.games == 0
    assert play_phase(run)["games"] == 1  # the end of 1906: 4 of 5 squares are the team's
    assert buffer.rewards[0, 0] == pytest.approx(4 / 5) and buffer.ends[0, 0]
    assert hold.games == 1 and hold.score == 1  # with RUSSIA it has lost
    assert seating.win_share[0] > 0 and seating.win_share[1] == 0


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
            reward_mix="sum_of_squares=1,lead_delta=0.5..0",
            warm_up_share=0.3,
            weak_seats=0.7,
            opponent_temperature=2.0,
            pool_bots=("dumbbot",),
            pool_bot_prob=0.4,
        )
        run = Run(args, table, CPU)
        for phase in range(60):
            play_phase(run, progress=phase / 60)
        seating = run.self_play.seating
        found.append((run.buffer.state_dict(), seating.state_dict()))
        seating.load_state_dict(seating.state_dict())
    np.testing.assert_equal(*found)


@pytest.mark.parametrize(("partners", "seats"), [("self", 2), ("pool", 1)])
def test_a_team_trains_and_goes_on(partners, seats, tmp_path, monkeypatch):
    table = TEAM | {"partners": partners}
    whole = train(tmp_path / "whole", **table)
    saved = load(whole)
    assert saved["args"]["teams"] == "ENGLAND+ITALY" and saved["args"]["learner_seats"] == seats
    shown = set().union(*(line.keys() for line in metrics(whole)))
    assert {"selfplay/win_ENGLAND+ITALY", "selfplay/win_RUSSIA"} <= shown
    assert set(saved["evaluations"]["random"]["by_team"]) == {"ENGLAND+ITALY", "RUSSIA"}
    with monkeypatch.context() as patched:
        stop_in_step(patched, 40)
        stopped = train(tmp_path / "stopped", **table)
    assert resume(stopped) == 0
    assert_same_run(whole, stopped)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--teams", "ENGLAND+ITALY,ITALY+RUSSIA"], "ITALY is named twice"),
        (["--teams", "ENGLAND+ITALY+RUSSIA"], "all powers are in one team"),
        (["--teams", "ENGLAND+ITALY", "--learner-seats", "1"], "--learner-seats has no effect"),
        (
            ["--teams", "ENGLAND+ITALY", "--learner-powers", "ITALY", "RUSSIA"],
            "--learner-powers ITALY RUSSIA must be one team of ENGLAND.ITALY, RUSSIA",
        ),
        (["--learner-powers", "ITALY", "italy"], "names a power twice"),
        (["--learner-powers", "FRANCE"], "'FRANCE' is no power of map three"),
        (["--partners", "pool"], "--partners pool needs --teams"),
        (["--team-victory", "8"], "needs teams of several powers"),
        (["--reward-mix", "team:score"], "no level 'team' of teams; it needs --teams"),
    ],
)
def test_what_cannot_be(flags, message, tmp_path, capsys):
    config = write_config(tmp_path / "tiny.toml", map="three")
    refused(["--config", config, "--runs-folder", str(tmp_path / "runs"), *flags], message, capsys)
    assert not (tmp_path / "runs").exists()
