"""Operations of a policy over legal orders."""

import torch


def draw_noise(decisions, generator=None):
    """Return (N,) uniform in (0, 1), by which orders are drawn; None for torch's own generator."""
    return torch.rand(len(decisions.order), generator=generator).clamp(1e-20, 1 - 1e-7).numpy()
