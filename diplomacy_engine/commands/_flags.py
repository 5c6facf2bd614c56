"""The flags of every command, a dataclass each; the command's module implements them.

A field is a flag: its name, its type with the range of its values, its default, and below it its
help. The docstring of a command's class is the text of its help.

Flags that several commands share are base classes. They set the order of flags in the help, too: a
help begins with the flags of the last base class. So flags that one command has alone are a base
class where they are to come before the shared ones.

`OnlyIf` in a type is the condition without which the flag has no effect; to name it then is an
error. The condition of a shared flag reads only flags that all its commands have, or reads them
with `getattr` and a default.

Here nothing else of the engine is imported, so that a help is printed at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta
from tyro.conf import Positional, arg

from ..records import OnlyIf

Natural = Annotated[int, Meta(ge=0, le=2**62)]
Count = Annotated[int, Meta(ge=1, le=10**7)]
Year = Annotated[int, Meta(ge=1, le=30_000)]
Years = Annotated[int, Meta(ge=1, le=1000)]
Rounds = Annotated[int, Meta(ge=1, le=4)]
GameNumber = Annotated[int, Meta(ge=1, le=10**9)]  # of a game in a file, from 1 on
Threads = Annotated[int, Meta(ge=1, le=1024)]
DUMMIES = "all-dummies"  # in place of a power: those that nobody plays


def _some_player_is(*kinds: str, alone: bool = False) -> Callable[..., bool]:
    """Return a condition: that flags name a player of these kinds of players/names.py.

    A search, and a player that talks, is also of the kind of the player in it: `nash+small-pure-1`
    is a VoiceSpec and a PolicySpec, `fast:small-pure-1` a SearchSpec and a PolicySpec. With `alone`
    a search is only a SearchSpec, since its policy does not order by itself.

    The condition holds, too, while it is not known who plays: where flags name nobody, where a
    saved game names the players, and where a page asks for them.
    """

    def applies(flags: Any) -> bool:
        from ..players import names

        types = tuple(getattr(names, kind) for kind in kinds)
        players = _named_players(flags)
        if not players or getattr(flags, "resume", None) or getattr(flags, "page_asks", False):
            return True
        for player in players:
            parts = [*names.parts(player)]
            if alone:  # behind a player that talks comes the one in it that orders
                parts = parts[:2] if isinstance(parts[0], names.VoiceSpec) else parts[:1]
            if any(isinstance(part, types) for part in parts):
                return True
        return False

    return applies


def _named_players(flags: Any) -> list[str]:
    """Return the players that flags name, whichever of these flags the command has."""
    players: list[str] = []
    for flag in ("player", "against", "players", "hint"):
        value = getattr(flags, flag, None) or ()
        players += [value] if isinstance(value, str) else value
    return players


def _is_page(flags: Any) -> bool:
    """Tell whether `replay` writes a page."""
    return (flags.output or "").lower().endswith(".html")


_HAS_POLICY = OnlyIf(
    "no player is a policy that orders by itself",
    _some_player_is("PolicySpec", "MemberSpec", "LanguageSpec", "ProgramSpec", alone=True),
)
_HAS_SEARCH = OnlyIf("no player is written fast:...", _some_player_is("SearchSpec"))
_HAS_CHECKPOINT = OnlyIf("no player is a policy", _some_player_is("PolicySpec"))
_NEEDS_PRESS = OnlyIf("it needs --press", lambda flags: flags.press)
_NOT_TRAINED = OnlyIf("--runs are trained already", lambda flags: not flags.runs)
_NOT_A_PAGE = OnlyIf("a page shows all games, in both themes", lambda flags: not _is_page(flags))
_HAS_SEAT = OnlyIf(
    f"with --power {DUMMIES} there is no seat of one",
    lambda flags: DUMMIES not in getattr(flags, "power", ()),
)
_NEEDS_PAGE = OnlyIf("with --text there is no page", lambda flags: not flags.text)


# --- Flags of several commands --------------------------------------------------------------------


@dataclass(kw_only=True)
class TeamFlags:
    """Flags of commands that play games, or rate players, in teams."""

    teams: str = ""
    """powers that win and lose together: ENGLAND+ITALY, or several teams separated by commas; each
    team has one player"""
    team_victory: Annotated[
        int, Meta(ge=0, le=1000), OnlyIf("it needs --teams", lambda flags: flags.teams)
    ] = 0
    """centers a team needs to win after a fall, if no other team has as many; 0: it wins by a solo
    of one of its powers, or as the last team alive"""


@dataclass(kw_only=True)
class GameFlags:
    """Flags of commands that play many games."""

    seed: Natural = 1
    """the same seed gives the same result"""
    max_years: Years | None = None
    """years after which a game ends; None: the map's, 20 or, on standard, 35"""
    year_limit: Literal["draw", "truncate"] = "draw"
    """how a game that reaches the limit counts: as a draw, or as cut off, which pays no reward"""
    threads: Threads | None = None
    """threads that play the games; None: one per processor"""


