"""`evaluate`: plays one player as every power against copies of another."""

from collections.abc import Iterator, Mapping

from rich.console import Console

from .._progress import label
from ..matches.evaluation import evaluate_player
from ..matches.figures import limit_text, mean_text, percent, share_text
from ..scoring.outcomes import FIGURES, RATES
from . import _console, _matches
from ._flags import Evaluate


def run_evaluate(arguments: Evaluate) -> int:
    return _matches.run_match(
        arguments,
        (arguments.player, arguments.against),
        lambda powers: (1, powers - 1),
        lambda match, pair, games, **options: evaluate_player(
            match, pair[0], pair[1], games, **options
        ),
        print_evaluation,
        _figures,
        rounds_up=True,
    )


def _figures(result: dict) -> Iterator[tuple]:
    parts = {"": result["overall"]} | _matches.by_team_and_power(result)
    return _matches.figure_rows(result["player"], result["against"], parts)


def print_evaluation(console: Console, result: dict) -> None:
    manner = "greedy" if result["greedy"] else "sampled orders"
    overall, by_power = {"all seats": result["overall"]}, result["by_power"]
    by_team, orders = result.get("by_team", {}), result["orders"]
    par = result.get("par", {})
    console.print(
        f"{result['player']} against {result['against']} on map {result['map']}: "
        f"{result['games']:,} games, seed {result['seed']}; {limit_text(result)}; {manner}; 95% "
        "intervals in brackets"
    )
    if by_team:
        overall = {"all teams": result["overall"]}
        victory = f", victory with {result['team_victory']} centers" * (result["team_victory"] > 0)
        console.print(
            f"teams {result['teams']}{victory}: {percent(orders.get('ally_support', 0))} of "
            "supports and convoys are for an ally's unit, "
            f"{percent(orders.get('ally_attack', 0))} of moves go against an ally"
            + "; the first player plays all powers and has no opponent"
            * (len(by_team) == 1)
        )
    sides = by_team or by_power
    few = len(sides) <= 2
    _print_figures(console, overall | sides if few else overall, True, par if few else {})
    if not few:
        _print_figures(console, sides, False, par)
    if by_team:
        _print_figures(console, by_power, False, {})
    notes = _console.notes_on_wins([result["overall"]])
    if par:
        where = f"in {par['games']:,} games with copies of it in all seats"
        notes.insert(0, f"par: the result of {par['player']} in that seat, {where}")
    console.print("\n" + "\n".join(notes))


def _print_figures(
    console: Console, columns: dict[str, dict], intervals: bool, par: Mapping[str, dict]
) -> None:
    """Print FIGURES, without those that say the same as another by rule; below one its par."""
    same = {"elimination"}  # 1 - survival
    if _console.no_draws(columns.values()):
        same |= {"solo", "most_centers"}
    rows = []
    for name in FIGURES:
        if name in same:
            continue
        texts = [_figure_text(name, figures[name], intervals) for figures in columns.values()]
        rows.append((label(name), texts))
        if name in par:
            shares = (par[name].get(column) for column in columns)
            rows.append(("  par", ["" if share is None else percent(share) for share in shares]))
    _console.print_table(console, "figure", list(columns), rows)


def _figure_text(figure: str, estimate: dict[str, float], interval: bool) -> str:
    if figure in RATES:
        return share_text(estimate) if interval else percent(estimate["value"])
    return mean_text(estimate, 3) if interval else f"{estimate['value']:.3f}"
