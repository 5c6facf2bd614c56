"""Deals in words: `Game` with press, its saved games, the DAIDE texts in them."""

import json
import random
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.games import play_randomly
from support.tables import read_table

from diplomacy_engine import Game, UserError
from diplomacy_engine.press.daide import Terms, clauses_of, offer_text, read_message
from diplomacy_engine.press.deals import Clause, province_bits
from tests.support.press import random_offers

POSITION = "small S1901M; ENGLAND A PAR, A LON = LON PAR; RUSSIA A ROM, A MUN = MOS"


def game_with(press: str, position: str = POSITION) -> Game:
    state = Game.from_position(position).to_state()
    game = Game(position.split()[0], press=press)
    return Game.from_saved_game(
        game.to_saved_game()
        | {"phases": [{"name": state["name"], "state": state, "orders": {}, "results": {}}]},
        press=press,
    )


def test_a_deal_from_offer_to_order():
    game = game_with("offers")
    number = game.offer("ENGLAND", "RUSSIA", ours=["A PAR H"], theirs=["A ROM S A PAR"], zone="SPA")
    text = "A PAR H; A ROM S A PAR; ENGLAND and RUSSIA keep out of SPA and leave it"
    assert game.offers("RUSSIA") == {number: f"ENGLAND: {text}"} and game.offers("ENGLAND") == {}
    assert game.deals("ENGLAND") == [] and "A PAR - SPA" in game.legal_orders("PAR")
    game.accept("RUSSIA", number)
    assert game.offers("RUSSIA") == {} and game.deals("RUSSIA") == [f"with ENGLAND: {text}"]
    assert game.legal_orders("A ROM") == ["A ROM S A PAR"]
    with pytest.raises(UserError, match="it breaks the deal with ENGLAND: A PAR H; A ROM S A PAR"):
        game.submit("RUSSIA", ["A ROM - PAR"])
    game.submit("RUSSIA", ["A ROM - PAR"], strict=False)
    game.adjudicate()
    assert game.history[-1]["orders"]["RUSSIA"] == ["A ROM S A PAR"]
    assert game.deals("RUSSIA") == [] and len(game.legal_orders("A ROM")) > 1


def test_the_units_of_who_conceded_hold_whatever_was_promised():
    game = Game("three", press="offers")
    for phase in (None, "F1901M"):
        number = game.offer("ENGLAND", "ITALY", theirs=["A ROM - APU"], phase=phase)
        game.accept("ITALY", number)
    game.concede("ITALY")
    for _ in range(2):
        assert game.submit("ITALY", ["A ROM - TUS"], strict=False)
        game.adjudicate()
        assert game.history[-1]["orders"]["ITALY"] == [] and "A ROM" in game.units["ITALY"]


def test_peace_by_two_offers():
    game = game_with("mutual")
    first = game.offer("ENGLAND", "RUSSIA", peace=True)
    assert game.offers("RUSSIA") == {first: "ENGLAND: peace between ENGLAND and RUSSIA"}
    with pytest.raises(UserError, match="already offered it"):
        game.offer("ENGLAND", "RUSSIA", peace=True)
    with pytest.raises(UserError, match="only peace"):
        game.offer("RUSSIA", "ENGLAND", ours=["A ROM H"])
    game.accept("RUSSIA", first)
    assert game.deals("RUSSIA") == ["with ENGLAND: peace between ENGLAND and RUSSIA"]
    assert "A ROM - PAR" not in game.legal_orders("A ROM")
    assert "A ROM - SPA" in game.legal_orders("A ROM")


@pytest.mark.parametrize(
    "terms, words",
    [*read_table(__file__, "impossible_offers"), ({"zone": ["SPA"] * 9}, "1 to 8 clauses")],
)
def test_impossible_offers(terms, words):
    game = game_with("offers")
    with pytest.raises(UserError, match=words):
        game.offer("ENGLAND", "RUSSIA", **terms)
    assert game.offers("RUSSIA") == {} and game.messages == []


