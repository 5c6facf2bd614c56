"""The types of what a learner's script, which lies above this folder, has of its own.

They are those of ppo_selfplay_diplomacy.py, for a type checker alone: nothing here loads it.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["Pool", "Run", "RunSettings"]

if TYPE_CHECKING:
    from ppo_selfplay_diplomacy import Args as RunSettings
    from ppo_selfplay_diplomacy import OpponentPool as Pool
    from ppo_selfplay_diplomacy import Run
else:
    RunSettings = Pool = Run = Any
