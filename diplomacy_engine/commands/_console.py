"""Where the commands print their tables."""

from rich.console import Console


def make_console() -> Console:
    """Return a console; whoever reads a file or pipe gets whole lines."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200
    return console
