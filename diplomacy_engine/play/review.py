"""What went wrong in a game: each decision beside better orders, with its price and the reasons."""

import contextlib
import copy
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from .._suggest import counted, listed
from ..constants import DISLODGED, NONE, RUNNING, phase_kind
from ..errors import UserError
from ..games.vector_game import VectorGame
from ..pictures.board import phase_title
from ..players.advice import ordering
from ..players.asking import ask_players
from ..players.bots import make_bot
from ..players.policy.files import policies_of
from ..players.policy.player import PolicyPlayer
from ..players.protocols import Player
from ..players.search.judge import BETTER, GIVEN, SURE, JudgeSettings, Verdicts, held, make_judges
from ..replays.replay import Replay
from ..replays.reviewed import review_facts
from ..rules.map import Map
from ..rules.notation import unit_of
from ..rules.order_words import in_words, order_words
from ..textgame.causes import played_orders, result_words
from ..textgame.game import Game
from ..textgame.position import load_state
from ..textgame.saved_game import OWN_END, in_disorder
from .file import rebuild
from .people import Opening, people_of

GAMES = 32  # that are played for an outlook
AT_ONCE = 12  # phases that are judged in one go
# Mark -> what orders must have lost, in % of what was left; calibrated in docs/review.md.
MARKS = {"??": 35.0, "?": 18.0, "?!": 8.0}
MUCH = 20.0  # % of what was left; better orders that lose so much in hindsight give no mark
WORST = 5  # decisions of a power that are listed first
LIKELY, FEWER = 0.25, 0.3  # differences in probability, and in centers, that are told as a reason
HOPELESS = 1.0  # points of worth
# Fields of Reviewed that `--json` leaves out.
OF_PAGES = "random_loss", "reasons", "opening", "hindsight", "in_this_game"


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
        trial.submit(power, list(texts))
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
    if isinstance(player, PolicyPlayer):
        player.group = None
    return player


class Reviewed(NamedTuple):
    """One decision of a power. Worths are 100 times the expected `sum_of_squares`.

    Worth, centers and survival (in %) are the expected ones `Judges.years` later. A loss is the
    share, in %, of worth and of centers with the better orders that the given orders lose, after
    the next movement phase and `Judges.years` later: the mean of these four.
    """

    phase: str
    power: str
    orders: list[str]
    best: list[str]  # the same where nothing is better by a standard error
    worth: float
    best_worth: float
    centers: float
    best_centers: float
    survival: float
    best_survival: float
    loss: float
    uncertainty: float  # standard error of the loss
    of_judges: list[float]  # loss by each judge
    random_loss: float  # of any legal orders
    mark: str
    reasons: list[str]  # the best one first
    opening: str  # how often people play these orders, in words
    hindsight: float  # loss against what the others did order, in this very game
    in_this_game: str  # which centers the best orders would have brought there, in words


