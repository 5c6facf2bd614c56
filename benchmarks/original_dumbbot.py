"""A player against six original DumbBots, in the engine of the `diplomacy` package.

    pip install diplomacy==1.1.2     # into an environment that has this project
    python benchmarks/original_dumbbot.py standard-0.3-2 --bot dumbbot_ruleset.py --games 140

The bot is Philip Paquette's, whose file is not ours to pass on:
github.com/diplomacy/research, diplomacy_research/players/rulesets/dumbbot_ruleset.py. It is loaded
from the given path and runs as it is, so look at what you give. Neither engine nor opponents are
ours here; all that is is the player, who has one power in each game, the powers in turn.
"""

import argparse
import importlib.util
import json
import random
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import diplomacy
import numpy as np

from diplomacy_engine import Game, load_map, load_player, orders_for
from diplomacy_engine.matches.figures import wilson_interval
from diplomacy_engine.players import Player

STANDARD = load_map("standard")
SOLO = 18  # centers


def load_bot(path: Path) -> Callable[[diplomacy.Game, str], list[str]]:
    """Return a function that gives a power's orders in a game, as the file's `run_ruleset` does.

    That one makes a copy of the game from a message of its framework, which is not needed here.
    """
    names = ["diplomacy_research"]
    names += [f"{names[0]}.models", f"{names[0]}.models.state_space"]
    for name in names:
        sys.modules[name] = types.ModuleType(name)
    sys.modules[names[-1]].build_game_from_state_proto = None
    spec = importlib.util.spec_from_file_location("original_dumbbot_ruleset", path)
    bot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bot)

    def orders(game: diplomacy.Game, power: str) -> list[str]:
        if not game.get_units(power) and not game.get_centers(power):
            return []
        return bot.decode_orders(game, power, *bot.get_board_factors(game, power))

    return orders


def position_of(game: diplomacy.Game, years: int) -> Game:
    """Return our game of the same position, with what was ordered last."""
    state = game.get_state()
    movements = [phase for phase in game.order_history if str(phase).endswith("M")]
    if movements:
        last = movements[-1]
        results = game.result_history[last].items()
        words = {unit: [str(word) for word in found if str(word)] for unit, found in results}
        state |= {"last_orders": game.order_history[last], "last_results": words}
    return Game.from_state(STANDARD, state, max_years=years)


def play_game(number: int, player: Player, bot: Callable, years: int) -> dict:
    """Play a game; return the player's power, all centers, and the phase in which it ended."""
    power = STANDARD.powers[number % len(STANDARD.powers)]
    game = diplomacy.Game(map_name="standard")
    begin = getattr(player, "begin", None)
    while not game.is_game_done and int(game.get_current_phase()[1:5]) <= 1900 + years:
        ours = position_of(game, years)
        if begin is not None and game.get_current_phase() == "S1901M":
            begin(ours.vector_game, np.array([0]))
        given = {name: bot(game, name) for name in STANDARD.powers if name != power}
        given |= orders_for(ours, player, [power])
        for name, orders in given.items():
            game.set_orders(name, orders)
        game.process()
    centers = {name: len(held) for name, held in game.get_centers().items()}
    return {"power": power, "centers": centers, "phase": game.get_current_phase()}


def figures(games: list[dict]) -> str:
    """Return solos, wins and squares of some games in words."""
    solo = win = squares = 0.0
    for game in games:
        own, others = game["centers"][game["power"]], dict(game["centers"])
        del others[game["power"]]
        solo += own >= SOLO
        win += own > max(others.values())
        total = sum(count**2 for count in game["centers"].values())
        squares += own >= SOLO or (max(others.values()) < SOLO and own**2 / total)
    count = len(games)
    low, high = (100 * end for end in wilson_interval(solo, count))
    return (
        f"{100 * solo / count:5.1f}% ({low:.1f} to {high:.1f}) solos, "
        f"{100 * win / count:5.1f}% wins, {100 * squares / count:5.1f}% of the squares"
    )


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("player", help="as for `evaluate`")
    parser.add_argument("--bot", type=Path, required=True, help="dumbbot_ruleset.py")
    parser.add_argument("--games", type=int, default=70)
    parser.add_argument("--first", type=int, default=0, help="number of the first game")
    parser.add_argument("--years", type=int, default=35)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the games to a file")
    arguments = parser.parse_args()
    bot, played, began = load_bot(arguments.bot), [], time.perf_counter()
    player = load_player(arguments.player, game_map=STANDARD, seed=arguments.seed)
    for number in range(arguments.first, arguments.first + arguments.games):
        random.seed(f"{arguments.seed} {number}")  # the bot draws from it
        played.append(play_game(number, player, bot, arguments.years))
        if arguments.json:
            arguments.json.write_text(json.dumps(played, indent=1) + "\n")
    print(f"{len(played)} games in {time.perf_counter() - began:.0f} s: {figures(played)}")
    for power in STANDARD.powers:
        own = [game for game in played if game["power"] == power]
        if own:
            print(f"  {power:8} {figures(own)}")


if __name__ == "__main__":
    main()
