"""The checkpoints of a training script: reading them, and making the networks that they hold."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..players import checkpoints
from ..rules.map import Map
from .checks import check_memory, network_settings, policy_path
from .settings import check_values


class PolicyFiles:
    """Reads checkpoints of one script. Every problem is a UserError of one sentence.

    Args:
        script: the file that trains and plays them.
        args_class: its settings; its defaults are for what an older checkpoint lacks.
        load: reads tensors and plain values of a file, so that no checkpoint can run code.
        make: returns a new network for settings and a map; it has `load_state_dict`.
        outline: a context in which a network takes no memory, such as torch's meta device.
    """

    def __init__(
        self,
        script: str,
        args_class: type,
        load: Callable[[Path], Any],
        make: Callable[[dict, Map], Any],
        outline: Callable[[], AbstractContextManager],
    ):
        self.script, self.args_class, self.load, self.make = script, args_class, load, make
        self.outline = outline

    def read(self, path: str | Path) -> dict:
        """Return a checkpoint's dictionary."""
        return checkpoints.read_checkpoint(path, self.load)

    def header(self, path: str | Path) -> dict:
        """Return what a checkpoint says of itself, without its weights."""
        return checkpoints.header(self.read(path))

    def settings(self, saved: dict) -> dict:
        """Return the settings with which a checkpoint was trained."""
        return asdict(self.args_class()) | saved["args"]

    def network(self, saved: dict, path: str | Path) -> Any:
        """Return the network of a checkpoint, if it fits the script."""
        with checkpoints.fitting(path, self.script):
            game_map, settings = checkpoints.map_of(saved, path), self.settings(saved)
            sizes = {name: settings[name] for name in network_settings(self.args_class)}
            check_values(self.args_class, sizes, f"{path}, args")
            if settings["num_layers"] > len(saved["model"]):  # making so many would take long
                raise ValueError("it has other weights")
            checkpoints.check_weights(saved["model"], self.weights(settings, game_map))
            network = self.make(settings, game_map)
            network.load_state_dict(saved["model"])
        return network

    def weights(self, settings: dict, game_map: Map) -> dict[str, Any]:
        """Return the weights of a network by name, in shape and type: they have no memory."""
        with self.outline():
            return self.make(settings, game_map).state_dict()

    def check_beginning(self, args: Any, model: dict, game_map: Map) -> None:
        """Raise UserError unless a new network can begin with the weights of --start-from."""
        with self.outline():
            network = self.make(vars(args), game_map)
        try:
            network.load_state_dict(model, assign=True)
        except RuntimeError:  # torch's, with a list of names
            raise UserError(
                f"--start-from {args.start_from} has other weights than a network that "
                f"{Path(self.script).name} makes with these settings"
            ) from None

    def check_memory(self, args: Any, game_map: Map, ranks: int) -> None:
        """Raise UserError if a run with these settings needs more memory than there is."""
        weights = self.weights(vars(args), game_map).values()
        check_memory(args, game_map, sum(weight.numel() for weight in weights), ranks)

    def policy(self, flag: str, name: str) -> dict:
        """Return the policy that a flag names, as `checkpoints.policy_part` does."""
        path = policy_path(flag, name)
        saved = self.read(path)
        self.network(saved, path)  # says what is wrong if it does not fit
        return checkpoints.policy_part(saved | {"args": self.settings(saved)})
