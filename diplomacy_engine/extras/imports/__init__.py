"""Games and maps in the files of other programs."""
