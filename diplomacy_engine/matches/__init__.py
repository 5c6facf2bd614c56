"""Games between players: seats, results with intervals, tournaments, ratings, forks."""
