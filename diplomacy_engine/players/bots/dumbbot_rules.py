"""What tells DumbBot's versions apart: each is kept with its mistakes, as a measuring stick.

NORMAN is David Norman's bot of 2002, PAQUETTE Philip Paquette's port to Python (2019), DEEPDIP the
port to Java (a file touched up by Diogo Cruz, from DipGame's DumbBot 1.4) that the DeepDip thesis
(2019) trained and measured against. What no field names is alike in all.
"""

from typing import NamedTuple

TRUNCATED, ROUNDED, REAL = 0, 1, 2  # how a chance in percent is counted


class DumbbotRules(NamedTuple):
    """One version's behavior, a field for each point in which versions differ; the defaults are
    NORMAN's."""

    # What places are worth
    values_unowned: bool = True  # centers of nobody count as those of one power that owns them all
    mixes_kinds: bool = False  # values flow between armies' and fleets' places, from all coasts
    merges_coasts: bool = False  # a fleet's best coast of all counts, not that of each province
    keeps_fractions: bool = False  # of the fifth that flows on; else it is a whole number
    wholes_values: bool = False  # fractions are dropped from the destination value in the end
    lags_seasons: bool = False  # attack and defense weigh as in the phase before, in spring nothing
    counts_occupant: bool = True  # a unit is present in its own province, too
    counts_each_coast: bool = True  # a fleet next to both coasts of a province is there twice

    # Which orders are given
    prefers_staying: bool = True  # staying counts 1 more than the node's value
    merges_equals: bool = True  # of places worth the same only one is a candidate
    chance: int = TRUNCATED  # TRUNCATED, ROUNDED or REAL, of stopping at a place, for moves
    shuffles: bool = True  # units are ordered at random; else by province
    has_keys: bool = True  # keys end the waiting of units for each other; else patience does
    avoids_waiting: bool = False  # nobody moves to where a unit waits for it from
    sees_nodes: bool = False  # overlooks a friend in another coast's or the other kind's node
    uses_holds: bool = True  # a unit that would hold supports a neighbor in the end
    values_origin: bool = False  # then the neighbor counts by where it stands, not by where it goes

    # Retreats and adjustments
    forgets_bans: bool = False  # retreats to any vacant neighbor, and disbands if it is forbidden
    sorts_retreats: bool = True  # looks at retreats best first; else as they come, to the last one
    builds_once: bool = False  # one build a winter; the first candidate may be its own successor
    removes_best: bool = False  # removes the best units; else the worst, others by some chance


NORMAN = DumbbotRules()
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
