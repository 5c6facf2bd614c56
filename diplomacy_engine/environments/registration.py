"""The Gymnasium ids: `import diplomacy_engine` makes `gymnasium.make("Diplomacy-small-v0")` work.

    Diplomacy-{small,three,standard}-v0             an order for each province
    Diplomacy-{small,three,standard}-sequential-v0  one unit's order at a time
    Diplomacy-{small,three,standard}-deepdip-v0     the DeepDip thesis' formulation
    Diplomacy-v0                                    any of them, by `map` and `form`

Every id takes the arguments of `gymnasium_env.DiplomacyEnv`, `map=FILE` among them.
"""

from gymnasium.envs.registration import register, registry

from ..rules.map import MAP_NAMES

_FORMS = {
    "": {"form": "provinces"},
    "-sequential": {"form": "sequential"},
    "-deepdip": {"form": "deepdip", "opponents": "dumbbot", "reward": "deepdip"},
}
IDS = {
    f"Diplomacy-{name}{form}-v0": {"map": name, **settings}
    for form, settings in _FORMS.items()
    for name in MAP_NAMES
} | {"Diplomacy-v0": {}}


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
