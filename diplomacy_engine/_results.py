"""Where the results of the commands go: tables to a console, files that can be written."""

from pathlib import Path

from rich.console import Console

from .run_folder import check_writable


def make_console() -> Console:
    """Return a console; whoever reads a file or pipe gets whole lines."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 200
    return console


def check_target(file: Path) -> None:
    """Raise ValueError before the work begins if a result could not be written afterwards."""
    if file.is_dir():
        raise ValueError(f"{file} is a folder, not a file to write to")
    if file.exists() and not file.is_file():
        return  # a device or pipe
    if not file.parent.is_dir():
        raise ValueError(f"{file} cannot be written: there is no folder {file.parent}")
    check_writable(file.parent)
