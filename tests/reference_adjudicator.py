"""Slow plain-Python adjudication: the tests' second opinion, no engine code.

Movement is a set of yes-or-no equations, one for each decision (DATC chapter 5):

    path     does this army's convoy have a route left?
    support  is this support given?
    move     does this move succeed?

Decisions are taken where the equation has one result whatever the undecided others turn out to
be. What is left is taken apart into cores, sets of decisions that depend on each other and on
nothing else undecided, and every consistent answer of a core is searched for:

    exactly one answer            it is taken
    several, only moves in it     a ring of moves: all of them move
    none or several, with paths   a convoy paradox: its armies stay and have no effect (Szykman,
                                  DATC 4.A.2), and everything is worked out again with that known

Result words are those of design section 3. What they mean for an order:

    move      bounce; no convoy (no route ordered, or none left)
    support   void (illegal, unmatched, or for the strongest attack on a unit of its own power
              that does not leave); no convoy (the army supported has none); cut
    convoy    void (illegal, unmatched); void, no convoy (the army goes by land, or the fleet is on
              no complete ordered route); disrupted (stopped by the paradox rule alone);
              no convoy (no route left, and the fleet itself not dislodged)
    retreat   bounce, disband (two to one province); void, disband (illegal); disband
"""

from __future__ import annotations

from itertools import product
from typing import Iterator, NamedTuple

from reference_orders import (
    Board,
    Order,
    ReferenceMap,
    builds,
    home,
    legal_orders,
    owed,
    province,
)

__all__ = [
    "Board", "Order", "ReferenceMap", "legal_orders", "sort_orders", "adjudicate_movement",
    "adjudicate_retreats", "adjudicate_adjustments", "civil_disorder",
]  # fmt: skip

Units = dict[str, list[str]]  # power -> unit texts
Decision = tuple[str, str]  # ("move", "A PAR")


class MovementResult(NamedTuple):
    units: Units  # where everything stands afterwards, sorted; powers without units left out
    dislodged: dict[str, list[str]]  # unit text before the phase -> retreats; [] destroyed at once
    results: dict[str, list[str]]  # unit text before the phase -> result words


class RetreatResult(NamedTuple):
    units: Units
    disbanded: list[str]  # dislodged units that are gone
    results: dict[str, list[str]]  # dislodged unit -> result words


class AdjustmentResult(NamedTuple):
    units: Units
    removed: Units  # by civil disorder, in the order of removal
    results: list[tuple[str, str, list[str]]]  # power, order text, result words; as submitted


class Undecided(Exception):
    """An equation asked for a decision not taken yet."""


class Answers(dict[Decision, bool]):
    def __missing__(self, decision: Decision) -> bool:
        raise Undecided(decision)


