"""Small random language models with tokenizers of all kinds.

They need transformers, which takes seconds to import: it is imported when one is made.
"""

from functools import cache
from pathlib import Path

from diplomacy_engine import load_map, vocabulary

TOKENIZERS = ("words", "across spaces", "metaspace", "no line end")


@cache
def tokenizer(kind: str = "words"):
    """Return a tokenizer trained on orders.

    Kinds: `words` splits at spaces as GPT-2's does; `across spaces` has tokens over spaces and line
    ends; `metaspace` is SentencePiece's way; `no line end` drops line ends.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    texts = [text for name in ("small", "three") for text in vocabulary(load_map(name)).texts]
    lines = ["\n".join(texts[i : i + 3]) + "\n" for i in range(0, len(texts), 3)]
    special = ["<end>", "<unk>"]
    if kind == "metaspace":
        trained = Tokenizer(models.Unigram())
        trained.pre_tokenizer = pre_tokenizers.Metaspace()
        trained.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=200, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    else:
        trained = Tokenizer(models.BPE(unk_token="<unk>"))
        if kind == "no line end":
            trained.normalizer = normalizers.Replace("\n", "")
        trained.pre_tokenizer = pre_tokenizers.ByteLevel(
            add_prefix_space=False, use_regex=kind == "words"
        )
        trained.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=special,
            show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
    trained.train_from_iterator(lines, trainer)
    ends = {"eos_token": "<end>", "pad_token": "<end>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=trained, **ends)


def network(kind: str = "gpt2", size: int = 400, seed: int = 1):
    """Return a random network."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)  # more only wait for each other
    torch.manual_seed(seed)
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    if kind == "gpt2":
        shape = {"n_positions": 4096, "n_embd": 32, "n_layer": 2, "n_head": 2}
        return GPT2LMHeadModel(GPT2Config(vocab_size=size, resid_pdrop=0.1, **shape, **ends))
    config = LlamaConfig(
        **ends,
        vocab_size=size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=4096,
    )
    return LlamaForCausalLM(config)


def save_model(folder: Path, kind: str = "gpt2", tokens: str = "words") -> Path:
    """Write a random model into a folder, as transformers reads it."""
    words = tokenizer(tokens)
    network(kind, len(words)).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
