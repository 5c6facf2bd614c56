"""Settings files and the command line."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from diplomacy_engine._fields import Between, NonNegative, Positive, Share
from diplomacy_engine.errors import UserError
from diplomacy_engine.training.settings import (
    args_from_dictionary,
    check_values,
    fail,
    load_config,
    parse_args,
)


@dataclass(frozen=True)
class Args:
    """Train."""

    map: str = "small"
    """Name of the map."""
    config: str | None = None
    """Settings file."""
    num_envs: int = 8
    """Games in parallel."""
    learning_rate: float = 2.5e-4
    """Step size of the optimiser."""
    cuda: bool = True
    """Use a GPU."""
    track: bool = False
    """Log to W&B."""
    target_kl: float | None = None
    """Stop an update at this divergence, in nats."""
    wandb_mode: Literal["online", "offline"] = "online"
    """How to log."""
    pool_bots: tuple[str, ...] = ()
    """Bots in the pool."""
    layers: tuple[Positive, ...] = (64, 64)
    """Layer sizes."""
    gamma: Share = 0.99
    """Discount per decision."""
    clip_coef: NonNegative | None = None
    """Clipping range."""
    max_years: Annotated[int | None, Between(2, 10**6)] = None
    """Years of a game."""
    offset: Annotated[int, Between(high=5)] = 0
    """Where to begin."""


@pytest.fixture
def configs(tmp_path):
    (tmp_path / "small.toml").write_text("num_envs = 16\nlearning-rate = 1\ntarget_kl = 0.1\n")
    (tmp_path / "three.toml").write_text("num_envs = 1e3\npool_bots = ['hold']\n")
    return tmp_path


def test_defaults():
    settings = parse_args(Args, [])
    assert settings == (Args(), frozenset(), None)


def test_precedence(configs):
    settings = parse_args(Args, ["--learning-rate", "1e-3"], configs)
    assert settings.args == Args(num_envs=16, learning_rate=1e-3, target_kl=0.1)
    assert settings.given == {"learning_rate"}
    assert settings.config == configs / "small.toml"
    assert parse_args(Args, ["--num-envs", "8"], configs).args.num_envs == 8
    three = parse_args(Args, ["--map", "three"], configs).args
    assert three == Args(map="three", num_envs=1000, pool_bots=("hold",))
    other = parse_args(Args, ["--map=small", f"--config={configs / 'three.toml'}"], configs).args
    assert (other.map, other.num_envs, other.target_kl) == ("small", 1000, None)
    assert parse_args(Args, ["--map", "my/small.toml"], configs).config is None
    assert parse_args(Args, ["--map", "none"], configs).config is None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--num-envs", "3"], {"num_envs": 3}),
        (["--num_envs=3"], {"num_envs": 3}),
        (["--num-envs=1e6"], {"num_envs": 1_000_000}),
        (["--num-envs", "-2"], {"num_envs": -2}),
        (["--num-envs", "3", "--num_envs", "4"], {"num_envs": 4}),
        (["--learning-rate", "1"], {"learning_rate": 1.0}),
        (["--learning-rate", "-1e-3"], {"learning_rate": -1e-3}),
        (["--track"], {"track": True}),
        (["--track=True"], {"track": True}),
        (["--track=true"], {"track": True}),
        (["--track", "True", "--map", "three"], {"track": True, "map": "three"}),
        (["--no-cuda"], {"cuda": False}),
        (["--no_cuda"], {"cuda": False}),
        (["--cuda=False"], {"cuda": False}),
        (["--cuda", "false"], {"cuda": False}),
        (["--cuda=False", "--cuda"], {"cuda": True}),
        (["--target-kl", "0.1"], {"target_kl": 0.1}),
        (["--target-kl=None"], {"target_kl": None}),
        (["--wandb-mode=offline"], {"wandb_mode": "offline"}),
        (["--map="], {"map": ""}),
        (["--map=-a=b"], {"map": "-a=b"}),
        (["--pool-bots", "hold", "random", "--track"], {"pool_bots": ("hold", "random")}),
        (["--pool-bots"], {"pool_bots": ()}),
        (["--pool-bots="], {"pool_bots": ()}),
        (["--pool-bots=['hold', 'random']"], {"pool_bots": ("hold", "random")}),
        (["--layers=(32, 1e2)"], {"layers": (32, 100)}),
        (["--layers", "32"], {"layers": (32,)}),
        (["--gamma=0", "--clip-coef=0"], {"gamma": 0.0, "clip_coef": 0.0}),
        (["--gamma=1", "--max-years=1e6"], {"gamma": 1.0, "max_years": 1_000_000}),
        (["--max-years=2", "--offset=-9"], {"max_years": 2, "offset": -9}),
        (["--max-years=None", "--offset=5"], {"max_years": None, "offset": 5}),
    ],
)
def test_command_line(words, expected):
    settings = parse_args(Args, words)
    for name, value in expected.items():
        found = getattr(settings.args, name)
        assert found == value and type(found) is type(value)
    assert expected.keys() <= settings.given


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--num-env", "3"], "unknown flag --num-env; did you mean '--num-envs'?"),
        (["--num-envs"], "--num-envs needs a value: a whole number"),
        (["--num-envs", "--track"], "--num-envs needs a value: a whole number"),
        (["--num-envs", "many"], "--num-envs must be a whole number, not 'many'"),
        (["--num-envs=1.5"], "--num-envs must be a whole number, not '1.5'"),
        (["--num-envs=inf"], "--num-envs must be a whole number, not 'inf'"),
        (["--num-envs=True"], "--num-envs must be a whole number, not 'True'"),
        (["--learning-rate=nan"], "--learning-rate must be a number, not 'nan'"),
        (["--track=maybe"], "--track must be true or false, not 'maybe'"),
        (["--track=None"], "--track must be true or false, not 'None'"),
        (["--no-cuda=True"], "--no-cuda takes no value; --cuda=True does"),
        (["--no-map"], "unknown flag --no-map; did you mean '--map'?"),
        (["--target-kl=x"], "--target-kl must be a number, or none, not 'x'"),
        (["--wandb-mode=of"], "--wandb-mode must be one of online, offline, not 'of'"),
        (
            ["--layers", "1", "x"],
            "--layers must be a list, each a whole number from 1 on, not '1 x'",
        ),
        (["--layers=(8,0)"], "--layers must be a list, each a whole number from 1 on, not '8 0'"),
        (["--gamma=1.5"], "--gamma must be a number from 0 to 1, not '1.5'"),
        (["--gamma", "-0.1"], "--gamma must be a number from 0 to 1, not '-0.1'"),
        (["--gamma=1e400"], "--gamma must be a number from 0 to 1, not '1e400'"),
        (
            ["--clip-coef=-1"],
            "--clip-coef must be a number from 0 on, or none, not '-1'",
        ),
        (
            ["--max-years=1"],
            "--max-years must be a whole number from 2 to 1,000,000, or none, not '1'",
        ),
        (
            ["--max-years=1e7"],
            "--max-years must be a whole number from 2 to 1,000,000, or none, not '1e7'",
        ),
        (["--offset=6"], "--offset must be a whole number up to 5, not '6'"),
        (["small"], "'small' is not a flag such as --seed"),
        (["--map", "small", "three"], "'three' is not a flag such as --seed (after --map small)"),
        (["-x"], "'-x' is not a flag such as --seed"),
        (["--"], "'--' is not a flag such as --seed"),
    ],
)
def test_bad_command_line(words, message):
    with pytest.raises(UserError) as caught:
        parse_args(Args, words)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_env = 3", "unknown setting 'num_env'; did you mean 'num_envs'?"),
        ("num_envs = true", "'num_envs' must be a whole number, not True"),
        ("num_envs = 1.5", "'num_envs' must be a whole number, not 1.5"),
        ("num_envs = '8'", "'num_envs' must be a whole number, not '8'"),
        ("learning_rate = '3e-4'", "'learning_rate' must be a number, not '3e-4'"),
        ("learning_rate = true", "'learning_rate' must be a number, not True"),
        ("cuda = 1", "'cuda' must be true or false, not 1"),
        ("map = 3", "'map' must be a text, not 3"),
        ("wandb_mode = 'off'", "'wandb_mode' must be one of online, offline, not 'off'"),
        ("pool_bots = 'hold'", "'pool_bots' must be a list, each a text, not 'hold'"),
        ("pool_bots = [1]", "'pool_bots' must be a list, each a text, not [1]"),
        ("layers = [8, 0]", "'layers' must be a list, each a whole number from 1 on, not [8, 0]"),
        ("gamma = 2", "'gamma' must be a number from 0 to 1, not 2"),
        (
            "clip_coef = -0.5",
            "'clip_coef' must be a number from 0 on, or none, not -0.5",
        ),
        (
            f"clip_coef = {10**400}",
            "'clip_coef' must be a number from 0 on, or none, not 1000",
        ),
        ("max-years = 1", "'max-years' must be a whole number from 2 to 1,000,000, or none, not 1"),
        ("num_envs = 1\nnum-envs = 2", "'num-envs' is set twice"),
        ("[network]\nlayers = 2", "unknown setting 'network'"),
        ("num_envs = ", "is not TOML"),
        (f"gamma = {'9' * 5000}", "is not TOML"),
        (
            f"gamma = 0x{'9' * 5000}",
            "'gamma' must be a number from 0 to 1, not something of type int",
        ),
    ],
)
def test_bad_settings_file(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        parse_args(Args, ["--config", str(path)])
    assert message in str(caught.value) and str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_settings_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file"):
        load_config(Args, tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not TOML"):
        load_config(Args, tmp_path / "bytes.toml")


def test_settings_file_contradicts_itself(configs):
    (configs / "small.toml").write_text("map = 'three'")
    with pytest.raises(UserError, match="is for map 'small' but sets map = 'three'"):
        parse_args(Args, [], configs)
    (configs / "small.toml").write_text("config = 'other.toml'")
    with pytest.raises(UserError, match="'config' can only be given as a flag"):
        parse_args(Args, [], configs)


def test_values_of_a_dictionary():
    args = Args(num_envs=3, target_kl=None, pool_bots=("hold",))
    values = {name: getattr(args, name) for name in args.__dataclass_fields__}
    assert args_from_dictionary(Args, values, "args.json") == args
    assert check_values(Args, {"pool_bots": ["hold"]}, "args.json") == {"pool_bots": ("hold",)}
    with pytest.raises(UserError, match=r"args\.json: unknown setting 'seeds'"):
        args_from_dictionary(Args, {"seeds": 1}, "args.json")
    with pytest.raises(UserError, match=r"args\.json: 'cuda' must be true or false"):
        args_from_dictionary(Args, {"cuda": None}, "args.json")
    with pytest.raises(UserError, match=r"args\.json: 'gamma' must be a number from 0 to 1, not 7"):
        args_from_dictionary(Args, {"gamma": 7}, "args.json")


def test_help_shows_the_values_of_the_settings_file(configs, capsys):
    with pytest.raises(SystemExit) as caught:
        parse_args(Args, ["--map", "three", "--help"], configs)
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert "--num-envs" in shown and "(default: 1000)" in shown and "Games in parallel." in shown


def test_help_shows_the_ranges_of_shares_alone(configs, capsys):
    (configs / "small.toml").write_text("gamma = 0.5\n")
    with pytest.raises(SystemExit):
        parse_args(Args, ["--help"], configs)
    shown = " ".join(capsys.readouterr().out.split())
    for words in (
        "Train.",
        "--gamma FLOAT Discount per decision. (from 0 to 1; default: 0.5)",
        "Clipping range. (default: none)",
        "Years of a game. (default: none)",
        "Where to begin. (default: 0)",
        f"Defaults shown are those of {configs.name}/small.toml.",
        "Step size of the optimiser. (default: 0.00025)",
    ):
        assert words in shown


def test_fail(capsys):
    with pytest.raises(SystemExit) as caught:
        fail("no such map")
    assert caught.value.code == 2
    assert capsys.readouterr().err == "error: no such map\n"


@dataclass(frozen=True)
class Grouped:
    """Words of the whole."""

    first: int = 1
    """the first"""
    # Some more
    second: Share = 0.5  # not a heading
    """the second"""
    third: bool = True
    # At the end
    fourth: tuple[str, ...] = ("a",)
    """the fourth,
    in two lines"""


@dataclass(frozen=True)
class Mixed(Grouped, Args):
    """Settings of two classes."""

    more: int = 3
    """its own"""


def test_help_knows_what_all_classes_say_of_their_settings(capsys):
    with pytest.raises(SystemExit):
        parse_args(Mixed, ["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert all(text in shown for text in ("its own", "the second (", "Games in parallel."))


def test_help_is_in_groups(capsys):
    with pytest.raises(SystemExit) as caught:
        parse_args(Grouped, ["--second", "0.25", "--help"])
    assert caught.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    heads = ["options:", "Some more:", "At the end:"]
    places = [lines.index(head) for head in heads]
    assert places == sorted(places)
    text = " ".join(" ".join(lines).split())
    before, more, end = (text.index(head) for head in heads)
    assert before < text.index("--first INT the first (default: 1)") < more
    assert more < text.index("--second FLOAT the second (from 0 to 1; default: 0.5)") < end
    assert more < text.index("--third, --no-third (default: on)") < end
    assert end < text.index("the fourth, in two lines (default: a)")
    assert "Words of the whole." in text and "heading" not in text
