"""`check-reward`: whether a reward makes powers rivals, partners, or something between."""

from rich.console import Console

from .._compilation import announce_compilation
from .._files import check_target
from ..matches.figures import limit_text
from ..matches.reward_schemes import SCHEMES, check_reward
from ..players.loading import load_player
from ._console import make_console, print_table
from ._flags import CheckReward
from ._matches import map_of, match_settings_of, showing_progress, write_result


def run_check_reward(arguments: CheckReward) -> int:
    check_target(arguments.json)
    settings = match_settings_of(arguments, map_of(arguments.map, arguments.players))
    players = [
        load_player(name, game_map=settings.game_map, script=arguments.script, greedy=True)
        for name in arguments.players
    ]
    announce_compilation()
    with showing_progress(arguments.pairs) as progress:
        result = check_reward(settings, arguments.reward, players, arguments.pairs, progress)
    print_schemes(make_console(), result)
    write_result(arguments.json, result)
    return 0


def print_schemes(console: Console, result: dict) -> None:
    teams = f", teams {result['teams']}" if "teams" in result else ""
    console.print(
        f"reward {result['reward']} on map {result['map']}{teams}: {result['pairs']:,} pairs of "
        f"games of {', '.join(result['players'])}, seed {result['seed']}; "
        f"{limit_text(result)}"
    )
    several = len({check["progress"] for check in result["checks"]}) > 1
    rows = []
    for check in result["checks"]:
        among = check["among"] + f", at {check['progress']:.0%} of training" * several
        sums = f"{check['low']:.4g} to {check['high']:.4g}", f"{check['sum_change']:.4g}"
        shares = f"{check['conflict']:.1%}", f"{check['common']:.1%}"
        rows.append((among, (check["scheme"], *sums, *shares)))
    columns = "scheme", "sum of rewards", "largest change of it", "pairs in conflict", "in common"
    print_table(console, "among", columns, rows)
    for check, (among, _) in zip(result["checks"], rows):
        index = SCHEMES.index(check["scheme"])
        if index < len(SCHEMES) - 1:
            line = f"nothing contradicts {check['scheme']} in {check['pairs']:,} pairs of games"
            console.print(f"\n{among}: {line}")
        # A social dilemma is neither competitive nor collaborative, and so has two to show.
        for scheme in SCHEMES[max(0, index - 1 - (index == len(SCHEMES) - 1)) : index]:
            pair = check["against"][scheme]
            what = f"not {scheme} by pair {pair['pair']}, game seed {pair['seed']}"
            console.print(f"\n{among}: {what}, with {pair['instead']} as {pair['power']}")
