"""Positions on the standard map, and random play of one game."""

import json
import random
from collections.abc import Mapping
from pathlib import Path

from diplomacy_engine import Game, Map


def state(name="S1901M", units=None, **others) -> dict:
    """Return a state dictionary."""
    return {"name": name, "units": units or {}} | others


def standard(name="S1901M", units=None, **others) -> Game:
    """Return a position on the standard map."""
    return Game.from_state("standard", state(name, units, **others))


def append_saved_game(path: Path, saved: Mapping) -> None:
    """Add a saved game to a .jsonl file, as one line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(saved) + "\n")


def nonempty(by_power: dict) -> dict:
    """Return a table without empty rows."""
    return {power: items for power, items in by_power.items() if items}


def orderable(game: Game) -> dict[str, list[str]]:
    """Return the places that each power has orders for."""
    places = game.units
    if game.phase.endswith("R"):
        places = {power: list(units) for power, units in game.dislodged.items()}
    elif game.phase.endswith("A"):
        homes = game.to_state()["builds"]
        places = {
            power: homes[power]["homes"] if owed > 0 else game.units[power]
            for power, owed in game.adjustments.items()
        }
    return {power: own for power, own in nonempty(places).items() if power in game.alive}


def random_orders(game: Game, rng: random.Random) -> dict[str, list[str]]:
    """Return a random legal order for every unit, in winter as many as are owed."""
    orders = {}
    for power, places in orderable(game).items():
        owed = abs(game.adjustments.get(power, len(places)))
        chosen = [rng.choice(game.legal_orders(place)) for place in places]
        orders[power] = rng.sample(chosen, owed)
    return orders


def play_randomly(game: Game, rng: random.Random, phases: int = 1) -> None:
    """Give every unit a random legal order, strictly, and adjudicate."""
    for _ in range(phases):
        if game.is_over:
            return
        for power, texts in random_orders(game, rng).items():
            game.submit(power, texts)
        game.adjudicate()


def random_units(game_map: Map, rng: random.Random, powers: int) -> dict[str, list[str]]:
    """Return units of a few powers all over the board, from six to half of its provinces."""
    board, taken = game_map.board, set()
    units = {power: [] for power in game_map.powers[:powers]}
    spots = [(kind, here) for kind, here in zip(*board.can_stand.nonzero())]
    most = rng.randint(6, max(6, len(game_map.provinces) // 2))
    for kind, here in rng.sample(spots, len(spots)):
        v = int(board.location_province[here])
        if v not in taken and len(taken) < most:
            taken.add(v)
            units[rng.choice(list(units))].append(game_map.unit_text(kind, here))
    return units


def entangled_orders(game: Game, rng: random.Random) -> dict[str, list[str]]:
    """Return legal orders for a movement phase, most of the units that stay helping others."""
    units_of = {power: own for power, own in nonempty(game.units).items() if power in game.powers}
    units = [unit for own in units_of.values() for unit in own]
    share, chosen = rng.choice([0.3, 0.5, 0.7]), {}
    for unit in units:
        moves = [text for text in game.legal_orders(unit) if text.startswith(f"{unit} - ")]
        by_convoy = [text for text in moves if text.endswith(" VIA")]
        if moves and rng.random() < share:
            chosen[unit] = rng.choice(by_convoy if by_convoy and rng.random() < 0.5 else moves)
    moves = {text.removesuffix(" VIA") for text in chosen.values()}
    for unit in units:
        if unit not in chosen:
            legal = game.legal_orders(unit)
            about = {text: text.removeprefix(f"{unit} ")[2:] for text in legal}
            helps = [text for text, what in about.items() if what in moves]
            holds = [text for text, what in about.items() if what in units and what not in chosen]
            some = next((few for few in (helps, holds) if few and rng.random() < 0.8), legal)
            chosen[unit] = rng.choice(some)
    return {power: [chosen[unit] for unit in own] for power, own in units_of.items()}
