"""Experiment `aging`: do random writes slow sequential reads?"""
