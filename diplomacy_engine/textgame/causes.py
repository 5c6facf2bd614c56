"""The units responsible for the results of an adjudicated phase, computed from position, orders and
results, also of any saved game. For a bounce: each unit that alone was strong enough to keep the
mover out; for `no convoy`: the dislodged fleets, none if no complete route was ordered or the
paradox rule stopped the army."""

from collections.abc import Callable, Mapping, Sequence

from .._suggest import listed
from ..constants import UNIT_LETTERS, OrderKind, phase_kind
from ..games.vector_game import VectorGame
from ..records import shipped_toml
from ..rules import notation, reading
from ..rules.map import Map
from ..rules.order_matching import matching_orders
from .position import current_phase, legal_numbers, retreat_places, standing_units

Causes = dict[str, dict[str, list[str]]]  # unit -> result word -> units, sorted

_WORDS = shipped_toml(__package__, "words.toml")
_WITH_CAUSE: dict[str, str] = _WORDS["with_cause"]
_ALONE: dict[str, str] = _WORDS["alone"]


def result_words(results: Mapping) -> dict[str, list[str]]:
    """Result words by unit; other programs write empty words for success."""
    return {
        str(unit): [word for word in words if isinstance(word, str) and word]
        for unit, words in results.items()
        if isinstance(words, list | tuple)
    }


def played_orders(
    games: VectorGame, orders: Mapping, words: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[reading.GivenOrder]], Causes]:
    """The orders of a phase by power, each with what became of it, and the causes. `games` row 0 is
    the position before. Units without an order that have a result come last."""
    phase, standing = current_phase(games), standing_units(games)
    retreating = phase_kind(phase) == "retreats"
    ordered = retreat_places(games) if retreating else standing
    choose = _first_legal(games)
    orders_read = reading.read_orders(games.map, phase, ordered, orders, words, choose)
    causes: Causes = {}
    moved = None
    if phase_kind(phase) == "movement":
        moved = _Movement(games.map, standing, orders_read, words)
        causes = moved.causes()
    elif retreating:
        causes = _retreat_causes(games.map, standing, orders_read, words)
    for power in games.map.powers:
        units_ordered = {each.unit for each in orders_read.get(power, ())}
        for unit in ordered.get(power, ()):
            if unit not in units_ordered and words.get(unit):
                line = reading.GivenOrder.missing(power, unit, tuple(words[unit]))
                orders_read.setdefault(power, []).append(line)
    for lines in orders_read.values():
        for i, each in enumerate(lines):
            unit_causes = causes.get(each.unit, {}) if each.counts else {}
            result_words = _said(each.words, unit_causes)
            if "void" in each.words and moved is not None and each.counts:
                result_words = result_words.replace("void", f"void ({moved.fault(each.unit)})", 1)
            lines[i] = each._replace(said=result_words)
    return orders_read, causes


def _said(words: Sequence[str], causes: Mapping[str, list[str]]) -> str:
    parts = []
    for word in words:
        units = causes.get(word)
        parts.append(f"{_WITH_CAUSE[word]} {listed(units)}" if units else _ALONE.get(word, word))
    return ", ".join(parts)


def _first_legal(games: VectorGame) -> Callable[[list[reading.GivenOrder]], reading.GivenOrder]:
    """Chooses the order that counts of several of one unit (DATC 4.D.4)."""

    def choose(several: list[reading.GivenOrder]) -> reading.GivenOrder:
        legal = legal_numbers(games)
        for order_text in several:
            if order_text.order is not None:
                here = legal.get(order_text.order.unit.place.province, [])
                fits = matching_orders(games.map, games.vocabulary, order_text.order, here)
                if len(fits) == 1 or (fits and order_text.order.kind == OrderKind.SUPPORT_MOVE):
                    return order_text
        return several[0]

    return choose


