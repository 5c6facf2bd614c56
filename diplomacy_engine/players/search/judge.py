"""What joint orders were worth when they were given, beside others that could have been given.

Many decisions are judged at once. The candidates of a decision meet the same samples of what the
others may order; each pair is played on a copy of the board, on for some phases, and valued. The
best then meets samples that did not choose it, since the best of many seems better than it is.
"""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ..._suggest import quoted
from ...constants import NONE, RUNNING
from ...errors import UserError
from ...games.decisions import Decisions
from ...games.draws import phase_seeds
from ...games.observation import BoardViews
from ...games.vector_game import VectorGame
from ...rules.state import Salt
from ...scoring.outcomes import figure_values
from ...scoring.rewards import lead
from ..asking import orders_of
from ..policy.player import PolicyPlayer
from ..protocols import Player
from .best_response import BestResponse, better_half
from .draws import CHUNK, Draws, PolicyDraws
from .leaves import CenterClaims, LeafValue, Leaves

GAMES = 64  # of a policy against itself, which tell what its values mean
MOST_YEARS = 35  # of them, where games have no limit
RIDGE = 1e-3
# A loss that may be notable is told by more samples, unless it is precise; both in worth, 0..1.
NOTABLE, PRECISE = 0.03, 0.01
SURE = 2.0  # standard errors that a difference must have to be sure
SUBMITTED, OWN = 0, 1  # places among candidates: the orders that were given, the judge's own
# Fewer powers are played on faster: of P powers, movement phases and samples by default.
PLAYED_ON, SAMPLES = 24, 32  # max(1, PLAYED_ON // P) and SAMPLES * max(1, 7 // P)


class JudgeSettings(NamedTuple):
    samples: int | None = None  # of the others' orders that tell a loss; None: by powers
    draws: int = 16  # of the judge's own orders, which are candidates
    changes: int = 8  # more candidates, with one unit's order changed
    dropping: int = 2  # times that the worse half is dropped before the best is chosen
    again: int = 3  # times as many samples more for a loss that may be notable
    ahead: int | None = None  # movement phases played on before a board is valued; None: by powers


class Worth:
    """The score `sum_of_squares` that a policy's value promises, from 0 to 1.

    A logistic regression of the score on the value, the centers and the lead tells it, from `GAMES`
    games of the policy against itself. A game that has ended counts with its exact score.
    """

    discount, at_once = 1.0, False

    def __init__(self, policy: PolicyPlayer, games: VectorGame):
        self.policy, self.paid = policy, CenterClaims().paid
        played = VectorGame(
            games.map, GAMES, max_years=games.max_years or MOST_YEARS, auto_reset=False
        )
        player, decided = SimpleNamespace(name=policy.name, act=PolicyDraws(policy).plain), []
        while (played.state.end == RUNNING).any():
            decisions = played.decisions()
            decided.append((decisions, self.look(played, decisions.game, decisions.power)))
            played.step(orders_of(played, player, decisions))
        scores = figure_values(played.outcomes(), played.board.victory_centers)["sum_of_squares"]
        score = np.concatenate([scores[d.game, d.power] for d, _ in decided])
        inputs = self._inputs([look for _, look in decided])
        self._mean, self._spread = inputs.mean(0), inputs.std(0) + 1e-6
        self._weights = _logistic((inputs - self._mean) / self._spread, score)

    def look(
        self, games: VectorGame, rows: np.ndarray, powers: np.ndarray
    ) -> tuple[BoardViews, np.ndarray]:
        centers = games.centers()[rows]
        mine = np.arange(len(rows)), powers
        standing = np.stack([centers[mine], lead(centers)[mine]], 1) / games.board.victory_centers
        return self.policy.observe(games, rows, powers), standing

    def values(self, boards: list) -> np.ndarray:
        inputs = (self._inputs(boards) - self._mean) / self._spread
        return _sigmoid(self._weights[0] + inputs @ self._weights[1:])

    def _inputs(self, boards: list) -> np.ndarray:
        views, standing = zip(*boards)
        obs = views[0].join(views)
        parts = np.split(np.arange(len(obs.row)), range(CHUNK, len(obs.row), CHUNK))
        values = [self.policy.agent.values(obs.take(part)) for part in parts]
        return np.column_stack([np.concatenate(values), np.concatenate(standing)])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


