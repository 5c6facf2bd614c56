"""Players: whatever gives orders for a batch of pending decisions, by name or from a checkpoint.

The bots are players, and so are the policy in a checkpoint and a language model that runs here.
For these, and only when one is asked for, the folder learning/ is loaded, with PyTorch.
"""

import importlib
import importlib.util
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .._suggest import did_you_mean
from ..errors import UserError
from ..rules.map import MAP_NAMES, Map, load_map
from ..rules.vocabulary import vocabulary
from .bots import BOTS, make_bot
from .language.settings import LanguageSettings, is_language_name, read_settings
from .negotiators.naming import make_voice, voice
from .policy_files import CHECKPOINT, POLICY, policy_file, ready_policies
from .population import MEMBER, Population, PopulationMember, read_population, read_weights
from .protocols import Player
from .search.naming import OPTIONS, make_search, spelled


class PlayerError(UserError):
    """A player cannot be had; the message is one sentence that says which and why."""


def load_player(
    name: str | Path,
    *,
    game_map: Map | None = None,
    script: str | Path | None = None,
    device: str = "cpu",
    greedy: bool = False,
    seed: int = 0,
    assume: str | None = None,
) -> Player:
    """Return a player.

    Args:
        name: of a bot, the path of a checkpoint or of a folder that has one, the name of a policy
            that comes along, such as small-pure-2 (both: `policy_file`), the file of a member of a
            population, a search on such a policy, as search/naming.py reads it, a language model,
            or any of these with a negotiator before it, as negotiators/naming.py reads it.
        game_map: the map to be played; a checkpoint of another one is refused at once.
        script: that plays a checkpoint; None: the one that it names, of those that come along.
        device: where the policy computes, as torch names it.
        greedy: likeliest orders instead of sampled ones; a bot always plays in its one way.
        seed: of the policy's draws; those of bots and searches come from the games' seeds.
        assume: who searches take the others for, if their names do not say it.

    Raises:
        PlayerError: there is no such player, or the checkpoint cannot be played.
    """
    if str(name) in BOTS:
        return make_bot(str(name))
    if is_language_name(str(name)):
        return _language_player(str(name), device, greedy, seed)
    options = {"game_map": game_map, "script": script, "device": device, "seed": seed}
    load = partial(load_player, greedy=greedy, **options)
    talking = voice(str(name))
    if talking is not None:
        return make_voice(str(name), talking, load(talking.player, assume=assume))
    parts = spelled(str(name))
    if parts is not None:
        return make_search(str(name), parts, load, assume)
    if Path(name).suffix == MEMBER:
        population = read_population(Path(name).parent, game_map)
        members = [population.member(Path(name).name)]
        return load_members(population, members, greedy=greedy, seed=seed, threads=1)[0]
    path = _checkpoint(name)
    learners, scripts = learning("learners"), (script,) if script else ()
    if game_map is not None:
        _check_map(learners.header(path), path, game_map)
    return learners.load_player(path, scripts, greedy, seed, device)


def policy_map(name: str | Path, script: str | Path | None = None) -> Map | None:
    """Return the map that a player was trained on; None for one that plays any.

    Args:
        name, script: as for `load_player`.

    Raises:
        PlayerError: there is no such player, or its checkpoint does not hold its map.
    """
    if str(name) in BOTS or is_language_name(str(name)):
        return None
    talking = voice(str(name))
    if talking is not None:
        return policy_map(talking.player, script)
    parts = spelled(str(name))
    if parts is not None:
        return policy_map(parts.policy, script)
    if Path(name).suffix == MEMBER:
        return read_population(Path(name).parent).map
    path = _checkpoint(name)
    header = learning("learners").header(path)
    if header["map_name"] in MAP_NAMES:
        known = load_map(header["map_name"])
        if vocabulary(known).hash == header["vocabulary_hash"]:
            return known
    try:
        return Map(dict(header["map_facts"]), header["map_name"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise PlayerError(f"checkpoint {path} does not hold its map: give it with --map") from None


def load_members(
    population: Population,
    members: Sequence[PopulationMember] | None = None,
    *,
    greedy: bool = False,
    seed: int = 0,
    threads: int | None = None,
) -> list[Player]:
    """Return members of a population as players; asked together, they answer in batches.

    Args:
        members: of `population`; None: all.
        greedy, seed: of their draws, as for `load_player`.
        threads: that share the batches; None: as many as there are processors.

    Raises:
        UserError: a member's file is missing, changed, or does not fit; the message names it.
    """
    members = population.members if members is None else members
    policies = [member for member in members if member.file]
    weights = [read_weights(population, member) for member in policies]  # before torch is loaded
    made: dict[str, Player] = {m.name: make_bot(m.name) for m in members if not m.file}
    if policies:
        threads, populations = threads or os.cpu_count() or 1, learning("populations")
        players = populations.population_players(
            population, policies, weights, greedy, seed, threads
        )
        made |= {player.name: player for player in players}
    return [made[member.name] for member in members]


def _language_player(name: str, device: str, greedy: bool, seed: int) -> Player:
    """Return a language model as a player; what only such players need is imported here."""
    settings = read_settings(name)
    from .language.making import make_language_player

    return make_language_player(name, settings, _load_model, device, greedy, seed)


def _load_model(settings: LanguageSettings, device: str, seed: int) -> object:
    if importlib.util.find_spec("transformers") is None:
        raise PlayerError(
            "a language model that runs here needs more packages: pip install '.[llm]'"
        )
    return learning("language_model").load_language_model(settings, device, seed)


def learning(module: str) -> Any:
    """Return a module of the folder learning/, and with it PyTorch."""
    return importlib.import_module(f"diplomacy_engine.learning.{module}")


def _checkpoint(name: str | Path) -> Path:
    """Return the checkpoint of a player that is no bot; PlayerError if there is none."""
    path = policy_file(name)
    if path.is_file():
        return path
    if Path(name).is_dir():
        raise PlayerError(f"the folder {name} has neither {CHECKPOINT} nor {POLICY}")
    kind = re.match(r"([a-z]+)[(:]", str(name))  # of a search, as in `fast:PATH`
    near = did_you_mean(kind[1], OPTIONS) if kind else ""
    near = near or did_you_mean(str(name), (*BOTS, *ready_policies()))
    raise PlayerError(
        f"there is no player {str(name)!r}: it is neither a bot ({', '.join(BOTS)}) "
        f"nor a file{near}"
    )


def _check_map(header: dict, path: Path, game_map: Map) -> None:
    if header["vocabulary_hash"] == vocabulary(game_map).hash:
        return
    if header["map_name"] != game_map.name:
        raise PlayerError(
            f"checkpoint {path} was trained on map {header['map_name']!r:.60}, "
            f"not on {game_map.name!r}"
        )
    raise PlayerError(
        f"checkpoint {path} was trained on another version of map {game_map.name!r}: "
        "its orders are numbered differently"
    )
