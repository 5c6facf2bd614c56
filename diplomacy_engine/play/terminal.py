"""A game in the terminal: orders as text, for machines without a browser."""

import contextlib
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

from .._files import atomic_write
from .._suggest import listed, printable, quoted
from ..constants import phase_kind
from ..errors import UserError
from ..matches.figures import percent
from ..pictures.board import phase_title
from ..players.advice import SearchReasons
from ..records import shipped_toml
from ..replays.replay import make_replay
from ..rules.notation import province_of, unit_of
from ..rules.reading import read_order
from ..textgame.game import Game
from ..textgame.order_texts import order_texts
from .file import HOST
from .session import PlayError, PlaySession, Viewer
from .view import CANDIDATES, decision_view, partners_bound_to, sentences, votes_view

with contextlib.suppress(ImportError):  # Windows has no readline
    import readline

HELP = shipped_toml(__package__, "help.toml")
_COMMANDS = ("go", "legal", "drop", "board", "hint", "undo", "save", "concede", "help", "quit")
_TALK = ("deals", "offer", "accept", "decline", "say")
_FORMS = HELP["forms"] | {
    word: ("", f"{word} alone, since nothing may follow it; nothing was done")
    for word in ("go", "next", "board", "deals", "hint", "undo", "help", "quit", "exit")
}
_MOST_HINTS = 4  # orders shown per unit


