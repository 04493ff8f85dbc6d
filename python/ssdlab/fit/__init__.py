"""Fitting a twin to what a drive measured: results in, a profile and its errors out."""
