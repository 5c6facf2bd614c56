"""One statement of how a game ended: random games with teams, votes, concessions and a last year
end as plain rules say, and whoever reads a result names the same. A new reader is a function with
`@reader`."""

import copy
import itertools
import json
import pickle
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pytest
from support.games import random_orders

from diplomacy_engine import Game, Map, VectorGame, load_map, make_bot
from diplomacy_engine.constants import RUNNING
from diplomacy_engine.extras.programs.lines import positions_of
from diplomacy_engine.games.vector_game import StepResult
from diplomacy_engine.matches.match import match_settings
from diplomacy_engine.matches.tournament import Tournament
from diplomacy_engine.play.review import outlook
from diplomacy_engine.replays.page import page
from diplomacy_engine.replays.replay import make_replay
from diplomacy_engine.scoring.outcomes import Outcomes, figure_values
from diplomacy_engine.scoring.rewards import make_reward, reward_input
from diplomacy_engine.textgame.saved_game import read_saved_game
from diplomacy_learners import imitate

WON, DREW, LOST = "won", "drew", "lost"
TEAMS = {
    "small": ("",),
    "three": ("", "ENGLAND+ITALY", "ENGLAND+ITALY+RUSSIA"),
    "standard": ("", "ENGLAND+FRANCE,AUSTRIA+GERMANY+ITALY"),
}
Verdicts = dict[str, str]  # power or team -> WON, DREW or LOST


class Finished(NamedTuple):
    """A game that is over, and what the test itself knows of its end."""

    game: Game
    twin: VectorGame  # the same game, stepped as arrays
    step: StepResult  # its last step
    verdicts: Verdicts
    shares: list[float]  # of a score of 1: a solo's, else of the squared centers

    @property
    def saved(self) -> dict:
        return json.loads(json.dumps(self.game.to_saved_game()))


# --- The rules, once more ---------------------------------------------------------------------


def sides(game_map: Map) -> list[set[str]]:
    """Return the teams; each power where it has none."""
    powers, team = game_map.powers, game_map.teams.of_power
    return [{powers[p] for p in np.flatnonzero(team == t)} for t in range(team.max() + 1)]


def ending(
    game: Game, conceded: set[str], counted: bool, agreed: bool, last: bool
) -> tuple[str, set[str]] | None:
    """Return how a game has ended and whose it is, by what stands on the board; None: not yet."""
    present = {
        power for table in (game.units, game.dislodged, game.centers) for power in table
        if table[power] and power in game.powers
    }  # fmt: skip
    alive, teams = present - conceded, sides(game.map)
    held = {power: len(game.centers[power]) for power in game.powers}
    if agreed:
        return "agreed", alive
    if counted:
        best = max(held, key=held.get)
        ahead = all(held[best] > held[other] for other in held if other != best)
        if ahead and held[best] >= game.map.board.victory_centers and best not in conceded:
            return "solo", next(team for team in teams if best in team)
    real = len(teams) < len(game.powers)
    rivals = teams if len(teams) > 1 else [{power} for power in game.powers]
    left = [side for side in rivals if side & alive]
    if len(left) == 1 and (conceded or (real and len(teams) > 1)):
        return ("team" if real else "solo"), next(team for team in teams if left[0] <= team)
    if counted and real and game.map.teams.victory_centers:
        total = {frozenset(team): sum(map(held.get, team)) for team in teams}
        first, *rest = sorted(total, key=total.get, reverse=True)
        enough = total[first] >= game.map.teams.victory_centers
        if enough and first & alive and all(total[first] > total[other] for other in rest):
            return "team", set(first)
    return ("limit", alive) if last else None


def shares(game: Game, kind: str, conceded: set[str]) -> list[float]:
    held = {p: 0 if p in conceded else len(game.centers[p]) for p in game.powers}
    if kind == "solo":
        (winner, *_), total = sorted(set(game.winners) - conceded, key=held.get, reverse=True), 1
        squares = {winner: 1}
    else:
        squares = {power: centers**2 for power, centers in held.items()}
        total = sum(squares.values()) or 1
    return [squares.get(power, 0) / total for power in game.powers]


