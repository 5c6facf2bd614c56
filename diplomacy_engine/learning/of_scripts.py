"""The types of what a learner's script, which lies above this folder, has of its own."""

from typing import Any

RunSettings = Any  # a frozen dataclass with the names of the script's `Args`, perhaps more
Pool = Any  # its `OpponentPool`
Run = Any  # its `Run`, or another class with these attributes
