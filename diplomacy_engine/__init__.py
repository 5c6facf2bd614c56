# ruff: noqa: F401 - what only type checkers import
"""A fast engine for Diplomacy: rules, maps, bots, deals, matches. The names below are public.

Each is imported when it is first asked for, so that commands start without what they do not need.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import UserError
    from .games.decisions import Decisions, order_numbers
    from .games.game import Game
    from .games.observation import BoardViews, Observation
    from .games.own_help import own_choices
    from .games.vector_game import StepResult, VectorGame
    from .matches.evaluation import evaluate_player
    from .matches.match import MatchReport, MatchSettings
    from .matches.tables import play_games
    from .players.advice import orders_for
    from .players.asking import ask_player
    from .players.bots import BOTS, make_bot
    from .players.loading import PlayerError, load_player
    from .players.protocols import ExplainingPlayer, Explanation, Player
    from .rules.map import MAP_NAMES, Map, MapError, load_map
    from .rules.vocabulary import OrderVocabulary, vocabulary
    from .scoring.mixes import RewardMix, make_reward_mix
    from .scoring.rewards import REWARDS, RewardInput, make_reward, reward_input
    from .scoring.teams import alive_with_team, living_mate

__version__ = "0.4.0"

_HOME = {  # public name -> the module that it is from
    "BOTS": ".players.bots",
    "BoardViews": ".games.observation",
    "Decisions": ".games.decisions",
    "ExplainingPlayer": ".players.protocols",
    "Explanation": ".players.protocols",
    "Game": ".games.game",
    "MAP_NAMES": ".rules.map",
    "Map": ".rules.map",
    "MapError": ".rules.map",
    "MatchReport": ".matches.match",
    "MatchSettings": ".matches.match",
    "Observation": ".games.observation",
    "OrderVocabulary": ".rules.vocabulary",
    "Player": ".players.protocols",
    "PlayerError": ".players.loading",
    "REWARDS": ".scoring.rewards",
    "RewardInput": ".scoring.rewards",
    "RewardMix": ".scoring.mixes",
    "StepResult": ".games.vector_game",
    "UserError": ".errors",
    "VectorGame": ".games.vector_game",
    "alive_with_team": ".scoring.teams",
    "ask_player": ".players.asking",
    "evaluate_player": ".matches.evaluation",
    "living_mate": ".scoring.teams",
    "load_map": ".rules.map",
    "load_player": ".players.loading",
    "make_bot": ".players.bots",
    "make_reward": ".scoring.rewards",
    "make_reward_mix": ".scoring.mixes",
    "order_numbers": ".games.decisions",
    "orders_for": ".players.advice",
    "own_choices": ".games.own_help",
    "play_games": ".matches.tables",
    "reward_input": ".scoring.rewards",
    "vocabulary": ".rules.vocabulary",
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


if sys.argv[:1] != ["-m"]:  # a command of `python -m diplomacy_engine` makes no environment by id
    importlib.import_module(".environments", __name__).register_environments()