class Reviews:
    """The review of a saved game. Iterating yields lists of Reviewed as they are ready.

    Attributes:
        total, done: number of decisions to review, and reviewed so far.
        left_out: phase, power and reason of the decisions that are not reviewed.
        judges: the Judges.
        years: game years after which centers and survival are counted.
    """

    def __init__(
        self,
        saved: Mapping,
        players: Sequence[Player],
        game_map: Map | str | None = None,
        powers: Sequence[str] = (),
        settings: JudgeSettings | None = None,
    ):
        """See make_judges for the players; `powers` are those to review (none: all). UserError: no
        such power, or no judge."""
        game = Game.from_saved_game(saved, game_map)
        years = game.rules.max_years or _year_limit(saved, game)
        game.change_rules(press=None, max_years=years)
        self.map, self.left_out = game.map, []
        self.powers = [game.map.powers[game.map.power_number(name)] for name in powers]
        self.powers = self.powers or game.powers
        self._history, self._people = game.history, people_of(game.map)
        games = VectorGame(game.rules, max(1, len(game.history)), auto_reset=False)
        self._games, self._orders = games, games.new_orders()
        self._wanted: set[tuple[int, int]] = set()  # phase number, power
        for number in range(len(game.history)):
            self._read(game, number)
        self.total, self.done = len(self._wanted), 0
        self.judges = make_judges(players, games, settings, self._people.worth)
        self.years = self.judges.years(games)

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
        built.history = []  # judges look at positions alone
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
                sides = list(zip(decisions.game.tolist(), decisions.power.tolist()))
                openings = [
                    self._people.opening(self._history, number, self.map.powers[p])
                    for number, p in sides
                ]
                popular = np.array([one.popular for one in openings])
                verdicts = self.judges.judge(self._games, decisions, self._orders, popular)
                yield [
                    self._reviewed(verdicts, d, *sides[d], one) for d, one in enumerate(openings)
                ]
            self.done += decisions.count
        self.done = self.total  # also if some had no choice

    def _reviewed(
        self, verdicts: Verdicts, d: int, number: int, power: int, opening: Opening
    ) -> Reviewed:
        phase, name = self._history[number], self.map.powers[power]
        loss, error = 100 * float(verdicts.loss[d]), 100 * float(verdicts.error[d])
        lists = [self._texts(orders) for orders in verdicts.orders[d]]
        hindsight = 100 * float(verdicts.hindsight[d])
        mark = mark_of(loss, error, 100 * verdicts.of_judges[d]) if hindsight > -MUCH else ""
        reasons: list[tuple[float, str]] = []
        if "?" in mark:
            reasons = self._faults(phase, name, *lists)
            reasons += self._chances(verdicts, d, number, power)
            reasons.sort(key=lambda reason: -reason[0])
            mark = mark if reasons else ""
        figures = np.stack([verdicts.worth[d], verdicts.held[d].sum(1), verdicts.alive[d]])
        worth, centers, survival = (figures * [[100], [1], [100]]).round(1).tolist()
        return Reviewed(
            phase=phase["name"],
            power=name,
            orders=lists[GIVEN],
            best=lists[BETTER],
            worth=worth[GIVEN],
            best_worth=worth[BETTER],
            centers=centers[GIVEN],
            best_centers=centers[BETTER],
            survival=survival[GIVEN],
            best_survival=survival[BETTER],
            loss=round(loss, 1) if loss > error else 0.0,
            uncertainty=round(error, 1),
            of_judges=np.round(100 * verdicts.of_judges[d], 1).tolist(),
            random_loss=round(100 * float(verdicts.random_loss[d]), 1),
            mark=mark,
            reasons=[text for _, text in reasons],
            opening=opening.words(),
            hindsight=round(hindsight, 1),
            in_this_game=self._in_this_game(verdicts, d, number, power) if "?" in mark else "",
        )

    def _texts(self, orders: np.ndarray) -> list[str]:
        return [self._games.vocabulary.texts[number] for number in orders[orders != NONE]]

    def _faults(
        self, phase: Mapping, power: str, submitted: Sequence[str], best: Sequence[str]
    ) -> list[tuple[float, str]]:
        """Return the faults of orders that do not depend on the others' orders, each with its
        weight."""
        games = VectorGame(self.map, 1, threads=1, auto_reset=False)
        load_state(games, phase["state"])
        lines, causes = played_orders(games, phase["orders"], result_words(phase["results"]))
        mine, faults = lines.get(power, []), []
        units = {line.unit for line in mine}
        for line in mine:
            if line.text in best:
                continue
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
        return [(LIKELY, fault) for fault in faults]

    def _chances(
        self, verdicts: Verdicts, d: int, number: int, power: int
    ) -> list[tuple[float, str]]:
        """Return the disadvantages of the submitted orders against the better ones, from
        adjudicating all samples and from playing on, each with its weight."""
        places, chances = verdicts.places[d], []
        worse, after = (
            self._after(number, np.where(places, own, verdicts.samples[d]))
            for own in verdicts.orders[d]
        )
        others = [p for p in range(self._games.num_powers) if p != power]
        for words, winner in (("You win", [power]), ("Another power wins", others)):
            one, other = (np.isin(games.state.winner, winner).mean() for games in (worse, after))
            if abs(one - other) >= LIKELY:
                text = f"{words} at once in {one:.0%}, with the better orders in {other:.0%}"
                chances.append((1 + abs(one - other), text))
        if phase_kind(self._history[number]["name"]) == "movement":
            low, high = (g.state.last_result & DISLODGED > 0 for g in (after, worse))
            for v, (one, other) in self._largest(low.mean(0), high.mean(0), places):
                unit = self._games.state
                text = self.map.unit_text(unit.unit_kind[number, v], unit.unit_location[number, v])
                name = order_words(self.map, f"{text} H")[0]
                text = f"{name} is dislodged in {other:.0%}, with the better orders in {one:.0%}"
                chances.append((other - one, text))
        shares = (held(games, np.full(games.num_games, power)).mean(0) for games in (worse, after))
        for c, (one, other) in self._largest(*shares):
            text = f"You hold {self._name(c)} in {one:.0%}, with the better orders in {other:.0%}"
            chances.append((other - one, text))
        worse_held, better_held = verdicts.held[d]
        later, years = "with the better orders in", f"{counted(self.years, 'year')} later you hold"
        sure = np.where(
            better_held - worse_held > SURE * verdicts.held_error[d], better_held, worse_held
        )
        largest = self._largest(worse_held, sure)
        for c, (one, other) in largest:
            text = f"{years} {self._name(c)} in {one:.0%}, {later} {other:.0%}"
            chances.append(((other - one) / 2, text))
        apart = float((better_held - worse_held).sum())
        if not largest and apart >= FEWER:
            most = [self._name(c) for c in np.argsort(worse_held - better_held, kind="stable")[:2]]
            chances.append((0.0, f"{years} {apart:.1f} centers fewer, most often {listed(most)}"))
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

    def _in_this_game(self, verdicts: Verdicts, d: int, number: int, power: int) -> str:
        """Tell which centers the better orders would have brought or saved in this very game."""
        rows = np.where(verdicts.places[d], verdicts.orders[d], self._orders[number])
        mine, better = held(self._after(number, rows), np.full(2, power))
        now = self._games.spare(1)
        now.copy_from(self._games, np.array([number]), np.zeros(1, int))
        (had,) = held(now, np.array([power]))
        parts = []
        for words, centers in (("taken", better & ~mine & ~had), ("kept", better & ~mine & had)):
            names = [self._name(c) for c in np.flatnonzero(centers).tolist()]
            parts += [f"{words} {listed(names)}"] if names else []
        return f"In this game, they would have {' and '.join(parts)}." if parts else ""

    def _name(self, center: int) -> str:
        province = self._games.board.center_province[center]
        return self.map.province_names[self.map.provinces[province]]


