"""How players are written, what they are called, and what is said of those written wrongly."""

from pathlib import Path

import pytest
from support.tables import read_table

from diplomacy_engine import UserError
from diplomacy_engine.players import names
from diplomacy_engine.players.loading import PlayerError, load_player, policy_map
from diplomacy_engine.players.policy.files import REFERENCE
from diplomacy_engine.players.search.best_response import FAST, BestResponse

SMALL = "runs/reference/small__pure__1"


@pytest.mark.parametrize(
    "name",
    ["runs/fast", "slow:runs/a", "fast:", "fast", "C:runs", "a+b", "greedy", "x.py", "x.py:"],
)
def test_other_names_are_files(name):
    assert names.parse_player(name) == names.PolicySpec(name, name)


def test_what_names_say():
    text = "fast(assume=infer:self,dumbbot candidates=24  sure=1.5):runs/a (b):c"
    found = names.parse_player(f"nash(profiles=3)+{text}")
    policy = names.PolicySpec("runs/a (b):c", "runs/a (b):c")
    options = {"candidates": 24, "sure": 1.5}
    search = names.SearchSpec(text, options, "infer:self,dumbbot", policy)
    assert found == names.VoiceSpec(f"nash(profiles=3)+{text}", "nash", {"profiles": 3}, search)
    assert list(names.parts(found)) == [found, search, policy, names.BotSpec("dumbbot")]
    assert names.parse_player("dumbbot") == names.BotSpec("dumbbot")
    assert names.parse_player(Path("a/b.npz")) == names.MemberSpec("a/b.npz", "a/b.npz")
    assert names.parse_player("greedy:a.npz") == names.MemberSpec("greedy:a.npz", "a.npz", True)
    assert names.parse_player("population") == names.DrawnSpec("population", None, None)
    assert names.parse_player("population:a#b#12") == names.DrawnSpec(
        "population:a#b#12", "a#b", 12
    )
    assert names.parse_player("llm:a.toml") == names.LanguageSpec("llm:a.toml", file="a.toml")
    assert names.parse_player("ab.cd:D") == names.OwnSpec("ab.cd:D", "ab.cd", "D", None)
    assert names.parse_player("ab:C:x/y.zip:1") == names.OwnSpec(
        "ab:C:x/y.zip:1", "ab", "C", "x/y.zip:1"
    )
    assert names.short_name("ab:C:x/y.zip") == "ab:C:y.zip"
    with pytest.raises(UserError, match="has more than 1,000 letters"):
        names.parse_player("nash+" * 1000)


@pytest.mark.parametrize("before", ["", "fast:", "nash+", "nash+fast(sure=2):"])
@pytest.mark.parametrize("greedy", [False, True])
def test_a_policy_may_name_its_script(before, greedy):
    text = f"{'greedy:' * greedy}my/mine.py:runs/x"
    *_, policy = names.parts(before + text)
    assert policy == names.PolicySpec(text, "runs/x", "my/mine.py", greedy)


def test_short_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("runs/one", "other/one", "runs/one/checkpoints"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "policy.pt").write_bytes(b"")
    (tmp_path / "runs/one/checkpoints/5.pt").write_bytes(b"")
    reference = Path(REFERENCE) / "small__pure__1"
    assert names.short_name(tmp_path / "runs/one") == "one"
    assert names.short_name(reference) == names.short_name(reference / "policy.pt")
    for name, short in read_table(__file__, "short_names"):
        name = name.format(tmp=tmp_path, reference=reference)
        assert names.short_name(name) == short
    twins = [str(tmp_path / "runs/one"), "other/one", "dumbbot", "fast:other/one"]
    assert names.short_names(twins) == ["runs/one", "other/one", "dumbbot", "fast:one"]
    for assumed in ("", "pool:", "infer:self,"):
        twins = [f"fast(assume={assumed}{folder}/one):hold" for folder in ("runs", "other")]
        assert names.short_names(twins) == twins
    # One policy by two names is one player still.
    assert names.short_names(["runs/one", "runs/one/policy.pt", "hold"]) == ["one", "one", "hold"]


@pytest.mark.parametrize(
    ("name", "message"), read_table(__file__, "wrong_names_are_refused_in_one_sentence")
)
def test_wrong_names_are_refused_in_one_sentence(name, message):
    with pytest.raises(UserError, match=message) as caught:
        load_player(name)
    assert "\n" not in str(caught.value)


def test_a_policy_can_be_greedy_alone():
    player = load_player(f"greedy:{SMALL}")
    assert player.greedy and player.name == "greedy:small-pure-1"
    assert load_player(f"fast:greedy:{SMALL}").greedy
    player = load_player(f"fast:{SMALL}")
    assert type(player) is BestResponse and player.name == "fast:small-pure-1" and not player.greedy
    assert load_player(f"fast:{SMALL}", greedy=True).greedy


def test_a_policy_is_played_by_the_script_that_it_names(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from diplomacy_engine.learning import registry\n"
        "from ppo_selfplay_diplomacy import Args, make_agent\n"
        "registry.register(__name__, __file__, Args, make_agent)\n"
    )
    for name in ("fast:{}:small-pure-1", "nash+{}:small-pure-1", "greedy:{}:small-pure-1"):
        assert load_player(name.format(mine)).name == name.format("mine.py")
        assert policy_map(name.format(mine)).name == "small"
    with pytest.raises(UserError, match=r"there is no script .*none\.py to play"):
        load_player(f"{tmp_path}/none.py:small-pure-1")
    with pytest.raises(UserError, match=r"there is no player 'none\.py:nowhere'"):
        load_player("none.py:nowhere")


def test_options_reach_the_search():
    assert load_player(f"fast:{SMALL}").settings == FAST
    player = load_player(
        f"fast(candidates=9 assume=dumbbot varied=0.5 temperature=3):{SMALL}", assume="self"
    )
    assert player.settings == FAST._replace(candidates=9)
    assert (player.own.share, player.own.draws.temperature) == (0.5, 3.0)
    assert list(player.assumed.hypotheses) == ["dumbbot"] and not player.assumed.learns
    player = load_player(f"fast:{SMALL}", assume="infer:self,random")
    assert list(player.assumed.hypotheses) == ["self", "random"] and player.assumed.learns
    assert player.name == "fast(assume=infer:self,random):small-pure-1"


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + "/y.pt", "a\0b", "fast:" + "x" * 300])
def test_a_name_that_no_file_can_have(name):
    for action in (load_player, policy_map):
        with pytest.raises(PlayerError, match="there is no player"):
            action(name)
