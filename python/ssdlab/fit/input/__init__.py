"""Parsing and validation of results from runs and tables."""
