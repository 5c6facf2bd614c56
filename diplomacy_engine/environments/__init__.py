"""Gymnasium and PettingZoo environments."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return what is PettingZoo's, which only those who ask for it need to have installed."""
    if name not in ("env", "parallel_env"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import pettingzoo_env

    return getattr(pettingzoo_env, name)
