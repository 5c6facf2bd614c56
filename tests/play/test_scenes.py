"""Scenes of sessions: whatever is done, all that everybody is then shown stands in scenes/.

tests/support/transcripts.py says how to write that anew.
"""

import itertools
import json
import re
import secrets
from functools import partial

import pytest
from support.serving import again, begun, viewer
from support.transcripts import follow, names_of

from diplomacy_engine import Game, UserError
from diplomacy_engine.play.session import PlaySession, Viewer
from diplomacy_engine.play.view import game_view, hint_view

pytestmark = pytest.mark.usefixtures("compiled")


def over() -> str:
    game = Game("small", max_years=1)
    while not game.is_over:
        game.adjudicate()
    return json.dumps(game.to_saved_game())


PASTED = {"a game that is over": over()}
NOTHING = ("null", "false", "[]", "{}", '""')  # as is what is not there
DULL = {"revision", "game", "chart", "sides", "names", "titles", "map"}


def seen(session: PlaySession, me: Viewer, already: str) -> dict:
    """Return what somebody is shown of a game now, of the phase before if they are not `already`,
    and in a file to share."""
    history = session.game.history
    view = {key: value for key, value in game_view(session, me).items() if key not in DULL}
    view["drawn"] = re.findall('data-order="(.*?)"', view.pop("board")["overlay"])
    for unit in (view["decision"] or {"units": ()})["units"]:
        unit["orders"] = [len(unit["orders"]), *unit["orders"][-2:]]
    if history and history[-1]["name"] != already:
        past = game_view(session, me, history[-1]["name"])
        view["before"] = {key: past[key] for key in ("orders", "said")}
        view["before"]["conceded"] = [one["conceded"] for one in past["powers"]]
    shared = session.saved_game(me)
    view["shared"] = [
        {key: value for key, value in phase.items() if key != "state"}
        for phase in shared["phases"][-2:]
    ]
    view["shared players"] = shared["players"]
    if me.host:
        record, rules = session.record, session.game.rules.to_json()
        kept = {"opponents": record.opponents, "seed": record.seed, "hint": record.hint}
        view |= {"units": session.game.units, "rules": rules, "record": kept}
    return view


def leaves(value, place="") -> dict[str, str]:
    """Return place -> value of all that is small enough for a line."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) < 220 or not isinstance(value, dict | list) or not value:
        return {place: text}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    parts = [leaves(item, f"{place}.{key}".lstrip(".")) for key, item in items]
    return {key: text for part in parts for key, text in part.items()}


class Scene:
    """Does the lines of a scene: who, what (with @ and a step, for the current one), and with what.

    What is refused, or cannot be saved, changes nothing; after all else the session goes on from
    its file.
    """

    def __init__(self, begin, monkeypatch):
        self.begin, self.monkeypatch, self.shown, self.past = begin, monkeypatch, {}, []

    def do(self, line: str) -> str:
        who, name, rest = (*line.split(" ", 2), "", "")[:3]
        if who == "begin":
            self.session = self.begin(**json.loads(f"{name} {rest}"))
            return self.changes()
        session, (name, _, step) = self.session, name.partition("@")
        values = [PASTED.get(str(value), value) for value in json.loads(f"[{rest}]")]
        if name not in ("choose_settings", "choose_seats", "choose_map", "choose_rated", "hint",
                        "paste", "read_orders", "new_game", "try_from", "sandbox"):  # fmt: skip
            values.insert(0, int(step or session.now.step))
        who, _, power = who.partition(":")
        me, action = session.viewer(session.tokens[who], power or None), getattr(session, name)
        before = session.now, session.tokens, session.file, session.file.read_bytes()

        def same(session=session) -> bool:
            now = session.now, session.tokens, session.file, session.file.read_bytes()
            return now[0] is before[0] and now[1:] == before[1:]

        try:
            with self.monkeypatch.context() as patch:
                patch.setattr("diplomacy_engine.play.session.atomic_write", full)
                action(me, *values)
        except UserError as error:
            assert same()
            if str(error) != "no space left":
                return f"{getattr(error, 'kind', 'invalid')}: {self.plain(str(error))}"
        came = action(me, *values)
        if isinstance(came, PlaySession):
            assert same()  # the other game is left alone
            self.session = came
        elif not isinstance(came, list | None):
            return self.plain(json.dumps(hint_view(session, me)["slots"]))
        else:
            game, self.session = session.game, again(session)
            assert self.session.game.to_saved_game() == game.to_saved_game()
            assert self.session.game.orders == game.orders and self.session.game.votes == game.votes
            self.session._chosen = session._chosen  # the browser's
            self.session.trouble = self.session.trouble or session.trouble
        return "\n".join([*(came if isinstance(came, list) else ()), self.changes()])

    def plain(self, text: str) -> str:
        return text.replace(f"{self.session.file.parent}/", "")

    def changes(self) -> str:
        """Return the phase, who is waited for, and what is new for whom."""
        session, new, views = self.session, {}, {}
        already, self.past = self.past, [phase["name"] for phase in session.game.history][-1:]
        for who in session.tokens:
            me, last = viewer(session, who), self.shown.get(who, {})
            views[me] = now = views.get(me) or leaves(seen(session, me, [*already, ""][0]))
            for place in now | last:
                value = now.get(place, "gone")
                if value == last.get(place, value * (value in NOTHING)):
                    continue
                above = place.rpartition(".")[0]
                parts = place not in now and (above in now or above.startswith("before"))
                if not parts and not any(other.startswith(f"{place}.") for other in now):
                    new.setdefault(self.plain(f"{place} = {value}"), []).append(who)
            self.shown[who] = now
        first = " ".join([session.game.phase, *session.now.waiting_for()])
        lines = (
            f"  {'all' if len(whom) == len(session.tokens) else ' '.join(whom)}: {change}"
            for change, whom in new.items()
        )
        return "\n".join([first, *lines])


def full(*_, **__):
    raise UserError("no space left")


@pytest.mark.parametrize("name", names_of(__file__, "scenes"))
def test_a_scene(name, tmp_path, monkeypatch):
    numbers = itertools.count()
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: f"{next(numbers):024}")
    begin = partial(begun, tmp_path / "game.jsonl")
    scene = Scene(begin, monkeypatch)
    follow(__file__, "scenes", name, lambda lines: map(scene.do, lines))
