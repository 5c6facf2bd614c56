"""What a language-model power costs: prompts, the constraint, and where a rollout's time goes.

    python tests/benchmarks/bench_llm.py --map standard
    python tests/benchmarks/bench_llm.py --map small --model model.gguf --tables prompts

Four tables. *Prompts*: their tokens at positions reached at random; and what the model writes, with
the constraint and without it, where it is read and asked again as a server's replies are: the share
of legal orders, tokens, seconds of a decision. *Constraint*: milliseconds of a decision with and
without passing over tokens that have no alternative, and what masks and tries take of them.
*Waterfall*: the stages of a rollout. *Rollouts/s* by groups and threads. The default model is the
small random one that diplomacy_learners/language_model.py trains.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np
import torch

import diplomacy_learners.language_model as grpo
from diplomacy_engine import VectorGame, load_map
from diplomacy_engine.matches.beginnings import random_beginnings
from diplomacy_engine.matches.statistics import wilson_interval
from diplomacy_engine.players.language.prompt import prompt_text
from diplomacy_engine.players.language.questions import Question, questions_of
from diplomacy_engine.players.language.remote import RemotePlayer
from diplomacy_engine.players.language.server import Completion
from diplomacy_engine.players.language.settings import PROMPTS, LanguageSettings
from diplomacy_engine.training.clock import Clock

TABLES = "prompts", "constraint", "waterfall", "rates"


class Unconstrained:
    """Lets a local model write what it likes, in the place of a player's server."""

    answered, retried, name = True, 0, "here"

    def __init__(self, model: grpo.LanguageModel, most_tokens: int):
        self.model, self.most_tokens = model, most_tokens

    def complete(self, messages: list[dict], until: float, **_) -> Completion:
        """Return the likeliest reply to a conversation."""
        model, tokenizer = self.model, self.model.tokenizer
        if tokenizer.chat_template:
            text = tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        else:
            text = "\n".join(message["content"] for message in messages)
        tokens = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        found = model.network.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            max_new_tokens=self.most_tokens,
            do_sample=False,
            pad_token_id=tokenizer.eos_token_id,
        )[0, tokens.shape[1] :]
        reply = tokenizer.decode(found, skip_special_tokens=True)
        return Completion(reply, tokens.shape[1], len(found))


def positions(map_name: str, count: int) -> list[Question]:
    """Return what powers are asked in movement phases and others that games reach at random."""
    games = VectorGame(map_name, count, seed=1, threads=1, auto_reset=False)
    random_beginnings(games, 12, seed=1)
    found = list(questions_of(games, games.decisions(), {}))
    chosen = np.random.default_rng(1).permutation(len(found))[:count]
    return [found[i] for i in chosen]


def share_of(count: int, of: int) -> str:
    """Return a share of orders with its interval of 95 %."""
    low, high = wilson_interval(count, of)
    return f"{count} of {of}: {100 * count / of:.1f}% ({100 * low:.1f} to {100 * high:.1f})"


