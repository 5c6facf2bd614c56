"""A play server for tests."""

import threading
from contextlib import contextmanager

from diplomacy_engine.play.server import PlayServer


@contextmanager
def serving(session, host="127.0.0.1", port=0):
    with PlayServer(session, host, port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
