"""`policies`: the trained policies that are included, and how well each plays."""

import argparse

from ..errors import UserError
from ..matches.texts import share_text
from ..players.policy_files import ready_policies, training_of, wins_against_dumbbot
from ..rules.map import MAP_NAMES
from ._console import make_console, print_table


def add_policies(commands) -> None:
    """Describe `policies`."""
    parser = commands.add_parser(
        "policies",
        help="list the trained policies that are included",
        description="List the trained policies that come with this package, best first. Type "
        "a name wherever a command wants a PLAYER; fast:NAME searches with it, and plays better.",
        examples=("", "--map standard"),
    )
    parser.add_argument("--map", choices=MAP_NAMES, help="those of one map (default: all)")
    parser.set_defaults(run=run_policies)


def run_policies(arguments: argparse.Namespace) -> int:
    """Print the list."""
    found = []
    for name, file in ready_policies().items():
        game_map = name.split("-")[0]
        if arguments.map in (None, game_map):
            found.append((game_map, name, training_of(name), wins_against_dumbbot(file)))
    if not found:
        raise UserError("this installation has no trained policies")
    found.sort(key=lambda row: (MAP_NAMES.index(row[0]), -(row[3] or {"value": 0})["value"]))
    rows = [
        (name, (game_map, trained, "-" if wins is None else share_text(wins)))
        for game_map, name, trained, wins in found
    ]
    console = make_console()
    print_table(console, "name", ("map", "trained by", "wins against dumbbot"), rows)
    game_map = found[-1][0]
    name = next(row[1] for row in found if row[0] == game_map)  # the best there
    console.print(
        "\nOf 1,000 games with dumbbot in all other seats, every power equally often; in brackets "
        "95% intervals.",
        markup=False,
    )
    console.print(
        f"Play one: python -m diplomacy_engine play --map {game_map} --against {name}",
        markup=False,
        soft_wrap=True,
    )
    return 0
