"""Games of a training run as things to look at: a replay page, the final board, the chart."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .consult import advice, has_decision
from .game import Game
from .map import Map
from .pictures import png
from .players import ExplainingPlayer
from .replay import chart_svg, frame_svg, make_replay, page

IMAGE_WIDTH = 720  # pixels
CHOICES = 5  # likeliest orders of a unit that are kept

# What TensorBoard's custom scalars show together: category -> chart -> patterns of names.
DASHBOARD = {
    "learning": {
        "losses": ["losses/(policy|value)_loss"],
        "entropy": ["losses/entropy"],
        "change per update": ["losses/(old_)?approx_kl", "losses/clipfrac"],
        "explained variance": ["losses/explained_variance"],
        "learning rate": ["charts/learning_rate"],
    },
    "self-play": {
        "results against the pool": ["selfplay/(win|draw|loss|solo)$"],
        "opponents' age in decisions": ["selfplay/opponent_age"],
    },
    "evaluation": {
        "wins": ["eval/[^/]+/win$"],
        "wins by power": ["eval/[^/]+/win_"],
        "centers": ["eval/[^/]+/centers$"],
        "solo, draw, loss": ["eval/[^/]+/(solo|draw|loss)$"],
    },
    "league": {
        "pool": ["league/pool_size"],
        "ratings": ["league/rating_(?!learner_deviation)"],
    },
    "timing": {
        "decisions per second": ["charts/SPS"],
        "seconds by stage": ["timing/(?!outside)"],
        "share outside the network": ["timing/outside_network_share"],
    },
}


class Captured(NamedTuple):
    """What is kept of some games."""

    page: str  # HTML that replays them all
    images: dict[str, bytes]  # name -> PNG


def dashboard() -> dict[str, dict[str, list]]:
    """Return DASHBOARD as SummaryWriter.add_custom_scalars takes it."""
    return {
        category: {chart: ["Multiline", names] for chart, names in charts.items()}
        for category, charts in DASHBOARD.items()
    }


def capture(
    games: Mapping[str, Sequence[Mapping]], title: str, game_map: Map | None = None
) -> Captured:
    """Return the replay page of saved games, and pictures of the first of each group.

    Args:
        games: whom they were played against -> saved games.
        title: of the page.
        game_map: they were played on; None for the one that they name.
    """
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
    return Captured(page(replays, title), images)


def thoughts(player: ExplainingPlayer, game: Game, power: str) -> dict[str, dict]:
    """Return what a player thinks of a power's decision, to be kept in a saved game.

    Returns:
        The power, unless it has nothing to order, with `value`, the reward it expects, and
        `orders`: by unit (in winter by `build 1` and so on) the likeliest ones,
        each with its probability.
    """
    if not has_decision(game.to_state(), power):
        return {}
    found = advice(game, player, power)
    units = {
        unit: [[text, round(share, 3)] for text, share in ranked[:CHOICES]]
        for unit, ranked in found.slots
    }
    return {power: {"value": round(found.value, 3), "orders": units}}
