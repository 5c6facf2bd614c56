"""Players that search, made of how they are written."""

from collections.abc import Callable
from pathlib import Path

from ..._suggest import did_you_mean, quoted
from ...errors import UserError
from ..names import ASSUMING, SEARCHES, PlayerSpec, SearchSpec, assumption, parse_player, short_name
from ..policy import PolicyPlayer
from ..policy_files import policy_file
from ..protocols import Player
from .assumptions import Assumptions
from .best_response import FAST, BestResponse
from .draws import Draws, PlayerDraws, PolicyDraws, VariedDraws
from .equilibrium import Equilibrium
from .leaves import Critic


def make_search(spec: SearchSpec, load: Callable[[PlayerSpec], Player]) -> Player:
    where, policy = quoted(spec.text, 100), load(spec.policy)
    if not isinstance(policy, PolicyPlayer) or policy.settings is None:
        raise UserError(
            f"{where}: {quoted(spec.policy.text, 60)} has no values to search with; a search "
            "needs a checkpoint or run folder of a trained policy"
        )
    name, options = short_name(spec), dict(spec.options)
    own: Draws = PolicyDraws(policy, options.pop("temperature", 1.0))
    varied = options.pop("varied", 0.0)
    if varied:
        own = VariedDraws(own, varied)
    value = Critic(policy)
    if spec.kind == ASSUMING:
        assumed = make_assumptions(spec.assume or "self", policy, load)
        return BestResponse(own, value, name, assumed, FAST._replace(**options))
    return Equilibrium(own, value, name, **options)


def make_assumptions(
    text: str, policy: PolicyPlayer, load: Callable[[PlayerSpec], Player]
) -> Assumptions:
    """Return who the others are taken for.

    `text` is `self` (the policy), a player, `pool:FOLDER` for any of the checkpoints in a run
    folder, or `infer:` with several of the first two and commas between.
    """
    kind, names = assumption(text)
    if kind == "pool":
        folder = policy_file(names[0]).parent / "checkpoints"
        names = [str(path) for path in sorted(Path(folder).glob("*.pt"))]
        if not names:
            raise UserError(f"--assume {quoted(text, 60)}: there are no checkpoints in {folder}")
    if len(set(names)) < len(names) or "" in names:
        raise UserError(f"--assume {quoted(text, 60)} names a player twice, or an empty one")
    before, _, rest = text.partition(":")
    meant = did_you_mean(before, ("infer", "pool")) if rest and not kind else ""
    if meant and before not in SEARCHES and not Path(text).exists():
        raise UserError(f"--assume {quoted(text, 60)}: there is no {quoted(before, 20)}{meant}")

    def draws(name: str) -> Draws:
        player = policy if name == "self" else load(parse_player(name))
        return PolicyDraws(player) if isinstance(player, PolicyPlayer) else PlayerDraws(player)

    return Assumptions({name: draws(name) for name in names}, learns=kind == "infer")
