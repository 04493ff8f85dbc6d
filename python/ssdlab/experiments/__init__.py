"""The experiments: a package each, with parameters, measure, analysis and report."""
