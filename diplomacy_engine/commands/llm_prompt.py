"""`llm-prompt`: the text that a language model would be shown in a position."""

import sys

from ..errors import UserError
from ..extras.language.local import LocalPlayer
from ..extras.language.prompt import prompt_text
from ..extras.language.questions import questions_of
from ..extras.language.settings import TrainedWith, read_settings
from ..players.loading import load_player
from ..players.names import LANGUAGE, LanguageSpec, parse_player
from ..rules.map import load_map
from ..textgame.game import Game
from ._flags import LlmPrompt
from ._matches import rules_of

LETTERS_PER_TOKEN = 3  # of such texts, about, with tokenizers of 50,000 tokens


def run_llm_prompt(arguments: LlmPrompt) -> int:
    name = arguments.player
    spec = parse_player(name) if name else None
    if spec is not None and not isinstance(spec, LanguageSpec):
        raise UserError(f"{name!r:.60} is not a language model, which begins with {LANGUAGE}")
    own = read_settings(spec) if spec else None
    settings = own or TrainedWith()
    rules = rules_of(arguments, load_map(arguments.map))
    game = Game(rules)
    if arguments.position:
        game = Game.from_position(arguments.position, rules)
    power = game.powers[game.map.power_number(arguments.power)]
    games = game.vector_game
    questions = questions_of(games, games.decisions(), {})
    question = next((q for q in questions if q.power == power), None)
    if question is None:
        raise UserError(f"{power} has no orders to give in {game.phase}")
    form = arguments.prompt or settings.prompt
    text = prompt_text(question, form, settings.history, own.thinking if own else 0)
    player = load_player(spec) if spec and own and own.is_local else None
    if isinstance(player, LocalPlayer):
        tokens = f"{len(player.model.prompt_tokens(text)):,} tokens of {player.settings.model}"
    else:
        tokens = f"about {len(text) // LETTERS_PER_TOKEN:,} tokens"
    sys.stdout.write(text)
    sys.stdout.flush()
    legal = sum(len(slot.texts) for slot in question.slots)
    print(f"{len(text):,} characters, {tokens}, {legal} legal orders", file=sys.stderr)
    return 0
