"""`policies`: the bundled policies, and how well each plays."""

from ..matches.figures import share_text
from ..players.policy.files import policies_of, ready_policies, training_of, wins_against_dumbbot
from ..rules.map import MAP_NAMES
from ._console import make_console, print_table
from ._flags import Policies


def run_policies(arguments: Policies) -> int:
    maps = MAP_NAMES if arguments.map is None else (arguments.map,)
    names = [(game_map, name) for game_map in maps for name in policies_of(game_map)]
    rows, files = [], ready_policies()
    for game_map, name in names:
        wins = wins_against_dumbbot(files[name])
        share = "-" if wins is None else share_text(wins)
        rows.append((name, (game_map, training_of(name), share)))
    console = make_console()
    print_table(console, "name", ("map", "trained by", "wins against dumbbot"), rows)
    console.print(
        "\nOf 1,000 games with dumbbot in all other seats, every power equally often; 95% "
        "intervals in brackets."
    )
    for game_map, name in {game_map: name for game_map, name in reversed(names)}.items():
        line = f"Play the best: python -m diplomacy_engine play --map {game_map} --against {name}"
        console.print(line, soft_wrap=True)
    return 0
