#!/usr/bin/env bash
# trl 1.16.0 with transformers 5.24.0 and torch 2.13.0: log-probabilities in GRPO's loss, for a model
# with absolute positions (GPT-2) and prompts of different lengths.
#
# Prompts are padded on the left, and the loss does not tell the network positions: the first token
# of a shorter prompt gets the number of tokens before it, not 0. While the trainer writes, it counts
# from the mask. So a completion is written at other positions than those at which its gradient is
# taken, without a warning; the ratio of probabilities, both of the loss, stays 1. Rotary positions
# depend on distances alone; they were not tried.
#
# Seen:
#   longest prompt: at most 0.00 between the loss and the model asked alone
#   shorter prompt: at most 0.23 between the loss and the model asked alone
#
# One would guess that a completion's probability does not depend on the other prompts of its batch.
#
# Here: the trainer of examples/trl_grpo.py takes them from the player, whose positions count from
# the mask.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -qq trl==1.16.0 transformers==5.24.0 torch==2.13.0 \
    tokenizers==0.23.3 datasets==5.2.0 accelerate==1.15.0 numpy==2.4.6
cat >see.py <<'PY'
import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

words = {word: i for i, word in enumerate(["<end>", *"abcdefghij"])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<end>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
ends = {"eos_token": "<end>", "pad_token": "<end>"}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends)
torch.manual_seed(1)
shape = {"vocab_size": 11, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 1}
network = GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=0, eos_token_id=0))
in_loss = []


def note(module, args, given, output):
    if "labels" in given:
        in_loss.append((given["input_ids"], given["attention_mask"], output.log_probs.detach()))


hook = network.register_forward_hook(note, with_kwargs=True)
config = GRPOConfig(
    output_dir="out",
    max_steps=1,
    learning_rate=0.0,
    per_device_train_batch_size=4,
    num_generations=2,
    max_completion_length=4,
    disable_dropout=True,
    use_cpu=True,
    bf16=False,
    report_to="none",
    save_strategy="no",
    disable_tqdm=True,
)
GRPOTrainer(
    model=network,
    processing_class=tokenizer,
    args=config,
    reward_funcs=lambda completions, **_: [float(i) for i in range(len(completions))],
    train_dataset=Dataset.from_list([{"prompt": "a"}, {"prompt": "a b c d e f"}]),
).train()
hook.remove()

((tokens, mask, log_probs),) = in_loss
apart = {True: [], False: []}
for row in range(len(tokens)):
    alone = tokens[row][mask[row] == 1][None]
    with torch.no_grad():
        logits = network(input_ids=alone).logits
    expected = logits.log_softmax(2)[0, :-1].gather(1, alone[0, 1:, None])[:, 0]
    padded = bool(mask[row, 0] == 0)
    scored = log_probs[row][log_probs[row] != 0]  # of the completion; 0 elsewhere
    apart[padded].append(float((scored - expected[-len(scored) :]).abs().max()))
print(f"longest prompt: at most {max(apart[False]):.2f} between the loss and the model asked alone")
print(f"shorter prompt: at most {max(apart[True]):.2f} between the loss and the model asked alone")
assert max(apart[False]) < 1e-4 and max(apart[True]) > 0.01, "this has changed"
PY
venv/bin/python -I see.py
