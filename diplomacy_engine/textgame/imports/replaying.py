"""Games that were played elsewhere, played again by our rules."""

import itertools
from collections.abc import Callable, Mapping, Sequence

from ...constants import COMPLETED, OrderKind, phase_kind
from ...errors import UserError
from ...rules import notation, reading
from ...rules.game_rules import GameRules
from ...rules.map import Map
from ..game import Game
from ..saved_game import moment
from .webdiplomacy import Phase

Note = Callable[[str], object]
_MOST_SKIPPED = 3  # phases in which nobody has anything to order


def replayed(
    phases: Sequence[Phase],
    game_map: Map | GameRules,
    game_id: str = "game",
    note: Note = lambda text: None,
) -> Game:
    """Return a game that was played elsewhere, played again by our rules. Where a phase says what
    its position was and ours is another, it goes on from the said one. The last phase may have no
    orders yet. UserError: a position is impossible, or the order of phases."""
    game = _start(phases[0], game_map)
    game.id = game_id
    return played_on(game, phases, note)


def played_on(game: Game, phases: Sequence[Phase], note: Note = lambda text: None) -> Game:
    """Return a game after more phases; see `replayed`. The game itself may be played on."""
    for phase in phases:
        game = _caught_up(game, phase, note)
        if game.phase != phase.name:
            if _says_more(game.map, phase):
                note(f"{phase.name} is skipped: by our rules this is {game.phase}")
            continue
        centers_differ = _centers_differ(game, phase)
        if phase.units and (centers_differ or _units_differ(game, phase)):
            if centers_differ or not _only_cornered_differ(game, phase):
                note(f"{phase.name} differs from our rules' result; the game continues from it")
            game = _placed(game, phase)
        still_open = phase is phases[-1] and not any(phase.orders.values())
        if game.is_over or still_open:
            break
        for power, texts in phase.orders.items():
            texts = _adjustments(game, power, texts, note)
            for reason in game.submit(power, texts, strict=False):
                places = [
                    f" (line {line})"
                    for (other, text), line in phase.lines.items()
                    if other == power and reason.startswith(f"{text!r:.200}: ")
                ]
                note(f"{phase.name}, {power}: {reason}{''.join(places)}")
        game.adjudicate()
    return game


def _says_more(game_map: Map, phase: Phase) -> bool:
    """Tell whether a phase that our rules skip has orders that they have not carried out."""
    done = OrderKind.WAIVE if phase_kind(phase.name) == "adjustments" else OrderKind.DISBAND
    kinds, texts = reading.likely_kinds(game_map), itertools.chain(*phase.orders.values())
    return any(reading.read_order(game_map, text, kinds).kind != done for text in texts)


def _start(phase: Phase, game_map: Map | GameRules) -> Game:
    game = Game(game_map)
    if not phase.units:
        if moment(phase.name) < moment(game.phase):
            raise UserError(f"{phase.name} is before {game.phase}, the first phase of the map")
        return game
    if phase.name == game.phase and not (
        _centers_differ(game, phase) or _units_differ(game, phase)
    ):
        return game
    return Game.from_state(game.rules, _state(phase, {}))


def _caught_up(game: Game, phase: Phase, note: Note) -> Game:
    """Play the phases before one in which nobody gave an order that is known."""
    if game.is_over != (phase.name == COMPLETED) and phase.units:
        return _placed(game, phase)
    skipped = 0
    while not game.is_over and moment(game.phase) < moment(phase.name):
        skipped += 1
        if phase_kind(game.phase) == "movement" or skipped > _MOST_SKIPPED:
            if not phase.units:
                raise UserError(f"{phase.name} comes where {game.phase} should")
            note(f"there is no record of {game.phase}: the game continues from {phase.name}")
            return _placed(game, phase)
        note(f"there is no record of {game.phase}: it is played without orders")
        for removal in _likely_removals(game, phase):
            note(f"{game.phase}: {removal}, since the others have orders in {phase.name}")
        game.adjudicate()
    return game


