"""The player of a name that begins with `llm:`."""

from ...players.names import LanguageSpec, short_name
from .local import LocalPlayer
from .player import LanguagePlayer
from .remote import RemotePlayer
from .settings import read_settings


def load_language_player(spec: LanguageSpec, device: str, greedy: bool) -> LanguagePlayer:
    """Return the player; UserError: wrong settings, or a model that cannot be loaded."""
    settings, name = read_settings(spec), short_name(spec)
    if not settings.is_local:
        return RemotePlayer(name, settings, greedy)
    from .model import load_language_model  # with PyTorch

    return LocalPlayer(name, settings, load_language_model(settings, device), greedy)
