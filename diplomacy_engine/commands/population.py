"""`population make`, `add`, `rank` and `show`: players among frozen policies of many kinds."""

import contextlib
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict

from .._compilation import announce_compilation
from .._cores import usable_cores
from .._files import CONFIGS, atomic_write, check_target, check_writable, read_file
from ..errors import UserError
from ..matches import population as ratings
from ..matches.figures import limit_text, mean_text, percent
from ..matches.population_page import population_page
from ..play.session import PERSON
from ..players.loading import learning_module, load_members
from ..players.policy.files import CHECKPOINT, policy_file
from ..players.population import (
    FOLDERS,
    MEMBER,
    POPULATION,
    Population,
    PopulationMember,
    pack_weights,
    population_folder,
    read_population,
    write_population,
)
from ..records import convert, read_toml
from ..replays.replay import load_replays
from ..rules.game_rules import GameRules
from ..rules.map import Map, load_map
from ._console import make_console, print_table
from ._flags import Add, Make, Rank, Show
from ._matches import load_players, map_of, rules_of, showing_progress, write_result

RUNS = CONFIGS / "population" / "runs.toml"
# Fast on every map, where those that search are not.
MEMBER_BOTS = ("random", "hold", "chaos", "dumbbot-paquette", "dumbbot")
TOURNAMENT = {"small": 20_000, "three": 10_000, "standard": 10_000}  # games that rate a new one
OTHER_TOURNAMENT = 3_000
COPIES = 5  # policies of a run
RANKS = "ranks.json"  # of the bundled policies that are not members


def run_show(arguments: Show) -> int:
    population = _population(arguments)
    file = Path(arguments.output or f"population_{_plain(population.map.name)}.html")
    check_target(file)
    own = population.folder / RANKS
    ranks = arguments.ranks or (own if own.is_file() else None)
    ranked = ratings.read_ranks(ranks, population) if ranks else {}
    atomic_write(file, population_page(population, ranked).encode())
    others = f", and {len(ranked)} other players" if ranked else ""
    print(f"{file} shows {len(population.members)} members of {population.title}{others}")
    return 0


def run_rank(arguments: Rank) -> int:
    if bool(arguments.player) == bool(arguments.saved_games):
        raise UserError("give either --player or --saved-games")
    check_target(arguments.json)
    population = _population(arguments)
    rules = rules_of(arguments, population.rules)
    if arguments.player:
        seed, threads, ranks = arguments.seed, arguments.threads, {}
        players = load_players(arguments.player, rules.map, arguments)
        members = load_members(population, threads=threads)
        num_games = arguments.games or ratings.rank_games(population.map.name)
        played = replace(population, rules=rules)
        announce_compilation()
        for player in players:
            with showing_progress(num_games) as progress:
                how = played, player, members, num_games, progress
                ranks[player.name] = ratings.rank_player(*how, seed=seed, threads=threads)
    else:
        person, rng = arguments.person or PERSON, np.random.default_rng(arguments.seed)
        replays = [replay for file in arguments.saved_games for replay in load_replays(file)]
        ranks = {person: ratings.rank_person(population, replays, person, rng)}
    print_ranks(population, ranks, rules.map)
    result = {
        "map": population.map.name,
        **({"teams": rules.map.teams.text} if rules.map.teams.text else {}),
        "population": population.shown_folder,
        "seed": arguments.seed,
        "max_years": rules.max_years,
        "year_limit": rules.year_limit,
        "players": {name: asdict(standing) for name, standing in ranks.items()},
    }
    write_result(arguments.json, result)
    return 0


def _population(arguments: Rank | Show) -> Population:
    if arguments.population:
        game_map = load_map(arguments.map) if arguments.map else None
        return read_population(arguments.population, game_map)
    saved_games = getattr(arguments, "saved_games", ())
    if arguments.map is None and saved_games:
        game_map = load_replays(saved_games[0])[0].map
    else:
        game_map = map_of(arguments.map, getattr(arguments, "player", ()))
    return read_population(population_folder(None, game_map), game_map)


