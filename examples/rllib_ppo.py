"""PPO by RLlib: one policy shared by all powers of a map, by self-play.

pip install "ray[rllib]==2.60.0" pettingzoo torch; python -m examples.rllib_ppo"""

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune import register_env

from diplomacy_engine.environments import parallel_env


class Powers(ParallelPettingZooEnv):
    """A game ends when no power is left, be some eliminated in the step of the year limit."""

    def step(self, action_dict):
        *said, terminated, truncated, infos = super().step(action_dict)
        terminated["__all__"] = not self.par_env.agents
        return *said, terminated, truncated, infos


def train(map_name: str = "small", iterations: int = 10, seed: int = 1) -> list[float]:
    """Play and learn; return the entropy of the policy after each iteration, which falls."""
    register_env("diplomacy", lambda _: Powers(parallel_env(map_name, flat=True, max_years=5)))
    config = (
        PPOConfig()
        .environment("diplomacy")
        .env_runners(num_env_runners=0)
        .multi_agent(policies={"shared"}, policy_mapping_fn=lambda *_, **__: "shared")
        .training(lr=1e-3, train_batch_size=1000, minibatch_size=250, num_epochs=4)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[128], vf_share_layers=False))
        .debugging(seed=seed)
    )
    algorithm, entropies = config.build_algo(), []
    for _ in range(iterations):
        found = algorithm.train()
        entropies.append(float(found["learners"]["shared"]["entropy"]))
        print(f"entropy {entropies[-1]:.2f}, return {found['env_runners']['episode_return_mean']}")
    algorithm.stop()
    return entropies


if __name__ == "__main__":
    train()