def compare_prompts(
    model: grpo.LanguageModel,
    questions: Sequence[Question],
    written: int,
    most_tokens: int,
    reasks: int,
    forms: Sequence[str],
) -> None:
    """Print the tokens of the prompts, and what the model writes without and with the constraint.

    Args:
        questions: whose prompts are measured.
        written: so many of them are answered.
        most_tokens: of a reply without the constraint.
        reasks: times that it is asked again without the constraint.
    """
    print("\n| prompt | characters | tokens: mean | 95% | most |")
    print("|---" * 5 + "|")
    for form in forms:
        texts = [prompt_text(question, form, 1) for question in questions]
        tokens = [len(model.prompt_tokens(text)) for text in texts]
        print(
            f"| {form} | {np.mean([len(text) for text in texts]):,.0f} | {np.mean(tokens):,.0f} | "
            f"{np.percentile(tokens, 95):,.0f} | {max(tokens):,} |"
        )
    some = questions[:written]
    orders = sum(len(question.slots) for question in some)
    print(f"\nThe likeliest replies to {len(some)} of them, {orders} orders:\n")
    print("| prompt | constraint | legal at once | in the end | tokens of replies | seconds |")
    print("|---" * 6 + "|")
    for form in forms:
        settings = LanguageSettings(
            model="free",
            base_url="http://127.0.0.1/v1",
            constraint="none",
            prompt=form,
            reasks=reasks,
            concurrency=1,
            timeout=3600,
            deadline=36000,
        )
        player = RemotePlayer("free", settings, greedy=True)
        player.server = Unconstrained(model, most_tokens)
        start = time.perf_counter()
        answers = player._answers(some)
        seconds = time.perf_counter() - start
        legal = sum(number >= 0 for answer in answers for number in answer.numbers)
        at_once = sum(answer.at_once for answer in answers)
        tokens = sum(exchange.tokens_out for answer in answers for exchange in answer.exchanges)
        found = {"none": (at_once, legal, tokens, seconds)}
        start = time.perf_counter()
        prompts = [prompt_text(question, form, 1) for question in some]
        replies = [model.replies([p], [q], greedy=True)[0] for p, q in zip(prompts, some)]
        seconds = time.perf_counter() - start
        whole = sum(len(reply.numbers) for reply in replies)
        tokens = sum(len(reply.tokens) for reply in replies)
        found["trie"] = whole, whole, tokens, seconds
        for constraint, (at_once, legal, tokens, seconds) in found.items():
            shares = share_of(at_once, orders), share_of(legal, orders)
            print(
                f"| {form} | {constraint} | {' | '.join(shares)} | "
                f"{tokens / len(some):.1f} | {seconds / len(some):.2f} |",
                flush=True,
            )


def compare_constraint(model: grpo.LanguageModel, questions: Sequence[Question]) -> None:
    """Print what a decision costs, and that the orders stay the same."""
    prompts = [prompt_text(question, "minimal") for question in questions]
    print("\n| tokens without alternative | ms a decision | passes | reading | writing | masks |")
    print("|---|---|---|---|---|---|")
    orders, model.skip = [], True
    model.replies(prompts, questions, greedy=True)  # warm: the tokens of all orders
    for skip in (True, False):
        model.skip, model.passes, model.clock = skip, 0, Clock()
        start = time.perf_counter()
        replies = [
            reply
            for first in range(0, len(questions), 16)
            for reply in model.replies(
                prompts[first : first + 16], questions[first : first + 16], greedy=True
            )
        ]
        scale = 1000 / len(questions)
        stages = (model.clock.seconds[name] * scale for name in ("read", "write", "choose"))
        cells = [f"{(time.perf_counter() - start) * scale:.2f}", f"{model.passes}"]
        cells += [f"{x:.2f}" for x in stages]
        print(
            f"| {'passed over' if skip else 'fed one by one'} | {' | '.join(cells)} |", flush=True
        )
        orders.append([reply.numbers for reply in replies])
        share = sum(len(r.at) for r in replies) / max(1, sum(len(r.tokens) for r in replies))
    model.skip = True
    tokens = model._tokens(questions[0])
    tokens._tries.clear()
    start = time.perf_counter()
    slots = [slot for question in questions for slot in question.slots]
    for slot in slots:
        tokens.trie(slot)
    built = 1000 * (time.perf_counter() - start) / len(questions)
    whole = sum(len(r.numbers) == len(q.slots) for r, q in zip(replies, questions))
    print(
        f"\nTries of a decision: {built:.3f} ms when new. The model chose {100 * share:.0f}% of "
        f"the tokens. Same orders both ways: {orders[0] == orders[1]}. "
        f"Complete: {100 * whole / len(questions):.0f}%."
    )


