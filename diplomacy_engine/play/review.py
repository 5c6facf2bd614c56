"""What went wrong in a game: each decision beside better orders, with its price and the reasons."""

import contextlib
import copy
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from .._suggest import listed
from ..constants import BOUNCE, DISLODGED, NONE, RUNNING, phase_kind
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..players.advice import ordering
from ..players.asking import ask_players
from ..players.bots import make_bot
from ..players.policy.files import policies_of
from ..players.protocols import Player
from ..players.search.judge import SUBMITTED, SURE, Judge, JudgeSettings, Verdicts, make_judge
from ..replays.replay import Replay
from ..replays.reviewed import review_facts
from ..rules.map import MAP_NAMES, Map, load_map
from ..rules.notation import in_words, order_words, unit_of
from ..textgame.causes import played_orders, result_words
from ..textgame.game import Game
from ..textgame.position import load_state
from ..textgame.saved_game import OWN_END, in_disorder
from .file import rebuild

GAMES = 32  # that are played for an outlook
AT_ONCE = 12  # phases that are judged in one go
# Mark -> points that orders must have lost, and for the first two the judge's own orders saved;
# calibrated in docs/playing.md.
MARKS = {"??": 15.0, "?": 7.5, "?!": 3.0}
BETTER = 3.0  # points by which orders marked ! are ahead of the judge's own
WORST = 5  # decisions of a power that are listed first
FORGIVING = 15.0  # points of loss after which a decision counts as 37 % accurate
LIKELY = 0.25  # difference in probability that is told as a reason


class Outlook(NamedTuple):
    games: int  # that a policy has played on from a position, for all powers
    won: int  # of them by the power outright, or by its team
    centers: float  # that the power had at their ends, on average
    error: float  # standard error of these


def outlook(
    game: Game,
    players: Mapping[str, Player],
    wanted: Callable[[], bool] = lambda: True,
    orders: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Outlook] | None:
    """Return power -> how a game may end; None once it is not `wanted` any more.

    `players` play on for the powers; `orders` are given now by some of these. What others have
    submitted stays their secret.
    """
    rows, games = np.arange(GAMES), game.vector_game.spare(GAMES)
    games.copy_from(game.vector_game, np.zeros(GAMES, int), rows)
    games.seed_games(rows, rows.astype(np.uint64))
    copies = {id(player): _own_draws(player) for player in players.values()}
    playing, number = list(copies.values()), {one: n for n, one in enumerate(copies)}
    seated = np.array([number[id(players[power])] for power in game.powers])
    trial, orders = game.copy(), orders or {}
    left_out = [game.map.power_index[name] for name in orders]
    for power in game.powers:
        trial.withdraw(power)
    for power, texts in orders.items():
        trial.submit(power, texts)
    fixed = trial.order_numbers()
    while (games.state.end == RUNNING).any():
        if not wanted():
            return None
        decisions = games.decisions()
        decisions = decisions.take(~np.isin(decisions.power, left_out))
        all_orders = ask_players(games, decisions, playing, seated[decisions.power])
        all_orders[:, list(fixed)] = list(fixed.values())
        games.step(all_orders)
        left_out, fixed = [], {}
    outcomes, team = games.outcomes(), games.board.team
    won = (outcomes.winner != NONE)[:, None] & outcomes.winners(team)
    errors = outcomes.centers.std(0, ddof=1) / np.sqrt(GAMES)
    means = outcomes.centers.mean(0).tolist()
    figures = zip(game.powers, won.sum(0).tolist(), means, errors.tolist())
    return {power: Outlook(GAMES, *row) for power, *row in figures}


def _own_draws(player: Player) -> Player:
    """Return a player without its search, that is asked alone."""
    player = copy.copy(getattr(getattr(player, "own", None), "policy", player))
    player.group = None
    return player


