"""All maps of the `diplomacy` package, played by our rules and by its own program, phase by phase.

Random games of orders that fit one another. Where the two disagree, it must be by one of the
program's known errors, which are told apart by rule:

- A support of an attack on a unit of the supporter's own power cannot dislodge that unit, but there
  it can: with an army that is convoyed, against a fleet that convoys, and in a head-to-head battle.
  With a hold in its place, by which nothing may change, the program agrees.
- A unit dislodged by an army that was convoyed may retreat anywhere there, also to where somebody
  stands or a standoff was. All that is compared of it is that it is dislodged, and that it has the
  places that it has here.
- Units that nobody plays have retreats and builds there, which nobody orders.
"""

import itertools
import json
import os
import random
import subprocess
from collections import Counter

import numpy as np
import pytest
from support import diplomacy_package
from support.games import entangled_orders, random_orders

from diplomacy_engine.constants import NONE
from diplomacy_engine.extras.maps.dpjudge import read_dpjudge
from diplomacy_engine.extras.maps.draft import map_file_text
from diplomacy_engine.rules.notation import province_of
from diplomacy_engine.textgame.game import Game

MAPS = {path.stem: path for path in diplomacy_package.package_maps()}
GAMES, PHASES = 12, 120
MOST_FLEETS = 3  # of a convoy

pytestmark = pytest.mark.skipif(not MAPS, reason="the diplomacy package is not installed")


@pytest.fixture(scope="module")
def maps():
    return {name: read_dpjudge(path).finished() for name, path in MAPS.items()}


