"""The opponents of the command `play`: their list, and how they are loaded."""

import glob
import os
from importlib.util import find_spec
from pathlib import Path

from .._suggest import quoted
from ..errors import UserError
from ..play.file import PlayRecord
from ..play.session import MIXED
from ..play.talk import players_talk
from ..players import population as populations
from ..players.advice import advice, orders_by_player
from ..players.bots import BOTS
from ..players.loading import load_members
from ..players.names import DrawnSpec, drawn_names, is_drawn, parse_player
from ..players.policy import files
from ..players.protocols import ExplainingPlayer, Player
from ..records import shipped_toml
from ..rules.map import MAP_NAMES, Map, load_map
from ..textgame.game import Game
from ._flags import Play
from ._matches import load_by_flags

_RUNS = 10  # of the user's own that the page offers
TALKERS = ("nash+dumbbot", "dealer+dumbbot", "peaceful+dumbbot")  # to choose on the page


def levels(map_name: str, talk: bool) -> dict[str, str]:
    """Return easy, medium, hard -> player.

    The three strongest of these: in 200 games on `small` two against two `random` won 0%,
    `dumbbot` 64% and `small-pure-1` 86%; in 70 on `standard` (sampled seats of three kinds)
    `dumbbot` had 1% solos, `standard-human` 16% and `standard-0.3-2` 24%.
    """
    policies = mixed(map_name, talk)
    people = [name for name in policies if name.endswith("-human")]
    best = [name for name in policies if "dumbbot-" not in name and name not in people][:1]
    bots = ["hold", "peaceful+dumbbot", "nash+dumbbot"] if talk else ["random", "dumbbot"]
    return dict(zip(("easy", "medium", "hard"), [*bots, *people, *best][-3:]))


def rated(map_name: str) -> list[str]:
    """Return the players of a rated game on a map: a drawn member of its population a power."""
    powers = load_map(map_name).powers
    has_population = map_name in MAP_NAMES and (populations.FOLDERS / map_name).is_dir()
    is_rated_map = has_population and find_spec("torch")
    return drawn_names(["population"], len(powers)) if is_rated_map else []


def mixed(map_name: str, talk: bool) -> list[str]:
    """Return the players of a mixed table: the bundled policies, best first.

    With `talk` each has a negotiator.
    """
    policies = files.policies_of(map_name) if find_spec("torch") else []
    return [f"nash+{name}" if talk else name for name in policies]


def offered(map_name: str, talk: bool) -> dict[str, str]:
    """Return the players that the page offers, each with its description.

    The bundled policies come first, best first, then the newest of the user's own runs of the map.
    """
    policies = mixed(map_name, False)
    descriptions = {MIXED: "a different one for each power"} if policies else {}
    if talk:
        descriptions |= {
            f"nash+{name}": f"makes deals; {_described(name)}" for name in policies[:1]
        }
        descriptions |= dict.fromkeys(TALKERS, "makes deals")
    descriptions |= {name: _described(name) for name in policies}
    pattern = f"{glob.escape(map_name)}__*/{files.CHECKPOINT}"
    run_files = Path("runs").glob(pattern) if policies else ()
    newest = sorted(run_files, key=os.path.getmtime, reverse=True)[:_RUNS]
    descriptions |= {str(file.parent): "your run" for file in newest}
    for name in policies[:1]:
        descriptions[f"fast:{name}"] = "looks a phase ahead, slow"
    bots = dict.fromkeys(["dumbbot", *BOTS]) if not policies else BOTS
    bot_texts = shipped_toml(__package__, "texts.toml")["bots"]
    return descriptions | {name: bot_texts.get(name, "a bot") for name in bots}


def _described(policy: str) -> str:
    """Return how a policy was trained and how often it wins, such as `trained by self-play, wins
    64% against dumbbot`."""
    wins = files.wins_against_dumbbot(files.ready_policies()[policy])
    share = f", wins {wins['value']:.0%} against dumbbot" if wins else ""
    training = files.training_of(policy)
    by = "by " if training.startswith("self") else ""
    return f"trained {by}{training}{share}"


def load(arguments: Play, name: str, game: Game, seed: int) -> Player:
    """Return a player for a game, once it has shown in another one like it that it can play.

    `seed` draws a member of a population; `arguments` say how all play.
    """
    if is_drawn(name):
        population, member = member_of(name, game.map, seed)
        player = load_members(population, [member], threads=1, greedy=arguments.greedy)[0]
    else:
        player = load_by_flags(name, game.map, arguments, careful=True)
    rehearse(Game(game.rules), name, player)
    return player


def drawn(record: PlayRecord, game_map: Map) -> dict[str, str]:
    """Return the members behind the opponents of a record that are drawn from a population."""
    names = filter(is_drawn, record.opponents)
    return {name: member_of(name, game_map, record.seed)[1].name for name in names}


def member_of(
    name: str, game_map: Map, seed: int
) -> tuple[populations.Population, populations.PopulationMember]:
    """Return the population that a player's name says, and the member that `seed` draws from it.

    UserError: it is not the name of a member drawn.
    """
    spec = parse_player(name)
    if not isinstance(spec, DrawnSpec) or spec.number is None:
        raise UserError(f"{quoted(name)} is not one of the members drawn")
    return populations.drawn_member(spec.folder, spec.number, game_map, seed)


def rehearse(trial: Game, name: str, player: Player) -> None:
    """Let a player order and explain once, so that errors appear and kernels compile before the
    game."""
    try:
        if trial.table is not None:
            players_talk(trial, dict.fromkeys(trial.powers, player), 0)
        orders = orders_by_player(trial, player, trial.powers, 0)
        if isinstance(player, ExplainingPlayer):
            advice(trial, player, next(iter(orders)))
    except UserError:
        raise
    except Exception as error:  # a checkpoint's script is the user's own
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"{name} cannot give orders or hints: {reason}") from error
    trial.adjudicate()
