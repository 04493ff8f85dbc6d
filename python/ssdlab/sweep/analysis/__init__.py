"""Results of a sweep: a run's findings, sensitivity to each parameter, Pareto-optimal points."""
