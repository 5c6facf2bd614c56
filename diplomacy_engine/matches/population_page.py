"""A page of a population: its ladder, what every member is, and who ends above whom."""

import re
from collections.abc import Callable, Collection, Mapping
from html import escape
from typing import NamedTuple

import numpy as np

from ..pictures.matrix import matrix_svg
from ..pictures.page import content_policy, web_file
from ..players.bots import BOTS
from ..players.policy_files import ready_policies, training_of
from ..players.population import Population, PopulationMember
from .figures import Z, limit_text, mean_text
from .population import Standing

# What the ladder adds to the style of all pages.
_STYLE = """\
body { margin: 1rem auto; max-width: 110rem; padding: 0 1rem; }
p { max-width: 60rem; margin: .6rem 0; }
input { width: min(100%, 24rem); }
table { font-size: 14px; }
td, th { vertical-align: top; padding: 3px 12px 3px 0; border-bottom: 1px solid var(--line); }
th button.link { min-height: 0; }
th[aria-sort] button { text-decoration: underline; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.scheme, .interval, .place, .bot .kind { color: var(--quiet); }
.kind { font-size: 11px; padding: 0 5px; border: 1px solid; border-radius: 8px;
  margin-left: 6px; white-space: nowrap; }
.ready .kind, .ready summary { color: var(--main); }
.ready summary { font-weight: 600; }
td.name { white-space: nowrap; line-height: inherit; }
details p { font-size: 12px; white-space: normal; }
td.scheme { white-space: normal; }
td.bar { width: 34%; }
.bar div { position: relative; height: 18px; }
.bar i { position: absolute; top: 8px; height: 3px; background: var(--quiet); }
.bar b { position: absolute; top: 5px; width: 9px; height: 9px; margin-left: -4px;
  border-radius: 50%; background: var(--quiet); }
.ready .bar i, .ready .bar b { background: var(--main); }
.bar span { position: absolute; transform: translateX(-50%); font-size: 11px; }
.wide { overflow-x: auto; }  /* on a phone it is moved aside, not squeezed */
svg { width: 100%; min-width: 36rem; max-width: 60rem; height: auto; background: #fff; }
@media (max-width: 640px) {
  thead { display: none; }
  table, tbody { display: block; }
  tr { display: grid; grid-template-columns: 2rem 1fr auto; padding: 3px 0;
    border-bottom: 1px solid var(--line); }
  td { border: 0; padding: 0 6px 0 0; }
  td.decisions, td.scheme:empty, .interval { display: none; }
  td.name { white-space: normal; }
  .bar div { height: 12px; } .bar i { top: 5px; } .bar b { top: 2px; }
  td.bar { grid-column: 1 / 4; grid-row: 2; width: auto; padding: 0; }
  td.scheme { grid-column: 2 / 4; grid-row: 3; text-align: left; font-size: 12px; }
  td.scheme::after { content: attr(data-after); }
}
"""

# Sorts by a click on a heading, and finds rows by their words. Without it the page is whole.
_SCRIPT = """\
const body = document.querySelector("tbody"), rows = [...body.rows];
const find = document.querySelector("input");
find.parentElement.hidden = false;
find.addEventListener("input", () => {
  const words = find.value.toLowerCase().split(" ");
  for (const row of rows) row.hidden = !words.every(word => row.dataset.find.includes(word));
});
for (const heading of document.querySelectorAll("th[data-key]")) {
  const button = document.createElement("button");
  button.className = "link";
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => {
    const key = heading.dataset.key, text = key === "find";
    const before = heading.getAttribute("aria-sort");
    const up = before ? before === "descending" : text;
    for (const other of document.querySelectorAll("th")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const order = (a, b) => text ? a.dataset[key].localeCompare(b.dataset[key])
      : a.dataset[key] - b.dataset[key];
    body.append(...rows.sort((a, b) => up ? order(a, b) : order(b, a)));
  });
}
"""


class _Rung(NamedTuple):
    """A player on the ladder."""

    name: str
    kind: str  # "bot", "ready" for a policy that comes along, or neither
    scheme: str  # how it was trained
    typed: str  # where a command wants a player
    rating: dict[str, float]  # value, low and high
    decisions: int = 0
    command: str = ""  # that trained it


