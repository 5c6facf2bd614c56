"""The value of joint orders when they were given, compared with other possible orders.

Many decisions are judged at once, by several judges. Each models the others by itself, draws
candidates, and plays on. The candidates of a decision meet the same samples of the others' orders;
the best then meets fresh samples, since the maximum of many estimates is biased upwards.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from ..._suggest import listed, quoted
from ...constants import NONE, RUNNING
from ...errors import UserError
from ...games.decisions import Decisions
from ...games.draws import phase_seeds
from ...games.observation import BoardViews
from ...games.vector_game import VectorGame
from ...rules.state import Salt, in_movement
from ...scoring.outcomes import figure_values
from ...scoring.rewards import lead
from ..asking import orders_of
from ..bots.random_bots import RandomBot
from ..policy.player import PolicyPlayer
from ..protocols import Player
from .best_response import BestResponse
from .draws import Draws, PolicyDraws, joint_orders
from .leaves import ROOM, CenterClaims, LeafValue, Leaves, holders, values_of

GAMES = 64  # of a policy against itself, which tell what its values mean
MOST_YEARS = 35  # of them, where games have no limit
RIDGE = 1e-3
# As shares of what was left: what seems to lose no more is not looked at again; a loss that may be
# notable is told by more samples, unless it is precise or CLEAR, in standard errors.
OPEN, NOTABLE, PRECISE = 0.03, 0.07, 0.02
CLEAR = 3.0
SURE = 2.0  # standard errors that a difference must have to be sure
SUBMITTED, RANDOM = 0, 1  # places among candidates: what was ordered, and any legal orders
GIVEN, BETTER = 0, 1  # places in Verdicts
# When boards are looked at: after this movement phase, or else the next one, and `ahead` later.
NEXT, LATER = 0, 1
AT_ONCE, IN_THE_END, BOTH = slice(1), slice(1, 2), slice(2)
# Fewer powers are played on faster: of P powers, movement phases and samples by default.
PLAYED_ON, SAMPLES = 22, 24  # PLAYED_ON // P and SAMPLES * max(1, 7 // P)
LAST = 10.0  # puts candidates that hindsight speaks against behind all others
LEAST_WORTH, LEAST_CENTERS = 0.01, 0.25  # added to what was left, so that a share of it is one


class JudgeSettings(NamedTuple):
    samples: int | None = None  # of the others' orders, half of those that tell a loss at most;
    # None: by powers
    draws: int = 12  # of the judges' own orders, which are candidates
    changes: int = 8  # more candidates: what was ordered, with one order as often drawn
    finalists: int = 3  # candidates that are played on, to choose the best
    ahead: int | None = None  # movement phases played on before a board is valued; None: by powers


class Worth:
    """The score `sum_of_squares` that a policy's value promises, from 0 to 1.

    A logistic regression of the score on the value, the centers and the lead tells it, with
    `weights` (3, 4): means and spreads of these (after a column that is not used), and the
    coefficients, the constant first. A game that has ended counts with its exact score.
    """

    discount, at_once = 1.0, False

    def __init__(self, policy: PolicyPlayer, weights: np.ndarray):
        self.policy, self.weights, self.paid = policy, weights, CenterClaims().paid

    @classmethod
    def from_self_play(cls, policy: PolicyPlayer, games: VectorGame) -> "Worth":
        """Learn the weights from `GAMES` games of the policy against itself."""
        played = VectorGame(
            games.map, GAMES, max_years=games.max_years or MOST_YEARS, auto_reset=False
        )
        player, decided = SimpleNamespace(name=policy.name, act=PolicyDraws(policy).plain), []
        worth = cls(policy, np.zeros((3, 4)))
        while (played.state.end == RUNNING).any():
            decisions = played.decisions()
            decided.append((decisions, worth.look(played, decisions.game, decisions.power)))
            played.step(orders_of(played, player, decisions))
        scores = figure_values(played.outcomes(), played.board.victory_centers)["sum_of_squares"]
        score = np.concatenate([scores[d.game, d.power] for d, _ in decided])
        worth.weights = regression(worth.inputs([look for _, look in decided]), score)
        return worth

    def look(
        self, games: VectorGame, rows: np.ndarray, powers: np.ndarray
    ) -> tuple[BoardViews, np.ndarray]:
        centers = games.centers()[rows]
        mine = np.arange(len(rows)), powers
        standing = np.stack([centers[mine], lead(centers)[mine]], 1) / games.board.victory_centers
        return self.policy.observe(games, rows, powers), standing

    def values(self, boards: list) -> np.ndarray:
        mean, spread, weights = self.weights
        inputs = (self.inputs(boards) - mean[1:]) / spread[1:]
        return _sigmoid(weights[0] + inputs @ weights[1:])

    def inputs(self, boards: list) -> np.ndarray:
        """Return the value, the centers and the lead (n, 3) of boards that were looked at."""
        views, standing = zip(*boards)
        return np.column_stack([values_of(self.policy, views), np.concatenate(standing)])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


def regression(inputs: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Return the `weights` of Worth: a logistic regression of scores (n,) on inputs (n, 3), with a
    ridge."""
    mean, spread = inputs.mean(0), inputs.std(0) + 1e-6
    inputs = np.column_stack([np.ones(len(inputs)), (inputs - mean) / spread])
    weights, ridge = np.zeros(inputs.shape[1]), RIDGE * len(inputs)
    for _ in range(30):
        share = _sigmoid(inputs @ weights)
        slope = inputs.T @ (score - share) - ridge * weights
        curve = (inputs * (share * (1 - share))[:, None]).T @ inputs
        weights += np.linalg.solve(curve + ridge * np.eye(len(weights)), slope)
    return np.stack([np.append(0, mean), np.append(1, spread), weights])


