"""Self-play against slow references: who is asked what, and what becomes of it."""

import numpy as np
import pytest
from support.self_play import SlowStream, learner_powers, make_run, play_phase

from diplomacy_engine import Decisions, VectorGame, load_map, order_numbers, reward_input
from diplomacy_engine.constants import NONE, RUNNING, YEAR_LIMIT
from diplomacy_engine.learning import frozen, statistics
from diplomacy_engine.scoring.mixes import make_reward_mix
from ppo_selfplay_diplomacy import LEARNER, Agent, Run


class Spy:
    def __init__(self, run: Run, monkeypatch):
        self.run = run
        self.asked: list[tuple[np.ndarray, Decisions, np.ndarray]] = []  # who decides what
        self.added = None
        draw, act = run.agent.get_action_and_value, frozen.act
        add, step = run.buffer.add, run.games.step

        def spying_draw(obs, decisions, *rest, **options):
            found = draw(obs, decisions, *rest, **options)
            self.asked.append((np.full(decisions.count, LEARNER), decisions, found[0]))
            return found

        def spying_act(agents, who, obs, decisions, *rest):
            assert agents is run.pool.agents
            found = act(agents, who, obs, decisions, *rest)
            self.asked.append((who, decisions, found))
            return found

        def spying_add(streams, seen, logprobs, values):
            self.added = streams.copy(), seen, logprobs.copy(), values.copy()
            add(streams, seen, logprobs, values)

        def spying_step(orders):
            self.orders = orders.copy()
            self.result = step(orders)
            self.after = run.games.snapshot()
            return self.result

        monkeypatch.setattr(run.agent, "get_action_and_value", spying_draw)
        monkeypatch.setattr(frozen, "act", spying_act)
        monkeypatch.setattr(run.buffer, "add", spying_add)
        monkeypatch.setattr(run.games, "step", spying_step)

    def step(self) -> dict:
        run = self.run
        self.asked.clear()
        self.seats = run.seats.member.copy()
        self.learner_power = learner_powers(run)
        self.decisions = run.games.decisions()
        at = self.decisions.game, self.decisions.power
        self.players = np.where(run.seats.random_phases[at] > 0, NONE, self.seats[at])
        self.mine = self.decisions.take(self.players == LEARNER)
        self.obs = run.games.view_boards(self.mine.game, self.mine.power)
        self.progress = min(1.0, run.step / run.args.total_timesteps)
        return play_phase(run)

    def answers(self) -> dict[int, tuple[Decisions, np.ndarray]]:
        found = {}
        for who, decisions, chosen in self.asked:
            for number in np.unique(who).tolist():
                slots = (who == number)[decisions.slot_decision]
                assert number not in found
                found[number] = decisions.take(who == number), chosen[slots]
        return found


class Recorder:
    """A bot that holds, and keeps what it is asked."""

    name = "recorder"

    def __init__(self):
        self.asked: list[Decisions] = []

    def act(self, games: VectorGame, decisions: Decisions) -> np.ndarray:
        self.asked.append(decisions)
        return decisions.order[decisions.order_start[:-1]]


def same_decisions(one: Decisions, two: Decisions) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two))


