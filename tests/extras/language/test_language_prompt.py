"""Prompts: the same text as ever for each kind of phase, map and form, with all that there is."""

from pathlib import Path

import pytest
from support.language import question, question_of_game
from support.tables import read_table

from diplomacy_engine.extras.language.player import LanguagePlayer
from diplomacy_engine.extras.language.prompt import prompt_text
from diplomacy_engine.extras.language.settings import settings_of
from diplomacy_engine.textgame.game import Game

GOLDEN = Path(__file__).parent / "golden_prompts"
# Name -> position and power: all five kinds of phase, builds and removals, on all maps.
POSITIONS = dict(read_table(__file__, "positions_of_golden_prompts"))


def asked(name):
    if name == "three_F1901M":
        game = Game("three", max_years=10)
        for power in game.powers:
            unit = game.units[power][0]
            game.submit(power, [game.legal_orders(unit)[-1]])
        game.adjudicate()
        player = LanguagePlayer("test", settings_of({"model": "m"}, "test"))
        (found, *_) = player.questions(game.vector_game, game.vector_game.decisions())
        return found
    return question(*POSITIONS[name], max_years=20)


LISTS = ["three_F1901M", "standard_W1901A_removals"]  # each unit by itself; all slots alike
FORMS = [(name, form) for name in POSITIONS for form in ("windows", "minimal")]


@pytest.mark.parametrize(("name", "form"), [*FORMS, *((name, "list") for name in LISTS)])
def test_golden_prompts(name, form):
    """What never changes comes first, so that a server can keep it."""
    rest = (GOLDEN / f"{name}_{form}.txt").read_text()
    beginning = "" if form == "minimal" else (GOLDEN / "beginning.txt").read_text()
    assert prompt_text(asked(name), form) == beginning + rest


def test_history_and_thinking():
    found = asked("three_F1901M")
    assert found.past and found.past[0][0] == "S1901M"
    text = prompt_text(found, "windows", history=1)
    assert "Orders of S1901M" in text
    assert "Orders of S1901M" not in prompt_text(found, "windows", history=0)
    thinking = prompt_text(found, "windows", thinking=100)
    assert 'Then write the line "Orders:"' in thinking


def test_orders_of_this_phase_are_not_told():
    game = Game("small")
    before = prompt_text(question_of_game(game, "ENGLAND"), "windows")
    game.submit("RUSSIA", ["A MOS - FIN"])
    assert prompt_text(question_of_game(game, "ENGLAND"), "windows") == before