class Reviewed(NamedTuple):
    """One decision of a power. Worths are points: 100 times the `sum_of_squares` to be expected."""

    phase: str
    power: str
    orders: list[str]
    best: list[str]  # the same where nothing is better by a standard error
    worth: float
    best_worth: float
    own_worth: float  # of the judge's likeliest orders
    loss: float
    uncertainty: float  # standard error of the loss
    mark: str
    reasons: list[str]
    hindsight: float  # points that the best orders would have brought more in this very game
    in_this_game: str  # which centers that would have been, in words

    def severity(self) -> tuple[float, float]:
        """Return by what decisions are ranked: the greatest is the worst."""
        return avoidable(self.loss, self.worth - self.own_worth), self.loss


class Reviews:
    """The review of a saved game, to be iterated over: lists of Reviewed as they are ready.

    Attributes:
        total, done: decisions to review, and those that are.
        left_out: phase, power and reason of what is not reviewed.
        judge: who judges.
    """

    def __init__(
        self,
        saved: Mapping,
        player: object,
        game_map: Map | str | None = None,
        powers: Sequence[str] = (),
        settings: JudgeSettings | None = None,
        max_years: int | None = None,
    ):
        """See make_judge for the player; `powers`: whose decisions (none: all). `max_years` (None:
        no limit, or what the game's end shows). UserError: no such power, or no judge."""
        game = Game.from_saved_game(saved, game_map)
        self.map, self.left_out = game.map, []
        self.powers = [game.map.powers[game.map.power_number(name)] for name in powers]
        self.powers = self.powers or game.powers
        max_years = game.max_years = max_years or _year_limit(saved, game)
        self._history = game.history
        games = VectorGame(
            game.map, max(1, len(game.history)), max_years=max_years or 0, auto_reset=False
        )
        self._games, self._orders = games, games.new_orders()
        self._wanted: set[tuple[int, int]] = set()  # phase number, power
        for number in range(len(game.history)):
            self._read(game, number)
        self.total, self.done = len(self._wanted), 0
        self.judge: Judge = make_judge(player, games, settings)

    def _read(self, game: Game, number: int) -> None:
        """Take over one phase's position and orders, or say why not."""
        phase = self._history[number]
        name, orders, games = phase["name"], phase["orders"], self._games
        last = number == len(self._history) - 1
        if last and not phase["results"] and (game.is_agreed or game.conceded):
            return  # it was not played
        ordered = any(orders.get(power) for power in game.powers)
        try:
            built = rebuild(game, number)
            deciding = {built.powers[p] for p in built.decisions().power}.intersection(self.powers)
            deciding = {p for p in deciding if not in_disorder(phase["state"], p)}
            if not deciding:
                return
            if not ordered and not phase["results"] and phase_kind(name) == "movement":
                return self._leave_out(name, None, "no orders are known")
            for power in game.powers:
                for reason in built.submit(power, orders.get(power) or [], strict=False):
                    if power in deciding:
                        self._leave_out(name, power, f"not understood: {reason}")
        except UserError as error:
            return self._leave_out(name, None, str(error))
        games.copy_from(built.vector_game, np.zeros(1, int), np.array([number]))
        for v, order_number in built.order_numbers().items():
            self._orders[number, v] = order_number
        self._wanted |= {(number, game.map.power_index[power]) for power in deciding}

    def _leave_out(self, phase: str, power: str | None, reason: str) -> None:
        self.left_out.append({"phase": phase, "power": power, "reason": reason})

    def __iter__(self) -> Iterator[list[Reviewed]]:
        numbers = sorted({number for number, _ in self._wanted})
        for first in range(0, len(numbers), AT_ONCE):
            part = np.array(numbers[first : first + AT_ONCE])
            decisions = self._games.decisions(part)
            wanted = [pair in self._wanted for pair in zip(decisions.game, decisions.power)]
            decisions = decisions.take(np.array(wanted, bool))
            if decisions.count:
                verdicts = self.judge.judge(self._games, decisions, self._orders)
                yield [
                    self._reviewed(verdicts, d, int(decisions.game[d]), int(decisions.power[d]))
                    for d in range(decisions.count)
                ]
            self.done += decisions.count
        self.done = self.total  # also if some had no choice

    def _reviewed(self, verdicts: Verdicts, d: int, number: int, power: int) -> Reviewed:
        phase, name = self._history[number], self.map.powers[power]
        best, loss = int(verdicts.best[d]), 100 * float(verdicts.loss[d])
        error, worth = 100 * float(verdicts.error[d]), 100 * float(verdicts.worth[d])
        edge, edge_error = 100 * verdicts.edge[d]
        mark = mark_of(loss, error, edge, edge_error)
        lists = [self._texts(verdicts.candidates[d, k]) for k in (SUBMITTED, best)]
        reasons, in_this_game = [], ""
        if "?" in mark:
            reasons = self._faults(phase, name, *lists)
            reasons += self._chances(verdicts, d, number, power, best)
            in_this_game = self._in_this_game(verdicts, d, number, power, best)
        hindsight = 100 * float(verdicts.hindsight[d, best] - verdicts.hindsight[d, SUBMITTED])
        return Reviewed(
            phase=phase["name"],
            power=name,
            orders=lists[0],
            best=lists[1],
            worth=round(worth, 1),
            best_worth=round(worth + loss, 1),
            own_worth=round(worth - edge, 1),
            loss=round(loss, 1),
            uncertainty=round(error, 1),
            mark=mark,
            reasons=reasons,
            hindsight=round(hindsight, 1),
            in_this_game=in_this_game,
        )

    def _texts(self, orders: np.ndarray) -> list[str]:
        return [self._games.vocabulary.texts[number] for number in orders[orders != NONE]]

    def _faults(
        self, phase: Mapping, power: str, submitted: Sequence[str], best: Sequence[str]
    ) -> list[str]:
        """Return what was wrong with orders whatever the others did, as it was in this game."""
        games = VectorGame(self.map, 1, threads=1, auto_reset=False)
        load_state(games, phase["state"])
        lines, causes = played_orders(games, phase["orders"], result_words(phase["results"]))
        mine, faults = lines.get(power, []), []
        units = {line.unit for line in mine}
        for line in mine:
            unit, words = order_words(self.map, line.text)
            own = units.intersection(causes.get(line.unit, {}).get("bounce", ()))
            if own:
                others = [order_words(self.map, f"{one} H")[0] for one in sorted(own)]
                faults.append(f"{unit}: {words} bounced with your own {listed(others)}")
            elif "void" in line.words:
                faults.append(f"{unit}: {words} had no effect: {in_words(self.map, line.said)}")
        moving = phase_kind(phase["name"]) == "movement"
        ordered = {unit_of(text) for text in submitted}
        for text in best if moving else ():
            if unit_of(text) not in ordered and not text.endswith(" H"):
                faults.append(f"{order_words(self.map, text)[0]} was given no order")
        for text in () if moving else best:
            unit = unit_of(text)
            if text.endswith(" B") and len(submitted) < len(best):
                faults.append(f"only {len(submitted)} of {len(best)} builds were ordered")
                break
            if " R " in text and not any(one.startswith(f"{unit} R ") for one in submitted):
                name, words = order_words(self.map, text)
                faults.append(f"{name} was disbanded, and could {words}")
        return faults

    def _chances(self, verdicts: Verdicts, d: int, number: int, power: int, best: int) -> list[str]:
        """Return what the submitted orders do worse than the best against the samples, as
        adjudicating them all shows: moves that never succeed, units and centers."""
        places = verdicts.places[d]
        submitted, better = (verdicts.samples[d].copy() for _ in range(2))
        for orders, k in ((submitted, SUBMITTED), (better, best)):
            orders[:, places] = verdicts.candidates[d, k, places]
        others = [p for p in range(self._games.num_powers) if p != power]
        worse, after = self._after(number, submitted), self._after(number, better)
        total, chances = len(submitted), []
        for words, winner in (("you win", [power]), ("another power wins", others)):
            one, other = (np.isin(games.state.winner, winner).mean() for games in (worse, after))
            if abs(one - other) >= LIKELY:
                chances.append(
                    f"{words} at once in {one:.0%}, with the better orders in {other:.0%}"
                )
        if phase_kind(self._history[number]["name"]) == "movement":
            failed = (worse.state.last_result & BOUNCE > 0).all(0)
            changed = verdicts.candidates[d, SUBMITTED] != verdicts.candidates[d, best]
            for v in np.flatnonzero(failed & places & changed):
                unit, words = order_words(self.map, self._games.vocabulary.texts[submitted[0, v]])
                chances.append(f"{unit}: {words} fails against all {total} samples of their orders")
            for v, (one, other) in self._largest(
                *((games.state.last_result & DISLODGED > 0).mean(0) for games in (after, worse)),
                places,
            ):
                unit = self._games.state
                text = self.map.unit_text(unit.unit_kind[number, v], unit.unit_location[number, v])
                name = order_words(self.map, f"{text} H")[0]
                chances.append(
                    f"{name} is dislodged in {other:.0%}, with the better orders in {one:.0%}"
                )
        shares = (_holds(games, power).mean(0) for games in (worse, after))
        for v, (one, other) in self._largest(*shares):
            chances.append(
                f"you hold {self._name(v)} in {one:.0%}, with the better orders in {other:.0%}"
            )
        return chances

    def _largest(
        self, low: np.ndarray, high: np.ndarray, where: np.ndarray | bool = True
    ) -> list[tuple[int, tuple[float, float]]]:
        """Return the two provinces with the largest differences, and their shares."""
        apart = np.where(where, high - low, 0)
        order = [int(v) for v in np.argsort(-apart, kind="stable")[:2] if apart[v] >= LIKELY]
        return [(v, (float(low[v]), float(high[v]))) for v in order]

    def _after(self, number: int, orders: np.ndarray) -> VectorGame:
        after = self._games.spare(len(orders))
        after.copy_from(self._games, np.full(len(orders), number), np.arange(len(orders)))
        after.step(np.ascontiguousarray(orders))
        return after

    def _in_this_game(self, verdicts: Verdicts, d: int, number: int, power: int, best: int) -> str:
        """Tell which centers the better orders would have brought or saved in this very game."""
        rows, places = np.repeat(self._orders[[number]], 2, 0), verdicts.places[d]
        rows[1, places] = verdicts.candidates[d, best, places]
        after = self._after(number, rows)
        (mine, better), had = _holds(after, power), _holds(self._games, power)[number]
        parts = []
        for words, centers in (("taken", better & ~mine & ~had), ("kept", better & ~mine & had)):
            names = [self._name(v) for v in np.flatnonzero(centers)]
            parts += [f"{words} {listed(names)}"] if names else []
        return f"In this game, they would have {' and '.join(parts)}." if parts else ""

    def _name(self, v: int) -> str:
        return self.map.province_names[self.map.provinces[v]]


