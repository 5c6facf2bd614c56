"""Histories of games as judges mail them."""

import random
import re

from support.games import random_orders

from diplomacy_engine import Game

COASTS = {"NC": "north", "EC": "east", "SC": "south", "WC": "west"}
KINDS = {"A": "Army", "F": "Fleet"}
SEASONS = {"S": "Spring", "F": "Fall", "W": "Winter"}
TITLES = {"M": "Movement results", "R": "Retreat orders", "A": "Adjustment orders"}
VERBS = {"-": "->", "R": "->", "S": "SUPPORT", "C": "CONVOY", "H": "HOLD"}


def judge_words(game: Game, text: str) -> str:
    """Return a unit, order or place as judges write it."""
    if text == "WAIVE":
        return "Build waived"
    unit, here, *verb = text.split()[:3] if " " in text else ("", text)
    place = {code: name for code, name in game.map.province_names.items()}
    if verb and verb[0] in "BD":
        what = {"B": f"Builds {'an army' if unit == 'A' else 'a fleet'} in ",
                "D": f"Removes the {KINDS[unit].lower()} in "}[verb[0]]  # fmt: skip
        return what + judge_words(game, here)

    def word(match: re.Match) -> str:
        code, _, coast = match[0].partition("/")
        named = KINDS.get(code) or VERBS.get(code) or place[code]
        return f"{named} ({COASTS[coast]} coast)" if coast else named

    return re.sub(r"\S+", word, text)


def judge_history(rng: random.Random, phases: int) -> tuple[Game, list[str]]:
    """Return a game of random orders, and the lines of its history."""
    game = Game("standard")
    lines = ["Starting position for Spring of 1901.", ""]
    for power, units in game.units.items():
        lines += [f"{power.title()}: {judge_words(game, unit)}." for unit in units]
    for number in range(1, phases + 1):
        orders = random_orders(game, rng)
        if game.phase[-1] == "M":
            orders = {p: [t for t in own if "VIA" not in t] for p, own in orders.items()}
        for power, own in orders.items():
            game.submit(power, own)
        name = game.phase
        when = f"{SEASONS[name[0]]} of {name[1:-1]}"
        lines += ["", f":: Judge: USEF  Game: sparrow  Variant: Standard, phase {name}"]
        lines += [f":: Deadline: {name} Mon 05 Jan 2004 23:30:00 -0500", ""]
        lines += [f"{TITLES[name[-1]]} for {when}.  (sparrow.{number:03})", ""]
        results = game.adjudicate()
        for power, own in orders.items():
            for text in own:
                words = results.get(" ".join(text.split()[:2]), [])
                result = f"  (*{', '.join(words)}*)" if words else ""
                dot = "." * (name[-1] != "R" or " R " in text)
                text = text.replace(" D", " H") if name[-1] == "R" else text
                lines.append(f"{power.title()}: {judge_words(game, text)}{dot}{result}")
        if any(game.dislodged.values()):
            lines += ["", "The following units were dislodged:", ""]
        for power, units in game.dislodged.items():
            for unit, places in units.items():
                goals = " or ".join(judge_words(game, place) for place in places)
                end = f"can retreat to {goals}" if goals else "with no valid retreats was destroyed"
                lines.append(f"The {power.title()} {judge_words(game, unit)} {end}.")
        if game.phase[-1] == "A" or (game.phase[0] == "S" and name[0] == "F"):
            lines += ["", "Ownership of supply centers:", ""]
            for power, held in game.centers.items():
                names = ", ".join(judge_words(game, code) for code in held)
                lines += [f"{power.title() + ':':11}{names}."] * bool(held)
            lines += ["Unowned:   Belgium, Spain.", ""]
            for power, held in game.centers.items():
                units, owed = len(game.units[power]), len(held) - len(game.units[power])
                lines.append(
                    f"{power.title() + ':':11}{len(held)} Supply centers, {units} Units:  "
                    f"{'Removes' if owed < 0 else 'Builds '}  {abs(owed)} units."
                )
        kind = {"M": "Movement", "R": "Retreats", "A": "Adjustments"}[game.phase[-1]]
        after = f"{SEASONS[game.phase[0]]} of {game.phase[1:-1]}"
        lines += ["", f"The next phase of 'sparrow' will be {kind} for {after}."]
        lines += ["The deadline for orders will be Wed Jan 07 2004 23:30:00 -0500."]
    return game, lines
