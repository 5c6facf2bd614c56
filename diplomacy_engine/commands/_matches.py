"""What commands that play matches share: their players, games, and the files they write."""

import csv
import io
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import cast

from rich.console import Console

from .._compilation import announce_compilation
from .._files import atomic_write, check_target
from .._progress import Progress, fail
from .._suggest import quoted
from ..errors import UserError
from ..extras.language.player import add_thoughts
from ..matches.evaluation import Evaluation
from ..matches.match import MatchSettings, full_rounds
from ..matches.tournament import Tournament
from ..players.advice import ordering
from ..players.loading import load_player, policy_map
from ..players.names import (
    UNBOUND,
    LanguageSpec,
    PlayerSpec,
    VoiceSpec,
    assuming,
    numbered,
    parse_player,
    parts,
    short_names,
)
from ..players.protocols import CheckedPlayer, CountingPlayer, Player
from ..records import Dataclass
from ..rules.game_rules import OPTIONS, GameRules, RuleOptions
from ..rules.map import Map, load_map
from ._console import make_console, print_counts, print_draws, print_talk
from ._flags import GameFlags, MatchFlags, PlayerFlags

GAMES = 1000  # of a match
# Decisions of a power in a game among DumbBots, each a request to a language model.
DECISIONS = {"small": 8.4, "three": 21, "standard": 51}
SAVE_COUNT = 10  # games that --save-games writes
FIGURE_COLUMNS = ("player", "against", "power", "figure", "value", "low", "high")  # of --csv


def rules_of(arguments: Dataclass, game: Map | GameRules) -> GameRules:
    teams = getattr(arguments, "teams", ""), getattr(arguments, "team_victory", 0)
    return GameRules.of(game, *teams, **rule_changes(arguments))


def rule_changes(arguments: Dataclass) -> RuleOptions:
    """Return the changes of a game's rules by flags that differ from their defaults."""
    flags = fields(arguments)
    values = {flag.name: getattr(arguments, flag.name) for flag in flags if flag.name in OPTIONS}
    changes = {f.name: values[f.name] for f in flags if values.get(f.name, f.default) != f.default}
    if "binding" in changes:
        changes["binding"] = changes["binding"] == "yes"
    return cast(RuleOptions, changes)


def check_voices(rules: GameRules, players: Iterable[str | PlayerSpec]) -> None:
    """UserError: a player makes deals, or breaks them, where nobody can."""
    for voice in (spec for spec in map(parse_player, players) if isinstance(spec, VoiceSpec)):
        needs = "--binding no" if rules.binding and voice.kind in UNBOUND else ""
        needs = needs if rules.press else "--press"
        if needs:
            raise UserError(f"{quoted(voice.text, 100)} has no effect: it needs {needs}")


def check_files(arguments: MatchFlags) -> None:
    named: set[Path] = set()
    for name in ("json", "csv", "per_game", "save_games"):
        file = getattr(arguments, name)
        if not file:
            continue
        path = Path(file)
        if path.is_file() or not path.exists():
            if path.resolve() in named:
                raise UserError(f"two flags name the same file, {file}")
            named.add(path.resolve())
        check_target(path)


def match_settings_of(flags: GameFlags, game_map: Map) -> MatchSettings:
    rules = rules_of(flags, game_map)
    if rules.press and getattr(flags, "press_rounds", None) is None:
        rules = replace(rules, press_rounds=1)
    return MatchSettings(rules, flags.seed, flags.threads)


def run_match(
    arguments: MatchFlags,
    names: Sequence[str],
    seats: Callable[[int], Sequence[float]],
    play: Callable[..., Evaluation | Tournament],
    show: Callable[[Console, dict], None],
    figures: Callable[[dict], Iterable[Sequence]],
    rounds_up: bool = False,
) -> int:
    """Play games between players, print the result, and write the files asked for.

    `seats` says how many powers of so many each player has on average, `figures` gives rows of
    FIGURE_COLUMNS of a result; with `rounds_up` all sides are played equally often.
    """
    check_files(arguments)
    specs = [parse_player(name) for name in names]
    settings = match_settings_of(arguments, map_of(arguments.map, specs))
    check_voices(settings.rules, specs)
    game_map = settings.game_map
    sides = len(game_map.teams.names) if rounds_up else 1
    games = full_rounds(arguments.games or GAMES, sides)
    model_decisions = sum(
        count
        for spec, count in zip(specs, seats(len(game_map.powers)))
        if any(isinstance(part, LanguageSpec) for part in parts(spec))
    )
    if model_decisions:
        model_decisions *= games * DECISIONS.get(game_map.name, DECISIONS["standard"])
        about = f"{games:,} games have about {model_decisions:,.0f} decisions of language models"
        if arguments.games is None:
            raise UserError(f"{about}: choose how many to play with --games")
    players = load_players(specs, game_map, arguments)
    if model_decisions:
        print(about, file=sys.stderr, flush=True)
    announce_compilation()
    behind = [(player.name, ordering(player)) for player in players]  # of those that talk
    models = [(name, player) for name, player in behind if isinstance(player, CountingPlayer)]
    programs = [player for _, player in behind if isinstance(player, CheckedPlayer)]
    samples = (arguments.save_count or SAVE_COUNT) if arguments.save_games else 0
    for _, model in models:
        model.keep = set(settings.game_seeds(0, samples).tolist())
    with showing_progress(games) as progress:
        options = {"samples": samples, "progress": progress, "keep_finished": True}
        report = play(settings, players, games, **options)
    result = report.result(per_game=bool(arguments.per_game))
    result["greedy"] |= arguments.greedy
    if models:
        result["llm"] = by_name((name, model.counts()) for name, model in models)
        add_thoughts(report.saved_by_seed, models)
    if programs:
        result["programs"] = by_name((player.name, dict(player.faults)) for player in programs)
    console = make_console()
    show(console, result)
    print_draws(console, result)
    print_talk(console, result)
    print_counts(console, result.get("llm", {}))
    for player in programs:
        if any(player.faults[fault] for fault in ("illegal", "missing", "against_deals")):
            print(f"note: {faults_text(player)}", file=sys.stderr)
    write_files(arguments, result, figures(result), report.saved_games)
    if report.cause is None:
        return 0
    interrupted = isinstance(report.cause, KeyboardInterrupt)
    cause = "interrupted" if interrupted else report.cause
    if not isinstance(cause, str | UserError):
        traceback.print_exception(cause)  # of somebody's own player
    coverage = f"the result covers the {len(report.number):,} of {games:,} games that had ended"
    return fail(f"{cause}; {coverage}", 130 if interrupted else 2)


