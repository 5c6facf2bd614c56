"""The review of games: what is judged, marked, explained and left out, and how it is shown."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.players import Thinker

from diplomacy_engine import Game, UserError, VectorGame, load_map, load_player, make_bot
from diplomacy_engine.commands.cli import main
from diplomacy_engine.play.people import people_of
from diplomacy_engine.play.review import (
    MARKS,
    MUCH,
    Reviewed,
    Reviews,
    _year_limit,
    accuracy,
    judges_of,
    losing_since,
    mark_of,
    page_facts,
    summary,
)
from diplomacy_engine.players.advice import orders_by_player
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.players.search import judge as judging
from diplomacy_engine.players.search.draws import PolicyDraws
from diplomacy_engine.players.search.judge import (
    SURE,
    Judge,
    Judges,
    JudgeSettings,
    make_judges,
)
from diplomacy_engine.replays.replay import make_replay

pytestmark = pytest.mark.usefixtures("compiled")
FEW = JudgeSettings(samples=24, draws=8, changes=4)
# Paris attacks Burgundy twice, and a support of the one goes with neither.
POSITION = (
    "standard F1904M; FRANCE A PAR, A MAR, A GAS, F BRE = PAR MAR BRE SPA POR; "
    "GERMANY A RUH = MUN BER KIE BEL HOL"
)


def played(position: str, orders: dict[str, list[str]], phases: int = 1) -> Game:
    game = Game.from_position(position)
    for power, texts in orders.items():
        game.submit(power, texts)
    for _ in range(phases):
        game.adjudicate()
    return game


def reviewed(game: Game, player, powers=(), **options) -> tuple[list[Reviewed], Reviews]:
    reviews = Reviews(game.to_saved_game(), [player], game.map, powers, FEW, **options)
    return [one for part in reviews for one in part], reviews


@pytest.fixture(scope="module")
def judge():
    return load_player("small-pure-1")


@pytest.fixture(scope="module")
def blunder(judge) -> tuple[Game, list[Reviewed], Reviews]:
    """Both powers play as the judge does, but for one who holds in the second phase."""
    game = Game("small")
    while not game.is_over and len(game.history) < 6:
        for power, texts in orders_by_player(game, judge, game.powers, 5).items():
            game.submit(power, texts)
        if len(game.history) == 1:
            game.submit("RUSSIA", [])
        game.adjudicate()
    return game, *reviewed(game, judge)


def test_the_planted_decision_is_the_worst(judge, blunder):
    game, decisions, reviews = blunder
    assert reviews.done == reviews.total == len(decisions) and not reviews.left_out
    mine = [one for one in decisions if one.power == "RUSSIA"]
    mine.sort(key=lambda one: -one.loss)
    assert mine[0].phase == game.history[1]["name"] and "?" in mine[0].mark
    assert mine[0].best != mine[0].orders and mine[0].reasons
    assert mine[0].hindsight > 3  # ENGLAND ordered what it was expected to
    for one in decisions:
        assert 0 <= one.worth <= 100 and one.loss >= 0
        assert one.loss == 0 or one.loss >= one.uncertainty
        if "?" in one.mark:
            assert one.reasons and one.best != one.orders and one.hindsight > -MUCH
            assert one.mark == "?!" or min(one.of_judges) > 0, "every judge finds a loss"
    record = summary(decisions, reviews.left_out)
    fields = {"phase", "power", "orders", "best", "loss", "uncertainty", "of_judges", "mark"}
    figures = {"worth", "best_worth", "centers", "best_centers", "survival", "best_survival"}
    assert set(record["decisions"][0]) == fields | figures
    assert record["powers"]["RUSSIA"]["accuracy"] < 100
    again, _ = reviewed(game, judge)
    assert again == decisions, "the same game is judged alike"


def test_one_power_is_judged_as_among_all(judge, blunder):
    game, decisions, _ = blunder
    alone, _ = reviewed(game, judge, ["RUSSIA"])
    assert {one.power for one in alone} == {"RUSSIA"}
    assert [one.phase for one in alone] == [o.phase for o in decisions if o.power == "RUSSIA"]
    with pytest.raises(UserError, match="NOBODY"):
        reviewed(game, judge, ["NOBODY"])


class Chance:
    """Values every board by chance alone: one is worth 0.5 +- `spread`."""

    discount, at_once = 1.0, False

    def __init__(self, spread: float):
        self.spread, self.rng = spread, np.random.default_rng(1)

    def paid(self, result, victory_centers):
        return np.zeros(result.centers.shape)

    def look(self, games, rows, powers):
        return np.zeros(len(rows))

    def values(self, boards):
        return self.rng.normal(0.5, self.spread, sum(map(len, boards)))


@pytest.mark.parametrize("spread", [0.3, 0.003])
def test_a_loss_that_may_be_chance_is_told_by_more_samples(judge, monkeypatch, spread):
    """Where nothing but chance tells orders apart, no loss is found that is not chance."""
    games = VectorGame("small", 24, 1, auto_reset=False)
    centers = len(games.board.center_province)
    monkeypatch.setattr(judging, "held", lambda _, powers: np.zeros((len(powers), centers), bool))
    decisions, orders = games.decisions(), orders_of(games, make_bot("random"))
    judges = Judges([Judge(PolicyDraws(judge), Chance(spread))], FEW._replace(ahead=1))
    loss, error = judges.judge(games, decisions, orders)[3:5]
    undecided = (loss > 0) & (loss + error > judging.NOTABLE) & (loss < judging.CLEAR * error)
    assert undecided.any() == (spread == 0.3)
    of_a_sample = spread / (2 * (0.5 + judging.LEAST_WORTH))
    assert (error[undecided] < 1.5 * of_a_sample / np.sqrt(2 * FEW.samples)).all()
    assert (np.abs(loss) <= SURE * error).mean() > 0.8
    assert np.median(loss) < 3 * np.median(error), "not what seemed best of many"


def test_every_judge_has_its_share_of_the_samples(judge):
    """Judged together, each judge's loss is what it would find alone but for chance."""
    games = VectorGame("small", 2, 1, auto_reset=False)
    decisions, orders = games.decisions(), orders_of(games, make_bot("random"))
    other = load_player("small-pure-2")
    verdicts = make_judges([judge, other], games, FEW).judge(games, decisions, orders)
    assert verdicts.of_judges.shape == (decisions.count, 2)
    settled = np.ones(decisions.count, bool)
    known = make_judges([judge], games, FEW).judge(games, decisions, orders, settled)
    assert not known.loss.any() and (known.orders[:, 0] == known.orders[:, 1]).all()


