"""The experiment `workload`."""
