"""Players: whatever gives orders for a batch of pending decisions, by name or from a checkpoint.

The bots are players, and so is the policy in a checkpoint. The engine knows no network: it loads
the trainer's script, which must offer

    checkpoint_header(path) -> dict      with map_name, vocabulary_hash, script_name, script_sha256;
                                         map_facts, too, so that --map need not be given
    load_policy_player(path, greedy=False, seed=0, device="cpu") -> Player

both raising UserError, in one sentence, for a file that is no sound checkpoint. A language model
(language/settings.py says how one is named) is asked on a server, or run by another script, which
must offer load_language_model(settings, device, seed). Which script is
loaded is the user's choice alone: a checkpoint names the script that trained it, and its run folder
has a copy, but that copy is only ever pointed out, never run unasked.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

from .._files import file_sha256
from .._suggest import did_you_mean, quoted
from ..errors import UserError
from ..rules.map import MAP_NAMES, Map, load_map
from ..rules.vocabulary import vocabulary
from .bots import BOTS, make_bot
from .checkpoints import CHECKPOINT, POLICY, policy_file, ready_policies, script_name
from .language.settings import LanguageSettings, is_language_name, read_settings
from .negotiators.naming import make_voice, voice
from .population import MEMBER, Population, PopulationMember, read_population, read_weights
from .protocols import Player
from .search.naming import OPTIONS, make_search, spelled

SCRIPT = Path(__file__).parents[2] / "ppo_selfplay_diplomacy.py"
LANGUAGE_SCRIPT = SCRIPT.parent / "grpo_llm_diplomacy.py"
POPULATION_SCRIPT = SCRIPT.parent / "population_diplomacy.py"


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
        script: the trainer's script that plays a checkpoint; None: see `find_script`.
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
    source, module, header = _opened(path, script)
    if game_map is not None:
        _check_map(header, path, game_map)
    try:
        return module.load_policy_player(path, greedy=greedy, seed=seed, device=device)
    except Exception as error:
        # An edited script may fail in any way on a checkpoint that another version wrote.
        advice = _advice(header, path, source)
        if not advice and not isinstance(error, UserError):
            raise
        raise PlayerError(f"{_sentence(error, path)}{advice}") from error


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
    _, _, header = _opened(path, script)
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
        script = load_script(POPULATION_SCRIPT, ("population_players",))
        threads = threads or os.cpu_count() or 1
        players = script.population_players(population, policies, weights, greedy, seed, threads)
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
    script = load_script(LANGUAGE_SCRIPT, ("load_language_model",))
    return script.load_language_model(settings, device, seed)


def _checkpoint(name: str | Path) -> Path:
    """Return the checkpoint of a player that is no bot; PlayerError if there is none."""
    try:
        path = policy_file(name)
    except OSError:
        path = Path(name)  # one that no file can have
    if os.path.isfile(path):
        return path
    if os.path.isdir(name):
        raise PlayerError(f"the folder {name} has neither {CHECKPOINT} nor {POLICY}")
    kind = re.match(r"([a-z]+)[(:]", str(name))  # of a search, as in `fast:PATH`
    near = did_you_mean(kind[1], OPTIONS) if kind else ""
    near = near or did_you_mean(str(name), (*BOTS, *ready_policies()))
    raise PlayerError(
        f"there is no player {quoted(str(name), 300)}: it is neither a bot ({', '.join(BOTS)}) "
        f"nor a file{near}"
    )


def _opened(path: Path, script: str | Path | None) -> tuple[Path, ModuleType, dict]:
    """Return the script that plays a checkpoint, that as a module, and the checkpoint's header."""
    source = find_script(path) if script is None else Path(script)
    module = load_script(source)
    return source, module, _header(module, path)


def find_script(checkpoint: Path) -> Path:
    """Return the script that plays a checkpoint, as far as the repository has it.

    That is the one beside SCRIPT whose name the checkpoint gives, else SCRIPT. No other folder is
    looked in, so that a checkpoint cannot choose code that came along with it. And no other name
    than those of trainers: an installed SCRIPT lies among the modules of all other packages.
    """
    name = script_name(checkpoint) or ""
    sibling = SCRIPT.parent / name
    return sibling if re.fullmatch(r"\w+_diplomacy\.py", name) and sibling.is_file() else SCRIPT


def load_script(
    path: str | Path, functions: Sequence[str] = ("checkpoint_header", "load_policy_player")
) -> ModuleType:
    """Return a script as a module; PlayerError if it has not the `functions` of one that plays.

    The module is kept: the same unchanged file is loaded once.
    """
    if not os.path.isfile(path):
        raise PlayerError(f"there is no script {path} to play checkpoints with")
    path = Path(path).resolve()
    name = f"_diplomacy_script_{file_sha256(path)[:16]}"
    module = sys.modules.get(name)
    if module is None or module.__file__ != str(path):
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise PlayerError(f"{path} is no Python script")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up
        try:
            spec.loader.exec_module(module)
        except (ImportError, SyntaxError) as error:
            del sys.modules[name]
            extra = getattr(error, "name", None) in ("transformers", "tokenizers")
            hint = ": pip install '.[llm]'" if extra else ""
            raise PlayerError(f"{path} cannot be loaded: {error}{hint}") from error
        except BaseException:
            del sys.modules[name]
            raise
    for function in functions:
        if not callable(getattr(module, function, None)):
            raise PlayerError(f"{path} is no trainer's script: it has no function {function}")
    return module


def _header(module: ModuleType, path: Path) -> dict:
    try:
        header = module.checkpoint_header(path)
    except (UserError, KeyError, TypeError) as error:
        raise PlayerError(_sentence(error, path)) from error
    for key in ("map_name", "vocabulary_hash", "script_name", "script_sha256"):
        if not isinstance(header, dict) or not isinstance(header.get(key), str):
            raise PlayerError(f"checkpoint {path} does not say its {key}")
    return header


def _sentence(error: Exception, path: Path) -> str:
    """Return an error as a sentence that names the checkpoint."""
    text = " ".join(str(error).split())[:300] or type(error).__name__
    return text if str(path) in text else f"checkpoint {path} cannot be played: {text}"


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


def _advice(header: dict, path: Path, source: Path) -> str:
    """Return what to do if another script trained the checkpoint, else nothing."""
    sha256, name = header["script_sha256"], header["script_name"]
    if sha256 == file_sha256(source):
        return ""
    if not re.fullmatch(r"[\w .-]{1,100}", name):
        return "; it was trained by another script, which --script can name"
    for folder in (path.parent, path.parent.parent):  # the file lies in the run or checkpoints/
        copy = folder / name
        if copy.is_file() and copy.resolve() != source.resolve() and file_sha256(copy) == sha256:
            return f"; another script trained it, so if you trust that one try --script {copy}"
    return f"; it was trained by another {name} (sha256 {sha256[:12]!r}), which --script can name"
