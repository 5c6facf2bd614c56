"""A language model that learns from forked groups: what is learned, the runs and their folders."""

import base64
import importlib.util
import itertools
import json
import math
import os
import re
import signal
import types
import zlib
from dataclasses import replace

import numpy as np
import pytest
from support.tables import read_table

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[llm]'")

import torch
from support.training import STOPPED, command, differences, load, metrics

import diplomacy_learners.language_model as grpo
from diplomacy_engine import UserError, VectorGame, load_map, load_player, make_bot
from diplomacy_engine.extras.language.settings import settings_of
from diplomacy_engine.learning.settings import parse_args
from diplomacy_engine.matches.forks import fork
from diplomacy_engine.replays.replay import load_replays

TINY = "--groups 2 --copies 6 --eval-interval 2 --eval-games 2 --save-interval 2"
RICH = f"{TINY} --eval-bots chaos random --warm-up 5 --seats each --seed 4 --batch-size 8"
RICH += " --kl-coef 0.1 --kl-warm-up 2"
has_peft = pytest.mark.skipif(
    importlib.util.find_spec("peft") is None, reason="peft is not installed: pip install '.[llm]'"
)


def args_of(text=""):
    return parse_args(grpo.Args, text.split())


def main(text):
    return command(grpo, text.split())


def new_run(text=""):
    return grpo.Run(args_of(text), load_map("small"))


def samples_of(run):
    return grpo.play_groups(run.args, run.player, run.opponents, run.game_map, run.step)[:2]


def weights_of(run):
    return {n: p.detach().clone() for n, p in grpo.learned_weights(run.model.network).items()}


def have_changed(run, before):
    return any(not torch.equal(before[n], p) for n, p in weights_of(run).items())


def two_centers(player, games):
    made = VectorGame("small", 1 + games, seed=99, threads=1, auto_reset=False)
    players = [player, make_bot("random")]
    fork(made, [0], games, years=1, players=players, seats=[0, 1])
    return int((made.centers()[1:, 0] >= 2).sum())


def train(tmp_path, text, status=0):
    before = set(tmp_path.glob("*"))
    assert main(f"{text} --runs-folder {tmp_path}") == status
    (folder,) = set(tmp_path.glob("*")) - before
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs"), f"{RICH} --steps 4")


def test_the_figures_of_a_run_are_golden(finished, golden):
    golden("language_model", map(json.dumps, metrics(finished)), rel=0.01)


def test_it_learns_to_take_a_second_center():
    """Nobody can interfere, so every game can have two; with random orders 27% have."""
    run = new_run("--seats ENGLAND --groups 1 --copies 32 --eval-interval 0")
    before = two_centers(run.player, 100)
    for _ in range(8):
        run.advance()
    after = two_centers(run.player, 100)
    assert before < 45 and after > 75


def test_opponents_play_the_powers_that_they_are_named_for():
    text = "--map three --opponent ITALY=dumbbot chaos RUSSIA=hold --seats RUSSIA"
    players, seats = grpo.load_opponents(args_of(text), load_map("three"))
    assert [players[seat].name for seat in seats] == ["chaos", "dumbbot", "hold"]
    with pytest.raises(UserError, match="--opponent chaos dumbbot"):
        grpo.load_opponents(args_of("--opponent chaos dumbbot"), load_map("small"))
    run = grpo.Run(args_of(f"{text} --groups 1 --copies 2 --capture-replies 2"), load_map("three"))
    (game, _) = grpo.play_groups(run.args, run.player, run.opponents, run.game_map, 0)[2].games
    assert game["players"] == {"ENGLAND": "chaos", "ITALY": "dumbbot", "RUSSIA": "model"}


def test_without_spread_nothing_is_learned():
    run = new_run("--groups 2 --copies 4 --min-spread 100 --seats ENGLAND --eval-interval 0")
    before = weights_of(run)
    figures = run.advance()
    assert figures["charts/groups_without_spread"] == 1
    assert "losses/policy_loss" not in figures and not have_changed(run, before)


