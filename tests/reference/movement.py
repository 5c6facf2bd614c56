"""Slow plain-Python movement adjudication: the tests' second opinion, no engine code.

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
    support   void (unmatched, or for the strongest attack on a unit of its own power
              that does not leave); no convoy (the army supported has none); cut
    convoy    void (unmatched); void, no convoy (the army goes by land, or the fleet is on
              no complete ordered route); disrupted (stopped by the paradox rule alone);
              no convoy (no route left, and the fleet itself not dislodged)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from reference.orders import Board, Order, ReferenceMap, Units, home, province

Decision = tuple[str, str]  # ("move", "A PAR")


class MovementResult(NamedTuple):
    units: Units  # where everything stands afterwards, sorted; powers without units left out
    dislodged: dict[str, list[str]]  # unit text before the phase -> retreats; [] destroyed at once
    results: dict[str, list[str]]  # unit text before the phase -> result words


class Undecided(Exception):
    """An equation asked for a decision not taken yet."""


class Answers(dict[Decision, bool]):
    def __missing__(self, decision: Decision) -> bool:
        raise Undecided(decision)


class Movement:
    """The equations of one movement phase, and their solution."""

    def __init__(self, board: Board, orders: dict[str, Order]):
        self.board = board
        self.orders = orders  # a unit without one holds
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
            case = {**answers, **dict(zip(others, values, strict=True))}
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
    """Adjudicate one legal order text for each unit text; a missing order is a hold."""
    board = Board(game_map, units)
    movement = Movement(board, {unit: board.read(text) for unit, text in orders.items()})
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
            if board.is_neutral(unit):
                dislodged[unit] = []
                continue
            # DATC 4.A.5: only an attacker that came over land or sea itself closes its origin
            closed = occupied | contested | (set() if by in movement.routes else {home(by)})
            reach = game_map.reach(unit)
            dislodged[unit] = sorted(goal for goal in reach if province(goal) not in closed)
    results = {}
    for unit in board.owner:
        words = _movement_words(movement, unit, answers, stopped)
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