def _logistic(inputs: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Return the weights of a logistic regression with a ridge, the constant first."""
    inputs = np.column_stack([np.ones(len(inputs)), inputs])
    weights, ridge = np.zeros(inputs.shape[1]), RIDGE * len(inputs)
    for _ in range(30):
        share = _sigmoid(inputs @ weights)
        slope = inputs.T @ (score - share) - ridge * weights
        curve = (inputs * (share * (1 - share))[:, None]).T @ inputs
        weights += np.linalg.solve(curve + ridge * np.eye(len(weights)), slope)
    return weights


class Verdicts(NamedTuple):
    """What came of D decisions; K candidates, R samples of the others' orders."""

    candidates: np.ndarray  # (D, K, V) int32, own orders by province; SUBMITTED and OWN come first
    count: np.ndarray  # (D,) int64, of them; the rest are none
    # (D, K) float64, against what the others really ordered: of SUBMITTED, OWN, the best, else NaN
    hindsight: np.ndarray
    samples: np.ndarray  # (D, R, V) int32, orders of all powers
    places: np.ndarray  # (D, V) bool, provinces for which the decision gives orders
    # (D,) int64, of the greatest worth; SUBMITTED if none is better by a standard error
    best: np.ndarray
    worth: np.ndarray  # (D,) float64, of the orders that were given
    loss: np.ndarray  # (D,) float64, worth of the best less that
    error: np.ndarray  # (D,) float64, standard error of that difference
    edge: np.ndarray  # (D, 2) float64, worth of the given less that of OWN, and its standard error


class Judge:
    """Judges the orders of any power by what one player expects everybody to order."""

    def __init__(self, own: Draws, value: LeafValue, settings: JudgeSettings = JudgeSettings()):  # noqa: B008
        self.own, self.value, self.settings = own, value, settings
        self.name = own.name
        self._leaves: Leaves | None = None

    def num_samples(self, games: VectorGame) -> int:
        """Return how many samples of the others' orders tell a loss, at first."""
        return self.settings.samples or SAMPLES * max(1, 7 // games.num_powers)

    def judge(self, games: VectorGame, decisions: Decisions, orders: np.ndarray) -> Verdicts:
        """Judge decisions in `games`, where all powers really gave `orders` (E, V) int32."""
        settings = self.settings
        if self._leaves is None or not self._leaves.spare.is_like(games):
            following = SimpleNamespace(name=self.name, act=self.own.plain)
            self._leaves = Leaves(games, self.value, following)
        rows, row = np.unique(decisions.game, return_inverse=True)
        places = own_places(games, decisions)
        total = self.num_samples(games)
        choosing = total // 2  # samples that choose the best; others tell what it is worth
        most = choosing + (1 + settings.again) * total
        samples = self._sample(games, rows, choosing + total, Salt.PROFILES)[row]
        drawn = self._sample(games, rows, settings.draws, Salt.CANDIDATES)
        likeliest = self._sample(games, rows, 1, Salt.CHOICE, greedy=True)
        tried = np.concatenate([orders[rows][:, None], likeliest, drawn], 1)[row]
        candidates, count = _distinct(
            np.where(places[:, None], tried, NONE), 2 + settings.draws + settings.changes
        )
        values = np.full((*candidates.shape[:2], most), np.nan)
        alive = np.arange(candidates.shape[1]) < count[:, None]
        alike = (candidates[:, SUBMITTED] == candidates[:, OWN]).all(1)
        alive[alike, OWN] = False  # it need not be played twice
        edges = [0, *(choosing >> n for n in range(settings.dropping, -1, -1))]
        for number, (first, last) in enumerate(pairwise(edges)):
            if number == 1:
                mean = np.where(alive, values[:, :, :first].mean(2), -np.inf)
                before = count.copy()
                _change(games, decisions, candidates, count, mean.argmax(1), settings.changes)
                new = (np.arange(candidates.shape[1]) < count[:, None]) & ~alive
                new &= np.arange(candidates.shape[1]) >= before[:, None]
                self._fill(games, decisions, candidates, samples, places, values, new, 0, first)
                alive |= new
            if number:
                alive = better_half(values[:, :, :first].mean(2), alive, [SUBMITTED, OWN])
            self._fill(games, decisions, candidates, samples, places, values, alive, first, last)
        best = np.where(alive, values[:, :, :choosing].mean(2), -np.inf).argmax(1)
        every, final = np.arange(decisions.count), np.zeros_like(alive)
        final[:, SUBMITTED] = final[every, best] = True
        final[:, OWN] |= ~alike
        hindsight = np.full((*candidates.shape[:2], 1), np.nan)
        real = orders[decisions.game][:, None]
        self._fill(games, decisions, candidates, real, places, hindsight, final, 0, 1, ahead=0)
        end = choosing + total
        self._fill(games, decisions, candidates, samples, places, values, final, choosing, end)
        own = np.where(alike, SUBMITTED, OWN)
        loss, error = np.maximum(
            _ahead(values[:, :, choosing:end], best, SUBMITTED),
            _ahead(values[:, :, choosing:end], own, SUBMITTED),
        )
        unsure = (error > PRECISE) & (loss + SURE * error > NOTABLE)
        if settings.again and unsure.any():
            several = np.unique(row[unsure])
            more = np.zeros((len(rows), most - end, samples.shape[2]), np.int32)
            more[several] = self._sample(games, rows[several], most - end, Salt.PROFILES, first=end)
            samples = np.concatenate([samples, more[row]], 1)
            which = final & unsure[:, None]
            self._fill(games, decisions, candidates, samples, places, values, which, end, most)
        values = values[:, :, choosing:]
        best = np.where(_ahead(values, own, best)[0] > 0, own, best)
        loss, error = _ahead(values, best, SUBMITTED)
        best = np.where(loss > error, best, SUBMITTED)
        loss = np.where(best == SUBMITTED, 0.0, loss)
        edge = np.stack(_ahead(values, SUBMITTED, own), 1)
        return Verdicts(
            candidates=candidates,
            count=count,
            hindsight=hindsight[:, :, 0],
            samples=samples[:, choosing:end],
            places=places,
            best=best,
            worth=np.nanmean(values[:, SUBMITTED], 1),
            loss=loss,
            error=error,
            edge=edge,
        )

    def _fill(
        self,
        games: VectorGame,
        decisions: Decisions,
        candidates: np.ndarray,
        others: np.ndarray,
        places: np.ndarray,
        values: np.ndarray,
        which: np.ndarray,
        first: int,
        last: int,
        ahead: int | None = None,
    ) -> None:
        """Write the worth of candidates `which` (D, K) against others (D, R, V), numbers `first` to
        `last` - 1, into values (D, K, R); see Verdicts for the rest."""
        ahead = self.settings.ahead if ahead is None else ahead
        ahead = max(1, PLAYED_ON // games.num_powers) if ahead is None else ahead
        seeds = phase_seeds(games, decisions.game, decisions.power, Salt.FOLLOWING, last)
        d, k = np.nonzero(which)
        d, k = np.repeat(d, last - first), np.repeat(k, last - first)
        r = np.tile(np.arange(first, last), which.sum())
        seats = decisions.game[d], decisions.power[d].astype(np.int64)
        joint, draws = np.where(places[d], candidates[d, k], others[d, r]), seeds[d, r]
        values[d, k, r] = self._leaves.evaluate(games, *seats, joint, draws, ahead, self._play_on)

    def _play_on(self, copies: VectorGame, decisions: Decisions, *_: np.ndarray) -> np.ndarray:
        return self.own.plain(copies, decisions)

    def _sample(
        self,
        games: VectorGame,
        rows: np.ndarray,
        count: int,
        salt: int,
        greedy: bool = False,
        first: int = 0,
    ) -> np.ndarray:
        """Return what all powers may order in `rows` (n,), `count` times: (n, count, V) int32;
        `first` is the number of the first of these draws."""
        spare, parts, draws = self._leaves.spare, [], self.own
        if greedy and isinstance(draws.player, PolicyPlayer):
            draws = PolicyDraws(draws.player)
            draws.greedy = True
        nobody = np.full(len(rows), NONE)
        seeds = phase_seeds(games, rows, nobody, salt, count, first).reshape(-1)
        source = np.repeat(rows, count)
        for at in range(0, len(source), spare.num_games):
            part = source[at : at + spare.num_games]
            copies = np.arange(len(part))
            spare.copy_from(games, part, copies)
            spare.seed_games(copies, seeds[at : at + len(part)])
            decisions, orders = spare.decisions(copies), spare.new_orders()
            if decisions.count:
                spare.write_orders(orders, decisions, draws.plain(spare, decisions))
            parts.append(orders[: len(part)])
        return np.concatenate(parts).reshape(len(rows), count, -1)


def make_judge(player: Player, games: VectorGame, settings: JudgeSettings | None = None) -> Judge:
    """Return a policy, or a search with one or with bots, as a judge of games like these.

    UserError if a player is none of these: nothing tells what a board is worth to it. Or if the
    games have teams: worths are of a power alone.
    """
    settings = settings or JudgeSettings()
    if games.map.teams.text:
        raise UserError("a game of teams cannot be judged: team mates would count as rivals")
    if isinstance(player, PolicyPlayer):
        player.check_map(games)
        return Judge(PolicyDraws(player), Worth(player, games), settings)
    if isinstance(player, BestResponse):
        if isinstance(player.own.player, PolicyPlayer):
            return make_judge(player.own.player, games, settings)
        judge = Judge(player.own, player.value, settings)
        judge.name = player.name
        return judge
    raise UserError(
        f"{quoted(str(player.name), 60)} cannot judge a game: only a trained policy, fast:POLICY "
        "and lookahead know what a board is worth"
    )


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
    how many they are."""
    out = np.full((len(tried), width, tried.shape[2]), NONE, np.int32)
    count = np.empty(len(tried), np.int64)
    for d, row in enumerate(tried):
        _, first = np.unique(row, axis=0, return_index=True)
        chosen = np.union1d(first, [SUBMITTED, OWN])
        count[d] = len(chosen)
        out[d, : len(chosen)] = row[chosen]
    return out, count


def _ahead(values: np.ndarray, one: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much candidates `one` of values (D, K, R) are ahead of `other`, each a number
    or (D,), on average (D,), and the standard error; NaN counts for nothing."""
    every = np.arange(len(values))
    each = values[every, one] - values[every, other]
    return np.nanmean(each, 1), np.nanstd(each, 1, ddof=1) / np.sqrt((~np.isnan(each)).sum(1))


def _change(
    games: VectorGame,
    decisions: Decisions,
    candidates: np.ndarray,
    count: np.ndarray,
    best: np.ndarray,
    changes: int,
) -> None:
    """Add candidates to movement decisions: the given orders with one unit's order as the best
    (D,) has it, then the best with any other order for one unit; `count` (D,) grows."""
    rng = np.random.default_rng(1)
    for d in np.flatnonzero(decisions.slot_province[decisions.slot_start[:-1]] != NONE):
        submitted, good = candidates[d, SUBMITTED], candidates[d, best[d]]
        slots = np.arange(decisions.slot_start[d], decisions.slot_start[d + 1])
        new = []
        for v in np.flatnonzero(submitted != good)[: changes // 2]:
            new.append(np.where(np.arange(len(submitted)) == v, good, submitted))
        while len(new) < changes:
            slot = rng.choice(slots)
            number = rng.choice(decisions.order[slice(*decisions.order_start[slot : slot + 2])])
            changed = good.copy()
            changed[decisions.slot_province[slot]] = number
            new.append(changed)
        for orders in new:
            if not (candidates[d, : count[d]] == orders).all(1).any():
                candidates[d, count[d]] = orders
                count[d] += 1
