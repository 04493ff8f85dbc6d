"""Sweeps: many twins under many loads, on all cores or a cluster, into one dataset.

`spec` reads what is wanted, `design` makes runs of it, `work` does one, `here` and `cluster` do
many, `dataset` keeps what came of them.
"""