def _rung(member: PopulationMember, folder: str, ready: Collection[str]) -> _Rung:
    """Return a member: policies that come along (`ready`) and bots by their own names, others by
    what their training is called.
    """
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
    return _Rung(name, kind, scheme, typed, rating, member.decisions, member.command)


def _rungs(population: Population, ranked: Mapping[str, Standing]) -> list[_Rung]:
    """Return members and ranked players, the best first."""
    ready = ready_policies()
    rungs = [_rung(member, population.shown_folder, ready) for member in population.members]
    for name, stands in ranked.items():
        rating = {"value": stands.value, "low": stands.low, "high": stands.high}
        kind = "ready" if name in ready else "bot" if name in BOTS else ""
        scheme = training_of(name) if kind == "ready" else ""
        rungs.append(_Rung(name, kind, scheme, name, rating))
    return sorted(rungs, key=lambda rung: -rung.rating["value"])


def _ladder(rungs: list[_Rung]) -> str:
    """Return the ladder as a table."""
    low = min(rung.rating["low"] for rung in rungs)
    high = max(low + 1, *(rung.rating["high"] for rung in rungs))

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
<tbody>{"".join(_row(place, rung, x) for place, rung in enumerate(rungs, 1))}</tbody></table>"""


def _row(place: int, rung: _Rung, x: Callable[[float], float]) -> str:
    """Return a row of the ladder; `x` says where a rating lies, in percent of the bar's width."""
    value, low, high = (x(rung.rating[name]) for name in ("value", "low", "high"))
    kind = {"bot": "bot", "ready": "included"}.get(rung.kind, "")
    badge = f' <span class="kind">{kind}</span>' if kind else ""
    trained = f"<p>Trained by <code>{escape(rung.command)}</code></p>" if rung.command else ""
    rating, _, interval = mean_text(rung.rating).partition(" ")
    name, scheme = escape(rung.name), escape(rung.scheme)
    decisions = f"{rung.decisions:,}" if rung.decisions else ""
    return f"""<tr class="{rung.kind}" data-find="{f"{name} {kind} {scheme}".lower()}"
data-rating="{rung.rating["value"]:.3f}" data-scheme="{scheme}" data-decisions="{rung.decisions}">
<td class="place number">{place}</td>
<td class="name"><details><summary>{name}{badge}</summary>
<p>As a player: <code>{escape(rung.typed)}</code></p>{trained}</details></td>
<td class="bar"><div><i style="left:{low:.1f}%;width:{high - low:.1f}%"></i>
<b style="left:{value:.1f}%"></b></div></td>
<td class="rating number">{rating} <span class="interval">{interval}</span></td>
<td class="scheme" data-after="{f", {decisions} decisions" if decisions else ""}">{scheme}</td>
<td class="decisions number">{decisions}</td></tr>
"""


def _matrix(population: Population) -> str:
    """Return who ends above whom in the tournament that rated a population, as SVG."""
    with np.errstate(invalid="ignore"):
        shares = np.where(population.met > 0, population.above / population.met, np.nan)
    return matrix_svg([member.name for member in population.members], shares)


def population_page(population: Population, ranked: Mapping[str, Standing] | None = None) -> str:
    """Return the page of a population, HTML whose own script alone runs.

    Args:
        population: whose members are shown.
        ranked: other players by name, whose ranks among the members have been found.
    """
    title = f"Base population of map {population.map.name}"
    spread = 25 / 6 * len(population.map.powers) ** 0.5
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{content_policy(_SCRIPT)}">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{web_file("page.css") + _STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p>{len(population.members)} members, rated by {population.games:,} games among themselves (seed
{population.seed}; {limit_text(vars(population))}). Bars and brackets are 95% intervals. Of two
players whose ratings differ by d, the better one ends above the other in 1 / (1 + exp(-d /
{spread:.1f})) of their games. Click a name to see how to play it and how it was trained.</p>
<p hidden><input type="text" placeholder="Find: bot, included, hard ..." \
aria-label="Find members"></p>
{_ladder(_rungs(population, ranked or {}))}
<h2>Who ends above whom</h2>
<details><summary>Show the table of all pairs</summary>
<div class="wide">{_matrix(population)}</div></details>
<script>{_SCRIPT}</script></body></html>
"""
