"""The legend of the signs on a board: each as a small picture with its meaning."""

from .arrows import GONE, cross, dot, plus, ring
from .board import unit_svg
from .drawing import Drawing

_LEFT, _RIGHT, _MIDDLE = 24 + 22j, 92 + 22j, 58 + 22j
_VIEW = "0 0 116 44"


def signs(drawing: Drawing) -> list[tuple[str, str]]:
    """Return (SVG, meaning) of each sign, for pages that show a board of the same map."""
    power = drawing.map.powers[0]
    place = next(text for text in drawing.map.locations if "/" not in text)

    def unit(kind: str, spot: complex = _LEFT, dislodged: bool = False) -> str:
        return unit_svg(drawing, power, f"{kind} {place}", (spot.real, spot.imag), dislodged)

    def order(kind: str, inner: str) -> str:
        return f'<g class="order {kind}" data-power="{power}">{inner}</g>'

    layout, right = drawing.layout, _arrow("M40 22H82", "M82 16.5L91 22L82 27.5Z")
    below = _arrow("M8 36H98", "M98 30.5L107 36L98 41.5Z")
    through = _arrow("M4 22H100", "M100 16.5L109 22L100 27.5Z")
    own = f' data-owner="{power}"'
    shown = {
        "an army, a fleet": unit("A") + unit("F", _RIGHT),
        "a supply center of nobody, of a power": _center(24) + _center(92, own),
        "a move": order("move", right) + unit("A"),
        "a hold": order("hold", ring(_MIDDLE, 16.5, "line")) + unit("A", _MIDDLE),
        "a support of a unit that stays": order("support", _line("M41 22H72") + dot(73 + 22j))
        + order("support", ring(_RIGHT, 17.5, "line"))
        + unit("A")
        + unit("A", _RIGHT),
        "a support of a move": order("move", below)
        + order("support", _line("M40 18Q58 18 66 34") + dot(67 + 36j))
        + unit("A", 24 + 15j),
        "a move by convoy; the dotted ring is the fleet's order": order("move", through)
        + order("convoy", ring(_MIDDLE, 18, "line"))
        + unit("F", _MIDDLE),
        "a convoy of a move that was not ordered": order("convoy", _line("M42 22H84")) + unit("F"),
        "a retreat": order("retreat", right),
        "the red cross: an order that failed": order("move failed", right) + cross(63 + 22j),
        "being dislodged; dislodged, and to retreat": unit("A")
        + ring(_LEFT, 18, "dislodged-ring")
        + unit("A", _RIGHT, True),
        "leaves the board; is built": unit("A")
        + cross(_LEFT, GONE)
        + order("build", ring(88 + 24j, 18, "line"))
        + unit("A", 88 + 24j)
        + plus(88 + 24j),
    }
    if layout.links:
        shown["provinces at its ends are neighbors"] = '<path class="link" d="M8 22H108"/>'
    if layout.walls:
        wall = '<path class="wall" d="M8 22L40 14L74 28L108 20"/>'
        shown["no way across, although the two provinces touch"] = wall
    if layout.neutral:
        land = '<path class="neutral" d="M20 6H96V38H20Z"/>'
        shown["land that belongs to nobody and that no unit can enter"] = land
    return [(_sign(text), meaning) for meaning, text in shown.items()]


def _line(path: str) -> str:
    return f'<path class="line" d="{path}"/>'


def _arrow(line: str, head: str) -> str:
    return f'{_line(line)}<path class="head" d="{head}"/>'


def _center(x: int, owner: str = "") -> str:
    return f'<circle class="center"{owner} cx="{x}" cy="22" r="4.2"/>'


def _sign(text: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dip-board sign" data-theme="auto"'
        f' viewBox="{_VIEW}" aria-hidden="true">{text}</svg>'
    )
