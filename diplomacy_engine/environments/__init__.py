"""Gymnasium and PettingZoo environments; `import diplomacy_engine` registers the ids.

All take the arguments of DiplomacyEnv (`map=FILE` among them), but the last those of
NegotiationEnv.
"""

from typing import TYPE_CHECKING

from gymnasium.envs.registration import register, registry

from ..errors import UserError
from ..rules.map import MAP_NAMES

_FORMS = {
    "": {"form": "provinces"},
    "-sequential": {"form": "sequential"},
    "-text": {"form": "text"},
    "-deepdip": {"form": "deepdip", "opponents": "dumbbot-deepdip", "reward": "deepdip"},
}
IDS = {
    f"Diplomacy-{name}{form}-v0": {"map": name, **settings}
    for form, settings in _FORMS.items()
    for name in MAP_NAMES
} | {"Diplomacy-v0": {}}
NEGOTIATION_IDS = {f"Diplomacy-{name}-negotiation-v0": {"map": name} for name in MAP_NAMES}


def register_environments() -> None:
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


if TYPE_CHECKING:
    from .pettingzoo_env import env as env
    from .pettingzoo_env import parallel_env as parallel_env
else:

    def __getattr__(name: str):
        """PettingZoo need only be installed for its own names."""
        if name not in ("env", "parallel_env"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            from . import pettingzoo_env
        except ModuleNotFoundError as error:
            raise UserError(f"{name}: {error}; pip install pettingzoo") from None
        return getattr(pettingzoo_env, name)