@pytest.fixture(scope="module")
def home(maps, tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    diplomacy_package.write_short_convoys(folder, maps, MOST_FLEETS)
    return folder


@pytest.fixture(scope="module")
def package(home):
    adjudicator = diplomacy_package.PackageAdjudicator(home)
    yield adjudicator
    adjudicator.close()


def fitting_orders(game: Game, rng: random.Random) -> dict[str, list[str]]:
    """Return legal orders of every power, many of which fit one another; an army that only a longer
    convoy could carry holds."""
    if game.phase[-1] != "M":
        return random_orders(game, rng)
    orders = entangled_orders(game, rng)
    sea_index, fleets = game.vector_game.table.sea_index, 0
    for unit in itertools.chain(*game.units.values()):
        sea = sea_index[game.map.province_index[province_of(unit)]]
        fleets |= 1 << int(sea) if unit[0] == "F" and sea != NONE else 0
    convoys = Counter(t.split(" C ")[1] for t in itertools.chain(*orders.values()) if " C " in t)
    return {
        power: [
            text
            if not text.endswith(" VIA")
            or (has_short_convoy(game, text, fleets) and convoys[text[:-4]] <= MOST_FLEETS)
            else f"{text[:5]} H"
            for text in texts
        ]
        for power, texts in orders.items()
    }


def has_short_convoy(game: Game, text: str, fleets: int) -> bool:
    """Tell whether few of the `fleets` (bits of seas) could carry an army."""
    table = game.vector_game.table
    origin, goal = (game.map.province_index[text.split()[i]] for i in (1, 3))
    routes = slice(*table.route_first[origin : origin + 2])
    seas = table.route_seas[routes][table.route_goal[routes] == goal]
    return bool(((np.bitwise_count(seas) <= MOST_FLEETS) & (seas & ~np.uint64(fleets) == 0)).any())


def position(game_map, state: dict, but: frozenset = frozenset()) -> dict:
    """Return what is compared of a state, without units dislodged in the provinces `but`."""

    def left_out(power: str, unit: str) -> bool:
        return power not in game_map.power_index or unit.lstrip("*").split()[1][:3] in but

    units, retreats = {}, {}
    for power in game_map.unit_powers:
        held = state["units"].get(power, [])
        units[power] = sorted(u for u in held if u[0] != "*" or not left_out(power, u))
        retreats[power] = {
            unit: sorted(places)
            for unit, places in state["retreats"].get(power, {}).items()
            if not left_out(power, unit)
        }
    centers = {power: sorted(state["centers"].get(power, [])) for power in game_map.powers}
    return {"name": state["name"], "units": units, "retreats": retreats, "centers": centers}


def dislodged_by_convoy(game: Game) -> frozenset:
    """Return the provinces from which an army that was convoyed dislodged a unit."""
    last = game.history[-1]
    fallen = {
        unit.split()[1][:3] for unit, words in last["results"].items() if "dislodged" in words
    }
    convoyed = {
        text.split(" C ")[1]
        for texts in last["orders"].values()
        for text in texts or ()
        if " C " in text
    }
    return (
        frozenset(
            text.removesuffix(" VIA").split()[-1]
            for texts in last["orders"].values()
            for text in texts or ()
            if text.removesuffix(" VIA") in convoyed and not last["results"][text[:5]]
        )
        & fallen
    )


def without_own_supports(game: Game, before: dict) -> dict[str, list[str]]:
    """Return the orders of the last phase with holds for supports of attacks on a unit of one's own
    power, but for those without which another position would follow: they can keep others out."""
    after = position(game.map, game.to_state())
    orders = {power: list(texts or ()) for power, texts in game.history[-1]["orders"].items()}
    for power, texts in orders.items():
        own = {unit.split()[1][:3] for unit in before["units"][power]}
        for i, text in enumerate(texts):
            if " S " not in text or " - " not in text or text.split()[-1][:3] not in own:
                continue
            texts[i] = " ".join([*text.split()[:2], "H"])
            twin = Game.from_state(game.map, before)
            for other, given in orders.items():
                twin.submit(other, given)
            twin.adjudicate()
            if position(game.map, twin.to_state()) != after:
                texts[i] = text
    return orders


def followed(package, name, game_map, before, orders, after, but) -> tuple[dict, dict]:
    """Return the package's position after orders, and what it answered. It goes on from a phase
    that is none by our rules, in which only those who are left out have something to order."""
    answer = package(name, before, orders)
    state = answer["state"]
    for _ in range(2):
        found = position(game_map, state, but)
        if found["name"] == after["name"] or found["name"][-1] not in "RA":
            break
        builds = [state["builds"][power]["count"] for power in game_map.powers]
        if any(found["retreats"].values()) or (found["name"][-1] == "A" and any(builds)):
            break
        fled = {
            power: [f"{unit} D" for unit in units] for power, units in state["retreats"].items()
        }
        state = package(name, state, fled)["state"]
    return found, answer


def differences(package, name: str, game: Game, before: dict) -> list[str]:
    """Return the known errors by which the package differs in the last phase; AssertionError if it
    does so in another way."""
    game_map, orders = game.map, {p: t or [] for p, t in game.history[-1]["orders"].items()}
    after = game.to_state()
    exact = position(game_map, after)
    found, answer = followed(package, name, game_map, before, orders, exact, frozenset())
    if found == exact:
        return []
    but = dislodged_by_convoy(game) if before["name"][-1] == "M" else frozenset()
    for power, units in after["retreats"].items():
        for unit, places in units.items():
            theirs = answer["state"]["retreats"].get(power, {}).get(unit, places)
            assert unit.split()[1][:3] not in but or set(theirs) >= set(places)
    loose = position(game_map, after, but)
    found, _ = followed(package, name, game_map, before, orders, loose, but)
    if found == loose:
        return ["retreat"]
    fewer = without_own_supports(game, before) if before["name"][-1] == "M" else orders
    assert fewer != orders, (name, before, orders, loose, found)
    found, _ = followed(package, name, game_map, before, fewer, loose, but)
    assert found == loose, (name, before, fewer, loose, found)
    return ["support"]


def play(package, name, game_map, seeds, phases) -> dict[str, int]:
    counts = {"phases": 0, "retreat": 0, "support": 0}
    for seed in seeds:
        rng, game = random.Random(f"{name} {seed}"), Game(game_map)
        while len(game.history) < phases and not game.is_over:
            before = game.to_state()
            for power, texts in fitting_orders(game, rng).items():
                game.submit(power, texts)
            game.adjudicate()
            counts["phases"] += 1
            for error in differences(package, name, game, before):
                counts[error] += 1
    return counts


@pytest.mark.parametrize("name", ["pure", "standard"])
def test_short_games_agree(package, maps, name):
    assert play(package, name, maps[name], range(2), 15)["phases"] >= 30


def test_the_package_accepts_our_saved_games(maps, home, tmp_path):
    """It plays them again, by the name of the map, finds each phase as we have written it, and
    opens them in the last one."""
    names = ("ancmed", "colonial", "modern", "standard_france_austria")
    lines = []
    for name in names:
        path = tmp_path / f"{name}.toml"
        path.write_text(map_file_text(maps[name].facts, name))
        game, rng = Game(path), random.Random(name)
        for _ in range(8):
            for power, texts in fitting_orders(game, rng).items():
                game.submit(power, texts)
            game.adjudicate()
        lines.append(json.dumps(game.to_saved_game()) + "\n")
    code = "import json, sys; from diplomacy.utils import export\n"
    code += "games = [json.loads(line) for line in sys.stdin]\n"
    code += "valid = [export.is_valid_saved_game(game) for game in games]\n"
    code += "opened = [export.from_saved_game_format(game).get_current_phase() for game in games]\n"
    code += "print(valid, opened == [game['phases'][-1]['name'] for game in games])"
    done = subprocess.run(
        [diplomacy_package.package_python()[0], "-c", code],
        env={**os.environ, "HOME": str(home), "PYTHONPATH": ""},
        input="".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == f"{[True] * len(names)} True"


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_long_games_agree_but_for_known_errors(package, maps, name):
    counts = play(package, name, maps[name], range(GAMES), PHASES)
    assert counts["phases"] > 300 and counts["support"] + counts["retreat"] < counts["phases"] / 5
