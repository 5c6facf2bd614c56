"""Reading from a connection until a moment, however slowly the other side sends."""

import io
import socket
import time


class TimedReader(io.RawIOBase):
    """What a connection sends up to the moment `until`; TimeoutError after that.

    A socket's own timeout begins anew with every byte that comes.

    Attributes:
        until: of time.monotonic(); may be changed between reads.
    """

    def __init__(self, connection: socket.socket, until: float = 0.0):
        self.connection, self.until = connection, until
        self._raw = connection.makefile("rb", buffering=0)  # keeps the connection open

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int | None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("it took too long")
        self.connection.settimeout(left)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
