"""The orders of a match's first games, kept to write saved games afterwards."""

from collections.abc import Callable

import numpy as np

from ..constants import AGREED, BUILD, FALL_RETREATS, NONE, RUNNING, SPRING_RETREATS, phase_name
from ..games.game import Game
from ..games.vector_game import VectorGame
from ..press.daide import messages_of
from ..press.deals import Offers, Words
from ..press.table import Press


class GameRecorder:
    """Keeps the orders of the first rows of a match, to write saved games afterwards."""

    def __init__(self, rows: int):
        self.rows = rows
        self._steps: list[tuple[np.ndarray, ...]] = []
        self._talk: dict[
            int, list[tuple[Offers, np.ndarray, Words]]
        ] = {}  # step -> what was said before

    def listen(self, press: Press) -> None:
        """Keep what powers say in the recorded games, to write it into their saved games."""
        press.log, press.logged = [], self.rows

    def note(self, games: VectorGame, orders: np.ndarray, press: Press | None = None) -> None:
        """Keep the orders (E, V) about to be given, and what was said in `press` before."""
        if press is not None and press.log:
            self._talk[len(self._steps)], press.log = press.log, []
        state, rows = games.state, slice(self.rows)
        retreating = np.isin(state.phase[rows, None], (SPRING_RETREATS, FALL_RETREATS))
        owner = np.where(retreating, state.dislodged_power[rows], state.unit_power[rows])
        building = (games.table.kind[orders[rows]] == BUILD) & (orders[rows] != NONE)
        builder = np.where(
            games.board.province_center == NONE,
            NONE,
            state.center_owner[rows][:, games.board.province_center],
        )
        owner = np.where(building, builder, owner)
        running = state.end[rows] == RUNNING
        self._steps.append(
            (running, state.year[rows].copy(), state.phase[rows].copy(), owner, orders[rows].copy())
        )

    def replay(
        self, games: VectorGame, think: Callable[[int, Game], dict] | None = None
    ) -> list[Game]:
        """Return the recorded games of a match that began with the opening position.

        Args:
            games: those that were played.
            think: asked before every phase, with row and Game, for the `thoughts` to keep with it.
        """
        replayed = [Game(games.map, games.max_years or None) for _ in range(self.rows)]
        texts = games.vocabulary.texts
        for step, (running, year, phase, owner, orders) in enumerate(self._steps):
            for row in np.flatnonzero(running):
                game = replayed[row]
                recorded = phase_name(year[row], phase[row])
                if game.phase != recorded:
                    raise RuntimeError(f"the replay of a game is in {game.phase}, not {recorded}")
                self._say(game, row, self._talk.get(step, []))
                for power, name in enumerate(game.powers):
                    mine = np.flatnonzero((owner[row] == power) & (orders[row] != NONE))
                    given = [texts[number] for number in orders[row, mine]]
                    game.submit(name, given, strict=False)
                thoughts = think(int(row), game) if think else {}
                game.adjudicate()
                if thoughts:
                    game.history[-1]["thoughts"] = thoughts
        for row in np.flatnonzero(games.state.end[: self.rows] == AGREED):
            game, alive = replayed[row], games.outcomes([row]).alive[0]
            game.draw_votes = True
            for power, lives in zip(game.powers, alive):
                if lives:
                    game.vote(power)
            game.adjudicate()
        return replayed

    @staticmethod
    def _say(game: Game, row: int, talk: list[tuple[Offers, np.ndarray, Words]]) -> None:
        """Say in a game what was said in a row."""
        for offers, fates, words in talk:
            mine = np.flatnonzero(offers.game == row)
            own = tuple([texts[o] for o in mine] for texts in words)
            said = list(messages_of(game.vector_game, offers.take(mine), fates[mine], own))
            for sender, recipient, text in said:
                game.send(game.powers[sender], game.powers[recipient], text)
