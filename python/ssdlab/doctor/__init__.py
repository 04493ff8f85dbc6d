"""Finds faults in a drive's setup: checks of a snapshot, and the read-speed map of a file."""
