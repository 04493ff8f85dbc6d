"""The experiment `suite`."""
