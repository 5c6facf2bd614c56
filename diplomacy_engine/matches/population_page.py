"""A page of a population: its ladder, its members, and the cross table."""

import re
from collections.abc import Callable, Collection, Mapping
from html import escape
from typing import NamedTuple

import numpy as np

from ..pictures.matrix import matrix_svg
from ..pictures.page import content_policy, filled, web_file
from ..players.bots import BOTS
from ..players.policy.files import ready_policies, training_of
from ..players.population import Population, PopulationMember
from .figures import Z, limit_text, mean_text
from .population import PopulationRank


class _Member(NamedTuple):
    name: str
    kind: str  # "bot", "ready" for a bundled policy, or neither
    scheme: str  # how it was trained
    typed: str  # where a command wants a player; empty where that is not known
    rating: dict[str, float]  # value, low and high
    decisions: int = 0
    command: str = ""  # that trained it


def _shown_member(member: PopulationMember, folder: str, ready: Collection[str]) -> _Member:
    name, typed = member.name.removesuffix(f"-{member.decisions}"), f"{folder}/{member.file}"
    kind = "" if member.file else "bot"
    if name in ready:
        kind = "ready"
    elif member.file:
        name = name.replace("-", " ")
    spread = Z * member.sigma
    rating = {"value": member.rating, "low": member.rating - spread, "high": member.rating + spread}
    typed = typed if member.file and not kind else name
    scheme = training_of(name) if kind == "ready" else member.scheme if kind == "" else ""
    start = re.search(r"--start-from (\S+)", member.command)
    if start and kind == "":
        scheme += f", begun with {start[1]}"
    return _Member(name, kind, scheme, typed, rating, member.decisions, member.command)


def _members(population: Population, ranked: Mapping[str, PopulationRank]) -> list[_Member]:
    ready = ready_policies()
    members = [_shown_member(each, population.shown_folder, ready) for each in population.members]
    for name, stands in ranked.items():
        rating = {"value": stands.value, "low": stands.low, "high": stands.high}
        kind = "ready" if name in ready else "bot" if name in BOTS else ""
        scheme = training_of(name) if kind == "ready" else ""
        members.append(_Member(name, kind, scheme, name if kind else "", rating))
    return sorted(members, key=lambda shown: -shown.rating["value"])


def _ladder(members: list[_Member]) -> str:
    low = min(shown.rating["low"] for shown in members)
    high = max(low + 1, *(shown.rating["high"] for shown in members))

    def x(rating: float) -> float:
        return 2 + 96 * (rating - low) / (high - low)

    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000, 1e6, 1e9) if (high - low) / s <= 8)
    ticks = "".join(
        f'<span style="left:{x(tick):.1f}%">{tick:g}</span>'
        for tick in np.arange(np.ceil(low / step) * step, high, step)
    )
    return f"""<table><thead><tr><th class="number">#</th>
<th data-key="find">member</th><th class="bar"><div>{ticks}</div></th>
<th class="number" data-key="rating" aria-sort="descending">rating</th>
<th data-key="scheme">how it was trained</th>
<th class="number" data-key="decisions">decisions</th></tr></thead>
<tbody>{"".join(_row(place, shown, x) for place, shown in enumerate(members, 1))}</tbody></table>"""


def _row(place: int, shown: _Member, x: Callable[[float], float]) -> str:
    """`x` says where a rating lies, in percent of the bar's width."""
    value, low, high = (x(shown.rating[name]) for name in ("value", "low", "high"))
    kind = {"bot": "bot", "ready": "included"}.get(shown.kind, "")
    badge = f' <span class="kind">{kind}</span>' if kind else ""
    words = {"As a player:": shown.typed, "Trained by": shown.command}
    details = (f"<p>{what} <code>{escape(text)}</code></p>" for what, text in words.items() if text)
    rating, _, interval = mean_text(shown.rating).partition(" ")
    name, scheme = escape(shown.name), escape(shown.scheme)
    decisions = f"{shown.decisions:,}" if shown.decisions else ""
    return f"""<tr class="{shown.kind}" data-find="{f"{name} {kind} {scheme}".lower()}"
data-rating="{shown.rating["value"]:.3f}" data-scheme="{scheme}" data-decisions="{shown.decisions}">
<td class="place number">{place}</td>
<td class="name"><details><summary>{name}{badge}</summary>
{"".join(details)}</details></td>
<td class="bar"><div><i style="left:{low:.1f}%;width:{high - low:.1f}%"></i>
<b style="left:{value:.1f}%"></b></div></td>
<td class="rating number">{rating} <span class="interval">{interval}</span></td>
<td class="scheme" data-after="{f", {decisions} decisions" if decisions else ""}">{scheme}</td>
<td class="decisions number">{decisions}</td></tr>
"""


def population_page(
    population: Population, ranked: Mapping[str, PopulationRank] | None = None
) -> str:
    """Return the page of a population, whose own script alone runs; `ranked`: others by name."""
    title = f"Base population of map {population.map.name}"
    style, script = (web_file(f"population.{kind}", __package__) for kind in ("css", "js"))
    with np.errstate(invalid="ignore"):
        shares = np.where(population.met > 0, population.above / population.met, np.nan)
    matrix = matrix_svg([member.name for member in population.members], shares)
    spread = 25 / 6 * len(population.map.powers) ** 0.5
    return filled(
        web_file("population.html", __package__),
        policy=content_policy(script),
        title=escape(title),
        style=web_file("page.css") + style,
        members=str(len(population.members)),
        games=f"{population.games:,}",
        seed=str(population.seed),
        limit=limit_text(vars(population.rules)),
        spread=f"{spread:.1f}",
        ladder=_ladder(_members(population, ranked or {})),
        matrix=matrix,
        script=script,
    )