def _likely_removals(game: Game, phase: Phase) -> list[str]:
    """Order the removals of a winter of which there is no record so that the units with orders in
    the next phase stay, where the rule for missing removals would take them."""
    removals = []
    trial = game.copy()
    trial.adjudicate()
    for power, owed in game.adjustments.items():
        texts = phase.orders.get(power, ())
        units = [reading.ordered_unit(game.map, text, game.unit_kinds) for text in texts]
        ordered = {game.map.provinces[unit.place.province] for unit in units if unit}
        gone = [unit for unit in game.units[power] if unit not in trial.units[power]]
        spare = [unit for unit in game.units[power] if notation.province_of(unit) not in ordered]
        spare.sort(key=lambda unit: unit not in gone)
        if len(spare) >= -owed > 0 and any(unit not in spare for unit in gone):
            game.submit(power, [f"{unit} D" for unit in spare[:-owed]])
            removals.append(f"{power} removes {', '.join(spare[:-owed])}")
    return removals


def _centers_differ(game: Game, phase: Phase) -> bool:
    """Tell whether a spring has other centers; of other phases sites tell these late."""
    if not (is_spring_movement(phase) and any(phase.centers.values())):
        return False
    return any({*phase.centers.get(power, ())} != {*game.centers[power]} for power in game.powers)


def _units_differ(game: Game, phase: Phase) -> bool:
    """Tell whether a phase has other units than the game."""
    return any(_more_and_fewer(game, phase, power) != (set(), set()) for power in game.powers)


def _only_cornered_differ(game: Game, phase: Phase) -> bool:
    """Tell whether all other units are dislodged ones that our rules disband at once."""
    both = [_more_and_fewer(game, phase, power) for power in game.powers]
    return all(not fewer and all(unit[0] == "*" for unit in more) for more, fewer in both)


def _more_and_fewer(game: Game, phase: Phase, power: str) -> tuple[set[str], set[str]]:
    """Return the units of a power that only the phase has, and those that only the game has."""
    ours = {*game.units[power], *(f"*{unit}" for unit in game.dislodged.get(power, {}))}
    theirs = set(phase.units.get(power, ()))
    return theirs - ours, ours - theirs


def is_spring_movement(phase: Phase) -> bool:
    """Tell whether a phase is the movement phase of a spring."""
    return phase.name[0] == "S" and phase_kind(phase.name) == "movement"


def _placed(game: Game, phase: Phase) -> Game:
    retreats = game.dislodged if game.phase == phase.name else {}
    last_orders = {key: text for key, text in game.to_state().items() if key.startswith("last_")}
    phase = phase if phase.centers else phase._replace(centers=game.centers)
    placed = Game.from_state(game.rules, _state(phase, retreats) | last_orders)
    placed.id, placed.history = game.id, game.history
    return placed


def _state(phase: Phase, retreats_before: Mapping[str, Mapping[str, list[str]]]) -> dict:
    """A dislodged unit of which nothing is said may go where it went."""
    retreats: dict[str, dict[str, list[str]]] = {}
    for power, texts in phase.units.items():
        for unit in (text[1:] for text in texts if text.startswith("*")):
            goals = [t.split(" R ")[1] for t in phase.orders.get(power, []) if _leaves(t, unit)]
            places = retreats_before.get(power, {}).get(unit, goals)
            retreats.setdefault(power, {})[unit] = phase.retreats.get(unit, places)
    over = phase.name == COMPLETED
    units = {p: [t for t in texts if not t.startswith("*")] for p, texts in phase.units.items()}
    state = {"name": phase.name, "units": units, "centers": phase.centers}
    return state if over else state | {"retreats": retreats}


def _leaves(text: str, unit: str) -> bool:
    place = notation.province_of(" ".join(text.split()[:2]))
    return " R " in text and place == notation.province_of(unit)


def _adjustments(game: Game, power: str, texts: Sequence[str], note: Note) -> list[str]:
    """Return the orders of a winter's list: a unit that is there is removed, another one is built.
    More units that are there than are owed are all that a power has, and no removals."""
    if phase_kind(game.phase) != "adjustments":
        return [*texts]
    standing = {(unit[0], notation.province_of(unit)) for unit in game.units.get(power, ())}
    listed = {text: reading.listed_unit(game.map, text) for text in texts}
    units = {t: (unit[0], notation.province_of(unit)) for t, unit in listed.items() if unit}
    there = [text for text in units if units[text] in standing]
    owed = max(0, -game.adjustments.get(power, 0))
    if len(there) > owed:
        note(f"{game.phase}, {power}: {', '.join(there)}: no removals, of which it owes {owed}")
        texts = [text for text in texts if text not in there]
    verbs = {text: "D" if text in there else "B" for text in units}
    return [f"{listed[text]} {verbs[text]}" if text in verbs else text for text in texts]
