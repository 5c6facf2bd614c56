"""The checkpoints of a training script: reading them, and making the networks that they hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..players import checkpoints
from ..rules.map import Map
from .checks import policy_path


class PolicyFiles:
    """Reads checkpoints of one script. Every problem is a UserError of one sentence.

    Args:
        script: the file that trains and plays them.
        settings: its default settings, for those that an older checkpoint lacks.
        load: reads tensors and plain values of a file, so that no checkpoint can run code.
        make: returns a new network for settings and a map; it has `load_state_dict`.
    """

    def __init__(
        self,
        script: str,
        settings: dict,
        load: Callable[[Path], Any],
        make: Callable[[dict, Map], Any],
    ):
        self.script, self.defaults, self.load, self.make = script, settings, load, make

    def read(self, path: str | Path) -> dict:
        """Return a checkpoint's dictionary."""
        return checkpoints.read_checkpoint(path, self.load)

    def header(self, path: str | Path) -> dict:
        """Return what a checkpoint says of itself, without its weights."""
        return checkpoints.header(self.read(path))

    def settings(self, saved: dict) -> dict:
        """Return the settings with which a checkpoint was trained."""
        return self.defaults | saved["args"]

    def network(self, saved: dict, path: str | Path) -> Any:
        """Return the network of a checkpoint, if it fits the script."""
        with checkpoints.fitting(path, self.script):
            network = self.make(self.settings(saved), checkpoints.map_of(saved, path))
            network.load_state_dict(saved["model"])
        return network

    def policy(self, flag: str, name: str) -> dict:
        """Return the policy that a flag names, as `checkpoints.policy_part` does."""
        path = policy_path(flag, name)
        saved = self.read(path)
        self.network(saved, path)  # says what is wrong if it does not fit
        return checkpoints.policy_part(saved | {"args": self.settings(saved)})