def print_ranks(
    population: Population, ranks: dict[str, ratings.PopulationRank], game_map: Map
) -> None:
    console, teams = make_console(), game_map.teams.text
    console.print(
        f"among {len(population.members)} members of {population.title} on map "
        f"{game_map.name}{teams and f', teams {teams}'}; {limit_text(vars(population.rules))}; "
        "95% intervals in brackets"
    )
    rows = []
    for name, stands in ranks.items():
        place = f"{stands.rank} of {stands.of} ({stands.best} to {stands.worst})"
        games = f"{stands.games:,}{', provisional' * (stands.games < ratings.PROVISIONAL)}"
        rows.append((name, (place, mean_text(asdict(stands)), percent(stands.share, 0), games)))
    print_table(console, "player", ("rank", "rating", "population share", "games"), rows)
    if len(ranks) > 1:
        mean = np.mean([stands.rank for stands in ranks.values()])
        console.print(f"\nmean rank of these {len(ranks)}: {mean:.1f}")


_Share = Annotated[float, Meta(ge=0, le=100)]
_Flags = dict[str, str]  # by map


class _Run(Struct):
    name: Annotated[str, Meta(pattern=r"\A[\w-]{1,60}\Z")]
    scheme: str = ""
    share: _Share = 1.0
    share_on: dict[str, _Share] = {}
    flags: str = ""
    flags_on: _Flags = {}


class _Recipe(Struct):
    runs: list[_Run]
    decisions: dict[str, Annotated[int, Meta(ge=0)]] = {}
    copies: dict[str, Annotated[int, Meta(ge=1, le=1000)]] = {}
    flags_on: _Flags = {}
    references: list[str] = []


class RecipeRun(NamedTuple):
    name: str  # begins the names of its members
    scheme: str  # in words
    folder: Path


def run_make(arguments: Make) -> int:
    game_map = load_map(arguments.map)
    if arguments.runs and not arguments.output:
        raise UserError("--runs needs --output: the folder of the new population")
    folder = Path(arguments.output or FOLDERS / game_map.name)
    _check_replaceable(folder)
    copies = arguments.copies
    if arguments.runs:
        runs = [RecipeRun(_plain(Path(run).name), "", Path(run)) for run in arguments.runs]
    else:
        path = arguments.recipe or str(RUNS)
        recipe = convert(_Recipe, read_toml(path, 1_000_000), path)
        copies = copies or recipe.copies.get(game_map.name)
        runs = list(_trained(arguments, game_map, recipe))
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        members = _packed_members(runs, copies or COPIES, arguments.map, new)
        games = arguments.games or TOURNAMENT.get(game_map.name, OTHER_TOURNAMENT)
        none, rules = np.zeros((len(members), len(members))), GameRules.of(game_map)
        population = Population(new, rules, tuple(members), games, arguments.seed, none, none)
        players = load_members(population, threads=arguments.threads)
        announce_compilation()
        with showing_progress(games) as progress:
            population = ratings.rate_members(population, players, arguments.threads, progress)
        write_population(population)
        new.chmod(0o755)
        old = new.with_name(f"{new.name}-old")
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    worst, *_, best = sorted(population.members, key=lambda member: member.rating)
    print(
        f"{len(population.members)} members in {folder}, from {best.name} ({best.rating:.1f}) "
        f"down to {worst.name} ({worst.rating:.1f})"
    )
    return 0


def run_add(arguments: Add) -> int:
    populations, path = learning_module("populations"), arguments.run
    (policy,) = populations.policies_of_run(path, 1)
    game_map = load_map(policy.settings["map"])
    population = read_population(population_folder(arguments.population, game_map), game_map)
    check_writable(population.folder)
    folder = policy_file(path).parent
    name, content = f"{_plain(folder.name)}-{policy.decisions}", pack_weights(policy.weights)
    if name in {member.name for member in population.members}:
        raise UserError(f"{population.folder} has a member {name} already")
    new = _member(game_map, name, folder.name, policy, content)
    threads = arguments.threads or usable_cores()
    members = load_members(population, threads=threads)
    weights = [{n: w.astype(np.float16).astype(np.float32) for n, w in policy.weights.items()}]
    (player,) = populations.population_players(
        population, [new], weights, greedy=False, threads=threads
    )
    games = arguments.games or ratings.rank_games(game_map.name)
    announce_compilation()
    with showing_progress(games) as progress:
        how = population, new, player, members, games, progress
        larger, stands = ratings.add_member(*how, seed=arguments.seed, threads=threads)
    atomic_write(population.folder / new.file, content)
    write_population(larger)
    print_ranks(population, {name: stands}, game_map)
    return 0


