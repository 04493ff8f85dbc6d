"""Compares the methods and results of runs, with uncertainty; gives a verdict and a report."""