def test_impossible_partners_and_answers():
    game = game_with("offers")
    winter = game_with("offers", POSITION.replace("S1901M", "W1901A"))
    over = game_with("offers")
    over.offer("ENGLAND", "RUSSIA", peace=True)
    over.concede("ENGLAND")

    def answered(game, words):
        offer = partial(game.offer, "ENGLAND", "RUSSIA", peace=True)
        answers = [partial(answer, "RUSSIA", 1) for answer in (game.accept, game.decline)]
        return [(call, words) for call in (offer, *answers)]

    for call, words in (
        (lambda: game.offer("ENGLAND", "ENGLAND", peace=True), "cannot make a deal with itself"),
        (lambda: game.offer("ENGLAND", "FRANCE", peace=True), "FRANCE"),
        *answered(winter, "movement phases; this is W1901A"),
        *answered(over, "movement phases; the game is over"),
        *answered(Game("small"), "press="),
        (lambda: Game("small", press="loud"), "one of mutual, offers"),
        (lambda: Game("small", press="propose-chose"), "did you mean 'propose-choose'"),
        (lambda: Game("small", press="offers", press_rounds=5), "1 to 4 rounds"),
        (lambda: Game("small", press="mutual", press_rounds=2), "1 to 1 rounds"),
    ):
        with pytest.raises(UserError, match=words):
            call()
    number = game.offer("ENGLAND", "RUSSIA", ours=["A PAR H"])
    with pytest.raises(UserError, match="no offer 1 to ENGLAND"):
        game.accept("ENGLAND", number)
    for other in (number + 1, 0, "1"):
        with pytest.raises(UserError, match="no offer"):
            game.accept("RUSSIA", other)
    second = game.offer("RUSSIA", "ENGLAND", theirs=["A PAR - SPA"])
    game.accept("RUSSIA", number)
    with pytest.raises(UserError, match="contradicts"):
        game.accept("ENGLAND", second)
    assert list(game.offers("ENGLAND")) == [second]
    game.decline("ENGLAND", second)
    with pytest.raises(UserError, match="declined"):
        game.accept("ENGLAND", second)
    game.adjudicate()
    with pytest.raises(UserError, match="no offer"):
        game.decline("RUSSIA", number)


def test_saved_games_keep_the_talk():
    game = game_with("offers")
    number = game.offer("ENGLAND", "RUSSIA", ours=["A PAR H"], theirs=["A ROM S A PAR"])
    game.accept("RUSSIA", number)
    game.decline("ENGLAND", game.offer("RUSSIA", "ENGLAND", peace=True))
    game.offer("RUSSIA", "ENGLAND", they_keep_out=["SPA"])
    saved = game.to_saved_game()
    assert "NO_PRESS" not in saved["rules"]
    first = saved["phases"][-1]["messages"][0]
    assert first["time_sent"] == 0 and first["message"] == (
        "PRP ( AND ( XDO ( ( ENG AMY PAR ) HLD ) ) "
        "( XDO ( ( RUS AMY ROM ) SUP ( ENG AMY PAR ) ) ) )"
    )
    assert Game.from_saved_game(saved, press=None).deals("ENGLAND") == []
    game.adjudicate()
    sent = len(saved["phases"][-1]["messages"])
    with pytest.raises(UserError, match="a message is a text, not 5"):
        game.send("ENGLAND", "GLOBAL", 5)
    assert game.send("ENGLAND", "GLOBAL", "hello")["time_sent"] == sent == 5


@pytest.mark.parametrize("text", read_table(__file__, "broken_talk_in_saved_games"))
def test_broken_talk_in_saved_games(text):
    game = game_with("offers")
    game.send("ENGLAND", "RUSSIA", "hello (")
    game.send("ENGLAND", "RUSSIA", text)
    saved = game.to_saved_game()
    with pytest.raises(UserError, match="message 2 of S1901M"):
        Game.from_saved_game(saved, press="offers")
    assert Game.from_saved_game(saved).messages == saved["phases"][-1]["messages"]


