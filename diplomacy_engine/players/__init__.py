"""Whatever gives orders: bots, the policies of checkpoints, and how to ask them."""
