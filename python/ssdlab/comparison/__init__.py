"""Compares runs: method, numbers and their uncertainty, verdict, report."""
