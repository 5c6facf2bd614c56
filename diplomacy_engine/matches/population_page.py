"""A population to look at: a page with its ladder, who ends above whom, and every member."""

from html import escape

import numpy as np

from ..pictures.ladder import ladder_svg, matrix_svg
from ..players.population import Population
from .population import Standing
from .statistics import Z

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2430; margin: 2rem auto; max-width: 54rem;
  padding: 0 1rem; }
.wide { overflow-x: auto; }  /* on a phone these are moved aside, not squeezed */
svg { width: 100%; min-width: 36rem; height: auto; }
table { border-collapse: collapse; font-size: 13px; }
td, th { text-align: left; vertical-align: top; padding: 2px 10px 2px 0;
  border-bottom: 1px solid #e2e5ea; }
td.number { text-align: right; white-space: nowrap; }
code { display: block; min-width: 20rem; font-size: 11px; overflow-wrap: anywhere; }
"""


def population_ladder(population: Population, marked: dict[str, Standing] | None = None) -> str:
    """Return the ladder of a population as SVG, with some players among the members."""
    members, marked = population.members, marked or {}
    names = [*(member.name for member in members), *marked]
    ratings = [*(member.rating for member in members), *(s.value for s in marked.values())]
    errors = [*(Z * member.sigma for member in members)]
    errors += [stands.high - stands.value for stands in marked.values()]
    return ladder_svg(names, ratings, errors, marked)


def population_matrix(population: Population) -> str:
    """Return who ends above whom in the tournament that rated a population, as SVG."""
    with np.errstate(invalid="ignore"):
        shares = np.where(population.met > 0, population.above / population.met, np.nan)
    return matrix_svg([member.name for member in population.members], shares)


def population_page(population: Population) -> str:
    """Return the page of a population, HTML without any code."""
    title = f"Base population of map {population.map.name}"
    rows = []
    for place, member in enumerate(population.members, 1):
        decisions = f"{member.decisions:,}" if member.file else ""
        rows.append(
            f'<tr><td class="number">{place}</td><td>{escape(member.name)}</td>'
            f'<td class="number">{member.rating:.1f} ± {Z * member.sigma:.1f}</td>'
            f'<td>{escape(member.scheme)}</td><td class="number">{decisions}</td>'
            f"<td><code>{escape(member.command)}</code></td></tr>"
        )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p>{len(population.members)} members, rated by {population.games:,} games among them all (seed
{population.seed}, at most {population.max_years} years, {escape(population.year_limit)}). In a game
of {len(population.map.powers)} players, of two whose ratings differ by d the better one ends above
with probability 1 / (1 + exp(-d / {25 / 6 * len(population.map.powers) ** 0.5:.1f})).</p>
<h2>Ladder</h2>
<p>Ratings with 95 % intervals.</p>
<div class="wide">{population_ladder(population)}</div>
<h2>Who ends above whom</h2>
<div class="wide">{population_matrix(population)}</div>
<h2>Members</h2>
<div class="wide"><table><tr><th></th><th>member</th><th>rating</th><th>scheme</th>
<th>decisions</th><th>trained by</th>
</tr>{"".join(rows)}</table></div>
</body></html>
"""
