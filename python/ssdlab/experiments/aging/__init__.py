"""The experiment `aging`."""