def test_an_advantage_of_0_trains_nothing_and_its_sign_decides():
    run = new_run("--groups 1 --copies 24 --seats ENGLAND --epochs 1 --batch-size 1000")
    (sample, *_), _ = samples_of(run)
    before = weights_of(run)

    def learned(advantage):
        one = [sample._replace(advantage=advantage)]
        grpo.learn(run.args, run.model, None, run.optimizer, one, 0)
        with torch.no_grad():
            return float(run.model.log_probabilities([sample.reply]).logprob.sum())

    likely = learned(0.0)
    assert not have_changed(run, before)
    better = learned(1.0)
    assert better > likely
    run.optimizer.state.clear()
    assert learned(-1.0) < better


def test_a_reply_that_became_much_likelier_is_not_learned_any_more():
    """PPO's clipping, with a limit of its own above: a half more is too much, a tenth is not."""
    run = new_run("--groups 1 --copies 24 --seats ENGLAND --epochs 1 --batch-size 1000")
    (sample, *_), _ = samples_of(run)
    for ratio, learns in ((1.5, False), (1.1, True)):
        logprobs = [p - math.log(ratio) for p in sample.reply.logprobs]
        reply = sample.reply._replace(logprobs=logprobs)
        before = weights_of(run)
        one = [sample._replace(advantage=1.0, reply=reply)]
        grpo.learn(run.args, run.model, None, run.optimizer, one, 0)
        assert have_changed(run, before) == learns
        run.optimizer.state.clear()


def test_replies_belong_to_their_copies():
    run = new_run("--groups 3 --copies 5 --warm-up 6 --seats all --credit first --min-spread 0")
    samples, figures = samples_of(run)
    first = {}
    for row, phase, power, reply in run.player.trace:
        assert 3 <= row < 18
        first.setdefault((row, power), (phase, reply))
    for group, power in itertools.product(range(3), run.game_map.powers):
        keys = [(row, power) for row in range(3 + 5 * group, 8 + 5 * group)]
        known = [first[key] for key in keys if key in first]
        # All copies begin in one position: the same prompt and phase, but other draws.
        assert len({(phase, *reply.prompt) for phase, reply in known}) <= 1
        # Relative to the group, what is learned adds up to nothing.
        part = [s.advantage for s in samples if any(s.reply is reply for _, reply in known)]
        assert len(part) < 5 or np.sum(part) == pytest.approx(0, abs=1e-4)
    assert len({tuple(reply.numbers) for _, reply in first.values()}) > 1
    replies = [reply for _, reply in first.values()]
    assert all(any(sample.reply is reply for reply in replies) for sample in samples)
    assert {"charts/return_ENGLAND", "charts/return_RUSSIA"} <= figures.keys()
    assert samples and 0 <= figures["charts/groups_without_spread"] < 1


def test_all_decisions_of_a_copy_count_or_the_first_alone():
    both = [
        samples_of(new_run(f"--groups 1 --copies 16 --credit {c}"))[0] for c in ("all", "first")
    ]
    rows = [[sample.row for sample in samples] for samples in both]
    assert set(rows[0]) == set(rows[1]) and len(rows[1]) == len(set(rows[1])) < len(rows[0])


def test_the_distance_from_the_start_grows_from_nothing_and_holds_back():
    free, held = (
        new_run(f"--seats ENGLAND --copies 12 --groups 1 --eval-interval 0 --kl-warm-up 0 {more}")
        for more in ("--kl-coef 0.000001", "--kl-coef 3")
    )
    for _ in range(3):
        loose, tight = free.advance(), held.advance()
    assert 0 < tight["losses/reference_kl"] < loose["losses/reference_kl"]


