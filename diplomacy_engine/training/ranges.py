"""The ranges of settings, as types of their fields: `gamma: Share = 0.99`."""

import dataclasses
import math
from typing import Annotated


@dataclasses.dataclass(frozen=True)
class Between:
    """The range of a number, with both its ends."""

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        if self.low == -math.inf:
            return f"up to {self.high}"
        return f"from {self.low} " + ("on" if self.high == math.inf else f"to {self.high}")


Positive = Annotated[int, Between(1)]
Natural = Annotated[int, Between(0)]
NonNegative = Annotated[float, Between(0, 10**9)]  # PyTorch computes with far smaller ones, too
Share = Annotated[float, Between(0, 1)]