def _year_limit(saved: Mapping, game: Game) -> int | None:
    """Return a game's most years, as its file says or its end at a limit shows; None: no limit."""
    play = saved.get("play")
    if isinstance(play, Mapping) and isinstance(play.get("max_years"), int):
        return play["max_years"]
    name, rules = game.history[-1]["name"] if game.history else "", saved.get("rules")
    own = isinstance(rules, list) and OWN_END in rules  # in others' games a draw is agreed
    if not own or not game.is_draw or game.is_agreed or name[:1] != "F":
        return None
    return int(name[1:-1]) - int(game.map.board.first_year) + 1


def _holds(games: VectorGame, power: int) -> np.ndarray:
    """Return which centers a power stands in, or owns without anybody in them, (E, V) bool."""
    state, centers = games.state, games.board.center_province
    owned = np.zeros(state.unit_power.shape, bool)
    owned[:, centers] = state.center_owner == power
    standing = np.zeros(len(owned[0]), bool)
    standing[centers] = True
    alone = owned & (state.unit_power == NONE)
    return (standing & (state.unit_power == power)) | alone


def mark_of(loss: float, error: float, edge: float, edge_error: float) -> str:
    """Return the mark of a decision by its loss and what it is ahead of the judge's own orders.

    What these would have lost, too, was a chance that is hard to see: it counts as `?!`.
    """
    if loss <= SURE * error:
        return "!" if edge >= BETTER and edge > SURE * edge_error else ""
    if loss < MARKS["?!"]:
        return ""
    saved = avoidable(loss, edge) if -edge > SURE * edge_error else 0.0
    return next((mark for mark, points in MARKS.items() if saved >= points), "?!")