class Movement:
    """The equations of one movement phase, and their solution."""

    def __init__(self, board: Board, orders: dict[str, Order]):
        self.board = board
        self.orders = orders  # legal orders only; a unit without one holds
        self.owner = board.owner
        self.moves = {unit: o for unit, o in orders.items() if o.verb == "-"}
        self.into: dict[str, list[str]] = {}  # province -> units ordered there
        for unit, order in self.moves.items():
            self.into.setdefault(province(order.goal), []).append(unit)
        self.matched = {unit for unit, order in orders.items() if self._is_matched(order)}
        self.backers: dict[str, list[str]] = {unit: [] for unit in board.owner}
        for unit in self.matched:
            if orders[unit].verb == "S":
                self.backers[orders[unit].other].append(unit)
        self.routes = self._ordered_routes()

    def _is_matched(self, order: Order) -> bool:
        """Whether a support or convoy fits the order of the unit it is for."""
        move = self.moves.get(order.other)
        if order.verb not in ("S", "C"):
            return False
        if move is None or not order.goal:
            return move is None and not order.goal  # support of a hold
        return order.goal in (move.goal, province(move.goal))

    def _ordered_routes(self) -> dict[str, list[frozenset[str]]]:
        """The complete ordered routes of each army that goes by convoy; the others go by land.

        Rule  an army goes by convoy to an adjacent province if it says VIA or an own fleet has a
              legal order to convoy it, and a complete route is ordered (DATC 4.A.3)
        """
        routes = {}
        for army, order in self.moves.items():
            fleets = [
                unit
                for unit in self.matched
                if self.orders[unit].verb == "C" and self.orders[unit].other == army
            ]
            seas = {home(fleet) for fleet in fleets}
            complete = [r for r in self.board.convoys(army, order.goal) if r <= seas]
            by_land = order.goal in self.board.map.reach(army)
            wanted = order.via or any(self.owner[fleet] == self.owner[army] for fleet in fleets)
            if not by_land or (wanted and complete):
                routes[army] = complete
        return routes

    # The equations. Each reads the answers of others and has one result once those are known.

    def path(self, army: str, answers: Answers) -> bool:
        return any(
            not any(answers["move", unit] for sea in route for unit in self.into.get(sea, []))
            for route in self.routes[army]
        )

    def support(self, unit: str, answers: Answers) -> bool:
        """Rule  any foreign attack cuts, one from the province the support is aimed at only by
        dislodging; a convoyed army attacks from where it stood (DATC 4.A.4)"""
        order = self.orders[unit]
        aim = province(order.goal) or home(order.other)
        return not any(
            self.owner[attacker] != self.owner[unit]
            and self.arrives(attacker, answers)
            and (home(attacker) != aim or answers["move", attacker])
            for attacker in self.into.get(home(unit), [])
        )

    def move(self, unit: str, answers: Answers) -> bool:
        if not self.arrives(unit, answers):
            return False
        goal = province(self.moves[unit].goal)
        occupant = self.board.standing.get(goal)
        head_to_head = occupant is not None and self.fights(unit, occupant)
        leaving = occupant in self.moves and not head_to_head and answers["move", occupant]
        if occupant is None or leaving:
            attack, defence = self.strength(unit, answers), 0
        elif self.owner[occupant] == self.owner[unit]:
            return False
        else:
            attack = self.strength(unit, answers, without=self.owner[occupant])
            moving = occupant in self.moves and not head_to_head
            defence = 1 if moving else self.strength(occupant, answers)
        return attack > defence and all(
            attack > self.resistance(rival, answers) for rival in self.into[goal] if rival != unit
        )

    # What the equations are made of.

    def arrives(self, unit: str, answers: Answers) -> bool:
        return answers["path", unit] if unit in self.routes else True

    def fights(self, one: str, two: str) -> bool:
        """Two units that attack each other's province, neither by convoy (DATC 4.A.7 b)."""
        return (
            one in self.moves
            and two in self.moves
            and province(self.moves[one].goal) == home(two)
            and province(self.moves[two].goal) == home(one)
            and one not in self.routes
            and two not in self.routes
        )

    def strength(self, unit: str, answers: Answers, without: str | None = None) -> int:
        """A unit and its supports, but for those of the power that would lose a unit by them."""
        backers = [backer for backer in self.backers[unit] if self.owner[backer] != without]
        return 1 + sum(answers["support", backer] for backer in backers)

    def resistance(self, unit: str, answers: Answers) -> int:
        """With what a move keeps rivals out of its goal.

        Rule  nothing without a convoy; nothing in the province of a unit that beats it head to head
        """
        if not self.arrives(unit, answers):
            return 0
        occupant = self.board.standing.get(province(self.moves[unit].goal))
        if occupant and self.fights(unit, occupant) and answers["move", occupant]:
            return 0
        return self.strength(unit, answers)

    # Solving them.

    def decisions(self) -> list[Decision]:
        supports = [unit for unit in self.matched if self.orders[unit].verb == "S"]
        return (
            [("path", army) for army in self.routes]
            + [("support", unit) for unit in sorted(supports)]
            + [("move", unit) for unit in self.moves]
        )

    def evaluate(self, decision: Decision, answers: Answers) -> bool:
        kind, unit = decision
        return getattr(self, kind)(unit, answers)

    def possible(self, decision: Decision, answers: Answers) -> set[bool]:
        """The results a decision's equation can have, trying both answers where one is missing."""
        try:
            return {self.evaluate(decision, answers)}
        except Undecided as missing:
            results: set[bool] = set()
            for guess in (True, False):
                if len(results) < 2:
                    trial = Answers({**answers, missing.args[0]: guess})
                    results |= self.possible(decision, trial)
            return results

    def propagate(self, decisions: list[Decision], answers: Answers) -> bool:
        """Add every answer that follows from the given ones; False if they contradict."""
        grew = True
        while grew:
            grew = False
            for decision in decisions:
                results = self.possible(decision, answers)
                if decision in answers:
                    if answers[decision] not in results:
                        return False
                elif len(results) == 1:
                    answers[decision] = results.pop()
                    grew = True
        return True

    def solutions(self, core: list[Decision], answers: Answers) -> Iterator[Answers]:
        """All answers to a core that satisfy all of its equations."""
        trial = Answers(answers)
        if not self.propagate(core, trial):
            return
        open_ones = [decision for decision in core if decision not in trial]
        if not open_ones:
            yield trial
            return
        for guess in (True, False):
            yield from self.solutions(core, Answers({**trial, open_ones[0]: guess}))

    def asked(self, decision: Decision, answers: Answers) -> set[Decision]:
        """The undecided decisions an equation may look at."""
        try:
            self.evaluate(decision, answers)
            return set()
        except Undecided as missing:
            question = missing.args[0]
            branches = (Answers({**answers, question: guess}) for guess in (True, False))
            return {question}.union(*(self.asked(decision, branch) for branch in branches))

    def matters(self, question: Decision, decision: Decision, answers: Answers) -> bool:
        """Whether there is a case in which the question alone turns the decision."""
        others = sorted(self.asked(decision, answers) - {question})
        for values in product((True, False), repeat=len(others)):
            case = {**answers, **dict(zip(others, values))}
            yes, no = (Answers({**case, question: guess}) for guess in (True, False))
            if self.evaluate(decision, yes) != self.evaluate(decision, no):
                return True
        return False

    def core(self, undecided: list[Decision], answers: Answers) -> list[Decision]:
        """Decisions that depend on each other and on nothing else undecided.

        The smallest set closed under dependence is one: each member's own closure lies in it and
        cannot be smaller.
        """
        needs = {
            decision: {
                question
                for question in self.asked(decision, answers)
                if self.matters(question, decision, answers)
            }
            for decision in undecided
        }
        closures = []
        for decision in undecided:
            closure, waiting = set(), [decision]
            while waiting:
                new = needs[waiting.pop()] - closure
                closure |= new
                waiting += new
            closures.append(closure)
        smallest = min(closures, key=len)
        return [decision for decision in undecided if decision in smallest]

    def solve(self) -> tuple[Answers, set[str]]:
        """All answers, and the armies stopped by the paradox rule."""
        stopped: set[str] = set()
        while True:
            answers = Answers({("path", army): False for army in stopped})
            decisions = [d for d in self.decisions() if d not in answers]
            paradox = self._decide(decisions, answers)
            if not paradox:
                return answers, stopped
            stopped |= paradox

    def _decide(self, decisions: list[Decision], answers: Answers) -> set[str]:
        """Take all decisions, or give the armies of the first paradox met."""
        while True:
            assert self.propagate(decisions, answers), "taken decisions contradict each other"
            undecided = [decision for decision in decisions if decision not in answers]
            if not undecided:
                return set()
            core = self.core(undecided, answers)
            found = list(self.solutions(core, answers))
            if len(found) == 1:
                answers.update(found[0])
            elif all(kind == "move" for kind, _ in core):
                ring = dict.fromkeys(core, True)
                assert Answers({**answers, **ring}) in found, "a ring that cannot move"
                answers.update(ring)
            else:
                armies = {unit for kind, unit in core if kind == "path"}
                assert armies, "a paradox without a convoy"
                return armies


