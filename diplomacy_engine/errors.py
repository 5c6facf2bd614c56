"""The error that everybody who uses this project may meet."""


class UserError(ValueError):
    """What was asked for cannot be done; the message is one sentence that says what and why."""
