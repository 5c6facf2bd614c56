"""`python -m diplomacy_engine COMMAND ...`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
