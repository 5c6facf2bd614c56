"""A table of order texts as people write them: each is read as what it says, or refused."""

import pytest
from support.tables import read_table

from diplomacy_engine import Game, UserError

STATES = dict(read_table(__file__, "order_forms_states"))


def submitted(phase: str, power: str, text: str) -> list[str]:
    game = Game.from_state("standard", STATES[phase])
    game.submit(power, [text])
    return game.orders[power]


@pytest.mark.parametrize(("phase", "power", "order", "text"), read_table(__file__, "order_forms"))
def test_a_form_of_an_order(phase, power, order, text):
    assert submitted(phase, power, text) == [order]
    if not text.endswith("(convoy)"):  # a result, behind which people write what they like
        with pytest.raises(UserError):
            submitted(phase, power, f"{text} xyzzy")


@pytest.mark.parametrize(("phase", "power", "text"), read_table(__file__, "order_forms_refused"))
def test_what_is_not_clear_is_refused(phase, power, text):
    with pytest.raises(UserError) as error:
        submitted(phase, power, text)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("phase", "power", "orders", "reason"),
    [
        *read_table(__file__, "refused_with_the_reason"),
        ("seas", "FRANCE", ["x" * 500], "a text of at most 200 characters"),
    ],
)
def test_refused_with_the_reason(phase, power, orders, reason):
    game = Game.from_state("standard", STATES[phase])
    with pytest.raises(UserError) as error:
        game.submit(power, orders)
    assert str(error.value).startswith(repr(orders[-1])[:200]) and reason in str(error.value)
    assert game.orders == {}, "a refused list leaves nothing behind"
    if phase == "seas":
        game.submit(power, orders, strict=False)
        assert game.orders[power] in (orders, [orders[0].removesuffix(" VIA")])
