"""Games that run: many at once in arrays, or one in texts."""
