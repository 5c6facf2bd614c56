"""Diplomacy as an environment of OpenEnv (openenv-core 0.3.0): a session plays any of the seats.

    pip install openenv-core==0.3.0 && uvicorn examples.openenv_server:app

An action has orders of each power that is played, as texts; a bot plays the others. Over HTTP every
step begins a new environment: sessions last over WebSockets alone.
"""

import secrets
from typing import Any

from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from diplomacy_engine import Game, load_player
from diplomacy_engine.extras.programs.lines import positions_of
from diplomacy_engine.players.advice import orders_for


class Orders(Action):
    orders: dict[str, list[str]]  # by power that is played; units without one hold


class Position(Observation):
    phase: str
    units: dict[str, list[str]]
    centers: dict[str, list[str]]
    legal_orders: dict[str, dict[str, list[str]]]  # of the powers that are played, by unit
    rewards: dict[str, float]  # of each of these: centers gained; `reward` is their sum
    refused: list[str]  # orders that are not legal


class DiplomacyEnvironment(Environment[Orders, Position, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, map: str = "standard", opponent: str = "random", max_years: int = 10):
        super().__init__()
        self._map, self._years, self._opponent = map, max_years, load_player(opponent)
        self.reset()

    def reset(self, seed=None, episode_id=None, seats: list[str] | None = None, **_: Any):
        self.game = Game(self._map, max_years=self._years)
        own_seed = secrets.randbits(62) if seed is None else seed  # of the bot's draws, too
        self.game.vector_game.seed_games([0], [own_seed])
        self.seats = [self._power(name) for name in seats or self.game.powers]
        self._state = State(episode_id=episode_id, step_count=0)
        return self._position(dict.fromkeys(self.seats, 0.0), [])

    def _power(self, name: str) -> str:
        return self.game.powers[self.game.map.power_number(name)]

    def step(self, action: Orders, timeout_s: float | None = None, **_: Any) -> Position:
        before, refused = {p: len(c) for p, c in self.game.centers.items()}, []
        ordered = {self._power(name): orders for name, orders in action.orders.items()}
        for power in sorted(ordered.keys() - set(self.seats)):
            refused += [f"{text}: {power} is not played here" for text in ordered[power]]
        others = [power for power in self.game.powers if power not in self.seats]
        for power, orders in orders_for(self.game, self._opponent, others).items():
            self.game.submit(power, orders)
        for power in self.seats:
            refused += self.game.submit(power, ordered.get(power, []), strict=False)
        self.game.adjudicate()
        self._state.step_count += 1
        gains = {p: float(len(self.game.centers[p]) - before[p]) for p in self.seats}
        return self._position(gains, refused)

    @property
    def state(self) -> State:
        return self._state

    def _position(self, rewards: dict[str, float], refused: list[str]) -> Position:
        games = self.game.vector_game
        known = positions_of(games, games.decisions(), ["legal_orders"])  # none once it is over
        legal = known[0].legal_orders if known else {}
        return Position(
            phase=self.game.phase,
            units=self.game.units,
            centers=self.game.centers,
            legal_orders={p: legal[p] for p in self.seats if p in legal},
            rewards=rewards,
            reward=sum(rewards.values()),
            refused=refused,
            done=self.game.is_over,
        )


app = create_fastapi_app(DiplomacyEnvironment, Orders, Position)
