"""One game in words: orders as text, positions, reasons, saved games."""
