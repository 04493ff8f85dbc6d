"""Experiment `cache`: sizes and recovery time of the write buffer and the SLC cache."""