@pytest.mark.parametrize("learner_seats", [1, 2])
def test_everybody_plays_his_own_seats(monkeypatch, learner_seats):
    """In every step each player is asked for its own seats' decisions only, its answers are what is
    ordered, the learner's alone are stored, and nobody changes seats within a game; none is asked
    while a power begins with random orders. New copies push old ones out of the pool all the time;
    these play on until their games are over."""
    run = make_run(
        map="three",
        num_envs=12,
        num_steps=400,
        learner_seats=learner_seats,
        max_years=3,
        pool_size=2,
        pool_bots=("hold",),
        pool_bot_prob=0.3,
        random_start_prob=0.2,
    )
    pool, spy, games = run.pool, Spy(run, monkeypatch), run.games
    bot = 1  # after the learner; the copies follow
    departed = finished = silent = 0
    for step in range(60):
        counts = spy.step()
        assert counts["global_step"] == spy.mine.count and counts["env_steps"] == 12
        assert counts["order_steps"] == len(spy.mine.slot_province)
        asked = spy.answers()
        for number, (decisions, chosen) in asked.items():
            assert same_decisions(decisions, spy.decisions.take(spy.players == number))
            numbers = order_numbers(decisions, chosen)
            game = np.repeat(decisions.game, np.diff(decisions.slot_start))
            standing = decisions.slot_province != NONE
            given = spy.orders[game[standing], decisions.slot_province[standing]]
            np.testing.assert_array_equal(given, numbers[standing])
        assert set(asked) == set(spy.players.tolist()) - {bot, NONE}
        silent += (spy.players == NONE).sum()
        departed += len(set(asked) - set(pool.copies) - {LEARNER})
        # The learner's decisions, all of them and no others, with what it saw and chose
        if spy.mine.count:
            streams, experience, _, _ = spy.added
            assert same_decisions(experience.decisions, spy.mine)
            assert all(np.array_equal(a, b) for a, b in zip(experience.obs, spy.obs))
            np.testing.assert_array_equal(experience.chosen, asked[LEARNER][1])
            for stream, game, power in zip(streams, spy.mine.game, spy.mine.power):
                seat = spy.learner_power[game].tolist().index(power)
                assert stream == game * learner_seats + seat
        # Nobody changes seats within a game, and exactly those over begin anew
        new = games.state.turn == 0
        finished += counts["games"]  # one in which the learner took no part is not counted
        assert counts["games"] <= new.sum()
        np.testing.assert_array_equal(run.seats.member[~new], spy.seats[~new])
        np.testing.assert_array_equal(learner_powers(run)[~new], spy.learner_power[~new])
        in_games = set(np.unique(run.seats.member).tolist()) - {LEARNER, bot}
        assert in_games <= set(pool.agents) and len(pool.copies) <= 2
        if step % 3 == 2:
            pool.freeze(run.agent, 10 * step)
            pool.forget(set(np.unique(run.seats.member).tolist()))
            assert set(pool.agents) == in_games | set(pool.copies)
    assert departed > 10 and finished > 12 and silent > 20


def test_opponents_choose_from_all_legal_orders(monkeypatch):
    """A learner that helps no other power cuts its own lists and those of its copies alone."""
    run = make_run(map="standard", num_envs=6, cross_support=False, pool_bots=("hold",))
    run.seats.member[:] = np.where(run.seats.stream != NONE, LEARNER, 1)
    copies = run.seats.member[:, -1] == 1
    run.seats.member[copies, -1] = run.pool.copies[0]
    recorder, spy = Recorder(), Spy(run, monkeypatch)
    run.pool.bots[1] = recorder
    spy.step()
    (asked,) = recorder.asked
    assert same_decisions(asked, spy.decisions.take(spy.players == 1))
    assert asked.count == 36 - copies.sum() > 24
    for number, (decisions, _) in spy.answers().items():
        full = spy.decisions.take(spy.players == number)
        assert len(decisions.order) < 0.9 * len(full.order)


def test_copies_draw_at_the_temperature_of_their_seat(monkeypatch):
    run = make_run(map="three", num_envs=20, opponent_temperature=3.0)
    run.pool.freeze(run.agent, 100)
    for seats in run.seats.member:
        seats[seats > LEARNER] = run.pool.copies
    copies, drawn, get_action = {*run.pool.agents.values()}, [], Agent.get_action

    def watched(agent, codes, orders, noise=None, temperature=None):
        at = orders.decisions.game, orders.decisions.power
        if agent is run.agent:
            assert temperature is None
        else:
            copies.discard(agent)
            np.testing.assert_array_equal(temperature, run.seats.temperature[at])
            drawn.extend(temperature.tolist())
        return get_action(agent, codes, orders, noise, temperature)

    monkeypatch.setattr(Agent, "get_action", watched)
    play_phase(run)
    assert not copies and len(drawn) == 40
    assert 1 <= min(drawn) < 1.5 and 2.5 < max(drawn) <= 3


