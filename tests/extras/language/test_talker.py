"""Language models that negotiate: what they choose becomes deals, what they say binds nobody."""

import json

import numpy as np
import pytest
from support.language import FakeServer
from support.press import ATTACK
from support.serving import seated
from support.tables import read_table

from diplomacy_engine import Game, VectorGame, make_bot
from diplomacy_engine.commands.cli import main
from diplomacy_engine.extras.language.player import Answer, Exchange, LanguagePlayer
from diplomacy_engine.extras.language.questions import Question
from diplomacy_engine.extras.language.remote import RemotePlayer
from diplomacy_engine.extras.language.replies import sentence_of
from diplomacy_engine.extras.language.settings import settings_of
from diplomacy_engine.extras.language.talker import Talker
from diplomacy_engine.play.terminal import TextGame
from diplomacy_engine.play.view import game_view
from diplomacy_engine.players.asking import orders_of
from diplomacy_engine.press.daide import is_daide, messages_of
from diplomacy_engine.press.negotiators.negotiation import honest_seats, negotiate
from diplomacy_engine.press.press import Press
from diplomacy_engine.replays.page import page
from diplomacy_engine.replays.replay import make_replay
from diplomacy_engine.rules.game_rules import PROTOCOLS

SWAP = "A GAL - BUD; A VIE S A GAL - BUD; A ALB - SER; A GRE S A ALB - SER"
BAD = "</script><script>alert(1)</script>\x1b[2J\u202e"


class Scripted(LanguagePlayer):
    """Says the line that comes first in `wants`, else the last one, and orders the first legal."""

    def __init__(self, *wants, sentence="Let us be friends."):
        super().__init__("scripted", settings_of({"model": "m"}, "test"))
        self.wants, self.sentence = wants, sentence
        self.prompts = []

    def answers(self, questions):
        answers = []
        for question in questions:
            numbers = [slot.numbers[0] for slot in question.slots]
            if not isinstance(question, Question):
                numbers = [self._line(slot.texts) for slot in question.slots]
            prompt = self.prompt(question)
            self.prompts.append(prompt)
            exchange = Exchange(question, [], self.sentence, "legal", 1, 1, 0.0)
            answers.append(Answer(numbers, len(numbers), [exchange]))
        return answers

    def _line(self, texts):
        found = [n for want in self.wants for n, text in enumerate(texts) if want in text]
        return [*found, len(texts) - 1][0]


def table(protocol="offers"):
    games = Game.from_position(ATTACK).vector_game
    press = Press(games, protocol)
    press.log, press.logged = [], 1
    return press


def hold_talk(press, *players):
    """Let ENGLAND, ITALY and RUSSIA talk; return the messages that are kept."""
    decisions = press.games.decisions()
    negotiate(press, decisions, players, np.arange(3)[None] % len(players))
    said = [m for entry in press.log for m in messages_of(press.games, *entry)]
    names = press.games.map.powers
    return [(names[p], names[q], text) for p, q, text in said]


def test_it_makes_deals_and_says_a_sentence_with_each():
    press = table()
    players = [Scripted(SWAP), Scripted("yes", "nothing"), Scripted("nothing", "no")]
    talkers = [Talker(player, "talker") for player in players]
    said = hold_talk(press, *talkers)
    words = [(p, q, text) for p, q, text in said if not is_daide(text)]
    assert words == [(p, q, "Let us be friends.") for p, q in
                     (("ENGLAND", "ITALY"), ("ITALY", "ENGLAND"))]  # fmt: skip
    assert [text[:3] for p, q, text in said] == ["PRP", "Let", "YES", "Let"]
    assert press.deals.dealt[0, 0, 1] and press.tally.agreed[0] == 1
    # Both know the deal when they order, and keep it.
    bound = press.bound(press.games.decisions())
    for player in talkers:
        player.act(press.games, bound)
    told = ["ENGLAND orders A GAL - BUD" in player.prompts[-3] for player in players]
    assert told == [True, False, False]
    assert "The powers have negotiated" in players[2].prompts[-1]
    orders = orders_of(press.games, talkers[0], bound)
    assert not press.judge(orders).any()
    assert players[0].counts()["talks"] == 2 and players[0].counts()["not_understood"] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_talks_by_every_protocol(protocol):
    press = table(protocol)
    talker = Talker(Scripted("peace between", "yes"), "talker")
    said = hold_talk(press, talker)
    assert press.tally.agreed[0] >= 1 and press.deals.peace.any()
    assert any("friends" in text for _, _, text in said) == (protocol != "mutual")
    refusing = Talker(Scripted("nothing", "no"), "talker")
    press = table(protocol)
    assert hold_talk(press, refusing) == [] and not press.tally.offered.any()
    press = table(protocol)  # nobody answers it
    hold_talk(press, talker, make_bot("random"), make_bot("random"))
    assert press.tally.offered[0] >= 1 and not press.tally.agreed.any()