def adjudicate_movement(
    game_map: ReferenceMap, units: Units, orders: dict[str, str]
) -> MovementResult:
    """Adjudicate one order text for each unit text; a missing order is a hold, a bad one void."""
    board = Board(game_map, units)
    read = {unit: board.read(text) for unit, text in orders.items()}
    void = {unit for unit, order in read.items() if order is None}
    movement = Movement(board, {unit: order for unit, order in read.items() if order})
    answers, stopped = movement.solve()

    moved = [unit for unit in movement.moves if answers["move", unit]]
    attacker = {board.standing.get(province(movement.moves[unit].goal)): unit for unit in moved}
    after = {
        unit: f"{unit[0]} {movement.moves[unit].goal}" if unit in moved else unit
        for unit in board.owner
        if unit in moved or unit not in attacker
    }
    occupied = {home(unit) for unit in after.values()}
    contested = {
        goal
        for goal, rivals in movement.into.items()
        if any(unit not in moved and movement.resistance(unit, answers) for unit in rivals)
    }
    dislodged = {}
    for unit in board.owner:
        if unit not in after:
            by = attacker[unit]
            # DATC 4.A.5: only an attacker that came over land or sea itself closes its origin
            closed = occupied | contested | (set() if by in movement.routes else {home(by)})
            reach = game_map.reach(unit)
            dislodged[unit] = sorted(goal for goal in reach if province(goal) not in closed)
    results = {}
    for unit in board.owner:
        words = ["void"] if unit in void else _movement_words(movement, unit, answers, stopped)
        results[unit] = words + ["dislodged"] * (unit in dislodged)
    return MovementResult(_by_power(after, board.owner), dislodged, results)


