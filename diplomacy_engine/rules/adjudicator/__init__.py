"""The rules: one kernel for each kind of phase; none of them advances it."""