@dataclass(kw_only=True)
class DealFlags:
    """Flags of games in which powers talk; the command's own flag `press` says how."""

    press_rounds: Annotated[Rounds | None, _NEEDS_PRESS] = None
    """rounds of offers in a movement phase, 1 to 4; None: 1, or in `play` 4"""
    open_press: Annotated[bool, _NEEDS_PRESS] = False
    """all powers see which powers are at peace with each other, not only their own deals"""
    binding: Annotated[Literal["yes", "no"] | None, _NEEDS_PRESS] = None
    """no: deals may be broken; breaker breaks them, grudge and sanction retaliate; None: yes"""


@dataclass(kw_only=True)
class PlayerFlags:
    """How players play that others have named."""

    greedy: Annotated[bool, _HAS_POLICY] = False
    """policies play their likeliest orders instead of sampling"""
    assume: Annotated[str | None, _HAS_SEARCH] = None
    """model of the other players, for players that search: self (default), a player, pool:FOLDER (a
    run's checkpoints), or infer:self,dumbbot,... to infer it from their orders"""
    script: Annotated[str | None, _HAS_CHECKPOINT] = None
    """training script that plays the checkpoints, or `own` for the copy in each run folder;
    SCRIPT.py:POLICY names one for a single player; None: the bundled script of that name"""


@dataclass(kw_only=True)
class MatchFlags(PlayerFlags, DealFlags, TeamFlags, GameFlags):
    """Flags of `evaluate` and `tournament`."""

    map: str | None = None
    """small, three, standard, or the path of a map file; None: the map of the first checkpoint,
    or else small"""
    games: Count | None = None
    """number of games, which `evaluate` rounds up so that all seats are played equally often; None:
    1,000; needed with a language model"""
    draws_after: Year | None = None
    """players vote for a draw from this year on, unless they are close to winning; a game ends once
    all surviving powers do; None: nobody votes"""
    press: Literal["mutual", "offers", "propose-choose"] | None = None
    """talk before the orders. mutual: peace between two powers that both want it; offers: deals of
    any kind, one offer per power and round; propose-choose: one offer to each other power, and each
    pair picks one of its two; None: nobody talks"""
    json: str | None = None
    """file for the whole result"""
    csv: str | None = None
    """file for the same figures as CSV, one per line"""
    per_game: str | None = None
    """file for the figures of each game, as CSV"""
    save_games: str | None = None
    """file for saved games (.jsonl), for `replay`"""
    save_count: Annotated[
        Annotated[int, Meta(ge=1, le=10**6)] | None,
        OnlyIf("it needs --save-games", lambda flags: flags.save_games),
    ] = None
    """how many games --save-games writes; None: 10"""


# --- Matches --------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class EvaluateFirstFlags:
    """The flags that `evaluate` shows first."""

    player: str
    """the player to evaluate: a bot, a checkpoint, a run folder or one that `policies` lists"""
    against: str = "dumbbot"
    """player of all other powers"""