def run_of(arguments: argparse.Namespace, groups: int, threads: int) -> grpo.Run:
    """Return a training run that is to be measured."""
    args = grpo.Args(
        model=arguments.model,
        map=arguments.map,
        groups=groups,
        copies=arguments.copies,
        years=arguments.years,
        threads=threads,
        warm_up=8,
        eval_interval=0,
    )
    return grpo.Run(args, load_map(arguments.map))


def show_waterfall(arguments: argparse.Namespace) -> None:
    """Print where the time of a step goes, for each rollout."""
    run = run_of(arguments, arguments.groups[-1], arguments.threads[0])
    run.advance()  # compiles, and finds the tokens of orders
    steps = [run.advance() for _ in range(arguments.steps)]
    rollouts = arguments.groups[-1] * arguments.copies
    names = [name for name in steps[0] if name.startswith("timing/") and steps[0][name]]
    mean = {name: np.mean([found[name] for found in steps]) for name in names}
    whole = sum(mean.values())
    print(f"\nWaterfall of {rollouts} rollouts of {arguments.years} year(s):\n")
    print("| stage | ms a rollout | share |")
    print("|---|---|---|")
    for name in sorted(names, key=mean.get, reverse=True):
        stage = name.removeprefix("timing/")
        print(f"| {stage} | {1000 * mean[name] / rollouts:.2f} | {100 * mean[name] / whole:.1f}% |")
    print(f"| all | {1000 * whole / rollouts:.2f} | 100 % |", flush=True)


def show_rates(arguments: argparse.Namespace) -> None:
    """Print rollouts/s without updates."""
    print("\n| groups | " + " | ".join(f"{t} thread(s)" for t in arguments.threads) + " |")
    print("|---" * (1 + len(arguments.threads)) + "|")
    for groups in arguments.groups:
        cells = []
        for threads in arguments.threads:
            run = run_of(arguments, groups, threads)
            best = 0.0
            for step in range(arguments.steps + 1):  # the first finds the tokens of orders
                start = time.perf_counter()
                grpo.play_groups(run.args, run.player, run.opponent, run.game_map, step)
                best = max(best, groups * arguments.copies / (time.perf_counter() - start))
            cells.append(f"{best:,.1f}")
        print(f"| {groups} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--map", default="standard")
    parser.add_argument("--model", default="tiny", help="folder or .gguf file; tiny: random")
    parser.add_argument("--prompts", nargs="+", choices=PROMPTS, default=PROMPTS)
    parser.add_argument("--written", type=int, default=20, help="positions that are answered")
    parser.add_argument("--most-tokens", type=int, default=80, help="of a reply without constraint")
    parser.add_argument("--reasks", type=int, default=2, help="without the constraint")
    parser.add_argument("--decisions", type=int, default=200, help="positions of the first tables")
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--copies", type=int, default=8, help="rollouts of a group")
    parser.add_argument("--years", type=int, default=1)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=3, help="measured ones; the quickest counts")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="count the processor's seconds instead of the clock's: for a busy machine, one thread",
    )
    arguments = parser.parse_args()
    if arguments.cpu:
        time.perf_counter = time.process_time  # Clock's too
    run = run_of(arguments, 1, 1)
    torch.set_num_threads(arguments.threads[0])
    parts = sum(part.numel() for part in run.model.network.parameters())
    print(f"map {arguments.map}, model {arguments.model} of {parts:,} parameters")
    questions = positions(arguments.map, arguments.decisions)
    if "prompts" in arguments.tables:
        written, most = arguments.written, arguments.most_tokens
        reasks, forms = arguments.reasks, arguments.prompts
        compare_prompts(run.model, questions, written, most, reasks, forms)
    if "constraint" in arguments.tables:
        compare_constraint(run.model, questions)
    if "waterfall" in arguments.tables:
        show_waterfall(arguments)
    if "rates" in arguments.tables:
        show_rates(arguments)


if __name__ == "__main__":
    main()
