"""One game between people and players: links, moves, hints, saving; no network, no page.

Its file, as file.py reads it, is replaced atomically after every change, before anybody is told of
it: a session that is stopped at any moment goes on from it. Whoever comes is known by a token.
"""

import hmac
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace as changed
from itertools import count, cycle, islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from msgspec import UNSET, to_builtins
from msgspec.structs import replace

from .._files import atomic_write
from .._suggest import quoted
from ..games.votes import bot_votes
from ..players.advice import Advice, advice, ordering, orders_by_player
from ..players.names import short_name, short_names
from ..players.policy.player import PolicyPlayer
from ..players.protocols import ExplainingPlayer, Player
from ..rules.game_rules import GameRules, Protocol
from ..rules.map import Map, load_map
from ..rules.state import seed_from
from ..textgame.game import Game
from ..textgame.order_texts import order_texts
from ..textgame.saved_game import EVERYONE
from .file import GUEST, HOST, PLAYER, WATCH, PlayRecord, Seat, games_in, pasted_game, rebuild
from .review import Outlook, ReviewJob, begin_review, judges_of, outlook
from .state import PlayError, SessionState
from .talk import players_talk

PERSON = "a person"  # in a saved game, who had a person's seat
MIXED = "mixed"  # as a player's name: one of those of the map's mixed table, drawn by the seed
QUICK_BOTS = ("random", "hold", "chaos", "dumbbot", "dumbbot-paquette", "dumbbot-deepdip")
MOST_LISTED = 50  # games
MOST_OPEN = 20  # sessions besides the first at a time
MAX_IDLE = 10  # phases played at most while people who are not eliminated can only wait
NOT_OURS = "this link is not one of this game's"


class Viewer(NamedTuple):
    power: str | None  # the power they play
    host: bool = False  # may choose seats, take back, go on


class Choices(NamedTuple):
    """What the host may choose before the game begins."""

    # Name of a map, whether powers talk -> player -> what it is, best first.
    offered: Callable[[str, bool], Mapping[str, str]] = lambda *_: {}
    # The same -> players of a mixed table, best first.
    mixed: Callable[[str, bool], Sequence[str]] = lambda *_: ()
    # The same -> easy, medium, hard -> player.
    levels: Callable[[str, bool], Mapping[str, str]] = lambda *_: {}
    # Name of a map -> players of a rated game, of which one is drawn for each power.
    rated: Callable[[str], Sequence[str]] = lambda _: ()
    maps: Sequence[str] = ()


def mixed_table(named: Mapping[str, str], players: Sequence[str], seed: int) -> dict[str, str]:
    """Return power -> player where MIXED stands for players drawn, each once before any twice."""
    drawn = cycle(Random(seed).sample(players, len(players)))
    return {power: next(drawn) if name == MIXED else name for power, name in named.items()}


