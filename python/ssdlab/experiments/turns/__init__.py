"""The experiment `turns`."""
