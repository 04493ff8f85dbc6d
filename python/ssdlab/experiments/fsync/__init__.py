"""The experiment `fsync`."""
