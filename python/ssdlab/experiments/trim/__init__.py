"""The experiment `trim`."""