def test_random_orders_change_nothing_but_their_own_loss(judge, monkeypatch):
    """Also where they are the same as orders that a judge would give."""
    games = VectorGame("small", 2, 1, auto_reset=False)
    decisions, orders = games.decisions(), orders_of(games, make_bot("random"))
    verdicts = []
    for bot in ("hold", "chaos"):
        monkeypatch.setattr("diplomacy_engine.players.search.judge.AnyOrders", type(make_bot(bot)))
        verdicts.append(make_judges([judge], games, FEW).judge(games, decisions, orders))
    one, other = (each._replace(random_loss=0)._asdict() for each in verdicts)
    np.testing.assert_equal(one, other)


def test_every_other_removal_is_tried():
    """Also one that no judge would order."""
    units = "A LON, A PAR, A BRE, A MAR"
    game = Game.from_position(f"standard W1901A; ENGLAND {units} = LON PAR; RUSSIA A MOS = MOS")
    game.submit("ENGLAND", ["A LON D", "A PAR D"])
    games, orders = game.vector_game, game.vector_game.new_orders()
    orders[0, list(game.order_numbers())] = list(game.order_numbers().values())
    judges = make_judges([make_bot("lookahead")], games)
    candidates = judging._Trial(judges, games, games.decisions(), orders, None).playouts.candidates
    tried = {tuple(sorted(one[one >= 0])) for one in candidates[0]} - {()}
    assert len(tried) == 6, "two of four units"


def test_reasons_are_true():
    orders = {
        "FRANCE": ["A PAR - BUR", "A MAR - BUR", "A GAS S A MAR - SPA", "F BRE H"],
        "GERMANY": ["A RUH H"],
    }
    game = played(POSITION, orders)
    decisions, reviews = reviewed(game, make_bot("lookahead"), ["FRANCE"])
    (one,) = decisions
    assert reviews.judges.name == "lookahead" and one.best != one.orders
    faults = [text for _, text in reviews._faults(game.history[0], "FRANCE", one.orders, one.best)]
    assert "Army Marseilles: move to Burgundy bounced with your own Army Paris" in faults
    assert any("support" in fault and "not moving to Spain" in fault for fault in faults)


