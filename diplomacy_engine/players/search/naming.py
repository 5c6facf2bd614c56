"""How a searching player is written: `fast:PATH`, or `fast(profiles=28 assume=dumbbot):PATH`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..._suggest import did_you_mean, quoted
from ...errors import UserError
from ..policy import PolicyPlayer
from ..policy_files import policy_file
from ..protocols import Player
from .assumptions import Assumptions
from .best_response import FAST, FULL, BestResponse
from .draws import Draws, PlayerDraws, PolicyDraws
from .equilibrium import Equilibrium, Matrix
from .leaves import Critic
from .variations import VariedDraws

_SPELLING = re.compile(r"(fast|full|equilibrium|matrix)(?:\(([^()]*)\))?:(.+)", re.DOTALL)
# Option -> least, most and type of its value, for each kind of search.
_COMMON = {
    "candidates": (1, 1000, int),
    "draws": (1, 10_000, int),
    "temperature": (0.01, 100, float),
    "varied": (0, 1, float),
}
_SBR = _COMMON | {"profiles": (1, 10_000, int), "sure": (0, 100, float), "ahead": (0, 10, int)}
OPTIONS = {
    "fast": _SBR,
    "full": _SBR,
    "equilibrium": _COMMON | {"iterations": (1, 100_000, int), "anchor": (0, 1000, float)},
    "matrix": _COMMON | {"anchor": (0, 1000, float)},
}
TEMPERATURE = {"full": 3.0}  # of the last draw, where it is not 1
VARIED = {"full": 0.5}  # share of the draws that have another order for one unit, where it is not 0
ASSUMING = ("fast", "full")  # kinds of search that expect something of the others


class Spelled(NamedTuple):
    """A searching player's name, taken apart."""

    kind: str  # fast, full, equilibrium or matrix
    options: dict[str, Any]
    assume: str | None
    policy: str  # checkpoint or run folder


def spelled(name: str) -> Spelled | None:
    """Return the parts of a searching player's name; None if it is another player's.

    Raises:
        UserError: an option is unknown, or its value out of range.
    """
    found = _SPELLING.fullmatch(name)
    if found is None:
        return None
    kind, text, policy = found.groups()
    known, options, assume = OPTIONS[kind], {}, None
    for part in (text or "").split():
        option, equals, value = part.partition("=")
        names = (*known, "leaf", *["assume"] * (kind in ASSUMING))
        if not equals or option not in names:
            raise UserError(
                f"{quoted(name, 100)}: {kind} has no option {quoted(option)} "
                f"({', '.join(names)}){did_you_mean(option, names)}"
            )
        if option == "assume":
            assume = value
            continue
        if option == "leaf":
            options[option] = value
            continue
        least, most, convert = known[option]
        try:
            options[option] = convert(value)
        except ValueError:
            options[option] = None
        if options[option] is None or not least <= options[option] <= most:
            what = "a whole number" if convert is int else "a number"
            raise UserError(
                f"{quoted(name, 100)}: {option} must be {what} from {least} to {most:,}, "
                f"not {quoted(value)}"
            )
    return Spelled(kind, options, assume, policy)


def make_search(
    name: str, parts: Spelled, load: Callable[[str], Player], assume: str | None = None
) -> Player:
    """Return a searching player.

    Args:
        name: as it was written, shown in results.
        parts: of the name.
        load: returns a player by its name.
        assume: who the others are taken for, if the name does not say it.

    Raises:
        UserError: it cannot search with that policy, or not on its map.
    """

    def valuing(path: str) -> PolicyPlayer:
        player = load(path)
        if isinstance(player, PolicyPlayer) and player.settings is not None:
            return player
        raise UserError(
            f"{quoted(name, 100)}: {quoted(path, 60)} has no values to search with; a search "
            "needs a checkpoint or run folder of a trained policy"
        )

    policy = valuing(parts.policy)
    assume, options = parts.assume or assume, dict(parts.options)
    leaf = valuing(options.pop("leaf")) if "leaf" in options else policy
    if leaf.agent.vocabulary_hash != policy.agent.vocabulary_hash:
        raise UserError(
            f"{quoted(name, 100)}: {quoted(leaf.name, 60)} values boards of another map than that "
            f"of {quoted(parts.policy, 60)}"
        )
    own: Draws = PolicyDraws(policy, options.pop("temperature", TEMPERATURE.get(parts.kind, 1.0)))
    varied = options.pop("varied", VARIED.get(parts.kind, 0.0))
    if varied:
        own = VariedDraws(own, varied)
    value = Critic(leaf)
    if parts.kind in ASSUMING:
        preset = FAST if parts.kind == "fast" else FULL
        assumed = make_assumptions(assume, policy, load)
        shown = f"{name} expecting {assume}" if assume and not parts.assume else name
        return BestResponse(own, value, shown, assumed, preset._replace(**options))
    if parts.kind == "equilibrium":
        return Equilibrium(own, value, name, **options)
    if policy.agent.num_powers != 2:
        raise UserError(
            f"{quoted(name, 100)}: matrix needs a map of two powers, "
            f"and {policy.settings['map']} has {policy.agent.num_powers}"
        )
    return Matrix(own, value, name, **options)


def make_assumptions(
    assume: str | None, policy: PolicyPlayer, load: Callable[[str], Player]
) -> Assumptions:
    """Return who the others are taken for.

    Args:
        assume: `self` (or None), a player, `pool:FOLDER` for any of the checkpoints in a run
            folder, or `infer:` with several of the first two and commas between.
        policy: what `self` is.
        load: returns a player by its name.
    """
    text = assume or "self"
    kind, _, rest = text.partition(":")
    if kind == "pool":
        folder = policy_file(rest).parent / "checkpoints"
        names = [str(path) for path in sorted(Path(folder).glob("*.pt"))]
        if not names:
            raise UserError(f"--assume {quoted(text, 60)}: there are no checkpoints in {folder}")
    else:
        names = rest.split(",") if kind == "infer" else [text]
    if len(set(names)) < len(names) or "" in names:
        raise UserError(f"--assume {quoted(text, 60)} names a player twice, or an empty one")

    meant = did_you_mean(kind, ("infer", "pool")) if rest and kind not in ("infer", "pool") else ""
    if meant and kind not in OPTIONS and not Path(text).exists():
        raise UserError(f"--assume {quoted(text, 60)}: there is no {quoted(kind, 20)}{meant}")

    def draws(name: str) -> Draws:
        player = policy if name == "self" else load(name)
        return PolicyDraws(player) if isinstance(player, PolicyPlayer) else PlayerDraws(player)

    return Assumptions({name: draws(name) for name in names}, learns=kind == "infer")
