"""What tells DumbBot's versions apart: each is kept with its mistakes, as a measuring stick.

NORMAN is David Norman's bot of 2002, PAQUETTE Philip Paquette's port to Python (2019), DEEPDIP the
port to Java (a file touched up by Diogo Cruz, from DipGame's DumbBot 1.4) that the DeepDip thesis
(2019) trained and measured against. What no field names is alike in all.
"""

from typing import NamedTuple

TRUNCATED, ROUNDED, REAL = 0, 1, 2  # how a chance in percent is counted


class DumbbotRules(NamedTuple):
    """One version's behavior, a field for each point in which versions differ."""

    # What places are worth
    values_unowned: bool  # centers of nobody are worth as much as one power's that owned them all
    mixes_kinds: bool  # values flow between the places of armies and fleets, and from every coast
    merges_coasts: bool  # of all coasts next to a fleet, not of each province's, the best counts
    keeps_fractions: bool  # of the fifth that flows on; else it is a whole number
    wholes_values: bool  # fractions are dropped from the destination value in the end
    lags_seasons: bool  # attack and defense have the weights of the phase before, in spring none
    counts_occupant: bool  # a unit is present in its own province, too
    counts_each_coast: bool  # a fleet next to both coasts of a province is present there twice

    # Which orders are given
    prefers_staying: bool  # staying counts 1 more than the node's value
    merges_equals: bool  # of places worth the same only one is a candidate
    chance: int  # TRUNCATED, ROUNDED or REAL, of stopping at a place, for moves
    shuffles: bool  # units are ordered at random; else by province
    has_keys: bool  # keys end the waiting of units for each other; else patience does
    avoids_waiting: bool  # nobody moves to where a unit waits for it from
    sees_nodes: (
        bool  # a friend in the other kind's or another coast's node of a place is overlooked
    )
    uses_holds: bool  # a unit that would hold supports a neighbor in the end
    values_origin: bool  # then the neighbor counts by where it stands, not by where it goes

    # Retreats and adjustments
    forgets_bans: bool  # takes any vacant neighbor for a retreat, and disbands if it is forbidden
    sorts_retreats: bool  # looks at retreats best first; else as they come, to the last one
    builds_once: bool  # one build a winter; the first candidate may be taken for its own successor
    removes_best: bool  # removes the best units; else the worst, with some chance for others


NORMAN = DumbbotRules(
    values_unowned=True,
    mixes_kinds=False,
    merges_coasts=False,
    keeps_fractions=False,
    wholes_values=False,
    lags_seasons=False,
    counts_occupant=True,
    counts_each_coast=True,
    prefers_staying=True,
    merges_equals=True,
    chance=TRUNCATED,
    shuffles=True,
    has_keys=True,
    avoids_waiting=False,
    sees_nodes=False,
    uses_holds=True,
    values_origin=False,
    forgets_bans=False,
    sorts_retreats=True,
    builds_once=False,
    removes_best=False,
)
PAQUETTE = NORMAN._replace(
    values_unowned=False,
    mixes_kinds=True,
    keeps_fractions=True,
    counts_occupant=False,
    counts_each_coast=False,
    prefers_staying=False,
    merges_equals=False,
    chance=REAL,
    has_keys=False,
    avoids_waiting=True,
    values_origin=True,
    forgets_bans=True,
)
DEEPDIP = NORMAN._replace(
    values_unowned=False,
    merges_coasts=True,
    keeps_fractions=True,
    wholes_values=True,
    lags_seasons=True,
    counts_occupant=False,
    counts_each_coast=False,
    prefers_staying=False,
    merges_equals=False,
    chance=ROUNDED,
    shuffles=False,
    has_keys=False,
    sees_nodes=True,
    uses_holds=False,
    sorts_retreats=False,
    builds_once=True,
    removes_best=True,
)