@dataclass(kw_only=True)
class Evaluate(MatchFlags, EvaluateFirstFlags):
    """Play a player as every power equally often against copies of another, and print a table of
    its results with 95% intervals.

    examples:
      evaluate --player small-pure-2
      evaluate --player runs/small__... --against small-pure-2 --games 200
      evaluate --player fast:standard-pure-2 --games 70
    """


@dataclass(kw_only=True)
class TournamentFirstFlags:
    """The flag that `tournament` shows first."""

    players: tuple[str, ...]
    """two or more, separated by spaces: bots, checkpoints or run folders"""


@dataclass(kw_only=True)
class Tournament(MatchFlags, TournamentFirstFlags):
    """Seat several players at mixed tables, each as every power equally often, and print their
    ratings, how often each ends above each other, and their results with each power.

    examples:
      tournament --players small-pure-1 small-pure-2 dumbbot random
      tournament --players runs/small__... dumbbot --games 500 --csv results.csv
    """


# --- Players, maps and rewards --------------------------------------------------------------------


@dataclass
class Policies:
    """List the trained policies that come with this package, best first. Type a name wherever a
    command takes a PLAYER; fast:NAME adds a search and plays better.
    """

    map: Literal["small", "three", "standard"] | None = None
    """map of the policies; None: all"""


@dataclass
class Bot:
    """Play for another program: read positions in lines from standard input, write orders in lines
    to standard output. docs/protocol.md has the format.

    examples:
      bot small-pure-2
      bot fast:standard-own-2 --protocol dui
    """

    player: Positional[str]
    """player of the powers"""
    protocol: Literal["lines", "dui"] = "lines"
    """lines: one JSON object each; dui: the protocol DUI, on the standard map"""
    greedy: Annotated[bool, _HAS_POLICY] = False
    """a policy plays its likeliest orders instead of sampling"""
    seed: Natural = 1
    """seed for positions without a seed"""


@dataclass
class CheckPlayer:
    """Print the mistakes of a player, such as a program of yours (cmd:COMMAND) or a class
    (module:Class), or its decisions a second."""

    player: Positional[str]
    """the player"""
    map: str = "standard"
    """small, three, standard, or the path of a map file"""


@dataclass
class CheckMap:
    """Read a map file; print all its mistakes, or its counts."""

    file: Positional[str]
    """a map file (TOML), or the name of a map"""


@dataclass(kw_only=True)
class CheckRewardFirstFlags:
    """The flags that `check-reward` shows first."""

    reward: str
    """a name such as sum_of_squares, module:function, or a mix: sum_of_squares=1,score=0.5"""
    map: str = "small"
    """small, three, standard, or a map file"""
    players: tuple[str, ...] = ("random", "dumbbot", "hold")
    """players: bots, checkpoints or run folders; policies play their likeliest orders"""
    pairs: Annotated[int, Meta(ge=1, le=10**6)] = 400
    """pairs of games"""


@dataclass(kw_only=True)
class CheckReward(TeamFlags, GameFlags, CheckRewardFirstFlags):
    """Play pairs of games that differ in the policy of one power, and print the scheme of the
    reward: non-learnable, isolated, competitive, collaborative or a social dilemma. Games can rule
    out a scheme but never prove it.

    examples:
      check-reward --reward sum_of_squares
      check-reward --reward center_delta --map three --players dumbbot hold
    """

    script: Annotated[str | None, _HAS_CHECKPOINT] = None
    """training script that plays the checkpoints"""
    json: str | None = None
    """file for the whole result"""


# --- Games and maps of other programs, saved games ------------------------------------------------


@dataclass
class ImportGame:
    """Read a webDiplomacy site's history.json or blocks of order texts by power and phase; replay
    them by our rules; print their contents and any differences. Saved games are taken as they are.
    `replay` and `play --resume` read the same files.

    examples:
      import-game history.json --output game.jsonl
      import-game orders.txt --output game.jsonl
    """

    file: Positional[str]
    """the file; its format is recognized by its content"""
    output: Annotated[str | None, arg(aliases=["-o"])] = None
    """write the saved games here (.jsonl)"""
    map: str | None = None
    """map of the game, if it does not name it; None: standard"""
    variant: str | None = None
    """the site's variant.json, for a history.json on a map other than Classic"""


