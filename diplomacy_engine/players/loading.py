"""Players by name or checkpoint; learning/ and extras/language/ are loaded only if needed.

A name is read once as a `PlayerSpec` (names.py). `load_player` makes its player: `_Loader` has a
case for each kind of spec, and makes the players inside it (the policy of a search) likewise.
`policy_map` says which map a policy has learned, before anything else of it is needed.
"""

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from .._cores import usable_cores
from .._suggest import did_you_mean, quoted
from ..errors import UserError
from ..press.negotiators.negotiation import Silent
from ..press.negotiators.neighbors import Coin, Peaceful
from ..press.negotiators.planners import Breaker, Dealer, Grudge, Nash, Sanction
from ..rules.map import Map
from ..rules.vocabulary import vocabulary
from . import names
from .bots import BOTS, make_bot
from .names import PlayerSpec, SelfSpec, assuming, assumption, parse_player, short_name
from .policy.files import CHECKPOINT, POLICY, policy_file, ready_policies
from .policy.player import PolicyPlayer
from .population import Population, PopulationMember, read_population, read_weights
from .protocols import Player
from .search.assumptions import Assumptions
from .search.best_response import FAST, BestResponse, SearchSettings
from .search.draws import Draws, PlayerDraws, PolicyDraws, VariedDraws
from .search.leaves import Critic

_NEGOTIATORS = (Silent, Peaceful, Coin, Dealer, Nash, Breaker, Grudge, Sanction)
NEGOTIATORS = {negotiator.__name__.lower(): negotiator for negotiator in _NEGOTIATORS}


class PlayerError(UserError):
    """A player cannot be loaded; the message has its name and the reason."""


def load_player(
    name: str | Path | PlayerSpec,
    *,
    game_map: Map | None = None,
    script: str | Path | None = None,
    device: str = "cpu",
    greedy: bool = False,
    assume: str | None = None,
    careful: bool = False,
) -> Player:
    """Return the player of a name; `player.name` is its `short_name`.

    Args:
        name: such as `dumbbot`, a run folder or `fast:POLICY` (docs/tournament.md lists all forms).
        game_map: the map to play; a checkpoint of another map is refused at once.
        script: plays checkpoints whose names have no script; None: the bundled script that the
            checkpoint names; "own": the copy in its run folder.
        device: of the policy, as torch names it.
        greedy: likeliest orders instead of sampled ones; without effect on bots.
        assume: model of the other players for searches whose names have none.
        careful: a policy gives no order that cannot succeed, see own_help.mended.

    PlayerError: there is no such player, or the checkpoint cannot be played. UserError: the name is
    invalid, or its parts do not fit each other.
    """
    spec = assuming(parse_player(name), assume)
    player = _Loader(game_map, script, device, greedy, careful).load(spec)
    # By it matches know equal players. No class declares it: a user's own player needs none.
    vars(player)["spec"] = spec
    return player


@dataclass(frozen=True)
class _Loader:
    """Makes a player and those inside it, by the arguments of `load_player`."""

    game_map: Map | None
    script: str | Path | None
    device: str
    greedy: bool
    careful: bool

    def load(self, spec: PlayerSpec) -> Player:
        """Return the player of a spec, without a `spec` of its own."""
        match spec:
            case names.BotSpec():
                return make_bot(spec.name)
            case names.PolicySpec():
                return self._configured(spec, self._policy(spec))
            case names.MemberSpec():
                return self._configured(spec, self._member(spec))
            case names.SearchSpec():
                return make_search(spec, self.load)
            case names.VoiceSpec():
                is_talker = spec.kind == "talker"
                voice = language_module("talker").Talker if is_talker else NEGOTIATORS[spec.kind]
                return voice(self.load(spec.player), short_name(spec), **dict(spec.options))
            case names.LanguageSpec():
                loading = language_module("loading")
                return loading.load_language_player(spec, self.device, self.greedy)
            case names.ProgramSpec():
                programs = importlib.import_module("diplomacy_engine.extras.programs.player")
                return programs.start_program(spec, self.greedy)
            case names.OwnSpec():
                return _own_player(spec)
            case _:  # DrawnSpec and SelfSpec have no player of their own
                raise PlayerError(
                    f"{quoted(spec.text)} is a member of a population that `play` draws for each "
                    "game; name a member or a policy here"
                )

    def _policy(self, spec: names.PolicySpec) -> Any:
        saved = _checkpoint(spec)
        if self.game_map is not None:
            check_map(saved, f"checkpoint {saved.path}", self.game_map)
        script = spec.script or self.script
        greedy = spec.greedy or self.greedy
        return learning_module("registry").policy_of_checkpoint(saved, script, greedy, self.device)

    def _member(self, spec: names.MemberSpec) -> Any:
        population = read_population(Path(spec.path).parent, self.game_map)
        members = [population.member(spec.name)]
        return load_members(population, members, greedy=self.greedy or spec.greedy, threads=1)[0]

    def _configured(self, spec: PlayerSpec, player: Any) -> Player:
        """Return a player with its name, that gives its orders as carefully as is wanted."""
        player.name = short_name(spec)
        player.careful = self.careful
        return player


