"""Names and settings files of language models; no key is ever taken from them or repeated."""

import pytest
from support.tables import read_table

from diplomacy_engine import UserError
from diplomacy_engine.extras.language.settings import TRAINED_WITH, read_settings, settings_of
from diplomacy_engine.players.names import parse_player

SECRET = "sk-abc123-SECRET"


def test_names_and_files(tmp_path):
    local = read_settings(parse_player("llm:local:some/folder"))
    assert (local.model, local.is_local, local.constraint) == ("some/folder", True, "trie")
    found = read_settings(parse_player("llm:org/model@2@http://127.0.0.1:8000/v1"))
    assert (found.model, found.base_url) == ("org/model@2", "http://127.0.0.1:8000/v1")
    assert not found.is_local and found.constraint == "none"
    file = tmp_path / "llm.toml"
    file.write_text('model = "m"\nbase_url = "http://[::1]:1/v1"\nserver = "vllm"\ntimeout = 5\n')
    found = read_settings(parse_player(f"llm:{file}"))
    assert found.constraint == "regex" and found.timeout == 5 and found.prompt == "windows"


@pytest.mark.parametrize(("text", "name"), read_table(__file__, "bad_files"))
def test_bad_files(tmp_path, text, name):
    file = tmp_path / "llm.toml"
    file.write_text(text)
    with pytest.raises(UserError) as refused:
        read_settings(parse_player(f"llm:{file}"))
    message = str(refused.value)
    assert message.startswith(f"{file}: ") and name in message and "\n" not in message
    assert "SECRET" not in message


BAD = ["llm:", "llm:model", "llm:x.toml", "llm:local:", "llm:@http://h", f"llm:m@http://h#{SECRET}"]


@pytest.mark.parametrize("name", BAD)
def test_bad_names(name):
    with pytest.raises(UserError) as refused:
        read_settings(parse_player(name))
    assert "SECRET" not in str(refused.value)


def test_key_from_the_environment(monkeypatch):
    found = {"model": "m", "base_url": "http://h", "api_key_env": "MY_KEY"}
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(UserError, match="t: api_key_env: MY_KEY"):
        settings_of(found, "t")
    monkeypatch.setenv("MY_KEY", SECRET)
    settings = settings_of(found, "t")
    assert settings.api_key() == SECRET and SECRET not in repr(settings)


@pytest.mark.parametrize(
    ("text", "name"),
    [('log = "x"', "log"), ('base_url = "http://h/v1"', "base_url"), ("history = -1", "history")],
)
def test_a_models_folder_says_how_it_is_asked_and_nothing_else(tmp_path, text, name):
    (tmp_path / TRAINED_WITH).write_text(f'prompt = "list"\n{text}\n')
    with pytest.raises(UserError) as refused:
        settings_of({"model": str(tmp_path)}, "llm.toml")
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / TRAINED_WITH}: ") and name in message
