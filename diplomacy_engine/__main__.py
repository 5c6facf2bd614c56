"""`python -m diplomacy_engine COMMAND ...`."""

from .commands.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