def _movement_words(
    movement: Movement, unit: str, answers: Answers, stopped: set[str]
) -> list[str]:
    """Result words of a legal order, as the module's docstring explains them."""
    order = movement.orders.get(unit, Order("H", unit))
    if order.verb == "H":
        return []
    if order.verb == "-":
        if answers["move", unit]:
            return []
        return ["bounce"] if movement.arrives(unit, answers) else ["no convoy"]
    if unit not in movement.matched:
        return ["void"]
    if order.verb == "C":
        routes = movement.routes.get(order.other, [])
        if not any(home(unit) in route for route in routes):
            return ["void", "no convoy"]
        if answers["path", order.other] or any(
            answers["move", rival] for rival in movement.into.get(home(unit), [])
        ):
            return []
        left = movement.path(order.other, answers)
        return ["disrupted"] if order.other in stopped and left else ["no convoy"]
    if not order.goal:
        return [] if answers["support", unit] else ["cut"]
    if not movement.arrives(order.other, answers):
        return ["no convoy"]
    if not answers["support", unit]:
        return ["cut"]
    goal = province(order.goal)
    occupant = movement.board.standing.get(goal)
    stays = occupant and not (occupant in movement.moves and answers["move", occupant])
    strongest = all(
        movement.strength(order.other, answers) > movement.resistance(rival, answers)
        for rival in movement.into[goal]
        if rival != order.other
    )
    own = stays and movement.owner[occupant] == movement.owner[unit]
    return ["void"] if own and strongest else []


def _by_power(after: dict[str, str], owner: dict[str, str]) -> Units:
    units: Units = {}
    for before, now in after.items():
        units.setdefault(owner[before], []).append(now)
    return {power: sorted(texts) for power, texts in sorted(units.items())}


def _read_retreat(game_map: ReferenceMap, retreats: dict[str, list[str]], text: str):
    """(unit, goal, "D" or None for an illegal one) of a retreat order; None for another unit's."""
    words = text.upper().split()
    if len(words) < 3:
        return None
    unit = next((u for u in retreats if u[0] == words[0] and home(u) == province(words[1])), None)
    if unit is None:
        return None
    if words[2:] == ["D"]:
        return unit, "D"
    if len(words) == 4 and words[2] == "R":
        goals = [g for g in game_map.meant(unit[0], words[3]) if g in retreats[unit]]
        if len(goals) == 1:
            return unit, goals[0]
    return unit, None


