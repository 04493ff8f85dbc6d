"""The experiment `stripe`."""
