"""Does talk help? k negotiators among silent copies of the same order player.

    python tests/benchmarks/negotiators.py --kinds nash coin --press mutual --games 504
    python tests/benchmarks/negotiators.py --kinds breaker nash --among nash --talkers 1 \
        --press offers --binding no

Seats are drawn anew for each game. The advantage is the sum of squares (scoring/outcomes.py) that a
negotiator gets, over what another power of the same games gets, with a 95% interval from 1,000
resamples of the games. Beside it stands the same ratio of the same seats in games of the same seeds
in which nobody talks: what it would be by luck alone. With --among the others talk, too.
"""

import argparse
import json
import sys

import numpy as np

from diplomacy_engine import load_map, load_player
from diplomacy_engine.matches.report import MatchReport
from diplomacy_engine.matches.settings import MatchSettings
from diplomacy_engine.matches.tables import play_tables
from diplomacy_engine.press.table import PROTOCOLS, PressRules

FIGURES = ("sum_of_squares", "win", "solo", "loss")
RESAMPLES = 1000


def ratio(values: np.ndarray, talks: np.ndarray, rng: np.random.Generator) -> list[float]:
    """Return value, low and high of what those who talk get over what the others get."""
    ours = (values * talks).sum(1) / talks.sum(1)
    theirs = (values * ~talks).sum(1) / (~talks).sum(1)
    rows = rng.integers(len(ours), size=(RESAMPLES, len(ours)))
    drawn = ours[rows].sum(1) / np.maximum(theirs[rows].sum(1), 1e-12)
    return [float(ours.sum() / max(theirs.sum(), 1e-12)), *np.percentile(drawn, (2.5, 97.5))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=["nash", "coin"], help="the negotiators")
    parser.add_argument("--among", default="silent", help="the others (default: silent)")
    parser.add_argument("--player", default="dumbbot", help="gives the orders (default: dumbbot)")
    parser.add_argument("--press", default="mutual", choices=PROTOCOLS)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--binding", default="yes", choices=("yes", "no"))
    parser.add_argument("--map", default="standard")
    parser.add_argument("--games", type=int, default=504)
    parser.add_argument("--talkers", type=int, nargs="+", default=[1, 2, 4, 6])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-years", type=int)
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    game_map = load_map(arguments.map)
    powers, games = len(game_map.powers), arguments.games
    rules = PressRules(arguments.press, arguments.rounds, arguments.binding == "yes")

    def play(kind: str, table: np.ndarray, press: PressRules | None) -> MatchReport:
        others = arguments.among if press else "silent"
        names = (f"{name}+{arguments.player}" for name in (kind, others))
        players = [load_player(name, game_map=game_map) for name in names]
        settings = MatchSettings(
            game_map,
            seed=arguments.seed,
            max_years=arguments.max_years,
            threads=arguments.threads,
            press=press,
        )
        return play_tables(settings, players, table.astype(np.int8))

    silence, _ = play("silent", np.ones((games, powers)), None).figures()
    for k, kind in ((k, kind) for k in arguments.talkers for kind in arguments.kinds):
        rng = np.random.default_rng([arguments.seed, k])
        talks = np.array([rng.permutation(powers) for _ in range(games)]) < k
        report = play(kind, ~talks, rules)
        found = {"kind": kind, "among": arguments.among, "talkers": k, "games": games}
        found |= rules._asdict()
        for name, values in (("talk", report.figures()[0]), ("silence", silence)):
            found[name] = ratio(values["sum_of_squares"], talks, rng)
            for figure in FIGURES:
                means = [float(values[figure][who].mean()) for who in (talks, ~talks)]
                found[f"{name}_{figure}"] = means
        said = report.talk.figures()
        found["per_game"] = {name: mean for name, mean in said.items() if isinstance(mean, float)}
        found["kept_by_player"] = said["kept_by_player"]
        value, low, high = found["talk"]
        kept = " and ".join(f"{100 * share:.1f}%" for share in said["kept_by_player"])
        print(
            f"{kind} {rules.protocol} {k} of {powers} among {arguments.among}: advantage "
            f"{value:.2f} ({low:.2f} - {high:.2f}), in silence {found['silence'][0]:.2f}; "
            f"{said['agreed']:.1f} deals a game, {kept} of the words kept",
            file=sys.stderr,
        )
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
