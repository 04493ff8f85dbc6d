"""The experiment `fragments`."""
