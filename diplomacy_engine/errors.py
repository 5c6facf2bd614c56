"""The error that everybody who uses this project may meet."""

from ._suggest import printable


class UserError(ValueError):
    """What was asked for cannot be done; the message is one sentence that says what and why.

    Commands and the trainer print it. Any other exception is a bug and goes through, also a plain
    ValueError, such as that of arrays which do not fit each other.
    """

    def __str__(self) -> str:
        # Here, since a message may quote a file, and the file may come from anybody.
        return printable(super().__str__())
