"""What objects show of themselves in a notebook or at Python's prompt: one line.

A class takes one of these as its `__repr__`.
"""


def array_shapes(self: tuple) -> str:
    """Return a named tuple of arrays as their names, shapes and types."""
    shown = (
        f"{name} {array.dtype}{list(array.shape)}" if hasattr(array, "dtype") else f"{name} {array}"
        for name, array in zip(self._fields, self)
    )
    return f"{type(self).__name__}({', '.join(shown)})"


def player_name(self: object) -> str:
    """Return a player's class and name."""
    return f"{type(self).__name__}({self.name!r})"
