"""Runs held against runs, for people: the comparison itself, and sides measured in turns."""
