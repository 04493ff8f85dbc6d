"""The experiment `steady`."""
