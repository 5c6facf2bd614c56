"""The Gymnasium ids: `import diplomacy_engine` makes `gymnasium.make("Diplomacy-small-v0")` work.

    Diplomacy-{small,three,standard}-v0             an order for each province
    Diplomacy-{small,three,standard}-sequential-v0  one unit's order at a time
    Diplomacy-{small,three,standard}-deepdip-v0     the DeepDip thesis' formulation
    Diplomacy-v0                                    any of them, by `map` and `form`
    Diplomacy-{small,three,standard}-negotiation-v0 offers alone: docs/other_libraries.md
    Diplomacy-{small,three,standard}-deals-v0       offers alone, as in its later code

Every id but the last two takes the arguments of `gymnasium_env.DiplomacyEnv`, `map=FILE` among
them, and the last two those of `negotiation_env.NegotiationEnv`.
"""

from gymnasium.envs.registration import register, registry

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
_TALKS = {"negotiation": "negotiation_env:NegotiationEnv", "deals": "deals_env:DealsEnv"}
NEGOTIATION_IDS = {
    f"Diplomacy-{name}-{form}-v0": (entry, {"map": name})
    for form, entry in _TALKS.items()
    for name in MAP_NAMES
}


def register_environments() -> None:
    """Register the ids with Gymnasium; their modules are imported when one is made."""
    for name, settings in IDS.items():
        if name not in registry:
            register(
                name,
                entry_point="diplomacy_engine.environments.gymnasium_env:DiplomacyEnv",
                vector_entry_point="diplomacy_engine.environments.gymnasium_env:DiplomacyVectorEnv",
                kwargs=settings,
                order_enforce=False,  # the environments say so themselves
            )
    for name, (entry, settings) in NEGOTIATION_IDS.items():
        if name not in registry:
            register(
                name,
                entry_point=f"diplomacy_engine.environments.{entry}",
                kwargs=settings,
                order_enforce=False,
            )
