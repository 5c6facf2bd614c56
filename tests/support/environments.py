"""All kinds of environments, and what a policy over the observation `text` does in tests."""

import json
from functools import partial

import gymnasium
import numpy as np

from diplomacy_engine.environments.negotiation_env import NegotiationEnv
from diplomacy_engine.environments.pettingzoo_env import env as aec_env
from diplomacy_engine.environments.pettingzoo_env import parallel_env

TALK = {"orders_by": "random", "answers": "peaceful"}


def one(form: str, **settings) -> gymnasium.Env:
    return gymnasium.make("Diplomacy-v0", form=form, **settings).unwrapped


def many(**settings) -> gymnasium.vector.VectorEnv:
    return gymnasium.make_vec("Diplomacy-v0", **{"num_envs": 2} | settings)


FORMS = {name: partial(one, name) for name in ("provinces", "sequential", "deepdip", "text")}
TALKING_RULES = {
    "press": {"press": "mutual"},
    "free press": {"press": "mutual", "binding": False},
    "offers": {"press": "offers"},
}
TALKING = {name: partial(parallel_env, **rules) for name, rules in TALKING_RULES.items()}
ALL_POWERS = {"all powers": parallel_env, "in turn": aec_env} | TALKING
ORDERING = FORMS | {"many": many} | ALL_POWERS  # in which agents order
KINDS = ORDERING | {"negotiation": partial(NegotiationEnv, **TALK)}


def make(kind: str, **settings):
    return KINDS[kind](**{"map": "small", "max_years": 4} | settings)


def legal_text(position: str, rng: np.random.Generator) -> str:
    """Return legal orders at random for an observation of the form `text`, one a line."""
    shown = json.loads(position)
    orders = [rng.choice(listed) for listed in shown["legal_orders"].values()]
    owed = abs(shown["builds"][shown["power"]]["count"]) if shown["name"][-1] == "A" else None
    return "\n".join(orders[:owed])