def _member(game_map: Map, name: str, scheme: str, policy: Any, content: bytes) -> PopulationMember:
    return PopulationMember(
        name,
        scheme=scheme,
        command=policy.command,
        seed=int(policy.seed),
        decisions=policy.decisions,
        file=f"{name}{MEMBER}",
        sha256=hashlib.sha256(content).hexdigest(),
        settings=policy.settings,
        probe=learning_module("populations").member_probe(
            game_map, policy.settings, policy.weights
        ),
    )


def _check_replaceable(folder: Path) -> None:
    if not folder.exists():
        return
    if not folder.is_dir() or (any(folder.iterdir()) and not (folder / POPULATION).is_file()):
        raise UserError(f"{folder} exists and is not a population: choose another folder")
    check_writable(folder)


def _packed_members(
    runs: "Iterable[RecipeRun]", copies: int, map_name: str, folder: Path
) -> list[PopulationMember]:
    populations = learning_module("populations")
    members = [PopulationMember(name) for name in MEMBER_BOTS]
    for run in runs:
        for policy in populations.policies_of_run(run.folder, copies):
            if policy.settings["map"] != map_name:
                raise UserError(f"{run.folder} is a run on map {policy.settings['map']}")
            name, content = f"{run.name}-{policy.decisions}", pack_weights(policy.weights)
            atomic_write(folder / f"{name}{MEMBER}", content)
            scheme = run.scheme or run.name
            members.append(_member(load_map(map_name), name, scheme, policy, content))
    if len({member.name for member in members}) < len(members):
        raise UserError("--runs: two folders have the same name, and so would their members")
    return members


def _trained(arguments: Make, game_map: Map, recipe: _Recipe) -> Iterator[RecipeRun]:
    full = arguments.decisions or recipe.decisions.get(game_map.name)
    if full is None:
        raise UserError(f"{arguments.recipe or RUNS}: decisions.{game_map.name}: is missing")
    for number, run in enumerate(recipe.runs, 1):
        name, decisions = run.name, round(full * run.share_on.get(game_map.name, run.share))
        if not decisions:  # not on this map
            continue
        on_map = [where.flags_on.get(game_map.name, "") for where in (recipe, run)]
        words = shlex.split(" ".join([on_map[0], run.flags, on_map[1]]))  # later ones override
        start = f"{game_map.name}__population-{name}__{number}__"
        folder = _finished(Path(arguments.runs_folder), start, decisions)
        if folder is None:
            print(f"training {name}, {number} of {len(recipe.runs)}", file=sys.stderr)
            flags = _training_flags(arguments, name, number, decisions, words)
            subprocess.run([sys.executable, "-m", "ppo_selfplay_diplomacy", *flags], check=False)
            folder = _finished(Path(arguments.runs_folder), start, decisions)
        if folder is None:
            raise UserError(f"{arguments.recipe or RUNS}: {name}: was not trained to the end")
        yield RecipeRun(_plain(name), run.scheme or name, folder)
    for name in recipe.references:
        name = name.replace("{map}", game_map.name)
        if policy_file(name).is_file():
            yield RecipeRun(_plain(name), "a reference policy", policy_file(name).parent)


def _training_flags(
    arguments: Make, name: str, number: int, decisions: int, words: list[str]
) -> list[str]:
    own = f"--map {arguments.map} --exp-name population-{name} --seed {number} --processes 1"
    own += f" --total-timesteps {decisions} --eval-interval {decisions} --eval-games 42"
    # So that copies of all ages are in the pool at the end.
    own += f" --capture-games 0 --pool-size 10 --pool-interval {max(1, decisions // 10)}"
    return [*own.split(), "--runs-folder", arguments.runs_folder, *words]


def _finished(folder: Path, start: str, decisions: int) -> Path | None:
    """A run whose folder's name has this beginning, and that has made all its decisions."""
    for path in sorted(folder.glob(f"{start}*/{CHECKPOINT}")):
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError, TypeError):
            args = json.loads(read_file(path.with_name("args.json"), 1_000_000))
            lines = read_file(path.with_name("metrics.jsonl"), 2**30).splitlines()
            if args["total_timesteps"] == decisions <= json.loads(lines[-1])["global_step"]:
                return path.parent
    return None


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)[:80]