@dataclass
class ImportMap:
    """Read a .map file (DPjudge, the `diplomacy` package) or a DVAR (.json, diplicity) and write it
    as a map file. A rule that the engine lacks is an error, with its line.

    examples:
      import-map modern.map
      import-map variant.json --output variant.toml
    """

    file: Positional[str]
    """the other program's file"""
    output: Annotated[str | None, arg(aliases=["-o"])] = None
    """the map file; None: NAME.toml, unless it exists"""


@dataclass(kw_only=True)
class LlmPrompt:
    """Print a power's prompt in a position on standard output, and its length on standard error.

    examples:
      llm-prompt --map small --power ENGLAND
      llm-prompt --power FRANCE --prompt list
    """

    power: str
    """the power whose prompt is printed"""
    map: str = "standard"
    """small, three, standard, or the path of a map file"""
    position: str | None = None
    """a line as Game.to_position writes it; None: the opening"""
    prompt: Literal["list", "windows", "counts", "board", "minimal"] | None = None
    """form of the prompt; None: the player's, or else windows"""
    player: str | None = None
    """a language model (llm:...) whose settings to use; a local one's tokens are counted exactly"""
    max_years: Years | None = None
    """years after which the game ends; None: the map's"""


@dataclass
class Replay:
    """Show saved games, ours or the diplomacy package's. A page (.html) holds all games of the file
    and needs nothing else; a picture (.svg, .png) shows one phase.

    examples:
      replay games.jsonl --output games.html
      replay runs/small__... --output games.html
      replay games.jsonl --text
      replay games.jsonl --game 2 --phase F1901M --output board.png
    """

    file: Positional[str]
    """saved games (.jsonl, one a line) or one (.json), a run folder for all its games, or a game
    from elsewhere that `import-game` reads"""
    output: str | None = None
    """file to write: a page (.html), a picture (.svg, .png) or a moving one (.gif)"""
    text: bool = False
    """show the game in the terminal instead"""
    game: Annotated[GameNumber | None, _NOT_A_PAGE] = None
    """game of a picture or text; None: 1"""
    phase: Annotated[str | None, _NOT_A_PAGE] = None
    """phase of a picture or text, and the last of a GIF, such as F1901M"""
    theme: Annotated[
        Literal["light", "dark"] | None,
        _NOT_A_PAGE,
        OnlyIf("it is for a picture", lambda flags: not flags.text),
    ] = None
    """colors of a picture; a page has both; None: light"""
    map: str | None = None
    """map of the games; None: the map that they name"""
    review: Annotated[str | None, OnlyIf("it is for a page, --output FILE.html", _is_page)] = None
    """judge of the games, as in `review --player`; the page shows the review"""


@dataclass(kw_only=True)
class Review:
    """Find the decisions that cost most in games, and the orders that were better. Prints each
    power's accuracy and worst decisions, and writes a page with all of them.

    examples:
      review games.jsonl --output review.html
      review history.json --power FRANCE --json review.json
    """

    file: Positional[str]
    """saved games, or games from elsewhere that `import-game` reads"""
    power: tuple[str, ...] = ()
    """powers whose decisions are reviewed; none: all"""
    player: tuple[str, ...] = ()
    """judges: trained policies, fast:POLICY or lookahead; none: on standard three policies, one of
    which has learned from people, else the map's best policy from self-play, or lookahead"""
    output: Annotated[str | None, arg(aliases=["-o"])] = None
    """page to write (.html)"""
    json: str | None = None
    """file for the decisions, marks and accuracies; with several games, one line each"""
    map: str | None = None
    """map of the games; None: the one they name"""


