"""Experiment `fsync`: the cost of durable writes, and what the drive does on a flush."""