def finished(rng: random.Random) -> tuple[Finished, str]:
    """Return a random game and how it ended: from a random fall or spring on."""
    name = rng.choice(["small", "three", "three", "standard"])
    teams = rng.choice(TEAMS[name])
    game_map = load_map(name).with_teams(teams, rng.choice([0, 6]) if teams else 0)
    powers, codes = game_map.powers, [game_map.provinces[v] for v in game_map.board.center_province]
    while True:  # until nobody has won yet
        weights, some = [rng.random() ** 2 for _ in powers], rng.random()
        owners = {code: rng.choices(powers, weights)[0] for code in codes if rng.random() < some}
        units: dict[str, list[str]] = {power: [] for power in powers}
        for code in rng.sample(codes, rng.randint(1, len(codes))):
            units[rng.choices(powers, weights)[0]].append(f"A {code}")
        centers = {power: [c for c, owner in owners.items() if owner == power] for power in powers}
        state = {"name": rng.choice(["F1901M", "S1901M"]), "units": units, "centers": centers}
        if ending(Game.from_state(game_map, state), set(), True, False, False) is None:
            break
    years, conceded = rng.choice([1, 2, 3]), set()
    game = Game.from_state(game_map, state, max_years=years, draw_votes=True)
    twin = game.vector_game.spare(1)
    twin.copy_from(game.vector_game, [0], [0])
    eager, tired = rng.choice([0.3, 0.9]), rng.choice([0, 0.1, 0.3])
    while True:
        kind = None
        for power in game.alive:
            if rng.random() < tired and not kind and len(game.alive) > 1:
                game.concede(power)
                conceded.add(power)
                kind = ending(game, conceded, counted=False, agreed=False, last=False)
        twin.state.conceded[0] = np.isin(powers, [*conceded])
        result = twin.step(twin.new_orders()) if kind else None
        if not kind:
            votes = [power for power in game.alive if rng.random() < eager]
            for power in votes:
                game.vote(power)
            asked = positions_of(game.vector_game, game.decisions(), ())
            assert not conceded & {power for position in asked for power in position.powers}
            for power, texts in random_orders(game, rng).items():
                game.submit(power, texts)
            orders, phase, agreed = twin.new_orders(), game.phase, votes == game.alive != []
            for v, number in game.order_numbers().items():
                orders[0, v] = number
            twin.state.votes[0] = np.isin(powers, votes)
            game.adjudicate()
            result = twin.step(orders)
            counted = not agreed and (phase[0], bool(game.dislodged)) == ("F", False)
            last = counted and int(phase[1:5]) == 1900 + years
            kind = ending(game, conceded, counted, agreed, last)
            assert not twin.state.votes.any()
        assert game.is_over == (kind is not None), (kind, game.to_position())
        if kind is not None:
            break
    how, winners = kind
    verdict = DREW if how in ("agreed", "limit") else WON
    verdicts = {power: verdict if power in winners else LOST for power in powers}
    for number, team in enumerate(sides(game_map)):
        verdicts[game_map.teams.names[number]] = verdict if team & winners else LOST
    done = Finished(game, twin, result, verdicts, shares(game, how, conceded))
    return done, f"{how}{', conceded' if conceded else ''}{', teams' if teams else ''}"


# --- Who reads it -----------------------------------------------------------------------------

READERS: dict[str, Callable[[Finished], Verdicts]] = {}


def reader(function: Callable[[Finished], Verdicts]) -> Callable[[Finished], Verdicts]:
    READERS[function.__name__] = function
    return function


def of_winners(powers: Iterable[str], winners: Iterable[str], is_draw: bool) -> Verdicts:
    return {power: (DREW if is_draw else WON) if power in winners else LOST for power in powers}


def of_game(game: Game) -> Verdicts:
    return of_winners(game.powers, game.winners, game.is_draw)


def of_text(text: str, powers: list[str]) -> Verdicts:
    """Read a sentence such as `a draw between England and France`."""
    named = [p for p in powers if p.capitalize() in text or "all powers" in text]
    return of_winners(powers, named, "draw" in text.lower() or "is left" in text)


def of_figures(outcomes: Outcomes, game_map: Map) -> Verdicts:
    """Read figures of teams, or of powers where there are none."""
    values = figure_values(outcomes.of_teams(game_map.teams.of_power), 1)
    return {
        name: of_row({figure: values[figure][0, side] for figure in values})
        for side, name in enumerate(game_map.teams.names)
    }


def of_row(figures: dict[str, float]) -> str:
    assert figures["solo"] + figures["draw"] + figures["loss"] == 1
    drew = figures["draw"] and figures["survival"]
    return WON if figures["solo"] else DREW if drew else LOST


def scores(done: Finished, values: Iterable[float]) -> Verdicts:
    """Check shares of a score of 1, and say no more than them."""
    assert list(values) == pytest.approx(done.shares, abs=1e-6)
    return {}


@reader
def the_game(done: Finished) -> Verdicts:
    assert done.game.is_over and done.game.phase == "COMPLETED"
    return of_game(done.game)


@reader
def a_copy(done: Finished) -> Verdicts:
    return of_game(copy.deepcopy(done.game.copy()))


