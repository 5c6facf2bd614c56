"""Ask players about one `Game`, in texts: their orders, explanations and talk."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ..constants import NONE, phase_kind
from ..errors import UserError
from ..games.decisions import Decisions
from ..games.order_lists import without_orders
from ..games.own_help import mended, own_choices
from ..games.vector_game import VectorGame
from ..press.daide import ClauseRow, clauses_of
from ..press.deals import Offers, make_offers
from ..press.negotiators.negotiation import Listener, Negotiator, Silent, Talk, honest_seats
from ..textgame.game import Game
from .asking import ask_player, orders_of, slots_of
from .protocols import ExplainingPlayer, Player, ReasoningPlayer, Reasons

_ORDERED = {"movement": "units", "retreats": "retreats", "adjustments": "builds"}
MOST_ASKED = 3  # times that a player is asked for orders, if it repeats moves in vain


def orders_for(
    game: Game, player: Player, powers: Iterable[str] | None = None
) -> dict[str, list[str]]:
    """Return a player's orders in one game, as `Game.submit` takes them.

    The game stays as it is.
    Powers (None: all) with nothing to order get an empty list; UserError if there is no such power.
    """
    games = game.vector_game
    names = game.map.powers if powers is None else powers
    orders = {game.map.powers[game.map.power_number(name)]: [] for name in names}
    decisions = _decisions(game, orders)
    if not decisions.count:
        return orders
    numbers = ask_player(games, decisions, player)
    for power, number in zip(decisions.power[decisions.slot_decision], numbers):
        if number != NONE:
            orders[game.map.powers[power]].append(games.vocabulary.texts[number])
    return orders


class Candidate(NamedTuple):
    orders: list[str]
    value: float | None  # what they are worth; None if they were not tried
    error: float | None  # standard error of that, if it is known
    share: float  # probability that they are given
    own: bool  # whether they are the player's own draw, without a search


class SearchReasons(NamedTuple):
    candidates: list[Candidate]  # those it would give first, then by value
    expected: dict[str, list[tuple[str, float]]]  # power -> (order, share), the likeliest of a unit
    beliefs: dict[str, dict[str, float]]  # power -> whom it is taken for -> probability


class Advice(NamedTuple):
    value: float | None  # the reward that it was trained on, as expected from here on, if it knows
    slots: list[tuple[str, list[tuple[str, float]]]]  # (unit, [(order, probability), ...])
    tried: SearchReasons | None = None  # of a player that searches, in movement phases
    usual: Mapping[str, float] = MappingProxyType({})  # order -> its share among people


def orders_by_player(
    game: Game, player: Player, powers: Collection[str], seed: int, stubborn: bool = True
) -> dict[str, list[str]]:
    """Return orders for those of `powers` with a decision; `seed` (0..2^64 - 1) is of the draws.

    One that is not `stubborn` does not repeat a move that bounced twice in a row against the same
    without more support.
    """
    decisions, games = _decisions(game, powers), _seeded(game, seed)
    moving = phase_kind(game.phase) == "movement"
    table, honest = game.table, honest_seats([player], np.zeros((1, len(game.powers)), int))
    if table is not None and moving and isinstance(player, Listener):
        player.hear(_talk(game, games, decisions.power))
    if table is not None and not table.binding:
        decisions = table.bound(decisions, honest)
    in_vain = _bounced_twice(game) if moving and not stubborn else {}
    texts, by_power = games.vocabulary.texts, {}
    for _ in range(MOST_ASKED):
        orders = orders_of(games, player, decisions)
        if table is not None and not table.binding:
            table.correct(orders, decisions, honest)
        # Who plans without lists may order what a deal forbids: then the unit keeps its promise.
        listed, repeated = set(decisions.order.tolist()), []
        for d in range(decisions.count):
            power = game.map.powers[decisions.power[d]]
            numbers = [orders[0, v] for v in _provinces(games, decisions, d)]
            own = by_power[power] = [texts[number] for number in numbers if number in listed]
            for move, supports in in_vain.items():
                if move in own and _supports(own, move) <= supports:
                    repeated.append((decisions.power[d], texts.index(move)))
        if not repeated:
            break
        powers, unwanted = zip(*repeated)
        decisions = decisions.take(np.isin(decisions.power, powers))
        decisions = without_orders(decisions, np.isin(decisions.order, unwanted))
    return by_power


def _seeded(game: Game, seed: int) -> VectorGame:
    """Return a copy of a game with another seed, which would end the deals of the game itself."""
    copy = game.copy()
    copy.vector_game.seed_games(np.zeros(1, int), np.array([seed], np.uint64))
    turn = copy.vector_game.state.turn  # a game that is taken up again has begun to count anew
    turn[0] = max(turn[0], len(copy.history))
    return copy.vector_game


def _bounced_twice(game: Game) -> dict[str, int]:
    """Return the moves that bounced in both last movement phases, each with the most supports of
    its own power that it had; what stands at the goal is the same since then."""
    past = [one for one in game.history[-5:] if phase_kind(one["name"]) == "movement"][-2:]
    if len(past) < 2:
        return {}
    moves: dict[str, list[int]] = {}
    for phase in past:
        for texts in filter(None, phase["orders"].values()):
            for text in texts:
                if "bounce" in phase["results"].get(text.partition(" - ")[0], ()):
                    moves.setdefault(text, []).append(_supports(texts, text))
    states = [game.to_state(), *(phase["state"] for phase in past)]
    return {
        move: max(supports)
        for move, supports in moves.items()
        if len(supports) == 2 and len({_there(state, move) for state in states}) == 1
    }


def _there(state: Mapping, move: str) -> tuple[tuple[str, str], ...]:
    goal = move.partition(" - ")[2][:3]
    units = ((power, unit) for power, own in state["units"].items() for unit in own)
    return tuple((power, unit) for power, unit in units if unit[2:5] == goal)


def _supports(texts: Sequence[str], move: str) -> int:
    unit, _, goal = move.partition(" - ")
    return sum(f" S {unit} - {goal[:3]}" in text for text in texts)


def _talk(game: Game, games: VectorGame, powers: np.ndarray) -> Talk:
    """Return what powers of a game are told; `games` is a copy with seeds of its own."""
    rows, powers = np.zeros(len(powers), np.int64), powers.astype(np.int64)
    if game.table is None:
        raise UserError("nobody talks in a game without press")
    talk = game.table.known(rows, powers), _breaches(game, powers), game.table.binding
    return Talk(games, game.vector_game.decisions(), rows, powers, *talk)


def ordering(player: Player) -> Player:
    return player.player if isinstance(player, Silent) else player


def _decisions(game: Game, powers: Collection[str]) -> Decisions:
    decisions = game.decisions()
    wanted = [game.map.power_index[power] for power in powers]
    return decisions.take(np.isin(decisions.power, wanted))


def _provinces(games: VectorGame, decisions: Decisions, d: int) -> list[int]:
    first, last = decisions.slot_start[d : d + 2]
    if decisions.slot_province[first] != NONE:
        return decisions.slot_province[first:last].tolist()
    numbers = decisions.order[decisions.order_start[first] : decisions.order_start[first + 1]]
    numbers = numbers[numbers != games.table.waive]
    return np.unique(games.board.location_province[games.table.location[numbers]]).tolist()


def advice(game: Game, player: ExplainingPlayer, power: str) -> Advice:
    """Return each unit's orders, the likeliest first; UserError if there is nothing to order.

    The first ones are mended together. Without press they leave out orders with other powers'
    units.
    """
    advices = advice_to_all(game, player, [power])
    if not advices:
        raise UserError(f"{power} has no orders to give in {game.phase}")
    advised, games, decisions = advices[power], game.vector_game, _decisions(game, [power])
    if phase_kind(game.phase) != "movement":
        return advised
    texts = games.vocabulary.texts
    helps = game.table is not None or bool(game.map.teams.text)
    own = {texts[number] for number in own_choices(games, decisions, helps).order}
    slots = [(unit, [one for one in ranked if one[0] in own]) for unit, ranked in advised.slots]
    likeliest = np.array([texts.index(ranked[0][0]) for _, ranked in slots], np.int32)
    first = {texts[number] for number in mended(games, decisions, likeliest)}
    slots = [(unit, sorted(ranked, key=lambda one: one[0] not in first)) for unit, ranked in slots]
    advised = advised._replace(slots=slots)
    if isinstance(player, ReasoningPlayer):
        (reasons,) = player.reasons(games, decisions)
        return advised._replace(tried=_tried(game, texts, power, reasons))
    return advised


def advice_to_all(
    game: Game, player: ExplainingPlayer, powers: Collection[str]
) -> dict[str, Advice]:
    """Return power -> a player's advice, without search, for the powers with decisions."""
    games, decisions, advices = game.vector_game, _decisions(game, powers), {}
    if not decisions.count:
        return advices
    explanation = player.explain(games, decisions)
    for d in range(decisions.count):
        slots = []
        for s, slot in enumerate(slots_of(games, decisions, d), int(decisions.slot_start[d])):
            shares = explanation.probability[slice(*decisions.order_start[s : s + 2])]
            ranked = [(slot.texts[i], float(shares[i])) for i in np.argsort(-shares, kind="stable")]
            slots.append((slot.unit, ranked))
        value = float(explanation.value[d])
        power = game.powers[decisions.power[d]]
        advices[power] = Advice(None if math.isnan(value) else value, slots)
    return advices


