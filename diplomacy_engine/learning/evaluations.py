"""Evaluations of a learner while it trains."""

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ..matches.evaluation import Evaluation, evaluate_player
from ..players.loading import load_player
from .probes import kept_generators
from .ranks import Ranks
from .run_log import RunLog
from .sample_games import thoughts
from .signals import Stopped


def evaluate(run: Any, ranks: Ranks, log: RunLog, last: bool = False, **options: Any) -> None:
    """Play the policy against each bot, a part on each rank, and log it; `last`: searches, too.
    `Stopped` where a signal comes meanwhile: then nothing is logged, and the run has not changed.
    """
    args, parts, complete = run.args, {}, False

    games = dict.fromkeys(args.eval_bots, args.eval_games)
    provinces = len(run.game_map.provinces)
    if last and provinces <= 100:  # searches of larger maps take hours
        shares = {"lookahead": 2, "mcts": 5 if provinces <= 50 else 20}  # which are slow
        more = {bot: args.eval_games // part for bot, part in shares.items() if bot not in games}
        games |= {bot: count for bot, count in more.items() if count}
        description = ", ".join(f"{count} games against {bot}" for bot, count in games.items())
        if run.game_map.name == "small":
            description += "; against a perfect player, who wins as RUSSIA, about 50% is the most"
        log.message(f"last evaluation: {description}")

    def play(number: int, name: str, count: int) -> Evaluation:
        drawn = [args.seed, run.step, number]
        seed = int(np.random.SeedSequence(drawn).generate_state(1)[0])  # of the games
        own, theirs = np.random.SeedSequence([*drawn, ranks.rank]).generate_state(2).tolist()
        player = run.setup.learner.make_player(run.average, "learner", own, settings=vars(args))
        return evaluate_player(
            run.game_map.contested(),
            player,
            load_player(name, game_map=run.game_map, seed=theirs),
            games[name],
            part=(ranks.rank, count),
            samples=args.capture_games,
            progress=log.stop.check,
            seed=seed,
            max_years=args.max_years or None,  # an evaluation needs some limit
            year_limit=args.year_limit,
            threads=1,
            **{"think": partial(thoughts, player)} | options,
        )

    with kept_generators(), suppress(Stopped):
        for number, name in enumerate(games):
            count = min(ranks.count, games[name])  # that have a game at all
            if ranks.rank < count:
                parts[name] = play(number, name, count)
        complete = True
    everywhere = ranks.gather(parts if complete else None)
    if None in everywhere:
        raise Stopped
    reports = {
        name: own.join(
            [reports_of_rank[name] for reports_of_rank in everywhere if name in reports_of_rank]
        )
        for name, own in parts.items()
    }
    log.evaluations(reports, run.step, args.eval_bots, run.setup.policy(run))
