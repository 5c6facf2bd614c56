"""The learner's opponents, seats, transitions and league."""