@pytest.mark.parametrize("map_name", ["small", "standard"])
def test_words_to_daide_and_back(map_name):
    rng, game, count = np.random.default_rng(3), Game(map_name, press="offers"), 0
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


def test_deals_that_may_be_broken():
    game = Game("small", press="offers", binding=False)
    state = Game.from_position(POSITION).to_state()
    phase = {"name": state["name"], "state": state, "orders": {}, "results": {}}
    saved = game.to_saved_game() | {"phases": [phase]}
    game = Game.from_saved_game(saved, press="offers")
    game.accept("RUSSIA", game.offer("ENGLAND", "RUSSIA", peace=True, ours=["A PAR H"]))
    assert "A PAR - ROM" in game.legal_orders("PAR")
    game.submit("ENGLAND", ["A PAR - ROM"])
    game.adjudicate()
    assert game.history[-1]["broken"] == {"ENGLAND": ["RUSSIA"]}
    assert game.history[-1]["orders"]["RUSSIA"] in ([], None)


def test_a_pair_picks_one_of_its_offers():
    game = Game("three", press="propose-choose")
    first = game.offer("ENGLAND", "ITALY", peace=True)
    game.offer("ENGLAND", "RUSSIA", peace=True)
    with pytest.raises(UserError, match="ENGLAND has sent its 1 offer to ITALY"):
        game.offer("ENGLAND", "ITALY", zone=["MUN"])
    second = game.offer("ITALY", "ENGLAND", zone=["MUN"])
    game.accept("ITALY", first)
    with pytest.raises(UserError, match="ENGLAND and ITALY have already picked their offer"):
        game.accept("ENGLAND", second)
    assert len(game.deals("ENGLAND")) == 1


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


def play_to(game: Game, phase: str) -> Game:
    while game.phase != phase:
        game.adjudicate()
    return game


ALL_THREE = ["ITALY", "RUSSIA"]


@pytest.mark.parametrize("phase", ["F1901M", "S1902M"])
def test_a_deal_for_a_later_phase_holds_then_and_only_then(phase):
    game = Game("three", press="offers")
    number = game.offer("ENGLAND", "ITALY", theirs=["A ROM - APU"], zone=["MUN"], phase=phase)
    game.accept("ITALY", number)
    kept = f"in {phase}: A ROM - APU; ENGLAND and ITALY keep out of MUN and leave it"
    assert game.deals("ITALY") == [f"with ENGLAND: {kept}"] and game.deals("RUSSIA") == []
    assert len(game.legal_orders("ROM")) > 1 and not game.bindings("ITALY")
    play_to(game, phase)
    assert game.deals("ITALY") == [f"with ENGLAND: {kept.removeprefix(f'in {phase}: ')}"]
    assert game.legal_orders("ROM") == ["A ROM - APU"] and "ROM" in game.bindings("ITALY")
    game.adjudicate()
    assert game.history[-1]["orders"]["ITALY"] == ["A ROM - APU"]
    assert game.deals("ITALY") == []


@pytest.mark.parametrize("conceding", [["RUSSIA", "ITALY"], ["RUSSIA"]])
def test_no_deal_outlasts_the_game(conceding):
    game = Game("three", press="offers", draw_votes=True)
    for phase in ("F1901M", "F1902M"):
        game.accept("ITALY", game.offer("ENGLAND", "ITALY", peace=True, phase=phase))
    play_to(game, "F1901M")
    assert len(game.deals("ENGLAND")) == 2
    for power in conceding:
        game.concede(power)
    if not game.is_over:
        game.vote("ENGLAND")
        game.vote("ITALY")
        game.adjudicate()
    assert game.deals("ENGLAND") == []


def test_a_deal_offered_for_this_phase_holds_in_it():
    """As another program may write it."""
    game = Game("three", press="offers")
    offer = "PRP ( FOR ( SPR 1901 ) ( XDO ( ( ITA AMY ROM ) MTO APU ) ) )"
    game.send("ENGLAND", "ITALY", offer)
    game.send("ITALY", "ENGLAND", f"YES ( {offer} )")
    again = Game.from_saved_game(game.to_saved_game(), press="offers")
    assert again.legal_orders("ROM") == ["A ROM - APU"]


