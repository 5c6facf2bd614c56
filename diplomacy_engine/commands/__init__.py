"""`python -m diplomacy_engine ...`, one file a command."""
