"""Maps with what those that come along have not: other rules, or a larger size."""

import copy
import itertools
import json
import tomllib
from pathlib import Path

import numpy as np

from diplomacy_engine.rules.map import Map

from .tables import read_text

# Builds everywhere, neutral units, a coast that convoys, a coast of a name of its own.
#
#     NOR ------ ISL ------ SOU        ISL is an island where fleets convoy, NOR and SOU seas that
#    /  |  \     (coast)   /  |  \       do not touch. MOU has a coast on NOR and one on the lake
#  CAP  MOU  DUN        ROC BAY  DUN   LAK, which touches no other sea. HIL lies between them all.
TRIBES = read_text(__file__, "tribes.toml")


def tribes(**others: object) -> Map:
    """Return the map of TRIBES with other facts in place of some."""
    return Map(tomllib.loads(TRIBES) | others)


def write_coastal_map(path: Path, coasts: int, seas: int) -> str:
    """Write the file of a map with two powers: a ring of coasts around a ring of seas.

    Armies can be convoyed from every coast to every other one, so its orders are many: 56,773 with
    80 coasts and 4 seas. Returns the path as a text.
    """
    codes = ["".join(letters) for letters in itertools.product("ABCDEFGHIJ", repeat=3)]
    land, sea = codes[:coasts], codes[coasts : coasts + seas]
    homes = {
        power: [land[begin + 2 * number] for number in range(3)]
        for power, begin in (("EAST", 0), ("WEST", coasts // 4 * 2))
    }
    home_of = {code: power for power in homes for code in homes[power]}
    lines = [
        'name = "coastal"',
        f"powers = {json.dumps(list(homes))}",
        f"victory_supply_centers = {coasts // 4 + 1}",
        "[start_units]",
        *(f'{power} = ["A {a}", "F {b}", "A {c}"]' for power, (a, b, c) in homes.items()),
        "[provinces]",
    ]
    for number, code in enumerate(land):
        center = ", supply_center = true" if number % 2 == 0 else ""
        home = f', home_of = "{home_of[code]}"' if code in home_of else ""
        lines.append(f'{code} = {{ name = "Coast {code}", terrain = "coast"{center}{home} }}')
    lines += [f'{code} = {{ name = "Sea {code}", terrain = "sea" }}' for code in sea]
    after = dict(zip(land, land[1:] + land[:1])), dict(zip(sea, sea[1:] + sea[:1]))
    lines += ["[army_borders]", *(f'{code} = "{after[0][code]}"' for code in land)]
    lines += ["[fleet_borders]"]
    for number, code in enumerate(land):
        lines.append(f'{code} = "{after[0][code]} {sea[number * seas // coasts]}"')
    lines += [f'{code} = "{after[1][code]}"' for code in sea]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def renamed(game_map: Map) -> tuple[Map, np.ndarray]:
    """Return the map with each power under the next one's name, and (P,) the new numbers."""
    facts, powers = copy.deepcopy(dict(game_map.facts)), list(game_map.powers)
    new = dict(zip(powers, powers[1:] + powers[:1]))
    units = facts["start_units"]
    facts["start_units"] = {new.get(name, name): units[name] for name in units}
    for province in facts["provinces"].values():
        if "home_of" in province:
            province["home_of"] = new[province["home_of"]]
    return Map(facts), np.array([powers.index(new[name]) for name in powers])
