"""Our native vector environment for Stable-Baselines3, which has a vector interface of its own."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from diplomacy_engine.environments import register_environments

register_environments()

OUTCOME = ("win", "solo", "centers", "years")


class NativeVecEnv(VecEnv):
    """`gymnasium.make_vec` as a VecEnv: `NativeVecEnv("Diplomacy-small-v0", 64, seed=1)`."""

    def __init__(self, environment: str, num_envs: int, seed: int | None = None, **settings: Any):
        self.envs = gymnasium.make_vec(
            environment, num_envs, vectorization_mode="vector_entry_point", **settings
        )
        self._seed = seed
        self._actions: np.ndarray | None = None
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, int)
        super().__init__(
            num_envs, self.envs.single_observation_space, self.envs.single_action_space
        )

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Have the next `reset` begin from a seed, such as that of a model of SB3."""
        self._seed = seed
        return [seed] * self.num_envs

    def reset(self) -> Any:
        """Start all games anew; the first time from the seed."""
        seen, _ = self.envs.reset(seed=self._seed)
        self._seed = None
        self._returns[:], self._lengths[:] = 0, 0
        return seen

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for step_wait."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict]]:
        """Play on; infos have what SB3 looks for, the last observation and the episode's sums.

        That of a finished game also has its `win`, `solo`, `centers` and `years`.
        """
        seen, reward, terminated, truncated, infos = self.envs.step(self._actions)
        over = terminated | truncated
        self._returns += reward
        self._lengths += 1
        listed: list[dict] = [{} for _ in range(self.num_envs)]
        for row in np.flatnonzero(over):
            listed[row] = {
                **{name: infos["final_info"][name][row] for name in OUTCOME},
                "terminal_observation": infos["final_obs"][row],
                "TimeLimit.truncated": bool(truncated[row]),
                "episode": {"r": self._returns[row], "l": int(self._lengths[row])},
            }
        self._returns[over], self._lengths[over] = 0, 0
        return seen, reward.astype(np.float32), over, listed

    def env_method(self, name: str, *arguments: Any, indices: Any = None, **settings: Any) -> list:
        """Call a method of the vector environment, and give each environment its share."""
        return list(getattr(self.envs, name)(*arguments, **settings))

    def has_attr(self, name: str) -> bool:
        """Tell whether the environment has an attribute; sb3-contrib asks for `action_masks`."""
        return hasattr(self.envs, name)

    def get_attr(self, name: str, indices: Any = None) -> list:
        """Return an attribute once for each environment."""
        return [getattr(self.envs, name, None)] * self.num_envs

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the games share their settings."""
        raise AttributeError(f"{name} cannot be set")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> Sequence[bool]:
        """Say no: nothing is wrapped, but episodes are counted here."""
        return [False] * self.num_envs

    def close(self) -> None:
        """Close the games."""
        self.envs.close()
