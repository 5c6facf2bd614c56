"""Evaluations of a learner while it trains: searches met at the end, seeds, parts by rank."""

from collections.abc import Mapping
from functools import partial

from ..matches.evaluation import Evaluation, evaluate_player
from ..matches.match import full_rounds
from ..players.loading import load_player
from ..players.names import PlayerSpec, parse_player
from ..rules.map import Map
from ..rules.state import seed_from
from .of_scripts import Run, RunSettings
from .probes import kept_generators
from .ranks import Ranks
from .run_log import RunLog
from .sample_games import thoughts


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


def evaluate(run: Run, ranks: Ranks, log: RunLog, last: bool, options: Mapping) -> None:
    """Evaluate a run's policy against its bots, with `last` also against searches, and log it.

    `options` of `evaluate_player` replace those of the settings. A rank plays one part of the games
    against a bot, none if there are fewer games than ranks. Global random numbers are afterwards as
    before. Raises Stopped on a signal or, with its error as the cause, if a bot fails.
    """
    args, game_map = run.args, run.game_map
    bots = of_bots(args)
    games = bots | (against_searches(args, game_map, log) if last else {})

    def play() -> dict[PlayerSpec, Evaluation]:
        parts = {}
        for number, (bot, count) in enumerate(games.items()):
            num_parts = min(ranks.count, count)
            if ranks.rank >= num_parts:
                continue
            player = run.setup.learner.make_player(run.average, "learner", settings=vars(args))
            settings = {
                "max_years": args.max_years or None,  # an evaluation needs some limit
                "year_limit": args.year_limit,
                "samples": args.capture_games,
                "think": partial(thoughts, player),
                "progress": log.stop.check,
                "threads": 1,
                **options,
                "num_games": count,
                "part": (ranks.rank, num_parts),
                "seed": seed_from(args.seed, run.step, number) >> 1,
            }
            opponent = load_player(bot, game_map=game_map)
            parts[bot] = evaluate_player(game_map.contested(), player, opponent, **settings)
        return parts

    with kept_generators():
        everywhere = ranks.all_or_stop(play)
    reports = {
        bot: report.join([of_rank[bot] for of_rank in everywhere if bot in of_rank])
        for bot, report in everywhere[0].items()
    }
    log.evaluations(reports, run.step, [*bots], run.setup.policy(run))
