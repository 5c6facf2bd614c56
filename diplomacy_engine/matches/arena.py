"""Matches: seat players, play many games at once, tally the results with intervals.

`play_games` is the core; `evaluate_player` seats one player as every power (or team) equally often
against copies of another and returns the figures of scoring/outcomes.py, each with a 95 % interval.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ..constants import (
    BOUNCE,
    BUILD,
    CONVOY,
    FALL_MOVEMENT,
    FALL_RETREATS,
    HOLD,
    MOVE,
    MOVE_VIA,
    NONE,
    RUNNING,
    SPRING_MOVEMENT,
    SPRING_RETREATS,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
    OrderKind,
    phase_name,
)
from ..errors import UserError
from ..games.game import Game
from ..games.vector_game import VectorGame
from ..players.asking import ask_players, begin_games
from ..players.negotiation import honest_seats, negotiate
from ..players.protocols import Player
from ..press.daide import messages_of
from ..press.deals import Offers
from ..press.table import Press, PressRules, TalkCounter, notes_of
from ..rules.map import Map, load_map
from ..scoring.outcomes import (
    FIGURES,
    Outcomes,
    check_year_limit,
    figure_ranges,
    figure_values,
)
from .par import par_of
from .statistics import summarize

BATCH = 1024  # games at once; bounds the memory a network needs for their decisions


class GameRecorder:
    """Keeps the orders of the first rows of a match, to write saved games afterwards."""

    def __init__(self, rows: int):
        self.rows = rows
        self._steps: list[tuple[np.ndarray, ...]] = []
        self._talk: dict[int, list[tuple[Offers, np.ndarray]]] = {}  # step -> what was said before

    def listen(self, press: Press) -> None:
        """Keep what powers say in the recorded games, to write it into their saved games."""
        press.log, press.logged = [], self.rows

    def note(self, games: VectorGame, orders: np.ndarray, press: Press | None = None) -> None:
        """Keep the orders (E, V) about to be given, and what was said in `press` before."""
        if press is not None and press.log:
            self._talk[len(self._steps)], press.log = press.log, []
        state, rows = games.state, slice(self.rows)
        retreating = np.isin(state.phase[rows, None], (SPRING_RETREATS, FALL_RETREATS))
        owner = np.where(retreating, state.dislodged_power[rows], state.unit_power[rows])
        building = (games.table.kind[orders[rows]] == BUILD) & (orders[rows] != NONE)
        builder = np.where(
            games.board.province_center == NONE,
            NONE,
            state.center_owner[rows][:, games.board.province_center],
        )
        owner = np.where(building, builder, owner)
        running = state.end[rows] == RUNNING
        self._steps.append(
            (running, state.year[rows].copy(), state.phase[rows].copy(), owner, orders[rows].copy())
        )

    def replay(
        self, games: VectorGame, think: Callable[[int, Game], dict] | None = None
    ) -> list[Game]:
        """Return the recorded games of a match that began with the opening position.

        Args:
            games: those that were played.
            think: asked before every phase, with row and Game, for the `thoughts` to keep with it.
        """
        replayed = [Game(games.map, games.max_years or None) for _ in range(self.rows)]
        texts = games.vocabulary.texts
        for step, (running, year, phase, owner, orders) in enumerate(self._steps):
            for row in np.flatnonzero(running):
                game = replayed[row]
                recorded = phase_name(year[row], phase[row])
                if game.phase != recorded:
                    raise RuntimeError(f"the replay of a game is in {game.phase}, not {recorded}")
                self._say(game, row, self._talk.get(step, []))
                for power, name in enumerate(game.powers):
                    mine = np.flatnonzero((owner[row] == power) & (orders[row] != NONE))
                    given = [texts[number] for number in orders[row, mine]]
                    game.submit(name, given, strict=False)
                thoughts = think(int(row), game) if think else {}
                game.adjudicate()
                if thoughts:
                    game.history[-1]["thoughts"] = thoughts
        return replayed

    @staticmethod
    def _say(game: Game, row: int, talk: list[tuple[Offers, np.ndarray]]) -> None:
        """Say in a game what was said in a row."""
        for offers, fates in talk:
            mine = np.flatnonzero(offers.game == row)
            said = list(messages_of(game.vector_game, offers.take(mine), fates[mine]))
            for sender, recipient, text in said:
                game.send(game.powers[sender], game.powers[recipient], text)


class Rescue:
    """Keeps the finished games of a match that breaks off: a server dies, or its user stops it.

    Attributes:
        cause: what ended the match early; None if nothing did.
        finished: (n,) the numbers of the games that had ended by then, from 0 on.
    """

    def __init__(self) -> None:
        self.cause: UserError | KeyboardInterrupt | None = None
        self.finished = np.zeros(0, np.int64)


class OrderCounter:
    """Counts the kinds of orders that one of a match's players gives in movement phases.

    Args:
        player: its number; it has one seat in each game, or all those of a team.
    """

    def __init__(self, player: int):
        self.player = player
        self.given = np.zeros(len(OrderKind), np.int64)
        self.bounced = 0
        # Of powers with allies: supports and convoys in all and for allies, moves in all and
        # against allies.
        self.among_allies = np.zeros(4, np.int64)

    def note(
        self,
        games: VectorGame,
        seat_player: np.ndarray,
        moved: np.ndarray,
        owner: np.ndarray | None,
    ) -> None:
        """Count the orders of games (E,) bool that have just played a movement phase.

        `owner` (E, C) are the owners of the centers before it, needed where there are teams.
        """
        state = games.state
        if games.map.teams.text:
            mine = (seat_player == self.player) & moved[:, None]
            nobody = np.zeros((len(mine), 1), bool)  # in the place of NONE, which is -1
            given = np.take_along_axis(np.hstack([mine, nobody]), state.last_power, 1)
            at = np.flatnonzero(given)
            self._note_allies(games, at, owner)
        else:
            seat = (seat_player == self.player).argmax(1).astype(np.int8)
            seat[~moved] = NONE - 1  # nobody's
            at = np.flatnonzero(state.last_power == seat[:, None])
        kinds = games.table.kind.take(state.last_order.take(at))
        self.given += np.bincount(kinds, minlength=len(OrderKind))
        self.bounced += np.count_nonzero(state.last_result.take(at) & BOUNCE)

    def _note_allies(self, games: VectorGame, at: np.ndarray, owner: np.ndarray) -> None:
        """Count which of the orders at the flat indices `at` (of (E, V)) are about allies."""
        board, table, state = games.board, games.table, games.state
        size = np.bincount(board.team)
        power, number = state.last_power.take(at), state.last_order.take(at)
        known = (size[board.team[power]] > 1) & (number != NONE)
        at, power, number = at[known], power[known], number[known]
        game, kind = at // len(board.terrain), table.kind[number]

        def is_ally(other: np.ndarray, who: np.ndarray) -> np.ndarray:
            other = np.where(other == board.num_powers, NONE, other)
            return (other != NONE) & (other != who) & (board.team[other] == board.team[who])

        helps = np.isin(kind, (SUPPORT_HOLD, SUPPORT_MOVE, CONVOY))
        there = board.location_province[table.other_location[number[helps]]]
        helped = is_ally(state.last_power[game[helps], there], power[helps])
        moves = np.isin(kind, (MOVE, MOVE_VIA))
        row, mover = game[moves], power[moves]
        goal = board.location_province[table.target[number[moves]]]
        order = state.last_order[row, goal]
        leaves = (order != NONE) & np.isin(table.kind[order], (MOVE, MOVE_VIA))
        stays = np.where(leaves, NONE, state.last_power[row, goal])
        center = board.province_center[goal]
        holder = np.where(center == NONE, NONE, owner[row, center])
        attacked = is_ally(stays, mover) | is_ally(holder, mover)
        self.among_allies += [helps.sum(), helped.sum(), moves.sum(), attacked.sum()]

    def shares(self) -> dict[str, float]:
        """Return the shares of the kinds in all orders, which add up to 1; and one of moves alone.

        `hold`, `move` (but not by convoy), `convoyed_move`, `support`, `convoy`; `bounced` is the
        share of the moves, with and without convoy, that have bounced. An illegal order is a hold.
        Where powers had allies: `ally_support`, the share of supports and convoys that are for an
        ally's unit; `ally_attack`, that of moves to where an ally's unit stays or has its center.
        """
        given = self.given
        counts = {
            "hold": given[HOLD],
            "move": given[MOVE],
            "convoyed_move": given[MOVE_VIA],
            "support": given[SUPPORT_HOLD] + given[SUPPORT_MOVE],
            "convoy": given[CONVOY],
        }
        shares = {name: float(count / max(1, given.sum())) for name, count in counts.items()}
        moves = counts["move"] + counts["convoyed_move"]
        shares |= {"bounced": float(self.bounced / max(1, moves))}
        helps, helped, moves, attacks = self.among_allies.tolist()
        if helps or moves:
            shares |= {
                "ally_support": helped / max(1, helps),
                "ally_attack": attacks / max(1, moves),
            }
        return shares


def play_games(
    games: VectorGame,
    seat_player: np.ndarray,
    players: Sequence[Player],
    recorder: GameRecorder | None = None,
    report: Callable[[float], None] | None = None,
    counter: OrderCounter | None = None,
    press: Press | None = None,
) -> Outcomes:
    """Play all games to their end.

    Args:
        games: made with auto_reset=False, and with a year limit unless the players surely end
            their games.
        seat_player: (E, P) integers, which of `players` plays each power of each game.
        players: each is asked once a step for all its decisions in all games.
        recorder: notes the orders of its rows.
        report: called after each step with how many games have been played; what is played of a
            running one counts, too, by its years.
        counter: counts a player's orders.
        press: of the games, if powers may talk before they order.

    Raises:
        ValueError: the arguments do not fit each other.
    """
    seat_player = np.asarray(seat_player)
    if games.auto_reset:
        raise ValueError("play_games needs a VectorGame with auto_reset=False")
    if seat_player.shape != (games.num_games, games.num_powers):
        raise ValueError(
            f"seat_player must be of shape ({games.num_games}, {games.num_powers}), "
            f"not {seat_player.shape}"
        )
    if not 0 <= seat_player.min() <= seat_player.max() < len(players):
        raise ValueError(f"seat_player must be 0..{len(players) - 1}")
    if press is not None and recorder is not None:
        recorder.listen(press)
    begin_games(games, players, np.arange(games.num_games))
    state = games.state
    while (state.end == RUNNING).any():
        decisions = games.decisions()
        who = seat_player[decisions.game, decisions.power]
        if press is None:
            orders = ask_players(games, decisions, players, who)
        else:
            negotiate(press, decisions, players, seat_player)
            honest = honest_seats(players, seat_player)
            bound = press.bound(decisions, honest)
            orders = ask_players(games, bound, players, who)
            press.correct(orders, bound, honest)
            press.judge(orders, decisions)
        if recorder is not None:
            recorder.note(games, orders, press)
        moving = (state.phase == SPRING_MOVEMENT) | (state.phase == FALL_MOVEMENT)
        moving &= state.end == RUNNING
        owner = state.center_owner.copy() if counter and games.map.teams.text else None
        games.step(orders)
        if counter is not None and moving.any():
            counter.note(games, seat_player, moving, owner)
        if report is not None:
            report(_played(games))
    return games.outcomes()


def _played(games: VectorGame) -> float:
    """Return how many games have been played, running ones in part."""
    state = games.state
    part = np.zeros(games.num_games)
    if games.max_years:
        years = state.year - games.board.first_year + 0.5 * (state.phase >= FALL_MOVEMENT)
        part = np.clip(years / games.max_years, 0, 0.999)
    return float(np.where(state.end == RUNNING, part, 1.0).sum())


def play_tables(
    game_map: Map,
    players: Sequence[Player],
    seats: np.ndarray,
    seed: int,
    max_years: int | None = None,
    threads: int | None = None,
    report: Callable[[float], None] | None = None,
    samples: int = 0,
    batch: int = BATCH,
    think: Callable[[int, Game], dict] | None = None,
    counter: OrderCounter | None = None,
    talk: TalkCounter | None = None,
    rescue: Rescue | None = None,
) -> tuple[Outcomes, list[Game]]:
    """Play games with given players at given powers, up to `batch` of them at once.

    Args:
        seats: (games, P) integers, which of `players` plays each power.
        samples: so many of the first games are returned as Games.
        think: of the number of such a game and the Game before each phase, returns the `thoughts`
            to keep with it.
        counter: counts a player's orders.
        talk: lets powers talk by its rules, and counts what they say.
        rescue: if the match breaks off when games have ended, these are returned as if they had
            been all, and it says which they are and why; without it the error is raised.

    The other arguments are those of `evaluate_player`.
    """
    max_years = game_map.max_years if max_years is None else max_years
    parts, kept = [], []
    for first in range(0, len(seats), batch):
        mine = seats[first : first + batch]
        games = VectorGame(
            game_map,
            len(mine),
            seed=int(np.random.SeedSequence([seed, first]).generate_state(1, np.uint64)[0]),
            max_years=max_years,
            threads=threads,
            auto_reset=False,
        )
        recorder = GameRecorder(max(0, min(samples - first, len(mine))))
        watch = None if report is None else lambda done, first=first: report(first + done)
        noted = recorder if recorder.rows else None
        press = None if talk is None else Press(games, *talk.rules)
        ended = np.arange(len(mine))
        try:
            found = play_games(games, mine, players, noted, watch, counter, press)
        except (UserError, KeyboardInterrupt) as error:
            ended = np.flatnonzero(games.state.end != RUNNING)
            if rescue is None or first + len(ended) == 0:
                raise
            rescue.cause = error
            rescue.finished = np.append(np.arange(first), first + ended)
            found = games.outcomes(ended)
        parts.append(found)
        if press is not None:
            talk.add(press, mine)
        ask = think and (lambda row, game, first=first: think(first + row, game))
        replayed = recorder.replay(games, ask)
        kept += [game for row, game in enumerate(replayed) if row in ended]
        if rescue is not None and rescue.cause is not None:
            break
    return Outcomes(*map(np.concatenate, zip(*parts))), kept


def by_side(
    names: Sequence[str], values: dict[str, np.ndarray], mine: np.ndarray, ranges: dict
) -> dict[str, dict]:
    """Return a player's figures with each power or team that it has played.

    Args:
        names: of these.
        values: (games, sides) of each figure.
        mine: (games, sides) bool, where the player sat.
        ranges: as for `summarize`.
    """
    return {
        name: summarize(
            {figure: values[figure][mine[:, side], side] for figure in FIGURES},
            np.full(mine[:, side].sum(), side),
            ranges,
        )
        for side, name in enumerate(names)
        if mine[:, side].any()
    }


def evaluate_player(
    game_map: str | Map,
    player: Player,
    against: Player,
    num_games: int,
    seed: int = 1,
    max_years: int | None = None,
    year_limit: str = "draw",
    threads: int | None = None,
    samples: int = 0,
    batch: int = BATCH,
    report: Callable[[float], None] | None = None,
    think: Callable[[Game, str], dict] | None = None,
    per_game: bool = False,
    press: PressRules | None = None,
    rescue: Rescue | None = None,
) -> tuple[dict, list[dict]]:
    """Play a player as every power equally often against copies of another.

    On a map with teams (`Map.with_teams`) it plays each team in turn, all powers of it.

    Args:
        game_map: a map's name or file, or a Map.
        player: the one whose results are tallied.
        against: plays every other power.
        num_games: rounded up to a multiple of the powers, or of the teams.
        seed: of the games; the same seed gives the same result whatever the threads.
        max_years: game years after which a game ends; None: the map's own.
        year_limit: `draw` or `truncate`.
        threads: of the games; None: as many as there are processors.
        samples: so many games are returned as saved games.
        batch: games played at once.
        report: called now and then with how many games have been played, running ones in part.
        think: of a Game and the player's power, returns the `thoughts` that the samples keep.
        per_game: whether the result has `per_game`, too: a dictionary for each game with `game`
            (from 1 on), the player's `power` (or `team`), and the figures.
        press: how powers may talk before they order; the result then has `press`, which is
            TalkCounter.figures.
        rescue: keeps the finished games if the match breaks off, see `play_tables`; the result is
            then of these alone, except that `orders` and `press` have what others began with.

    Returns:
        The result as `evaluate --json` writes it, and the saved games; their `players` are the
        names of those who played each power. The result's `orders` are OrderCounter.shares of the
        player. With teams, `overall` and `by_team` are the figures of its team, and `by_power`
        those of each of its powers by itself. Where it is known, `par` is what `against` wins in
        each seat among its like (par.py).

    Raises:
        UserError: a number is out of range.
    """
    game_map = load_map(game_map)
    max_years = game_map.max_years if max_years is None else max_years
    if num_games < 1 or max_years < 1:
        raise UserError("an evaluation needs at least one game, and at least one year")
    check_year_limit(year_limit)
    teams = game_map.teams
    sides = len(teams.names)  # as many as powers without teams
    num_games = -(-num_games // sides) * sides
    seat = np.arange(num_games) % sides  # of the player; with one opponent nothing is to be drawn
    names = [teams.names[side] for side in seat]
    seats = (teams.of_power != seat[:, None]).astype(np.int8)  # 0: the player's
    own = [[p for p, who in zip(game_map.powers, row) if not who] for row in seats]
    counter, talk = OrderCounter(0), None if press is None else TalkCounter(press)
    outcomes, sampled = play_tables(
        game_map,
        (player, against),
        seats,
        seed,
        max_years,
        threads,
        report,
        samples,
        max(sides, batch // sides * sides),
        think and (lambda row, game: {k: v for p in own[row] for k, v in think(game, p).items()}),
        counter,
        talk,
        rescue,
    )
    played = np.arange(num_games) if rescue is None or rescue.cause is None else rescue.finished
    seat, seats = seat[played], seats[played]
    every = figure_values(outcomes, game_map.board.victory_centers, year_limit)
    of_sides = figure_values_of_teams(outcomes, game_map, year_limit) if teams.text else every
    values = {name: of_sides[name][np.arange(len(seat)), seat] for name in FIGURES}
    saved_games = []
    for row, game in zip(played.tolist(), sampled):
        game.id = f"{seed}-{row}-{names[row]}"
        who = {name: (player if name in own[row] else against).name for name in game.powers}
        saved_games.append(game.to_saved_game() | {"players": who} | notes_of(press))

    ranges = team_ranges(game_map, max_years)
    result = {
        "map": game_map.name,
        "player": player.name,
        "against": against.name,
        "games": len(played),
        "seed": seed,
        "max_years": max_years,
        "year_limit": year_limit,
        "greedy": bool(getattr(player, "greedy", False)),
        "overall": summarize(values, seat, ranges),
        "by_power": by_side(game_map.powers, every, seats == 0, map_ranges(game_map, max_years)),
        "orders": counter.shares(),
    }
    if teams.text:
        mine = np.arange(sides) == seat[:, None]
        result |= named_teams(game_map) | {"by_team": by_side(teams.names, of_sides, mine, ranges)}
    par = par_of(game_map, against.name, max_years, year_limit) if talk is None else None
    if par is not None:
        result["par"] = par._asdict()
    if talk is not None:
        result["press"] = talk.figures()
    if per_game:
        rows = zip(played.tolist(), *(values[figure].tolist() for figure in FIGURES))
        columns = ("game", "team" if teams.text else "power", *FIGURES)
        result["per_game"] = [
            dict(zip(columns, (number + 1, names[number], *row))) for number, *row in rows
        ]
    return result, saved_games


def figure_values_of_teams(
    outcomes: Outcomes, game_map: Map, year_limit: str = "draw"
) -> dict[str, np.ndarray]:
    """Return FIGURES of every team of a map in every finished game, (E, teams) float64 each."""
    teams = game_map.teams
    victory_centers = teams.victory_centers or game_map.board.victory_centers
    return figure_values(outcomes.of_teams(teams.of_power), victory_centers, year_limit)


def named_teams(game_map: Map) -> dict[str, str | int]:
    """Return what a result says of a map's teams."""
    return {"teams": game_map.teams.text, "team_victory": game_map.teams.victory_centers}


def map_ranges(game_map: Map, max_years: int) -> dict[str, tuple[float, float]]:
    """Return what outcomes.figure_ranges says of games on a map."""
    board = game_map.board
    centers = len(board.center_province)
    return figure_ranges(len(game_map.powers), centers, board.victory_centers, max_years)


def team_ranges(game_map: Map, max_years: int) -> dict[str, tuple[float, float]]:
    """Return the same of a map's teams, or of its powers if it has none."""
    board, teams = game_map.board, game_map.teams
    centers, victory = len(board.center_province), teams.victory_centers or board.victory_centers
    return figure_ranges(len(teams.names), centers, victory, max_years)
