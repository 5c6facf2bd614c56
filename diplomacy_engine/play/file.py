"""The file of a game that people play: a saved game with the key `play` beside the format's own.

`play` has: format, step, seats (power -> [kind, player], or null), answered (power -> [step,
orders], what each last gave), before (power -> orders that were taken back), tokens (who -> token),
opponents, hint, seed, max_years, press (how powers talk, or null), draws_after (from when players
vote for a draw, or null).
"""

import os
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ..constants import phase_kind
from ..errors import UserError
from ..games.imports import Note, read_games, read_pasted
from ..games.position import set_ending
from ..games.saved_game import MAX_GAME_BYTES, in_disorder
from ..press.game import Game
from ..press.table import MOST_ROUNDS, PROTOCOLS, PressRules
from ..replays.replay import make_replay
from ..rules.map import MAP_NAMES, Map

HOST, GUEST, PLAYER = "host", "guest", "player"
WATCH = "watch"
FORMAT = 1


class Seat(NamedTuple):
    """Who plays a power."""

    kind: str  # HOST: who started the game; GUEST: somebody with the power's link; PLAYER
    player: str = ""  # name of the PLAYER


def rebuild(
    game: Game,
    phases: int,
    orders: Mapping[str, list[str]] | None = None,
    press: PressRules | None = None,
) -> Game:
    """Return a game as it stood after its first `phases` phases, with `orders` submitted.

    With `press` powers talk in it from there on; nothing has been said in that phase yet.

    What a policy sees of the last movement phase is not part of a saved state, so that phase is
    played again where this leads to the same position.
    """
    history = game.history[:phases]
    state = game.history[phases]["state"] if phases < len(game.history) else game.to_state()
    moves = [
        number for number, phase in enumerate(history) if phase_kind(phase["name"]) == "movement"
    ]
    built = None
    if moves:
        built = _replayed(game.map, history[moves[-1] :], game.max_years)
        if built is not None and _differs(built.to_state(), state):
            built = None
    if built is None:
        built = Game.from_state(game.map, state, game.max_years)
    built.id, built.history = game.id, list(history)
    if press is not None:
        built.take_up_talk(press.protocol, press.rounds)
    built.draw_votes, built.conceded = game.draw_votes, _conceded(game, phases)
    if phases == len(game.history):
        set_ending(built.vector_game, game.is_agreed, built.conceded)
        for power in game.votes:
            built.vote(power)
    for power, texts in (orders or {}).items():
        built.submit(power, texts, strict=False)
    return built


def _conceded(game: Game, phases: int) -> list[str]:
    """Return which powers had conceded when phase number `phases` began."""
    if phases == len(game.history):
        return list(game.conceded)
    before = game.history[phases - 1]["state"] if phases else {}
    return [power for power in game.conceded if in_disorder(before, power)]


def _replayed(game_map: Map, phases: list[dict], max_years: int | None) -> Game | None:
    try:
        game = Game.from_state(game_map, phases[0]["state"], max_years)
        for phase in phases:
            for power, texts in phase["orders"].items():
                game.submit(power, texts or [], strict=False)
            game.adjudicate()
    except UserError:
        return None  # of another program's rules, or of another year limit
    return game


def _differs(one: Mapping, other: Mapping) -> bool:
    def core(state: Mapping) -> tuple:
        return state["name"], *(
            {power: sorted(texts) for power, texts in state.get(key, {}).items() if texts}
            for key in ("units", "centers", "retreats")
        )

    return core(one) != core(other)


def read_session(
    file: str | Path,
    game_map: Map | str | None = None,
    max_years: int | None = None,
    press: PressRules | None = None,
    note: Note = lambda text: None,
) -> tuple[Game, dict | None]:
    """Return the game in a file, and its key `play` in order, if it has one.

    Args:
        file: a session's file, or any games that games/imports.py reads; of several the last one
            counts.
        game_map: the map; None for the one it names.
        max_years, press: of a game without the key `play`.
        note: told in a sentence what does not agree with our rules.

    Raises:
        UserError: there is no game in it that could go on; names the file.
        OSError: it cannot be read.
    """
    if os.path.getsize(file) > MAX_GAME_BYTES:
        raise UserError(f"{file} is too large to be a game")
    saved = deque(read_games(file, game_map, note=note), maxlen=1)
    if not saved:
        raise UserError(f"{file} has no game in it")
    (saved,), play = saved, None
    try:
        if "play" in saved:
            play = _checked_play(saved["play"])
            max_years, press = play["max_years"], play["press"]
        built = _to_go_on(saved, game_map, max_years, press)
        if play is not None:
            _check_powers(play, built.powers)
    except UserError as error:
        raise UserError(f"{file} cannot be continued: {error}") from None
    return built, play