# --- Seats on servers -----------------------------------------------------------------------------


@dataclass(kw_only=True)
class SeatFlags(PlayerFlags):
    """Flags of commands that play in a game of a server."""

    player: str | None = None
    """player that gives the orders: a bot, checkpoint or run folder"""
    map: str | None = None
    """map of the game; None: standard"""
    seed: Natural | None = None
    """seed of the player's random choices; None: 1"""
    max_years: Years | None = None
    """years of a game; policies see how many are left; None: the map's"""
    wait: bool = False
    """wait until the server is up"""
    patience: Annotated[int, Meta(ge=0, le=10**7)] = 600
    """seconds to keep trying once the server is gone"""
    save: Annotated[str | None, _HAS_SEAT] = None
    """write the game here at the end, for `replay` (.jsonl)"""


@dataclass(kw_only=True)
class DiplomacyFirstFlags:
    """The flags that `connect diplomacy` shows first."""

    address: Positional[str]
    """address of the server, such as localhost:8432"""
    list: bool = False
    """list the server's games and their free powers"""
    user: Annotated[str | None, _HAS_SEAT] = None
    """name to log in with, or the prefix of the names of several powers; a new name is registered
    and then needs its password; None: a new name for each power and run"""
    password_file: Annotated[str | None, _HAS_SEAT] = None
    """file with the user's password"""
    ssl: bool = False
    """encrypt the connection (TLS)"""
    ca: Annotated[str | None, OnlyIf("it needs --ssl", lambda flags: flags.ssl)] = None
    """with --ssl: certificates (.pem) to trust, such as the server's own if it is self-signed;
    None: the system's certificates"""


@dataclass(kw_only=True)
class ServerSeatFlags:
    """The game and the powers that `connect diplomacy` plays."""

    game_id: Annotated[str | None, _HAS_SEAT] = None
    """the game"""
    power: tuple[str, ...] = ()
    """the power to play, or several; any: a free power, or the one that the server assigns;
    all-dummies: all powers that nobody plays, in all games of the server"""
    registration_password_file: Annotated[str | None, _HAS_SEAT] = None
    """file with the game's password"""
    vote_draw: Annotated[Literal["never", "always"] | Year, _HAS_SEAT] = "never"
    """draw votes in each phase: never, always, or from a year on, unless the power is close to
    winning"""
    talk: Annotated[
        Annotated[int, Meta(ge=1, le=10**5)] | None,
        _HAS_SEAT,
        OnlyIf("this player never talks", _some_player_is("VoiceSpec")),
    ] = None
    """seconds in which a player that talks, such as nash+dumbbot, may make and answer offers in
    each movement phase, at most a third of the deadline; None: 10"""


@OnlyIf("with --list nobody plays", lambda flags: not flags.list).for_all(
    SeatFlags, ServerSeatFlags
)
@dataclass(kw_only=True)
class Diplomacy(SeatFlags, ServerSeatFlags, DiplomacyFirstFlags):
    """Play on a server of the diplomacy package. That package need not be installed here.

    examples:
      connect diplomacy localhost:8432 --list
      connect diplomacy localhost:8432 --game-id g1 --power FRANCE --player dumbbot
      connect diplomacy localhost:8432 --power all-dummies --player dumbbot
    """


@dataclass(kw_only=True)
class WebdipFirstFlags:
    """The flags that `connect webdip` shows first."""

    url: Positional[str] = ""
    """the site, such as https://webdiplomacy.net"""
    game_id: Natural | None = None
    """the game; None: the only one that the key's user plays"""
    country: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """the country's number; None: the user's"""
    key_file: str | None = None
    """file with the user's key"""
    vote_draw: Literal["never", "always"] = "never"
    """draw votes in each phase"""


@dataclass(kw_only=True)
class Webdip(SeatFlags, WebdipFirstFlags):
    """Play on a webDiplomacy site with the API of September 2026. Environment variables replace
    missing arguments: WEBDIP_URL, WEBDIP_API_KEY, WEBDIP_GAME_ID, WEBDIP_COUNTRY_ID, WEBDIP_SEED,
    WEBDIP_END_YEAR. The key is read from there or from a file only.

    example:
      connect webdip https://example.org --game-id 5 --player dumbbot
    """


