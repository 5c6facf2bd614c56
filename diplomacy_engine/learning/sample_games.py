"""Games of a training run as things to look at: a replay page, the final board, the chart."""

from collections.abc import Mapping, Sequence

from ..pictures.png import png
from ..players.advice import advice, has_decision
from ..players.protocols import ExplainingPlayer
from ..replays.page import page
from ..replays.replay import chart_svg, frame_svg, make_replay
from ..rules.map import Map
from ..textgame.game import Game

IMAGE_WIDTH = 720  # pixels
CHOICES = 5  # likeliest orders of a unit that are kept


def show_games(
    games: Mapping[str, Sequence[Mapping]], title: str, game_map: Map | None = None
) -> tuple[str, dict[str, bytes]]:
    """Return a page that replays some games, and pictures (PNG) by name."""
    replays, images = [], {}
    for name, saved_games in games.items():
        for saved in saved_games:
            named = {**saved, "id": f"{saved.get('id', '')} against {name}"}
            replay = make_replay(named, game_map)
            if f"games/{name}/board" not in images:
                board = frame_svg(replay, len(replay.frames) - 1, "light")
                images[f"games/{name}/board"] = png(board, replay.map, width=IMAGE_WIDTH)
                chart = chart_svg(replay, "light")
                images[f"games/{name}/centers"] = png(chart, replay.map, width=IMAGE_WIDTH)
            replays.append(replay)
    return page(replays, title), images


def thoughts(player: ExplainingPlayer, game: Game, power: str) -> dict[str, dict]:
    """Return a player's explanation of a power's decision, for a saved game: its `value`, by unit
    the likeliest `orders`, of a search the best candidates `tried`."""
    if not has_decision(game.to_state(), power):
        return {}
    hint = advice(game, player, power)
    units = {
        unit: [[text, round(share, 3)] for text, share in ranked[:CHOICES]]
        for unit, ranked in hint.slots
    }
    thought: dict = {"value": None if hint.value is None else round(hint.value, 3)}
    thought["orders"] = units
    if hint.tried:
        thought["tried"] = [
            [c.orders, None if c.value is None else round(c.value, 4), round(c.share, 3)]
            for c in hint.tried.candidates[:CHOICES]
        ]
    return {power: thought}
