"""Adjudicates positions in the `diplomacy` package's own Python: a line of JSON in, a line out.

In: map, state, orders (power -> texts), the state in the package's format. Out: the state that
follows, the orders that the package took, and the results of units.
"""

import json
import sys

from diplomacy import Game


def main() -> None:
    games: dict[str, Game] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        name = asked["map"]
        game = games.get(name)
        if game is None:
            game = games[name] = Game(map_name=name, rules=["IGNORE_ERRORS", "POWER_CHOICE"])
        game.set_state(asked["state"])
        for power, texts in asked["orders"].items():
            game.set_orders(power, texts)
        taken = game.get_orders()
        results = game.process().results
        found = {"state": game.get_state(), "taken": taken}
        found["results"] = {unit: [str(word) for word in words] for unit, words in results.items()}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
