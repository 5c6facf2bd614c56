"""The policy of an agent as a player of matches."""

import numpy as np
import torch
from torch import nn

from ..games.decisions import Decisions
from ..games.observation import BoardViews
from ..players.policy.player import PolicyPlayer
from ..players.protocols import Explanation
from . import ops


def agent_of(player: PolicyPlayer) -> nn.Module:
    """Return the network of a policy of this package."""
    if not isinstance(player.agent, AgentNetwork):
        raise TypeError(f"{player.name} has another network")
    return player.agent.agent


class AgentNetwork:
    """An agent such as the script's in arrays, as players ask it (players/policy/player.py)."""

    def __init__(self, agent: nn.Module):
        self.agent = agent
        self.observe, self.legal_orders = agent.observe, agent.legal_orders
        self.vocabulary_hash = agent.inputs.vocabulary_hash
        self.num_powers = agent.inputs.num_powers

    @torch.no_grad()
    def act(
        self,
        obs: BoardViews,
        decisions: Decisions,
        noise: np.ndarray,
        temperature: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (S,) positions in the slots' lists, (D,) log-probabilities and (D,) values."""
        action = self.agent.get_action_and_value(
            obs, decisions, noise=noise, temperature=temperature
        )
        return action.chosen, _array(action.logprob), _array(action.value)

    @torch.no_grad()
    def explain(self, obs: BoardViews, decisions: Decisions) -> Explanation:
        action = self.agent.get_action_and_value(obs, decisions, noise=ops.LIKELIEST)
        return Explanation(_array(action.probability), _array(action.value))

    @torch.no_grad()
    def values(self, obs: BoardViews) -> np.ndarray:
        return _array(self.agent.get_value(obs))


def _array(tensor: torch.Tensor) -> np.ndarray:
    return tensor.float().cpu().numpy()


def policy_player(
    agent: nn.Module, name: str, greedy: bool = False, settings: dict | None = None
) -> PolicyPlayer:
    return PolicyPlayer(AgentNetwork(agent), name, greedy, settings)
