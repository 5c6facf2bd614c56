"""The text that a language model is shown: one fixed text for each position and form. What never
changes comes first, since servers and models keep the beginning of a text."""

from collections.abc import Sequence

import numpy as np

from ...constants import NONE, Phase, UnitKind, parse_phase, phase_name
from ...records import shipped_toml
from ...textgame.game import Game
from .questions import Question, Slot
from .settings import TrainedWith

_TEXTS = shipped_toml(__package__, "prompt.toml")
OPENING = "Orders:"  # the line that begins a reply after free text


def prompt_text(question: Question, form: str, history: int = 1, thinking: int = 0) -> str:
    """Return the prompt of a question; it ends with a newline. The form is `list`, with all legal
    orders; `windows`, with what is near each unit; `counts`, with that and how many orders it has;
    `board`, with neither; or `minimal`, the units alone, without rules and board. `thinking` are
    tokens allowed before the orders."""
    first = _TEXTS["ordering"] if question.deals is None else _TEXTS["agreed"]
    parts = _position(question, form, history, first)
    if question.deals:
        parts.append("\n".join(["Agreed upon in this phase", *question.deals]) + "\n")
    if form == "list":
        parts.append(_legal_orders(question.slots))
    return "\n".join(parts) + _form(question.slots, thinking)


def talk_text(
    question: Question,
    settings: TrainedWith,
    lines: Sequence[str],
    task: str,
    count: int,
    binding: bool,
) -> str:
    """Return a prompt about deals; it ends with a newline. `lines` are the offers to choose from or
    to answer, with a heading; `task` describes each of the `count` lines of the reply."""
    parts = _position(question, settings.prompt, settings.history, _TEXTS["talking"])
    parts += [_TEXTS["deals" if binding else "free_deals"], "\n".join(lines) + "\n"]
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
        parts = [first + _TEXTS["rules"], _map_facts(game)]
        ending = "The game has no last year."
        years = game.rules.max_years
        if years:
            ending = f"The game ends after {game.map.board.first_year + years - 1}."
        parts.append(f"Now: {game.phase} ({_TEXTS['phases'][phase].format(year)}). {ending}\n")
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
