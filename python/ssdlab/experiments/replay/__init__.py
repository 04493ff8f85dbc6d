"""The experiment `replay`."""
