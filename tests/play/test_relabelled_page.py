"""Powers under other names: the page shows each viewer the same under the new names."""

import itertools
import json
import random
import re
import secrets

import pytest
from support.games import random_orders
from support.maps import renamed
from support.players import Thinker
from support.serving import FREE, SHOWN, seated, viewer

from diplomacy_engine import Game, Map, load_map
from diplomacy_engine.constants import phase_kind
from diplomacy_engine.play.file import GUEST, HOST, WATCH, Seat

pytestmark = pytest.mark.usefixtures("compiled")

# What is not by power: hashes, the map itself, keys, colors, and what the next game begins with.
OWN = {"zobrist_hash", "map_facts", "links", "chosen", "file"}


def shown(session, who: str, names: dict[str, str]):
    """Return all that a viewer is shown, with powers renamed and everything sorted."""

    spelled = {  # as in texts, in orders and in DAIDE
        spell(old): spell(new)
        for old, new in names.items()
        for spell in (str, str.title, lambda name: name[:3])
    }
    pattern = re.compile(rf"\b(?:{'|'.join(spelled)})\b")

    def rename(match):
        return spelled[match[0]]

    def sort(value):
        if isinstance(value, dict):
            kept = {key: item for key, item in value.items() if key not in OWN}
            return {pattern.sub(rename, key): sort(item) for key, item in kept.items()}
        if isinstance(value, list):
            return sorted((sort(item) for item in value), key=json.dumps)
        if not isinstance(value, str):
            return value
        pieces = re.split(r"[<\n]|;$", pattern.sub(rename, value), flags=re.M)
        words = [
            sorted(re.sub(r"\b(y|style)=\S*", "", one).replace(",", " ").split()) for one in pieces
        ]
        return sorted(one for one in words if not any(word.startswith("style>") for word in one))

    me = viewer(session, who)
    return {name: sort(json.loads(json.dumps(show(session, me)))) for name, show in SHOWN.items()}


def begun(game_map: Map, host: str, file, monkeypatch):
    """Return a session in which people have all seats."""
    tokens = itertools.count()
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: f"key-{next(tokens):020}")
    seats = {power: Seat(HOST if power == host else GUEST) for power in game_map.powers}
    game = Game(game_map, max_years=2, draws_after=2, **FREE)
    return seated(file, None, game, "thinker", lambda name: Thinker(), seats=seats)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_names_of_powers_change_no_page(seed, tmp_path, monkeypatch):
    plain = Map(dict(load_map("three").facts) | {"name": "other"})  # drawn alike under any names
    other, number = renamed(plain)
    new = {name: plain.powers[number[p]] for p, name in enumerate(plain.powers)}
    same, (host, *guests) = {name: name for name in new}, new
    one = begun(plain, host, tmp_path / "one.jsonl", monkeypatch)
    two = begun(other, new[host], tmp_path / "two.jsonl", monkeypatch)

    rng = random.Random(seed)
    while not one.game.is_over:
        step, orders = one.now.step, random_orders(one.game, rng)
        acts = ("vote", "draft", "submit")
        if phase_kind(one.game.phase) == "movement":
            acts = ("say", "offer", *acts)
        for power, act in itertools.product(new, acts):
            if one.now.step != step or (act == "submit" and power not in one.now.waiting_for()):
                continue
            to = rng.choice([name for name in new if name != power])
            zone, vote, word = [rng.choice(plain.provinces)], rng.random() < 0.7, str(rng.random())
            for session, names in ((one, same), (two, new)):
                values = {
                    "say": (names[to], word),
                    "offer": (names[to], {"zone": zone}),
                    "vote": (vote,),
                    "draft": (orders.get(power, []),),
                    "submit": (orders.get(power, []),),
                }[act]
                me = viewer(session, HOST if power == host else names[power])
                getattr(session, act)(me, step, *values)
        for who in (HOST, *guests, WATCH):
            named = who if who in (HOST, WATCH) else new[who]
            assert shown(one, who, new) == shown(two, named, same)