class Verdicts(NamedTuple):
    """The verdicts on D decisions; R samples of the others' orders, J judges, C centers.

    Second in arrays (D, 2, ...) are the given orders and the better ones: the same where no orders
    are better by a standard error. A loss is a share of what the better orders have: the mean of
    four, of worth and of centers, NEXT and LATER. All other figures are LATER.
    """

    orders: np.ndarray  # (D, 2, V) int32, own orders by province
    samples: np.ndarray  # (D, R, V) int32, orders of all powers that tell the loss
    places: np.ndarray  # (D, V) bool, provinces for which the decision gives orders
    loss: np.ndarray  # (D,) float64, negative if the best of the others are worse
    error: np.ndarray  # (D,) float64, standard error of the loss
    of_judges: np.ndarray  # (D, J) float64, loss by each judge's samples
    random_loss: np.ndarray  # (D,) float64, of any legal orders instead
    worth: np.ndarray  # (D, 2) float64, `sum_of_squares` to be expected
    held: np.ndarray  # (D, 2, C) float64, how often the power has each center in the end
    held_error: np.ndarray  # (D, C) float64, standard error of the difference between these two
    alive: np.ndarray  # (D, 2) float64, how often the power has any center in the end
    hindsight: np.ndarray  # (D,) float64, loss against the orders that the others really gave


