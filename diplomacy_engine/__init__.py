"""A fast engine for Diplomacy: rules, maps, bots, deals, matches. The names below are public, each
imported when it is first asked for, so that commands start without what they do not need."""

import importlib
import sys
from typing import TYPE_CHECKING

from ._version import VERSION

if TYPE_CHECKING:  # `X as X` makes X public for type checkers
    # isort: off
    from .errors import UserError as UserError
    from .games.decisions import Decisions as Decisions, order_numbers as order_numbers
    from .games.observation import BoardViews as BoardViews, Observation as Observation
    from .games.order_lists import without_orders as without_orders
    from .games.own_help import own_choices as own_choices
    from .games.vector_game import StepResult as StepResult, VectorGame as VectorGame
    from .matches.evaluation import evaluate_player as evaluate_player
    from .matches.match import MatchReport as MatchReport, MatchSettings as MatchSettings
    from .matches.tables import play_games as play_games
    from .players.advice import orders_for as orders_for
    from .players.asking import ask_player as ask_player
    from .players.bots import BOTS as BOTS, make_bot as make_bot
    from .players.checking import check_player as check_player
    from .players.loading import PlayerError as PlayerError, load_player as load_player
    from .players.protocols import (
        ExplainingPlayer as ExplainingPlayer,
        Explanation as Explanation,
        Player as Player,
    )
    from .rules.game_rules import GameRules as GameRules
    from .rules.map import (
        MAP_NAMES as MAP_NAMES,
        Map as Map,
        MapError as MapError,
        load_map as load_map,
    )
    from .rules.vocabulary import OrderVocabulary as OrderVocabulary, vocabulary as vocabulary
    from .scoring.mixes import RewardMix as RewardMix, make_reward_mix as make_reward_mix
    from .scoring.rewards import (
        REWARDS as REWARDS,
        RewardInput as RewardInput,
        make_reward as make_reward,
        reward_input as reward_input,
    )
    from .scoring.teams import alive_with_team as alive_with_team, living_mate as living_mate
    from .textgame.game import Game as Game

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
    "players.asking": ["ask_player"],
    "players.bots": ["BOTS", "make_bot"],
    "players.checking": ["check_player"],
    "players.loading": ["PlayerError", "load_player"],
    "players.protocols": ["ExplainingPlayer", "Explanation", "Player"],
    "rules.game_rules": ["GameRules"],
    "rules.map": ["MAP_NAMES", "Map", "MapError", "load_map"],
    "rules.vocabulary": ["OrderVocabulary", "vocabulary"],
    "scoring.mixes": ["RewardMix", "make_reward_mix"],
    "scoring.rewards": ["REWARDS", "RewardInput", "make_reward", "reward_input"],
    "scoring.teams": ["alive_with_team", "living_mate"],
}
_HOME = {name: f".{module}" for module, names in _PUBLIC.items() for name in names}
__all__ = list(_HOME)


if not TYPE_CHECKING:  # else a name that is not there would be no error

    def __getattr__(name: str):
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOME[name], __name__), name)
        globals()[name] = value
        return value


if sys.argv[:1] != ["-m"]:  # a command of `python -m diplomacy_engine` makes no environment by id
    importlib.import_module(".environments", __name__).register_environments()
