"""The text that a language model is shown: one fixed text for each position and form. What never
changes comes first, since servers and models keep the beginning of a text."""

from collections.abc import Sequence

import numpy as np

from ...constants import NONE, Phase, UnitKind, parse_phase, phase_name
from ...textgame.game import Game
from .questions import Question, Slot

_ORDERING = "You give the orders of one power in Diplomacy. Nobody negotiates.\n\n"
_AGREED = "You give the orders of one power in Diplomacy. The powers have negotiated.\n\n"
_TALKING = "You negotiate for one power in Diplomacy, before it gives its orders.\n\n"
_RULES = """\
Rules in short
- All powers order at once, and all orders are carried out at once. One unit to a province.
- Armies move over land and coasts, fleets over seas and along coasts.
- A move has strength 1, and 1 more for each support. The stronger of two moves into a province
  succeeds, also against a unit that holds there; of equally strong ones none does (bounce).
- A unit can support only into provinces that it could move to itself. A support is cut by an attack
  from any province but the one it is directed against.
- Fleets at sea can convoy an army from coast to coast; both need orders.
- A unit that is dislodged retreats to an empty province beside it, or disbands.
- After each fall a supply center belongs to the power whose unit stands there. In winter a power
  with fewer units than centers builds in its own empty home centers; one with more removes units.

How orders are written (A army, F fleet)
A PAR H              hold              A PAR - BUR          move
A LON - BEL VIA      move by convoy    F NTH C A LON - BEL  convoy
A PAR S A MAR        support to hold   A PAR S A MAR - BUR  support of a move
F MAO - SPA/NC       a coast (NC EC SC WC) that must be named
A MUN R RUH          retreat           A MUN D              disband or remove
A PAR B              build             WAIVE                build nothing
"""
_PHASES = (
    "Spring {}, movement",
    "Spring {}, retreats",
    "Fall {}, movement",
    "Fall {}, retreats",
    "Winter {}, builds and removals",
)
OPENING = "Orders:"  # the line that begins a reply after free text


_DEALS = """\
What is agreed upon binds both sides in this phase and ends with it: whoever has promised an order
gives it, and peace means to keep out of where the other has a unit or a center. Nothing else that
anybody says binds.
"""
_FREE_DEALS = """\
What is agreed upon is for this phase alone, and nobody is made to keep it: every power may give any
orders. Peace means to keep out of where the other has a unit or a center. Whoever broke a deal is
known to the other side.
"""


def prompt_text(question: Question, form: str, history: int = 1, thinking: int = 0) -> str:
    """Return the prompt of a question; it ends with a newline. The form is `list`, with all legal
    orders; `windows`, with what is near each unit; `counts`, with that and how many orders it has;
    `board`, with neither; or `minimal`, the units alone, without rules and board. `thinking` are
    tokens allowed before the orders."""
    first = _ORDERING if question.deals is None else _AGREED
    parts = _position(question, form, history, first)
    if question.deals:
        parts.append("\n".join(["Agreed upon in this phase", *question.deals]) + "\n")
    if form == "list":
        parts.append(_legal_orders(question.slots))
    return "\n".join(parts) + _form(question.slots, thinking)


def talk_text(
    question: Question,
    form: str,
    history: int,
    lines: Sequence[str],
    task: str,
    count: int,
    binding: bool = True,
) -> str:
    """Return a prompt about deals; it ends with a newline. `lines` is what there is to choose from,
    or to answer, with a heading; `task` what each of `count` lines of the reply shall be."""
    parts = _position(question, form, history, _TALKING)
    parts += [_DEALS if binding else _FREE_DEALS, "\n".join(lines) + "\n"]
    number = "1 line" if count == 1 else f"{count} lines"
    return "\n".join(parts) + f"\nWrite nothing but {number}, {task}.\n"


def sentence_text(question: Question, other: str, what: str) -> str:
    """Return a prompt for one sentence to another power; `what` is what it goes with."""
    first = f"Diplomacy, map {question.game.map.name}, {question.game.phase}, {question.power}"
    return f"{first}\n\n{what}\nSay one short sentence to {other} with it.\n"


def _position(question: Question, form: str, history: int, first: str) -> list[str]:
    """Return what there is to know of a position, in parts; `first` stands before the rules."""
    game = question.game
    year, phase = parse_phase(game.phase)
    if form == "minimal":
        parts = [f"Diplomacy, map {game.map.name}, {game.phase}, {question.power}\n"]
    else:
        parts = [first + _RULES, _map_facts(game)]
        ending = "The game has no last year."
        if game.max_years:
            ending = f"The game ends after {game.map.board.first_year + game.max_years - 1}."
        parts.append(f"Now: {game.phase} ({_PHASES[phase].format(year)}). {ending}\n")
        parts.append(f"You are {question.power}.{_owed(question)}\n")
        parts.append(_board(game))
        for name, lines in question.past[-history:] if history else ():
            parts.append("\n".join([f"Orders of {name}", *lines]) + "\n")
    if form in ("windows", "counts"):
        parts.append(_windows(question, form == "counts"))
    return parts


