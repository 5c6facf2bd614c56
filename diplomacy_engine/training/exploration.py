"""Settings that a population of trainings varies (Jaderberg et al. 2017)."""

from collections.abc import Callable
from typing import Any

import numpy as np

QUARTER = 0.25  # probability that a setting is drawn anew
SPREAD = 3.0  # it then is between a third and three times what the population began with
FACTORS = (0.8, 1.2)  # by one of which others change
SHARES = ("latest_prob", "pool_bot_prob", "warm_up_share", "weak_seats")  # at most 1
RESTS = ("gae_lambda", "gamma")  # varied is what they lack to 1
SIZES = ("clip_coef", "ent_coef", "kl_coef", "learning_rate", "reward_mix", "update_epochs")
VARIED = (*SHARES, *RESTS, *SIZES)


def explored(settings: dict, first: Any, rng: np.random.Generator, anew: float = QUARTER) -> dict:
    """Return settings as another member of a population tries them.

    Args:
        settings: of VARIED.
        first: those that the population began with, as attributes.
        rng: of the draws.
        anew: probability that a setting is drawn around that, not changed by one of FACTORS.
    """
    found = {}
    for name, value in settings.items():
        if rng.random() < anew:
            value, factor = getattr(first, name), lambda: SPREAD ** rng.uniform(-1, 1)
        else:
            factor = lambda: rng.choice(FACTORS)  # noqa: E731
        found[name] = _varied(name, value, factor)
    return found


def _varied(name: str, value: Any, factor: Callable[[], float]) -> Any:
    """Return a setting times a factor; of a reward mix, each weight times one of its own."""
    if name == "reward_mix":
        parts = []
        for part in value.split(","):
            reward, _, weight = part.partition("=")
            ramp, at, until = (weight or "1").partition("@")
            drawn = factor()
            ends = (f"{float(end) * drawn:.4g}" for end in ramp.split(".."))
            parts.append(f"{reward.strip()}={'..'.join(ends)}{at}{until}")
        return ",".join(parts)
    if name == "update_epochs":
        return max(1, round(value * factor()))
    if name in RESTS:
        return float(f"{1 - min(1.0, (1 - value) * factor()):.6g}")
    most = 1.0 if name in SHARES else np.inf
    return float(f"{min(most, value * factor()):.4g}")
