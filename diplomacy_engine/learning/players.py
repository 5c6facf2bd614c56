"""The policy of an agent as a player of matches."""

import torch
from torch import nn

from ..players.policy import PolicyPlayer


def policy_player(
    agent: nn.Module, name: str, seed: int = 0, greedy: bool = False, settings: dict | None = None
) -> PolicyPlayer:
    """Return an agent as a player of matches; `settings` are those it was trained with."""
    return PolicyPlayer(agent, name, torch.Generator().manual_seed(seed), greedy, settings)
