"""Training, and the checkpoints that it leaves."""
