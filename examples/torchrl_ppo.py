"""PPO by torchrl: one network for all powers of a map, with masks, by self-play.

pip install torchrl==0.14.1 pettingzoo; python -m examples.torchrl_ppo"""

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torch.distributions import Categorical, Independent
from torch.nn.utils.rnn import pad_sequence
from torchrl.collectors import Collector
from torchrl.envs import PettingZooWrapper
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss, ValueEstimators

from diplomacy_engine import evaluate_player, make_bot
from diplomacy_engine.environments import parallel_env
from diplomacy_engine.environments.observation_player import ObservationPlayer

POWERS = "powers"  # the name of their group


class Orders(Independent):
    """An order for each province, of those that the mask allows."""

    def __init__(self, logits: torch.Tensor, mask: torch.Tensor, sizes: list[int]):
        allowed = logits.masked_fill(~mask, -1e9).movedim(-1, 0).split(sizes)
        padded = pad_sequence(list(allowed), padding_value=-2e9)  # (most, provinces, ...)
        super().__init__(Categorical(logits=padded.movedim((0, 1), (-1, -2))), 1)

    @property
    def deterministic_sample(self) -> torch.Tensor:
        return self.mode


def train(map_name: str = "small", frames: int = 20_000, seed: int = 1) -> float:
    """Play and learn; return the share of games won against `random` afterwards."""
    torch.manual_seed(seed)
    game = parallel_env(map_name, flat=True, max_years=5, reward="sum_of_squares=1,lead_delta=1")
    groups = {POWERS: game.possible_agents}
    env = PettingZooWrapper(game, use_mask=True, group_map=groups, seed=seed)
    sizes = game.action_space(game.possible_agents[0]).nvec.tolist()
    inputs = game.observation_space(game.possible_agents[0]).shape[0]
    seen, value, logits = ((POWERS, name) for name in ("observation", "state_value", "logits"))
    policy, critic = (
        nn.Sequential(nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, size))
        for size in (sum(sizes), 1)
    )
    actor = ProbabilisticActor(
        TensorDictModule(policy, [seen], [logits]),
        in_keys={"logits": logits, "mask": (POWERS, "action_mask")},
        out_keys=[env.action_key],
        distribution_class=Orders,
        distribution_kwargs={"sizes": sizes},
        return_log_prob=True,
        log_prob_key=(POWERS, "log_prob"),
    )
    loss = ClipPPOLoss(actor, ValueOperator(critic, [seen], [value]), normalize_advantage=True)
    keys = {name: (POWERS, name) for name in ("reward", "done", "terminated")}
    loss.set_keys(**keys, action=env.action_key, value=value, sample_log_prob=(POWERS, "log_prob"))
    loss.make_value_estimator(ValueEstimators.GAE, gamma=0.99, lmbda=0.95)
    optimizer = torch.optim.Adam(loss.parameters(), 1e-3)
    for batch in Collector(env, actor, frames_per_batch=1000, total_frames=frames):
        with torch.no_grad():
            loss.value_estimator(batch)
        for part in [batch[rows] for _ in range(4) for rows in torch.randperm(1000).split(250)]:
            found = loss(part)
            optimizer.zero_grad()
            (found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]).backward()
            optimizer.step()

    @torch.no_grad()
    def act(vectors, masks):
        return (
            Orders(policy(torch.tensor(vectors)), torch.tensor(masks) > 0, sizes).sample().numpy()
        )

    player = ObservationPlayer(act, flat=True)
    result = evaluate_player(
        map_name, player, make_bot("random"), num_games=400, max_years=5
    ).result()
    return result["overall"]["win"]["value"]


if __name__ == "__main__":
    print(f"wins against random: {train()}")
