"""Experiment `fragments`: the cost of reading a fragmented file, and its cause."""