# --- Populations ----------------------------------------------------------------------------------


@dataclass
class Make:
    """Take policies from all stages of training runs, add the bots, and rate them all in one
    tournament. Without --runs, the runs of configs/population/runs.toml are trained first, one
    after the other; finished runs are not trained again.

    examples:
      population make --map small
      population make --map small --runs runs/small__... --output my_population
    """

    map: str = "small"
    """small, three, standard, or a map file"""
    runs: tuple[str, ...] = ()
    """finished run folders to take policies from"""
    recipe: Annotated[str | None, _NOT_TRAINED] = None
    """another file of runs to train"""
    decisions: Annotated[Annotated[int, Meta(ge=100, le=10**12)] | None, _NOT_TRAINED] = None
    """learner decisions of a run with share 1; None: from the file of runs"""
    runs_folder: Annotated[str, _NOT_TRAINED] = "runs"
    """folder in which runs are trained and searched"""
    output: str | None = None
    """folder of the population; an existing population there is replaced at the end (default
    without --runs: runs/population/MAP)"""
    copies: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """policies to take from each run, evenly spaced over its training; None: from the file of
    runs, else 5"""
    games: Count | None = None
    """games of the tournament; None: small 20,000, three 10,000, standard 10,000, others
    3,000"""
    seed: Annotated[int, Meta(ge=1, le=2**62)] = 1
    """seed of the tournament"""
    threads: Threads | None = None
    """threads of games and networks; None: one per processor"""


@dataclass(kw_only=True)
class AmongFlags:
    """The population in which `population rank` and `population add` place a player."""

    population: str | None = None
    """folder of the population; None: the base population of the map"""
    seed: Natural = 1
    """of seats and games"""


@dataclass(kw_only=True)
class RankFirstFlags(AmongFlags):
    """The players that `population rank` rates, or the games by which it rates a person."""

    player: tuple[str, ...] = ()
    """bots, checkpoints or run folders; with several, their mean rank is printed too"""
    saved_games: tuple[str, ...] = ()
    """games of a person, in place of --player"""
    person: Annotated[
        str | None,
        arg(name="as"),
        OnlyIf("it needs --saved-games", lambda flags: flags.saved_games),
    ] = None
    """with --saved-games: the person's power, or name in them"""
    map: str | None = None
    """small, three, standard, or a map file; None: the player's"""
    json: str | None = None
    """file for the whole result"""


@dataclass(kw_only=True)
class RankGamesFlags:
    """The games by which a player is rated."""

    games: Count | None = None
    """games by which a player is rated; None: small 2,000, three 1,500, others 700"""
    threads: Threads | None = None
    """threads of games and networks; None: one per processor"""


@OnlyIf(
    "--saved-games are played already, and without teams", lambda flags: not flags.saved_games
).for_all(PlayerFlags, TeamFlags, RankGamesFlags)
@dataclass(kw_only=True)
class Rank(PlayerFlags, TeamFlags, RankGamesFlags, RankFirstFlags):
    """Play against the members of a population, and print the rating with its 95% interval, the
    rank, and the population share: averaged over members, the share of games in which the player
    ends above that member. --saved-games rates a person by games played instead.

    examples:
      population rank --player small-pure-2
      population rank --player runs/small__... --games 500 --json rank.json
      population rank --map three --teams ENGLAND+ITALY --player runs/three__...
      population rank --saved-games runs/play/small-....jsonl
    """


@dataclass(kw_only=True)
class Add(RankGamesFlags, AmongFlags):
    """Add the newest policy of a run to a population, rated by games among the members, whose
    ratings stay.

    examples:
      population add runs/small__...
      population add runs/small__... --population my_population --games 5000
    """

    run: Positional[str]
    """a run folder"""


