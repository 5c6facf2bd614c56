"""What `play` keeps of a game: its opponents, hints, seed and seats, by flags and a file.

    flag       a new game                                 a game that goes on
    --against  the opponents; none: the first that the    the opponents; none: the file's
               page offers, or a bot where no page asks
    --hint     the player of hints                        the same; none: the file's
    --seed     the seed; none: a new one                  the same; none: the file's
    --power    the host's power                           the same, and seats are dealt anew
    --guest    a guest's powers                           the same, and seats are dealt anew
    --watch    nobody plays                               the same, and seats are dealt anew

Where neither --power, --guest nor --watch is named, people have their powers of the file. In a new
game there are none: then the host chooses on the page, and there are no seats yet. Opponents have
all powers that people do not have, in turn; with new opponents seats are dealt anew, too.
"""

from secrets import randbelow

from msgspec.structs import replace

from ..errors import UserError
from ..play.file import GUEST, HOST, PLAYER, PlayRecord, Seat
from ..play.session import MIXED, mixed_table
from ..players.names import drawn_names
from ..players.trust import check_named
from ..textgame.game import Game
from . import _opponents
from ._flags import Play


def named_players(flags: Play) -> list[str]:
    return [*flags.against, *filter(None, [flags.hint])]


def new_record(flags: Play, game: Game) -> PlayRecord:
    """Return the record of a game that begins."""
    talk = game.table is not None
    against = list(flags.against)
    if not against and (flags.text or flags.watch or flags.resume):
        against = ["nash+dumbbot" if talk else "dumbbot"]
    elif not against:
        against = list(_opponents.offered(game.map.name, talk))[:1]
    opponents = drawn_names(against, len(game.powers))
    if MIXED in opponents and not _opponents.mixed(game.map.name, talk):
        raise UserError(f"--against {MIXED}: there are no bundled policies of map {game.map.name}")
    seed = randbelow(10**6) if flags.seed is None else flags.seed
    record = PlayRecord(opponents=opponents, hint=flags.hint, seed=seed)
    return replace(record, seats=_seats(flags, game, record))


def continued_record(flags: Play, game: Game, saved: PlayRecord) -> PlayRecord:
    """Return the record of a file with the changes of flags. UserError: a player of the file is one
    that flags have to name, see `check_named`."""
    opponents = saved.opponents
    if flags.against:
        opponents = drawn_names(flags.against, len(game.powers))
    seed = saved.seed if flags.seed is None else flags.seed
    record = replace(saved, opponents=opponents, hint=flags.hint or saved.hint, seed=seed)
    deals_anew = opponents != saved.opponents or flags.power or flags.guest or flags.watch
    if saved.seats and deals_anew:
        record = replace(record, seats=_seats(flags, game, record) or saved.seats)
    seated = [seat.player for seat in (record.seats or {}).values() if seat.kind == PLAYER]
    check_named([*record.opponents, *seated], flags.against, flags.resume)
    if saved.hint and not flags.hint:
        check_named([saved.hint], named_players(flags), flags.resume, "--hint")
    return record


def _seats(flags: Play, game: Game, record: PlayRecord) -> dict[str, Seat] | None:
    """Return each power's seat; None if the host chooses on the page."""
    people = _people(flags, game)
    if not people and not flags.watch:
        seats = (record.seats or {}).items()
        people = {power: seat for power, seat in seats if seat.kind != PLAYER}
        if not people:
            return None
    opponents = record.opponents
    empty = [power for power in game.powers if power not in people]
    in_turn = {power: opponents[n % len(opponents)] for n, power in enumerate(empty)}
    pool = _opponents.mixed(game.map.name, game.table is not None)
    players = mixed_table(in_turn, pool, record.seed)
    return people | {power: Seat(PLAYER, name) for power, name in players.items()}


def _people(flags: Play, game: Game) -> dict[str, Seat]:
    """Return the seats of guests and of the host that flags name."""
    guests = [game.powers[game.map.power_number(name)] for name in flags.guest]
    people = dict.fromkeys(guests, Seat(GUEST))
    if flags.power:
        own = game.powers[game.map.power_number(flags.power)]
        if own in people:
            raise UserError(f"{own} is both yours and a guest's")
        people[own] = Seat(HOST)
    return people
