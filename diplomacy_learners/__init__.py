"""Learners beside the one-file trainer; each runs as `python -m diplomacy_learners.NAME`."""