def sort_orders(
    game_map: ReferenceMap, position: dict, orders: dict[str, list[str]]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """From each power's list, one order for each of its units in a movement or retreat phase.

    Also gives the orders that belong to no unit of the power, which touch nothing.
    Rule  of two legal orders the first counts; an illegal one gives way to a legal one
    """
    chosen: dict[str, str] = {}
    is_legal: dict[str, bool] = {}
    strays = []
    for power, texts in orders.items():
        retreats = position.get("retreats", {}).get(power, {})
        board = Board(game_map, position["units"])
        for text in texts:
            if position["name"].endswith("R"):
                unit, goal = _read_retreat(game_map, retreats, text) or (None, None)
                legal = goal is not None
            else:
                words = text.upper().split() + ["", ""]
                unit = board.unit(words[0], words[1])
                unit = unit if unit and board.owner[unit] == power else None
                legal = board.read(text) is not None
            if unit is None:
                strays.append((power, text))
            elif unit not in chosen or (legal and not is_legal[unit]):
                chosen[unit], is_legal[unit] = text, legal
    return chosen, strays


def adjudicate_retreats(
    game_map: ReferenceMap,
    units: Units,
    retreats: dict[str, dict[str, list[str]]],
    orders: dict[str, str],
) -> RetreatResult:
    """Adjudicate one order text for each dislodged unit; `units` are the standing ones."""
    goals: dict[str, str] = {}
    results: dict[str, list[str]] = {}
    for options in retreats.values():
        for unit in options:
            read = _read_retreat(game_map, options, orders.get(unit, f"{unit} D"))
            if read is None or read[1] is None:
                results[unit] = ["void", "disband"]
            elif read[1] == "D":
                results[unit] = ["disband"]
            else:
                goals[unit] = read[1]
    provinces = [province(goal) for goal in goals.values()]
    after = {power: [u for u in texts if u[0] != "*"] for power, texts in units.items()}
    for power, options in retreats.items():
        for unit in options:
            if unit in goals and provinces.count(province(goals[unit])) == 1:
                after.setdefault(power, []).append(f"{unit[0]} {goals[unit]}")
                results[unit] = []
            elif unit in goals:
                results[unit] = ["bounce", "disband"]
    standing = {power: sorted(texts) for power, texts in sorted(after.items()) if texts}
    disbanded = sorted(unit for unit, words in results.items() if words)
    return RetreatResult(standing, disbanded, results)


def civil_disorder(game_map: ReferenceMap, units: list[str], centers: list[str]) -> list[str]:
    """A power's units in the order in which they are removed without orders.

    Rule  2023 rulebook, DATC 4.D.8: farthest from the owned centers over any kind of province,
          fleets before armies, then by the English names of the provinces
    """
    distance = dict.fromkeys(centers, 0)
    ring = list(centers)
    while ring:
        here = ring.pop(0)
        for there in game_map.neighbors[here]:
            if there not in distance:
                distance[there] = distance[here] + 1
                ring.append(there)

    def rank(unit: str) -> tuple[float, bool, str]:
        code = home(unit)
        return -distance.get(code, float("inf")), unit[0] == "A", game_map.name[code]

    return sorted(units, key=rank)


def adjudicate_adjustments(
    game_map: ReferenceMap,
    units: Units,
    centers: dict[str, list[str]],
    orders: dict[str, list[str]],
) -> AdjustmentResult:
    """Adjudicate each power's list of builds, removals and waives, first legal ones first.

    Rule  DATC 4.D.4 to 4.D.6; builds not ordered are waived, removals not ordered made
    """
    position = {"name": "W1901A", "units": units, "centers": centers}
    listed = legal_orders(game_map, position)
    after = {power: list(texts) for power, texts in units.items()}
    removed: Units = {}
    results = []
    for power in dict.fromkeys([*units, *orders]):
        left = owed(position, power)
        own_centers = [c for c, owner in game_map.home_of.items() if owner == power]
        for text in orders.get(power, []):
            words = text.upper().split()
            done = False
            if words == ["WAIVE"]:
                done = left > 0 and any("WAIVE" in listed[center] for center in own_centers)
                left -= done
            elif len(words) == 3 and words[2] == "B" and left > 0:
                goals = game_map.meant(words[0], words[1])
                center = province(words[1])
                build = f"{words[0]} {goals[0]}" if len(goals) == 1 else ""
                free = center not in {home(unit) for unit in after.get(power, [])}
                done = free and center in own_centers and f"{build} B" in listed[center]
                if done:
                    after.setdefault(power, []).append(build)
                    left -= 1
            elif len(words) == 3 and words[2] == "D" and left < 0:
                code = province(words[1])
                gone = [u for u in after.get(power, []) if (u[0], home(u)) == (words[0], code)]
                done = bool(gone)
                if done:
                    after[power].remove(gone[0])
                    left += 1
            results.append((power, text, [] if done else ["void"]))
        if left < 0:
            removed[power] = civil_disorder(game_map, after[power], centers.get(power, []))[:-left]
            after[power] = [unit for unit in after[power] if unit not in removed[power]]
    standing = {power: sorted(texts) for power, texts in sorted(after.items()) if texts}
    return AdjustmentResult(standing, removed, results)
