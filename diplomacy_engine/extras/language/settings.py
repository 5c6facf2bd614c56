"""How a language model is asked: the settings that its name or a settings file gives. A server's
key is read from the environment alone."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from ..._http import read_url
from ..._suggest import quoted
from ...errors import UserError
from ...players.bots import BOTS
from ...players.names import LanguageSpec
from ...records import convert, read_toml

# Server -> how it can be made to write legal orders only; the first is used unless another is set.
CONSTRAINTS = {
    "": ("none", "json"),
    "openai": ("json", "none"),
    "vllm": ("regex", "choice", "json", "grammar", "none"),
    "sglang": ("regex", "grammar", "json", "none"),
    "llama.cpp": ("grammar", "json", "none"),
}
MOST_BYTES = 100_000  # of a settings file
# Settings that only one kind of model has.
_OF_SERVERS = ("server", "api_key_env", "timeout", "deadline", "retries", "reasks", "concurrency")
_OF_LOCAL_MODELS = ("batch", "dtype")
TRAINED_WITH = "diplomacy.toml"  # in a model's folder


@dataclass(frozen=True, kw_only=True)
class TrainedWith:
    """How a model was asked in training: all that the file in its folder may say."""

    prompt: Literal["list", "windows", "counts", "board", "minimal"] = "windows"
    """list: with all legal orders; windows: with what is near each unit; counts: and how many
    orders it has; board: with neither; minimal: own units only"""
    history: Annotated[int, Meta(ge=0, le=20)] = 1
    """past movement phases whose orders the prompt tells"""
    temperature: Annotated[float, Meta(ge=0, le=10)] = 1.0
    """of the draws; 0 gives the likeliest"""


@dataclass(frozen=True, kw_only=True)
class LanguageSettings(TrainedWith):
    """Settings of a language model as a player; the names are those of the settings file."""

    model: Annotated[str, Meta(min_length=1)]
    """folder or .gguf file of a local model; with `base_url` the name that the server knows"""
    base_url: str = ""
    """address of a server, such as http://127.0.0.1:8000/v1; empty: the model is local"""
    server: Literal["", "openai", "vllm", "sglang", "llama.cpp"] = ""
    """openai, vllm, sglang or llama.cpp: which of their constraints can be asked for"""
    constraint: str = ""
    """trie or none for local models; regex, choice, json, grammar or none for servers; empty: the
    best"""
    api_key_env: Annotated[str, Meta(pattern=r"\A([A-Za-z_][A-Za-z0-9_]{0,80})?\Z")] = ""
    """environment variable that holds the server's key, such as OPENAI_API_KEY; never the key"""
    thinking: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """tokens of free text before the orders; 0 on servers: what a model thinks unasked"""
    timeout: Annotated[float, Meta(ge=0.1, le=3600)] = 180.0
    """seconds that one request may take"""
    deadline: Annotated[float, Meta(ge=0.1, le=86_400)] = 600.0
    """seconds that all requests of a phase may take; what comes later falls back"""
    retries: Annotated[int, Meta(ge=0, le=20)] = 2
    """times that a request is sent again after a lost connection or a busy server"""
    reasks: Annotated[int, Meta(ge=0, le=20)] = 2
    """times that a model is asked again for orders that were illegal or missing"""
    fallback: Literal[tuple(BOTS)] = "hold"  # type: ignore[valid-type]  # named at run time
    """bot that orders the units for which no legal order came"""
    concurrency: Annotated[int, Meta(ge=1, le=256)] = 8
    """requests at the same time"""
    batch: Annotated[int, Meta(ge=1, le=4096)] = 16
    """decisions that a local model takes at once"""
    dtype: Literal["", "auto", "float32", "bfloat16", "float16"] = ""
    """numbers of a local model: auto, float32, bfloat16, float16; empty: float32 on processors"""
    log: str = ""
    """file to which every exchange is added, one JSON line each"""

    @property
    def is_local(self) -> bool:
        return not self.base_url

    def api_key(self) -> str:
        return os.environ.get(self.api_key_env, "").strip()


def read_settings(spec: LanguageSpec) -> LanguageSettings:
    """Return the settings of a player's name; UserError: the file or a setting is wrong."""
    if spec.file:
        return settings_of(read_toml(spec.file, MOST_BYTES), spec.file)
    if not spec.url:
        return settings_of({"model": spec.folder}, "llm:local:")
    return settings_of({"model": spec.model, "base_url": spec.url}, "llm:")


def settings_of(values: Mapping, where: str) -> LanguageSettings:
    """Return checked settings; `where` is what messages call them. A key is never repeated. Of a
    model's own folder those in TRAINED_WITH hold, unless `values` has others."""
    settings = convert(LanguageSettings, values, where)
    own = Path(settings.model) / TRAINED_WITH
    if settings.is_local and own.is_file():
        trained = convert(TrainedWith, read_toml(own, MOST_BYTES), own)
        settings = convert(LanguageSettings, asdict(trained) | dict(values), where)
    constraints = ("trie", "none") if settings.is_local else CONSTRAINTS[settings.server]
    chosen, wrong = settings.constraint or constraints[0], ""
    if chosen not in constraints:
        place = f"server {settings.server!r}" if settings.server else settings.base_url
        place = "a local model" if settings.is_local else place
        fits = [name for name, kinds in CONSTRAINTS.items() if name and chosen in kinds]
        hint = f"; set 'server' to {' or '.join(fits)}" if fits and not settings.server else ""
        wrong = f"constraint: {place} has no {quoted(chosen, 40)} ({', '.join(constraints)}){hint}"
    if settings.base_url:
        read_url(settings.base_url, f"{where}: base_url")
        key = settings.api_key()
        if settings.api_key_env and not (key and key.isascii() and key.isprintable()):
            wrong = f"api_key_env: {settings.api_key_env} must be set to a key, one line of ASCII"
    for name in _OF_SERVERS if settings.is_local else _OF_LOCAL_MODELS:
        if getattr(settings, name) != getattr(LanguageSettings, name):
            reason = "needs a base_url" if settings.is_local else "is not for a model on a server"
            wrong = f"{name}: it {reason}"
    if wrong:
        raise UserError(f"{where}: {wrong}")
    return replace(settings, constraint=chosen)
