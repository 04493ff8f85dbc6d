"""The experiment `cache`."""