class TextGame:
    """A session played by one person in a terminal.

    `read` returns a line for a prompt; EOFError ends the game. With `explain` the hint is shown
    whenever there is something to order.
    """

    def __init__(
        self,
        session: PlaySession,
        read: Callable[[str], str] = input,
        write: Callable[[str], None] = print,
        explain: bool = False,
    ):
        self.session, self.read, self.write, self.explain = session, read, write, explain
        self.orders: list[str] = []  # given in the terminal, not yet submitted
        self.seen = len(session.game.history)

    @property
    def viewer(self) -> Viewer:
        return self.session.viewer(self.session.tokens[HOST])

    def run(self) -> None:
        _complete_by(self._completions)
        try:
            if not self.session.now.seats:
                self._choose_seats()
            self._show_phases()
            self._show_board()
            self.write("(help says what you can type)")
            while self._one_line():
                pass
        except (EOFError, KeyboardInterrupt):
            self.write("")
        self.write(f"The game is saved in {self.session.file}.")

    def _choose_seats(self) -> None:
        session, powers = self.session, self.session.game.powers
        opponents = [session.told(name, session.game) for name in session.record.opponents]
        while True:
            name = self.read(f"Which power do you play ({', '.join(powers)})? ").strip().upper()
            fits = [power for power in powers if name and power.startswith(name)]
            if len(fits) == 1:
                break
            self.write("Please name one of them.")
        others = [power for power in powers if power != fits[0]]
        choice = {power: opponents[n % len(opponents)] for n, power in enumerate(others)}
        session.choose_seats(self.viewer, {fits[0]: "me", **choice})

    def _one_line(self) -> bool:
        """Read and do one line; return whether the game goes on."""
        session, power = self.session, self.viewer.power
        waits = "over" if session.game.is_over else f"{power} {session.game.phase}"
        line = self.read(f"{'Enter for the next phase' if session.now.can_go_on() else waits}> ")
        word, _, rest = line.strip().partition(" ")
        word, rest = word.lower(), rest.strip()
        try:
            pattern, form = _FORMS.get(word, (".*", ""))
            if not re.fullmatch(pattern, rest):
                raise PlayError(f"type {form}")
            if word in ("quit", "exit", "q"):
                return False
            self._do(word, rest, line.strip())
        except UserError as error:
            self.write(_no(error))
        return True

    def _do(self, word: str, rest: str, line: str) -> None:
        session, viewer = self.session, self.viewer
        if word in ("help", "?"):
            self.write(HELP["playing" if viewer.power else "watching"])
            if viewer.power and session.game.table:
                self.write(HELP["talk"])
            if viewer.power and session.game.rules.draw_votes:
                self.write(HELP["votes"])
        elif word == "board":
            self._show_board()
            if self.orders:
                self._show_orders()
        elif word == "undo":
            session.take_back(viewer, session.now.step)
            self.seen = len(session.game.history)
            self.orders = []
            self._show_board()
        elif word == "save":
            self._save(rest)
        elif session.game.is_over:
            self.write("The game is over; undo, board, save FILE or quit.")
        elif session.now.can_go_on() and word in ("", "go", "next"):
            self._step(lambda: session.go_on(viewer, session.now.step))
        elif viewer.power is None:
            self.write(HELP["watching"])
        elif word == "draw":
            self._vote(rest)
        elif word == "concede":
            if rest.upper() != viewer.power:
                raise PlayError(f"to give up for good, type: concede {viewer.power}")
            self._step(lambda: session.concede(viewer, session.now.step))
        elif word == "go":
            self._step(lambda: session.submit(viewer, session.now.step, self.orders))
        elif word == "legal":
            self._show_legal(rest)
        elif word == "drop":
            self._drop(rest)
        elif word in _TALK:
            self._talk(word, rest)
        elif word == "hint":
            self._show_hint()
        elif word:
            self._add(line)
        else:
            self._show_orders()

    def _vote(self, answer: str) -> None:
        session, viewer = self.session, self.viewer
        session.vote(viewer, session.now.step, answer.lower() != "no")
        if session.game.is_over:
            self._step(lambda: None)
        else:
            self._show_votes()

    def _show_votes(self) -> None:
        votes = votes_view(self.session.game, self.viewer.power)
        if votes is not None:
            own = ", yours among them" * votes["mine"]
            self.write(f"  votes for a draw: {votes['given']} of {votes['needed']}{own}")

    # --- Orders ---------------------------------------------------------------------------------

    def _add(self, line: str) -> None:
        """Add the orders of a line to those so far, up to one that is illegal."""
        for text in order_texts(line):
            self.orders = self.session.read_orders(self.viewer, text, self.orders, self._note)
        self._show_orders()

    def _note(self, text: str) -> None:
        self.write(f"Note: {text}")

    def _show_orders(self) -> None:
        winter = phase_kind(self.session.game.phase) == "adjustments"  # no unit needs an order
        units = [] if winter else [u for u in self._legal() if u not in map(unit_of, self.orders)]
        self.write(f"  orders: {'; '.join(self.orders) or 'none'}")
        if units:
            self.write(f"  without one: {', '.join(units)}")
        else:
            self.write(f"  {'' if winter else 'all have one; '}`go` submits them")

    def _drop(self, place: str) -> None:
        remaining = [order for order in self.orders if unit_of(order) != place.upper()]
        if len(remaining) == len(self.orders):
            self.write(f"No: there is no order for {place.upper() or 'nothing'} to drop.")
        self.orders = remaining
        self._show_orders()

    def _legal(self) -> dict[str, list[str]]:
        game, power = self.session.game, self.viewer.power
        places = (decision_view(game, power) if power else None) or {"units": []}
        return {place["unit"]: game.legal_orders(place["unit"]) for place in places["units"]}

    def _show_legal(self, place: str) -> None:
        legal = self._legal()
        if place:
            of_place = self.session.game.legal_orders(place)
            mine = {*itertools.chain(*legal.values())}
            legal = {place: [text for text in of_place if text in mine]}
        for name, texts in legal.items():
            self.write(f"  {name}: {'; '.join(texts) or 'you have no orders to give'}")

    def _show_hint(self) -> None:
        hint = self.session.hint(self.viewer)
        if hint.tried:
            self._show_tried(hint.tried)
        if hint.value is not None:
            self.write(f"  it expects a reward of {hint.value:.2f} from here on")
        for unit, ranked in hint.slots:
            people = {text: f" (people {percent(share, 0)})" for text, share in hint.usual.items()}
            best = [f"{t} {percent(share, 0)}{people.get(t, '')}" for t, share in ranked]
            self.write(f"  {unit}: {', '.join(best[:_MOST_HINTS])}")

    def _show_tried(self, tried: SearchReasons) -> None:
        """Show the candidates of a search, best first, and the orders that it expects of the
        others."""
        if all(candidate.value is None for candidate in tried.candidates):
            self.write("  it found only these orders, so it had nothing to compare:")
        for candidate in tried.candidates[:CANDIDATES]:
            worth = "not tried" if candidate.value is None else f"{candidate.value:.3f}"
            worth += "" if candidate.error is None else f" +- {candidate.error:.3f}"
            notes = [f"played {percent(candidate.share, 0)}"] * (candidate.share > 0)
            notes += ["its first thought"] * candidate.own
            self.write(f"  {worth}  {'; '.join(candidate.orders)}  {', '.join(notes)}".rstrip())
        for power, orders in tried.expected.items():
            beliefs = sorted(tried.beliefs.get(power, {}).items(), key=lambda belief: -belief[1])
            like = ", ".join(
                f"{name} {percent(share, 0)}" for name, share in beliefs if share >= 0.05
            )
            likely = ", ".join(f"{text} {percent(share, 0)}" for text, share in orders)
            self.write(f"  expects of {power}{f' (like {like})' if like else ''}: {likely}")

    # --- Deals ----------------------------------------------------------------------------------

    def _talk(self, word: str, rest: str) -> None:
        session, viewer = self.session, self.viewer
        if session.game.table is None:
            raise PlayError("nobody makes deals in this game: begin one with --press")
        if word in ("accept", "decline"):
            session.answer(viewer, session.now.step, int(rest), word == "accept")
        elif word in ("offer", "say"):
            name, _, terms = rest.partition(" ")
            game_map = session.game.map
            numbers = map(game_map.power_number, name.rstrip(":").split("+"))
            receiver, *others = (game_map.powers[number] for number in numbers)
            if word == "say":
                session.say(viewer, session.now.step, receiver, terms)
            else:
                terms = read_terms(session.game, session.seat(viewer), terms)
                session.offer(viewer, session.now.step, [receiver, *others], terms)
        self._forget_broken()
        self._show_deals()

    def _forget_broken(self) -> None:
        legal = {*itertools.chain(*self._legal().values())}
        gone = [order for order in self.orders if order not in legal]
        if gone:
            self.orders = [order for order in self.orders if order in legal]
            self.write(f"  a deal rules out: {'; '.join(gone)}")

    def _show_deals(self) -> None:
        game, power = self.session.game, self.session.seat(self.viewer)
        offers = game.said(power)
        for number, offer in enumerate(offers, 1):
            sender, *receivers = (game.powers[p] for p in offer.powers)
            sender = "you" if sender == power else sender
            receiver = listed(["you" if name == power else name for name in receivers])
            words = game.words(offer)
            state = "not answered yet" if offer.state == "open" else offer.state
            self.write(f"  {number}  {sender} to {receiver}, {state}: {words}")
        for offer in game.later_deals(power):
            self.write(f"  agreed with {game.partners(power, offer)}: {game.words(offer)}")
        if not offers:
            self.write("  there are no offers from or to you in this phase")
        for sender, receiver, text in sentences(game, power):
            self.write(printable(f"  {sender} to {receiver}: {' '.join(text.split())}"))
        for province, partners in partners_bound_to(game, power).items():
            self.write(f"  bound in {province} by the deal with {', '.join(partners)}")
        if self.session.game.rules.open_press:
            for pair in game.peace():
                if power not in pair:
                    self.write(f"  {' and '.join(pair)} are at peace")

    # --- Showing --------------------------------------------------------------------------------

    def _step(self, action: Callable[[], None]) -> None:
        action()
        self.orders = []
        self._show_phases()
        if self.session.trouble:
            self.write(_no(self.session.trouble))
        self._show_board()

    def _show_phases(self) -> None:
        game = self.session.game
        replay = make_replay(game.to_saved_game(), game.map)
        for number in range(self.seen, len(game.history)):
            frame = replay.frames[number]
            self.write(f"\n--- {phase_title(frame.scene.phase)} ---")
            for sender, recipient, words in frame.talk:
                if self.session.may_hear(self.viewer, sender, recipient):
                    self.write(printable(f"  {sender} to {recipient}: {' '.join(words.split())}"))
            for power, _, words in frame.declared:
                self.write(f"  {power} {words}")
            for power in game.powers:
                for shown in frame.scene.orders.get(power, ()):
                    result = f"   ({shown.said})" if shown.said else ""
                    self.write(printable(f"  {power:10} {shown.text}{result}"))
        self.seen = len(game.history)

    def _show_board(self) -> None:
        session, game = self.session, self.session.game
        self.write(f"\n=== {phase_title(game.phase)} ({game.phase}), map {game.map.name} ===")
        self.write(f"  {game.map.board.victory_centers} centers win; * marks you")
        if game.map.teams.text:
            self.write(f"  teams: {', '.join(game.map.teams.names)}")
        for power in game.powers:
            mark = "*" if power == self.viewer.power else " "
            seat = session.now.seats.get(power)
            player = f"   [{session.told(seat.player, game)}]" if seat and seat.player else ""
            player += "   [has conceded]" * (power in game.conceded)
            units = [*game.units[power], *(f"*{u}" for u in game.dislodged.get(power, {}))]
            centers = f"{len(game.centers[power])}: {' '.join(game.centers[power])}"
            self.write(f" {mark}{power:12} units {', '.join(units) or 'none'}{player}")
            self.write(f"  {'':12} centers {centers}")
        for power in game.map.unit_powers[len(game.powers) :]:
            units = ", ".join(game.units[power]) or "none"
            self.write(f"  {power:12} units {units}   [nobody; they always hold]")
        own = self.viewer.power or ""
        for unit, places in game.dislodged.get(own, {}).items():
            self.write(f"  {unit} is dislodged; it may retreat to {' '.join(places) or 'nowhere'}")
        owed = game.adjustments.get(own, 0)
        if owed:
            what = "may build" if owed > 0 else "must remove"
            self.write(f"  {own} {what} {abs(owed)}.")
        if game.is_over:
            self.write(f"  The game is over: {game.result}.")
        elif self.explain and self.viewer.power in session.now.waiting_for():
            self._show_hint()
        self._show_votes()
        if game.table and self.viewer.power and game.said(self.viewer.power):
            self._show_deals()

    def _save(self, name: str) -> None:
        if Path(name).exists():
            self.write(f"No: {name} exists already.")
            return
        atomic_write(name, (json.dumps(self.session.saved_game(self.viewer)) + "\n").encode())
        self.write(f"The game so far is in {name}.")

    def _completions(self, begun: str) -> list[str]:
        orders = dict.fromkeys(itertools.chain(*self._legal().values()))
        texts = *_COMMANDS, *(_TALK if self.session.game.table else ()), *orders
        return [text for text in texts if text.upper().startswith(begun.upper())]


