"""Seats in games that run elsewhere: one loop, and a connection for each kind of server."""