def _map_facts(game: Game) -> str:
    board, centers = game.map.board, len(game.map.board.center_province)
    return (
        f"Map {game.map.name}: {len(game.powers)} powers, {centers} supply centers. Whoever has "
        f"{board.victory_centers} of them after a fall wins."
        f"{' Units may be built in every own center.' if board.build_anywhere else ''}\n"
    )


def _owed(question: Question) -> str:
    owed = question.game.adjustments.get(question.power, 0)
    if not owed:
        return ""
    what = "build(s) to make or waive" if owed > 0 else "unit(s) to remove"
    return f" You have {abs(owed)} {what}."


def _board(game: Game) -> str:
    units, centers, dislodged = game.units, game.centers, game.dislodged
    lines = ["Units and supply centers"]
    for power in game.powers:
        gone = [
            f"{unit} (dislodged, can retreat to {' '.join(places) or 'nowhere'})"
            for unit, places in dislodged.get(power, {}).items()
        ]
        mine = ", ".join([*units[power], *gone]) or "no units"
        lines.append(f"{power}: {mine}; centers: {' '.join(centers[power]) or 'none'}")
    owned = {code for codes in centers.values() for code in codes}
    provinces = (game.map.provinces[v] for v in game.map.board.center_province)
    free = [code for code in provinces if code not in owned]
    if free:
        lines.append(f"Centers of nobody: {' '.join(free)}")
    lines += [
        f"{power} (played by nobody, always holds): {', '.join(units[power])}"
        for power in game.map.unit_powers[len(game.powers) :]
        if units[power]
    ]
    return "\n".join(lines) + "\n"


def _windows(question: Question, counts: bool) -> str:
    game, lines = question.game, []
    board, state = game.map.board, game.vector_game.state
    mine = game.map.power_index[question.power]
    power, kind, location = state.unit_power[0], state.unit_kind[0], state.unit_location[0]
    numbers = {slot.unit: f" ({len(slot.texts)} legal orders)" for slot in question.slots if counts}
    for v in np.flatnonzero(power == mine):
        near = board.neighbor[kind[v], location[v], : board.neighbor_count[kind[v], location[v]]]
        shown = ", ".join(_place(game, int(place)) for place in near) or "nowhere"
        unit = game.map.unit_text(kind[v], location[v])
        lines.append(f"{unit}{numbers.get(unit, '')}: {shown}")
    if not lines:
        return ""
    return "\n".join(["What your units can move to", *lines]) + "\n"


def _place(game: Game, location: int) -> str:
    board, state = game.map.board, game.vector_game.state
    v = int(board.location_province[location])
    facts = []
    if state.unit_power[0, v] != NONE:
        letter = "A" if state.unit_kind[0, v] == UnitKind.ARMY else "F"
        facts.append(f"{letter} of {game.map.unit_powers[state.unit_power[0, v]]}")
    center = board.province_center[v]
    if center != NONE:
        owner = state.center_owner[0, center]
        facts.append(f"center of {'nobody' if owner == NONE else game.powers[owner]}")
    return game.map.locations[location] + (f" ({', '.join(facts)})" if facts else "")


def _legal_orders(slots: Sequence[Slot]) -> str:
    lines = ["Legal orders"]
    if slots[0].unit.startswith(("build", "removal")):
        lines.append(f"each: {'; '.join(slots[0].texts)}")  # all slots have the same
    else:
        lines += [f"{slot.unit}: {'; '.join(slot.texts)}" for slot in slots]
    return "\n".join(lines) + "\n"


def _form(slots: Sequence[Slot], thinking: int) -> str:
    count = len(slots)
    lines = ["1 line, its order:" if count == 1 else f"{count} lines, an order each, for:"]
    lines += [slot.unit for slot in slots]
    if thinking:
        first = f"Think first, in at most {max(1, thinking * 3 // 4)} words. Then write the line"
        return "\n" + "\n".join([f'{first} "{OPENING}", and then {lines[0]}', *lines[1:]]) + "\n"
    return "\n" + "\n".join([f"Write nothing but {lines[0]}", *lines[1:]]) + "\n"


def last_movement(name: str) -> str:
    """Return the name of the movement phase before a phase, such as S1901M for S1901R."""
    year, phase = parse_phase(name)
    if phase == Phase.SPRING_MOVEMENT:
        return phase_name(year - 1, Phase.FALL_MOVEMENT)
    spring = phase in (Phase.SPRING_RETREATS, Phase.FALL_MOVEMENT)
    return phase_name(year, Phase.SPRING_MOVEMENT if spring else Phase.FALL_MOVEMENT)
