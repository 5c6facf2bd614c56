"""What a policy over the environments' observations does in tests."""

import json

import numpy as np


def legal_text(position: str, rng: np.random.Generator) -> str:
    """Return legal orders at random for an observation of the form `text`, one a line."""
    shown = json.loads(position)
    orders = [rng.choice(listed) for listed in shown["legal_orders"].values()]
    owed = abs(shown["builds"][shown["power"]]["count"]) if shown["name"][-1] == "A" else None
    return "\n".join(orders[:owed])