@pytest.mark.parametrize(
    ("learner_seats", "year_limit"), [(1, "draw"), (1, "truncate"), (2, "truncate"), (2, "draw")]
)
def test_transitions_equal_a_slow_reference(monkeypatch, learner_seats, year_limit):
    """Rewards, whenever they come, reach the power's last decision; ends are terminal (worth 0) or
    truncated (worth the value of the final position); each stream is one seat of one row."""
    mix = "center_delta=3,deepdip=1..0.5"
    run = make_run(
        map="three",
        num_envs=16,
        num_steps=400,
        learner_seats=learner_seats,
        year_limit=year_limit,
        max_years=6,
        reward=mix,
        total_timesteps=1000,
        pool_bots=("dumbbot",),
        pool_bot_prob=0.8,
    )
    games, reward = run.games, make_reward_mix(mix)
    spy = Spy(run, monkeypatch)
    final = VectorGame(games.map, games.num_games, max_years=6, threads=1)
    streams = [SlowStream() for _ in range(16 * learner_seats)]
    events = dict.fromkeys(("idle pay", "eliminated", "limit", "solo", "idle end"), 0)
    for _ in range(90):
        spy.added = None
        spy.step()
        if spy.added is not None:
            for stream, logprob, value in zip(spy.added[0], *spy.added[2:]):
                streams[stream].close(value, False)
                streams[stream].open = {"reward": 0.0, "value": value, "logprob": logprob}
        result = spy.result
        paid = reward(
            reward_input(result, games.board.victory_centers, year_limit == "draw"), spy.progress
        )
        # A game goes on while a seat of the learner is alive.
        alive = result.alive[np.arange(16)[:, None], spy.learner_power].any(1)
        over = (result.ended != RUNNING) | ~alive
        np.testing.assert_array_equal(games.state.turn == 0, over)
        for name, array in final.state._asdict().items():
            array[:] = spy.after[name]
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
        assert (run.buffer.transitions["closed"][:, number] == (np.arange(400) < done)).all()
        for name, key in (
            ("rewards", "reward"),
            ("values", "value"),
            ("logprobs", "logprob"),
            ("next_values", "next_value"),
            ("ends", "end"),
        ):
            found = run.buffer.transitions[name][:done, number]
            expected = [transition[key] for transition in stream.closed]
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=name)
    for name in ("idle pay", "eliminated", "limit"):
        assert events[name] > 0, events


def test_a_game_that_ends_before_the_learner_takes_part_is_not_counted():
    run = make_run(num_envs=30, random_start_prob=1.0, max_years=1)
    run.seats.random_phases[:] = 40
    run.seats.random_phases[:10] = 0
    counts = [play_phase(run) for _ in range(3)]
    # The year ends with the second phase, or the third where something was dislodged.
    assert sum(count["games"] for count in counts) == run.results.counters["games"] == 10
    assert run.results.sums["games"] == 10
    assert (run.games.state.end == RUNNING).all()


def test_win_shares_are_running_means_of_each_power():
    """Games that ended together count as one; the figures make good that the means begin at 0."""
    results, expected = statistics.Results(load_map("three")), np.zeros(3)
    rest = dict.fromkeys(statistics.SELFPLAY, 0.0)
    for games, wins in ([[3, 1, 0], [2, 0, 0]], [[1, 0, 0], [0, 0, 0]], [[2, 5, 0], [2, 4, 0]]):
        games, wins = np.array(games, float), np.array(wins, float)
        duels = dict.fromkeys(("duels", "duels_ahead"), np.zeros(1))
        results.count(rest | duels | {"side_games": games, "side_wins": wins}, [1])
        expected += (1 - 0.995**games) * (wins / np.maximum(games, 1) - expected)
    np.testing.assert_allclose(results.win_share, expected)
    figures = results.take()
    assert figures["win_ENGLAND"] == pytest.approx(expected[0] / (1 - 0.995**6))
    assert "win_RUSSIA" not in figures
