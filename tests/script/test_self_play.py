"""Self-play against slow references: who is asked what, and what becomes of it."""

import numpy as np
import pytest
import torch
from support.self_play import SlowStream, learner_powers, make_run, play_phase

import ppo_selfplay_diplomacy as ppo
from diplomacy_engine import order_numbers
from diplomacy_engine.constants import NONE, RUNNING, YEAR_LIMIT
from diplomacy_engine.games.decisions import Decisions
from diplomacy_engine.games.vector_game import VectorGame
from diplomacy_engine.learning import groups
from diplomacy_engine.scoring import make_reward_mix, reward_input
from ppo_selfplay_diplomacy import LEARNER, Agent, Run


class Spy:
    """Watches a run's self-play: what each player was asked, what it answered, what came of it."""

    def __init__(self, run: Run, monkeypatch):
        self.run = run
        self.asked: list[tuple[Agent, Decisions, np.ndarray]] = []
        self.added = None
        act, add, step = Agent.act, run.buffer.add, run.self_play.games.step

        def spying_act(agent, obs, decisions, *rest, **options):
            found = act(agent, obs, decisions, *rest, **options)
            self.asked.append((agent, decisions, found[0]))
            return found

        def spying_add(streams, experience, logprobs, values):
            self.added = streams.copy(), experience, logprobs.copy(), values.copy()
            add(streams, experience, logprobs, values)

        def spying_step(orders):
            self.orders = orders.copy()
            self.result = step(orders)
            self.after = run.self_play.games.snapshot()
            return self.result

        monkeypatch.setattr(Agent, "act", spying_act)
        monkeypatch.setattr(run.buffer, "add", spying_add)
        monkeypatch.setattr(run.self_play.games, "step", spying_step)

    def step(self, progress: float = 0.0) -> dict[str, int]:
        """Play one phase, after noting who sits where and what is to be decided."""
        self_play = self.run.self_play
        self.asked.clear()
        self.added = None
        self.seats = self_play.seating.seats.member.copy()
        self.learner_power = learner_powers(self_play.seating)
        self.members = dict(self_play.pool.all)
        self.decisions = self_play.games.decisions()
        self.players = self.seats[self.decisions.game, self.decisions.power]
        self.mine = self.decisions.take(self.players == LEARNER)
        self.obs = self_play.games.view_boards(self.mine.game, self.mine.power)
        self.phase = self_play.games.state.phase.copy()
        return play_phase(self.run, progress)


def same_decisions(one: Decisions, two: Decisions) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two))


@pytest.mark.parametrize("learner_seats", [1, 2])
def test_everybody_plays_his_own_seats(monkeypatch, learner_seats):
    """In every step each player is asked for its own seats' decisions only, its answers are what is
    ordered, the learner's alone are stored, and nobody changes seats within a game. New copies
    push old ones out of the pool all the time; these play on until their games are over."""
    run = make_run(
        map="three",
        num_envs=12,
        num_steps=400,
        learner_seats=learner_seats,
        max_years=3,
        pool_size=2,
        pool_bots=("hold",),
        pool_bot_prob=0.3,
    )
    self_play, pool = run.self_play, run.pool
    spy = Spy(run, monkeypatch)
    departed = finished = 0
    for step in range(60):
        counts = spy.step()
        finished += counts["games"]
        assert counts["global_step"] == spy.mine.count and counts["env_steps"] == 12
        assert counts["order_steps"] == len(spy.mine.slot_province)
        number_of = {id(member.player): number for number, member in spy.members.items()}
        number_of[id(run.agent)] = LEARNER
        asked = {}
        for agent, decisions, chosen in spy.asked:
            number = number_of[id(agent)]
            assert number not in asked
            asked[number] = chosen
            assert same_decisions(decisions, spy.decisions.take(spy.players == number))
            numbers = ppo.order_numbers(decisions, chosen)
            game = np.repeat(decisions.game, np.diff(decisions.slot_start))
            standing = decisions.slot_province != NONE
            given = spy.orders[game[standing], decisions.slot_province[standing]]
            np.testing.assert_array_equal(given, numbers[standing])
        bot = pool.bots[0].number
        assert set(asked) == set(spy.players.tolist()) - {bot}
        members = {member.number for member in pool.members}
        departed += len(set(asked) - members - {LEARNER})
        # The learner's decisions, all of them and no others, with what it saw and chose
        if not spy.mine.count:
            assert spy.added is None
            continue
        streams, experience, _, _ = spy.added
        assert same_decisions(experience.decisions, spy.mine)
        assert all(np.array_equal(a, b) for a, b in zip(experience.obs, spy.obs))
        np.testing.assert_array_equal(experience.chosen, asked[LEARNER])
        for stream, game, power in zip(streams, spy.mine.game, spy.mine.power):
            seat = spy.learner_power[game].tolist().index(power)
            assert stream == game * learner_seats + seat
        # Nobody changes seats within a game, and exactly those over begin anew
        new = self_play.games.state.turn == 0
        assert new.sum() == counts["games"]
        np.testing.assert_array_equal(self_play.seating.seats.member[~new], spy.seats[~new])
        powers = learner_powers(self_play.seating)
        np.testing.assert_array_equal(powers[~new], spy.learner_power[~new])
        in_games = set(np.unique(self_play.seating.seats.member).tolist()) - {LEARNER}
        assert in_games <= set(pool.all) and len(pool.members) <= 2
        if step % 3 == 2:
            pool.freeze(frozen_copy(run.agent), 10 * step)
    assert departed > 10 and finished > 12
    self_play.seating.forget_unused()
    assert set(pool.all) - {LEARNER, bot} <= in_games | {member.number for member in pool.members}