def avoidable(loss: float, edge: float) -> float:
    """Return how much of a loss the judge's own orders would have saved."""
    return min(loss, max(0.0, -edge))


def accuracy(losses: Sequence[float]) -> float:
    """Return how accurate decisions with such losses are on average, 0 to 100."""
    return round(100 * float(np.mean(np.exp(-np.array(losses) / FORGIVING))), 1)


def summary(decisions: Sequence[Reviewed], left_out: Sequence[dict]) -> dict:
    """Return a review as `--json` writes it."""
    powers = {}
    for power in dict.fromkeys(one.power for one in decisions):
        mine = [one for one in decisions if one.power == power]
        marks = {mark: sum(one.mark == mark for one in mine) for mark in ("!", "?!", "?", "??")}
        powers[power] = {"accuracy": accuracy([one.loss for one in mine]), "marks": marks}
    records = [one._asdict() for one in decisions]
    for one in records:
        del one["own_worth"], one["reasons"], one["hindsight"], one["in_this_game"]
    return {"decisions": records, "powers": powers, "left_out": list(left_out)}


def page_facts(replay: Replay, reviews: Reviews, decisions: Sequence[Reviewed]) -> dict:
    """Return what the pages show of a review, which may still be under way."""
    record = summary(decisions, reviews.left_out)
    judge, records = reviews.judge.name, [one._asdict() for one in decisions]
    if judge == "lookahead":
        judge += ", which counts centers within reach, for want of a trained policy"
    facts = review_facts(replay, records, judge, reviews.done, reviews.total)
    return facts | {"powers": record["powers"], "left_out": record["left_out"]}


