"""A bot that was written for the `diplomacy` package, as a program of docs/protocol.md.

    python -m diplomacy_engine check-player "cmd:python examples/package_bridge.py my_bots:orders"

`my_bots:orders` is a function of a `diplomacy.Game` and the name of a power that returns a list of
orders. Needs that package (`pip install diplomacy`), and nothing of this project.
"""

import importlib
import json
import sys
from collections.abc import Callable

from diplomacy import Game


def game_of(position: dict) -> Game:
    """Return the package's game in a position, on the standard map."""
    game = Game()
    game.clear_units()
    game.clear_centers()
    game.set_current_phase(position["name"])
    for power, centers in position["centers"].items():
        game.set_centers(power, centers)
    for power, units in position["units"].items():
        if power in game.powers:
            game.set_units(power, units)
    for power, retreats in position.get("retreats", {}).items():
        game.powers[power].retreats = retreats
    return game


def answer_to(message: dict, orders: Callable[[Game, str], list[str]]) -> dict | None:
    if "hello" in message:
        return {"hello": {"protocol": 1, "name": sys.argv[1], "maps": ["standard"]}}
    if "request" not in message:
        return None  # a map's data
    answers = []
    for position in message["positions"]:
        game = game_of(position)
        answers.append({power: orders(game, power) for power in position["powers"]})
    return {"reply": message["request"], "orders": answers}


def main() -> None:
    module, _, name = sys.argv[1].partition(":")
    orders = getattr(importlib.import_module(module), name)
    for line in sys.stdin:
        answer = answer_to(json.loads(line), orders)
        if answer is not None:
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