@pytest.mark.parametrize(
    ("learner_seats", "year_limit", "finish_games"),
    [(1, "draw", False), (1, "truncate", False), (2, "truncate", True), (2, "draw", True)],
)
def test_transitions_equal_a_slow_reference(monkeypatch, learner_seats, year_limit, finish_games):
    """Rewards, whenever they come, reach the power's last decision; ends are terminal (worth 0) or
    truncated (worth the value of the final position); each stream is one seat of one row."""
    mix = "center_delta=3,deepdip=1..0.5"
    run = make_run(
        map="three",
        num_envs=16,
        num_steps=400,
        learner_seats=learner_seats,
        year_limit=year_limit,
        finish_games=finish_games,
        max_years=6,
        reward="deepdip",
        reward_mix=mix,
        pool_bots=("dumbbot",),
        pool_bot_prob=0.8,
    )
    games, reward = run.self_play.games, make_reward_mix(mix)
    spy = Spy(run, monkeypatch)
    final = VectorGame(games.map, games.num_games, max_years=6, threads=1)
    streams = [SlowStream() for _ in range(16 * learner_seats)]
    events = dict.fromkeys(("idle pay", "eliminated", "limit", "solo", "idle end"), 0)
    for step in range(90):
        progress = step / 90
        spy.step(progress)
        if spy.added is not None:
            for stream, logprob, value in zip(spy.added[0], *spy.added[2:]):
                streams[stream].close(value, False)
                streams[stream].open = {"reward": 0.0, "value": value, "logprob": logprob}
        result = spy.result
        paid = reward(
            reward_input(result, games.board.victory_centers, year_limit == "draw"), progress
        )
        final.restore(spy.after)
        for row in range(16):
            for seat, power in enumerate(spy.learner_power[row]):
                stream = streams[row * learner_seats + seat]
                if stream.open is None:
                    continue
                decided = ((spy.mine.game == row) & (spy.mine.power == power)).any()
                stream.open["reward"] += paid[row, power]
                events["idle pay"] += not decided and paid[row, power] != 0
                over = result.ended[row]
                if result.eliminated[row, power]:
                    events["eliminated"] += 1
                    stream.close(0.0, True)
                elif over == YEAR_LIMIT and year_limit == "truncate":
                    events["limit"] += 1
                    obs = final.view_boards(np.array([row]), np.array([power]))
                    stream.close(run.agent.get_value(obs).item(), True)
                elif over != RUNNING:
                    events["limit" if over == YEAR_LIMIT else "solo"] += 1
                    stream.close(0.0, True)
                events["idle end"] += not decided and stream.open is None
    for number, stream in enumerate(streams):
        count = len(stream)
        assert run.buffer.count[number] == count
        assert run.buffer.open[number] == (stream.open is not None)
        done = len(stream.closed)
        assert (run.buffer.closed[:, number] == (np.arange(400) < done)).all()
        for name, key in (
            ("rewards", "reward"),
            ("values", "value"),
            ("logprobs", "logprob"),
            ("next_values", "next_value"),
            ("ends", "end"),
        ):
            found = getattr(run.buffer, name)[:done, number]
            expected = [transition[key] for transition in stream.closed]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=name)
    for name in ("idle pay", "eliminated", "limit"):
        assert events[name] > 0, events