class ReviewJob:
    """A review that a thread computes. `reviews` is None until it has begun; `trouble`: why it
    could not go on."""

    def __init__(self) -> None:
        self.reviews: Reviews | None = None
        self.decisions: list[Reviewed] = []
        self.trouble = ""


def begin_review(
    game: Game, judges: Sequence[str], load: Callable[[str], object], powers: Sequence[str]
) -> ReviewJob:
    """Begin to review powers' decisions (none: all) by the first of `judges` that can be one, else
    by lookahead."""
    job, saved, game_map = ReviewJob(), game.to_saved_game(), game.map

    def begun(player: object) -> Reviews:
        return Reviews(saved, player, game_map, powers, None, game.max_years)

    def work() -> None:
        try:
            for name in judges:
                with contextlib.suppress(UserError):
                    job.reviews = begun(ordering(load(name)))
                    break
            job.reviews = job.reviews or begun(make_bot("lookahead"))
            for part in job.reviews:
                job.decisions += part
        except Exception as error:  # a checkpoint's script is the user's own
            job.trouble = f"{type(error).__name__}: {error}"

    threading.Thread(target=work, daemon=True).start()
    return job


def judging_policy(game_map: Map) -> str:
    """Return the name of who judges games of a map if nobody is named: its best policy from
    self-play, which plays no single opponent's weakness; `lookahead` without one."""
    trained = [name for name in policies_of(game_map.name) if "dumbbot" not in name]
    own = game_map.name not in MAP_NAMES or game_map.hash != load_map(game_map.name).hash
    return trained[0] if trained and not own and find_spec("torch") else "lookahead"
