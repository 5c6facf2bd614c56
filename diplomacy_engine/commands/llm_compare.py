"""`llm-compare`: which prompts a language model answers with legal orders, and how fast, with and
without constrained decoding."""

import copy
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._files import check_target
from .._suggest import quoted
from ..errors import UserError
from ..extras.language.player import LanguagePlayer
from ..extras.language.questions import Question
from ..extras.language.settings import LanguageSettings
from ..games.vector_game import VectorGame
from ..players.asking import ask_players
from ..players.bots import make_bot
from ..players.loading import load_player
from ..rules.map import Map, load_map
from . import _console
from ._flags import LlmCompare
from ._matches import write_result

_HISTORY = 3  # phases
# Kind of prompt -> its form, and past phases.
PROMPTS = {
    "terse": ("minimal", 0),
    "verbose": ("board", 0),
    "with legal orders": ("list", 0),
    "windows with counts": ("counts", 0),
    "with history": ("counts", _HISTORY),
}


def run_llm_compare(arguments: LlmCompare) -> int:
    check_target(arguments.json)
    player = load_player(arguments.player, seed=arguments.seed)
    if not isinstance(player, LanguagePlayer):
        raise UserError(f"{quoted(arguments.player, 60)} is not a language model (llm:...)")
    game_map, settings = load_map(arguments.map), player.settings
    questions = random_questions(player, game_map, arguments.decisions, arguments.seed)
    constraints = dict.fromkeys((settings.constraint, "none"))
    rows, figures = [], {}
    for name, (form, history) in PROMPTS.items():
        figures[name] = {}
        for constraint in constraints:
            shown = {"prompt": form, "history": history, "constraint": constraint}
            chosen = replace(settings, **shown, reasks=0)
            figures[name][constraint] = measure(player, chosen, questions)
        cells = ([f"{m['legal']:.1%}", f"{m['seconds']:.2f}"] for m in figures[name].values())
        tokens = f"{figures[name]['none']['prompt_tokens']:,.0f}"
        rows.append((name, [tokens, *(cell for pair in cells for cell in pair)]))
    console = _console.make_console()
    console.print(
        f"{settings.model} on map {game_map.name}: {len(questions):,} decisions with each prompt, "
        f"seed {arguments.seed}; share of orders legal at once, and seconds per decision, by "
        "constraint"
    )
    columns = [f"{figure}, {name}" for name in constraints for figure in ("legal", "seconds")]
    _console.print_table(console, "prompt", ["tokens", *columns], rows)
    result = {"model": settings.model, "map": game_map.name, "decisions": len(questions)}
    write_result(arguments.json, result | {"seed": arguments.seed, "prompts": figures})
    return 0


def random_questions(
    player: LanguagePlayer, game_map: Map, count: int, seed: int
) -> list[Question]:
    """Return what one power is asked in each phase of games played at random, with their past."""
    games, rng = VectorGame(game_map, 1, seed=seed, threads=1), np.random.default_rng(seed)
    recorder = LanguagePlayer("", replace(player.settings, prompt="windows", history=_HISTORY))
    bot, questions = make_bot("random"), []
    while len(questions) < count:
        decisions = games.decisions()
        power_questions = recorder.questions(games, decisions)
        questions.append(power_questions[rng.integers(len(power_questions))])
        before = int(games.state.year[0])
        games.step(ask_players(games, decisions, [bot], np.zeros(decisions.count, np.int64)))
        if games.state.year[0] < before:  # a new game
            recorder.begin(games, np.zeros(1, np.int64))
    return questions


def measure(
    player: LanguagePlayer, settings: LanguageSettings, questions: Sequence[Question]
) -> dict[str, float]:
    """Return the share of orders legal at once, seconds and tokens of a decision."""
    variant = copy.copy(player)
    variant.settings = settings
    begun = time.monotonic()
    answers = variant.answers(questions)
    seconds = time.monotonic() - begun
    exchanges = [exchange for answer in answers for exchange in answer.exchanges]
    return {
        "legal": sum(answer.at_once for answer in answers) / sum(len(q.slots) for q in questions),
        "seconds": seconds / len(questions),
        "prompt_tokens": sum(exchange.tokens_in for exchange in exchanges) / len(questions),
        "reply_tokens": sum(exchange.tokens_out for exchange in exchanges) / len(questions),
    }