class PlaySession:
    """A game that people and players play.

    A request is carried out, or refused by UserError and nothing changes: the viewer may not make
    it, it was meant for another `step`, or it is impossible.

    `record` is the key `play` of the file, to go on with a session; without tokens one begins.
    `drawn` has the names of drawn opponents, once the game is over. `opened` are the other sessions
    of its server: begun from it, or from their files.
    """

    def __init__(
        self,
        game: Game,
        file: str | Path,
        load: Callable[[str, Game, int], Player],
        record: PlayRecord,
        choices: Choices = Choices(),  # noqa: B008
        draw: Callable[[PlayRecord, Map], Mapping[str, str]] = lambda *_: {},
        rank: Callable[[Path], str] = lambda file: "",
    ):
        """See the names: `load` makes a player by its name, for a game, with a seed; `choices` are
        those of a new game; `draw` says which members of a population a record's opponents are, and
        `rank` where the rated games so far, the last in a file, put their person among these."""
        self.file = self._first = Path(file)
        self._draw = draw
        self.opened: list[PlaySession] = []
        self._rank, self._standing = rank, ""
        self.maps = list(choices.maps)
        self._load, self._choices = load, choices
        self._offered, self._mixed = choices.offered, choices.mixed
        self._chosen: dict[str, str] = {}  # what the host last chose for the powers
        self.lock, self._loading = threading.RLock(), threading.RLock()
        self.revision = 0  # grows with every change
        self.trouble = ""  # why the players could not go on
        self.asking: dict[str, list[str]] = {}  # player that orders -> powers; read without `lock`
        begins = not record.tokens
        record = replace(record, opponents=list(dict.fromkeys(record.opponents)))
        self.record = replace(record, tokens=_new_tokens(game)) if begins else record
        self._players: dict[str, Player] = {}
        self._reviews: dict[tuple[int, tuple[str, ...]], ReviewJob] = {}  # step, powers
        own = dict(record.answered), dict(record.drafts)
        self.now = first = SessionState(game, record.seats or {}, record.step, *own)
        self._offer(game.rules)
        for name in (*record.opponents, *first.players()):
            if name != MIXED:
                self._player(name)
        if record.hint and self.rated:
            raise PlayError("a game against members of a population is rated: it has no hints")
        if record.hint and self.hinting() is None:
            raise PlayError(f"{record.hint} cannot give hints, only a checkpoint can")
        self._written: tuple[int, int] | None = None
        if begins:
            self._begin_phase(first)
        self._commit(first)
        self._go_on()

    def _offer(self, rules: GameRules) -> None:
        of_game = rules.map.name, rules.press is not None
        self.drawn = self._draw(self.record, self.game.map)
        self._players = {n: player for n, player in self._players.items() if n not in self.drawn}
        offered = {} if self.rated else self._offered(*of_game)
        levels = {} if self.rated else self._choices.levels(*of_game)
        wanted = dict.fromkeys([*self.record.opponents, *levels.values(), *offered])
        named = [one for one in wanted if one != MIXED]
        self._short = dict(zip(named, short_names(named)))
        self.meanings = {self._short[one]: offered.get(one, "") for one in named}
        self.pool = list(self._mixed(*of_game))
        if self.pool and not self.rated:
            self._short = {MIXED: MIXED} | self._short
            self.meanings[MIXED] = offered.get(MIXED, "")
        self.choices = {short: name for name, short in self._short.items()}
        self.levels = {level: self._short[name] for level, name in levels.items()}

    def _load_here(self, name: str) -> Player:
        return self._load(name, self.game, self.record.seed)

    def _player(self, name: str) -> Player:
        with self._loading:
            if name not in self._players:
                self._players[name] = self._load_here(name)
            return self._players[name]

    def hinting(self) -> ExplainingPlayer | None:
        """Return the player that gives hints: the one named for it, or the map's best policy."""
        if not self.can_hint:
            return None
        hint = self.record.hint
        names = [hint] if hint else [*self.pool[:1], *self._players]
        players = (ordering(self._player(name)) for name in names)
        return next((one for one in players if isinstance(one, ExplainingPlayer)), None)

    def load_mixed(self) -> None:
        """Load the players of a mixed table, until the game begins."""
        while not self.now.seats and MIXED in self.record.opponents:
            with self._loading:  # while nobody chooses another map
                unloaded = [name for name in self.pool if name not in self._players]
                if not unloaded:
                    return
                self._player(unloaded[0])
            time.sleep(0.05)  # whoever waits for a player goes first

    @property
    def rated(self) -> bool:
        """Whether people play against members of a population, to be ranked among them."""
        return bool(self.drawn) and not self.record.tried

    @property
    def allows_hints(self) -> bool:
        return self.record.hint != "" and not self.rated

    @property
    def can_hint(self) -> bool:
        """Whether hints are allowed, and somebody gives them; nobody is loaded for that."""
        players = map(ordering, self._players.values())
        explains = any(isinstance(one, ExplainingPlayer) for one in players)
        return self.allows_hints and bool(self.record.hint or self.pool or explains)

    # --- Who asks -------------------------------------------------------------------------------

    @property
    def game(self) -> Game:
        """The game as it stands; read it only while holding `lock`."""
        return self.now.game

    @property
    def tokens(self) -> dict[str, str]:
        return self.record.tokens

    def owner(self, token: str) -> str | None:
        """Return the seat of a token, or None, without waiting (`viewer` may wait)."""
        same = {
            name: hmac.compare_digest(own.encode(), token.encode())
            for name, own in self.tokens.items()
        }
        return next((name for name in same if same[name]), None)

    def viewer(self, token: str, power: str | None = None) -> Viewer:
        """Return the viewer with a token; PlayError if it is of none. `power`: the power that it
        orders for in a sandbox."""
        owner = self.owner(token)
        if owner is None:
            raise PlayError(NOT_OURS, "unknown")
        with self.lock:
            if owner != HOST:
                return Viewer(owner if owner in self.now.powers_of(GUEST) else None)
            own = self.now.powers_of(HOST)
            if self.now.is_sandbox:
                own = [power] if power in own else self.now.waiting_for() or own
            return Viewer(own[0] if own else None, True)

    # --- Before the game begins -----------------------------------------------------------------

    def choose_map(self, viewer: Viewer, name: str) -> None:
        """Begin on another map; there, players that it does not offer make room for its first."""
        with self.lock:
            self._check_unbegun(viewer)
            _check_one_of(name, self.maps, "maps to choose from")
            after = self.now.copy()
            rules, game_map = self.game.rules, load_map(name)
            usual = rules.max_years == rules.map.max_years
            years = game_map.max_years if usual else rules.max_years
            after.game = Game(changed(rules, map=game_map, max_years=years))
            opponents = self._kept_opponents(after.game.rules)
            tokens = _new_tokens(after.game) | {name: self.tokens[name] for name in (HOST, WATCH)}
            with self._loading:
                self._commit(after, replace(self.record, opponents=opponents, tokens=tokens))
                self._players, self._chosen = {}, {}
                self._offer(after.game.rules)

    def _kept_opponents(self, rules: GameRules) -> list[str]:
        offered = self._offered(rules.map.name, rules.press is not None)
        still_offered = [one for one in self.record.opponents if one in offered]
        return still_offered or list(offered)[:1] or self.record.opponents

    def choose_settings(
        self,
        viewer: Viewer,
        last_year: int | None,
        draws_after: int | None,
        press: Protocol | None,
        binding: bool,
        hints: bool,
        seed: int | None,
    ) -> None:
        """Set how the game is played, before anybody sits anywhere; a `seed` of None stays."""
        with self.lock:
            self._check_unbegun(viewer)
            after, record = self.now.copy(), self.record
            game, first = after.game, int(after.game.map.board.first_year)
            begins = first if game.is_over else int(game.phase[1:-1])
            if last_year is not None and last_year < begins:
                raise PlayError(f"last_year: the game begins in {game.phase}, after {last_year}")
            record = replace(
                record,
                hint=(record.hint or None) if hints else "",
                seed=record.seed if seed is None else seed,
            )
            rules = changed(
                game.rules,
                max_years=last_year and last_year - first + 1,
                draw_votes=draws_after is not None,
                draws_after=draws_after,
                press=press,
                press_rounds=game.rules.press_rounds if press == game.rules.press else None,
                binding=binding,
            )
            if rules.talk != game.rules.talk:
                record.opponents = self._kept_opponents(rules)
            game.change_rules(rules)
            for name in record.opponents:
                if name != MIXED:
                    self._player(name)
            self._commit(after, record)
            self._offer(rules)

    @property
    def can_rate(self) -> bool:
        """Whether a rated game can be chosen."""
        return self.game.rules.press is None and bool(self._choices.rated(self.game.map.name))

    def choose_rated(self, viewer: Viewer, rated: bool) -> None:
        """Choose drawn members of a population, to be ranked among them, or the usual players."""
        with self.lock:
            self._check_unbegun(viewer)
            if rated and not self.can_rate:
                raise PlayError("rated games are played without talk, on maps with a population")
            name = self.game.map.name
            usual = self._choices.rated(name) if rated else list(self._offered(name, False))[:1]
            with self._loading:
                self._commit(self.now.copy(), replace(self.record, opponents=list(usual)))
                self._chosen = {}
                self._offer(self.game.rules)

    def new_game(self, viewer: Viewer) -> None:
        """Once a game is over, begin another with the same links and settings, in another file."""
        with self.lock:
            self._check_host(viewer)
            self._check_over()
            after = SessionState(Game(self.game.rules), {}, self.now.step + 1)
            seed = (self.record.seed + 1) % 2**62
            record = replace(self.record, seed=seed, tried=UNSET, parent=UNSET)
            # The links lead to the new game from now on; the old one gets others.
            self._save(self.now, replace(self.record, tokens=_new_tokens(self.game)), self.file)
            self._chosen = self._chosen or self._as_chosen()
            self._commit(after, record, self._unused_file())
            self.trouble = self._standing = ""
            with self._loading:
                self._offer(self.game.rules)
            for name in self.drawn:
                self._player(name)

    def _as_chosen(self) -> dict[str, str]:
        """Return the seats as the host would choose them."""
        own, mixed = {HOST: "me", GUEST: "guest"}, MIXED in self.record.opponents
        return {
            power: own.get(seat.kind) or (MIXED if mixed else self._short.get(seat.player, ""))
            for power, seat in self.now.seats.items()
        }

    def _unused_file(self, kind: str = "") -> Path:
        numbered = (self._first.with_stem(f"{self._first.stem}{kind}-{n}") for n in count(2))
        return next(file for file in numbered if not file.exists())

    def sandbox(self, viewer: Viewer, phase: int | None) -> "PlaySession":
        """Return a session of its own that goes on from a phase, all of whose orders its host
        gives; None: from now."""
        with self.lock:
            if not viewer.host:
                self.seat(viewer)
            if self.rated and not self.game.is_over:
                raise PlayError("a rated game is not tried out before it is over", "forbidden")
            last = len(self.game.history) - self.game.is_over
            last = last if phase is None else min(phase, last)
            rules = changed(self.game.rules, press=None, draw_votes=False, draws_after=None)
            game = rebuild(self.game, last, rules=rules, concessions=False)
            seats = dict.fromkeys(game.powers, Seat(HOST))
            return self._branch("-sandbox", game, seats, tried=True)

    def _branch(self, kind: str, game: Game, seats: Mapping[str, Seat], **more) -> "PlaySession":
        """Return a session of its own that was begun from this one, with `more` in its record."""
        begun = {"tokens": {}, "answered": {}, "drafts": {}, "step": 0, "seats": seats}
        record = replace(self.record, **begun | more, parent=self.file.name)
        file = self._unused_file(kind)
        return self.open(
            PlaySession(game, file, self._load, record, self._choices, self._draw, self._rank)
        )

    def open(self, other: "PlaySession") -> "PlaySession":
        """Take another session into those that are open; the oldest make room. Their links open
        them again."""
        other.opened = self.opened
        self.opened.append(other)
        del self.opened[:-MOST_OPEN]
        return other

    def paste(self, viewer: Viewer, text: str) -> list[str]:
        """Begin from a pasted position or game; return its differences from our rules."""
        with self.lock:
            self._check_unbegun(viewer)
            after = self.now.copy()
            after.game, notes = pasted_game(text, self.game.rules)
            after.step += 1
            self._commit(after)
            return notes

    @property
    def chosen(self) -> dict[str, str]:
        """Power -> its player: the host's last choice, among the `choices`."""
        options, chosen = ("me", "guest", *self.choices), {}
        names = cycle([self.told(name, self.game) for name in self.record.opponents])
        for number, power in enumerate(self.game.powers):
            usual = next(names) if number else "me"
            option = self._chosen.get(power)
            chosen[power] = option if option in options else usual
        return chosen

    def choose_seats(self, viewer: Viewer, choice: Mapping[str, str], begin: bool = True) -> None:
        """Set each power's player, and perhaps begin: `me` (once, or for all), `guest`, or one of
        `choices`."""
        with self.lock:
            self._check_unbegun(viewer)
            after, seats, named = self.now.copy(), {}, {}
            for power in dict.fromkeys([*self.game.powers, *choice]):
                _check_one_of(power, self.game.powers, "powers of this map")
                option = choice.get(power, "")
                _check_one_of(option, ("me", "guest", *self.choices), f"choices for {power}")
                seats[power] = Seat(
                    HOST if option == "me" else GUEST if option == "guest" else PLAYER
                )
                if seats[power].kind == PLAYER:
                    named[power] = self.choices[option]
            if not begin:
                self._chosen = dict(choice)
                self.revision += 1
                return
            drawn = mixed_table(named, self.pool, self.record.seed)
            after.seats = seats | {power: Seat(PLAYER, name) for power, name in drawn.items()}
            if len(after.powers_of(HOST)) > 1 and not after.is_sandbox:
                raise PlayError("you can play one power, or all of them; give the others a link")
            for name in after.players():
                self._player(name)
            self._begin_phase(after)
            self._commit(after)
            self._chosen = dict(choice)
            self._go_on()

    # --- What people do -------------------------------------------------------------------------

    def submit(self, viewer: Viewer, step: int, orders: list[str]) -> None:
        """Give the viewer's orders; the phase is played once all people have given theirs.

        The same again changes nothing, even when the step was played meanwhile.
        """
        with self.lock:
            if self.now.answered.get(self.seat(viewer)) != (step, orders):
                self._move(viewer, step, SessionState.submit, orders)
                self._go_on()

    def draft(self, viewer: Viewer, step: int, orders: list[str]) -> None:
        """Keep orders that somebody has chosen and not given; nobody else sees a change."""
        with self.lock:
            before = self.revision
            self._move(viewer, step, SessionState.draft, orders)
            self.revision = before

    def withdraw(self, viewer: Viewer, step: int) -> None:
        self._move(viewer, step, SessionState.withdraw)

    def vote(self, viewer: Viewer, step: int, draw: bool) -> None:
        """Vote for a draw in this phase, or take that back; the last vote of all ends the game."""
        self._move(viewer, step, SessionState.vote, draw)

    def concede(self, viewer: Viewer, step: int) -> None:
        with self.lock:
            if self.seat(viewer) not in self.game.conceded:
                self._move(viewer, step, SessionState.concede)
                self._go_on()

    def offer(
        self, viewer: Viewer, step: int, receiver: str | Sequence[str], terms: Mapping
    ) -> None:
        """Offer a deal, in keywords of Game.offer; where a player gets it, it answers at once."""
        with self.lock:
            players, seed = self._speakers(self.now), self._draw_seed(self.now)
            self._move(viewer, step, SessionState.offer, receiver, terms, players, seed)

    def answer(self, viewer: Viewer, step: int, number: int, agreed: bool) -> None:
        self._move(viewer, step, SessionState.answer, number, agreed)

    def say(self, viewer: Viewer, step: int, receiver: str, text: str) -> None:
        """Say a sentence to another power; it binds nobody."""
        if self.game.table is None:
            raise PlayError("nobody talks in this game: begin one with --press")
        self._move(viewer, step, SessionState.say, receiver, text)

    def _move(self, viewer: Viewer, step: int, move: Callable, *values: object) -> None:
        with self.lock:
            power = self.seat(viewer)
            self._check_step(step)
            after = self.now.copy()
            move(after, power, *values)
            self._commit(after)

    def let_order(self, viewer: Viewer, step: int, name: str, powers: Sequence[str]) -> None:
        """In a sandbox, let a player give the orders that are neither submitted nor drafted."""
        with self.lock:
            self._check_host(viewer)
            self._check_step(step)
            if not self.now.is_sandbox:
                raise PlayError("players can order for others only in a sandbox", "forbidden")
            _check_one_of(name, self.choices, "players to choose from")
            name = self.choices[name]
            name = self.pool[0] if name == MIXED else name
            self._player(name)
            after = self.now.copy()
            without_orders = [p for p in after.waiting_for() if p in powers]
            self._ask(after, name, without_orders)
            for power in without_orders:
                chosen = [text for text in after.drafts.get(power, ()) if text != "WAIVE"]
                provinces = {text[2:5] for text in chosen}
                texts = after.game.orders[power]
                rest = [text for text in texts if text[2:5] not in provinces]
                if chosen:
                    after.game.submit(power, chosen + rest[: max(0, len(texts) - len(chosen))])
            self._commit(after)
            self._go_on()

    def read_orders(
        self,
        viewer: Viewer,
        text: str,
        orders: Sequence[str],
        note: Callable[[str], object] = lambda text: None,
    ) -> list[str]:
        """Return legal orders with those of a text added, in place of the same units' own; `note`
        is told what was not taken as written."""
        with self.lock:
            power, legal = self.seat(viewer), list(orders)
            for part in order_texts(text):
                trial = self.game.copy()
                notes = trial.submit(power, [part], strict=False)
                (order,) = trial.orders[power]
                unit = order.split()[:2]
                legal = [old for old in legal if old.split()[:2] != unit or old == "WAIVE"]
                legal.append(order)
                trial.submit(power, legal)
                for reason in notes:
                    note(reason)
            return legal

    def take_back(self, viewer: Viewer, step: int) -> None:
        """Go back to the last phase in which a person could give orders; watching, to the last."""
        with self.lock:
            self._check_host(viewer)
            self._check_step(step, over=True)
            if self.rated:
                raise PlayError("nothing is taken back in a rated game", "forbidden")
            after = self.now.copy()
            after.take_back()
            self.trouble = ""
            self._begin_phase(after)
            self._commit(after)

    def go_on(self, viewer: Viewer, step: int) -> None:
        with self.lock:
            self._check_host(viewer)
            self._check_step(step)
            if not self.now.can_go_on():
                whom = ", ".join(self.now.waiting_for()) or "the host to choose who plays"
                raise PlayError(f"the game waits for {whom}")
            self._play_phase()
            self._go_on()

    def hint(self, viewer: Viewer) -> Advice:
        with self.lock:
            power = self.seat(viewer)
            hint, people = advice(self.game, self._adviser(), power), f"{self.game.map.name}-human"
            person = ordering(self._player(people)) if people in self.pool else None
            if not isinstance(person, ExplainingPlayer):
                return hint
            usual = advice(self.game, person, power)
            return hint._replace(usual=dict(pair for _, ranked in usual.slots for pair in ranked))

    def _adviser(self) -> ExplainingPlayer:
        player = self.hinting()
        if self.rated:
            raise PlayError("a rated game has no hints")
        if player is None:
            raise PlayError("no player here gives hints: play against a checkpoint, or name one")
        return player

    def outlook(
        self, viewer: Viewer, step: int, orders: Sequence[Sequence[str]]
    ) -> list[Outlook] | None:
        """Return how the game may end for the viewer after each of some orders, in a sandbox with
        those submitted for others, against the table's players; None if it goes on meanwhile."""
        with self.lock:
            if step != self.now.step:
                return None
            power, adviser, now = self.seat(viewer), self._adviser(), self.now
            game = now.game.copy()
            players: dict[str, Player] = dict.fromkeys(now.game.powers, adviser)
            submitted = game.orders if now.is_sandbox else {}
            for name, player in self._speakers(now).items():
                if isinstance(ordering(player), PolicyPlayer) or player.name in QUICK_BOTS:
                    players[name] = ordering(player)
        compared = []
        for texts in orders:
            outlooks = outlook(game, players, lambda: self.now is now, submitted | {power: texts})
            if outlooks is None:
                return None
            compared.append(outlooks[power])
        return compared

    def standing(self) -> str:
        """Return the rank that a rated game gives, once it is over; else nothing."""
        with self.lock:
            if not (self.rated and self.game.is_over and self.now.powers_of(HOST)):
                return ""
            self._standing = self._standing or self._rank(self.file)
            return self._standing

    @property
    def can_review(self) -> bool:
        """Whether the game is over, or was pasted and nobody has begun to play on."""
        done = self.game.is_over or not self.now.seats
        return done and bool(self.game.history) and not self.game.map.teams.text

    def _reviewed(self, viewer: Viewer) -> tuple[int, tuple[str, ...]]:
        """The viewer's decisions; everybody's for who only watched, or had all powers."""
        sees_all = self.now.is_sandbox
        return self.now.step, () if viewer.power is None or sees_all else (viewer.power,)

    def review_of(self, viewer: Viewer) -> ReviewJob | None:
        """Return the part of a review that the viewer may see."""
        return self._reviews.get(self._reviewed(viewer)) if self.can_review else None

    def review(self, viewer: Viewer) -> None:
        """Begin the review of a game, which goes on by itself."""
        with self.lock:
            if not self.can_review:
                raise PlayError("only a game that is over, and without teams, is reviewed")
            if self.review_of(viewer) is None:
                hint = [[self.record.hint]] if self.record.hint else []
                judges = [*hint, judges_of(self.game.map), *([name] for name in self.pool)]
                step, powers = self._reviewed(viewer)
                self._reviews[step, powers] = begin_review(
                    self.game, judges, self._load_here, powers
                )
                self.revision += 1

    def try_from(self, viewer: Viewer, phase: int, power: str) -> "PlaySession":
        """Return a session that goes on from a phase of a game that can be reviewed: the host plays
        one power, and players all others, each its own as far as there are any."""
        with self.lock:
            self._check_host(viewer)
            if self.now.seats:
                self._check_over()
            _check_one_of(power, self.game.powers, "powers of this map")
            _check_one_of(phase, range(len(self.game.history)), "phases of this game")
            usual = [*self.pool, *self.choices.values()][0]
            sitting = {n: s for n, s in self.now.seats.items() if s.kind == PLAYER}
            seats = dict.fromkeys(self.game.powers, Seat(PLAYER, usual)) | sitting
            seats |= {power: Seat(HOST)}
            # With the same seed, by which members are drawn: steps go on, so that draws differ.
            step = self.now.step + 1
            return self._branch("-try", rebuild(self.game, phase), seats, step=step, tried=True)

    def parent_token(self) -> str:
        """Return the host's link to the game that this one was begun from; empty: there is none."""
        parent = self.record.parent
        game = games_in(self.file.parent).get(self.file.with_name(parent)) if parent else None
        return game.play.tokens.get(HOST, "") if game else ""

    def games(self, viewer: Viewer) -> list[dict]:
        """Return the host's games, those that changed last first."""
        self._check_host(viewer)
        games = games_in(self.file.parent).items()
        return [game.entry(file) for file, game in islice(games, MOST_LISTED)]

    def _check_host(self, viewer: Viewer) -> None:
        if not viewer.host:
            raise PlayError("only the person who started the game can do this", "forbidden")

    def _check_unbegun(self, viewer: Viewer) -> None:
        self._check_host(viewer)
        if self.now.seats:
            raise PlayError("the game has already begun", "stale")

    def _check_over(self) -> None:
        if not self.game.is_over:
            raise PlayError("the game is not over")

    def seat(self, viewer: Viewer) -> str:
        """Return the power that a viewer plays; PlayError if they watch."""
        if viewer.power not in self.now.people():
            raise PlayError("you are watching and play no power", "forbidden")
        return viewer.power

    def _check_step(self, step: int, over: bool = False) -> None:
        if step != self.now.step:
            raise PlayError(
                f"this was meant for step {step} of the game, which has moved on to step "
                f"{self.now.step}, {self.game.phase}",
                "stale",
            )
        if self.game.is_over and not over:
            raise PlayError("the game is over", "stale")

    # --- What players do ------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Play on until a person is to give orders, or the game needs somebody to say so."""
        idle = 0
        while self.now.can_go_on() and idle < MAX_IDLE:
            now, people, state = self.now, self.now.people(), self.game.to_state()
            ordered = any(power in self.game.orders for power in people)
            deciding = any(now.decides(state, power) for power in people)
            if not ordered and not deciding and not any(map(now.can_concede, people)):
                return
            idle += not ordered
            try:
                self._play_phase()
            except PlayError:
                return  # `trouble` says why; what people gave is kept

    def _play_phase(self) -> None:
        after = self.now.copy()
        for name, powers in after.players().items():
            self._ask(after, name, powers)
        after.adjudicate()
        self.trouble = ""
        self._begin_phase(after)
        self._commit(after)

    def _ask(self, after: SessionState, name: str, powers: list[str]) -> None:
        self.asking = {name: powers}
        try:
            player, seed = self._players[name], self._draw_seed(after)
            orders = orders_by_player(after.game, player, powers, seed, False)
        except Exception as error:  # a checkpoint's script is the user's own
            self._note_trouble(f"{name} could not give orders: {error}")
            raise PlayError(self.trouble) from error
        finally:
            self.asking = {}
        for power, texts in orders.items():
            after.game.submit(power, texts, strict=False)

    def _draw_seed(self, after: SessionState) -> int:
        return seed_from(self.record.seed, after.step)

    def _speakers(self, after: SessionState) -> dict[str, Player]:
        return {p: self._players[s.player] for p, s in after.seats.items() if s.kind == PLAYER}

    def _begin_phase(self, after: SessionState) -> None:
        after.reasons = {}
        if not after.seats or after.game.is_over:
            return
        speakers, first_year = self._speakers(after), after.game.rules.draws_after
        if first_year is not None:
            game = after.game
            votes = dict(zip(game.powers, bot_votes(game.vector_game, first_year)[0]))
            for power in game.alive:
                if power in speakers and votes[power] and not after.leads(power):
                    game.vote(power)
        if after.game.table is None:
            return
        self.asking = {"the other powers": list(speakers)}
        try:
            players_talk(after.game, speakers, self._draw_seed(after))
        except Exception as error:  # a checkpoint's script is the user's own
            self._note_trouble(f"the players could not talk: {error}")
        finally:
            self.asking = {}

    def _note_trouble(self, text: str) -> None:
        self.trouble = " ".join(text.split())[:300]
        self.revision += 1

    # --- What is kept and shown -----------------------------------------------------------------

    def _commit(
        self, after: SessionState, record: PlayRecord | None = None, new: Path | None = None
    ) -> None:
        """Save a state, perhaps a new record, and in a `new` file; only then make them the current
        ones."""
        file = new or self.file
        record = self._save(after, record or self.record, file)
        self.file, self.now, self.record = file, after, record
        self.revision += 1

    def _save(self, after: SessionState, record: PlayRecord, file: Path) -> PlayRecord:
        """Write a state to a file; return the record of it that stands there."""
        if file == self.file and self._written and _stamp(file) not in (None, self._written):
            raise PlayError(
                f"another program has changed {self.file}, perhaps a second game with the same "
                "file; nothing was saved"
            )
        own = {"answered": after.answered, "drafts": after.drafts}
        record = replace(record, step=after.step, seats=after.seats or None, **own)
        saved = after.game.to_saved_game() | {"players": self._told_players(after)}
        saved["play"] = to_builtins(record)
        atomic_write(file, (json.dumps(saved) + "\n").encode(), mode=0o600)
        self._written = _stamp(file)
        return record

    def may_hear(self, viewer: Viewer, *sides: str) -> bool:
        """Tell whether a viewer may know what is between two sides: its own, what all heard, all in
        the end."""
        return (
            self.game.table is None
            or self.game.is_over
            or not {viewer.power, EVERYONE}.isdisjoint(sides)
        )

    def saved_game(self, viewer: Viewer = Viewer(None)) -> dict:  # noqa: B008
        """Return the game to be shared: without links, orders not played yet, and others' talk."""
        with self.lock:
            saved = self.game.to_saved_game()
            last = saved["phases"][-1] | {"orders": {power: None for power in self.game.powers}}
            last.pop("votes", None)
            phases = [*saved["phases"][:-1], last]
            if self.game.table is not None:
                phases = self._phases_heard(viewer, phases)
            return saved | {"phases": phases, "players": self._told_players(self.now)}

    def _phases_heard(self, viewer: Viewer, phases: Sequence[dict]) -> list[dict]:
        times, audible = count(), []  # what is left out leaves no gap
        for phase in phases:
            sides = [(m["sender"], m["recipient"]) for m in phase["messages"]]
            messages = [m for m, s in zip(phase["messages"], sides) if self.may_hear(viewer, *s)]
            audible.append(phase | {"messages": [m | {"time_sent": next(times)} for m in messages]})
            if "broken" in phase:
                heard = {
                    power: [other for other in others if self.may_hear(viewer, power, other)]
                    for power, others in phase["broken"].items()
                }
                audible[-1]["broken"] = {power: others for power, others in heard.items() if others}
        return audible

    def told(self, name: str, game: Game) -> str:
        """Return a player's short name as the host may be told it now."""
        if name in self.drawn and game.is_over:
            return self.drawn[name]
        return self._short.get(name) or short_name(name)

    def shown(self, name: str, viewer: Viewer) -> str:
        """Return a player's name for a viewer: to others than the host no folder or address."""
        name = self.told(name, self.game)
        return name if viewer.host else name.partition("@")[0]

    def _told_players(self, now: SessionState) -> dict[str, str]:
        return {
            power: self.told(seat.player, now.game) if seat.kind == PLAYER else PERSON
            for power, seat in now.seats.items()
        }


def _new_tokens(game: Game) -> dict[str, str]:
    return {name: secrets.token_urlsafe(18) for name in (HOST, WATCH, *game.powers)}


def _check_one_of(name: object, choices: Container, what: str) -> None:
    if name not in choices:
        raise PlayError(f"{quoted(name, 40)} is not one of the {what}")


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return a value that changes when a file is replaced; None if it is gone."""
    try:
        stat = os.stat(file)
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns
