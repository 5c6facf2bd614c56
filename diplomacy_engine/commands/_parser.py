"""The parser of every command: its help begins with examples, its errors are one sentence."""

import argparse
import shutil
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from .._suggest import did_you_mean, quoted


class Parser(argparse.ArgumentParser):
    """A parser whose help shows what to type first, then each option.

    Args:
        needs: what must be given, as the first line of the help shows it.
        description: what the command does.
        examples: command lines without the program's name.
        options: as for `argparse.ArgumentParser`.
    """

    def __init__(
        self,
        *,
        needs: str = "",
        description: str = "",
        examples: Sequence[str] = (),
        **options: Any,
    ):
        width = min(shutil.get_terminal_size().columns, 100) - 2
        super().__init__(
            usage=" ".join(f"%(prog)s {needs} [options]".split()),
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=width),
            allow_abbrev=False,
            **options,
        )
        self.description = textwrap.fill(description, width)
        self.examples = [f"{self.prog} {example}".rstrip() for example in examples]
        if self.examples:
            self.description += "\n\nexamples:\n  " + "\n  ".join(self.examples)

    def add_subparsers(self, **options: Any) -> Any:
        """Add commands of this one."""
        self.usage = f"%(prog)s {options['metavar']} ..."
        return super().add_subparsers(prog=self.prog, required=True, **options)

    def parse_known_args(self, *arguments: Any) -> tuple[argparse.Namespace, list[str]]:
        """Parse; what a command does not know, it refuses itself: its own help is worth a look."""
        found, unknown = super().parse_known_args(*arguments)
        if unknown:
            word = unknown[0].split("=")[0]
            flags = [flag for action in self._actions for flag in action.option_strings]
            what = "unknown flag" if word[:1] == "-" else "unexpected argument"
            self.error(f"{what} {quoted(word, 60)}{did_you_mean(word, flags)}")
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = did_you_mean(str(value), action.choices)
            if isinstance(action, argparse._SubParsersAction):
                self.error(f"there is no command {quoted(value, 60)}{near}")
            choices = ", ".join(map(str, action.choices))
            raise argparse.ArgumentError(
                action, f"must be one of {choices}, not {quoted(value, 60)}{near}"
            )

    def error(self, message: str) -> NoReturn:
        """Say in one sentence what is wrong, and where to read on."""
        end = "" if message.endswith("?") else ";"
        self.exit(2, f"error: {message}{end} see {self.prog} --help\n")
