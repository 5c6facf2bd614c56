"""Games between players: many at once, each power of each game played by one of them."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ..constants import AGREED, NONE, RUNNING, Phase, phase_name
from ..games.vector_game import VectorGame
from ..games.votes import bot_votes
from ..players.asking import ask_players
from ..players.protocols import Player
from ..press.daide import messages_of
from ..press.deals import Offers, Words
from ..press.negotiators.negotiation import honest_seats, negotiate
from ..press.press import Press, TalkCounter
from ..rules.state import in_movement, ordering_powers
from ..scoring.outcomes import Outcomes
from ..textgame.game import Game
from .match import MatchReport, MatchSettings, identity, names_apart
from .order_counts import OrderCounter


class GameRecorder:
    """Keeps the orders of some rows from now on, to write saved games afterwards."""

    def __init__(self, rows: np.ndarray, games: VectorGame):
        self.rows = rows
        self._begun = [Game.from_row(games, row) for row in rows]
        self._steps: list[tuple[np.ndarray, ...]] = []
        # Step -> what was said before.
        self._talk: dict[int, list[tuple[Offers, np.ndarray, Words]]] = {}

    def note(
        self,
        games: VectorGame,
        orders: np.ndarray,
        press: Press | None = None,
        going: np.ndarray | None = None,
    ) -> None:
        """`going`: the rows that are played on; None: all that have not ended."""
        if press is not None and press.log:
            self._talk[len(self._steps)], press.log = press.log, []
        state, rows = games.state, self.rows
        owner = ordering_powers(games.board, state, rows)
        running = state.end[rows] == RUNNING
        running &= True if going is None else np.isin(rows, going)
        self._steps.append((running, state.year[rows], state.phase[rows], owner, orders[rows]))

    def replay(
        self,
        games: VectorGame,
        think: Callable[[int, Game], dict] | None = None,
        number: Sequence[int] | np.ndarray = (),
    ) -> list[Game]:
        """Return the recorded games; `think` (`number` of a row, Game) gives the `thoughts` kept
        with a phase."""
        replayed = [game.copy() for game in self._begun]
        texts = games.vocabulary.texts
        for step, (running, year, phase, owner, orders) in enumerate(self._steps):
            for row in np.flatnonzero(running).tolist():
                game = replayed[row]
                recorded = phase_name(year[row], phase[row])
                assert game.phase == recorded, f"the replay is in {game.phase}, not {recorded}"
                self._say(game, row, self._talk.get(step, []))
                for power, name in enumerate(game.powers):
                    mine = np.flatnonzero((owner[row] == power) & (orders[row] != NONE))
                    order_texts = [texts[number] for number in orders[row, mine]]
                    game.submit(name, order_texts, strict=False)
                thoughts = think(int(number[row]), game) if think else {}
                game.adjudicate()
                if thoughts:
                    game.history[-1]["thoughts"] = thoughts
        for row in np.flatnonzero(games.state.end[self.rows] == AGREED):
            game, alive = replayed[row], games.outcomes(self.rows[row : row + 1]).alive[0]
            game.change_rules(draw_votes=True)
            for power, lives in zip(game.powers, alive):
                if lives:
                    game.vote(power)
            game.adjudicate()
        return replayed

    @staticmethod
    def _say(game: Game, row: int, talk: list[tuple[Offers, np.ndarray, Words]]) -> None:
        for offers, results, words in talk:
            mine = np.flatnonzero(offers.game == row)
            own = [[texts[o] for o in mine.tolist()] for texts in words]
            messages = list(messages_of(game.vector_game, offers.take(mine), results[mine], own))
            for sender, recipient, text in messages:
                game.send(game.powers[sender], game.powers[recipient], text)


Report = TypeVar("Report", bound=MatchReport)


def play_games(
    games: VectorGame,
    seat_player: np.ndarray,
    players: Sequence[Player],
    recorder: GameRecorder | None = None,
    progress: Callable[[float], None] | None = None,
    counter: OrderCounter | None = None,
    press: Press | None = None,
    draws_after: int | None = None,
) -> Outcomes:
    """Play all games to their end.

    Args:
        games: made with auto_reset=False (else ValueError), and with a year limit unless the
            players are sure to end their games.
        seat_player: (E, P) integers, the number in `players` of each power's player.
        players: each is called once a step for all its decisions in all games.
        recorder: records the orders of its rows.
        progress: called after each step with the number of games played; a running game counts by
            its share of years.
        counter: counts a player's orders.
        press: the Press of the games, if powers may talk before they order.
        draws_after: year from which all players vote for a draw as bots do; None: no votes.
    """
    seat_player = np.asarray(seat_player)
    if games.auto_reset:
        raise ValueError("play_games needs a VectorGame with auto_reset=False")
    if press is not None and recorder is not None:
        press.log, press.logged = [], len(recorder.rows)
    state = games.state
    while (state.end == RUNNING).any():
        if draws_after is not None:
            state.votes[:] = bot_votes(games, draws_after)
            agreed = games.agreed() & (state.end == RUNNING)
            if agreed.any():
                games.step(games.new_orders(), agreed)
                continue
        decisions = games.decisions()
        player_numbers = seat_player[decisions.game, decisions.power]
        if press is None:
            orders = ask_players(games, decisions, players, player_numbers)
        else:
            negotiate(press, decisions, players, seat_player)
            honest = honest_seats(players, seat_player)
            bound = press.bound(decisions, honest)
            orders = ask_players(games, bound, players, player_numbers)
            press.correct(orders, bound, honest)
            press.judge(orders, decisions)
        if recorder is not None:
            recorder.note(games, orders, press)
        if counter is not None:
            counter.look(games, decisions, orders, seat_player)
        moving = in_movement(state) & (state.end == RUNNING)
        result = games.step(orders)
        if counter is not None:
            counter.results.see(result, seat_player == counter.player)
            counter.note(games, seat_player, moving)
        if progress is not None:
            progress(_played(games))
    return games.outcomes()


def _played(games: VectorGame) -> float:
    """Return how many games have been played, running ones in part."""
    state = games.state
    part = np.zeros(games.num_games)
    if games.max_years:
        years = state.year - games.board.first_year + 0.5 * (state.phase >= Phase.FALL_MOVEMENT)
        part = np.clip(years / games.max_years, 0, 0.999)
    return float(np.where(state.end == RUNNING, part, 1.0).sum())


def play_tables(
    settings: MatchSettings,
    players: Sequence[Player],
    seats: np.ndarray,
    *,
    first: int = 0,
    samples: int = 0,
    think: Callable[[int, Game], dict] | None = None,
    counted: int | None = None,
    progress: Callable[[float], None] | None = None,
    keep_finished: bool = False,
    kind: type[Report] = MatchReport,  # type: ignore[assignment]  # mypy 3737: a default of a type
) -> Report:
    """Play games, and return a report of this `kind`.

    `seats` (G, P): the number in `players` of each power's player; `first`: the first game's
    number. Games below `samples` are saved, with the result of `think` for number and Game.
    `counted`: the player whose orders are counted. If any error ends the match, `keep_finished`
    returns the finished games and the cause.
    """
    names, identities = names_apart(players), tuple(map(identity, players))
    greedy = tuple(bool(getattr(player, "greedy", False)) for player in players)
    reports, seeds = [], settings.game_seeds(first, len(seats))
    for start in range(0, len(seats), settings.batch):
        mine = seats[start : start + settings.batch]
        games = settings.new_games(len(mine), players)
        number, ended = first + start + np.arange(len(mine)), np.arange(len(mine))
        games.seed_games(ended, seeds[start : start + len(mine)])
        recorder = GameRecorder(ended[: max(0, samples - first - start)], games)
        watch = None if progress is None else lambda done, start=start: progress(start + done)
        noted = recorder if len(recorder.rows) else None
        counter = None if counted is None else OrderCounter(counted)
        press = None if settings.rules.press is None else Press(games)
        cause = talk = None
        try:
            outcomes = play_games(
                games, mine, players, noted, watch, counter, press, settings.rules.draws_after
            )
        except (Exception, KeyboardInterrupt) as error:
            ended = np.flatnonzero(games.state.end != RUNNING)
            if not keep_finished or start + len(ended) == 0:
                raise
            cause, outcomes = error, games.outcomes(ended)
        if counter is not None:
            counter.results.end(games, ended, outcomes, mine[ended] == counted)
        if press is not None:
            talk = TalkCounter()
            talk.add(press, mine)
        sampled = {}
        for row, game in enumerate(recorder.replay(games, think, number)):
            if row in ended:
                game.id = f"{settings.seed}-{number[row]}"
                player_names = {power: names[n] for power, n in zip(game.powers, mine[row])}
                sampled[int(number[row])] = game.to_saved_game() | {"players": player_names}
        played = number[ended], mine[ended], outcomes, sampled
        reports.append(kind(settings, names, identities, greedy, *played, counter, talk, cause))
        if cause is not None:
            break
    return kind.join(reports)
