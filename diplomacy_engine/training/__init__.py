"""What a training run is on disk and at the terminal; PyTorch's part is in learning/."""
