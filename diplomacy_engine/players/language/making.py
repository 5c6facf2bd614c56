"""Language models as players, by their settings."""

from collections.abc import Callable

from .local import LocalPlayer
from .player import LanguagePlayer
from .remote import RemotePlayer
from .settings import LanguageSettings


def make_language_player(
    name: str,
    settings: LanguageSettings,
    load_model: Callable[[LanguageSettings, str, int], object],
    device: str = "cpu",
    greedy: bool = False,
    seed: int = 0,
) -> LanguagePlayer:
    """Return a language model as a player.

    Args:
        name: shown in results.
        settings: of it.
        load_model: returns a local model for settings, device and seed.
        device: where a local model computes.
        greedy: its likeliest orders instead of drawn ones.
        seed: of a local model's draws.

    Raises:
        UserError: the model or the key cannot be had.
    """
    if settings.is_local:
        return LocalPlayer(name, settings, load_model(settings, device, seed), greedy)
    return RemotePlayer(name, settings, greedy)
