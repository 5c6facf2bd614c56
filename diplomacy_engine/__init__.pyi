# The public names of the package, for type checkers and for __init__.py, which imports each when it
# is first asked for. `X as X` makes X public.
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

__version__: str