def _to_go_on(
    saved: Mapping, game_map: Map | str | None, max_years: int | None, press: PressRules | None
) -> Game:
    """Return the game of a saved game as it can be played on."""
    game = Game.from_saved_game(saved, game_map, max_years)
    built = rebuild(game, len(game.history), game.orders)
    built.messages = game.messages
    if press is not None:
        built.take_up_talk(press.protocol, press.rounds)
    return built


def pasted_game(
    text: str, game_map: Map, max_years: int | None, press: PressRules | None
) -> tuple[Game, list[str]]:
    """Return the game of a text that somebody has pasted, and what does not agree in it.

    Raises:
        UserError: there is no game in it that could go on.
    """
    notes: list[str] = []
    saved = read_pasted(text, game_map, notes.append)
    name = saved.get("map")
    if name in MAP_NAMES and name != game_map.name:
        raise UserError(f"this game is on map {name}, not on {game_map.name}")
    built = _to_go_on(saved, game_map, max_years, press)
    if built.is_over:
        raise UserError("this game is over")
    make_replay(built.to_saved_game(), built.map)  # what was played is to be looked at
    return built, notes


def _checked_play(play: object) -> dict:
    """Return the key `play` with seats and answers as the session has them."""

    def need(good: bool, what: str) -> None:
        if not good:
            raise UserError(f"its key 'play' has no valid {what!r}")

    need(isinstance(play, dict) and play.get("format") == FORMAT, "format")
    for name in ("step", "seed"):
        need(type(play.get(name)) is int and play[name] >= 0, name)
    years = play.get("max_years")
    need(years is None or (type(years) is int and years > 0), "max_years")
    need(play.get("hint") is None or isinstance(play["hint"], str), "hint")
    opponents = play.get("opponents")
    need(isinstance(opponents, list) and all(isinstance(n, str) for n in opponents), "opponents")
    tokens = play.get("tokens")
    need(isinstance(tokens, dict), "tokens")
    for token in tokens.values():
        need(isinstance(token, str) and token.isascii() and len(token) >= 16, "tokens")
    seats, answered = play.get("seats"), play.get("answered")
    if seats is not None:
        need(isinstance(seats, dict), "seats")
        for seat in seats.values():
            sound = isinstance(seat, list) and len(seat) == 2 and isinstance(seat[1], str)
            need(sound and seat[0] in (HOST, GUEST, PLAYER), "seats")
        seats = {power: Seat(*seat) for power, seat in seats.items()}
    need(isinstance(answered, dict), "answered")
    for answer in answered.values():
        need(isinstance(answer, list) and len(answer) == 2 and type(answer[0]) is int, "answered")
        texts = answer[1]
        need(isinstance(texts, list) and all(isinstance(t, str) for t in texts), "answered")
    before = play.get("before", {})  # games kept by earlier versions have none
    need(isinstance(before, dict), "before")
    for texts in before.values():
        need(isinstance(texts, list) and all(isinstance(t, str) for t in texts), "before")
    answered = {power: (step, texts) for power, (step, texts) in answered.items()}
    after = play.get("draws_after")
    need(after is None or (type(after) is int and after > 0), "draws_after")
    kept = {"max_years": years, "hint": play.get("hint"), "press": _checked_press(play, need)}
    kept["draws_after"] = after
    return play | kept | {"seats": seats, "answered": answered, "before": before}


def _checked_press(play: dict, need: Callable[[bool, str], None]) -> PressRules | None:
    found = play.get("press")
    if found is None:
        return None
    need(isinstance(found, dict) and set(found) <= set(PressRules._fields), "press")
    rules = PressRules(**found)
    rounds = type(rules.rounds) is int and 1 <= rules.rounds <= MOST_ROUNDS
    flags = all(type(flag) is bool for flag in (rules.binding, rules.open_press))
    need(rules.protocol in PROTOCOLS and rounds and flags, "press")
    return rules


def _check_powers(play: dict, powers: list[str]) -> None:
    if set(play["tokens"]) != {HOST, WATCH, *powers}:
        raise UserError("its key 'play' has no valid 'tokens'")
    if play["seats"] is not None and set(play["seats"]) != set(powers):
        raise UserError("its key 'play' has no valid 'seats'")
