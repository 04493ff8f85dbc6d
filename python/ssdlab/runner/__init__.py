"""Runs an experiment: opens the target, runs and records its steps, resumes, warns."""
