"""The golden pictures: positions and orders, drawn as SVG files beside this one.

    python tests/pictures/golden/renew.py

draws them anew. Then look at those that `git status` names (a browser opens them), and say in
README.md what was seen. tests/pictures/test_golden_pictures.py compares them with what is drawn
now.
"""

import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[3]))

from diplomacy_engine import Game
from diplomacy_engine.rules.map import Map

FOLDER = Path(__file__).parent
COMMAND = "python tests/pictures/golden/renew.py"

# A map of one's own: a sea, a province of two coasts, and powers that share their first letter.
STRAIT = {
    "name": "strait",
    "powers": ["EAST", "ELSE", "WEST"],
    "victory_supply_centers": 3,
    "start_units": {"EAST": ["A PAL"], "WEST": ["F ROC/NC"]},
    "provinces": {
        "GUL": {"name": "Gulf", "terrain": "sea", "position": [1, 0]},
        "HIL": {
            "name": "Hills", "terrain": "land", "supply_center": True, "home_of": "ELSE",
            "position": [1, 2],
        },
        "PAL": {
            "name": "Palm Bay", "terrain": "coast", "supply_center": True, "home_of": "EAST",
            "position": [2, 1],
        },
        "ROC": {
            "name": "Cape", "terrain": "coast", "supply_center": True, "home_of": "WEST",
            "coasts": ["NC", "SC"], "position": [0, 1],
        },
    },
    "army_borders": {"HIL": "PAL ROC", "PAL": "ROC"},
    "fleet_borders": {"GUL": "PAL ROC/NC ROC/SC"},
}  # fmt: skip


class Scene(NamedTuple):
    """What a golden picture shows: a state as in saved games, orders, and the theme."""

    map: str | dict
    theme: str
    state: dict
    orders: dict[str, list[str]]


