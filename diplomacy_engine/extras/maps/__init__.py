"""Maps in the files of other programs."""