@pytest.mark.slow
def test_a_stopped_run_goes_on_bit_for_bit(finished, tmp_path, monkeypatch):
    steps, advance = itertools.count(1), grpo.Run.advance

    def stopping(run):
        if next(steps) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return advance(run)

    with monkeypatch.context() as patch:
        patch.setattr(grpo.Run, "advance", stopping)
        part = train(tmp_path, f"{RICH} --steps 4", STOPPED)
    (part / "metrics.jsonl").open("a").write('{"global_step": 3, "after the checkpoint": 1}\n')
    assert load(part)["step"] == 2
    assert main(f"--resume {part}") == 0
    for name in ("step", "global_step", "model", "optimizer"):
        assert differences(load(finished)[name], load(part)[name]) == []
    assert metrics(finished) == metrics(part)
    steps = [line["global_step"] for line in metrics(part)]
    assert steps == [1, 2, 2, 3, 4, 4]  # and evaluations
    replies = [(run / "replies.jsonl").read_text() for run in (finished, part)]
    assert replies[0] == replies[1]


def test_a_run_keeps_what_was_asked_and_written(finished):
    assert list(finished.glob("events.out.tfevents*"))
    kept = sorted(path.name for path in (finished / "checkpoints").iterdir())
    assert kept == ["000000000002.pt", "000000000004.pt"]
    for step in (2, 4):
        page = (finished / "games" / f"{step:012d}.html").read_text()
        packed = re.findall(r"eN[a-zA-Z0-9+/]{100,}=*", page)  # what the page unpacks itself
        shown = "".join(zlib.decompress(base64.b64decode(part)).decode() for part in packed)
        games = list(map(json.loads, (finished / "games" / f"{step:012d}.jsonl").open()))
        assert len(games) == 2  # one against each bot
        phases = [phase for game in games for phase in game["phases"]]
        said = [t for phase in phases for t in phase.get("thoughts", {}).values()]
        assert said and all(thought["prompt"] and thought["reply"] for thought in said)
        assert all(json.dumps(thought["prompt"])[1:-1] in shown for thought in said)
    lines = [json.loads(line) for line in (finished / "replies.jsonl").open()]
    assert {line["step"] for line in lines} == {1, 2, 3, 4}  # in some, a group's power is out
    assert {line["group"] for line in lines} == {0, 1}
    assert {(line["step"] % 2, line["power"]) for line in lines} == {(1, "ENGLAND"), (0, "RUSSIA")}
    for line in lines:
        assert line["copy"] == 0 and line["reply"] and line["prompt"]
        assert np.isfinite(line["score"]) and np.isfinite(line["advantage"])
    player = load_player(finished)
    decode = player.model.tokenizer.decode
    for line in lines:
        assert decode(line["prompt_ids"]) == line["prompt"]
        assert decode(line["reply_ids"]) == line["reply"]
        assert len(line["choices"]) == len(line["logprobs"]) and max(line["logprobs"]) <= 0
    assert load_player(finished / "best.pt").name


def test_the_copies_whose_replies_are_kept_can_be_replayed(finished):
    replays = {replay.id: replay for replay in load_replays(finished / "rollouts.jsonl")}
    games = {g["id"]: g for g in map(json.loads, (finished / "rollouts.jsonl").open())}
    assert set(replays) == {f"{step}-{group}-0" for step in range(1, 5) for group in range(2)}
    lines = [json.loads(line) for line in (finished / "replies.jsonl").open()]
    for line in lines:
        game = games[f"{line['step']}-{line['group']}-{line['copy']}"]
        (phase,) = [one for one in game["phases"] if one["name"] == line["phase"]]
        power, ordered = line["power"], set(line["reply"].split("\n")) - {"", "WAIVE"}
        assert phase["thoughts"][power]["prompt"] == line["prompt"]
        assert ordered <= set(phase["orders"][power]) and game["players"][power] == "model"