class _Movement:
    """A movement phase after the event. Places are province codes; who had a void order stood."""

    def __init__(
        self,
        game_map: Map,
        units: Mapping[str, Sequence[str]],
        orders_read: Mapping[str, list[reading.GivenOrder]],
        words: Mapping[str, Sequence[str]],
    ):
        self.map, self.words = game_map, words
        self.owner = {unit: power for power, texts in units.items() for unit in texts}
        self.at = {notation.province_of(unit): unit for unit in self.owner}
        self.order = {
            each.unit: each.order
            for several in orders_read.values()
            for each in several
            if each.counts and each.order is not None
        }
        self.goal = {
            unit: self._code(order.target)
            for unit, order in self.order.items()
            if order.kind == OrderKind.MOVE and "void" not in self._words(unit)
        }
        self.into: dict[str, list[str]] = {}  # place -> the units that moved there, or tried to
        for unit, goal in self.goal.items():
            self.into.setdefault(goal, []).append(unit)
        self.backers: dict[str, list[str]] = {}  # unit -> those whose support it was given
        self.fleets: dict[str, list[str]] = {}  # army -> the fleets of its convoy
        for unit, order in self.order.items():
            other = self._helped(order)
            if other is None or not self._fits(order, other):
                continue
            if order.kind == OrderKind.CONVOY and "void" not in self._words(unit):
                self.fleets.setdefault(other, []).append(unit)
            elif order.kind != OrderKind.CONVOY and self._gives(unit, order, other):
                self.backers.setdefault(other, []).append(unit)

    def _code(self, place: notation.Place) -> str:
        return self.map.provinces[place.province]

    def _helped(self, order: notation.OrderText) -> str | None:
        return next((self.at.get(self._code(unit.place)) for unit in order.units[1:]), None)

    def _words(self, unit: str) -> Sequence[str]:
        return self.words.get(unit, ())

    def _fits(self, order: notation.OrderText, other: str) -> bool:
        return next(map(self._code, order.targets), None) == self.goal.get(other)

    def _gives(self, unit: str, order: notation.OrderText, other: str) -> bool:
        """Tell whether a support that fits is given, be it only against units of other powers."""
        words = self._words(unit)
        if "void" not in words:
            return "cut" not in words and "no convoy" not in words
        # If nothing is wrong with it, it was void because a unit of its own power is attacked. It
        # does not help to dislodge that one, but still to keep rivals out.
        return (
            order.kind == OrderKind.SUPPORT_MOVE
            and UNIT_LETTERS[order.other.kind] == other[0]
            and order.target.coast in (0, self.order[other].target.coast)
            and self._reaches(unit, self.goal[other])
        )

    def _reaches(self, unit: str, place: str) -> bool:
        location = self.map.location_index[notation.location_of(unit)]
        kind = UNIT_LETTERS.index(unit[0])
        return bool(self.map.board.reach[kind, location, self.map.province_index[place]])

    def arrives(self, unit: str) -> bool:
        return "no convoy" not in self._words(unit)

    def gets_away(self, unit: str) -> bool:
        return unit in self.goal and self.arrives(unit) and "bounce" not in self._words(unit)

    def by_convoy(self, unit: str) -> bool:
        """Tell whether a mover went by convoy: fleets of a complete route are not void."""
        return unit in self.fleets or not self.arrives(unit)

    def fights(self, one: str, two: str) -> bool:
        """Tell whether two units attacked each other, neither by convoy (DATC 4.A.7 b)."""
        swap = [self.goal.get(unit) for unit in (two, one)]
        places = [notation.province_of(unit) for unit in (one, two)]
        return swap == places and not self.by_convoy(one) and not self.by_convoy(two)

    def strength(self, unit: str, without: str | None = None) -> int:
        return 1 + sum(self.owner[backer] != without for backer in self.backers.get(unit, ()))

    def blockers(self, unit: str) -> list[str]:
        """The units that kept a mover out.

        Rule    rulebook: equal strength bounces; no unit dislodges one of its own power, nor helps
                to; who tried to leave and failed defends with itself alone, but head to head with
                its supports; who is beaten head to head keeps nobody out of the winner's place
        """
        goal, blocking = self.goal[unit], []
        there = self.at.get(goal, "")
        leaves = self.gets_away(there)
        stays = there != "" and (not leaves or self.fights(unit, there))
        foreign = stays and self.owner[there] != self.owner[unit]
        attack = self.strength(unit, without=self.owner[there] if foreign else None)
        if foreign:
            alone = there in self.goal and not self.fights(unit, there)
            if attack <= (1 if alone else self.strength(there)):
                blocking.append(there)
        elif stays:
            blocking.append(there)
        for rival in self.into[goal]:
            beaten = leaves and self.fights(rival, there)
            if rival == unit or not self.arrives(rival) or beaten:
                continue
            if attack <= self.strength(rival):
                blocking.append(rival)
        return blocking

    def cutters(self, unit: str) -> list[str]:
        """Return the units that cut a support.

        Rule    rulebook: any foreign attack does, but one from the province at which the support is
                aimed only by dislodging the unit; an army under convoy attacks from where it stood
        """
        order = self.order[unit]
        aim = self._code(order.aim)
        return [
            attacker
            for attacker in self.into.get(notation.province_of(unit), ())
            if self.arrives(attacker)
            and self.owner[attacker] != self.owner[unit]
            and (notation.province_of(attacker) != aim or self.gets_away(attacker))
        ]

    def lost_fleets(self, unit: str) -> list[str]:
        order = self.order[unit]
        fleets = self.fleets.get(self.at.get(self._code(order.units[-1].place), unit), ())
        if any("disrupted" in self._words(fleet) for fleet in fleets):
            return []  # the paradox rule stopped the army; a route was left
        return [fleet for fleet in fleets if "dislodged" in self._words(fleet)]

    def fault(self, unit: str) -> str:
        order = self.order.get(unit)
        if order is None or len(order.units) == 1:
            return "not legal"
        other = self._helped(order)
        if other is None or other == unit:
            return "no unit to help there"
        if not self._fits(order, other):
            goal = self.map.province_names[self._code(order.aim)]
            return f"{other} was " + (f"not moving to {goal}" if order.targets else "moving")
        if order.kind == OrderKind.CONVOY:
            return "not needed"
        return "against a unit of its own power" if self._gives(unit, order, other) else "not legal"

    def causes(self) -> Causes:
        ways = {
            "bounce": (self.blockers, ("move",)),
            "cut": (self.cutters, ("support",)),
            "no convoy": (self.lost_fleets, ("move", "support", "convoy")),
        }
        all_causes: Causes = {}
        for unit in self.owner:
            for word in self._words(unit):
                units = []
                if word == "dislodged":
                    into = self.into.get(notation.province_of(unit), ())
                    units = list(filter(self.gets_away, into))
                elif word in ways and unit in self.order and "void" not in self._words(unit):
                    causing, verbs = ways[word]
                    units = causing(unit) if self.order[unit].verb in verbs else []
                if units:
                    all_causes.setdefault(unit, {})[word] = sorted(units)
        return all_causes


def _retreat_causes(
    game_map: Map,
    standing: Mapping[str, Sequence[str]],
    orders_read: Mapping[str, list[reading.GivenOrder]],
    words: Mapping[str, Sequence[str]],
) -> Causes:
    """Only a position of other origin can offer a retreat to where a unit stands."""
    at = {notation.province_of(unit): unit for units in standing.values() for unit in units}
    goals = {
        each.unit: game_map.provinces[each.order.target.province]
        for several in orders_read.values()
        for each in several
        if each.counts and each.order is not None and each.order.kind == OrderKind.RETREAT
        if "bounce" in words.get(each.unit, ())
    }
    all_causes = {}
    for unit, goal in goals.items():
        others = [other for other, place in goals.items() if other != unit and place == goal]
        units = [at[goal]] if goal in at else sorted(others)
        if units:
            all_causes[unit] = {"bounce": units}
    return all_causes
