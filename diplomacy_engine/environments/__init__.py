"""Gymnasium and PettingZoo environments.

`import diplomacy_engine` registers their ids: `gymnasium.make("Diplomacy-small-v0")` works.

    Diplomacy-{small,three,standard}-v0             an order for each province
    Diplomacy-{small,three,standard}-sequential-v0  one unit's order at a time
    Diplomacy-{small,three,standard}-deepdip-v0     the DeepDip thesis' formulation
    Diplomacy-v0                                    any of them, by `map` and `form`
    Diplomacy-{small,three,standard}-negotiation-v0 offers alone: docs/other_libraries.md

Every id but the last takes the arguments of `gymnasium_env.DiplomacyEnv`, `map=FILE` among them,
and the last those of `negotiation_env.NegotiationEnv`.
"""

from typing import Any

from gymnasium.envs.registration import register, registry

from ..errors import UserError
from ..rules.map import MAP_NAMES

_FORMS = {
    "": {"form": "provinces"},
    "-sequential": {"form": "sequential"},
    "-deepdip": {"form": "deepdip", "opponents": "dumbbot-deepdip", "reward": "deepdip"},
}
IDS = {
    f"Diplomacy-{name}{form}-v0": {"map": name, **settings}
    for form, settings in _FORMS.items()
    for name in MAP_NAMES
} | {"Diplomacy-v0": {}}
NEGOTIATION_IDS = {f"Diplomacy-{name}-negotiation-v0": {"map": name} for name in MAP_NAMES}


def register_environments() -> None:
    """Register the ids with Gymnasium; their modules are imported when one is made."""
    ordering, talking = f"{__name__}.gymnasium_env:", f"{__name__}.negotiation_env:"
    for name, settings in (IDS | NEGOTIATION_IDS).items():
        orders = name in IDS
        if name not in registry:
            register(
                name,
                entry_point=f"{ordering}DiplomacyEnv" if orders else f"{talking}NegotiationEnv",
                vector_entry_point=f"{ordering}DiplomacyVectorEnv" if orders else None,
                kwargs=settings,
                order_enforce=False,  # the environments say so themselves
            )


def __getattr__(name: str) -> Any:
    """PettingZoo need only be installed for its own names."""
    if name not in ("env", "parallel_env"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import pettingzoo_env
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pettingzoo":
            raise
        raise UserError(f"{name} needs the package PettingZoo: pip install pettingzoo") from None
    return getattr(pettingzoo_env, name)