def test_a_run_that_keeps_no_games_is_tracked_by_wandb(tmp_path, monkeypatch, capsys):
    logged = []
    nothing = dict.fromkeys(("define_metric", "finish", "log_artifact"), lambda *a, **k: None)
    fake = types.SimpleNamespace(id="one", log=logged.append, **nothing)
    monkeypatch.setattr(grpo, "start_wandb", lambda settings, folder, wandb_id: fake)
    flags = "--steps 1 --track --capture-games 0 --capture-replies 0 --eval-games 1"
    folder = train(tmp_path, f"{TINY} {flags}")
    shown = capsys.readouterr().out
    assert "#timeseries" in shown and "custom_scalars" not in shown, "it has no dashboard"
    assert any("charts/episodic_return" in line for line in logged)
    assert load(folder)["wandb_id"] == "one"
    assert not list((folder / "games").iterdir()) and not (folder / "replies.jsonl").exists()


def test_what_has_learned_can_be_played(finished):
    one = load_player(finished, greedy=True)
    other = load_player(f"llm:local:{finished / 'model'}", greedy=True)
    games = VectorGame("small", 2, threads=1, auto_reset=False)
    decisions = games.decisions()
    assert one.act(games, decisions).shape == decisions.slot_province.shape
    questions = one.questions(games, decisions)
    prompts = [one.prompt(question) for question in questions]
    written = [p.model.replies(prompts, questions, greedy=True) for p in (one, other)]
    for mine, theirs in zip(*written, strict=True):
        assert mine._replace(logprobs=[]) == theirs._replace(logprobs=[])
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)
    # It is asked as it was in training, unless a settings file says otherwise.
    assert other.settings == replace(one.settings, model=other.settings.model, batch=16)
    assert [other.prompt(question) for question in questions] == prompts
    own = settings_of({"model": str(finished / "model"), "history": 3}, "test")
    assert (own.prompt, own.history) == ("minimal", 3)


@pytest.mark.parametrize(("text", "words"), read_table(__file__, "bad_settings_get_one_sentence"))
def test_bad_settings_get_one_sentence(text, words, finished, tmp_path, capsys):
    folder = "" if "--resume" in text else f" --runs-folder {tmp_path}"
    assert main(text.format(finished=finished) + folder) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and words in said and said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    read_table(__file__, "a_checkpoint_that_does_not_fit_is_not_played"),
    ids=lambda change: next(iter(change)),
)
def test_a_checkpoint_that_does_not_fit_is_not_played(change, finished, tmp_path):
    torch.save(load(finished) | change, tmp_path / "checkpoint.pt")
    with pytest.raises(UserError, match=r"checkpoint\.pt"):
        load_player(tmp_path / "checkpoint.pt")


@has_peft
def test_small_matrices_beside_the_weights_learn_alone(tmp_path):
    text = "--lora 4 --seats ENGLAND --groups 1 --copies 24 --kl-coef 0.1 --kl-warm-up 0"
    run = new_run(f"{text} --eval-interval 0")
    assert all("lora" in name for name in weights_of(run))
    kept = {n: p.clone() for n, p in run.model.network.named_parameters() if "lora" not in n}
    replies = [sample.reply for sample in samples_of(run)[0]]
    at_start, before = run.reference.log_probabilities(replies), weights_of(run)
    for _ in range(2):
        run.advance()
    assert have_changed(run, before)
    for name, weight in run.model.network.named_parameters():
        assert "lora" in name or torch.equal(weight, kept[name])
    # The reference is the model of the start, though that has learned meanwhile.
    assert torch.equal(run.reference.log_probabilities(replies), at_start)
    with torch.no_grad():
        now = run.model.log_probabilities(replies).logprob
        assert (now - at_start).abs().max() > 1e-5
        run.export(tmp_path / "model")
        player = load_player(f"llm:local:{tmp_path / 'model'}")
        assert torch.allclose(player.model.log_probabilities(replies).logprob, now, atol=1e-4)


@has_peft
def test_a_resumed_run_with_small_matrices_equals_one_without_a_break(tmp_path):
    text = f"{TINY} --lora 2 --seats ENGLAND --eval-interval 0"
    whole, part = train(tmp_path, f"{text} --steps 4"), train(tmp_path, f"{text} --steps 2")
    assert main(f"--resume {part} --steps 4") == 0
    assert differences(load(whole)["model"], load(part)["model"]) == []
