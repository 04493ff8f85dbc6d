"""Fits a twin's profile to the results of a drive."""
