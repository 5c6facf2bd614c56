"""`python -m diplomacy_engine tournament`: ratings, a cross table, results per power."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from ..matches.figures import limit_text, mean_text, share_text
from ..matches.tournament import play_tournament
from . import _console, _matches
from ._flags import Tournament


def run_tournament(arguments: Tournament) -> int:
    names = arguments.players
    return _matches.run_match(
        arguments,
        names,
        lambda powers: [powers / len(names)] * len(names),
        play_tournament,
        print_tournament,
        _figures,
    )


def _figures(result: dict) -> Iterator[tuple]:
    for name, entry in result["players"].items():
        overall = {"rating": entry["rating"]} | entry["overall"]
        yield from _matches.figure_rows(name, "", {"": overall} | _matches.by_team_and_power(entry))
    for name, row in result["cross_table"].items():
        for other, pair in row.items():
            shares = {figure: pair[figure] for figure in ("above", "solos")} if pair else {}
            yield from _matches.figure_rows(name, other, {"": shares})


def print_tournament(console: Console, result: dict) -> None:
    players = result["players"]
    manner = "greedy" if result["greedy"] else "sampled orders"
    console.print(
        f"{len(players)} players on map {result['map']}: {result['games']:,} games, seed "
        f"{result['seed']}; {limit_text(result)}; {manner}; 95% intervals in brackets"
        + (f"; teams {result['teams']}" if "teams" in result else "")
    )
    labels = {name: f"{number} {name}" for number, name in enumerate(players, 1)}
    solos = not _console.no_draws(standing["overall"] for standing in players.values())
    rates = ("solo", "win") if solos else ("win",)
    columns = "rating", "sigma", "bootstrap", "seats", *rates, "centers", "rank"
    ratings = []
    for name, standing in players.items():
        rating, overall = standing["rating"], standing["overall"]
        cells = (
            mean_text(rating),
            f"{rating['sigma']:.2f}",
            f"{rating['bootstrap']:.2f}",
            f"{standing['seats']:,}",
            *(share_text(overall[rate]) for rate in rates),
            f"{overall['centers']['value']:.2f}",
            f"{overall['rank']['value']:.2f}",
        )
        ratings.append((labels[name], cells))
    _console.print_table(console, "player", columns, ratings)
    notes = [
        "sigma, bootstrap: the rating's standard error by the rating model, and by resampling "
        "the games; the interval uses the larger one",
        *_console.notes_on_wins([standing["overall"] for standing in players.values()]),
    ]
    console.print("\n" + "\n".join(notes))
    powers = {power for standing in players.values() for power in standing["by_power"]}
    numbers = [str(number) for number in range(1, len(players) + 1)]
    for title, figure in (("ends above", "above"), ("solos", "solos")):
        if figure == "solos" and not solos and len(powers) == 2:
            continue  # the one above the other has the solo
        rows = [
            (labels[name], ["" if p == name else _cell(row[p], figure) for p in players])
            for name, row in result["cross_table"].items()
        ]
        _console.print_table(console, "player", numbers, rows, f"{title}, of shared games")
    for key, side in (("by_team", "team"), ("by_power", "power")):
        sides = {name: standing[key] for name, standing in players.items() if key in standing}
        columns = list(dict.fromkeys(side for standing in sides.values() for side in standing))
        rows = [
            (labels[name], [_power_cell(standing.get(side), rates) for side in columns])
            for name, standing in sides.items()
        ]
        if rows:
            title = f"by {side}: {'% / '.join(rates)}% / centers / rank"
            _console.print_table(console, "player", columns, rows, title)


def _power_cell(figures: dict[str, dict] | None, rates: Sequence[str]) -> str:
    if figures is None:  # of a tournament that broke off
        return "-"
    shares = [f"{100 * figures[rate]['value']:.0f}" for rate in rates]
    return " / ".join(shares + [f"{figures[mean]['value']:.1f}" for mean in ("centers", "rank")])


def _cell(pair: dict | None, figure: str) -> str:
    return "-" if pair is None else share_text(pair[figure])
