"""The experiment `placement`."""