def by_name(counts: Iterable[tuple[str, dict]]) -> dict[str, dict]:
    """Return the counts of each player; of two with the same name, the second is `NAME (2)`."""
    names, of_player = zip(*counts)
    return dict(zip(numbered(dict(enumerate(names))).values(), of_player))


def faults_text(player: CheckedPlayer) -> str:
    """Say how many orders of a program were not legal or missing."""
    counts, example = player.faults, f", such as {player.example}" if player.example else ""
    broken = f"; {counts['against_deals']:,} were against a deal" * (counts["against_deals"] > 0)
    return (
        f"{player.name} gave {counts['illegal']:,} orders that are not legal and left out "
        f"{counts['missing']:,} in {counts['decisions']:,} decisions{example}{broken}"
    )


def write_files(
    arguments: MatchFlags, result: dict, figures: Iterable[Sequence], saved_games: Sequence[dict]
) -> None:
    rows = result.pop("per_game", [])
    write_result(arguments.json, result)
    if arguments.csv:
        _write_table(arguments.csv, FIGURE_COLUMNS, figures)
    if arguments.per_game:
        _write_table(arguments.per_game, list(rows[0]), (row.values() for row in rows))
    write_lines(arguments.save_games, saved_games)


def by_team_and_power(result: dict) -> dict[str, dict]:
    """Return a result's figures by team, such as `team RUSSIA`, and by power."""
    by_team = {f"team {name}": figures for name, figures in result.get("by_team", {}).items()}
    return by_team | result["by_power"]


def figure_rows(player: str, against: str, parts: dict[str, dict]) -> Iterator[tuple]:
    """Yield rows of FIGURE_COLUMNS; `parts` are figures by team and power, "" for all seats."""
    for power, figures in parts.items():
        for name, figure in figures.items():
            yield player, against, power, name, figure["value"], figure["low"], figure["high"]


def _write_table(path: str, columns: Sequence[str], rows: Iterable[Iterable]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    atomic_write(path, text.getvalue().encode())


def map_of(name: str | None, players: Sequence[str | PlayerSpec], usual: str = "small") -> Map:
    if name is not None:
        return load_map(name)
    return next(filter(None, map(policy_map, players)), None) or load_map(usual)


def load_by_flags(
    name: str | PlayerSpec, game_map: Map, flags: PlayerFlags, careful: bool = False
) -> Player:
    how: dict = {"script": flags.script, "greedy": flags.greedy, "assume": flags.assume}
    return load_player(name, game_map=game_map, careful=careful, **how)


def load_players(
    names: Sequence[str | PlayerSpec], game_map: Map, flags: PlayerFlags, careful: bool = False
) -> list[Player]:
    specs = [parse_player(name) for name in names]
    players = [load_by_flags(spec, game_map, flags, careful) for spec in specs]
    apart = short_names([assuming(spec, flags.assume) for spec in specs])
    teams = game_map.teams.text
    for player, name in zip(players, apart):
        settings = getattr(player, "settings", None)
        trained = settings.get("teams", "") if isinstance(settings, dict) else teams
        if game_map.with_teams(trained).teams.text != teams:
            here, there = (text or "without teams" for text in (teams, trained))
            print(f"note: {player.name} was trained {there}, and plays {here}", file=sys.stderr)
        player.name = name
    return players


@contextmanager
def showing_progress(games: int) -> Iterator[Callable[[float], None]]:
    with Progress(games, unit="games", file=sys.stderr, keep=False) as line:
        yield lambda played: line.update(int(played))


def write_result(path: str | None, result: dict) -> None:
    if path:
        atomic_write(path, (json.dumps(result, indent=2) + "\n").encode())


def write_lines(path: str | None, records: Iterable[dict]) -> None:
    if path:
        atomic_write(path, "".join(json.dumps(record) + "\n" for record in records).encode())