def test_nobody_wishes_for_peace_with_a_power_without_units():
    position = "three S1901M; ENGLAND A GRE = GRE; ITALY A VIE = VIE; RUSSIA = MOS"
    games = VectorGame("three", 2)  # the first of which begins
    games.copy_from(Game.from_position(position).vector_game, np.array([0]), np.array([1]))
    player = Scripted("yes")
    seats = np.zeros((2, 3), int)
    negotiate(Press(games, "mutual"), games.decisions(), [Talker(player, "talker")], seats)
    assert [
        sum(f"peace with {power}" in text for text in player.prompts) for power in games.map.powers
    ] == [2 + 1, 2 + 1, 2]
    assert sum("A GRE" in text for text in player.prompts) == 2


def test_it_need_not_keep_a_deal_that_may_be_broken_and_hears_who_broke_one():
    games = table().games
    press = Press(games, "offers", binding=False)
    press.tally.broken_year[0, 2, 0] = 1901
    press.log, press.logged = [], 1
    player = Scripted(SWAP, "yes")
    talker = Talker(player, "talker")
    hold_talk(press, talker)
    assert press.deals.dealt.any() and not honest_seats([talker], np.zeros((1, 3), int)).any()
    about_deals = [text for text in player.prompts if "You may say" in text]
    assert all("nobody is made to keep it" in text for text in about_deals)
    broke = "RUSSIA broke a deal with you in 1901"
    assert [broke in text for text in about_deals] == [True, False, False]


def remote(fake, **settings):
    found = settings_of({"model": "m", "base_url": fake.url} | settings, "test")
    return RemotePlayer("model", found)


@pytest.mark.parametrize(
    "text", [*read_table(__file__, "what_is_no_possible_answer_is_silence"), "[" * 5000]
)
def test_what_is_no_possible_answer_is_silence(text):
    """Malformed or hostile replies to offers made by others, and instead of own ones."""
    with FakeServer(lambda body, number: text) as server:
        player = remote(server)
        partner = Talker(Scripted("peace between", "yes", sentence=""), "partner")
        press = table()
        said = hold_talk(press, Talker(player, "talker"), partner)
    assert not press.deals.dealt[0, 0].any() and not press.deals.dealt[0, 2].any()
    counts = player.counts()
    assert counts["not_understood"] > 0 and counts["requests"] == counts["talks"]
    # What it says is words, which are read back to no deal.
    game = Game.from_position(ATTACK)
    for message in said:
        game.send(*message)
    again = Game.from_saved_game(game.to_saved_game(), press="offers")
    assert again.deals("ENGLAND") == again.deals("RUSSIA") == []


@pytest.mark.parametrize(
    "text, said", read_table(__file__, "a_sentence_is_one_clean_line_and_never_an_offer")
)
def test_a_sentence_is_one_clean_line_and_never_an_offer(text, said):
    assert sentence_of(text) == said
    assert not is_daide(sentence_of(text))


@pytest.mark.parametrize("server, constraint", [("vllm", "regex"), ("vllm", "choice"),
                         ("openai", "json"), ("llama.cpp", "grammar"), ("", "none")])  # fmt: skip