def _year_limit(saved: Mapping, game: Game) -> int | None:
    """Return a game's most years as its end at a limit shows; None: no limit."""
    name, rules = game.history[-1]["name"] if game.history else "", saved.get("rules")
    own = isinstance(rules, list) and OWN_END in rules  # in others' games a draw is agreed
    if not own or not game.is_draw or game.is_agreed or name[:1] != "F":
        return None
    return int(name[1:-1]) - int(game.map.board.first_year) + 1


def mark_of(loss: float, error: float, of_judges: np.ndarray) -> str:
    """Return the mark of a decision by its loss, with the standard error, and the loss by each of J
    judges: ?! unless all agree on its sign, and none if one is sure of the other."""
    against = (-np.sign(loss) * of_judges).max()
    if abs(loss) <= SURE * error or against > error * np.sqrt(len(of_judges)):
        return ""
    if loss < 0:
        return "!" if -loss >= MARKS["?"] and against < 0 else ""
    mark = next((mark for mark, least in MARKS.items() if loss >= least), "")
    return mark if against < 0 else mark and "?!"


def accuracy(decisions: Sequence[Reviewed]) -> float:
    """Return how accurate decisions are: 100 if they lose nothing, 0 if as much as any orders."""
    lost = sum(one.loss for one in decisions)
    most = sum(max(one.loss, one.random_loss) for one in decisions)
    return round(100 * (1 - lost / most), 1) if most > 0 else 100.0


