"""How the runs of each experiment are shown: one file an experiment."""
