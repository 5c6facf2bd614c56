"""What others order, offer and say to each other changes nothing that I see in that phase."""

import itertools
import json
import random
import secrets

import pytest
from support.games import random_orders
from support.players import Thinker
from support.serving import FREE, SHOWN, seated, viewer

from diplomacy_engine import Game
from diplomacy_engine.constants import phase_kind
from diplomacy_engine.play.file import HOST, WATCH

pytestmark = pytest.mark.usefixtures("compiled")


def begun(file, monkeypatch):
    numbers = itertools.count()
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: f"token-{next(numbers):020}")
    game = Game("three", max_years=3, **FREE)
    return seated(file, "hgg", game, "thinker", lambda name: Thinker(), hint="thinker")


def play_phase(session, seed):
    orders = random_orders(session.game, random.Random(seed))
    step, powers = session.now.step, session.game.powers
    for power, who in zip(powers, (HOST, *powers[1:])):
        if session.now.step == step and power in session.now.waiting_for():
            session.submit(viewer(session, who), step, orders.get(power, []))


def keep_secrets(session, seed):
    """Let the two guests talk to each other and order, as a seed says."""
    rng, step, (_, one, two) = random.Random(seed), session.now.step, session.game.powers
    for sender, receiver in ((one, two), (two, one)):
        session.say(viewer(session, sender), step, receiver, f"attack at {rng.random()}")
        zone = {"zone": [rng.choice(session.game.map.provinces)]}
        session.offer(viewer(session, sender), step, receiver, zone)
    orders = random_orders(session.game, rng)
    for power in (one, two):
        session.draft(viewer(session, power), step, orders[power])
        session.submit(viewer(session, power), step, orders[power])


def everything(session, who):
    me = viewer(session, who)
    return {name: json.dumps(show(session, me)) for name, show in SHOWN.items()}


@pytest.mark.parametrize("seed", range(3))
def test_nobody_is_shown_what_others_do(seed, tmp_path, monkeypatch):
    shown = []
    for secret in range(2):
        (tmp_path / str(secret)).mkdir()
        monkeypatch.chdir(tmp_path / str(secret))
        session = begun("game.jsonl", monkeypatch)
        for number in range(10):
            if phase_kind(session.game.phase) != "movement" or number < 2 * seed:
                play_phase(session, 100 * seed + number)
        before = session.game.phase
        keep_secrets(session, secret)
        assert session.game.phase == before
        shown.append([everything(session, HOST), everything(session, WATCH)])
    assert shown[0] == shown[1]
    # The guests see their own: the test would notice what it looks for.
    assert everything(session, session.game.powers[1])["game"] != shown[1][0]["game"]
