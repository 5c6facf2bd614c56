"""Maps of other programs: read, checked against what can be played here, written as map files."""
