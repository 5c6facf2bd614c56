"""Readers of texts: what each makes of sound texts, and of the same with one change, is golden."""

import json
import os
import random
import re
import tomllib
from pathlib import Path
from pprint import pformat

import pytest
from attack.mutations import mutated
from attack.readers import GULF, MARKDOWN, NAMES, ORDERS, REPORT, offering, question, replies
from support.maps import TRIBES
from support.tables import read_table, read_text
from support.webdip import history, variant

from diplomacy_engine import Game, Map, load_map, make_reward_mix
from diplomacy_engine.extras.language.replies import read_reply, sentence_of
from diplomacy_engine.extras.maps.dpjudge import read_dpjudge
from diplomacy_engine.extras.maps.dvar import read_dvar
from diplomacy_engine.extras.programs.dui import our_order, position_of, their_order
from diplomacy_engine.players.names import parse_player
from diplomacy_engine.press.daide import message_words, read_message
from diplomacy_engine.rules.teams import read_teams
from diplomacy_engine.textgame.imports.games import read_games, read_pasted, short_report
from diplomacy_engine.textgame.imports.webdiplomacy import read_variant

STANDARD = load_map("standard")
HERE = Path(__file__).parent
RULES, IMPORTS = str(HERE / "rules" / "x"), str(HERE / "textgame" / "imports" / "x")
CENTERS = (
    "Spring 1902\nFrance: A Par H, F Mao H\nCenters\nFrance: Par, Mar, Bre, Spain\nItaly: Rom, Ven"
)
REPORTS = [REPORT, MARKDOWN, read_text(IMPORTS, "mail.txt"), CENTERS]
STRUCK = "A PAR - BUR ~~A MAR H~~ and\n~~F BRE H~~ F BRE - MAO\nA MAR - SPA ✗ ~~✗~~ A MAR H"
LONG = history("long")[1]
FORMS = [text for *_, text in read_table(RULES, "order_forms")]
STATES = dict(read_table(RULES, "order_forms_states"))
POSITION = "standard F1902R; FRANCE A PAR, F BRE, *A BUR>GAS,MAR = PAR MAR; GERMANY A MUN = MUN BER"


def orders(text):
    game = Game.from_state("standard", STATES["M"])
    return game.submit("FRANCE", text.split("; "), strict=False), game.orders


def deal(text):
    game, powers = offering(), STANDARD.power_index
    message = {"sender": "FRANCE", "recipient": "ENGLAND", "message": text}
    words = message_words(game.vector_game, message)
    return words, read_message(game.vector_game, powers["FRANCE"], powers["ENGLAND"], text)


def reply(text):
    return sentence_of(text), read_reply(question(), range(len(question().slots)), {}, text)


def report(text):
    notes: list[str] = []
    game = read_pasted(text, STANDARD, notes.append)
    phases = [(phase["name"], phase["orders"], phase["state"]["units"]) for phase in game["phases"]]
    return notes, phases, game.get("winners"), short_report(game)


def history_file(text):
    notes: list[str] = []
    (game,) = read_games("file", note=notes.append)
    phases = Game.from_saved_game(game).history
    return notes, [(phase["name"], phase["orders"], phase["results"]) for phase in phases]


def player(text):
    found = repr(parse_player(text)).replace(f"{os.getcwd()}/", "")
    return found.replace(f"{HERE.parent}/", "").split(", ")


def map_file(text):
    return Map(tomllib.loads(text)).facts


def dpjudge(text):
    draft = read_dpjudge(Path("file"))
    return draft.facts, draft.notes, repr(draft.finished())


def dvar(text):
    draft = read_dvar(Path("file"))
    return draft.facts, draft.notes, repr(draft.finished())


def mix(text):
    reward = make_reward_mix(text, STANDARD)
    return [*reward.parts], [reward.weights(progress) for progress in (0, 0.25, 1)]


# Each with sound texts; a text of JSON changes at any of its values.
READERS = {
    orders: [*random.Random(1).sample(FORMS, 24), "; ".join(ORDERS)],
    Game.from_position: [POSITION],
    deal: [message["message"] for message in offering().messages],
    read_teams: ["ENGLAND+FRANCE, ITALY+RUSSIA"],
    player: NAMES,
    mix: ["sum_of_squares=1..0@0.5,score,lead_delta=2"],
    reply: [*replies(), STRUCK],
    report: REPORTS,
    history_file: [json.dumps(LONG | {"phases": LONG["phases"][:3]})],
    read_variant: [json.dumps(variant())],
    map_file: [TRIBES],
    dpjudge: [GULF.read_text()],
    dvar: [GULF.with_name("delta.dvar.json").read_text()],
    position_of: ["1902sr/Fapar,Ffbre,Gamun,Gabur/Fpar,Fmar,Gmun,Gber/Fabur<mun"],
    their_order: ORDERS,
    our_order: [*map(their_order, ORDERS)],
}
ARGUMENTS = {read_teams: [STANDARD.powers], read_variant: [STANDARD], position_of: [STANDARD]}


def changed(rng: random.Random, text: str) -> str:
    """Return a text with a change: of a value of JSON, a line, a word or a character."""
    if text[0] in "{[":
        return json.dumps(mutated(rng, json.loads(text), [0, -1, "", "x", [], {}, None], most=1))
    parts = re.split(rng.choice(("(\n)", "(\\W)", "(\\W)", "()")), text)
    at, other = (2 * rng.randrange(len(parts) // 2 + 1) for _ in range(2))
    ways = (
        [""],
        [parts[at]] * 2,
        [parts[other]],
        [parts[at].swapcase()],
        [rng.choice("0 -:()*/.xA")],
    )
    parts[at : at + 1] = rng.choice(ways)
    return "".join(parts)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_what_is_read_is_golden(reader, tmp_path, golden, monkeypatch):
    """Of a changed text: its new lines, and behind + and - what comes of it else than before."""

    def read(text):
        Path("file").write_text(text)
        try:
            value = json.loads(text) if reader is read_variant else text
            found = reader(value, *ARGUMENTS.get(reader, []))
        except ValueError as error:
            found = f"error: {error}"
        found = found.to_state() if isinstance(found, Game) else found
        return pformat(found, width=96, compact=True, sort_dicts=False).splitlines()

    monkeypatch.chdir(tmp_path)
    rng, lines = random.Random(1), []
    for text in READERS[reader]:
        usual = read(text)
        lines += [f"$ {line}" for line in text.split("\n") if len(text) < 9000] + usual
        for _ in range(90 // len(READERS[reader]) + 2):
            other = changed(rng, text)
            came = read(other)
            lines += [f"> {line!r:.200}" for line in other.split("\n") if line not in text]
            lines += [f"+ {line}" for line in came if line not in usual]
            if "error: " not in came[0]:
                lines += [f"- {line}" for line in usual if line not in came]
    golden(f"{reader.__name__} reads", lines)
