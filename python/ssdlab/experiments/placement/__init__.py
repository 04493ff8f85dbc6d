"""Experiment `placement`: which placement policy keeps files fast to read, and what it costs."""