def _tried(game: Game, texts: Sequence[str], power: str, reasons: Reasons) -> SearchReasons:
    candidates = []
    for k, orders in enumerate(reasons.candidates):
        value, error = (
            None if math.isnan(figure) else float(figure)
            for figure in (reasons.value[k], reasons.error[k])
        )
        order_texts = [texts[number] for number in orders[orders != NONE]]
        candidates.append(Candidate(order_texts, value, error, float(reasons.share[k]), k == 0))
    candidates.sort(key=lambda c: (-c.share, -math.inf if c.value is None else -c.value))
    candidates.sort(key=lambda c: (c.share == 0, c.value is None))
    state, expected = game.vector_game.state, {}
    for v in np.flatnonzero((reasons.expected != NONE).any(0)):
        numbers, counts = np.unique(reasons.expected[:, v], return_counts=True)
        most = int(counts.argmax())
        owner = game.map.powers[state.unit_power[0, v]]
        share = float(counts[most] / counts.sum())
        expected.setdefault(owner, []).append((texts[numbers[most]], share))
    beliefs = {
        name: {hypothesis: float(share[p]) for hypothesis, share in reasons.beliefs.items()}
        for p, name in enumerate(game.map.powers)
        if len(reasons.beliefs) > 1 and name in expected and name != power
    }
    return SearchReasons(
        candidates, {name: expected[name] for name in game.powers if name in expected}, beliefs
    )


