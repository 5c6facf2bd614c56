"""Evaluations of a learner while it trains: searches met at the end, seeds, parts by rank."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..errors import UserError
from ..matches.evaluation import Evaluation
from ..matches.match import full_rounds
from ..players.names import PlayerSpec, parse_player
from ..players.protocols import Player
from ..rules.map import Map
from ..rules.state import seed_from
from .checks import RunSettings
from .probes import kept_generators
from .ranks import Ranks
from .run_log import RunLog
from .sample_games import thoughts
from .signals import Stopped


def of_bots(args: RunSettings) -> dict[PlayerSpec, int]:
    """Return how many games each evaluation has against each bot."""
    return dict.fromkeys(map(parse_player, args.eval_bots), args.eval_games)


def against_searches(args: RunSettings, game_map: Map, log: RunLog) -> dict[PlayerSpec, int]:
    """Return the number of games of the last evaluation against each search, and print it."""
    games, provinces, more = of_bots(args), len(game_map.provinces), {}
    if provinces <= 100:  # searches of larger maps take hours
        shares = {"lookahead": 2, "mcts": 5 if provinces <= 50 else 20}  # which are slow
        counts = {parse_player(bot): args.eval_games // part for bot, part in shares.items()}
        more = {bot: count for bot, count in counts.items() if count and bot not in games}
        sides = len(game_map.contested().teams.names)
        described = (games | more).items()
        text = ", ".join(
            f"{full_rounds(n, sides)} games against {bot.text}" for bot, n in described
        )
        if game_map.name == "small":
            text += "; about 50% is the most against a perfect player, which wins as RUSSIA"
        log.message(f"last evaluation: {text}")
    return more


def match_settings(args: RunSettings, player: Player, log: RunLog) -> dict[str, Any]:
    """Return settings of `evaluate_player`: game length, sample games with thoughts, and an end on
    a signal."""
    return {
        "max_years": args.max_years or None,  # an evaluation needs some limit
        "year_limit": args.year_limit,
        "samples": args.capture_games,
        "think": partial(thoughts, player),
        "progress": log.stop.check,
        "threads": 1,
    }


def on_all_ranks(
    play: Callable[[PlayerSpec, int, tuple[int, int]], Evaluation],
    games: Mapping[PlayerSpec, int],
    entropy: tuple[int, ...],
    ranks: Ranks,
) -> dict[PlayerSpec, Evaluation]:
    """Return the reports of `games` against bots, joined over all ranks.

    `play(bot, seed, (k, n))` plays part k of n of the games against a bot; a rank has none where
    there are fewer games than ranks. `entropy`: numbers that the seed depends on. `Stopped` where a
    signal comes meanwhile, or, with its error as the cause, a bot fails. Global random numbers are
    afterwards as before.
    """
    parts, failure = {}, None
    with kept_generators():
        try:
            for number, (bot, count) in enumerate(games.items()):
                num_parts = min(ranks.count, count)
                if ranks.rank < num_parts:
                    seed = seed_from(*entropy, number) >> 1
                    parts[bot] = play(bot, seed, (ranks.rank, num_parts))
        except (Stopped, UserError) as error:
            failure = error
    everywhere = ranks.gather((parts, failure))
    for _, failure in everywhere:
        if failure is not None:
            raise Stopped from failure
    return {
        bot: report.join([of_rank[bot] for of_rank, _ in everywhere if bot in of_rank])
        for bot, report in parts.items()
    }