def test_servers_are_held_to_the_possible_lines(server, constraint):
    """The first possible line is in what the server is sent, and the reply is read in its form."""

    def reply(body, number):
        text = body["messages"][-1]["content"]
        if "You may say one of these" in text:
            line = text.partition("You may say one of these\n")[2].splitlines()[0]
            return json.dumps({"offer": line}) if constraint == "json" else line
        if "Offers to you" in text:
            return json.dumps({"answer 1": "no"}) if constraint == "json" else "No."
        return "Well met."

    with FakeServer(reply) as fake:
        press = table()
        player = remote(fake, server=server, constraint=constraint)
        said = hold_talk(press, Talker(player, "talker"), Talker(Scripted("nothing", "yes"), "b"))
    for body in fake.requests:
        del body["messages"]
    fields = [json.dumps(body).replace("\\", "") for body in fake.requests]
    held = [field for field in fields if "peace between" in field and "nothing" in field]
    assert len(held) == (2 if constraint != "none" else 0)  # ENGLAND's and RUSSIA's offers
    assert [text for _, _, text in said if not is_daide(text)].count("Well met.") >= 2
    assert press.tally.offered[0] == 2 and player.counts()["not_understood"] == 0


def test_the_talk_of_a_match_is_in_its_replay(tmp_path, capsys):
    """From the command line; orders come from the fallback, since the model gives none."""
    file, settings, result = (tmp_path / name for name in ("games.jsonl", "llm.toml", "r.json"))

    def reply(body, number):
        text = body["messages"][-1]["content"]
        if "You may say one of these" in text:
            return text.partition("You may say one of these\n")[2].splitlines()[0]
        return "yes" if "Offers to you" in text else BAD * ("Say one short" in text)

    with FakeServer(reply) as server:
        settings.write_text(
            f'model = "m"\nbase_url = "{server.url}"\nreasks = 0\nfallback = "random"\n'
            'prompt = "minimal"\nconcurrency = 1\n'
        )
        name = f"talker+llm:{settings}"
        words = ["evaluate", "--map", "three", "--player", name, "--against", name, "--games", "3"]
        words += ["--max-years", "3", "--press", "offers", "--save-games", str(file)]
        assert main([*words, "--json", str(result), "--save-count", "3"]) == 0
    counts = json.loads(result.read_text())["llm"]["talker+llm:llm.toml"]
    assert counts["talks"] > 0 and "talks" in capsys.readouterr().out
    games = [json.loads(line) for line in file.read_text().splitlines()]
    said = [m for game in games for phase in game["phases"] for m in phase["messages"]]
    assert {is_daide(m["message"]) for m in said} == {True, False}
    replays = [make_replay(game) for game in games]
    shown = [words for replay in replays for frame in replay.frames for *_, words in frame.talk]
    assert any("alert(1)" in words for words in shown)
    assert BAD not in page(replays, "test") and "<script>alert" not in page(replays, "test")


def test_people_hear_what_it_says(tmp_path):
    """On the page and in the terminal; others do not."""
    game = Game.from_position(ATTACK)
    game.change_rules(press="offers", press_rounds=2)
    player = Talker(Scripted("to ENGLAND: peace", "no", sentence=BAD), "talker")
    file = tmp_path / "game.jsonl"
    session = seated(file, "hpp", game, "talker", lambda name: player)
    host = session.viewer(session.tokens["host"])
    clean = sentence_of(BAD)
    assert ("ITALY", "ENGLAND", clean) in game_view(session, host)["talk"]["said"]
    assert game_view(session, session.viewer(session.tokens["watch"]))["talk"]["said"] == []
    session.offer(host, session.now.step, "RUSSIA", {"peace": True})
    talk = game_view(session, host)["talk"]
    (offer,) = [one for one in talk["offers"] if one["sender"] == "ENGLAND"]
    assert offer["state"] == "declined" and ("RUSSIA", "ENGLAND", clean) in talk["said"]
    lines = []
    TextGame(session, host, write=lines.append)._show_deals()
    assert f"  RUSSIA to ENGLAND: {clean}" in lines
