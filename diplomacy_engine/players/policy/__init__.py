"""What a network is told of boards and orders, and kernels of its policy; without PyTorch."""
