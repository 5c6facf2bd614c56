"""Does talk help? k negotiators among silent copies of the same order player.

    python tests/benchmarks/negotiators.py --kind nash --press mutual --games 504

Seats are drawn anew for each game. The advantage is the sum of squares (scoring/outcomes.py) that a
negotiator gets, over what a silent power of the same games gets, with a 95 % interval from 1,000
resamples of the games. Beside it stands the same ratio of the same seats in games of the same seeds
in which nobody talks: what it would be by luck alone.
"""

import argparse
import json
import sys

import numpy as np

from diplomacy_engine import load_map, load_player
from diplomacy_engine.matches.arena import play_tables
from diplomacy_engine.press.table import PROTOCOLS, PressRules, TalkCounter
from diplomacy_engine.scoring.outcomes import figure_values

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
    parser.add_argument("--kind", default="nash", help="the negotiator (default: nash)")
    parser.add_argument("--player", default="dumbbot", help="gives the orders (default: dumbbot)")
    parser.add_argument("--press", default="mutual", choices=PROTOCOLS)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--map", default="standard")
    parser.add_argument("--games", type=int, default=504)
    parser.add_argument("--talkers", type=int, nargs="+", default=[1, 2, 4, 6])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-years", type=int)
    arguments = parser.parse_args()
    game_map = load_map(arguments.map)
    powers = len(game_map.powers)
    silent = load_player(f"silent+{arguments.player}", game_map=game_map)
    talker = load_player(f"{arguments.kind}+{arguments.player}", game_map=game_map)
    for k in arguments.talkers:
        rng = np.random.default_rng([arguments.seed, k])
        seats = np.array([rng.permutation(powers) for _ in range(arguments.games)])
        talks = seats < k
        talk = TalkCounter(PressRules(arguments.press, arguments.rounds))
        found = {"kind": arguments.kind, "press": arguments.press, "talkers": k}
        for name, table, counter in (
            ("talk", (~talks).astype(np.int8), talk),
            ("silence", np.ones_like(talks, np.int8), None),
        ):
            outcomes, _ = play_tables(
                game_map,
                (talker, silent),
                table,
                arguments.seed,
                arguments.max_years,
                talk=counter,
            )
            values = figure_values(outcomes, game_map.board.victory_centers)
            found[name] = ratio(values["sum_of_squares"], talks, rng)
            found |= {
                f"{name}_{figure}": [
                    float(values[figure][talks].mean()),
                    float(values[figure][~talks].mean()),
                ]
                for figure in FIGURES
            }
        found["per_game"] = {
            key: value for key, value in talk.figures().items() if isinstance(value, float)
        }
        low, high = found["talk"][1:]
        print(
            f"{arguments.kind} {arguments.press} {k} of {powers}: advantage "
            f"{found['talk'][0]:.2f} ({low:.2f} - {high:.2f}), in silence "
            f"{found['silence'][0]:.2f}; agreed {found['per_game']['agreed']:.1f} a game",
            file=sys.stderr,
        )
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
