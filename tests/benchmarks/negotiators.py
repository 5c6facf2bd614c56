"""Does talk help? k negotiators among silent copies of the same order player.

    python tests/benchmarks/negotiators.py --kinds nash coin --press mutual --games 504

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
    parser.add_argument("--kinds", nargs="+", default=["nash", "coin"], help="the negotiators")
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
    powers, games, rules = len(game_map.powers), arguments.games, PressRules(arguments.press)

    def play(kind: str, table: np.ndarray, talk: TalkCounter | None) -> dict[str, np.ndarray]:
        names = (f"{name}+{arguments.player}" for name in (kind, "silent"))
        players = [load_player(name, game_map=game_map) for name in names]
        seats, years = table.astype(np.int8), arguments.max_years
        outcomes, _ = play_tables(game_map, players, seats, arguments.seed, years, talk=talk)
        return figure_values(outcomes, game_map.board.victory_centers)

    silence = play("silent", np.ones((games, powers)), None)
    for k, kind in ((k, kind) for k in arguments.talkers for kind in arguments.kinds):
        rng = np.random.default_rng([arguments.seed, k])
        talks = np.array([rng.permutation(powers) for _ in range(games)]) < k
        talk = TalkCounter(rules._replace(rounds=arguments.rounds))
        found = {"kind": kind, "press": arguments.press, "talkers": k, "games": games}
        for name, values in (("talk", play(kind, ~talks, talk)), ("silence", silence)):
            found[name] = ratio(values["sum_of_squares"], talks, rng)
            for figure in FIGURES:
                means = [float(values[figure][who].mean()) for who in (talks, ~talks)]
                found[f"{name}_{figure}"] = means
        said = talk.figures()
        found["per_game"] = {name: mean for name, mean in said.items() if isinstance(mean, float)}
        value, low, high = found["talk"]
        print(
            f"{kind} {arguments.press} {k} of {powers}: advantage {value:.2f} ({low:.2f} - "
            f"{high:.2f}), in silence {found['silence'][0]:.2f}; {said['agreed']:.1f} deals a game",
            file=sys.stderr,
        )
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
