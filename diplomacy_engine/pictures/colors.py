"""Colors of the pictures, told apart also if red or green vision is missing: the hues of Okabe and
Ito's set (2008), then of Tol's muted set, then of the golden angle."""

import colorsys
import math
import re
from functools import lru_cache
from importlib.resources import files

from .._suggest import quoted
from ..errors import UserError
from ..records import shipped_toml
from ..rules.map import Map
from .layout import LABEL_SIZE, NAME_SIZE

THEMES = ("light", "dark", "auto")
_WEB = files(__package__) / "web"
_COLORS = shipped_toml(__package__, "web/colors.toml")
_POWERS, _GROUND, _INK = _COLORS["powers"], _COLORS["ground"], _COLORS["ink"]


def power_color(game_map: Map, power: str, dark: bool = False) -> str:
    if power in _POWERS:
        return _POWERS[power][dark]
    if power not in game_map.power_index:
        return _COLORS["neutral"][dark]
    own_colored = [name for name in game_map.powers if name in _POWERS]
    spent = [_rgb(_POWERS[name][0]) for name in own_colored]
    others = _COLORS["others"]
    free = [color for color in others if all(math.dist(_rgb(color), rgb) > 60 for rgb in spent)]
    number = [name for name in game_map.powers if name not in _POWERS].index(power)
    if number < len(free):
        return free[number]
    hue = number * 0.6180339887 % 1
    return _hex([255 * part for part in colorsys.hls_to_rgb(hue, 0.45 + 0.2 * dark, 0.6)])


@lru_cache(maxsize=64)
def variables(game_map: Map, dark: bool) -> dict[str, str]:
    colors = {name: both[dark] for name, both in _GROUND.items()}
    for power in game_map.unit_powers:
        color = power_color(game_map, power, dark)
        colors[f"p-{power}"] = color
        own = colors[f"t-{power}"] = _mix(color, colors["land"], 0.62 if dark else 0.55)
        colors[f"f-{power}"] = _mix(color, colors["land"], 0.42 if dark else 0.26)
        pale = _luminance(color) > 0.36
        colors[f"h-{power}"] = _INK if pale and not dark else colors["halo"]  # below lines
        # Around units, which stand on land of their own power.
        bright = contrast(colors["halo"], own) >= 3
        colors[f"e-{power}"] = "#000000" if dark else colors["halo"] if bright else _INK
    return colors


@lru_cache(maxsize=128)
def style_sheet(game_map: Map, *themes: str) -> str:
    sheet = ""
    for theme in themes:
        if theme not in THEMES:
            raise UserError(f"{quoted(theme, 40)} is not a theme ({', '.join(THEMES)})")
        here = f'.dip-board[data-theme="{theme}"]'
        sheet += _block(here, variables(game_map, theme == "dark"))
        if theme == "auto":
            dark = _block(here, variables(game_map, True))
            sheet += f"@media (prefers-color-scheme:dark){{{dark}}}"
    sheet += (
        _rules("board.css").replace("LABEL", f"{LABEL_SIZE:g}").replace("NAME", f"{NAME_SIZE:g}")
    )
    of_power = _rules("power.css")
    sheet += "".join(of_power.replace("POWER", power) for power in game_map.unit_powers)
    return sheet + (
        ".dip-board .thought text{fill:var(--text);text-anchor:middle;"
        "paint-order:stroke;stroke:var(--land);stroke-width:3}"
    )


def _rules(name: str) -> str:
    return (_WEB / name).read_text(encoding="utf-8").replace("\n", "")


def _block(selector: str, colors: dict[str, str]) -> str:
    pairs = "".join(f"--{name}:{color};" for name, color in colors.items())
    return f"{selector}{{{pairs}}}"


def with_plain_colors(svg: str, game_map: Map, dark: bool) -> str:
    colors = variables(game_map, dark)
    return re.sub(r"var\(--([\w-]+)\)", lambda match: colors[match[1]], svg)


def _rgb(color: str) -> list[int]:
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


def _hex(parts) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in parts)


def _mix(color: str, ground: str, share: float) -> str:
    return _hex([share * a + (1 - share) * b for a, b in zip(_rgb(color), _rgb(ground))])


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of WCAG, 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    linear = [(part / 255 / 12.92 if part < 10.3 else ((part / 255 + 0.055) / 1.055) ** 2.4)
              for part in _rgb(color)]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
