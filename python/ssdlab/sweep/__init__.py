"""Sweeps: run many twins under many loads, on all cores or a cluster, into one dataset.

`spec` reads the specification and derives the runs, `execute` executes them, `dataset` stores the
results.
"""
