"""A bot for docs/protocol.md in one file, which needs nothing of this project.

    python -m diplomacy_engine evaluate --player "cmd:python examples/grabber.py" --games 20

Each unit goes to a supply center that is not its power's own if one is near, else it wanders.
"""

import json
import sys


def orders_of(position: dict, power: str) -> list[str]:
    """Return one order of a power for each of its units, none to a place taken already."""
    own, taken, orders = set(position["centers"].get(power, [])), set(), []
    centers = {code for codes in position["centers"].values() for code in codes}
    for legal in position["legal_orders"][power].values():
        goals = {o: o.split()[3][:3] for o in legal if " - " in o and not o.endswith("VIA")}
        free = [order for order, goal in goals.items() if goal not in taken]
        wanted = [order for order in free if goals[order] in centers - own]
        turn = position.get("turn", 0)
        order = (wanted or free[turn % max(1, len(free)) :] or legal)[0]
        taken.add(goals.get(order, order.split()[-1][:3]))
        orders.append(order)
    builds = position.get("builds", {}).get(power)
    return orders if builds is None else orders[: abs(builds)]


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "hello" in message:
            answer = {"hello": {"protocol": 1, "name": "grabber", "wants": ["legal_orders"]}}
        elif "request" in message:
            positions = message["positions"]
            orders = [{p: orders_of(x, p) for p in x["powers"]} for x in positions]
            answer = {"reply": message["request"], "orders": orders}
        else:
            continue  # a map's data
        print(json.dumps(answer), flush=True)


main()