def make_search(spec: names.SearchSpec, load: Callable[[PlayerSpec], Player]) -> Player:
    """Return the search of a spec; `load` makes the policies in it. UserError: its policy has no
    values."""
    policy = load(spec.policy)
    options = dict(spec.options)
    if not isinstance(policy, PolicyPlayer) or not policy.settings:
        without = f"{quoted(spec.policy.text, 60)} has no values to search with"
        raise UserError(f"{quoted(spec.text, 100)}: {without}, as a trained policy has")
    own: Draws = PolicyDraws(policy, options.pop("temperature", 1.0))
    if varied := options.pop("varied", 0.0):
        own = VariedDraws(own, varied)
    assumed = make_assumptions(spec.assume or assumption("self"), policy, load)
    settings = SearchSettings(**(FAST._asdict() | options))
    return BestResponse(own, Critic(policy), short_name(spec), assumed, settings)


def make_assumptions(
    assumed: names.Assumed, policy: PolicyPlayer, load: Callable[[PlayerSpec], Player]
) -> Assumptions:
    """Return the models of the other players for a search of `policy`; `load` makes them."""
    players = assumed.players
    if assumed.kind == "pool":
        folder = Path(players[0].files[0] or "").parent / "checkpoints"
        players = [parse_player(path) for path in sorted(folder.glob("*.pt"))]
        if not players:
            where = f"--assume {quoted(assumed.text, 60)}"
            raise UserError(f"{where}: there are no checkpoints in {folder}")

    def draws(spec: PlayerSpec) -> Draws:
        player = policy if isinstance(spec, SelfSpec) else load(spec)
        return PolicyDraws(player) if isinstance(player, PolicyPlayer) else PlayerDraws(player)

    return Assumptions({spec.text: draws(spec) for spec in players}, assumed.kind == "infer")


def _own_player(spec: names.OwnSpec) -> Player:
    """Return the player that a class or function of a user's module makes."""
    player_name = quoted(spec.text, 300)
    try:
        make = getattr(importlib.import_module(spec.module), spec.name)
        player = make() if spec.argument is None else make(spec.argument)
    except UserError:
        raise
    except Exception as error:  # whatever a user's module does wrong
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise PlayerError(f"player {player_name} cannot be made: {reason:.300}") from error
    if not callable(getattr(player, "act", None)):
        kind = quoted(type(player).__name__)
        raise PlayerError(f"{player_name} is not a player: it has no method act; it is a {kind}")
    player.name = short_name(spec)
    return player


def policy_map(name: str | Path | PlayerSpec) -> Map | None:
    """Return the map that a player has learned, or its population's; None: it plays any map."""
    spec = parse_player(name)
    match spec:
        case names.VoiceSpec(player=within) | names.SearchSpec(policy=within):
            return policy_map(within)
        case names.MemberSpec(path=path):
            return read_population(Path(path).parent).map
        case names.DrawnSpec(folder=str(folder)):
            return read_population(folder).map
    return _checkpoint(spec).map if isinstance(spec, names.PolicySpec) else None


def load_members(
    population: Population,
    members: Sequence[PopulationMember] | None = None,
    *,
    greedy: bool = False,
    threads: int | None = None,
) -> list[Player]:
    """Return members, or all, as players asked together, in `threads` (None: `usable_cores`)."""
    members = population.members if members is None else members
    policies = [member for member in members if member.file]
    weights = [read_weights(population, member) for member in policies]  # before torch is loaded
    players: dict[str, Player] = {m.name: make_bot(m.name) for m in members if not m.file}
    if policies:
        options = {"greedy": greedy, "threads": threads or usable_cores()}
        make = learning_module("populations").population_players
        players |= {p.name: p for p in make(population, policies, weights, **options)}
    return [players[member.name] for member in members]


def learning_module(module: str) -> ModuleType:
    """Return a module of learning/, which loads PyTorch."""
    return importlib.import_module(f"diplomacy_engine.learning.{module}")


def language_module(module: str) -> ModuleType:
    """Return a module of extras/language/."""
    return importlib.import_module(f"diplomacy_engine.extras.language.{module}")


def _checkpoint(spec: names.PolicySpec) -> Any:
    """Return a policy's checkpoint. PlayerError: there is none of this name."""
    path = policy_file(spec.path)
    if os.path.isfile(path):
        stat = os.stat(path)
        return _read_checkpoint(path, (stat.st_ino, stat.st_mtime_ns, stat.st_size))
    if os.path.isdir(spec.path):
        reason = f"the folder {spec.path} has neither {CHECKPOINT} nor {POLICY}"
    else:
        near = did_you_mean(spec.path.partition("+")[0], (*BOTS, *NEGOTIATORS, *ready_policies()))
        listed = f"listed by `python -m diplomacy_engine policies`{near}"
        reason = f"it is neither a bot ({', '.join(BOTS)}), a file, nor {listed}"
    raise PlayerError(f"there is no player {quoted(spec.text, 300)}: {reason}")


@lru_cache(maxsize=1)
def _read_checkpoint(path: Path, version: tuple[int, ...]) -> Any:
    """Return what a file holds. The newest is kept, since a command asks for a policy's map first
    and then for its player; another `version` is another file under the same path."""
    return learning_module("checkpoints").read(path)


def check_map(saved: dict, what: str, game_map: Map) -> None:
    """Raise PlayerError, which begins with `what`, unless a checkpoint is of this map."""
    if saved["vocabulary_hash"] != vocabulary(game_map).hash:
        theirs, ours = saved["map_name"], game_map.name
        trained = f"map {theirs!r:.60}, not on" if theirs != ours else "another version of map"
        raise PlayerError(f"{what} was trained on {trained} {ours!r}")
