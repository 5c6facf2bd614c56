"""What a training script needs besides its algorithm: settings, run folder, records."""
