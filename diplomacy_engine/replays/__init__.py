"""Saved games as pages and pictures that step through them."""
