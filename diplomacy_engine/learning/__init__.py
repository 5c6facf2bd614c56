"""What the learners share and PyTorch is needed for: nothing below this folder imports PyTorch."""
