"""Prompts: the same text as ever for each kind of phase, map and form, with all that there is."""

import os
from pathlib import Path

import pytest
from support.language import question, question_of_game

from diplomacy_engine.extras.language.player import LanguagePlayer
from diplomacy_engine.extras.language.prompt import prompt_text
from diplomacy_engine.extras.language.settings import PROMPTS, settings_of
from diplomacy_engine.games.game import Game

GOLDEN = Path(__file__).parent / "golden_prompts"
# Name -> position and power: all five kinds of phase, builds and removals, on all maps.
POSITIONS = {
    "small_S1901M": ("small S1901M; ENGLAND A LON = LON; RUSSIA A MOS = MOS", "ENGLAND"),
    "small_S1902R": (
        "small S1902R; ENGLAND A PAR, A WAL = LON PAR; RUSSIA *A LON > HOL, A MOS = MOS",
        "RUSSIA",
    ),
    "three_F1901M": None,
    "standard_F1901M": (
        "standard F1901M; FRANCE A SPA, A BUR, F MAO = BRE MAR PAR; ENGLAND F ENG, F NTH, A WAL = "
        "EDI LVP LON; GERMANY A MUN = BER KIE MUN",
        "FRANCE",
    ),
    "standard_F1901R": (
        "standard F1901R; GERMANY *A MUN > BOH RUH, F STP/SC = BER KIE; FRANCE A MUN = MAR PAR",
        "GERMANY",
    ),
    "standard_W1901A_builds": (
        "standard W1901A; FRANCE A BUR, F MAO = PAR MAR BRE BEL; GERMANY A MUN = MUN",
        "FRANCE",
    ),
    "standard_W1901A_removals": (
        "standard W1901A; RUSSIA A MOS, F STP/NC, A WAR = MOS; GERMANY A MUN = MUN",
        "RUSSIA",
    ),
}


def asked(name):
    if name == "three_F1901M":
        game = Game("three", max_years=10)
        for power in game.powers:
            unit = game.units[power][0]
            game.submit(power, [game.legal_orders(unit)[-1]])
        game.adjudicate()
        found = question_of_game(game, game.powers[0])
        player = LanguagePlayer("test", settings_of({"model": "m"}, "test"))
        (found, *_) = player.questions(game.vector_game, game.vector_game.decisions())
        return found
    return question(*POSITIONS[name], max_years=20)


@pytest.mark.parametrize("form", PROMPTS)
@pytest.mark.parametrize("name", POSITIONS)
def test_golden_prompts(name, form):
    """With RENEW_PROMPTS=1 in the environment they are written anew: look at what changes."""
    text = prompt_text(asked(name), form)
    file = GOLDEN / f"{name}_{form}.txt"
    if os.environ.get("RENEW_PROMPTS"):
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("name", POSITIONS)
def test_prompts_tell_all(name):
    found = asked(name)
    game = found.game
    for form in ("list", "windows"):
        text = prompt_text(found, form)
        for power in game.powers:
            everything = [*game.units[power], *game.dislodged.get(power, {}), *game.centers[power]]
            line = next(line for line in text.splitlines() if line.startswith(f"{power}: "))
            assert all(word in line for word in everything)
        assert text.endswith("\n") and text.startswith("You give the orders")
    listed = prompt_text(found, "list")
    for slot in found.slots:
        assert all(order in listed for order in slot.texts)
    shortest = prompt_text(found, "minimal")
    assert all(slot.unit in shortest for slot in found.slots)
    assert len(shortest) < len(prompt_text(found, "windows")) and len(shortest) < len(listed)


def test_the_beginning_is_the_same_for_all_positions():
    texts = [prompt_text(asked(name), "windows") for name in POSITIONS]
    common, *_ = {text.partition("\nMap ")[0] for text in texts}
    assert len(common) > 1000 and all(text.startswith(common) for text in texts)


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
