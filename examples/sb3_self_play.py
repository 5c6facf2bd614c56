"""Self-play with Stable-Baselines3: MaskablePPO on `small`, against frozen copies of itself.

    pip install stable-baselines3 sb3-contrib
    python -m examples.sb3_self_play --minutes 5
    python -m examples.sb3_self_play --promote-by steps --promote-at 20000

Stage 1 plays against `random`. At each promotion a copy of the policy is frozen, and games that
begin from then on draw their opponents from the newest copies. runs/sb3_self_play then has the
model, the copies, and the curve as a picture (curve.svg). The model plays wherever a player can:

    python -m diplomacy_engine evaluate --player examples.sb3_self_play:player --against dumbbot
    python -m diplomacy_engine tournament --players examples.sb3_self_play:player dumbbot random
    python -m diplomacy_engine population rank --player examples.sb3_self_play:player
"""

import argparse
import importlib.util
import sys
import time
from collections import deque
from pathlib import Path

if __name__ == "__main__" and importlib.util.find_spec("sb3_contrib") is None:
    sys.exit("error: this example needs two packages: pip install stable-baselines3 sb3-contrib")

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from diplomacy_engine import evaluate_player, load_player, make_bot
from diplomacy_engine.environments.observation_player import ObservationPlayer
from diplomacy_engine.matches.population import rank_player
from diplomacy_engine.matches.tournament import play_tournament
from diplomacy_engine.players.loading import load_members
from diplomacy_engine.players.population import read_population
from examples.sb3_vec_env import NativeVecEnv

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "runs" / "sb3_self_play"
NUM_ENVS = 64  # games at once, played in compiled loops
PROMOTE_AT = {"steps": 20_000, "episodes": 500, "win-rate": 0.8}


