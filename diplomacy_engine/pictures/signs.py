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
            (order("hold", ring(_MIDDLE, 16.5, "line")) + unit("A", _MIDDLE), "a hold"),
            (
                order("support", f'<path class="line" d="M41 22H72"/>{dot(73 + 22j)}')
                + order("support", ring(_RIGHT, 17.5, "line")) + unit("A") + unit("A", _RIGHT),
                "a support of a unit that stays",
            ),
            (
                order("move", '<path class="line" d="M8 36H98"/><path class="head" '
                      'd="M98 30.5L107 36L98 41.5Z"/>')
                + order("support", f'<path class="line" d="M40 18Q58 18 66 34"/>{dot(67 + 36j)}')
                + unit("A", 24 + 15j),
                "a support of a move",
            ),
            (
                order("move", '<path class="line" d="M4 22H100"/><path class="head" '
                      'd="M100 16.5L109 22L100 27.5Z"/>')
                + order("convoy", ring(_MIDDLE, 18, "line")) + unit("F", _MIDDLE),
                "a move by convoy; the dotted ring is the fleet's order",
            ),
            (
                order("convoy", '<path class="line" d="M42 22H84"/>') + unit("F"),
                "a convoy of a move that was not ordered",
            ),
            (order("retreat", arrow), "a retreat"),
            (
                order("move failed", arrow)
                + cross(63 + 22j),
                "the red cross: an order that failed",
            ),
            (
                unit("A") + '<circle class="dislodged-ring" cx="24" cy="22" r="18"/>'
                + unit("A", _RIGHT, True),
                "being dislodged; dislodged, and to retreat",
            ),
            (
                unit("A") + cross(_LEFT, GONE) + order("build", ring(88 + 24j, 18, "line"))
                + unit("A", 88 + 24j) + plus(88 + 24j),
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
