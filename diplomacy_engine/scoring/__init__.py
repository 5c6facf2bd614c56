"""Rewards, and the results of games."""