def has_decision(state: Mapping, power: str) -> bool:
    """Tell by a state, perhaps of another program, whether a power has something to order."""
    key = _ORDERED.get(phase_kind(state["name"]))
    table = state.get(key)
    own = table.get(power) if isinstance(table, Mapping) else None
    return bool(own.get("count") if isinstance(own, Mapping) and key == "builds" else own)


def next_offer(
    game: Game, power: str, player: Negotiator, seed: int
) -> tuple[str, tuple[ClauseRow, ...]] | None:
    """Return a player's offer and its receiver in `offers` press; None if it has nothing to offer,
    or has offered it in this phase already."""
    offers = player.offers(asked(game, power, player, seed))
    if not offers.count:
        return None
    clauses = clauses_of(offers, 0)
    offer = game.map.power_index[power], int(offers.receiver[0]), clauses
    if offer in [(o.sender, o.receiver, o.clauses) for o in game.said(power)]:
        return None
    return game.powers[offer[1]], clauses


def agrees(game: Game, receiver: str, number: int, player: Player, seed: int) -> bool:
    """Tell whether a player agrees to an offer it got, whether or not it can be confirmed; to none
    for a later phase, which it cannot value."""
    offers = _offer(game, receiver, number)
    if not isinstance(player, Negotiator) or game.rules.press != "offers":
        return False
    if not game.units[receiver] or game.said()[number - 1].phase:
        return False
    return bool(player.answers(asked(game, receiver, player, seed), offers)[0])


def refusal(game: Game, receiver: str, number: int, player: Player, seed: int) -> str:
    """Return why a player declined an offer, by its method `refusal`; nothing if unknown."""
    if not isinstance(player, Negotiator):
        return "it makes no deals"
    if not hasattr(player, "refusal"):
        return ""
    if game.said()[number - 1].phase:
        return "it makes deals for the phase at hand alone"
    return player.refusal(asked(game, receiver, player, seed), _offer(game, receiver, number))


def _offer(game: Game, receiver: str, number: int) -> Offers:
    offer = game.said()[number - 1]
    return make_offers([(0, offer.sender, game.map.power_index[receiver], offer.clauses)])


def asked(game: Game, power: str, player: Player, seed: int) -> Talk:
    """Return the talk in which one power is asked; its player draws from `seed`."""
    return _talk(game, _seeded(game, seed), np.array([game.map.power_index[power]]))


def _breaches(game: Game, powers: np.ndarray) -> np.ndarray:
    """Return Talk.breaches by the game's history, which a game that is taken up again has, too."""
    ages, year = np.full((len(game.powers),) * 2, NONE, np.int32), int(game.phase[1:-1])
    for phase in game.history:
        for power, others in phase.get("broken", {}).items():
            rows = [game.map.power_index[other] for other in others]
            ages[rows, game.map.power_index[power]] = year - int(phase["name"][1:-1])
    return ages[powers]