def test_a_build_and_a_retreat_are_judged():
    winter = "small W1901A; ENGLAND A PAR = LON PAR; RUSSIA A MOS = MOS"
    game = played(winter, {"ENGLAND": [], "RUSSIA": []})
    (one,), reviews = reviewed(game, make_bot("lookahead"))
    assert one.orders == [] and one.power == "ENGLAND"
    faults = [text for _, text in reviews._faults(game.history[0], "ENGLAND", [], ["A LON B"])]
    assert faults == ["only 0 of 1 builds were ordered"]


LOSSES = st.just(0.0) | st.floats(-60, 60)


@given(of_judges=st.lists(LOSSES, min_size=1, max_size=4), error=st.floats(0, 30))
def test_marks_need_to_be_sure(of_judges, error):
    loss, doubt = float(np.mean(of_judges)), error * np.sqrt(len(of_judges))
    against = [abs(one) for one in of_judges if np.sign(one) != np.sign(loss)]
    mark = mark_of(loss, error, np.array(of_judges))
    if mark:
        assert abs(loss) > SURE * error and max(against, default=0) <= doubt
        assert loss >= MARKS[mark] if "?" in mark else -loss >= MARKS["?"]
        assert mark == "?!" or not against, "a plain mark needs all judges"
    elif loss >= MARKS["?!"]:
        assert loss <= SURE * error or max(against, default=0) > doubt


def test_accuracy_is_between_random_orders_and_the_best(blunder):
    _, (one, *_), _ = blunder
    best, any_orders = one._replace(loss=0.0, random_loss=20.0), one._replace(loss=20.0)
    any_orders = any_orders._replace(random_loss=20.0)
    assert accuracy([best, best]) == 100 and accuracy([any_orders]) == 0
    assert accuracy([best, any_orders]) == 50
    idle = one._replace(loss=0.0, random_loss=0.0)
    assert accuracy([best, any_orders, idle]) == 50 and accuracy([idle]) == 100


def test_losing_since_the_first_phase_after_which_nothing_helps(blunder):
    _, (one, *_), _ = blunder
    worths = [14.0, 0.9, 1.0, 0.9, 0.2]
    phases = ["S1901M", "F1901M", "S1902M", "F1902M", "S1903M"]
    game = [one._replace(phase=phase, best_worth=worth) for phase, worth in zip(phases, worths)]
    assert losing_since(game) == "F1902M"
    assert losing_since(game[:3]) == losing_since([]) == ""


def first_phase(orders: dict[str, str]) -> Game:
    game = Game("standard")
    for power, texts in orders.items():
        game.submit(power, texts.split("; "))
    game.adjudicate()
    game.adjudicate()
    return game


@given(data=st.data())
@settings(max_examples=20)
def test_a_popular_opening_has_no_mark(data):
    """Every set of first orders that people give often is settled, and the card tells how often."""
    people = people_of(load_map("standard"))
    chosen = {
        p: data.draw(st.sampled_from(sorted(sets))) for p, (_, sets) in people.openings.items()
    }
    history = first_phase(chosen).history
    for power, text in chosen.items():
        games, sets = people.openings[power]
        opening = people.opening(history, 0, power)
        assert (opening.games, opening.played, opening.gained) == (games, *sets[text][:2])
        assert (
            opening.popular == (sets[text][0] >= 0.04 * games) and f"{games:,}" in opening.words()
        )
        after = people.opening(history, 1, power)
        assert after.games == sets[text][0] and not after.popular
        assert people.opening(history, 2, power).words() == ""
    assert people_of(load_map("small")).opening(history, 0, "ENGLAND").words() == ""


def test_what_is_left_out_is_told(judge, blunder):
    game, decisions, _ = blunder
    saved = game.to_saved_game()
    saved["phases"][0] |= {"orders": {power: None for power in game.powers}, "results": {}}
    saved["phases"][2]["orders"]["RUSSIA"] = ["A XYZ - PAR"]
    reviews = Reviews(saved, [judge], None, (), FEW)
    rest = [one for part in reviews for one in part]
    assert {one.phase for one in decisions} - {one.phase for one in rest} == {"S1901M"}
    unknown, illegible = reviews.left_out
    assert unknown["phase"] == "S1901M" and "no orders" in unknown["reason"]
    assert illegible["power"] == "RUSSIA" and "A XYZ - PAR" in illegible["reason"]


