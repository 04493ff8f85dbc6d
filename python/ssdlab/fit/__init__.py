"""Fits a twin's profile to measurements of a drive."""
