"""Compares runs: their methods, their numbers with uncertainty, a verdict, a report."""