@dataclass
class Show:
    """Write a page with the ladder of a population, its cross table, and the training of every
    member.

    examples:
      population show --map small
      population show --population my_population --output my_population.html
    """

    map: str | None = None
    """small, three, standard, or a map file; None: small"""
    population: str | None = None
    """folder of the population; None: the base population of the map"""
    output: str | None = None
    """page to write; None: population_MAP.html in this folder"""
    ranks: str | None = None
    """players to show among the members, a file written by `rank --json`; None: ranks.json in
    the population's folder, if there"""


# --- Play -----------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class PlayFirstFlags:
    """The flags that `play` shows first: the map, the players, and how the game is shown."""

    map: str | None = None
    """small, three, standard, or the path of a map file; None: the first checkpoint's; without
    one, standard"""
    against: tuple[str, ...] = ()
    """players of the other powers: bots, checkpoints or run folders; several take turns in the
    order of the powers; with --press also negotiators, such as nash+dumbbot; `population` draws
    members of the map's population and shows their names when the game is over; `mixed` seats a
    different policy of the map for each power; none: on a new page mixed, otherwise dumbbot, with
    --press behind nash+"""
    power: Annotated[
        str | None, OnlyIf("with --watch you play no power", lambda flags: not flags.watch)
    ] = None
    """the power you play; None: you choose on the page"""
    text: bool = False
    """play in the terminal instead of a page"""
    resume: str | None = None
    """continue a saved game, or a file that `import-game` reads; games saved by `play` keep their
    links"""
    guest: Annotated[tuple[str, ...], _NEEDS_PAGE] = ()
    """powers for somebody else, each with a link of its own"""
    watch: bool = False
    """play no power; watch the players"""


@dataclass(kw_only=True)
class Play(PlayerFlags, DealFlags, TeamFlags, PlayFirstFlags):
    """Play a game on a page of your own machine. The command prints a link for you, one for each
    guest and one for watching. The game is saved after every step.

    examples:
      play --map small --against small-pure-2
      play --map standard --against standard-0.3-2 --power FRANCE --guest ITALY
      play --map small --watch --against runs/small__... dumbbot
      play --press offers --against nash+dumbbot
      play --resume runs/play/small-....jsonl
    """

    max_years: Years | None = None
    """years after which the game ends; None: the map's, 20 or, on standard, 35"""
    draws_after: Year | None = None
    """people may vote for draws, and the other players do from this year on, unless they lead or
    are close to winning; a game ends once all surviving powers do; None: nobody votes"""
    phase: Annotated[
        str | None,
        OnlyIf("it needs --resume FILE, the game whose phase it is", lambda flags: flags.resume),
    ] = None
    """with --resume: begin another game from this phase of a game in the file, such as F1901M"""
    game: Annotated[
        GameNumber | None,
        OnlyIf("it needs --phase, from which another game begins", lambda flags: flags.phase),
    ] = None
    """with --phase: number of the game in the file; None: the last"""
    seed: Natural | None = None
    """seed of the players' random choices; None: a new one each time"""
    save: str | None = None
    """file of the game; None: a file in runs/play"""
    hint: str | None = None
    """policy that gives hints; None: the first policy that plays"""
    explain: Annotated[bool, OnlyIf("it needs --text", lambda flags: flags.text)] = False
    """with --text: show the hint at every turn"""
    press: Literal["mutual", "offers"] | None = None
    """talk before the orders. mutual: peace between two powers that both want it; offers: deals of
    any kind, one offer per power and round; None: nobody talks"""
    host: Annotated[str, _NEEDS_PAGE] = "127.0.0.1"
    """address to listen on; 0.0.0.0 lets other machines of your network in"""
    port: Annotated[int, Meta(ge=0, le=65535), _NEEDS_PAGE] = 8000
    """port of the page; 0 for any free one"""

    @property
    def page_asks(self) -> bool:
        """Whether the host chooses the players on the page."""
        return not (self.text or self.power or self.guest or self.watch)