SCENES = {
    "small_movement": Scene(
        "small",
        "light",
        {
            "name": "S1903M",
            "units": {
                "ENGLAND": ["A MUN", "A DEN", "A PAR", "A LON"],
                "RUSSIA": ["A BER", "A BUD", "A ARM", "A BUL", "A MOS"],
            },
            "centers": {"ENGLAND": ["LON", "PAR", "POR"], "RUSSIA": ["MOS", "ARM", "BUD", "BUL"]},
        },
        {
            "ENGLAND": ["A MUN - BER", "A DEN S A MUN - BER", "A PAR - HOL", "A LON - HOL"],
            "RUSSIA": ["A BER H", "A BUD S A BER - MUN", "A ARM - UKR", "A BUL S A BUD", "A MOS H"],
        },
    ),
    "small_retreat": Scene(
        "small",
        "dark",
        {
            "name": "S1903R",
            "units": {"ENGLAND": ["A BER", "A DEN", "A PAR"], "RUSSIA": ["A MUN", "A ROM"]},
            "centers": {"ENGLAND": ["LON", "PAR", "POR"], "RUSSIA": ["MOS", "ARM", "BUD"]},
            "retreats": {"RUSSIA": {"A BER": ["ARM"]}, "ENGLAND": {"A ROM": ["SPA"]}},
        },
        {"RUSSIA": ["A BER R ARM"], "ENGLAND": ["A ROM D"]},
    ),
    "small_winter": Scene(
        "small",
        "light",
        {
            "name": "W1903A",
            "units": {
                "ENGLAND": ["A HOL", "A PAR", "A SPA", "A DEN"],
                "RUSSIA": ["A BER", "A UKR"],
            },
            "centers": {
                "ENGLAND": ["LON", "PAR", "POR"],
                "RUSSIA": ["MOS", "ARM", "BUD", "BUL", "ANK"],
            },
        },
        {"ENGLAND": ["A DEN D"], "RUSSIA": ["A MOS B"]},
    ),
    "three_retreat": Scene(
        "three",
        "light",
        {
            "name": "F1903R",
            "units": {
                "ENGLAND": ["A YOR", "A PIC", "A GAS"],
                "ITALY": ["A VIE", "A TRI", "A PAR"],
                "RUSSIA": ["A SWE", "A UKR", "A NWY"],
            },
            "centers": {
                "ENGLAND": ["LON"],
                "ITALY": ["ROM", "SPA", "PAR"],
                "RUSSIA": ["MOS", "SWE"],
            },
            "retreats": {
                "ENGLAND": {"A NWY": ["YOR", "FIN"]},
                "ITALY": {"A GAS": ["MAR", "SPA"]},
                "RUSSIA": {"A VIE": ["BOH", "GAL", "BUD"]},
            },
        },
        {"ENGLAND": ["A NWY R FIN"], "ITALY": ["A GAS R MAR"], "RUSSIA": ["A VIE D"]},
    ),
    "standard_movement": Scene(
        "standard",
        "light",
        {
            "name": "F1903M",
            "units": {
                "AUSTRIA": ["A VIE", "A TRI", "F GRE", "A BUD"],
                "ENGLAND": ["A YOR", "F NTH", "F NWG", "A EDI"],
                "FRANCE": ["A BUR", "A PAR", "F MAO", "A MAR"],
                "GERMANY": ["A MUN", "A RUH", "F DEN", "A BEL"],
                "ITALY": ["A VEN", "F ION", "A TUN", "A TYR"],
                "RUSSIA": ["F STP/SC", "A SWE", "F NWY", "A WAR", "F SEV"],
                "TURKEY": ["A BUL", "F AEG", "F BLA", "A CON"],
            },
            "centers": {
                "AUSTRIA": ["VIE", "BUD", "TRI", "GRE", "SER"],
                "ENGLAND": ["LON", "LVP", "EDI"],
                "FRANCE": ["PAR", "MAR", "BRE", "SPA", "POR"],
                "GERMANY": ["BER", "KIE", "MUN", "DEN", "BEL"],
                "ITALY": ["ROM", "VEN", "NAP", "TUN"],
                "RUSSIA": ["STP", "MOS", "WAR", "SEV", "SWE"],
                "TURKEY": ["CON", "ANK", "SMY", "BUL"],
            },
        },
        {
            "AUSTRIA": ["A VIE - GAL", "A TRI H", "F GRE H", "A BUD S A TRI"],
            "ENGLAND": ["A YOR - NWY VIA", "F NTH C A YOR - NWY", "F NWG S A YOR - NWY", "A EDI H"],
            "FRANCE": ["A BUR - BEL", "A PAR - BUR", "F MAO - SPA/SC", "A MAR - BUR"],
            "GERMANY": ["A MUN - BUR", "A RUH S A BEL", "F DEN - SWE", "A BEL H"],
            "ITALY": [
                "A VEN - TRI", "A TYR S A VEN - TRI", "F ION C A TUN - ALB", "A TUN - ALB VIA",
            ],
            "RUSSIA": ["F STP/SC - BOT", "A SWE - DEN", "F NWY H", "A WAR - GAL", "F SEV - RUM"],
            "TURKEY": ["A BUL - GRE", "F AEG S A BUL - GRE", "F BLA - RUM", "A CON - BUL"],
        },
    ),
    "standard_winter": Scene(
        "standard",
        "dark",
        {
            "name": "W1905A",
            "units": {
                "AUSTRIA": ["A SER", "A BUD", "F TRI", "F GRE"],
                "ENGLAND": ["F NTH", "F ENG", "A NWY"],
                "FRANCE": ["A BUR", "F SPA/NC", "F POR", "A MAR"],
                "GERMANY": ["A KIE", "F HOL", "A DEN", "A SIL"],
                "ITALY": ["F ION", "A VEN", "A TYR"],
                "RUSSIA": ["F BOT", "A UKR", "A RUM"],
                "TURKEY": ["F AEG", "F BUL/EC"],
            },
            "centers": {
                "AUSTRIA": ["VIE", "BUD", "SER"],
                "ENGLAND": ["LON", "LVP", "EDI", "NWY"],
                "FRANCE": ["PAR", "MAR", "BRE", "SPA", "POR"],
                "GERMANY": ["KIE", "HOL"],
                "ITALY": ["ROM", "VEN", "NAP"],
                "RUSSIA": ["STP", "MOS", "WAR", "SEV", "RUM"],
                "TURKEY": ["CON", "ANK", "SMY", "BUL"],
            },
        },
        {
            "AUSTRIA": ["F GRE D"],
            "ENGLAND": ["F LVP B"],
            "FRANCE": ["A BRE B"],
            "GERMANY": ["A DEN D", "A SIL D"],
            "RUSSIA": ["F STP/NC B", "A WAR B"],
            "TURKEY": ["A CON B", "F ANK B"],
        },
    ),
    "own_movement": Scene(
        STRAIT,
        "light",
        {
            "name": "S1901M",
            "units": {"EAST": ["A PAL"], "ELSE": ["A HIL"], "WEST": ["F GUL", "A ROC"]},
            "centers": {"EAST": ["PAL"], "ELSE": ["HIL"], "WEST": ["ROC"]},
        },
        {
            "EAST": ["A PAL - HIL"],
            "ELSE": ["A HIL S A ROC - PAL"],
            "WEST": ["F GUL C A ROC - PAL", "A ROC - PAL VIA"],
        },
    ),
    "own_retreat": Scene(
        STRAIT,
        "dark",
        {
            "name": "F1901R",
            "units": {"EAST": ["A PAL"], "ELSE": ["A HIL"], "WEST": ["A ROC"]},
            "centers": {"EAST": ["PAL"], "ELSE": ["HIL"], "WEST": ["ROC"]},
            "retreats": {"EAST": {"F ROC/NC": ["GUL"]}},
        },
        {"EAST": ["F ROC/NC R GUL"]},
    ),
    "own_winter": Scene(
        STRAIT,
        "auto",
        {
            "name": "W1901A",
            "units": {"EAST": ["A HIL", "F GUL"], "WEST": ["A PAL"]},
            "centers": {"EAST": ["HIL"], "WEST": ["ROC", "PAL"]},
        },
        {"EAST": ["A HIL D"], "WEST": ["F ROC/SC B"]},
    ),
}  # fmt: skip


def draw(name: str) -> str:
    """Return a golden picture as it is drawn now; each element begins a line, to be compared."""
    scene = SCENES[name]
    game_map = scene.map if isinstance(scene.map, str) else Map(scene.map)
    game = Game.from_state(game_map, scene.state)
    for power, texts in scene.orders.items():
        game.submit(power, texts)
    before = game.copy()
    svg = before.to_svg(outcome=game.adjudicate(), theme=scene.theme)
    return svg.replace("><", ">\n<") + "\n"


def main() -> None:
    """Write all pictures."""
    for name in SCENES:
        (FOLDER / f"{name}.svg").write_text(draw(name), encoding="utf-8", newline="\n")
        print(FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main()
