"""Experiments: what to ask of a drive, one file each; they write records."""
