"""A fast engine for no-press Diplomacy: rules, maps, bots, matches. The names below are public."""

from .arena import evaluate_player, play_games
from .bots import BOTS, make_bot
from .game import Game
from .map import MAP_NAMES, Map, MapError, load_map
from .observation import Observation
from .orders import OrderVocabulary, vocabulary
from .players import ExplainingPlayer, Explanation, Player, PlayerError, load_player
from .registration import register_environments
from .scoring import REWARDS, RewardInput, make_reward, make_reward_mix, reward_input
from .vector_game import Decisions, StepResult, VectorGame

__version__ = "0.1.0"

register_environments()

__all__ = [
    "BOTS",
    "MAP_NAMES",
    "REWARDS",
    "Decisions",
    "ExplainingPlayer",
    "Explanation",
    "Game",
    "Map",
    "MapError",
    "Observation",
    "OrderVocabulary",
    "Player",
    "PlayerError",
    "RewardInput",
    "StepResult",
    "VectorGame",
    "evaluate_player",
    "load_map",
    "load_player",
    "make_bot",
    "make_reward",
    "make_reward_mix",
    "play_games",
    "reward_input",
    "vocabulary",
]
