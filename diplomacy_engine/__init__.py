# ruff: noqa: F401 - what only type checkers import
"""A fast engine for Diplomacy: rules, maps, bots, deals, matches. The names below are public, each
imported when it is first asked for, so that commands start without what they do not need."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from ._version import VERSION

if TYPE_CHECKING:
    from .errors import UserError
    from .games.decisions import Decisions, order_numbers
    from .games.observation import BoardViews, Observation
    from .games.order_lists import without_orders
    from .games.own_help import own_choices
    from .games.vector_game import StepResult, VectorGame
    from .matches.evaluation import evaluate_player
    from .matches.match import MatchReport, MatchSettings
    from .matches.tables import play_games
    from .players.advice import orders_for
    from .players.asking import ask_player, begin_games
    from .players.bots import BOTS, make_bot
    from .players.checking import check_player
    from .players.loading import PlayerError, load_player
    from .players.protocols import ExplainingPlayer, Explanation, Player
    from .rules.map import MAP_NAMES, Map, MapError, load_map
    from .rules.vocabulary import OrderVocabulary, vocabulary
    from .scoring.mixes import RewardMix, make_reward_mix
    from .scoring.rewards import REWARDS, RewardInput, make_reward, reward_input
    from .scoring.teams import alive_with_team, living_mate
    from .textgame.game import Game

__version__ = VERSION

_PUBLIC = {  # module -> its names that are public
    "errors": ["UserError"],
    "games.decisions": ["Decisions", "order_numbers"],
    "textgame.game": ["Game"],
    "games.observation": ["BoardViews", "Observation"],
    "games.order_lists": ["without_orders"],
    "games.own_help": ["own_choices"],
    "games.vector_game": ["StepResult", "VectorGame"],
    "matches.evaluation": ["evaluate_player"],
    "matches.match": ["MatchReport", "MatchSettings"],
    "matches.tables": ["play_games"],
    "players.advice": ["orders_for"],
    "players.asking": ["ask_player", "begin_games"],
    "players.bots": ["BOTS", "make_bot"],
    "players.checking": ["check_player"],
    "players.loading": ["PlayerError", "load_player"],
    "players.protocols": ["ExplainingPlayer", "Explanation", "Player"],
    "rules.map": ["MAP_NAMES", "Map", "MapError", "load_map"],
    "rules.vocabulary": ["OrderVocabulary", "vocabulary"],
    "scoring.mixes": ["RewardMix", "make_reward_mix"],
    "scoring.rewards": ["REWARDS", "RewardInput", "make_reward", "reward_input"],
    "scoring.teams": ["alive_with_team", "living_mate"],
}
_HOME = {name: f".{module}" for module, names in _PUBLIC.items() for name in names}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


if sys.argv[:1] != ["-m"]:  # a command of `python -m diplomacy_engine` makes no environment by id
    importlib.import_module(".environments", __name__).register_environments()
