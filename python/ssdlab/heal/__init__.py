"""Heal: rewrites in order the parts of live files that read slowly.

options   what the user requested
refusal   whether a file may be rewritten, and by which method; no I/O
pieces    range arithmetic, and which pieces are slow; no I/O
speed     measures how fast each piece reads
methods/  rewrites a range: one module for each kernel interface
file      selects files; one file: measure, choose, rewrite, measure again
device/   a whole block device
outcome   the result, as `--json` prints it
"""
