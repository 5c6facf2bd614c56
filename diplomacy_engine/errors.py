"""The error of invalid input."""

from ._suggest import printable


class UserError(ValueError):
    """A request cannot be carried out; the message is one sentence with the place and the reason.

    Commands and the trainer print it. Any other exception is a bug and goes through, also a plain
    ValueError, such as that of arrays which do not fit each other.
    """

    def __str__(self) -> str:
        # Here, since a message may quote a file, and the file may come from anybody.
        return printable(super().__str__())
