"""Runs held against runs: same method? which numbers? how many times, and is it chance?"""
