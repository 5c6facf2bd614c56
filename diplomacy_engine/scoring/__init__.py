"""What a game is worth: rewards, and who won."""
