"""Scripted negotiators, each with any player that gives the orders: `nash+dumbbot`."""
