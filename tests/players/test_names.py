"""How players are written, what they are called, and what is said of those written wrongly."""

import itertools
import os
import random
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tables import read_table

from diplomacy_engine import UserError
from diplomacy_engine.matches.match import names_apart
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
    whole = f"nash(profiles=3)+{text}"
    found = names.parse_player(whole)
    policy = names.PolicySpec("runs/a (b):c", "runs/a (b):c")
    bot, options = names.BotSpec("dumbbot", "dumbbot"), (("candidates", 24), ("sure", 1.5))
    assume = names.Assumed("infer:self,dumbbot", "infer", (names.SelfSpec("self"), bot))
    search = names.SearchSpec(text, options, assume, policy)
    assert found == names.VoiceSpec(whole, "nash", (("profiles", 3),), search)
    assert list(names.parts(found)) == [found, search, policy, bot]
    assert names.parse_player("ab:C:x/y.zip:1") == names.OwnSpec("", "ab", "C", "x/y.zip:1")
    assert names.short_name("ab:C:x/y.zip") == "ab:C:y.zip"
    with pytest.raises(UserError, match="has more than 1,000 letters"):
        names.parse_player("nash+" * 1000)


FOLDERS = "a", "b", "a/a"


@st.composite
def described(draw, depth=2):
    """Return the kind of a player and the values of its fields."""
    kinds = ["bot", "policy", "member", "drawn", "llm", "llm local", "own", "program"]
    kind = draw(st.sampled_from([*kinds, *["search", "voice"] * (depth > 0)]))
    one, folder = (lambda *of: draw(st.sampled_from(of))), draw(st.sampled_from(FOLDERS))
    within = described(depth - 1)
    match kind:
        case "bot":
            return kind, one("hold", "random")
        case "policy":
            return kind, folder, one(None, *FOLDERS), one(True, False)
        case "member":
            return kind, folder, one(True, False)
        case "drawn":
            return kind, one(None, folder), one(None, 1, 2)
        case "own":
            return kind, one("am.b", "bm"), one("C", "D"), one(None, "a", "b/a")
        case "program":
            return kind, one("cmd", "dui"), one(None, 1, 1.5), one("a b", "b")
        case "search":
            names = [("self",), ("bot", "hold"), ("policy", folder, None, False)]
            assume = one(
                None, ("", one(*names)), ("pool", folder), ("infer", *draw(st.permutations(names)))
            )
            return kind, one(None, 1, 2), one(None, 0.25, 0.2500001), assume, draw(within)
        case "voice":
            return kind, one("nash", "dealer"), one(None, 1, 2), draw(within)
    return kind, folder


def path_of(folder: str, way: random.Random) -> str:
    return way.choice([folder, f"./{folder}", f"c/../{folder}", os.path.abspath(folder)])


def written(player: tuple, way: random.Random) -> str:
    """Return a text for a player, one of several."""

    def number(value: float) -> str:
        return way.choice([repr(value), f"{value:.9f}"]) if isinstance(value, float) else str(value)

    def options(**values) -> str:
        parts = [f"{n}={v}" for n, v in values.items() if v is not None]
        way.shuffle(parts)
        return f"({way.choice([' ', '  ']).join(parts)})" if parts else ""

    def assumed(kind: str, *players) -> str:
        if kind == "pool":
            return f"pool:{path_of(players[0], way)}"
        return f"{kind}:" * bool(kind) + ",".join(written(each, way) for each in players)

    match player:
        case ("bot", name):
            return name
        case ("self",):
            return "self"
        case ("policy", folder, script, greedy):
            script = f"{path_of(script, way)}.py:" if script else ""
            return "greedy:" * greedy + script + path_of(folder, way)
        case ("member", folder, greedy):
            return "greedy:" * greedy + f"{path_of(folder, way)}.npz"
        case ("drawn", folder, count):
            return (
                "population"
                + (f":{path_of(folder, way)}" if folder else "")
                + f"#{count}" * bool(count)
            )
        case ("llm", folder):
            return f"llm:{path_of(folder, way)}.toml"
        case ("llm local", folder):
            return f"llm:local:{path_of(folder, way)}"
        case ("own", module, name, argument):
            return f"{module}:{name}" + f":{argument}" * bool(argument)
        case ("program", kind, timeout, command):
            return f"{kind}{options(timeout=timeout and number(float(timeout)))}:{command}"
        case ("search", candidates, varied, assume, policy):
            varied, assume = varied and number(varied), assume and assumed(*assume)
            within = options(candidates=candidates, varied=varied, assume=assume)
            return f"fast{within}:{written(policy, way)}"
        case ("voice", kind, profiles, within):
            return f"{kind}{options(profiles=profiles)}+{written(within, way)}"


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(described(), min_size=2, max_size=8), st.randoms())
def test_players_are_one_if_all_their_fields_are(players, way):
    """However they are written; and so are their rows, figures and printed names."""
    texts = [written(player, way) for player in players]
    specs, shown = [names.parse_player(text) for text in texts], names.short_names(texts)
    for n, m in itertools.combinations(range(len(players)), 2):
        same = players[n] == players[m]
        assert same == (specs[n] == specs[m]) == (shown[n] == shown[m]), (texts[n], texts[m])
        assert not same or hash(specs[n]) == hash(specs[m])
    apart = [SimpleNamespace(spec=spec, name="one") for spec in specs]
    assert len(set(names_apart(apart))) == len(set(specs))
    for spec in specs:
        for one in fields(spec):
            value = getattr(spec, one.name)
            if one.init and one.name != "text":
                other = not value if isinstance(value, bool) else ("x", value)
                other = "elsewhere" if one.metadata else other
                assert replace(spec, **{one.name: other}) != spec, one.name


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
