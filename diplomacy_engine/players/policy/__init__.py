"""What a network is told of boards and orders, and kernels of its policy; without PyTorch."""

from .inputs import FIRST_CLASS, FIRST_RELATION, NetworkInputs

__all__ = ["FIRST_CLASS", "FIRST_RELATION", "NetworkInputs"]