def test_what_decides_and_when_it_ends_is_seen_without_what_a_file_may_leave_out():
    game = Game.from_position("small F1901M; ENGLAND = LON PAR; RUSSIA = MOS", max_years=3)
    while not game.is_over:
        game.adjudicate()
    saved = game.to_saved_game()
    names = [phase["name"] for phase in saved["phases"]]
    assert names[1] == "W1901A" and names[-2] == "F1903M"
    saved["phases"][1]["state"] |= {"builds": None, "retreats": None}
    reviews = Reviews(saved, [make_bot("lookahead")])
    assert reviews.total == 2 + 2 and reviews.left_out == []
    for others, years in (({}, 3), ({"rules": []}, None), ({"rules": 5}, None)):
        assert _year_limit(saved | others, Game.from_saved_game(saved)) == years
    del saved["phases"][-3:-1]
    assert _year_limit(saved, Game.from_saved_game(saved)) is None


def test_nothing_is_judged_after_a_concession_or_in_a_phase_that_was_not_played():
    game = Game("three")
    game.adjudicate()
    game.concede("ITALY")
    game.adjudicate()
    decisions, _ = reviewed(game, make_bot("lookahead"))
    phases = [one.phase for one in decisions if one.power == "ITALY"]
    assert phases == ["S1901M"], "the last decision before it counts"


def test_who_can_judge(judge):
    game = Game("small")
    game.adjudicate()
    with pytest.raises(UserError, match=r"thinker.*cannot judge"):
        reviewed(game, Thinker())
    with pytest.raises(UserError, match="trained on another map"):
        reviewed(Game("three"), judge)
    allies = Game(load_map("three").with_teams("ENGLAND+ITALY"))
    allies.adjudicate()
    with pytest.raises(UserError, match="teams"):
        reviewed(allies, make_bot("lookahead"))
    small = load_map("small")
    assert judges_of(small)[0].startswith("small-pure")
    other = small.with_teams("", 0)
    assert judges_of(other) == judges_of(small)
    standard = load_map("standard")
    assert judges_of(standard) == ["standard-human", "standard-anchored-1", "standard-own-1"]


@pytest.mark.slow
def test_the_page_needs_nothing_but_itself(tmp_path, blunder, open_page, capsys):
    game, _, _ = blunder
    file, page, record = (tmp_path / name for name in ("game.jsonl", "review.html", "out.json"))
    file.write_text(
        "".join(json.dumps(one.to_saved_game()) + "\n" for one in (game, Game("small")))
    )
    command = ["review", str(file), "--player", "small-pure-1", "--output", str(page)]
    assert main([*command, "--json", str(record)]) == 0
    assert "judged by small-pure-1" in capsys.readouterr().out
    first, _ = record.read_text().splitlines()
    assert set(json.loads(first)) == {"decisions", "powers", "left_out"}
    for width, height in ((1280, 800), (390, 844)):
        view = open_page(page.as_uri(), viewport={"width": width, "height": height})
        view.wait_for_selector(".blunders li")
        assert view.evaluate("document.documentElement.scrollWidth") <= width
        view.click("#review-RUSSIA")
        view.locator(".blunders button").first.click()
        assert view.evaluate("location.hash") == f"#1/{game.history[1]['name']}"
        assert (
            "of what you had" in view.inner_text(".card")
            and view.locator("#board .better .order").count()
        )
        from_here = f"--game 1 --phase {game.history[1]['name']} --power RUSSIA"
        assert from_here in view.inner_text(".card")
        assert view.locator("#values .turn").count() >= view.locator("#marks .mark").count() > 0
        view.keyboard.press("Home")
        view.keyboard.press("b")
        assert view.evaluate("location.hash") != "#1/S1901M"


def test_facts_of_a_review_under_way(judge, blunder):
    game, _, _ = blunder
    reviews = Reviews(game.to_saved_game(), [judge], game.map, (), FEW)
    replay = make_replay(game.to_saved_game(), game.map)
    facts = page_facts(replay, reviews, [])
    assert "for want of" not in facts["judge"]
    assert facts["done"] == 0 < facts["total"] and facts["chart"] == "" and not facts["decisions"]