@reader
def a_position_in_a_line(done: Finished) -> Verdicts:
    again = Game.from_position(done.game.to_position(), done.game.map)
    return of_winners(again.powers, again.winners, done.game.is_draw)  # it names no more


@reader
def a_state(done: Finished) -> Verdicts:
    again = Game.from_state(done.game.map, done.game.to_state())
    return of_winners(again.powers, again.winners, done.game.is_draw)


@reader
def a_saved_game(done: Finished) -> Verdicts:
    again = Game.from_saved_game(done.saved)
    for name in ("is_agreed", "is_conceded", "conceded", "result"):
        assert getattr(again, name) == getattr(done.game, name), name
    assert again.figures() == done.game.figures()
    assert again.to_saved_game() == done.game.to_saved_game()
    return of_game(again)


@reader
def figures_of_the_game(done: Finished) -> Verdicts:
    return scores(done, (row["sum_of_squares"] for row in done.game.figures().values()))


@reader
def arrays(done: Finished) -> Verdicts:
    assert pickle.loads(pickle.dumps(done.twin)).outcomes().winner == done.twin.state.winner
    return of_figures(done.twin.outcomes(), done.game.map)


@reader
def training(done: Finished) -> Verdicts:
    step, years = done.step, done.twin.outcomes().years
    assert step.ended[0] == done.twin.state.end[0] != RUNNING
    outcomes = Outcomes(step.ended, step.winner, step.centers, step.alive, years)
    return of_figures(outcomes, done.game.map)


@reader
def rewards_of_environments(done: Finished) -> Verdicts:
    board = done.game.map.board
    paid = make_reward("sum_of_squares")(reward_input(done.step, board.victory_centers))
    return scores(done, paid[0].tolist())


@reader
def a_tournament(done: Finished) -> Verdicts:
    game_map, sides_of = done.game.map, done.game.map.teams.of_power
    names = tuple(f"player {n}" for n in range(sides_of.max() + 1))
    match = match_settings(game_map, max_years=3)
    parts = np.zeros(1, np.int64), sides_of[None], done.twin.outcomes(), {}
    report = Tournament(match, names, names, (False,) * len(names), *parts)
    rows = report.rows(report.figures()[1])
    for one, other in itertools.permutations(rows, 2):
        assert of_row(one) != WON or one["rank"] < other["rank"]
        assert of_row(one) != DREW or of_row(other) != LOST or one["rank"] <= other["rank"]
    kind = "team" if game_map.teams.text else "power"
    return {row[kind]: of_row(row) for row in rows}


@reader
def ranks_among_a_population(done: Finished) -> Verdicts:
    if not done.game.map.teams.text:
        ranks = dict(zip(done.game.powers, make_replay(done.saved).ranks))
        figures = done.game.figures()
        assert ranks == {power: row["rank"] for power, row in figures.items()}
    return {}


@reader
def a_replay(done: Finished) -> Verdicts:
    replay = make_replay(done.saved)
    assert replay.result == done.game.result
    return of_winners(done.game.powers, replay.winners, done.game.is_draw)


@reader
def the_page_of_a_replay(done: Finished) -> Verdicts:
    (title,) = re.findall('"title":"(.*?)"', page([make_replay(done.saved)], "t"))
    return of_text(title, done.game.powers)


@reader
def words_of_the_result(done: Finished) -> Verdicts:
    conceded = "as all others have conceded" in done.game.result
    assert conceded == done.game.is_conceded and not re.search("note", done.game.result)
    return of_text(done.game.result, done.game.powers)


@reader
def what_people_who_look_ahead_see(done: Finished) -> Verdicts:
    found = outlook(done.game, dict.fromkeys(done.game.powers, make_bot("hold")))
    won = [power for power, one in found.items() if one.won == one.games]
    return of_winners(done.game.powers, won, False) if won else {}


@reader
def targets_of_imitation(done: Finished) -> Verdicts:
    _, _, phases, ending = read_saved_game(done.saved, done.game.map)
    return scores(done, imitate.final_shares(phases[-1]["state"], done.game.map, ending).tolist())


def test_every_reader_names_the_same_result():
    kinds, rng = Counter(), random.Random(1)
    for _ in range(50):
        done, how = finished(rng)
        kinds[how] += 1
        for name, read in READERS.items():
            verdicts = read(done)
            expected = {one: done.verdicts[one] for one in verdicts}
            assert verdicts == expected, (name, how, done.game.to_position())
    ways = itertools.product(("solo", "limit", "agreed"), ("", ", conceded"))
    every = {"".join(way) for way in ways} | {"team, teams", "team, conceded, teams"}
    assert every <= {*kinds}, kinds
