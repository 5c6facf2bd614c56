"""How figures are written, in tables and on pages: `97.5% (94.3 to 98.9)`."""

from collections.abc import Mapping
from typing import Any


def percent(share: float, digits: int = 1) -> str:
    """Return a share from 0 to 1 in percent."""
    return f"{100 * share:.{digits}f}%"


def share_text(figure: Mapping[str, float], digits: int = 1) -> str:
    """Return a share in percent with its interval; `figure` has `value`, `low` and `high`."""
    value, low, high = (f"{100 * figure[name]:.{digits}f}" for name in ("value", "low", "high"))
    return f"{value}% ({low} to {high})"


def mean_text(figure: Mapping[str, float], digits: int = 1) -> str:
    """Return a mean or rating with its interval, as `share_text` does a share."""
    value, low, high = (f"{figure[name]:.{digits}f}" for name in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def limit_text(rules: Mapping[str, Any]) -> str:
    """Return when games end at the latest; `rules` have `max_years` and `year_limit`."""
    then = "then a draw" if rules["year_limit"] == "draw" else "then cut off"
    return f"at most {rules['max_years']} years, {then}"


def counted(number: int, what: str) -> str:
    """Return a number of things, `1 center` or `3 centers`."""
    return f"{number:,} {what}{'s' * (number != 1)}"
