"""How a player does in another engine: games on a running server of the `diplomacy` package.

    python -m diplomacy.server.run --port 8432     # in another terminal, where the package is
    python tests/benchmarks/elsewhere.py runs/reference/standard__pure__1 --address localhost:8432

In each game the player has one power, the powers in turn, and copies of another player have the
others. All orders go over the wire, and the server's engine plays them.
"""

import argparse
import json
import secrets
from pathlib import Path

from diplomacy_engine.connections.connection import Position, read_address
from diplomacy_engine.connections.diplomacy_server import Account, DiplomacySeats
from diplomacy_engine.connections.diplomacy_wire import Wire
from diplomacy_engine.connections.loop import SeatLoop
from diplomacy_engine.players.loading import load_player
from diplomacy_engine.players.protocols import Player
from diplomacy_engine.rules.map import load_map

STANDARD = load_map("standard")


class Until(DiplomacySeats):
    """Seats that are left after the winter of a year."""

    last_year = 0

    def positions(self) -> list[Position]:
        """Return the game, as over once the last year is."""
        (position,) = super().positions()
        name = position.game.phase
        late = not position.over and int(name[1:-1]) > self.last_year
        return [position._replace(over=f"after {self.last_year}") if late else position]

    def wait(self, seconds: float) -> None:
        """Do not wait long: the other seats are played by the same program."""
        super().wait(min(seconds, 0.02))


def play_game(arguments: argparse.Namespace, number: int, players: list[Player]) -> dict:
    """Play a game; return the player's power, its centers, and the last position's phase."""
    power = STANDARD.powers[number % len(STANDARD.powers)]
    address, game_id, word = read_address(arguments.address), secrets.token_hex(6), "word"
    wire = Wire(address)
    wire.open()
    token = wire.ask("sign_in", username=f"{game_id}_maker", password=word)
    rules, count = ["POWER_CHOICE", "NO_PRESS"], len(STANDARD.powers)
    made = {"game_id": game_id, "map_name": "standard", "rules": rules, "n_controls": count}
    wire.ask("create_game", token=token, deadline=0, **made)
    wire.close()
    loops = []
    for player, powers in zip(players, ([power], [p for p in STANDARD.powers if p != power])):
        accounts = {name: Account(f"{game_id}_{name}", word) for name in powers}
        options = {"max_years": arguments.years, "say": lambda text: None}
        seats = Until(Wire(address), game_id, accounts, STANDARD, **options)
        seats.last_year = 1900 + arguments.years
        loops.append(SeatLoop(seats, player, arguments.seed + number, say=lambda text: None))
    try:
        while not loops[0]._round():
            loops[1]._round()
    finally:
        for loop in loops:
            loop.connection.close()
    (position,) = loops[0].counts.last.values()
    centers = {name: len(held) for name, held in position.game.centers.items()}
    counts = {"orders": loops[0].counts.orders, "dropped": loops[0].counts.dropped}
    return {"power": power, "centers": centers, "phase": position.game.phase} | counts


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("player")
    parser.add_argument("--against", default="dumbbot")
    parser.add_argument("--address", default="localhost:8432")
    parser.add_argument("--games", type=int, default=7)
    parser.add_argument("--years", type=int, default=35)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write every game to a file")
    arguments = parser.parse_args()
    names = arguments.player, arguments.against
    players = [load_player(name, game_map=STANDARD, seed=arguments.seed) for name in names]
    games = []
    for number in range(arguments.games):
        games.append(play_game(arguments, number, players))
        found = games[-1]
        own = found["centers"][found["power"]]
        print(f"{found['power']}: {own} centers in {found['phase']}, {found['dropped']} dropped")
    own = [game["centers"][game["power"]] for game in games]
    solos = sum(count >= STANDARD.board.victory_centers for count in own)
    print(f"{len(games)} games: {solos} solos, {sum(own) / len(games):.2f} centers on average")
    if arguments.json:
        arguments.json.write_text(json.dumps(games, indent=2) + "\n")


if __name__ == "__main__":
    main()
