"""The error that everybody who uses this project may meet."""


class UserError(ValueError):
    """What was asked for cannot be done; the message is one sentence that says what and why.

    Commands and the trainer print it. Any other exception is a bug and goes through, also a plain
    ValueError, such as that of arrays which do not fit each other.
    """
