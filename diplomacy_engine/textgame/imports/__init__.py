"""Readers of games that other programs and sites recorded."""
