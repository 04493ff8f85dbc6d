"""Sweeps: many twins under many loads, on all cores or a cluster, into one dataset.

`spec` reads the specification, `design` derives the runs, `worker` executes one, `local` and
`cluster` execute many, `dataset` stores the results.
"""