def test_a_later_deal_that_may_be_broken_is_counted_when_it_is():
    game = Game("three", press="offers", binding=False)
    game.accept("ITALY", game.offer("ENGLAND", "ITALY", theirs=["A ROM - APU"], phase="F1901M"))
    game.adjudicate()
    assert "broken" not in game.history[-1]
    game.adjudicate()
    assert game.history[-1]["broken"] == {"ITALY": ["ENGLAND"]}


def test_a_later_deal_lapses_if_it_has_become_impossible():
    game = Game("three", press="offers")
    game.accept("ITALY", game.offer("ENGLAND", "ITALY", theirs=["A MUN - BER"], phase="F1901M"))
    first = game.offer("ITALY", "ENGLAND", ours=["A ROM - APU"], phase="F1901M")
    game.accept("ENGLAND", first)
    second = game.offer("RUSSIA", "ITALY", theirs=["A ROM - TUS"], phase="F1901M")
    game.accept("ITALY", second)
    assert len(game.deals("ITALY")) == 3
    game.adjudicate()
    assert game.deals("ITALY") == ["with ENGLAND: A ROM - APU"]  # it was made first


@pytest.mark.parametrize("phase", [None, "F1901M"])
def test_a_zone_among_several_holds_once_all_agree(phase):
    game = Game("three", press="offers")
    number = game.offer("ENGLAND", ALL_THREE, zone=["MUN"], phase=phase)
    words = "ENGLAND, ITALY and RUSSIA keep out of MUN and leave it"
    assert all(game.offers(power)[number].endswith(words) for power in ALL_THREE)
    game.accept("RUSSIA", number)
    assert not any(map(game.deals, game.powers)) and game.offers("RUSSIA") == {}
    with pytest.raises(UserError, match="RUSSIA has agreed to offer 1 already"):
        game.accept("RUSSIA", number)
    game.accept("ITALY", number)
    assert all(map(game.deals, game.powers))
    play_to(game, phase or "S1901M")
    closed = province_bits(game.table.deals.closed[0], len(game.map.provinces))
    assert closed[..., game.map.province_index["MUN"]].sum() == 6  # each with both others


def test_a_zone_among_several_that_one_declines_or_cannot_keep_is_none():
    game = Game("three", press="offers")
    number = game.offer("ENGLAND", ALL_THREE, zone=["MUN"])
    game.accept("ITALY", number)
    game.decline("RUSSIA", number)
    assert not any(map(game.deals, game.powers)) and game.offers("ITALY") == {}
    game.accept("ITALY", game.offer("RUSSIA", "ITALY", theirs=["A ROM - APU"]))
    number = game.offer("ENGLAND", ALL_THREE, zone=["APU"])
    game.accept("RUSSIA", number)
    with pytest.raises(UserError, match="it contradicts a promise"):
        game.accept("ITALY", number)
    assert game.deals("ENGLAND") == [] and "A ROM - TUS" not in game.legal_orders("ROM")


def test_a_later_offer_that_is_made_again_is_agreed_to_anew():
    game = Game("three", press="offers")
    for agreeing in ALL_THREE:
        number = game.offer("ENGLAND", ALL_THREE, zone=["MUN"], phase="F1901M")
        game.accept(agreeing, number)
        if agreeing == "ITALY":
            game.decline("RUSSIA", number)
    game.send("ITALY", "GLOBAL", "YES ( GOOD FOR ALL )")
    game.adjudicate()
    assert not any(map(game.deals, game.powers))


@pytest.mark.parametrize(
    ("receiver", "terms", "words"), read_table(__file__, "impossible_later_offers")
)
def test_impossible_later_offers_and_offers_to_several(receiver, terms, words):
    game = Game("three", press="offers")
    with pytest.raises(UserError, match=words):
        game.offer("ENGLAND", receiver, **terms)
    assert game.messages == [] and game.said() == []


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
