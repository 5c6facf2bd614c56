"""Positions on the standard map, and random play of one game."""

import random

from diplomacy_engine.games.game import Game


def state(name="S1901M", units=None, **others) -> dict:
    """Return a state dictionary."""
    return {"name": name, "units": units or {}} | others


def standard(name="S1901M", units=None, **others) -> Game:
    """Return a position on the standard map."""
    return Game.from_state("standard", state(name, units, **others))


def nonempty(by_power: dict) -> dict:
    """Return a table without empty rows."""
    return {power: items for power, items in by_power.items() if items}


def orderable(game: Game) -> dict[str, list[str]]:
    """Return the places that each power has orders for."""
    if game.phase.endswith("R"):
        return {power: list(units) for power, units in game.dislodged.items()}
    if not game.phase.endswith("A"):
        return nonempty(game.units)
    homes = game.to_state()["builds"]
    return {
        power: homes[power]["homes"] if owed > 0 else game.units[power]
        for power, owed in game.adjustments.items()
    }


def play_randomly(game: Game, rng: random.Random, phases: int = 1) -> None:
    """Give every unit a random legal order, strictly, and adjudicate."""
    for _ in range(phases):
        if game.is_over:
            return
        for power, places in orderable(game).items():
            owed = abs(game.adjustments.get(power, len(places)))
            chosen = [rng.choice(game.legal_orders(place)) for place in places]
            game.submit(power, rng.sample(chosen, owed))
        game.adjudicate()
