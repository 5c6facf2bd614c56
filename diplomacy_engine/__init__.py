"""A fast engine for Diplomacy: rules, maps, bots, deals, matches. The names below are public."""

from .environments import register_environments
from .errors import UserError
from .games.decisions import Decisions, order_numbers
from .games.observation import BoardViews, Observation
from .games.vector_game import StepResult, VectorGame
from .matches.evaluation import evaluate_player
from .matches.match import MatchReport, MatchSettings
from .matches.tables import play_games
from .players.advice import orders_for
from .players.asking import ask_player
from .players.bots import BOTS, make_bot
from .players.loading import PlayerError, load_player
from .players.protocols import ExplainingPlayer, Explanation, Player
from .press.game import Game
from .rules.map import MAP_NAMES, Map, MapError, load_map
from .rules.vocabulary import OrderVocabulary, vocabulary
from .scoring.mixes import RewardMix, make_reward_mix
from .scoring.rewards import REWARDS, RewardInput, make_reward, reward_input
from .scoring.teams import alive_with_team, living_mate

__version__ = "0.3.0"

register_environments()

__all__ = [
    "BOTS",
    "MAP_NAMES",
    "REWARDS",
    "BoardViews",
    "Decisions",
    "ExplainingPlayer",
    "Explanation",
    "Game",
    "Map",
    "MapError",
    "MatchReport",
    "MatchSettings",
    "Observation",
    "OrderVocabulary",
    "Player",
    "PlayerError",
    "RewardInput",
    "RewardMix",
    "StepResult",
    "UserError",
    "VectorGame",
    "alive_with_team",
    "ask_player",
    "evaluate_player",
    "living_mate",
    "load_map",
    "load_player",
    "make_bot",
    "make_reward",
    "make_reward_mix",
    "order_numbers",
    "orders_for",
    "play_games",
    "reward_input",
    "vocabulary",
]