def read_terms(game: Game, power: str, text: str) -> dict:
    """Return the clauses of a power's offer, as keywords of Game.offer.

    `text` has, with `;` between them, `peace`, orders of both sides' units, `zone ENG`, and
    `both|we|they out ENG`; `in F1902M` is for a later phase.
    """
    terms: dict = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        words = part.lower().split()
        if words == ["peace"]:
            terms["peace"] = True
        elif words[0] == "in" and len(words) == 2:
            terms["phase"] = words[1].upper()
        elif words[0] == "zone" and len(words) == 2:
            terms.setdefault("zone", []).append(words[1])
        elif words[0] in _SIDES and words[1:2] == ["out"] and len(words) == 3:
            for name in _SIDES[words[0]]:
                terms.setdefault(name, []).append(words[2])
        else:
            try:
                ordered = read_order(game.map, part).units[:1]  # none if it says WAIVE
            except UserError as error:
                raise UserError(
                    f"{quoted(part, 60)} is neither peace, nor an order, nor like both out ENG: "
                    f"{error}"
                ) from None
            units = {province_of(unit) for unit in game.units[power]}
            own = any(game.map.provinces[unit.place.province] in units for unit in ordered)
            terms.setdefault("ours" if own else "theirs", []).append(part)
    return terms


_SIDES = {
    "both": ("we_keep_out", "they_keep_out"),
    "we": ("we_keep_out",),
    "they": ("they_keep_out",),
}


def _no(reason: object) -> str:
    text = f"No: {reason}"
    return text if text.endswith(("?", ".")) else f"{text}."


def _complete_by(find: Callable[[str], list[str]]) -> None:
    """Let TAB complete whole lines, where the terminal can."""
    completions: list[str] = []

    def complete(_text: str, number: int) -> str | None:
        if number == 0:
            completions[:] = find(readline.get_line_buffer())
        return completions[number] if number < len(completions) else None

    if "readline" in globals():
        readline.set_completer(complete)
        readline.set_completer_delims("")
        readline.parse_and_bind("tab: complete")
