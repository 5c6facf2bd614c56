"""Language models as powers: settings, prompts, constraints, replies and servers; no PyTorch."""
