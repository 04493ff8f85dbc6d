"""From records to findings: one file for each question."""