class OneHotBoard(BaseFeaturesExtractor):
    """Shows the network the board as ones and zeros, without the results of the last orders."""

    def __init__(self, space: gymnasium.spaces.Dict):
        sizes = torch.as_tensor(space["board"].high[0, :-1]).long() + 1
        provinces, self.width = len(space["board"].high), int(sizes.sum())
        super().__init__(space, provinces * self.width + space["scalars"].shape[0])
        self.register_buffer("first", torch.cumsum(sizes, 0) - sizes)
        self.register_buffer("scale", 1 / torch.as_tensor(space["scalars"].high).float().clamp(1))

    def forward(self, seen: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the features, (D, features_dim) float32."""
        index = seen["board"][:, :, :-1].long() + self.first
        board = torch.zeros(*index.shape[:2], self.width).scatter_(2, index, 1.0)
        return torch.cat([board.flatten(1), seen["scalars"] * self.scale], 1)


def player(file: str | Path = FOLDER / "model.zip", seed=torch.manual_seed) -> ObservationPlayer:
    """Return a saved model as a player; the command line calls this, as this file's top says."""
    policy = MaskablePPO.load(file, device="cpu").policy

    def act(seen: dict[str, np.ndarray], masks: np.ndarray) -> np.ndarray:
        return policy.predict(seen, action_masks=masks)[0]

    name = Path(file).stem
    return ObservationPlayer(act, name=name, game_map="small", seed=seed)


class SelfPlay(BaseCallback):
    """Promotes the policy: after so many steps or games, or once it wins so often.

    Args:
        by: `steps`, `episodes` or `win-rate`, all counted since the last promotion.
        at: how many; the share of the last 100 games, all of this stage, for `win-rate`.
        seconds: after which training stops.
        pool: how many of the newest copies are opponents.
    """

    def __init__(self, by: str, at: float, seconds: float, pool: int, folder: Path):
        super().__init__()
        self.by, self.at, self.pool, self.folder = by, at, pool, folder
        self.end = time.monotonic() + seconds
        self.promotions: list[int] = []  # the steps at which they were
        self.curve: list[tuple[int, float]] = []  # steps, and the share won of the last 100 games
        self.copies: list[ObservationPlayer] = []
        self._new_stage()

    def _new_stage(self) -> None:
        self.began, self.episodes, self.wins = self.num_timesteps, 0, deque(maxlen=100)
        # Games that are running were begun against the opponents of the stage before.
        self.of_before = set(range(self.training_env.num_envs)) if self.promotions else set()

    def _on_step(self) -> bool:
        for row in np.flatnonzero(self.locals["dones"]):
            if row in self.of_before:
                self.of_before.remove(row)
                continue
            self.episodes += 1
            self.wins.append(self.locals["infos"][row]["win"])
        return time.monotonic() < self.end

    def _on_rollout_end(self) -> None:
        if not self.wins:
            return
        rate = float(np.mean(self.wins))
        self.curve.append((self.num_timesteps, rate))
        reached = {"steps": self.num_timesteps - self.began, "episodes": self.episodes}
        reached["win-rate"] = rate if len(self.wins) == self.wins.maxlen else 0.0
        if reached[self.by] >= self.at:
            self._promote(rate)

    def _promote(self, rate: float) -> None:
        self.promotions.append(self.num_timesteps)
        file = self.folder / f"copy_{len(self.promotions)}.zip"
        self.model.save(file)
        self.copies = [*self.copies, player(file, None)][-self.pool :]
        self.training_env.envs.set_opponents(self.copies, next_game=True)
        print(f"{self.num_timesteps:,} steps: promotion {len(self.promotions)}, won {rate:.0%}")
        self._new_stage()


def curve_svg(curve: list[tuple[int, float]], promotions: list[int]) -> str:
    """Return the share of games won over steps as a picture, with a line at each promotion."""
    last = max(curve[-1][0] if curve else 1, *promotions, 1)
    line = " ".join(
        f"{60 + 720 * steps / last:.1f},{20 + 300 * (1 - won):.1f}" for steps, won in curve
    )
    parts = [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="320" stroke="#c33" stroke-dasharray="4"/>'
        for x in (60 + 720 * steps / last for steps in promotions)
    ]
    for won in (0, 25, 50, 75, 100):
        y = 320 - 3 * won
        parts.append(f'<line x1="60" x2="780" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="52" y="{y + 4}" text-anchor="end">{won}%</text>')
    parts += [
        f'<polyline points="{line}" fill="none" stroke="#236" stroke-width="2"/>',
        f'<text x="780" y="340" text-anchor="end">{last:,} steps</text>',
        '<text x="60" y="340">games won of the last 100; dashed: promotions</text>',
    ]
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 350" font-family="sans-serif">'
    return f'{head}<rect width="800" height="350" fill="#fff"/>{"".join(parts)}</svg>'


def show_strength(file: Path, games: int) -> None:
    """Print how the finished model does against bots, in a tournament, and in a population."""
    model = player(file)
    for bot in ("random", "dumbbot"):
        result = evaluate_player("small", model, make_bot(bot), num_games=games, seed=1).result()
        parts = {"all": result["overall"]} | result["by_power"]
        won = ", ".join(f"{name} {part['win']['value']:.1%}" for name, part in parts.items())
        print(f"against {bot}, {games:,} games won: {won}")
    bots = [make_bot("random"), make_bot("dumbbot"), load_player("small-pure-1")]
    result = play_tournament("small", [model, *bots], num_games=games, seed=1).result()
    for name, found in result["players"].items():
        print(f"tournament of {games:,} games: {name}, rating {found['rating']['value']:.1f}")
    population = read_population(ROOT / "runs" / "population" / "small")
    standing = rank_player(population, model, load_members(population), games, seed=1)
    print(f"among the population of small: {standing.text()}")


def main() -> None:
    """Train, draw the curve, and show how strong the model is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0, help="of training, at most")
    parser.add_argument("--steps", type=int, default=10_000_000, help="of training, at most")
    parser.add_argument("--promote-by", choices=PROMOTE_AT, default="win-rate")
    parser.add_argument("--promote-at", type=float, help=f"if not at {PROMOTE_AT}")
    parser.add_argument("--pool", type=int, default=5, help="newest copies that are opponents")
    parser.add_argument("--games", type=int, default=400, help="of each evaluation at the end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # as fast as more, for so small a network

    envs = NativeVecEnv("Diplomacy-small-v0", NUM_ENVS, seed=arguments.seed, opponents="random")
    network = {"features_extractor_class": OneHotBoard, "net_arch": [128, 128]}
    model = MaskablePPO(
        "MultiInputPolicy", envs, n_steps=32, batch_size=512, n_epochs=4, learning_rate=5e-4,
        ent_coef=0.01, seed=arguments.seed, device="cpu", policy_kwargs=network,
    )  # fmt: skip
    by, seconds = arguments.promote_by, 60 * arguments.minutes
    at = arguments.promote_at or PROMOTE_AT[by]
    play = SelfPlay(by, at, seconds, arguments.pool, arguments.folder)
    model.learn(arguments.steps, callback=play)
    model.save(arguments.folder / "model.zip")
    (arguments.folder / "curve.svg").write_text(curve_svg(play.curve, play.promotions))
    print(f"{model.num_timesteps:,} steps, {len(play.promotions)} promotions")
    show_strength(arguments.folder / "model.zip", arguments.games)


if __name__ == "__main__":
    main()
