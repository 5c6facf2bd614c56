"""What docs/press.md shows is true."""

import pytest
from support.pages import blocks, page_text, shown

from diplomacy_engine.players.loading import NEGOTIATORS
from diplomacy_engine.press.deals import MAX_CLAUSES, REFUSALS
from diplomacy_engine.press.press import MOST_ROUNDS

PAGE = page_text("docs/press.md")


@pytest.mark.parametrize("code", blocks(PAGE, "python"))
def test_examples(code, capsys):
    exec(code, {})
    said = [line.strip() for line in code.splitlines() if line.strip().startswith("print(error)")]
    wanted = [line.partition("  # ")[2] for line in said] + shown(code)
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(wanted)


def test_tables():
    for name in (*NEGOTIATORS, "talker", *REFUSALS):
        assert f"\n| `{name}` |" in PAGE, name
    assert (
        f"1 to {MAX_CLAUSES} in an offer" in PAGE and f"(default {MOST_ROUNDS} in a `Game`" in PAGE
    )