class Judge:
    """A judge: a model of everybody's orders, and a value of boards."""

    def __init__(self, own: Draws, value: LeafValue, name: str = ""):
        self.own, self.value, self.name = own, value, name or own.name
        self._leaves: Leaves | None = None

    def leaves(self, games: VectorGame) -> Leaves:
        if self._leaves is None or not self._leaves.spare.is_like(games):
            following = SimpleNamespace(name=self.name, act=self.own.plain)
            self._leaves = Leaves(games, self.value, following)
        return self._leaves

    def play(
        self,
        games: VectorGame,
        seats: tuple[np.ndarray, np.ndarray],
        joint: np.ndarray,
        seeds: np.ndarray,
        ahead: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Play on after joint orders (n, V) of all powers in rows of games, for powers, which
        `seats` have (n,), `ahead` (n,) phases; see Leaves.evaluate. Return the worth (n,) and
        which centers the powers have (n, C)."""
        leaves, parts = self.leaves(games), []
        for first in range(0, len(joint), ROOM):
            part = slice(first, first + ROOM)
            row, power = seats[0][part], seats[1][part]
            worth = leaves.evaluate(
                games, row, power, joint[part], seeds[part], ahead[part], self._play_on
            )
            parts.append((worth, held(leaves.spare, power)))
        worth, has = zip(*parts)
        return np.concatenate(worth), np.concatenate(has)

    def _play_on(self, copies: VectorGame, decisions: Decisions, *_: np.ndarray) -> np.ndarray:
        return self.own.plain(copies, decisions)

    def sample(
        self, games: VectorGame, rows: np.ndarray, seeds: np.ndarray, greedy: bool = False
    ) -> np.ndarray:
        """Return what all powers may order in `rows` (n,) by seeds (n, K): (n, K, V) int32."""
        draws = self.own
        if greedy and isinstance(draws.player, PolicyPlayer):
            draws = PolicyDraws(draws.player)
            draws.greedy = True
        return joint_orders(games, rows, seeds, self.leaves(games).spare, draws.plain)


class Judges:
    """Judges the orders of any power: samples of the others' orders are each judge's in turn."""

    def __init__(self, judges: Sequence[Judge], settings: JudgeSettings = JudgeSettings()):  # noqa: B008
        self.judges, self.settings = list(judges), settings
        self.name = listed([judge.name for judge in judges])

    def years(self, games: VectorGame) -> int:
        """Return after how many years worth, centers and survival are looked at."""
        return (self.ahead(games) + 1) // 2

    def ahead(self, games: VectorGame) -> int:
        ahead = self.settings.ahead
        return max(1, PLAYED_ON // games.num_powers) if ahead is None else ahead

    def judge(
        self,
        games: VectorGame,
        decisions: Decisions,
        orders: np.ndarray,
        settled: np.ndarray | None = None,
    ) -> Verdicts:
        """Judge decisions in `games`, where all powers really gave `orders` (E, V) int32; those
        that are `settled` (D,) are valued, without a look for better ones."""
        return _Trial(self, games, decisions, orders, settled).verdicts()

    def sample(self, games: VectorGame, rows: np.ndarray, count: int) -> np.ndarray:
        """Return what all powers may order in `rows` (n,), each judge in turn: (n, count, V)
        int32."""
        out = np.empty((len(rows), count, len(games.board.terrain)), np.int32)
        seeds = phase_seeds(games, rows, NONE, Salt.PROFILES, count)
        for number, judge in enumerate(self.judges):
            mine = slice(number, None, len(self.judges))
            out[:, mine] = judge.sample(games, rows, seeds[:, mine])
        return out


class AnyOrders(RandomBot):
    """Orders at random, but not as the bot that may have played."""

    salt = int(Salt.CANDIDATES)


class _Playouts:
    """What comes of the candidates of D decisions, each against samples of the others' orders."""

    def __init__(
        self,
        judges: Judges,
        games: VectorGame,
        decisions: Decisions,
        candidates: np.ndarray,
        samples: np.ndarray,
    ):
        """`candidates` (D, K, V) are own orders, NONE in provinces that are not the power's;
        `samples` (E, R, V) all powers' orders in each game that decisions are of, in order."""
        self.judges, self.games, self.decisions = judges, games, decisions
        self.candidates, self.samples = candidates, samples
        self.places, self.game = (
            own_places(games, decisions),
            np.unique(decisions.game, return_inverse=True)[1],
        )
        shape = *candidates.shape[:2], samples.shape[1]
        self.worth = np.full((2, *shape), np.nan)  # NEXT and LATER; NaN: not played
        self.held = np.zeros((2, *shape, len(games.board.center_province)), bool)

    def play(self, which: np.ndarray, first: int, last: int, when: slice = BOTH) -> None:
        """Play on with candidates `which` (D, K) against samples `first` to `last` - 1."""
        games, decisions, judges = self.games, self.decisions, self.judges.judges
        ahead = np.full((2, decisions.count), self.judges.ahead(games))
        ahead[NEXT] = ~in_movement(games.state, decisions.game)
        seeds = phase_seeds(games, decisions.game, decisions.power, Salt.FOLLOWING, last)
        samples = np.arange(first, last)
        for number, judge in enumerate(judges):
            d, k, r = np.nonzero(which[:, :, None] & (samples % len(judges) == number))
            if not len(r):
                continue
            r += first
            joint = np.where(self.places[d], self.candidates[d, k], self.samples[self.game[d], r])
            seats = decisions.game[d].astype(np.int64), decisions.power[d].astype(np.int64)
            for one in range(2)[when]:
                self.worth[one, d, k, r], self.held[one, d, k, r] = judge.play(
                    games, seats, joint, seeds[d, r], ahead[one, d]
                )

    def score(self, base: np.ndarray, first: int, last: int, when: slice = BOTH) -> np.ndarray:
        """Return how much candidates have of what candidates `base` (D,) have, (D, K, R)."""
        worth = self.worth[when, :, :, first:last]
        centers = np.where(np.isnan(worth), np.nan, self.held[when, :, :, first:last].sum(4))
        shares = []
        for of, least in ((worth, LEAST_WORTH), (centers, LEAST_CENTERS)):
            had = _mean(of[:, np.arange(len(base)), base])[0] + least
            shares.append(of / had[:, :, None, None])
        return np.mean(shares, (0, 1))

    def best(self, which: np.ndarray, first: int, last: int, when: slice = BOTH) -> np.ndarray:
        """Return the mean score (D, K) of candidates `which` beside what was ordered, -inf for the
        rest."""
        score = self.score(np.full(len(which), SUBMITTED), first, last, when)
        return np.where(which, score.mean(2), -np.inf)

    def loss(
        self, better: np.ndarray, other: int, first: int, last: int, when: slice = BOTH
    ) -> np.ndarray:
        """Return by how much candidates `better` (D,) are ahead of `other`, the standard error, and
        the same by each judge's samples: (D, 2 + J)."""
        every, judges = np.arange(len(better)), len(self.judges.judges)
        score = self.score(better, first, last, when)
        apart, judge = score[every, better] - score[every, other], np.arange(first, last) % judges
        of_judges = [_mean(apart[:, judge == j])[0] for j in range(judges)]
        return np.stack([*_mean(apart), *of_judges], 1)


class _Trial:
    """The candidates of D decisions, and their results against samples."""

    def __init__(
        self,
        judges: Judges,
        games: VectorGame,
        decisions: Decisions,
        orders: np.ndarray,
        settled: np.ndarray | None,
    ):
        self.judges, self.games, self.decisions = judges, games, decisions
        samples = judges.settings.samples or SAMPLES * max(1, 7 // games.num_powers)
        # Samples that choose the best, and that tell its lead: more while these leave it open.
        parts, several = np.array([1, 1, 1, 2, 4]) * samples, 4 * len(judges.judges)
        self.edges = np.cumsum(-(-parts // several) * len(judges.judges)).tolist()
        self.chosen, _, _, self.enough, self.last = self.edges
        self.rows, game = np.unique(decisions.game, return_inverse=True)
        self.ordered = orders[self.rows]
        candidates, self.count = self._candidates(own_places(games, decisions), game)
        if settled is not None:
            self.count[settled] = RANDOM + 1
        expected = judges.sample(games, self.rows, self.last)
        self.playouts = _Playouts(judges, games, decisions, candidates, expected)

    def _candidates(self, places: np.ndarray, game: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each decision's candidates (D, K, V) and how many they are."""
        judges, changes = self.judges.judges, self.judges.settings.changes
        each, drawn = -(-self.judges.settings.draws // len(judges)), []
        seeds = phase_seeds(self.games, self.rows, NONE, Salt.CANDIDATES, each * len(judges))
        for judge, mine in zip(judges, np.split(seeds, len(judges), 1)):
            drawn.append(judge.sample(self.games, self.rows, mine[:, :1], greedy=True))
            drawn.append(judge.sample(self.games, self.rows, mine))
        at_random = orders_of(self.games, AnyOrders(), self.decisions)[self.rows]
        tried = np.concatenate([self.ordered[:, None], at_random[:, None], *drawn], 1)[game]
        tried = np.where(places[:, None], tried, NONE)
        candidates, count = _distinct(tried, tried.shape[1] + changes)
        for d in range(len(count)):
            moving = in_movement(self.games.state, self.decisions.game[d])
            others = () if moving else _legal(self.games, self.decisions, d)
            _change(candidates[d], count[d : d + 1], tried[d, RANDOM + 1 :], others, changes)
        return candidates, count

    def verdicts(self) -> Verdicts:
        playouts, every = self.playouts, np.arange(self.decisions.count)
        finalists = self._screen()
        rival, lead, regret = self._choose(finalists)
        contested = lead[:, 0] > OPEN
        loss = np.where(contested[:, None], self._tell(rival, contested), np.nan_to_num(lead))
        loss[~contested, 0] = np.minimum(loss[~contested, 0], 0)
        better = np.where(contested & (loss[:, 0] > loss[:, 1]), rival, SUBMITTED)
        few, submitted = len(self.judges.judges), np.full_like(rival, SUBMITTED)
        random_loss = loss[:, 0] + playouts.loss(submitted, RANDOM, 0, few)[:, 0]
        pair = every[:, None], np.stack([submitted, better], 1)
        worth = playouts.worth[LATER][pair]
        worth[contested, :, : self.chosen] = np.nan  # by these the better ones were chosen
        held = playouts.held[LATER][pair] & ~np.isnan(worth)[..., None]
        count = (~np.isnan(worth[:, GIVEN])).sum(1)
        apart = held[:, BETTER].astype(float) - held[:, GIVEN]  # (D, R, C)
        squares, mean = (apart**2).sum(1) / count[:, None], apart.sum(1) / count[:, None]
        return Verdicts(
            orders=playouts.candidates[pair],
            samples=playouts.samples[playouts.game, self.chosen : self.enough],
            places=playouts.places,
            loss=loss[:, 0],
            error=loss[:, 1],
            of_judges=loss[:, 2:],
            random_loss=np.where(finalists.any(1), random_loss, 0.0),
            worth=np.nanmean(worth, 2),
            held=held.sum(2) / count[:, None, None],
            held_error=np.sqrt(np.maximum(squares - mean**2, 0) / count[:, None]),
            alive=held.any(3).sum(2) / count[:, None],
            hindsight=0 - regret[every, better, 0],
        )

    def _screen(self) -> np.ndarray:
        """Return the candidates (D, K) that are played on: what was ordered and those that are best
        at once. None where there is no choice."""
        alive = np.arange(self.playouts.candidates.shape[1]) < self.count[:, None]
        alive[:, RANDOM] = False
        alive &= alive.sum(1, keepdims=True) > 1
        self.playouts.play(alive, 0, self.chosen, AT_ONCE)
        mean = self.playouts.best(alive, 0, self.chosen, AT_ONCE)
        mean[:, SUBMITTED] = np.inf
        return alive & (_ranks(mean) <= self.judges.settings.finalists)

    def _choose(self, finalists: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the best of the others (D,), what it is ahead by, as `_Playouts.loss` says, and
        the regret in hindsight of candidates (D, K, 2)."""
        several, place = len(self.judges.judges), np.arange(finalists.shape[1])
        half = several * max(1, self.chosen // several // 2)
        self.playouts.play(finalists | (place == SUBMITTED), 0, half, IN_THE_END)
        self.playouts.play(finalists.any(1, keepdims=True) & (place == RANDOM), 0, several)
        mean = self.playouts.best(finalists, 0, half)
        finalists = (mean >= mean[:, [SUBMITTED]]) & (_ranks(mean) < 2) | (place == SUBMITTED)
        self.playouts.play(finalists, half, self.chosen, IN_THE_END)
        mean = self.playouts.best(finalists, 0, self.chosen)
        regret = self._hindsight(finalists & (mean > mean[:, [SUBMITTED]] + NOTABLE / 2))
        mean[regret[:, :, 0] > np.maximum(NOTABLE, regret[:, :, 1])] -= LAST
        mean[:, SUBMITTED] = -np.inf
        rival = mean.argmax(1)
        return rival, self.playouts.loss(rival, SUBMITTED, 0, self.chosen), regret

    def _tell(self, better: np.ndarray, contested: np.ndarray) -> np.ndarray:
        """Play on with the `better` orders (D,) and what was ordered where they are `contested`
        (D,), against more samples while the loss may be notable; return the loss."""
        final = np.zeros((len(better), self.playouts.candidates.shape[1]), bool)
        final[:, SUBMITTED] = final[np.arange(len(better)), better] = True
        for first, last in pairwise(self.edges):
            self.playouts.play(final & contested[:, None], first, last)
            loss, error, *_ = self.playouts.loss(better, SUBMITTED, self.chosen, last).T
            unsure = (error > PRECISE) & (loss < CLEAR * error)
            contested = contested & unsure & ((loss + error > NOTABLE) | (loss < -2 * NOTABLE))
        return self.playouts.loss(better, SUBMITTED, self.chosen, self.last)

    def _hindsight(self, which: np.ndarray) -> np.ndarray:
        """Return by how much what was ordered is ahead of candidates `which` (D, K) against what
        the others really ordered, and the standard error, (D, K, 2); 0 for the rest."""
        (d, k), several = np.nonzero(which), len(self.judges.judges)
        count = several * -(-3 // several)
        ordered = np.repeat(self.ordered[:, None], count, 1)
        real = _Playouts(self.judges, self.games, self.decisions, self.playouts.candidates, ordered)
        tried = which.copy()
        tried[:, SUBMITTED] |= which.any(1)
        real.play(tried, 0, count)
        score = real.score(real.best(tried, 0, count).argmax(1), 0, count)
        regret = np.zeros((*which.shape, 2))
        regret[d, k] = np.stack(_mean(score[d, SUBMITTED] - score[d, k]), 1)
        return regret


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return the rank of each value in its row of values (D, K), 0 for the largest."""
    return np.argsort(np.argsort(-values, 1, kind="stable"), 1, kind="stable")


def _mean(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of values (..., R) over R, and its standard error; NaN is left out."""
    count = (~np.isnan(values)).sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(values, -1) / count
        squares = np.nansum((values - mean[..., None]) ** 2, -1) / (count - 1)
        return mean, np.sqrt(squares / count)


def make_judges(
    players: Sequence[Player],
    games: VectorGame,
    settings: JudgeSettings | None = None,
    weights: Mapping[str, np.ndarray] | None = None,
) -> Judges:
    """Return policies, and searches with one or with bots, as judges of games like these; `weights`
    of Worth by a policy's name, which else plays games against itself.

    UserError if a player is none of these: nothing tells what a board is worth to it. Or if the
    games have teams: worths are of a power alone.
    """
    if games.map.teams.text:
        raise UserError("a game of teams cannot be judged: team mates would count as rivals")
    judges = [_make_judge(player, games, weights or {}) for player in players]
    return Judges(judges, settings or JudgeSettings())


def _make_judge(player: Player, games: VectorGame, weights: Mapping[str, np.ndarray]) -> Judge:
    if isinstance(player, PolicyPlayer):
        player.check_map(games)
        if player.name in weights:
            return Judge(PolicyDraws(player), Worth(player, np.array(weights[player.name])))
        return Judge(PolicyDraws(player), Worth.from_self_play(player, games))
    if isinstance(player, BestResponse):
        if isinstance(player.own.player, PolicyPlayer):
            return _make_judge(player.own.player, games, weights)
        return Judge(player.own, player.value, player.name)
    raise UserError(
        f"{quoted(str(player.name), 60)} cannot judge a game: only a trained policy, fast:POLICY "
        "and lookahead know what a board is worth"
    )


def held(games: VectorGame, powers: np.ndarray) -> np.ndarray:
    """Return which centers powers (n,) hold in the first n games, (n, C) bool."""
    return holders(games, np.arange(len(powers))) == powers[:, None]


def own_places(games: VectorGame, decisions: Decisions) -> np.ndarray:
    """Return for which provinces each decision may give orders, (D, V) bool."""
    places = np.zeros((decisions.count, len(games.board.terrain)), bool)
    decision = np.repeat(decisions.slot_decision, np.diff(decisions.order_start))
    real = decisions.order != games.table.waive
    location = games.table.location[decisions.order[real]]
    places[decision[real], games.board.location_province[location]] = True
    return places


def _distinct(tried: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return each decision's different joint orders (D, width, V), the first two in any case, and
    how many they are. The random ones may be among the others once more."""
    out = np.full((len(tried), width, tried.shape[2]), NONE, np.int32)
    count = np.empty(len(tried), np.int64)
    others = np.delete(np.arange(tried.shape[1]), RANDOM)
    for d, row in enumerate(tried):
        _, first = np.unique(row[others], axis=0, return_index=True)
        chosen = np.union1d(others[first], [SUBMITTED, RANDOM])
        count[d] = len(chosen)
        out[d, : len(chosen)] = row[chosen]
    return out, count


def _legal(games: VectorGame, decisions: Decisions, d: int) -> list[tuple[int, int]]:
    """Return the legal orders of decision d but waiving: province, order number."""
    first, last = decisions.order_start[decisions.slot_start[d : d + 2]]
    orders = np.unique(decisions.order[first:last])
    orders = orders[orders != games.table.waive]
    places = games.board.location_province[games.table.location[orders]]
    return list(zip(places.tolist(), orders.tolist()))


def _change(
    candidates: np.ndarray,
    count: np.ndarray,
    drawn: np.ndarray,
    others: Sequence[tuple[int, int]],
    changes: int,
) -> None:
    """Add to candidates (K, V) what was ordered with one order changed, to those that are drawn
    (T, V) most often, then to `others`; if as many are ordered, one that is added stands in the
    place of another, as builds and removals do. `count` (1,) grows."""
    submitted = candidates[SUBMITTED]
    draw, province = np.nonzero((drawn != submitted) & (drawn != NONE))
    votes = Counter(zip(province.tolist(), drawn[draw, province].tolist()))
    votes.update(dict.fromkeys(others, 0))
    units, new = np.flatnonzero(submitted != NONE), []
    fewer = len(units) < (drawn != NONE).sum(1).max()
    for (v, order), _ in votes.most_common(changes + len(others)):
        for other in [v] if fewer or submitted[v] != NONE else units:
            orders = submitted.copy()
            orders[other], orders[v] = NONE, order
            new.append(orders)
    for orders in new[: len(candidates) - count[0]]:
        if not (candidates[: count[0]] == orders).all(1).any():
            candidates[count[0]] = orders
            count += 1
