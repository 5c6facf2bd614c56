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
    """What a golden picture shows; the position is a line of `Game.to_position`."""

    theme: str
    position: str
    orders: dict[str, list[str]]


SCENES = {
    "small_movement": Scene(
        "light",
        "small S1903M; "
        "ENGLAND A DEN, A LON, A MUN, A PAR = LON PAR POR; "
        "RUSSIA A ARM, A BER, A BUD, A BUL, A MOS = ARM BUD BUL MOS",
        {
            "ENGLAND": ["A MUN - BER", "A DEN S A MUN - BER", "A PAR - HOL", "A LON - HOL"],
            "RUSSIA": ["A BER H", "A BUD S A BER - MUN", "A ARM - UKR", "A BUL S A BUD", "A MOS H"],
        },
    ),
    "small_retreat": Scene(
        "dark",
        "small S1903R; "
        "ENGLAND A BER, A DEN, A PAR, *A ROM > SPA = LON PAR POR; "
        "RUSSIA A MUN, A ROM, *A BER > ARM = ARM BUD MOS",
        {
            "RUSSIA": ["A BER R ARM"],
            "ENGLAND": ["A ROM D"],
        },
    ),
    "small_winter": Scene(
        "light",
        "small W1903A; "
        "ENGLAND A DEN, A HOL, A PAR, A SPA = LON PAR POR; "
        "RUSSIA A BER, A UKR = ANK ARM BUD BUL MOS",
        {
            "ENGLAND": ["A DEN D"],
            "RUSSIA": ["A MOS B"],
        },
    ),
    "three_retreat": Scene(
        "light",
        "three F1903R; "
        "ENGLAND A GAS, A PIC, A YOR, *A NWY > FIN = LON; "
        "ITALY A PAR, A TRI, A VIE, *A GAS > MAR SPA = PAR ROM SPA; "
        "RUSSIA A NWY, A SWE, A UKR, *A VIE > BOH BUD GAL = MOS SWE",
        {
            "ENGLAND": ["A NWY R FIN"],
            "ITALY": ["A GAS R MAR"],
            "RUSSIA": ["A VIE D"],
        },
    ),
    "standard_movement": Scene(
        "light",
        "standard F1903M; "
        "AUSTRIA A BUD, A TRI, A VIE, F GRE = BUD GRE SER TRI VIE; "
        "ENGLAND A EDI, A YOR, F NTH, F NWG = EDI LON LVP; "
        "FRANCE A BUR, A MAR, A PAR, F MAO = BRE MAR PAR POR SPA; "
        "GERMANY A BEL, A MUN, A RUH, F DEN = BEL BER DEN KIE MUN; "
        "ITALY A TUN, A TYR, A VEN, F ION = NAP ROM TUN VEN; "
        "RUSSIA A SWE, A WAR, F NWY, F SEV, F STP/SC = MOS SEV STP SWE WAR; "
        "TURKEY A BUL, A CON, F AEG, F BLA = ANK BUL CON SMY",
        {
            "AUSTRIA": ["A VIE - GAL", "A TRI H", "F GRE H", "A BUD S A TRI"],
            "ENGLAND": ["A YOR - NWY VIA", "F NTH C A YOR - NWY", "F NWG S A YOR - NWY", "A EDI H"],
            "FRANCE": ["A BUR - BEL", "A PAR - BUR", "F MAO - SPA/SC", "A MAR - BUR"],
            "GERMANY": ["A MUN - BUR", "A RUH S A BEL", "F DEN - SWE", "A BEL H"],
            "ITALY": [
                "A VEN - TRI",
                "A TYR S A VEN - TRI",
                "F ION C A TUN - ALB",
                "A TUN - ALB VIA",
            ],
            "RUSSIA": ["F STP/SC - BOT", "A SWE - DEN", "F NWY H", "A WAR - GAL", "F SEV - RUM"],
            "TURKEY": ["A BUL - GRE", "F AEG S A BUL - GRE", "F BLA - RUM", "A CON - BUL"],
        },
    ),
    "standard_winter": Scene(
        "dark",
        "standard W1905A; "
        "AUSTRIA A BUD, A SER, F GRE, F TRI = BUD SER VIE; "
        "ENGLAND A NWY, F ENG, F NTH = EDI LON LVP NWY; "
        "FRANCE A BUR, A MAR, F POR, F SPA/NC = BRE MAR PAR POR SPA; "
        "GERMANY A DEN, A KIE, A SIL, F HOL = HOL KIE; "
        "ITALY A TYR, A VEN, F ION = NAP ROM VEN; "
        "RUSSIA A RUM, A UKR, F BOT = MOS RUM SEV STP WAR; "
        "TURKEY F AEG, F BUL/EC = ANK BUL CON SMY",
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
        "light",
        "strait S1901M; EAST A PAL = PAL; ELSE A HIL = HIL; WEST A ROC, F GUL = ROC",
        {
            "EAST": ["A PAL - HIL"],
            "ELSE": ["A HIL S A ROC - PAL"],
            "WEST": ["F GUL C A ROC - PAL", "A ROC - PAL VIA"],
        },
    ),
    "own_retreat": Scene(
        "dark",
        "strait F1901R; EAST A PAL, *F ROC/NC > GUL = PAL; ELSE A HIL = HIL; WEST A ROC = ROC",
        {
            "EAST": ["F ROC/NC R GUL"],
        },
    ),
    "own_winter": Scene(
        "auto",
        "strait W1901A; EAST A HIL, F GUL = HIL; WEST A PAL = PAL ROC",
        {
            "EAST": ["A HIL D"],
            "WEST": ["F ROC/SC B"],
        },
    ),
}


def draw(name: str) -> str:
    """Return a golden picture as it is drawn now; each element begins a line, to be compared."""
    scene = SCENES[name]
    game_map = Map(STRAIT) if scene.position.startswith("strait") else None
    game = Game.from_position(scene.position, game_map)
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