def test_the_seed_decides_weights_games_and_seats():
    one, same, other = (make_run(seed=seed, num_envs=50) for seed in (1, 1, 2))
    for find in (
        lambda run: run.agent.critic[0].weight.detach().numpy(),
        lambda run: run.self_play.games.row_seed,
        lambda run: run.self_play.seating.seats.member,
    ):
        assert (find(one) == find(same)).all() and (find(one) != find(other)).any()




# --- Random beginnings ----------------------------------------------------------------------------


def test_no_policy_decides_while_a_power_warms_up():
    run = make_run(num_envs=60, warm_up_share=0.5, warm_up_phases=6, hidden=8, num_steps=40)
    self_play = run.self_play
    asked: list[tuple[int, int]] = []

    def watch(act):
        def watched(obs, decisions, *rest, **named):
            asked.extend(zip(decisions.game.tolist(), decisions.power.tolist()))
            return act(obs, decisions, *rest, **named)

        return watched

    for agent in (run.agent, *(member.player for member in run.pool.members)):
        agent.act = watch(agent.act)
    silenced = 0
    for _ in range(12):
        asked.clear()
        decisions = self_play.games.decisions()
        pending = set(zip(decisions.game.tolist(), decisions.power.tolist()))
        warm = self_play.seating.seats.warm_up.copy()
        play_phase(run)
        assert sorted(asked) == sorted((e, p) for e, p in pending if not warm[e, p])
        silenced += len(pending) - len(asked)
    assert silenced > 50


def test_a_game_that_ends_before_the_learner_takes_part_is_not_counted():
    run = make_run(num_envs=30, warm_up_share=1.0, warm_up_phases=40, max_years=1, hidden=8)
    run.self_play.seating.seats.warm_up[:] = 40
    run.self_play.seating.seats.warm_up[:10] = 0
    counts = [play_phase(run) for _ in range(3)]
    # The year ends with the second phase, or the third where something was dislodged.
    assert sum(count["games"] for count in counts) == 10
    assert run.self_play.seating.take_statistics(0)["games"] == 10
    assert (run.self_play.games.state.end == RUNNING).all()


# --- Weak seats and hot opponents -----------------------------------------------------------------


def test_win_shares_are_running_means_of_each_power():
    run = make_run(map="three", num_envs=40, max_years=4, learner_seats=2, hidden=8, num_steps=400)
    seating, expected = run.self_play.seating, np.zeros(3)
    finished, end_phase = 0, seating.end_phase

    def watching(result):
        nonlocal finished
        for row in np.flatnonzero(result.ended != RUNNING):
            centers = result.centers[row]
            for power in learner_powers(seating)[row]:
                others = np.delete(centers, power).max()
                limit = result.ended[row] == YEAR_LIMIT
                won[power].append(
                    result.winner[row] == power or (limit and centers[power] > others)
                )
        found = end_phase(result)
        for power, wins in enumerate(won):  # those that ended together count as one
            if wins:
                expected[power] += (1 - 0.995 ** len(wins)) * (np.mean(wins) - expected[power])
                finished += len(wins)
                wins.clear()
        return found

    won = [[], [], []]
    seating.end_phase = watching
    for _ in range(120):
        play_phase(run)
    assert finished > 60 and (seating.win_share > 0).all()
    np.testing.assert_allclose(seating.win_share, expected, rtol=1e-6)
    figures = seating.take_statistics(0)
    shares = [figures[f"win_{p}"] for p in ("ENGLAND", "ITALY", "RUSSIA")]
    assert shares == pytest.approx(expected.tolist())


