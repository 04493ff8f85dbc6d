"""The experiment `split`."""
