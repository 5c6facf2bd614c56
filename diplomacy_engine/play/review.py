"""A review of a game: what a policy thinks of each decision, beside what was ordered."""

from collections.abc import Mapping, Sequence

from ..errors import UserError
from ..games.game import Game
from ..players.advice import Advice, advice_to_all, has_decision
from ..players.protocols import ExplainingPlayer
from ..rules.map import Map
from .file import rebuild

CHOICES = 3  # likeliest orders of a unit that are kept, and the one that was given


def review(
    saved: Mapping,
    player: ExplainingPlayer,
    game_map: Map | str | None = None,
    powers: Sequence[str] | None = None,
) -> dict:
    """Return a saved game with a player's `thoughts` of the decisions of powers; None: of all.

    Phases in which that power had nothing to order, or that another program played by other rules,
    have none.
    """
    game, phases = Game.from_saved_game(saved, game_map), list(saved["phases"])
    for number, phase in enumerate(game.history):
        deciding = [p for p in powers or game.powers if has_decision(phase["state"], p)]
        try:
            found = advice_to_all(rebuild(game, number), player, deciding)
        except UserError:
            continue
        given = phase["orders"]
        thoughts = {power: _beside(one, given.get(power) or ()) for power, one in found.items()}
        phases[number] = phases[number] | {"thoughts": thoughts}
    return {**saved, "phases": phases}


def _beside(found: Advice, given: Sequence[str]) -> dict:
    """Return a power's thought with the orders that it gave among the likeliest."""
    orders, by_unit = {}, {" ".join(text.split()[:2]): text for text in given}
    for number, (slot, ranked) in enumerate(found.slots):
        unit, own = slot, by_unit.get(slot, f"{slot} H")
        if slot.split()[0] in ("build", "removal") and number < len(given):
            own = given[number]
            unit = " ".join(own.split()[:2])
        kept = ranked[:CHOICES] + [one for one in ranked[CHOICES:] if one[0] == own]
        orders[unit] = [(text, round(share, 3)) for text, share in kept]
    return {"value": None if found.value is None else round(found.value, 3), "orders": orders}
