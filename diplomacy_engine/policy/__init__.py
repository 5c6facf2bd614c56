"""What a network is told of boards and orders, and its draws, in compiled kernels."""
