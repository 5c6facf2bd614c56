"""Deals in words: `Game` with press, its saved games, the DAIDE texts in them."""

import json
import random
import tomllib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.games import play_randomly
from support.maps import TRIBES
from support.tables import read_table

from diplomacy_engine import Game, Map, UserError
from diplomacy_engine.press.daide import Terms, clauses_of, offer_text, read_message
from diplomacy_engine.press.deals import Clause
from tests.support.press import random_offers

POSITION = "small S1901M; ENGLAND A PAR, A LON = LON PAR; RUSSIA A ROM, A MUN = MOS"
OF_DAIDE = Map(tomllib.loads(TRIBES.replace("HIL", "VIA")))  # a province called as its words are


@pytest.mark.parametrize("text", read_table(__file__, "broken_talk_in_saved_games"))
def test_broken_talk_in_saved_games(text):
    game = Game.from_position(POSITION, press="offers")
    game.send("ENGLAND", "RUSSIA", "hello (")
    game.send("ENGLAND", "RUSSIA", text)
    saved = game.to_saved_game()
    with pytest.raises(UserError, match="message 2 of S1901M"):
        Game.from_saved_game(saved, press="offers")
    assert Game.from_saved_game(saved).messages == saved["phases"][-1]["messages"]


@pytest.mark.parametrize("game_map", ["small", "standard", OF_DAIDE])
def test_words_to_daide_and_back(game_map):
    rng, game, count = np.random.default_rng(3), Game(game_map, press="offers"), 0
    games, orders = game.vector_game, random.Random(3)
    for _ in range(12):
        offers = random_offers(games, games.decisions(), rng) if game.phase[-1] == "M" else None
        for o in range(offers.count if offers else 0):
            p, q = int(offers.sender[o]), int(offers.receiver[o])
            clauses = clauses_of(offers, o)
            leaving = [(p, q)[c[1]] for c in clauses if c[0] == Clause.LEAVE]
            here = [games.state.unit_power[0, c[2]] for c in clauses if c[0] == Clause.LEAVE]
            if p == q or leaving != here:
                continue
            for phase in [""] if leaving else ["", "F1950M"]:
                terms = Terms(clauses, phase=phase)
                text = offer_text(games, p, q, terms)
                assert read_message(games, p, q, text) == ("PRP", terms), text
                assert read_message(games, p, q, f"REJ ( {text} )") == ("REJ", terms)
            count += 1
        play_randomly(game, orders)
    assert count >= 4


@pytest.mark.parametrize(
    ("order", "written", "said"),
    [
        ("F POR S F MAO - SPA/NC", "MTO ( SPA NCS )", "MTO SPA"),
        ("A LON - BEL VIA", "VIA ( ECH )", "VIA ( NTH )"),
    ],
)
def test_daide_of_others_names_no_coast_and_any_route(order, written, said):
    units = {"ENGLAND": ["A LON", "F NTH", "F ENG"], "FRANCE": ["F MAO", "F POR"]}
    games = Game.from_state("standard", {"name": "S1901M", "units": units}).vector_game
    number = games.vocabulary.number[order]
    p = 2 if order.startswith("F POR") else 1
    row = (0, 0, games.map.province_index[order[2:5]], number)
    text = offer_text(games, p, 3 - p, Terms((row,)))
    assert written in text
    assert read_message(games, p, 3 - p, text.replace(written, said)) == ("PRP", Terms((row,)))


PLACES = ("zone", "we_keep_out", "they_keep_out", "we_leave", "they_leave")
RULES = ({"press": "mutual"}, {"press": "offers", "press_rounds": 2}, {"press": "propose-choose"})


def say_at_random(game: Game, rng: random.Random) -> None:
    """Let a power offer, answer, order, vote or concede; most of it is possible."""

    def order_of(power):
        return rng.choice(
            game.legal_orders(rng.choice(game.units[power] or ["LON"])) or ["A LON H"]
        )

    me, *others = rng.sample(game.powers, len(game.powers))
    waiting = [(power, number) for power in game.powers for number in game.offers(power)]
    if waiting and rng.random() < 0.5:
        rng.choice((game.accept, game.accept, game.decline))(*rng.choice(waiting))
    elif rng.random() < 0.1:
        rng.choice((game.vote, game.vote, game.concede))(me)
    elif rng.random() < 0.3:
        texts = [order_of(rng.choice([me, *game.powers])) for _ in range(rng.randint(0, 2))]
        game.submit(me, texts, strict=rng.random() < 0.3)  # else those of others are void
    elif game.rules.press == "mutual":
        game.offer(me, others[0], peace=True)
    else:
        terms = {name: [rng.choice(game.map.provinces)] for name in PLACES if rng.random() < 0.2}
        sides = (("ours", me), ("theirs", others[0]))
        terms |= {side: [order_of(power)] for side, power in sides if rng.random() < 0.3}
        to = rng.choice((others, others[0])) if terms.keys() <= {"zone"} else others[0]
        later = {"phase": rng.choice([None, "F1901M", "S1902M", "F1902M"])}
        game.offer(me, to, peace=not terms or rng.random() < 0.2, **terms, **later)


def what_stands(game: Game) -> list:
    """Return what was said, what holds, and what may be ordered."""
    legal = {unit: game.legal_orders(unit) for power in game.powers for unit in game.units[power]}
    by_power = [(game.offers(p), game.deals(p), game.bindings(p)) for p in game.powers]
    return [legal, by_power, game.said(), game.peace(), game.votes, game.orders, game.to_state()]


@settings(max_examples=12)
@given(st.integers(0, 2**32), st.sampled_from(RULES), st.booleans())
def test_a_game_with_talk_is_the_same_in_a_copy_and_read_back(seed, rules, binding):
    """What is refused changes nothing; no deal outlasts its phase or the game."""
    game = Game("three", max_years=3, draw_votes=True, binding=binding, **rules)
    rng = random.Random(seed)
    while not game.is_over:
        for _ in range(rng.randint(0, 12) if game.phase[-1] == "M" else 0):
            if game.is_over:  # all others have conceded
                break
            before = game.to_saved_game()
            try:
                say_at_random(game, rng)
            except UserError:
                assert game.to_saved_game() == before
        saved = json.loads(json.dumps(game.to_saved_game()))
        read = Game.from_saved_game(saved), Game.from_saved_game(saved, press=rules["press"])
        others = game.copy(), *read
        assert all(what_stands(other) == what_stands(game) for other in others)
        if not game.is_over:
            for one in (game, *others):
                one.adjudicate()
        assert all(other.to_saved_game() == game.to_saved_game() for other in others)
        deals = [deal for power in game.powers for deal in game.deals(power)]
        assert game.phase[-1] == "M" or all(": in " in deal for deal in deals)
        assert not any(game.later_deals(power) for power in {*game.powers} - {*game.alive})
    assert deals == []
