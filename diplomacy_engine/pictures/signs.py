"""The legend of the signs on a board: each as a small picture with its meaning."""

from .arrows import GONE, cross, plus
from .board import unit_svg
from .drawing import Drawing

_LEFT, _RIGHT, _MIDDLE = (24.0, 22.0), (92.0, 22.0), (58.0, 22.0)
_VIEW = "0 0 116 44"


def signs(drawing: Drawing) -> list[tuple[str, str]]:
    """Return (SVG, meaning) of each sign, for pages that show a board of the same map."""
    power = drawing.map.powers[0]
    place = next(text for text in drawing.map.locations if "/" not in text)

    def unit(kind: str, spot=_LEFT, dislodged: bool = False) -> str:
        return unit_svg(drawing, power, f"{kind} {place}", spot, dislodged)

    def order(kind: str, inner: str) -> str:
        return f'<g class="order {kind}" data-power="{power}">{inner}</g>'

    layout, ground = drawing.layout, []
    if layout.links:
        line = '<path class="link" d="M8 22H108"/>'
        ground.append((line, "provinces at its ends are neighbors"))
    if layout.walls:
        line = '<path class="wall" d="M8 22L40 14L74 28L108 20"/>'
        ground.append((line, "no way across, although the two provinces touch"))
    if layout.neutral:
        land = '<path class="neutral" d="M20 6H96V38H20Z"/>'
        ground.append((land, "land that belongs to nobody and that no unit can enter"))
    arrow = '<path class="line" d="M40 22H82"/><path class="head" d="M82 16.5L91 22L82 27.5Z"/>'
    return [
        (_sign(text), meaning)
        for text, meaning in (
            (unit("A", _LEFT) + unit("F", _RIGHT), "an army, a fleet"),
            (
                f'<circle class="center" cx="24" cy="22" r="4.2"/>'
                f'<circle class="center" data-owner="{power}" cx="92" cy="22" r="4.2"/>',
                "a supply center of nobody, of a power",
            ),
            (order("move", arrow) + unit("A"), "a move"),
            (order("hold", _circle(_MIDDLE, 16.5)) + unit("A", _MIDDLE), "a hold"),
            (
                order("support", f'<path class="line" d="M41 22H72"/>{_dot(73)}{_circle(_RIGHT)}')
                + unit("A")
                + unit("A", _RIGHT),
                "a support of a unit that stays",
            ),
            (
                order("move", '<path class="line" d="M8 36H98"/><path class="head" '
                      'd="M98 30.5L107 36L98 41.5Z"/>')
                + order("support", f'<path class="line" d="M40 18Q58 18 66 34"/>{_dot(67, 36)}')
                + unit("A", (24.0, 15.0)),
                "a support of a move",
            ),
            (
                order("move", '<path class="line" d="M4 22H100"/><path class="head" '
                      'd="M100 16.5L109 22L100 27.5Z"/>')
                + order("convoy", _circle(_MIDDLE, 18)) + unit("F", _MIDDLE),
                "a move by convoy; the dotted ring is the fleet's order",
            ),
            (
                order("convoy", '<path class="line" d="M42 22H84"/>') + unit("F"),
                "a convoy of a move that was not ordered",
            ),
            (order("retreat", arrow), "a retreat"),
            (
                order("move failed", arrow)
                + cross((63.0, 22.0)),
                "the red cross: an order that failed",
            ),
            (
                unit("A") + '<circle class="dislodged-ring" cx="24" cy="22" r="18"/>'
                + unit("A", _RIGHT, True),
                "being dislodged; dislodged, and to retreat",
            ),
            (
                unit("A") + cross(_LEFT, GONE) + order("build", _circle((88.0, 24.0), 18))
                + unit("A", (88.0, 24.0)) + plus((88.0, 24.0)),
                "leaves the board; is built",
            ),
            *ground,
        )
    ]  # fmt: skip


def _sign(text: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dip-board sign" data-theme="auto"'
        f' viewBox="{_VIEW}" aria-hidden="true">{text}</svg>'
    )


def _circle(place: tuple[float, float], radius: float = 17.5) -> str:
    return f'<circle class="line" cx="{place[0]:g}" cy="{place[1]:g}" r="{radius:g}"/>'


def _dot(x: float, y: float = 22.0) -> str:
    return f'<circle class="dot" cx="{x:g}" cy="{y:g}" r="5"/>'