def losing_since(decisions: Sequence[Reviewed]) -> str:
    """Return the phase from which on no orders of a power helped any more; "": there is none."""
    since = ""
    for one in reversed(decisions):
        if one.best_worth >= HOPELESS:
            break
        since = one.phase
    return since


def summary(decisions: Sequence[Reviewed], left_out: Sequence[dict]) -> dict:
    """Return a review as `--json` writes it."""
    powers = {}
    for power in dict.fromkeys(one.power for one in decisions):
        mine = [one for one in decisions if one.power == power]
        marks = {mark: sum(one.mark == mark for one in mine) for mark in ("!", "?!", "?", "??")}
        about = {"accuracy": accuracy(mine), "marks": marks}
        powers[power] = about | {"losing_since": losing_since(mine)}
    records = [{k: v for k, v in one._asdict().items() if k not in OF_PAGES} for one in decisions]
    return {"decisions": records, "powers": powers, "left_out": list(left_out)}


def page_facts(replay: Replay, reviews: Reviews, decisions: Sequence[Reviewed]) -> dict:
    """Return the data of a review for the pages; it may still be running."""
    record = summary(decisions, reviews.left_out)
    judge, records = reviews.judges.name, [one._asdict() for one in decisions]
    if judge == "lookahead":
        judge += ", which counts centers within reach, for want of a trained policy"
    facts = review_facts(replay, records, judge, reviews.done, reviews.total)
    powers = record["powers"]
    for figures in powers.values():
        since = figures["losing_since"]
        figures["losing_since"] = phase_title(since).split(",")[0] if since else ""
    return facts | {"years": reviews.years, "powers": powers, "left_out": record["left_out"]}


class ReviewJob:
    """A review that a thread computes. `reviews` is None until it has begun; `trouble`: why it
    could not go on."""

    def __init__(self) -> None:
        self.reviews: Reviews | None = None
        self.decisions: list[Reviewed] = []
        self.trouble = ""


def begin_review(
    game: Game,
    judges: Sequence[Sequence[str]],
    load: Callable[[str], Player],
    powers: Sequence[str],
) -> ReviewJob:
    """Begin to review powers' decisions (none: all) by the first of `judges` that can be some, else
    by lookahead."""
    job, saved, game_map = ReviewJob(), game.to_saved_game(), game.map

    def begun(players: Sequence) -> Reviews:
        return Reviews(saved, players, game_map, powers)

    def work() -> None:
        try:
            for names in judges:
                with contextlib.suppress(UserError):
                    job.reviews = begun([ordering(load(name)) for name in names])
                    break
            job.reviews = job.reviews or begun([make_bot("lookahead")])
            for part in job.reviews:
                job.decisions += part
        except Exception as error:  # a checkpoint's script is the user's own
            job.trouble = f"{type(error).__name__}: {error}"

    threading.Thread(target=work, daemon=True).start()
    return job


def judges_of(game_map: Map) -> list[str]:
    """Return the names of those who judge games of a map if nobody is named: one that has learned
    from people's games, and policies from self-play, which play no single opponent's weakness; of
    other maps the best of these, and `lookahead` without one."""
    if not game_map.is_included or not find_spec("torch"):
        return ["lookahead"]
    trained = policies_of(game_map.name)
    best = [name for name in trained if "dumbbot" not in name][:1]
    return [name for name in people_of(game_map).worth if name in trained] or best or ["lookahead"]
